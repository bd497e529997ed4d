#include "agent/transport/call_websocket.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "agent/agent.h"
#include "agent/call.h"
#include "agent/control/quiesce.h"
#include "agent/services.h"
#include "agent/transport/call_http.h"
#include "agent/transport/call_websocket_message.h"
#include "base/encoding/encode.h"
#include "base/memory.h"
#include "json/json_read.h"
#include "net/websocket/websocket_http.h"

#define PING_INTERVAL_MS 60000
#define PONG_TIMEOUT_MS  120000
/* Heads, errors: everything but bodies. */
#define SMALL_MAX ((size_t) 64 * 1024)
/* An event as a string in JSON. */
#define EVENT_MAX ((size_t) 56 * 1024 * 1024)
/* Bytes of one `stream` message; a multiple of three, so that base64 has no padding inside. */
#define BYTES_CHUNK       ((size_t) 48 * 1024)
#define TOO_MANY_RETRY_MS 1000

/* One connection. Freed when its WebSocket is released. */
struct call_websocket_line {
    struct agent *agent;  /* borrowed */
    struct websocket *ws; /* freed behind us */
    struct list calls;    /* of line_call: under way, or answered and not sent yet */
    size_t call_count;
    size_t held;                 /* bytes in `held` of all calls */
    struct line_call *favourite; /* may collect beyond CALL_WEBSOCKET_SHARED_MAX; NULL: none */
    struct text message;         /* being written */
    struct loop_task drain;
    bool paused;
};

struct line_call {
    struct call call;
    struct call_websocket_line *line;
    struct list link;
    struct pool pool;
    const char *id;    /* in the pool */
    json_t *arguments; /* owned */
    struct text head;  /* of an answer that waits; of raw bytes */
    struct text held;  /* a body that is collected, or waits */
    bool answered;     /* for the service it is over */
    bool broken;       /* the client was told that it is; the service goes on */
};

static struct line_call *of(const struct call *call)
{
    return CONTAINER_OF((struct call *) (uintptr_t) call, struct line_call, call);
}

static void free_call(struct line_call *this)
{
    struct call_websocket_line *line = this->line;

    list_remove(&this->link);
    line->call_count--;
    line->held -= this->held.length;
    if (line->favourite == this) {
        line->favourite = NULL;
        loop_defer(&line->agent->loop, &line->drain);
    }
    json_decref(this->arguments);
    text_done(&this->head);
    text_done(&this->held);
    pool_done(&this->pool);
    free(this);
    if (!line->call_count) /* an idle connection keeps no buffer */
        text_done(&line->message);
}

/* --- sending ---------------------------------------------------------------------------------- */

/* What the client has to be told at once: when it does not read, it shall not ask for more. */
static void send_now(struct call_websocket_line *line)
{
    (void) websocket_send(line->ws, WEBSOCKET_TEXT, text_string(&line->message),
                          line->message.length);
    if (!websocket_is_full(line->ws) || line->paused)
        return;
    line->paused = true;
    websocket_pause(line->ws);
}

static void tell_fault(struct call_websocket_line *line, const struct call_websocket_fault *fault)
{
    text_clear(&line->message);
    call_websocket_write_error(&line->message, fault);
    send_now(line);
}

static void tell_broken(struct line_call *this, const char *code, const char *message)
{
    struct call_websocket_fault fault = {.code = code, .status = 500, .id = this->id};

    this->broken = true;
    (void) snprintf(fault.message, sizeof(fault.message), "%s", message);
    tell_fault(this->line, &fault);
}

/* A connection that is closing drops it: nobody is there to be told. */
static void send_answer(struct call_websocket_line *line, const struct text *head, const char *body,
                        size_t length)
{
    struct websocket *ws = line->ws;

    if (length > SMALL_MAX) { /* too large for a copy */
        (void) websocket_send_piece(ws, WEBSOCKET_TEXT, false, head->data, head->length);
        (void) websocket_send_piece(ws, WEBSOCKET_TEXT, false, body, length);
        (void) websocket_send_piece(ws, WEBSOCKET_TEXT, true, "}", 1);
        return;
    }
    text_clear(&line->message);
    text_append_bytes(&line->message, head->data, head->length);
    text_append_bytes(&line->message, body, length);
    text_append_char(&line->message, '}');
    (void) websocket_send(ws, WEBSOCKET_TEXT, line->message.data, line->message.length);
}

/* The answer is complete: send it, or keep it until the client reads. */
static void call_websocket_answer(struct line_call *this, int status, const char *body,
                                  size_t length)
{
    struct call_websocket_line *line = this->line;
    bool is_own = body == text_string(&this->held);

    text_clear(&this->head);
    call_websocket_write_head(&this->head, this->id, status, length > 0);
    if (!websocket_is_full(line->ws)) {
        send_answer(line, &this->head, body, length);
        free_call(this);
        return;
    }
    if (!is_own && line->held + length > CALL_WEBSOCKET_HELD_MAX) {
        tell_broken(this, CALL_WEBSOCKET_INTERNAL_ERROR, "Too many answers wait to be read");
        free_call(this);
        return;
    }
    if (!is_own) {
        text_append_bytes(&this->held, body, length);
        line->held += length;
    }
    this->answered = true;
    json_decref(TAKE_PTR(this->arguments));
}

/* --- the transport ---------------------------------------------------------------------------- */

static void line_call_reply(struct call *call, const char *json, size_t length)
{
    call_websocket_answer(of(call), 200, json, length);
}

static void line_call_fail(struct call *call, const struct api_error *error)
{
    AUTO(text) struct text body = TEXT_INIT(API_CONTEXT_MAX + SMALL_MAX);

    api_error_write(error, call->agent->clock, &body);
    call_websocket_answer(of(call), api_error_status(error), text_string(&body), body.length);
}

static void line_call_begin_events(struct call *call)
{
    (void) call; /* the first event says it */
}

static void send_stream(struct line_call *this, const char *event, const char *data, size_t length)
{
    struct call_websocket_line *line = this->line;

    if (this->broken)
        return;
    text_clear(&line->message);
    if (call_websocket_write_stream(&line->message, this->id, event, data, length) == 0)
        (void) websocket_send(line->ws, WEBSOCKET_TEXT, line->message.data, line->message.length);
    else
        tell_broken(this, CALL_WEBSOCKET_STREAM_ERROR, "An event is too large");
    if (line->message.capacity > SMALL_MAX)
        text_done(&line->message);
}

static void line_call_event(struct call *call, const char *type, const char *json, size_t length)
{
    (void) type; /* the object says it */
    send_stream(of(call), NULL, json, length);
}

static void line_call_begin_bytes(struct call *call, const char *head, size_t length)
{
    struct line_call *this = of(call);

    text_append_bytes(&this->held, head, length);
    this->line->held += this->held.length;
}

static void line_call_begin_json(struct call *call)
{
    (void) call; /* collected until its end */
}

static void send_bytes(struct line_call *this, const char *bytes, size_t length)
{
    AUTO(free) char *encoded = mem_alloc(BASE64_TEXT_SIZE(BYTES_CHUNK));

    while (length) {
        size_t count = length < BYTES_CHUNK ? length : BYTES_CHUNK;
        size_t used = base64_encode(BASE64_STANDARD, bytes, count, encoded);

        send_stream(this, "bytes", encoded, used);
        bytes += count;
        length -= count;
    }
}

static void call_websocket_collect(struct line_call *this, const char *bytes, size_t length)
{
    struct call_websocket_line *line = this->line;
    size_t before = this->held.length;

    text_append_bytes(&this->held, bytes, length);
    line->held += this->held.length - before;
    if (line->held > CALL_WEBSOCKET_SHARED_MAX && !line->favourite)
        line->favourite = this;
}

static void line_call_write(struct call *call, const void *bytes, size_t length)
{
    if (call->state == CALL_BYTES)
        send_bytes(of(call), bytes, length);
    else
        call_websocket_collect(of(call), bytes, length);
}

static void line_call_end(struct call *call)
{
    struct line_call *this = of(call);

    if (this->held.overflowed)
        tell_broken(this, CALL_WEBSOCKET_INTERNAL_ERROR, "The answer is too large");
    if (this->broken)
        free_call(this);
    else
        call_websocket_answer(this, 200, text_string(&this->held), this->held.length);
}

static void line_call_abandon(struct call *call)
{
    struct line_call *this = of(call);

    if (!this->broken)
        tell_broken(this, CALL_WEBSOCKET_STREAM_ERROR, "The answer broke off");
    free_call(this);
}

static bool line_call_is_full(const struct call *call)
{
    const struct line_call *this = of(call);
    const struct call_websocket_line *line = this->line;

    if (websocket_is_full(line->ws))
        return true;
    return call->state == CALL_JSON && line->held > CALL_WEBSOCKET_SHARED_MAX && line->favourite &&
           line->favourite != this;
}

static void line_call_want_input(struct call *call, bool wanted)
{
    (void) call; /* as by plain HTTP, no operation has input */
    (void) wanted;
}

static const struct call_transport transport = {
    .reply = line_call_reply,
    .fail = line_call_fail,
    .begin_events = line_call_begin_events,
    .event = line_call_event,
    .begin_bytes = line_call_begin_bytes,
    .begin_json = line_call_begin_json,
    .write = line_call_write,
    .end = line_call_end,
    .abandon = line_call_abandon,
    .is_full = line_call_is_full,
    .want_input = line_call_want_input,
};

/* --- requests --------------------------------------------------------------------------------- */

static struct line_call *call_websocket_find(struct call_websocket_line *line, const char *id)
{
    LIST_EACH (&line->calls, at) {
        struct line_call *this = CONTAINER_OF(at, struct line_call, link);

        if (strcmp(this->id, id) == 0)
            return this;
    }
    return NULL;
}

static const char *query_value(struct url_span query, const char *name, struct pool *pool)
{
    struct url_parameter parameter;
    const char *value;

    while (url_query_next(&query, &parameter)) {
        if (url_span_equals(parameter.name, name) &&
            url_decode_copy(parameter.value, URL_DECODE_QUERY, pool, &value) == 0)
            return value;
    }
    return NULL;
}

/* The rules of call_http.h. */
static const char *find_session(struct line_call *this, const struct call_websocket_message *asked)
{
    static const char scheme[] = "Bearer ";
    const char *value = json_string_value(json_object_get(asked->body, "sessionId"));
    const char *authorization = call_websocket_header(asked, "authorization");

    if (value)
        return value;
    if (authorization && !this->call.agent->token &&
        strncasecmp(authorization, scheme, sizeof(scheme) - 1) == 0)
        return authorization + sizeof(scheme) - 1;
    value = call_websocket_header(asked, "x-session-id");
    if (!value)
        value = query_value(asked->target.query, "session", &this->pool);
    return value ? value : query_value(asked->target.query, "sessionId", &this->pool);
}

static bool has_body(const struct operation *operation)
{
    return strcmp(operation->method, "POST") == 0 || strcmp(operation->method, "PUT") == 0;
}

/* Find the operation and make the call's arguments. Returns 0, or -1 with the error to answer. */
static int prepare(struct line_call *this, const struct call_websocket_message *asked,
                   size_t length, struct api_error *error)
{
    struct call *call = &this->call;
    struct error err = ERROR_INIT;
    struct http_match match;
    size_t limit;

    call->operation =
        services_match(call->agent, asked->method, asked->target.path, &this->pool, &match, &err);
    if (!call->operation) {
        api_error_from(error, &err);
        return -1;
    }
    limit = call->operation->body_limit ? call->operation->body_limit : CALL_BODY_DEFAULT;
    if (limit < SIZE_MAX - CALL_WEBSOCKET_AROUND_MAX &&
        length > limit + CALL_WEBSOCKET_AROUND_MAX) {
        (void) error_set(&err, ERR_TOO_LARGE, 0, "the body has more than %zu bytes", limit);
        api_error_from(error, &err);
        return -1;
    }
    this->arguments = call_http_arguments(&match, asked->target.query);
    if (asked->body && has_body(call->operation) &&
        (!json_is_object(asked->body) || json_object_update(this->arguments, asked->body) < 0))
        return api_error_set(error, API_INTERNAL_ERROR,
                             "Failed to parse request body: it must be an object");
    return 0;
}

static void choose_session(struct line_call *this, const struct call_websocket_message *asked)
{
    const char *session = find_session(this, asked);

    this->call.has_session = session != NULL;
    this->call.session = session ? pool_copy_text(&this->pool, session) : CALL_DEFAULT_SESSION;
}

/* Not as a call of its own, of which there are too many. */
static void refuse_one_more(struct call_websocket_line *line, const char *id)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    AUTO(text) struct text body = TEXT_INIT(SMALL_MAX);

    text_format(&error.context,
                "{\"reason\":\"too_many_calls\",\"retryable\":true,\"retryAfterMs\":%d}",
                TOO_MANY_RETRY_MS);
    api_error_fill(&error, API_CONTAINER_UNAVAILABLE,
                   "%d requests are under way on this connection, which is the most there may be",
                   CALL_WEBSOCKET_CALLS_MAX);
    api_error_write(&error, line->agent->clock, &body);
    text_clear(&line->message);
    call_websocket_write_head(&line->message, id, api_error_status(&error), true);
    text_append_bytes(&line->message, body.data, body.length);
    text_append_char(&line->message, '}');
    send_now(line);
}

static struct line_call *new_call(struct call_websocket_line *line)
{
    struct line_call *this = mem_alloc(sizeof(*this));

    *this = (struct line_call){
        .call = {.agent = line->agent, .transport = &transport},
        .line = line,
        .pool = POOL_INIT,
        .head = TEXT_INIT(SMALL_MAX),
        .held = TEXT_INIT(CALL_REPLY_MAX),
    };
    this->call.pool = &this->pool;
    list_append(&line->calls, &this->link);
    line->call_count++;
    return this;
}

static void take_request(struct call_websocket_line *line,
                         const struct call_websocket_message *asked, size_t length)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    struct line_call *this = new_call(line);
    struct call *call = &this->call;

    this->id = pool_copy_text(&this->pool, asked->id);
    if (prepare(this, asked, length, &error) < 0) {
        transport.fail(call, &error); /* there is no operation that could name itself */
        return;
    }
    choose_session(this, asked);
    call->arguments = this->arguments;
    if (!call_session_is_valid(call->session))
        call_fail_field(call, "sessionId",
                        "a session's id is 1 to 256 characters, not only spaces");
    else if (!quiesce_refuses(call))
        call->operation->run(call);
}

/* --- the connection --------------------------------------------------------------------------- */

static void call_websocket_cancel(struct line_call *this)
{
    if (this->answered)
        return; /* its answer is on the way */
    call_tell_gone(&this->call);
    free_call(this);
}

static void take_message(struct call_websocket_line *line,
                         const struct call_websocket_message *message, size_t length)
{
    struct line_call *known = call_websocket_find(line, message->id);

    if (message->type == CALL_WEBSOCKET_CANCEL) {
        if (known) /* otherwise its answer was faster */
            call_websocket_cancel(known);
    } else if (known) {
        tell_fault(
            line, &(struct call_websocket_fault){.code = CALL_WEBSOCKET_INVALID_REQUEST,
                                                 .status = 400,
                                                 .id = message->id,
                                                 .message = "a request with this id is under way"});
    } else if (line->call_count >= CALL_WEBSOCKET_CALLS_MAX) {
        refuse_one_more(line, message->id);
    } else {
        take_request(line, message, length);
    }
}

static void message_arrived(struct websocket *ws, enum websocket_opcode kind, const char *bytes,
                            size_t length)
{
    struct call_websocket_line *line = websocket_http_data(ws);
    AUTO(pool) struct pool pool = POOL_INIT;
    AUTO(json) json_t *root = NULL;
    struct call_websocket_message message;
    struct call_websocket_fault fault = {.code = CALL_WEBSOCKET_PARSE_ERROR,
                                         .status = 400,
                                         .message = "messages are JSON in text frames"};

    if (kind != WEBSOCKET_TEXT ||
        call_websocket_read(bytes, length, &pool, &root, &message, &fault) < 0)
        tell_fault(line, &fault);
    else
        take_message(line, &message, length);
    if (!line->call_count)
        text_done(&line->message);
}

static void send_held(struct call_websocket_line *line)
{
    LIST_EACH (&line->calls, at) {
        struct line_call *this = CONTAINER_OF(at, struct line_call, link);

        if (websocket_is_full(line->ws))
            return;
        if (!this->answered)
            continue;
        send_answer(line, &this->head, text_string(&this->held), this->held.length);
        free_call(this);
    }
}

/* In turn, so that a call that fills the connection each time does not keep the others waiting. */
static void tell_room(struct call_websocket_line *line)
{
    for (size_t left = line->call_count; left && line->call_count; left--) {
        struct list *first = list_first(&line->calls);
        struct line_call *this = CONTAINER_OF(first, struct line_call, link);

        if (websocket_is_full(line->ws))
            return;
        list_remove(first);
        list_append(&line->calls, first);
        if (!this->answered && this->call.state != CALL_FRESH)
            call_tell_drain(&this->call);
    }
}

static void call_websocket_drain(struct loop_task *task)
{
    struct call_websocket_line *line = CONTAINER_OF(task, struct call_websocket_line, drain);

    send_held(line);
    tell_room(line);
    if (!line->paused || websocket_is_full(line->ws))
        return;
    line->paused = false;
    websocket_resume(line->ws);
}

static void call_websocket_client_took(struct websocket *ws)
{
    struct call_websocket_line *line = websocket_http_data(ws);

    call_websocket_drain(&line->drain);
}

static void end_calls(struct call_websocket_line *line)
{
    struct list *first;

    while ((first = list_first(&line->calls))) {
        struct line_call *this = CONTAINER_OF(first, struct line_call, link);

        if (!this->answered)
            call_tell_gone(&this->call);
        free_call(this);
    }
}

static void call_websocket_client_left(struct websocket *ws, unsigned int code, const char *reason,
                                       bool clean)
{
    (void) code;
    (void) reason;
    (void) clean;
    end_calls(websocket_http_data(ws));
}

static void connection_gone(struct websocket *ws)
{
    struct call_websocket_line *line = websocket_http_data(ws);

    end_calls(line); /* an abort tells nobody else */
    loop_task_cancel(&line->drain);
    text_done(&line->message);
    free(line);
}

static const struct websocket_events events = {
    .on_message = message_arrived,
    .on_drain = call_websocket_client_took,
    .on_close = call_websocket_client_left,
    .on_released = connection_gone,
};

void call_websocket_handle(struct http_request *request)
{
    static const struct websocket_options options = {
        .role = WEBSOCKET_SERVER,
        .message_max = CALL_WEBSOCKET_MESSAGE_SIZE_MAX,
        .ping_interval_ms = PING_INTERVAL_MS,
        .pong_timeout_ms = PONG_TIMEOUT_MS,
    };
    struct call_websocket_line *line = mem_alloc(sizeof(*line));
    struct error err = ERROR_INIT;

    line->agent = request->context;
    line->message = (struct text) TEXT_INIT(EVENT_MAX);
    list_init(&line->calls);
    loop_task_init(&line->drain, call_websocket_drain);
    line->ws = websocket_accept(request, &options, &events, line, &err);
    if (line->ws)
        return;
    http_reply_error(request, &err);
    free(line);
}
