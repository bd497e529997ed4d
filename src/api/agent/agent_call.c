#include "api/agent/agent_call.h"

#include <string.h>
#include <strings.h>

#include "api/agent/agents.h"
#include "api/agent/visit.h"
#include "api/http/long_json.h"
#include "base/auto.h"
#include "base/memory.h"
#include "json/json_read.h"
#include "net/http/http_client.h"
#include "net/http/sse.h"

/* What one value of a list costs us is far more than its two bytes of text. */
#define REPLY_VALUES_MAX ((size_t) 2 * 1024 * 1024)
#define HEADERS_MAX      6

enum reply_form { REPLY_WHOLE, REPLY_EVENTS, REPLY_BYTES };

/* One exchange for a visit. It lives by itself, because whoever is called back may end the visit
 * while bytes of the agent's are still being looked at. */
struct agent_exchange {
    struct visit *visit;            /* NULL: over, nobody is to be called back */
    struct http_exchange *exchange; /* NULL: over, or never begun */
    struct long_json *reading;      /* of a long reply, all of which is there; NULL: none */
    enum reply_form form;
    agent_done *done;
    const struct agent_stream_events *stream;
    const struct agent_body_events *bytes;
    struct text body;         /* of a whole reply, or of a refusal */
    struct sse_reader reader; /* of events */
    struct loop_task fail_task;
    struct error failure;
    struct call_timer *timer; /* owned until it is closed; NULL: none */
    int status;
    bool is_json;
    bool is_refused;    /* something else than the events that were asked for */
    bool sends_body;    /* the client's own */
    bool is_calling;    /* bytes are being looked at: freed afterwards */
    bool is_reader_set; /* the reader holds memory */
};

/* --- time limits ----------------------------------------------------------------------------- */

/* Apart, because a timer's memory is needed until it is closed. */
struct call_timer {
    struct deadline deadline;
    struct agent_exchange *exchange; /* NULL: no more needed */
};

static void call_over(struct agent_exchange *call, const struct error *failure);

static void timer_closed(struct deadline *deadline)
{
    free(CONTAINER_OF(deadline, struct call_timer, deadline));
}

static void timer_due(struct deadline *deadline)
{
    struct call_timer *timer = CONTAINER_OF(deadline, struct call_timer, deadline);
    struct error error;

    if (!timer->exchange)
        return;
    (void) error_set(&error, ERR_UPSTREAM_TIMEOUT, 0, "the sandbox's agent does not answer");
    call_over(timer->exchange, &error);
}

static void stop_timer(struct agent_exchange *call)
{
    struct call_timer *timer = TAKE_PTR(call->timer);

    if (!timer)
        return;
    timer->exchange = NULL;
    deadline_close(&timer->deadline, timer_closed);
}

static void start_timer(struct agent_exchange *call, uint64_t timeout_ms)
{
    struct call_timer *timer = mem_alloc(sizeof(*timer));

    timer->exchange = call;
    call->timer = timer;
    deadline_init(call->visit->api->loop, &timer->deadline, timer_due);
    deadline_set(&timer->deadline, timeout_ms);
}

/* --- the end --------------------------------------------------------------------------------- */

static void call_free(struct agent_exchange *call)
{
    if (call->is_calling)
        return; /* whoever looks at bytes does it */
    text_done(&call->body);
    if (call->is_reader_set)
        sse_reader_done(&call->reader);
    free(call);
}

/* Nobody is called back from now on. */
static struct visit *agent_call_leave(struct agent_exchange *call)
{
    struct visit *visit = TAKE_PTR(call->visit);

    stop_timer(call);
    loop_task_cancel(&call->fail_task);
    if (call->exchange)
        http_exchange_cancel(TAKE_PTR(call->exchange));
    if (visit)
        visit->exchange = NULL;
    return visit;
}

void agent_call_drop(struct visit *visit)
{
    struct agent_exchange *call = visit->exchange;

    if (!call)
        return;
    if (call->reading)
        long_json_drop(TAKE_PTR(call->reading));
    (void) agent_call_leave(call);
    call_free(call);
}

static const struct json_limits reply_limits = {
    .size = AGENT_REPLY_MAX,
    .depth = JSON_DEPTH_MAX,
    .values = REPLY_VALUES_MAX,
    .nul = true,
};

static json_t *read_json(const struct agent_exchange *call)
{
    json_t *json;

    if (!call->is_json || !call->body.length)
        return NULL;
    json = json_read(text_string(&call->body), call->body.length, &reply_limits, NULL);
    if (json && !json_is_object(json)) {
        json_decref(json);
        return NULL;
    }
    return json;
}

static const char *text_of(json_t *json, const char *key, const char *other_key)
{
    const char *text = json_string_value(json_object_get(json, key));

    if (!text && other_key)
        text = json_string_value(json_object_get(json, other_key));
    return text ? text : "";
}

/* The interpreter's errors have "error" in the place of "message". */
static struct agent_reply make_reply(const struct agent_exchange *call, json_t *json)
{
    bool is_error = call->status >= 400;

    return (struct agent_reply){
        .status = call->status,
        .json = json,
        .bytes = text_string(&call->body),
        .length = call->body.length,
        .code = is_error ? text_of(json, "code", NULL) : "",
        .message = is_error ? text_of(json, "message", "error") : "",
    };
}

static void call_tell_reply(struct agent_exchange *call, struct visit *visit, json_t *json)
{
    struct agent_reply reply = make_reply(call, json);

    if (call->form == REPLY_EVENTS)
        call->stream->on_refused(visit, &reply);
    else
        call->done(visit, &reply, NULL);
}

/* The last call back: the whole reply, or the end of a stream, or the failure. */
static void call_over(struct agent_exchange *call, const struct error *failure)
{
    struct error copy = failure ? *failure : (struct error) ERROR_INIT;
    const struct error *told = failure ? &copy : NULL;
    struct visit *visit = agent_call_leave(call);

    if (visit && call->form == REPLY_BYTES) {
        call->bytes->on_end(visit, told);
    } else if (visit && call->form == REPLY_EVENTS && (told || !call->is_refused)) {
        call->stream->on_end(visit, told);
    } else if (visit && told) {
        call->done(visit, NULL, told);
    } else if (visit) {
        AUTO(json) json_t *json = read_json(call);

        call_tell_reply(call, visit, json);
    }
    call_free(call);
}

/* A long reply was read, or it is no JSON. */
static void long_reply_read(void *context, struct text *text, json_t *json,
                            const struct error *failure)
{
    struct agent_exchange *call = context;
    struct visit *visit;

    (void) failure; /* who asked sees that there is no JSON */
    call->reading = NULL;
    call->body = *text;
    *text = (struct text) TEXT_INIT(0);
    visit = agent_call_leave(call);
    if (visit)
        call_tell_reply(call, visit, json_is_object(json) ? json : NULL);
    call_free(call);
}

static bool is_long_reply(const struct agent_exchange *call)
{
    return call->is_json && call->body.length > LONG_JSON_MIN &&
           (call->form == REPLY_WHOLE || call->is_refused);
}

static void call_fail(struct agent_exchange *call, enum err_code code, const char *message)
{
    struct error error;

    (void) error_set(&error, code, 0, "%s", message);
    call_over(call, &error);
}

static void fail_later(struct loop_task *task)
{
    struct agent_exchange *call = CONTAINER_OF(task, struct agent_exchange, fail_task);

    call_over(call, &call->failure);
}

/* --- what the agent sends -------------------------------------------------------------------- */

static void event_arrived(struct sse_reader *reader, const struct sse_event *event)
{
    struct agent_exchange *call = CONTAINER_OF(reader, struct agent_exchange, reader);
    static const struct json_limits limits = {
        .size = SSE_EVENT_MAX,
        .depth = JSON_DEPTH_MAX,
        .values = JSON_VALUES_MAX,
        .nul = true,
    };
    AUTO(json) json_t *json = NULL;
    const char *type;

    if (!call->visit)
        return; /* the rest of a piece whose beginning ended the visit */
    json = json_read(event->data, event->length, &limits, NULL);
    if (!json || !json_is_object(json)) {
        call_fail(call, ERR_UPSTREAM,
                  "the sandbox's agent sent an event that is not a JSON object");
        return;
    }
    type = json_string_value(json_object_get(json, "type"));
    call->stream->on_event(call->visit, type ? type : event->type, json);
}

static bool media_type_is(const char *value, const char *type)
{
    size_t length = strlen(type);

    if (!value || strncasecmp(value, type, length) != 0)
        return false;
    value += length + strspn(value + length, " \t");
    return !*value || *value == ';';
}

static void agent_call_got_head(struct http_exchange *exchange)
{
    struct agent_exchange *call = http_exchange_data(exchange);
    const struct http_head *head = http_exchange_head(exchange);
    const char *type = http_head_get(head, "content-type");

    stop_timer(call);
    call->status = head->status;
    call->is_json = media_type_is(type, "application/json");
    if (call->form == REPLY_EVENTS)
        call->is_refused = head->status != 200 || !media_type_is(type, "text/event-stream");
    if (call->form != REPLY_BYTES)
        return;
    call->is_calling = true;
    call->bytes->on_head(call->visit, head->status, head);
    call->is_calling = false;
    if (!call->visit)
        call_free(call);
}

/* Look at bytes; whoever is called back may end the visit. Returns what is wrong with them, or NULL. */
static const char *agent_call_take_bytes(struct agent_exchange *call, const char *bytes,
                                         size_t length)
{
    if (call->form == REPLY_BYTES) {
        call->bytes->on_bytes(call->visit, bytes, length);
        return NULL;
    }
    if (call->form == REPLY_EVENTS && !call->is_refused)
        return sse_reader_feed(&call->reader, bytes, length) < 0
                   ? "the sandbox's agent sent an event that is too large"
                   : NULL;
    text_append_bytes(&call->body, bytes, length);
    return call->body.overflowed ? "the answer of the sandbox's agent is too large" : NULL;
}

static void got_bytes(struct http_exchange *exchange, const char *bytes, size_t length)
{
    struct agent_exchange *call = http_exchange_data(exchange);
    const char *problem;

    call->is_calling = true;
    problem = agent_call_take_bytes(call, bytes, length);
    call->is_calling = false;
    if (!call->visit)
        call_free(call);
    else if (problem)
        call_fail(call, call->body.overflowed ? ERR_TOO_LARGE : ERR_UPSTREAM, problem);
    else if (call->form != REPLY_WHOLE && http_reply_is_full(call->visit->request))
        http_exchange_pause(exchange);
}

static void agent_call_got_end(struct http_exchange *exchange)
{
    struct agent_exchange *call = http_exchange_data(exchange);

    call->exchange = NULL;
    if (call->visit && is_long_reply(call))
        call->reading = long_json_read(call->visit->api->loop, &call->body, &reply_limits,
                                       long_reply_read, call);
    else
        call_over(call, NULL);
}

static void got_failure(struct http_exchange *exchange, const struct error *error)
{
    struct agent_exchange *call = http_exchange_data(exchange);
    struct error told = *error;

    call->exchange = NULL;
    if (told.code == ERR_CANCELLED) /* of the connection, not by our client */
        (void) error_set(&told, ERR_UPSTREAM, 0, "the sandbox was stopped");
    call_over(call, &told);
}

static void agent_drained(struct http_exchange *exchange)
{
    struct agent_exchange *call = http_exchange_data(exchange);

    if (call->sends_body)
        http_request_resume(call->visit->request);
}

static const struct http_exchange_events exchange_events = {
    .on_head = agent_call_got_head,
    .on_body = got_bytes,
    .on_end = agent_call_got_end,
    .on_drain = agent_drained,
    .on_failure = got_failure,
};

/* --- asking ---------------------------------------------------------------------------------- */

static struct agent_exchange *call_new(struct visit *visit, enum reply_form form)
{
    struct agent_exchange *call = mem_alloc(sizeof(*call));

    call->visit = visit;
    call->form = form;
    call->body = (struct text) TEXT_INIT(AGENT_REPLY_MAX);
    loop_task_init(&call->fail_task, fail_later);
    visit->exchange = call;
    return call;
}

static void agent_call_add_header(struct http_header *headers, size_t *count, const char *name,
                                  const char *value)
{
    headers[(*count)++] = http_header_of(name, value);
}

static void agent_call_start(struct agent_exchange *call, const struct agent_request *ask,
                             int64_t length)
{
    struct visit *visit = call->visit;
    struct http_header headers[HEADERS_MAX];
    struct http_exchange_request request = {
        .method = ask->method ? ask->method : "POST",
        .target = ask->path,
        .headers = headers,
        .body_length = length,
        .send_length =
            !ask->method || strcmp(ask->method, "POST") == 0 || strcmp(ask->method, "PUT") == 0,
    };
    struct http_origin *origin =
        agents_origin(visit->api->agents, &visit->sandbox->id, &call->failure);

    if (!origin) {
        loop_defer(visit->api->loop, &call->fail_task);
        return;
    }
    agent_call_add_header(headers, &request.header_count, "Host", "agent");
    if (length)
        agent_call_add_header(headers, &request.header_count, "Content-Type",
                              ask->content_type ? ask->content_type : "application/json");
    if (ask->session)
        agent_call_add_header(headers, &request.header_count, "X-Session-Id", ask->session);
    if (ask->range)
        agent_call_add_header(headers, &request.header_count, "Range", ask->range);
    if (ask->if_range)
        agent_call_add_header(headers, &request.header_count, "If-Range", ask->if_range);
    if (ask->timeout_ms)
        start_timer(call, ask->timeout_ms);
    call->exchange = http_exchange_start(origin, &request, &exchange_events, call);
}

static void start_with_body(struct agent_exchange *call, const struct agent_request *ask)
{
    agent_call_start(call, ask, ask->body ? (int64_t) ask->length : 0);
    if (!call->exchange)
        return;
    if (ask->body)
        http_exchange_write(call->exchange, ask->body, ask->length);
    http_exchange_end(call->exchange);
}

void agent_call(struct visit *visit, const struct agent_request *request, agent_done *done)
{
    struct agent_exchange *call = call_new(visit, REPLY_WHOLE);

    call->done = done;
    start_with_body(call, request);
}

static void client_drained(struct http_request *request)
{
    struct visit *visit = visit_of(request);

    if (visit->exchange && visit->exchange->exchange)
        http_exchange_resume(visit->exchange->exchange);
}

void agent_stream(struct visit *visit, const struct agent_request *request,
                  const struct agent_stream_events *events)
{
    struct agent_exchange *call = call_new(visit, REPLY_EVENTS);

    call->stream = events;
    sse_reader_init(&call->reader, event_arrived);
    call->is_reader_set = true;
    visit->request->on_drain = client_drained;
    start_with_body(call, request);
}

void agent_fetch(struct visit *visit, const struct agent_request *request,
                 const struct agent_body_events *events)
{
    struct agent_exchange *call = call_new(visit, REPLY_BYTES);

    call->bytes = events;
    visit->request->on_drain = client_drained;
    start_with_body(call, request);
}

/* --- the client's own body ------------------------------------------------------------------- */

static struct http_exchange *body_taker(struct http_request *request)
{
    struct agent_exchange *call = visit_of(request)->exchange;

    return call && call->sends_body ? call->exchange : NULL;
}

static void client_body(struct http_request *request, const char *bytes, size_t length)
{
    struct http_exchange *exchange = body_taker(request);

    if (!exchange)
        return; /* the agent has answered: the rest is thrown away */
    http_exchange_write(exchange, bytes, length);
    if (http_exchange_is_full(exchange))
        http_request_pause(request);
}

static void client_body_end(struct http_request *request)
{
    struct http_exchange *exchange = body_taker(request);

    if (exchange)
        http_exchange_end(exchange);
}

void agent_send_body(struct visit *visit, const struct agent_request *request, agent_done *done)
{
    struct agent_exchange *call = call_new(visit, REPLY_WHOLE);
    const struct http_head *head = visit->request->head;

    call->done = done;
    call->sends_body = true;
    agent_call_start(call, request,
                     head->chunked              ? HTTP_LENGTH_UNKNOWN
                     : head->content_length > 0 ? head->content_length
                                                : 0);
    http_request_stream(visit->request, client_body, client_body_end);
}

/* --- errors of the agent --------------------------------------------------------------------- */

static const struct {
    const char *agent_code;
    enum err_code code;
} known_codes[] = {
    {"NO_SPACE", ERR_NO_SPACE},
    {"FILE_TOO_LARGE", ERR_TOO_LARGE},
    {"CONTAINER_UNAVAILABLE", ERR_UNAVAILABLE},
    {"INTERPRETER_NOT_READY", ERR_UNAVAILABLE},
    {"GIT_AUTH_FAILED", ERR_FORBIDDEN}, /* a 401 of ours is about our own keys */
    {"COMMAND_EXECUTION_ERROR", ERR_UPSTREAM},
};

static const struct {
    int status;
    enum err_code code;
} known_statuses[] = {
    {400, ERR_INVALID},      {401, ERR_FORBIDDEN},
    {403, ERR_FORBIDDEN},    {404, ERR_NOT_FOUND},
    {405, ERR_METHOD},       {408, ERR_REQUEST_TIMEOUT},
    {409, ERR_CONFLICT},     {410, ERR_GONE},
    {413, ERR_TOO_LARGE},    {415, ERR_MEDIA_TYPE},
    {416, ERR_RANGE},        {426, ERR_UPGRADE_REQUIRED},
    {429, ERR_RATE_LIMITED}, {501, ERR_NOT_IMPLEMENTED},
    {503, ERR_UNAVAILABLE},  {504, ERR_UPSTREAM_TIMEOUT},
    {507, ERR_NO_SPACE},
};

static enum err_code code_of(const struct agent_reply *reply)
{
    for (size_t i = 0; i < ARRAY_COUNT(known_codes); i++) {
        if (strcmp(reply->code, known_codes[i].agent_code) == 0)
            return known_codes[i].code;
    }
    for (size_t i = 0; i < ARRAY_COUNT(known_statuses); i++) {
        if (reply->status == known_statuses[i].status)
            return known_statuses[i].code;
    }
    return ERR_UPSTREAM;
}

int agent_reply_error(const struct agent_reply *reply, struct error *err)
{
    if (reply->status >= 200 && reply->status < 300)
        return 0;
    if (reply->message[0])
        return error_set(err, code_of(reply), 0, "%s", reply->message);
    return error_set(err, code_of(reply), 0, "the sandbox's agent answered with status %d",
                     reply->status);
}
