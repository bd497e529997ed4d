/* A visit: what a request does in a sandbox, from the first look to the last byte.
 *
 * It finds the sandbox for the caller, has it woken, keeps it awake, and ends by itself with the
 * request, in whatever way that ends (reply complete, client gone, upgraded connection closed).
 *
 *     visit_begin(request, http_request_parameter(request, "id"), 0, ready);
 *     static void ready(struct visit *visit) { agent_call(visit, ...); }
 *
 * It counts as one of those that the caller's owner may have at once (share.h), for it holds
 * descriptors and memory of the daemon.
 *
 * Failures on the way (no such sandbox, not allowed, too many, cannot be woken) are answered in the dialect
 * of the route, and `ready` is not called. A visit lives in the request's pool and uses
 * request->ended_data, on_ended, on_gone and, while an agent's reply is streamed, on_drain; a
 * handler's own data goes into visit->data.
 *
 * The body may be collected before (visit_begin from on_collected) or after `ready`; what comes
 * meanwhile waits in the client's socket. */
#pragma once

#include "api/http/api.h"
#include "domain/sandbox/sandbox.h"
#include "domain/sandbox/sandbox_use.h"
#include "share/share.h"

struct http_origin;
struct agent_exchange;
struct tunnel_watch;

enum visit_flag {
    VISIT_CREATE =
        1 << 0, /* make the sandbox when there is none of that name: bridge, StackMemory */
    VISIT_START = 1 << 1,   /* also start one that somebody stopped */
    VISIT_READ = 1 << 2,    /* looking only: a read key will do */
    VISIT_NO_WAKE = 1 << 3, /* ERR_CONFLICT unless it runs */
    VISIT_TERMINAL = 1 << 4 /* an upgrade becomes a terminal, which users have another part of */
};

struct visit {
    struct http_request *request;
    struct api *api;
    struct sandbox *sandbox;   /* from ready on */
    struct http_origin *agent; /* from ready on, until the end of that turn: see visit_agent */
    void *data;                /* the handler's own: at first what request->data was */
    /* The client left while the visit went on; may be NULL. Exchanges are cancelled by themselves.
     */
    void (*gone)(struct visit *visit);

    /* Below: visit.c's and agent_call.c's. */
    struct sandbox_use use;
    void (*ready)(struct visit *visit);
    struct agent_exchange *exchange;
    struct visit_creation *creation;
    struct share_claim claim; /* its part of what all share: a request, a tunnel or a terminal */
    unsigned int flags;
};

/* visit_begin makes nothing; visit_begin_new does with VISIT_CREATE: `spec` is what to make, its
 * name must be `name`, and it is borrowed for the call. */
void visit_begin(struct http_request *request, const char *name_or_id, unsigned int flags,
                 void (*ready)(struct visit *visit));
void visit_begin_new(struct http_request *request, const char *name,
                     const struct sandbox_spec *spec, unsigned int flags,
                     void (*ready)(struct visit *visit));

static inline struct visit *visit_of(struct http_request *request)
{
    return request->ended_data;
}

/* The agent's origin, fresh, for later turns. NULL: the failure was answered. */
struct http_origin *visit_agent(struct visit *visit);

/* Pass the request on as it is to a path of the agent (query included in `target`), both bodies
 * streamed; a 101 becomes a tunnel during which the sandbox stays awake. Headers with credentials
 * of ours (Authorization, our cookies) are never passed on.
 *
 * What a sandbox answers here appears on the origin of our API: only headers that describe the
 * content come back, and browsers are told to treat it as a foreign, scriptless page. From here on
 * visit->gone is not called. */
void visit_proxy(struct visit *visit, const char *target);

/* The same for a request that is an upgrade to a WebSocket: when the agent refuses it, the client
 * is told so in the dialect of the route, not in the agent's words. */
void visit_proxy_socket(struct visit *visit, const char *target);

/* The same to another server inside, whose requests may use all of HTTP: `watch` (visit_proxy's own
 * for NULL) is asked for a watch when it becomes a tunnel, and holds the visit (visit_keep). */
void visit_proxy_to(struct visit *visit, struct http_origin *origin, const char *target,
                    struct tunnel_watch *(*watch)(struct http_request *request));

/* `path` with the query of the request, less what may hold a credential of ours (token,
 * authorization): a target for visit_proxy, in the request's pool. */
const char *visit_target(struct visit *visit, const char *path);

/* Keep the sandbox awake beyond the request, as for a WebSocket of one's own: call before the
 * upgrade, and visit_release once when it is over. */
struct visit_hold;
struct visit_hold *visit_keep(struct visit *visit);
void visit_release(struct visit_hold *hold);

/* Forget the exchange under way, if there is one; nobody is called back. */
void agent_call_drop(struct visit *visit);
