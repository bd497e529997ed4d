#include <stdarg.h>

#include "api/bridge/bridge_internal.h"
#include "base/auto.h"
#include "json/json_write.h"

#define BODY_MAX ((size_t) 16 * 1024)
#define JSON     "application/json"

/* What the bridge has a word of its own for; the others have ours. */
static const struct {
    enum err_code code;
    const char *word;
    const char *sentence; /* instead of ours; NULL: ours */
    const char *before;   /* ours; NULL: nothing */
} words[] = {
    {ERR_UNAUTHENTICATED, "unauthorized", "Unauthorized", NULL},
    {ERR_QUOTA, "capacity_exceeded", NULL, NULL},
    {ERR_UNAVAILABLE, "capacity_exceeded", NULL, NULL},
    {ERR_CONFLICT, "pool_error", NULL, "pool error: "},
    {ERR_NO_SPACE, "pool_error", NULL, "pool error: "},
    {ERR_INTERNAL, "pool_error", NULL, "pool error: "},
    {ERR_UPSTREAM, "pool_error", NULL, "pool error: "},
    {ERR_UPSTREAM_TIMEOUT, "pool_error", NULL, "pool error: "},
};

void bridge_error_write(const char *word, const char *sentence, struct text *body)
{
    struct json_writer json;

    json_document_begin(&json, body);
    json_add_text(&json, "error", sentence);
    json_add_text(&json, "code", word);
    (void) json_document_end(&json); /* a sentence is far smaller than a body may be */
}

void bridge_error_encode(const struct http_request *request, const struct error *error,
                         struct text *body, const char **ret_content_type)
{
    const char *word = error_code_text(error->code);
    struct error told = *error;

    (void) request;
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        if (words[i].code != error->code)
            continue;
        word = words[i].word;
        error_fill(&told, error->code, 0, "%s%s", words[i].before ? words[i].before : "",
                   words[i].sentence ? words[i].sentence : error->message);
    }
    bridge_error_write(word, told.message, body);
    *ret_content_type = JSON;
}

void bridge_error_reply(struct http_request *request, enum err_code code, const char *word,
                        const char *format, ...)
{
    AUTO(text) struct text sentence = TEXT_INIT(BODY_MAX);
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX * 6 + 256);
    va_list arguments;

    va_start(arguments, format);
    text_format_list(&sentence, format, arguments);
    va_end(arguments);
    bridge_error_write(word, text_string(&sentence), &body);
    http_reply(request, error_http_status(code), JSON, text_string(&body), body.length);
}
