#include "api/agentpod/agentpod_opencode.h"

#include <string.h>

#include "api/access/credential.h"
#include "api/agentpod/agentpod_agent.h"
#include "api/agentpod/agentpod_internal.h"
#include "api/http/pending.h"
#include "api/preview/preview.h"
#include "api/preview/preview_origin.h"
#include "base/auto.h"
#include "base/memory.h"
#include "net/tunnel.h"

#define PREFIX_SEGMENTS 3 /* /sandbox/{id}/opencode */
#define URL_MAX         ((size_t) 16 * 1024)

/* In the request's pool. */
struct agentpod_passing {
    struct preview_lease lease;
    struct visit *visit;
    void (*on_ended)(struct http_request *request); /* the visit's */
};

/* What a tunnel needs, once the request is gone. */
struct agentpod_tunnel {
    struct preview_lease lease;
    struct tunnel_watch watch;
    struct visit_hold *hold;
};

/* --- the path -------------------------------------------------------------------------------- */

/* What is behind the prefix, as the client wrote it: "/session", "/" for nothing. */
static struct url_span agentpod_opencode_rest(const struct http_request *request)
{
    struct url_span path = request->target.path;
    const char *at = path.text, *stop = path.text + path.length;

    for (int i = 0; i <= PREFIX_SEGMENTS && at < stop; i++) {
        const char *slash = memchr(at + (i > 0), '/', (size_t) (stop - at) - (i > 0));

        at = slash ? slash : stop;
    }
    return at < stop ? url_span(at, (size_t) (stop - at)) : url_span("/", 1);
}

static const char *agentpod_opencode_target(struct http_request *request)
{
    struct url_span rest = agentpod_opencode_rest(request);
    struct url_span query = credential_clean_query(request->target.query, &request->pool);

    return pool_format(&request->pool, "%.*s%s%.*s", (int) rest.length, rest.text,
                       query.text ? "?" : "", (int) query.length, query.text ? query.text : "");
}

/* --- passing on ------------------------------------------------------------------------------ */

static void agentpod_passing_ended(struct http_request *request)
{
    struct agentpod_passing *passing = visit_of(request)->data;

    preview_lease_end(&passing->lease);
    passing->on_ended(request);
}

static void agentpod_tunnel_ended(struct tunnel_watch *watch)
{
    struct agentpod_tunnel *tunnel = CONTAINER_OF(watch, struct agentpod_tunnel, watch);

    preview_lease_end(&tunnel->lease);
    visit_release(tunnel->hold);
    free(tunnel);
}

static void agentpod_tunnel_cut(struct preview_lease *lease)
{
    struct agentpod_tunnel *tunnel = CONTAINER_OF(lease, struct agentpod_tunnel, lease);

    if (tunnel->watch.tunnel)
        tunnel_cut(tunnel->watch.tunnel);
}

static struct tunnel_watch *agentpod_tunnel_watch(struct http_request *request)
{
    struct agentpod_passing *passing = visit_of(request)->data;
    struct agentpod_tunnel *tunnel = mem_alloc(sizeof(*tunnel));

    tunnel->watch.ended = agentpod_tunnel_ended;
    tunnel->hold = visit_keep(passing->visit);
    preview_lease_join(&tunnel->lease, &passing->lease);
    tunnel->lease.cut = agentpod_tunnel_cut;
    return &tunnel->watch;
}

static void agentpod_passing_granted(struct preview_lease *lease, const struct error *failure)
{
    struct agentpod_passing *passing = CONTAINER_OF(lease, struct agentpod_passing, lease);
    struct http_request *request = passing->visit->request;

    if (failure)
        http_reply_error(request, failure);
    else
        visit_proxy_to(passing->visit, preview_lease_origin(lease),
                       agentpod_opencode_target(request), agentpod_tunnel_watch);
}

static void agentpod_passing_client_left(struct http_request *request)
{
    (void) request; /* agentpod_passing_ended follows */
}

static void agentpod_opencode_pass(struct visit *visit)
{
    struct agentpod_passing *passing = pool_alloc(&visit->request->pool, sizeof(*passing));

    passing->visit = visit;
    passing->on_ended = visit->request->on_ended;
    visit->data = passing;
    visit->request->on_ended = agentpod_passing_ended;
    visit->request->on_gone = agentpod_passing_client_left;
    preview_lease_begin(preview_origins_of(visit->api->preview), visit->sandbox, AGENTPOD_PORT,
                        &passing->lease, agentpod_passing_granted);
}

/* --- browsers -------------------------------------------------------------------------------- */

struct agentpod_page agentpod_opencode_page(struct http_request *request)
{
    const char *accept = http_request_header(request, "accept");
    struct url_span rest = agentpod_opencode_rest(request);
    const bool is_get = strcmp(request->head->method, "GET") == 0 && !request->is_upgrade;
    const bool wants_page = accept && strstr(accept, "text/html") != NULL;

    return (struct agentpod_page){
        .is_page = is_get && (wants_page || (rest.length == 1 && rest.text[0] == '/')),
        .has_url = http_request_query(request, "url") != NULL,
    };
}

/* To the same with ?url=: where OpenCode's programs find the server behind this path. */
static void agentpod_opencode_send_back(struct http_request *request)
{
    AUTO(text) struct text url = TEXT_INIT(URL_MAX), location = TEXT_INIT(URL_MAX);
    struct url_span path = request->target.path;
    struct url_span query = credential_clean_query(request->target.query, &request->pool);
    size_t prefix = path.length;
    struct url_span rest = agentpod_opencode_rest(request);

    if (rest.text >= path.text && rest.text < path.text + path.length)
        prefix = (size_t) (rest.text - path.text);
    text_format(&url, "%s://%s%.*s", request->is_secure ? "https" : "http",
                http_request_host(request), (int) prefix, path.text);
    text_format(&location, "%.*s%s?%.*s%surl=", (int) path.length, path.text,
                prefix == path.length ? "/" : "", (int) query.length, query.text ? query.text : "",
                query.length ? "&" : "");
    url_encode(&location, text_string(&url), url.length);
    (void) http_reply_header(request, "Location", text_string(&location));
    http_reply(request, 302, NULL, NULL, 0);
}

static void agentpod_opencode_exposed(void *context, const struct error *failure, struct port *port)
{
    struct http_request *request = pending_take_good(context, failure);
    AUTO(text) struct text location = TEXT_INIT(URL_MAX);
    struct url_span rest;

    if (!request)
        return;
    rest = agentpod_opencode_rest(request);
    preview_url(api_of(request)->preview, port, &location); /* ends in a slash */
    text_append_bytes(&location, rest.text + 1, rest.length - 1);
    (void) http_reply_header(request, "Location", text_string(&location));
    (void) http_reply_header(request, "Referrer-Policy", "no-referrer");
    http_reply(request, 302, NULL, NULL, 0);
}

static void agentpod_opencode_show(struct visit *visit)
{
    const struct port_spec spec = {.number = AGENTPOD_PORT, .name = "opencode", .wakes = true};

    if (!preview_has_host(visit->api->preview)) {
        api_fail(
            visit->request, ERR_CONFLICT,
            "OpenCode's web client needs an origin of its own, and this daemon has no names for "
            "previews: set preview-host");
        return;
    }
    port_expose(visit->api->domain, request_caller(visit->request), visit->sandbox, &spec,
                agentpod_opencode_exposed, pending_new(visit->request));
}

/* --- all ------------------------------------------------------------------------------------- */

static void agentpod_opencode_visited(struct visit *visit)
{
    struct agentpod_start start = {.ready = agentpod_opencode_pass};

    if (agentpod_opencode_page(visit->request).is_page)
        start.ready = agentpod_opencode_show;
    agentpod_agent_start(visit, &start);
}

void agentpod_opencode(struct http_request *request)
{
    const struct agentpod_page page = agentpod_opencode_page(request);

    if (page.is_page && !page.has_url) {
        if (agentpod_find(request))
            agentpod_opencode_send_back(request);
    } else {
        visit_begin(request, http_request_parameter(request, "id"), 0, agentpod_opencode_visited);
    }
}
