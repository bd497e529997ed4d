#include <stdarg.h>
#include <stdio.h>

#include "agent/rpc/rpc_internal.h"
#include "base/memory.h"

void rpc_answer_init(struct rpc_answer *answer, struct rpc_session *session, int64_t id, bool once,
                     void (*on_dropped)(struct rpc_answer *answer))
{
    const struct rpc_slot slot = {.id = id, .kind = RPC_EXPORT_ANSWER, .object = answer};

    *answer = (struct rpc_answer){
        .session = session,
        .on_dropped = on_dropped,
        .id = id,
        .references = 1,
        .value = TEXT_INIT(RPC_ANSWER_MAX),
        .once = once,
        .pulled = once,
    };
    list_init(&answer->link);
    rpc_table_add(&session->exports, &slot);
}

static void forget_value(struct rpc_answer *answer)
{
    answer->session->kept -= answer->kept;
    answer->kept = 0;
    text_done(&answer->value);
    answer->value = (struct text) TEXT_INIT(RPC_ANSWER_MAX);
    json_decref(answer->head);
    answer->head = NULL;
}

void rpc_answer_drop(struct rpc_answer *answer)
{
    rpc_table_remove(&answer->session->exports, answer->id);
    list_remove(&answer->link);
    forget_value(answer);
    answer->references = 0;
    answer->on_dropped(answer);
}

int rpc_answer_release(struct rpc_answer *answer, int64_t count)
{
    if (answer->once || count > answer->references)
        return -1;
    answer->references -= count;
    if (!answer->references)
        rpc_answer_drop(answer);
    return 0;
}

/* The value of a stream: alone, or as "content" of its head. */
static void write_stream(struct rpc_answer *answer)
{
    json_t *readable;

    rpc_outlet_open(answer->outlet);
    readable = json_pack("{s:[s,I]}", OPERATION_RAW, "readable", (json_int_t) answer->outlet->pipe);
    if (answer->head) {
        (void) json_object_set_new(answer->head, "content", readable);
        rpc_expression_write(&answer->value, answer->head);
    } else {
        rpc_expression_write(&answer->value, readable);
        json_decref(readable);
    }
    answer->outlet = NULL;
}

static void transmit(struct rpc_answer *answer)
{
    AUTO(text) struct text message = TEXT_INIT(RPC_ANSWER_MAX + 64);

    if (answer->outlet)
        write_stream(answer);
    text_format(&message, "[\"%s\",%lld,", answer->rejected ? "reject" : "resolve",
                (long long) answer->id);
    text_append_bytes(&message, text_string(&answer->value), answer->value.length);
    text_append(&message, "]");
    rpc_send(answer->session, &message);
    answer->sent = true;
    forget_value(answer);
}

void rpc_answer_send(struct rpc_answer *answer)
{
    if (!answer->ready || !answer->pulled || answer->sent || answer->session->over)
        return;
    if (rpc_port_is_full(answer->session)) {
        list_remove(&answer->link);
        list_append(&answer->session->unsent, &answer->link);
        return;
    }
    list_remove(&answer->link);
    transmit(answer);
    if (answer->once)
        rpc_answer_drop(answer);
}

void rpc_answer_pull(struct rpc_answer *answer)
{
    answer->pulled = true;
    rpc_answer_send(answer);
}

/* Nobody is left to read it. */
static void discard(struct rpc_answer *answer)
{
    forget_value(answer);
    answer->ready = true;
}

static void fill_error(struct rpc_answer *answer, const struct api_error *error)
{
    forget_value(answer);
    answer->rejected = true;
    answer->outlet = NULL;
    rpc_expression_write_error(&answer->value, error);
}

static void fill_error_text(struct rpc_answer *answer, enum api_code code, const char *text)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;

    api_error_fill(&error, code, "%s", text);
    fill_error(answer, &error);
}

void rpc_answer_give(struct rpc_answer *answer)
{
    struct rpc_session *session = answer->session;

    if (!answer->references || session->over) {
        discard(answer);
        return;
    }
    if (answer->value.overflowed)
        fill_error_text(answer, API_INTERNAL_ERROR, "The answer is too large");
    else if (session->kept + answer->value.length > RPC_KEPT_MAX)
        fill_error_text(answer, API_INTERNAL_ERROR,
                        "The answer does not fit: too many others wait to be fetched");
    answer->kept = answer->value.length;
    session->kept += answer->kept;
    answer->ready = true;
    rpc_answer_send(answer);
}

void rpc_answer_fail(struct rpc_answer *answer, const struct api_error *error)
{
    fill_error(answer, error);
    rpc_answer_give(answer);
}

void rpc_answer_fail_text(struct rpc_answer *answer, enum api_code code, const char *format, ...)
{
    char message[API_MESSAGE_MAX];
    va_list arguments;

    va_start(arguments, format);
    (void) vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    fill_error_text(answer, code, message);
    rpc_answer_give(answer);
}

void rpc_answer_give_undefined(struct rpc_answer *answer)
{
    text_append(&answer->value, "[\"undefined\"]");
    rpc_answer_give(answer);
}

static void free_answer(struct rpc_answer *answer)
{
    free(answer);
}

struct rpc_answer *rpc_answer_new(struct rpc_session *session, int64_t id, bool once)
{
    struct rpc_answer *answer = mem_alloc(sizeof(*answer));

    rpc_answer_init(answer, session, id, once, free_answer);
    return answer;
}
