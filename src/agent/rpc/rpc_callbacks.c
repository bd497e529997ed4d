#include <string.h>

#include "agent/agent.h"
#include "agent/rpc/rpc_internal.h"
#include "base/memory.h"

/* Events on their way; enough that a round trip does not limit the output of a program. */
#define IN_FLIGHT_MAX 16
#define HIGH_WATER    ((size_t) 128 * 1024)

/* An event that waits for its turn: ["push", ...]. */
struct rpc_event {
    struct list link;
    struct text message;
};

/* --- what the peer's functions are given ------------------------------------------------------ */

static void copy_field(json_t *to, const char *name, json_t *from, const char *key,
                       json_t *otherwise)
{
    json_t *value = json_object_get(from, key);

    (void) json_object_set_new(to, name, value ? json_incref(value) : json_incref(otherwise));
    json_decref(otherwise);
}

static json_t *output_argument(json_t *event, const struct clock *clock)
{
    json_t *argument = json_object();

    copy_field(argument, "text", event, "text", json_string(""));
    copy_field(argument, "timestamp", event, "timestamp",
               json_integer((json_int_t) clock_wall_ms(clock)));
    return argument;
}

static json_t *result_argument(json_t *event, const struct clock *clock)
{
    json_t *argument = json_copy(event);

    (void) clock;
    (void) json_object_del(argument, "type");
    return argument;
}

static json_t *error_argument(json_t *event, const struct clock *clock)
{
    json_t *argument = json_object();

    (void) clock;
    copy_field(argument, "name", event, "ename", json_string("Error"));
    copy_field(argument, "message", event, "evalue", json_string("Unknown error"));
    copy_field(argument, "traceback", event, "traceback", json_array());
    return argument;
}

/* In the order of rpc_callbacks.stubs. Other events are told to nobody. */
static const struct {
    const char *type;
    const char *name;
    json_t *(*argument)(json_t *event, const struct clock *clock);
} kinds[RPC_CALLBACKS_MAX] = {
    {"stdout", "onStdout", output_argument},
    {"stderr", "onStderr", output_argument},
    {"result", "onResult", result_argument},
    {"error", "onError", error_argument},
};

/* --- what was passed ------------------------------------------------------------------------- */

static void take_stub(struct rpc_callbacks *callbacks, const char *name, json_t *expression)
{
    int64_t id;

    for (size_t i = 0; i < RPC_CALLBACKS_MAX; i++) {
        if (strcmp(kinds[i].name, name) == 0 &&
            rpc_expression_reference(expression, &id) == RPC_STUB) {
            callbacks->stubs[i] = id;
            return;
        }
    }
    rpc_drop_references(callbacks->call->answer.session, expression);
}

struct rpc_callbacks *rpc_callbacks_new(struct rpc_call *call, json_t *expression)
{
    struct rpc_callbacks *callbacks = mem_alloc(sizeof(*callbacks));
    const char *name;
    json_t *member;

    callbacks->call = call;
    list_init(&callbacks->waiting);
    if (rpc_expression_reference(expression, &callbacks->target) == RPC_STUB)
        return callbacks;
    callbacks->target = 0;
    if (!json_is_object(expression)) {
        rpc_drop_references(call->answer.session, expression);
        free(callbacks);
        return NULL;
    }
    json_object_foreach (expression, name, member) {
        take_stub(callbacks, name, member);
    }
    return callbacks;
}

static void drop_waiting(struct rpc_callbacks *callbacks)
{
    LIST_EACH (&callbacks->waiting, at) {
        struct rpc_event *event = CONTAINER_OF(at, struct rpc_event, link);

        list_remove(at);
        text_done(&event->message);
        free(event);
    }
    callbacks->waiting_bytes = 0;
}

void rpc_callbacks_release(struct rpc_callbacks *callbacks)
{
    if (callbacks->released)
        return;
    callbacks->released = true;
    drop_waiting(callbacks);
    if (callbacks->target)
        rpc_send_release(callbacks->call->answer.session, callbacks->target);
    for (size_t i = 0; i < RPC_CALLBACKS_MAX; i++) {
        if (callbacks->stubs[i])
            rpc_send_release(callbacks->call->answer.session, callbacks->stubs[i]);
    }
}

void rpc_callbacks_free(struct rpc_callbacks *callbacks)
{
    drop_waiting(callbacks);
    free(callbacks);
}

/* --- events ---------------------------------------------------------------------------------- */

bool rpc_callbacks_is_full(const struct rpc_callbacks *callbacks)
{
    return callbacks->waiting_bytes >= HIGH_WATER;
}

static void write_event(struct rpc_callbacks *callbacks, size_t kind, json_t *event,
                        struct text *message)
{
    json_t *argument = kinds[kind].argument(event, callbacks->call->call.agent->clock);

    if (callbacks->target)
        text_format(message, "[\"push\",[\"pipeline\",%lld,[\"%s\"],[",
                    (long long) callbacks->target, kinds[kind].name);
    else
        text_format(message, "[\"push\",[\"pipeline\",%lld,[],[",
                    (long long) callbacks->stubs[kind]);
    rpc_expression_write(message, argument);
    text_append(message, "]]]");
    json_decref(argument);
}

/* A service that does not listen: its events are lost, and the call fails. */
static void overflow(struct rpc_callbacks *callbacks)
{
    callbacks->failed = true;
    callbacks->call->gone_due = true;
    drop_waiting(callbacks);
}

static void queue_event(struct rpc_callbacks *callbacks, size_t kind, const char *json,
                        size_t length)
{
    json_t *value = json_loadb(json, length, 0, NULL);
    struct rpc_event *event;

    if (!value)
        return;
    event = mem_alloc(sizeof(*event));
    event->message = (struct text) TEXT_INIT(RPC_ANSWER_MAX - callbacks->waiting_bytes);
    list_init(&event->link);
    list_append(&callbacks->waiting, &event->link);
    write_event(callbacks, kind, value, &event->message);
    json_decref(value);
    callbacks->waiting_bytes += event->message.length;
    callbacks->was_full = callbacks->was_full || rpc_callbacks_is_full(callbacks);
    if (event->message.overflowed)
        overflow(callbacks);
    rpc_wake(callbacks->call->answer.session);
}

void rpc_callbacks_event(struct rpc_callbacks *callbacks, const char *type, const char *json,
                         size_t length)
{
    for (size_t i = 0; i < RPC_CALLBACKS_MAX && !callbacks->failed; i++) {
        if (strcmp(kinds[i].type, type) == 0 && (callbacks->target || callbacks->stubs[i]))
            queue_event(callbacks, i, json, length);
    }
}

static void rpc_callbacks_send_event(struct rpc_callbacks *callbacks, struct rpc_event *event)
{
    struct rpc_session *session = callbacks->call->answer.session;
    AUTO(text) struct text pull = TEXT_INIT(64);
    int64_t id;

    callbacks->waiting_bytes -= event->message.length;
    rpc_send(session, &event->message);
    id = rpc_import(session, RPC_IMPORT_CALLBACK, callbacks, 0);
    text_format(&pull, "[\"pull\",%lld]", (long long) id);
    rpc_send(session, &pull);
    callbacks->in_flight++;
    list_remove(&event->link);
    text_done(&event->message);
    free(event);
}

static void rpc_callbacks_finish(struct rpc_callbacks *callbacks)
{
    struct rpc_answer *answer = &callbacks->call->answer;

    if (!callbacks->ended || callbacks->released || callbacks->in_flight ||
        !list_is_empty(&callbacks->waiting))
        return;
    rpc_callbacks_release(callbacks);
    if (callbacks->failed)
        rpc_answer_fail_text(answer, API_OPERATION_INTERRUPTED, "A callback of the client failed");
    else
        rpc_answer_give_undefined(answer);
}

void rpc_callbacks_pump(struct rpc_callbacks *callbacks)
{
    struct rpc_session *session = callbacks->call->answer.session;
    struct list *link;

    while (callbacks->in_flight < IN_FLIGHT_MAX && session->imports.count < RPC_IMPORTS_MAX &&
           !rpc_port_is_full(session) && (link = list_first(&callbacks->waiting)))
        rpc_callbacks_send_event(callbacks, CONTAINER_OF(link, struct rpc_event, link));
    rpc_callbacks_finish(callbacks);
}

void rpc_callbacks_tell_drain(struct rpc_callbacks *callbacks)
{
    struct rpc_call *call = callbacks->call;

    if (!callbacks->was_full || callbacks->waiting_bytes >= HIGH_WATER / 2)
        return;
    callbacks->was_full = false;
    if (call->running && !call->gone_due)
        call_tell_drain(&call->call);
}

void rpc_callbacks_end(struct rpc_callbacks *callbacks)
{
    callbacks->ended = true;
    rpc_wake(callbacks->call->answer.session);
}

void rpc_callbacks_answered(struct rpc_callbacks *callbacks, int64_t id, bool rejected)
{
    struct rpc_call *call = callbacks->call;

    callbacks->in_flight--;
    rpc_send_release(call->answer.session, id);
    if (rejected && !callbacks->failed) {
        callbacks->failed = true;
        drop_waiting(callbacks);
        call->gone_due = call->running;
    }
    rpc_wake(call->answer.session);
}
