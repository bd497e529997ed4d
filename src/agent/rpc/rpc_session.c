#include "agent/rpc/rpc_session.h"

#include <stdio.h>
#include <string.h>

#include "agent/rpc/rpc_internal.h"
#include "base/memory.h"

/* "namespace.method"; longer ones are unknown. */
#define METHOD_NAME_SIZE 96

/* --- sending --------------------------------------------------------------------------------- */

void rpc_send(struct rpc_session *session, const struct text *message)
{
    if (!session->over)
        session->port->send(session->owner, text_string(message), message->length);
}

void rpc_send_release(struct rpc_session *session, int64_t id)
{
    AUTO(text) struct text message = TEXT_INIT(64);

    text_format(&message, "[\"release\",%lld,1]", (long long) id);
    rpc_send(session, &message);
}

int64_t rpc_import(struct rpc_session *session, uint32_t kind, void *object, size_t size)
{
    struct rpc_slot slot = {.id = ++session->own_id, .kind = kind, .object = object, .size = size};

    rpc_table_add(&session->imports, &slot);
    return slot.id;
}

bool rpc_port_is_full(const struct rpc_session *session)
{
    return session->port->is_full(session->owner);
}

void rpc_wake(struct rpc_session *session)
{
    if (!session->ended)
        session->port->wake(session->owner);
}

void rpc_session_abort(struct rpc_session *session, const char *reason)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    AUTO(text) struct text message = TEXT_INIT(8 * 1024);

    if (session->over)
        return;
    api_error_fill(&error, API_RPC_TRANSPORT_ERROR, "%s", reason);
    text_append(&message, "[\"abort\",");
    rpc_expression_write_error(&message, &error);
    text_append(&message, "]");
    rpc_send(session, &message);
    session->over = true;
    session->port->close(session->owner, reason);
    rpc_wake(session);
}

/* --- references that nobody wants ------------------------------------------------------------- */

static void drop_reference(void *context, enum rpc_reference kind, int64_t id)
{
    struct rpc_session *session = context;
    struct rpc_slot slot;

    if (kind == RPC_STUB)
        rpc_send_release(session, id);
    else if (rpc_table_find(&session->exports, id, &slot) && slot.kind == RPC_EXPORT_INLET &&
             !((struct rpc_inlet *) slot.object)->taken)
        rpc_inlet_refuse(slot.object);
}

void rpc_drop_references(struct rpc_session *session, json_t *expression)
{
    rpc_expression_visit(expression, drop_reference, session);
}

/* --- push and stream -------------------------------------------------------------------------- */

static void refuse_as(struct rpc_session *session, int64_t id, bool once, json_t *expression,
                      enum api_code code, const char *reason)
{
    rpc_drop_references(session, expression);
    rpc_answer_fail_text(rpc_answer_new(session, id, once), code, "%s", reason);
}

static void rpc_session_refuse(struct rpc_session *session, int64_t id, bool once,
                               json_t *expression, const char *reason)
{
    refuse_as(session, id, once, expression, API_UNKNOWN_ERROR, reason);
}

/* ["files", "readFile"] is "files.readFile". Returns whether the path can be a method's. */
static bool method_name(json_t *path, char ret_name[static METHOD_NAME_SIZE])
{
    const char *first = json_string_value(json_array_get(path, 0));
    const char *second = json_string_value(json_array_get(path, 1));

    return first && second && json_array_size(path) == 2 &&
           snprintf(ret_name, METHOD_NAME_SIZE, "%s.%s", first, second) < METHOD_NAME_SIZE;
}

static void call_main(struct rpc_session *session, int64_t id, bool once,
                      const struct rpc_pipeline *pipeline, json_t *expression)
{
    const struct operation *operation = NULL;
    char name[METHOD_NAME_SIZE];

    if (method_name(pipeline->path, name))
        operation = session->find(name);
    if (!pipeline->arguments)
        rpc_session_refuse(session, id, once, expression,
                           "Properties cannot be read, only methods called");
    else if (!operation)
        rpc_session_refuse(session, id, once, expression, "There is no such method");
    else if (session->running >= RPC_CALLS_MAX)
        refuse_as(session, id, once, expression, API_RESOURCE_BUSY, "Too many calls at once");
    else
        rpc_call_start(session, id, once, operation, pipeline->arguments);
}

/* Bytes have no references, but the reason of an abort may. */
static void take_piece(struct rpc_session *session, struct rpc_inlet *inlet, int64_t id,
                       const struct rpc_pipeline *pipeline, json_t *expression)
{
    rpc_drop_references(session, expression);
    rpc_inlet_take(inlet, id, pipeline);
}

static void evaluate(struct rpc_session *session, json_t *expression, bool once)
{
    struct error err = ERROR_INIT;
    struct rpc_pipeline pipeline;
    int64_t id = ++session->peer_id;
    struct rpc_slot slot;

    if (rpc_pipeline_read(expression, &pipeline, &err) < 0)
        rpc_session_refuse(session, id, once, expression, err.message);
    else if (pipeline.id == 0)
        call_main(session, id, once, &pipeline, expression);
    else if (!rpc_table_find(&session->exports, pipeline.id, &slot))
        rpc_session_refuse(session, id, once, expression, "There is no such object");
    else if (slot.kind == RPC_EXPORT_INLET && once)
        take_piece(session, slot.object, id, &pipeline, expression);
    else
        rpc_session_refuse(session, id, once, expression, "Results have no methods or properties");
}

/* --- the other messages ----------------------------------------------------------------------- */

static int take_pull(struct rpc_session *session, int64_t id)
{
    struct rpc_slot slot;

    if (!rpc_table_find(&session->exports, id, &slot) || slot.kind != RPC_EXPORT_ANSWER)
        return -1;
    rpc_answer_pull(slot.object);
    return 0;
}

static int take_release(struct rpc_session *session, int64_t id, int64_t count)
{
    struct rpc_slot slot;

    if (!rpc_table_find(&session->exports, id, &slot))
        return -1;
    if (slot.kind == RPC_EXPORT_INLET)
        return rpc_inlet_release(slot.object, count);
    return rpc_answer_release(slot.object, count);
}

/* What we did not ask for, or no longer wait for, is of no interest; but the references in it are
 * the sender's until they are released. */
static void take_result(struct rpc_session *session, const struct rpc_message *message)
{
    bool rejected = message->type == RPC_REJECT;
    struct rpc_slot slot;

    rpc_drop_references(session, message->expression);
    if (!rpc_table_find(&session->imports, message->id, &slot) || slot.kind == RPC_IMPORT_PIPE)
        return;
    rpc_table_remove(&session->imports, message->id);
    if (slot.kind == RPC_IMPORT_PIECE)
        rpc_outlet_answered(slot.object, slot.size, rejected);
    else
        rpc_callbacks_answered(slot.object, message->id, rejected);
}

static void take_abort(struct rpc_session *session)
{
    session->over = true;
    session->port->close(session->owner, "aborted by the client");
    rpc_wake(session);
}

static int dispatch(struct rpc_session *session, const struct rpc_message *message)
{
    switch (message->type) {
    case RPC_PUSH:
    case RPC_STREAM:
        evaluate(session, message->expression, message->type == RPC_STREAM);
        return 0;
    case RPC_PIPE:
        rpc_inlet_new(session, ++session->peer_id);
        return 0;
    case RPC_PULL:
        return take_pull(session, message->id);
    case RPC_RESOLVE:
    case RPC_REJECT:
        take_result(session, message);
        return 0;
    case RPC_RELEASE:
        return take_release(session, message->id, message->count);
    case RPC_ABORT:
        take_abort(session);
        return 0;
    }
    return -1;
}

/* A peer that does not read what we send, or sends faster than calls read, is not listened to. */
static void update_hold(struct rpc_session *session)
{
    bool hold = !session->over && (rpc_port_is_full(session) || session->input > RPC_INPUT_MAX);

    if (hold == session->held)
        return;
    session->held = hold;
    session->port->hold(session->owner, hold);
}

void rpc_session_receive(struct rpc_session *session, const char *bytes, size_t length)
{
    struct rpc_message message;
    struct error err = ERROR_INIT;

    if (session->over)
        return;
    if (rpc_message_read(bytes, length, &message, &err) < 0) {
        rpc_session_abort(session, err.message);
        return;
    }
    if (dispatch(session, &message) < 0)
        rpc_session_abort(session, "no such id, or more references than there are");
    else if (session->exports.count > RPC_EXPORTS_MAX)
        rpc_session_abort(session, "too many results that were not released");
    json_decref(message.frame);
    update_hold(session);
}

/* --- the end of the turn ---------------------------------------------------------------------- */

static void feed_inputs(struct rpc_session *session)
{
    LIST_EACH (&session->inlets, at) {
        struct rpc_inlet *inlet = CONTAINER_OF(at, struct rpc_inlet, link);

        rpc_inlet_deliver(inlet);
        (void) rpc_inlet_reap(inlet);
    }
}

static void send_answers(struct rpc_session *session)
{
    struct list *link;

    while (!rpc_port_is_full(session) && (link = list_first(&session->unsent)))
        rpc_answer_send(CONTAINER_OF(link, struct rpc_answer, link));
}

/* One piece of each stream in turn, so that none waits for the others. */
static void pump_outlets(struct rpc_session *session)
{
    bool sent = true;

    while (sent) {
        sent = false;
        LIST_EACH (&session->outlets, at)
            sent = rpc_outlet_pump(CONTAINER_OF(at, struct rpc_outlet, link)) || sent;
    }
}

static void settle_calls(struct rpc_session *session)
{
    LIST_EACH (&session->calls, at) {
        struct rpc_call *call = CONTAINER_OF(at, struct rpc_call, link);

        if (call->gone_due)
            rpc_call_tell_gone(call);
        if (call->callbacks)
            rpc_callbacks_pump(call->callbacks);
    }
}

static void tell_drains(struct rpc_session *session)
{
    LIST_EACH (&session->calls, at) {
        struct rpc_call *call = CONTAINER_OF(at, struct rpc_call, link);

        if (call->outlet)
            rpc_outlet_tell_drain(call->outlet);
        if (call->callbacks)
            rpc_callbacks_tell_drain(call->callbacks);
        (void) rpc_call_reap(call);
    }
}

void rpc_session_probe(struct rpc_session *session)
{
    LIST_EACH (&session->outlets, at)
        rpc_outlet_probe(CONTAINER_OF(at, struct rpc_outlet, link));
}

void rpc_session_settle(struct rpc_session *session)
{
    if (session->over) {
        rpc_session_end(session);
        return;
    }
    feed_inputs(session);
    send_answers(session);
    settle_calls(session);
    pump_outlets(session);
    tell_drains(session);
    update_hold(session);
}

void rpc_session_drained(struct rpc_session *session)
{
    update_hold(session);
    rpc_wake(session);
}

/* --- life ------------------------------------------------------------------------------------- */

struct rpc_session *rpc_session_new(const struct rpc_session_options *options)
{
    struct rpc_session *session = mem_alloc(sizeof(*session));

    session->agent = options->agent;
    session->port = options->port;
    session->owner = options->owner;
    session->blocks = options->blocks;
    session->find = options->find;
    list_init(&session->calls);
    list_init(&session->outlets);
    list_init(&session->inlets);
    list_init(&session->unsent);
    return session;
}

/* A service may answer other calls of this session while it hears that one is gone. */
static void tell_all_gone(struct rpc_session *session)
{
    LIST_EACH (&session->calls, at)
        rpc_call_tell_gone(CONTAINER_OF(at, struct rpc_call, link));
}

void rpc_session_end(struct rpc_session *session)
{
    struct rpc_slot slot;
    struct list *link;

    session->over = true;
    if (session->ended)
        return;
    session->ended = true;
    tell_all_gone(session);
    while ((link = list_first(&session->inlets)))
        rpc_inlet_free(CONTAINER_OF(link, struct rpc_inlet, link));
    while (rpc_table_any(&session->exports, &slot))
        rpc_answer_drop(slot.object);
    while ((link = list_first(&session->calls)))
        rpc_call_free(CONTAINER_OF(link, struct rpc_call, link));
    rpc_table_done(&session->imports);
}

void rpc_session_free(struct rpc_session *session)
{
    if (!session)
        return;
    rpc_session_end(session);
    free(session);
}

void rpc_session_count(const struct rpc_session *session, struct rpc_session_counts *ret_counts)
{
    *ret_counts = (struct rpc_session_counts){
        .exports = session->exports.count,
        .imports = session->imports.count,
        .kept = session->kept,
        .input = session->input,
    };
    LIST_EACH (&session->calls, at)
        ret_counts->calls++;
}
