/* ANY /sandbox/{id}/opencode/...: the sandbox's own OpenCode server, wide open.
 *
 *     GET .../opencode/session       the prefix goes, the query stays, bodies and events stream both
 *                                    ways, WebSockets become tunnels
 *     GET .../opencode  (a browser)  302 to the same with ?url=<origin>/sandbox/{id}/opencode, and from
 *                                    there 302 to where OpenCode's web client works
 *
 * The sandbox is woken and the server started first. A page of a sandbox never shares an origin with
 * our API, where it could do whatever the user may: so the web client is served by the preview of the
 * server's port, an origin of its own. What passes here is told to be no page (visit_proxy). */
#pragma once

#include "net/http/http_request.h"

void agentpod_opencode(struct http_request *request);

/* Whether the rule for browsers holds for this request. */
struct agentpod_page {
    bool is_page; /* somebody wants to look at it */
    bool has_url; /* and was sent back with ?url= */
};
struct agentpod_page agentpod_opencode_page(struct http_request *request);
