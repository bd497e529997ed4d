#include "api/agent/visit.h"

#include <string.h>
#include <strings.h>

#include "api/agent/agent_call.h"
#include "api/agent/agents.h"
#include "base/auto.h"
#include "base/memory.h"
#include "domain/domain_share.h"
#include "domain/sandbox/sandboxes.h"
#include "net/http/http_proxy.h"

/* A create cannot be called back: it finds nobody when the client has left. */
struct visit_creation {
    struct visit *visit; /* NULL: over */
};

/* --- the end --------------------------------------------------------------------------------- */

static void visit_end(struct visit *visit)
{
    agent_call_drop(visit);
    if (visit->creation)
        TAKE_PTR(visit->creation)->visit = NULL;
    sandbox_use_end(&visit->use);
    share_release(&visit->claim);
}

static void request_ended(struct http_request *request)
{
    visit_end(request->ended_data);
}

static void client_gone(struct http_request *request)
{
    struct visit *visit = request->ended_data;

    visit_end(visit);
    if (visit->gone)
        visit->gone(visit);
}

static void visit_fail(struct visit *visit, const struct error *error)
{
    http_reply_error(visit->request, error);
}

/* --- the beginning --------------------------------------------------------------------------- */

static void use_ready(struct sandbox_use *use, const struct error *failure)
{
    struct visit *visit = CONTAINER_OF(use, struct visit, use);

    if (failure) {
        visit_fail(visit, failure);
        return;
    }
    visit->agent = visit_agent(visit);
    if (visit->agent)
        visit->ready(visit);
}

static void visit_enter(struct visit *visit, struct sandbox *sandbox)
{
    unsigned int flags = (visit->flags & VISIT_START ? SANDBOX_USE_START : 0u) |
                         (visit->flags & VISIT_NO_WAKE ? SANDBOX_USE_QUIET : 0u);

    visit->sandbox = sandbox;
    sandbox_use_begin(visit->api->domain, sandbox, &visit->use, flags, use_ready);
}

static void visit_created(void *context, const struct error *failure, struct sandbox *sandbox,
                          bool is_new)
{
    AUTO(free) struct visit_creation *creation = context;
    struct visit *visit = creation->visit;

    (void) is_new;
    if (!visit)
        return; /* it was made all the same: the next request finds it */
    visit->creation = NULL;
    if (failure)
        visit_fail(visit, failure);
    else
        visit_enter(visit, sandbox);
}

static void visit_create(struct visit *visit, const struct caller *caller,
                         const struct sandbox_spec *spec)
{
    visit->creation = mem_alloc(sizeof(*visit->creation));
    visit->creation->visit = visit;
    sandbox_create(visit->api->domain, caller, spec, visit_created, visit->creation);
}

static struct visit *visit_new(struct http_request *request, unsigned int flags,
                               void (*ready)(struct visit *visit))
{
    struct visit *visit = pool_alloc(&request->pool, sizeof(*visit));

    visit->request = request;
    visit->api = api_of(request);
    visit->flags = flags;
    visit->ready = ready;
    visit->data = request->data;
    request->ended_data = visit;
    request->on_ended = request_ended;
    request->on_gone = client_gone;
    return visit;
}

static enum share visit_share(const struct visit *visit)
{
    if (!visit->request->is_upgrade)
        return SHARE_REQUESTS;
    return visit->flags & VISIT_TERMINAL ? SHARE_TERMINALS : SHARE_WEBSOCKETS;
}

static int visit_claim(struct visit *visit, const struct caller *caller, struct error *err)
{
    const struct share_asker asker = domain_asker(visit->api->domain, caller);

    return share_claim(visit->api->shares, &asker, visit_share(visit), 1, &visit->claim, err);
}

static void visit_start(struct http_request *request, const char *name_or_id,
                        const struct sandbox_spec *spec, unsigned int flags,
                        void (*ready)(struct visit *visit))
{
    struct visit *visit = visit_new(request, flags, ready);
    const struct caller *caller = request_caller(request);
    struct error error = ERROR_INIT;
    struct sandbox *sandbox;

    if (!caller) {
        api_fail(request, ERR_UNAUTHENTICATED, "a key is needed");
        return;
    }
    if (visit_claim(visit, caller, &error) < 0) {
        visit_fail(visit, &error);
        return;
    }
    sandbox = sandbox_find(visit->api->domain, caller, name_or_id, &error);
    if (!sandbox && error.code == ERR_NOT_FOUND && spec && (flags & VISIT_CREATE))
        visit_create(visit, caller, spec);
    else if (!sandbox)
        visit_fail(visit, &error);
    else if (!(flags & VISIT_READ) && !caller_may_enter(caller))
        api_fail(request, ERR_FORBIDDEN, "this key may look and not change anything");
    else
        visit_enter(visit, sandbox);
}

void visit_begin(struct http_request *request, const char *name_or_id, unsigned int flags,
                 void (*ready)(struct visit *visit))
{
    visit_start(request, name_or_id, NULL, flags, ready);
}

void visit_begin_new(struct http_request *request, const char *name,
                     const struct sandbox_spec *spec, unsigned int flags,
                     void (*ready)(struct visit *visit))
{
    visit_start(request, name, spec, flags, ready);
}

struct http_origin *visit_agent(struct visit *visit)
{
    struct error error = ERROR_INIT;
    struct http_origin *origin = agents_origin(visit->api->agents, &visit->sandbox->id, &error);

    if (!origin)
        visit_fail(visit, &error);
    return origin;
}

/* --- longer than the request ----------------------------------------------------------------- */

struct visit_hold {
    struct sandbox_use use;
    struct tunnel_watch watch; /* for the proxy's tunnels */
    struct share_claim claim;
};

static void hold_ready(struct sandbox_use *use, const struct error *failure)
{
    (void) use;
    (void) failure; /* it runs, for the visit's own use lasts still */
}

struct visit_hold *visit_keep(struct visit *visit)
{
    struct visit_hold *hold = mem_alloc(sizeof(*hold));
    const struct share_asker asker =
        domain_asker(visit->api->domain, request_caller(visit->request));

    /* The visit's own goes with the request, and was asked for. */
    share_claim_anyway(visit->api->shares, &asker, visit_share(visit), 1, &hold->claim);
    sandbox_use_begin(visit->api->domain, visit->sandbox, &hold->use, 0, hold_ready);
    return hold;
}

void visit_release(struct visit_hold *hold)
{
    sandbox_use_end(&hold->use);
    share_release(&hold->claim);
    free(hold);
}

/* --- passing on ------------------------------------------------------------------------------ */

static void tunnel_ended(struct tunnel_watch *watch)
{
    visit_release(CONTAINER_OF(watch, struct visit_hold, watch));
}

static struct tunnel_watch *watch_tunnel(struct http_request *request)
{
    struct visit_hold *hold = visit_keep(visit_of(request));

    hold->watch.ended = tunnel_ended;
    return &hold->watch;
}

static bool is_for_agent(const struct http_header *header)
{
    return strcasecmp(header->name, "authorization") != 0 &&
           strcasecmp(header->name, "cookie") != 0 && strcasecmp(header->name, "origin") != 0 &&
           strcasecmp(header->name, "x-request-id") != 0; /* the agent is told ours */
}

/* Names that end in a dash stand for all that begin so. */
static const char *const content_headers[] = {
    "content-",      "accept-ranges", "cache-control", "date",           "etag",
    "last-modified", "retry-after",   "vary",          "sec-websocket-", "x-",
};

static const char *const own_headers[] = {
    "content-security-policy",
    "content-security-policy-report-only",
    "x-content-type-options",
    "x-request-id",
};

static bool is_for_client(const struct http_header *header)
{
    for (size_t i = 0; i < ARRAY_COUNT(own_headers); i++) {
        if (strcasecmp(header->name, own_headers[i]) == 0)
            return false;
    }
    for (size_t i = 0; i < ARRAY_COUNT(content_headers); i++) {
        const char *name = content_headers[i];
        size_t length = strlen(name);

        if (name[length - 1] == '-' ? strncasecmp(header->name, name, length) == 0
                                    : strcasecmp(header->name, name) == 0)
            return true;
    }
    return false;
}

static void refusal(int status, struct error *ret_error)
{
    const struct agent_reply reply = {.status = status, .code = "", .message = ""};

    if (agent_reply_error(&reply, ret_error) == 0)
        (void) error_set(ret_error, ERR_UPSTREAM, 0, "the sandbox's agent opened no WebSocket");
    else
        (void) error_wrap(ret_error, "no WebSocket");
}

static void visit_pass_on(struct visit *visit, struct http_origin *origin,
                          const struct http_proxy_options *options)
{
    if (!visit->request->is_upgrade) {
        (void) http_reply_header(visit->request, "Content-Security-Policy", "sandbox");
        (void) http_reply_header(visit->request, "X-Content-Type-Options", "nosniff");
    }
    http_proxy(visit->request, origin, options);
}

static void proxy(struct visit *visit, const char *target,
                  void (*refused)(int status, struct error *ret_error))
{
    const struct http_proxy_options options = {
        .target = target,
        .pass_request_header = is_for_agent,
        .pass_reply_header = is_for_client,
        .watch_tunnel = watch_tunnel,
        .refusal = refused,
    };
    struct http_origin *agent = visit_agent(visit);

    if (agent)
        visit_pass_on(visit, agent, &options);
}

void visit_proxy_to(struct visit *visit, struct http_origin *origin, const char *target,
                    struct tunnel_watch *(*watch)(struct http_request *request))
{
    const struct http_proxy_options options = {
        .target = target,
        .host = "127.0.0.1",
        .pass_request_header = is_for_agent,
        .pass_reply_header = is_for_client,
        .watch_tunnel = watch ? watch : watch_tunnel,
    };

    visit_pass_on(visit, origin, &options);
}

void visit_proxy(struct visit *visit, const char *target)
{
    proxy(visit, target, NULL);
}

void visit_proxy_socket(struct visit *visit, const char *target)
{
    proxy(visit, target, refusal);
}

/* --- targets --------------------------------------------------------------------------------- */

static bool is_credential(const char *field, size_t length)
{
    static const char *const names[] = {"token", "authorization"};

    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (length == strlen(names[i]) && strncasecmp(field, names[i], length) == 0)
            return true;
    }
    return memchr(field, '%', length) != NULL; /* a name in disguise is none of the agent's */
}

const char *visit_target(struct visit *visit, const char *path)
{
    struct url_span query = visit->request->target.query;
    AUTO(text) struct text target = TEXT_INIT(strlen(path) + query.length + 2);
    const char *at = query.text;
    const char *stop = query.text ? query.text + query.length : NULL;
    char separator = strchr(path, '?') ? '&' : '?';

    text_append(&target, path);
    while (at && at < stop) {
        const char *ampersand = memchr(at, '&', (size_t) (stop - at));
        const char *next = ampersand ? ampersand : stop;
        const char *equals = memchr(at, '=', (size_t) (next - at));

        if (next > at && !is_credential(at, (size_t) ((equals ? equals : next) - at))) {
            text_append_char(&target, separator);
            text_append_bytes(&target, at, (size_t) (next - at));
            separator = '&';
        }
        at = next + 1;
    }
    return pool_copy_bytes(&visit->request->pool, text_string(&target), target.length);
}
