/* Requests that a page of somebody else's made with the browser's own cookie (CSRF, and the same
 * over WebSockets).
 *
 * Asked for requests that change something or open a socket and have no key in a header. Browsers
 * say where a request comes from: Sec-Fetch-Site, else Origin, else Referer must then be our own
 * origin, or one the operator named (origins.h). A client that sends none of the three is no
 * browser, and nobody's page can make it send anything: it goes on. */
#pragma once

#include <stdbool.h>

#include "api/access/origins.h"
#include "base/error.h"
#include "net/http/http_request.h"

/* Whether the request changes something, or opens a socket. */
bool csrf_is_at_stake(const struct http_request *request);

/* Returns 0, or -1 with ERR_FORBIDDEN. `is_secure`: the browser used TLS. */
int csrf_check(struct http_request *request, const struct origins *origins, bool is_secure,
               struct error *err);

/* Whether `origin` is the very host and port that was asked for. A Host without a port is taken for
 * the usual one of the origin's scheme, which must not be less safe than ours. */
bool csrf_is_own_origin(const char *origin, const struct url_host *asked, bool is_secure);
