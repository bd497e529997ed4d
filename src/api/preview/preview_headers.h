/* What a preview's application may see of a request, and a browser of its reply: see preview.h. */
#pragma once

#include "net/http/http_head.h"
#include "net/http/http_request.h"

/* For http_proxy_options: nothing of ours goes in ... */
const struct http_header *preview_request_header(struct http_request *request,
                                                 const struct http_header *header);
/* ... and cookies stay on this very host. */
const struct http_header *preview_reply_header(struct http_request *request,
                                               const struct http_header *header);

/* The same by path, where all previews share a host: no cookies at all. */
const struct http_header *preview_path_request_header(struct http_request *request,
                                                      const struct http_header *header);
const struct http_header *preview_path_reply_header(struct http_request *request,
                                                    const struct http_header *header);

/* "a=1; burrow_session=...; b=2" without our own cookies, in the request's pool; NULL: nothing is
 * left. Pure but for the pool. */
const char *preview_clean_cookies(struct pool *pool, const char *value);

/* A Referer without the parameters that hold a secret of ours; an application's own ?token= stays.
 */
const char *preview_clean_referer(struct pool *pool, const char *value);

/* A Set-Cookie value without its Domain. */
const char *preview_clean_set_cookie(struct pool *pool, const char *value);
