/* Paths of requests in the one form that is decided on and sent: what a policy saw is what the
 * upstream gets. Pure. */
#pragma once

#include "base/error.h"
#include "base/pool.h"
#include "net/url.h"

/* Resolve "." and "..", undo escapes of bytes that need none, write the others in capitals. A path
 * that servers read differently is refused: one that has other segments when an escaped or backward
 * slash counts as a slash, or when it is unescaped twice. Returns 0 with the path in the pool, or
 * -1 with ERR_INVALID. */
int request_path_read(struct url_span raw, struct pool *pool, const char **ret_path,
                      struct error *err);

/* Cut the first segment off a path as above: "/anthropic/v1/messages" becomes "anthropic" and
 * "/v1/messages". Returns 0, or -1 with ERR_NOT_FOUND when it can be the name of no route. */
int request_path_route(const char *path, struct pool *pool, const char **ret_route,
                       const char **ret_rest, struct error *err);

/* The query without each parameter `name`, and, when `value` is not NULL, with one of that value
 * (escaped here) in place of them. NULL when nothing is left. In the pool. */
const char *request_query_edit(struct url_span query, const char *name, const char *value,
                               struct pool *pool);
