/* The routes as a page for people: made from the route tables like the OpenAPI document, and whole
 * in itself, without scripts or anything from elsewhere. */
#pragma once

#include <stddef.h>

#include "base/text.h"
#include "net/http/http_request.h"
#include "net/http/http_route.h"

#define OPENAPI_PAGE_TYPE "text/html; charset=utf-8"

/* Append the page for these dialects. `document` is where the same is to be had as JSON. Returns 0,
 * or -EOVERFLOW when `out` is too small. */
int openapi_page_write(const struct http_mount *mounts, size_t count, const char *title,
                       const char *version, const char *document, struct text *out);

/* Answer with it. */
void openapi_page_answer(struct http_request *request, const struct http_mount *mounts,
                         size_t count, const char *title, const char *document);
