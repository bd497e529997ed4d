/* The OpenAPI 3.1 document, written from the route tables themselves: it cannot disagree with what
 * the server does. */
#pragma once

#include <stddef.h>

#include "base/text.h"
#include "net/http/http_route.h"

/* Append the document for these dialects. Returns 0, or -EOVERFLOW when `out` is too small. */
int openapi_write(const struct http_mount *const *mounts, size_t count, const char *title,
                  const char *version, struct text *out);
