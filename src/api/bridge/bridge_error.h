/* Errors as the bridge tells them: {"error": sentence, "code": word}.
 *
 * Its words are about what was tried, ours about what went wrong; both are kept: the status is the
 * one of our code, the word is the bridge's where it has one. */
#pragma once

#include "base/error.h"
#include "base/text.h"
#include "net/http/http_request.h"

/* For http_mount: words for what goes wrong before a sandbox can be used. */
void bridge_error_encode(const struct http_request *request, const struct error *error,
                         struct text *body, const char **ret_content_type);

/* The same text for a word of one's own; in `body`, which must be empty. */
void bridge_error_write(const char *word, const char *sentence, struct text *body);

/* Answer with a word of one's own. */
void bridge_error_reply(struct http_request *request, enum err_code code, const char *word,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));
