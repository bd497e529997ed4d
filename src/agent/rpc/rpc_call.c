#include <string.h>

#include "agent/agent.h"
#include "agent/control/quiesce.h"
#include "agent/rpc/rpc_internal.h"
#include "base/memory.h"
#include "json/json_read.h"
#include "json/json_write.h"

/* An error's event: its message, escaped. */
#define EVENT_MAX ((size_t) 8 * 1024)

/* Operations whose clients expect a failed start inside of the stream, as its only event. */
static const char *const fail_in_stream[] = {"commands.executeStream"};

static struct rpc_call *rpc_call_of(const struct call *call)
{
    return CONTAINER_OF((uintptr_t) call, struct rpc_call, call);
}

/* --- the end of it --------------------------------------------------------------------------- */

static void answer_dropped(struct rpc_answer *answer)
{
    struct rpc_call *call = CONTAINER_OF(answer, struct rpc_call, answer);

    call->dropped = true;
    if (call->outlet && !answer->sent)
        rpc_outlet_cancel(call->outlet);
    rpc_wake(answer->session);
}

static void forget_json(struct rpc_call *call)
{
    call->answer.session->kept -= call->json_kept;
    call->json_kept = 0;
    text_done(&call->json);
    call->json = (struct text) TEXT_INIT(0);
}

/* The service is done with the call, or the call with the service. What only it needed goes. */
static void rpc_call_stop(struct rpc_call *call)
{
    call->running = false;
    call->gone_due = false;
    call->answer.session->running--;
    if (call->inlet)
        rpc_inlet_refuse(TAKE_PTR(call->inlet));
    forget_json(call);
    json_decref(call->arguments);
    call->arguments = NULL;
    pool_done(&call->pool);
    rpc_wake(call->answer.session);
}

void rpc_call_tell_gone(struct rpc_call *call)
{
    if (!call->running)
        return;
    call->running = false; /* whatever on_gone does, it is not asked for input again */
    call_tell_gone(&call->call);
    rpc_call_stop(call);
    if (call->outlet)
        rpc_outlet_end(call->outlet, true);
    if (call->callbacks)
        rpc_callbacks_end(call->callbacks);
}

bool rpc_call_reap(struct rpc_call *call)
{
    if (call->running || !call->dropped || (call->outlet && !rpc_outlet_is_done(call->outlet)) ||
        (call->callbacks && (call->callbacks->in_flight || !call->callbacks->released)))
        return false;
    rpc_call_free(call);
    return true;
}

void rpc_call_free(struct rpc_call *call)
{
    list_remove(&call->link);
    if (call->outlet)
        rpc_outlet_free(call->outlet);
    if (call->callbacks)
        rpc_callbacks_free(call->callbacks);
    free(call);
}

/* --- answers --------------------------------------------------------------------------------- */

/* Functions of the client that no event was told to: give them back before the answer. */
static void release_callbacks(struct rpc_call *call)
{
    if (call->callbacks)
        rpc_callbacks_release(call->callbacks);
}

static void give_result(struct rpc_call *call, const char *json, size_t length)
{
    AUTO(json) json_t *reply = json_loadb(json, length, 0, NULL);
    AUTO(json) json_t *result = reply ? call->call.operation->rpc_result(reply) : NULL;

    if (!result) {
        rpc_answer_fail_text(&call->answer, API_INTERNAL_ERROR, "The answer has no result");
        return;
    }
    rpc_expression_write(&call->answer.value, result);
    rpc_answer_give(&call->answer);
}

static void rpc_call_reply(struct call *base, const char *json, size_t length)
{
    struct rpc_call *call = rpc_call_of(base);
    struct rpc_wrap wrap = {.in_string = false};

    release_callbacks(call);
    if (base->operation->rpc_result) {
        give_result(call, json, length);
    } else {
        rpc_wrap_append(&wrap, &call->answer.value, json, length);
        rpc_answer_give(&call->answer);
    }
    rpc_call_stop(call);
}

static bool fails_in_stream(const struct operation *operation)
{
    for (size_t i = 0; i < ARRAY_COUNT(fail_in_stream); i++) {
        if (strcmp(operation->rpc, fail_in_stream[i]) == 0)
            return true;
    }
    return false;
}

static void begin_stream(struct rpc_call *call)
{
    call->outlet = rpc_outlet_new(call);
    if (call->dropped) {
        rpc_outlet_cancel(call->outlet);
        return;
    }
    call->answer.outlet = call->outlet;
    rpc_answer_give(&call->answer);
}

static void write_event(struct rpc_call *call, const char *type, const char *json, size_t length)
{
    rpc_outlet_write(call->outlet, "event: ", 7);
    rpc_outlet_write(call->outlet, type, strlen(type));
    rpc_outlet_write(call->outlet, "\ndata: ", 7);
    rpc_outlet_write(call->outlet, json, length);
    rpc_outlet_write(call->outlet, "\n\n", 2);
}

static void fail_as_event(struct rpc_call *call, const struct api_error *error)
{
    AUTO(text) struct text event = TEXT_INIT(EVENT_MAX);
    struct json_writer json;

    json_document_begin(&json, &event);
    json_add_text(&json, "type", "error");
    json_add_text(&json, "error", error->message);
    json_add_text(&json, "code", api_code_text(error->code));
    call_add_timestamp(&call->call, &json);
    (void) json_document_end(&json); /* the message is short */
    begin_stream(call);
    write_event(call, "error", text_string(&event), event.length);
    rpc_outlet_end(call->outlet, false);
}

static void rpc_call_fail(struct call *base, const struct api_error *error)
{
    struct rpc_call *call = rpc_call_of(base);

    release_callbacks(call);
    if (fails_in_stream(base->operation))
        fail_as_event(call, error);
    else
        rpc_answer_fail(&call->answer, error);
    rpc_call_stop(call);
}

static void rpc_call_begin_events(struct call *base)
{
    if (!rpc_call_of(base)->callbacks)
        begin_stream(rpc_call_of(base));
}

static void rpc_call_event(struct call *base, const char *type, const char *json, size_t length)
{
    struct rpc_call *call = rpc_call_of(base);

    if (call->callbacks)
        rpc_callbacks_event(call->callbacks, type, json, length);
    else
        write_event(call, type, json, length);
}

static void rpc_call_begin_bytes(struct call *base, const char *head, size_t length)
{
    struct rpc_call *call = rpc_call_of(base);

    release_callbacks(call);
    call->answer.head = json_loadb(head, length, 0, NULL);
    begin_stream(call);
}

static void rpc_call_begin_json(struct call *base)
{
    release_callbacks(rpc_call_of(base));
    rpc_call_of(base)->json = (struct text) TEXT_INIT(CALL_REPLY_MAX);
}

static void write_json(struct rpc_call *call, const void *bytes, size_t length)
{
    struct rpc_session *session = call->answer.session;

    if (session->kept + length > RPC_KEPT_MAX)
        call->json.overflowed = true;
    if (call->json.overflowed)
        return;
    text_append_bytes(&call->json, bytes, length);
    session->kept += call->json.length - call->json_kept;
    call->json_kept = call->json.length;
}

static void rpc_call_write(struct call *base, const void *bytes, size_t length)
{
    struct rpc_call *call = rpc_call_of(base);

    if (base->state == CALL_JSON)
        write_json(call, bytes, length);
    else
        rpc_outlet_write(call->outlet, bytes, length);
}

static void end_json(struct rpc_call *call)
{
    AUTO(text) struct text json = call->json;
    bool fits = !json.overflowed;

    call->json = (struct text) TEXT_INIT(0);
    forget_json(call);
    if (fits) {
        rpc_call_reply(&call->call, text_string(&json), json.length);
        return;
    }
    rpc_answer_fail_text(&call->answer, API_INTERNAL_ERROR, "The answer is too large");
    rpc_call_stop(call);
}

static void rpc_call_end(struct call *base)
{
    struct rpc_call *call = rpc_call_of(base);

    if (base->state == CALL_JSON) {
        end_json(call);
        return;
    }
    if (call->outlet)
        rpc_outlet_end(call->outlet, false);
    else if (call->callbacks)
        rpc_callbacks_end(call->callbacks);
    rpc_call_stop(call);
}

static void rpc_call_abandon(struct call *base)
{
    struct rpc_call *call = rpc_call_of(base);

    release_callbacks(call);
    if (call->outlet)
        rpc_outlet_end(call->outlet, true);
    else
        rpc_answer_fail_text(&call->answer, API_INTERNAL_ERROR, "The answer broke off");
    rpc_call_stop(call);
}

static bool rpc_call_is_full(const struct call *base)
{
    const struct rpc_call *call = rpc_call_of(base);

    if (call->outlet)
        return rpc_outlet_is_full(call->outlet);
    return call->callbacks && rpc_callbacks_is_full(call->callbacks);
}

static void rpc_call_want_input(struct call *base, bool wanted)
{
    if (rpc_call_of(base)->inlet)
        rpc_inlet_want(rpc_call_of(base)->inlet, wanted);
}

static const struct call_transport transport = {
    .reply = rpc_call_reply,
    .fail = rpc_call_fail,
    .begin_events = rpc_call_begin_events,
    .event = rpc_call_event,
    .begin_bytes = rpc_call_begin_bytes,
    .begin_json = rpc_call_begin_json,
    .write = rpc_call_write,
    .end = rpc_call_end,
    .abandon = rpc_call_abandon,
    .is_full = rpc_call_is_full,
    .want_input = rpc_call_want_input,
};

/* --- the beginning --------------------------------------------------------------------------- */

static void rpc_call_run(struct rpc_call *call)
{
    const char *session = json_string_value(json_object_get(call->arguments, "sessionId"));

    call->call.arguments = call->arguments;
    call->call.has_session = session != NULL;
    call->call.session = session ? session : CALL_DEFAULT_SESSION;
    if (!call_session_is_valid(call->call.session))
        call_fail_field(&call->call, "sessionId",
                        "a session's id is 1 to 256 characters, not only spaces");
    else if (!quiesce_refuses(&call->call))
        call->call.operation->run(&call->call);
}

static struct rpc_call *rpc_call_make(struct rpc_session *session, int64_t id, bool once,
                                      const struct operation *operation)
{
    struct rpc_call *call = mem_alloc(sizeof(*call));

    call->call = (struct call){
        .agent = session->agent,
        .operation = operation,
        .pool = &call->pool,
        .transport = &transport,
    };
    call->running = true;
    session->running++;
    rpc_answer_init(&call->answer, session, id, once, answer_dropped);
    list_append(&session->calls, &call->link);
    return call;
}

void rpc_call_start(struct rpc_session *session, int64_t id, bool once,
                    const struct operation *operation, json_t *arguments)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    struct rpc_call *call = rpc_call_make(session, id, once, operation);

    if (rpc_arguments_read(call, arguments, &call->arguments, &error) < 0)
        call_fail(&call->call, &error);
    else
        rpc_call_run(call);
}
