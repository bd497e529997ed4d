#include "agent/rpc/rpc.h"

#include "agent/agent.h"
#include "agent/rpc/rpc_message.h"
#include "agent/rpc/rpc_session.h"
#include "agent/services.h"
#include "base/memory.h"
#include "net/websocket/websocket_http.h"

/* What capnweb itself closes with after an abort. */
#define CODE_ABORTED     3000
#define PING_INTERVAL_MS 30000
#define PROBE_MS         3000

/* Freed when the WebSocket is released. */
struct rpc {
    struct agent *agent; /* borrowed */
    struct websocket *ws;
    struct rpc_session *session; /* owned */
    struct loop_task settle;     /* end of turn */
    struct deadline probe;       /* ask silent streams whether anybody still reads them */
};

/* --- the session's port ---------------------------------------------------------------------- */

static void port_send(void *owner, const char *frame, size_t length)
{
    struct rpc *rpc = owner;

    /* A connection that is closing drops it: on_close ends the session. */
    (void) websocket_send(rpc->ws, WEBSOCKET_TEXT, frame, length);
}

static bool port_is_full(const void *owner)
{
    const struct rpc *rpc = owner;

    return websocket_is_full(rpc->ws);
}

static void port_hold(void *owner, bool held)
{
    struct rpc *rpc = owner;

    if (held)
        websocket_pause(rpc->ws);
    else
        websocket_resume(rpc->ws);
}

static void port_close(void *owner, const char *reason)
{
    struct rpc *rpc = owner;

    (void) websocket_close(rpc->ws, CODE_ABORTED, reason);
}

static void port_wake(void *owner)
{
    struct rpc *rpc = owner;

    loop_defer(&rpc->agent->loop, &rpc->settle);
}

static const struct rpc_port port = {
    .send = port_send,
    .is_full = port_is_full,
    .hold = port_hold,
    .close = port_close,
    .wake = port_wake,
};

static void turn_ends(struct loop_task *task)
{
    rpc_session_settle(CONTAINER_OF(task, struct rpc, settle)->session);
}

static void probe_due(struct deadline *deadline)
{
    struct rpc *rpc = CONTAINER_OF(deadline, struct rpc, probe);

    rpc_session_probe(rpc->session);
    deadline_set(deadline, PROBE_MS);
}

/* --- the WebSocket --------------------------------------------------------------------------- */

static void rpc_message_arrived(struct websocket *ws, enum websocket_opcode kind, const char *bytes,
                                size_t length)
{
    struct rpc *rpc = websocket_http_data(ws);

    if (kind == WEBSOCKET_TEXT)
        rpc_session_receive(rpc->session, bytes, length);
    else
        rpc_session_abort(rpc->session, "messages are text, not binary");
}

static void rpc_client_took(struct websocket *ws)
{
    struct rpc *rpc = websocket_http_data(ws);

    rpc_session_drained(rpc->session);
}

static void rpc_client_left(struct websocket *ws, unsigned int code, const char *reason, bool clean)
{
    struct rpc *rpc = websocket_http_data(ws);

    (void) code;
    (void) reason;
    (void) clean;
    rpc_session_end(rpc->session);
}

static void probe_closed(struct deadline *deadline)
{
    free(CONTAINER_OF(deadline, struct rpc, probe));
}

static void rpc_connection_gone(struct websocket *ws)
{
    struct rpc *rpc = websocket_http_data(ws);

    rpc_session_free(rpc->session);
    loop_task_cancel(&rpc->settle);
    deadline_close(&rpc->probe, probe_closed);
}

static const struct websocket_events events = {
    .on_message = rpc_message_arrived,
    .on_drain = rpc_client_took,
    .on_close = rpc_client_left,
    .on_released = rpc_connection_gone,
};

void rpc_handle(struct http_request *request)
{
    static const struct websocket_options options = {.role = WEBSOCKET_SERVER,
                                                     .message_max = RPC_FRAME_MAX,
                                                     .ping_interval_ms = PING_INTERVAL_MS};
    struct rpc *rpc = mem_alloc(sizeof(*rpc));
    struct error err = ERROR_INIT;

    rpc->agent = request->context;
    loop_task_init(&rpc->settle, turn_ends);
    rpc->ws = websocket_accept(request, &options, &events, rpc, &err);
    if (!rpc->ws) {
        http_reply_error(request, &err);
        free(rpc);
        return;
    }
    rpc->session = rpc_session_new(&(struct rpc_session_options){
        .agent = rpc->agent,
        .port = &port,
        .owner = rpc,
        .blocks = rpc->agent->loop.blocks,
        .find = services_find_rpc,
    });
    deadline_init(&rpc->agent->loop, &rpc->probe, probe_due);
    deadline_set(&rpc->probe, PROBE_MS);
}
