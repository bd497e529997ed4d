/* The OpenAPI 3.1 document, written from the route tables themselves: it cannot disagree with what
 * the server does. */
#pragma once

#include <stddef.h>

#include "base/text.h"
#include "net/http/http_request.h"
#include "net/http/http_route.h"

/* Append the document for these dialects. Returns 0, or -EOVERFLOW when `out` is too small. */
int openapi_write(const struct http_mount *mounts, size_t count, const char *title,
                  const char *version, struct text *out);

/* Answer with it, as this media type. */
void openapi_answer(struct http_request *request, const struct http_mount *mounts, size_t count,
                    const char *title, const char *type);
