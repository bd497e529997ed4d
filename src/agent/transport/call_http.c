#include "agent/transport/call_http.h"

#include <string.h>
#include <strings.h>

#include "agent/agent.h"
#include "agent/call.h"
#include "agent/control/quiesce.h"
#include "json/json_read.h"
#include "net/http/sse.h"

#define QUERY_MAX 32

/* In the request's pool. */
struct http_call {
    struct call call;
    struct http_request *request;
    json_t *arguments; /* owned */
};

static struct http_call *of(struct call *call)
{
    return CONTAINER_OF(call, struct http_call, call);
}

/* Before the request ends, and with it the memory of the call. */
static struct http_request *take_request(struct call *call)
{
    struct http_call *http = of(call);

    json_decref(http->arguments);
    http->arguments = NULL;
    return http->request;
}

/* --- answering ------------------------------------------------------------------------------- */

static void http_call_reply(struct call *call, const char *json, size_t length)
{
    http_reply(take_request(call), 200, "application/json", json, length);
}

static void http_call_fail(struct call *call, const struct api_error *error)
{
    api_error_reply(take_request(call), error);
}

static void http_call_begin_events(struct call *call)
{
    sse_begin(of(call)->request);
}

static void http_call_event(struct call *call, const char *type, const char *json, size_t length)
{
    const struct iovec parts[] = {
        {.iov_base = (void *) (uintptr_t) "data: ", .iov_len = 6},
        {.iov_base = (void *) (uintptr_t) json, .iov_len = length},
        {.iov_base = (void *) (uintptr_t) "\n\n", .iov_len = 2},
    };

    (void) type; /* the object says it */
    http_reply_write_parts(of(call)->request, parts, ARRAY_COUNT(parts));
}

static void http_call_begin_bytes(struct call *call, const char *head, size_t length)
{
    (void) head;
    (void) length;
    http_reply_begin(of(call)->request, 200, "application/octet-stream", HTTP_LENGTH_UNKNOWN);
}

static void http_call_begin_json(struct call *call)
{
    http_reply_begin(of(call)->request, 200, "application/json", HTTP_LENGTH_UNKNOWN);
}

static void http_call_write(struct call *call, const void *bytes, size_t length)
{
    http_reply_write(of(call)->request, bytes, length);
}

static void http_call_end(struct call *call)
{
    http_reply_end(take_request(call));
}

static void http_call_abandon(struct call *call)
{
    http_reply_cut(take_request(call));
}

static bool http_call_is_full(const struct call *call)
{
    return http_reply_is_full(of((struct call *) (uintptr_t) call)->request);
}

static void http_call_want_input(struct call *call, bool wanted)
{
    (void) call; /* no operation has input by HTTP */
    (void) wanted;
}

static const struct call_transport transport = {
    .reply = http_call_reply,
    .fail = http_call_fail,
    .begin_events = http_call_begin_events,
    .event = http_call_event,
    .begin_bytes = http_call_begin_bytes,
    .begin_json = http_call_begin_json,
    .write = http_call_write,
    .end = http_call_end,
    .abandon = http_call_abandon,
    .is_full = http_call_is_full,
    .want_input = http_call_want_input,
    .unlimited_json = true,
};

/* --- asking ---------------------------------------------------------------------------------- */

static void call_http_client_left(struct http_request *request)
{
    struct http_call *http = request->data;

    call_tell_gone(&http->call);
    json_decref(http->arguments);
}

static void call_http_client_took(struct http_request *request)
{
    struct http_call *http = request->data;

    call_tell_drain(&http->call);
}

static void add_argument(json_t *arguments, const char *name, size_t name_length, const char *text)
{
    json_t *value = json_string(text);

    /* What is not UTF-8 is no argument, and refused as missing when somebody needs it. */
    if (value && json_object_setn_new(arguments, name, name_length, value) < 0)
        json_decref(value);
}

static void add_query(json_t *arguments, struct url_span query)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct url_parameter parameter;
    const char *name, *value;

    for (int i = 0; i < QUERY_MAX && url_query_next(&query, &parameter); i++) {
        if (url_decode_copy(parameter.name, URL_DECODE_QUERY, &pool, &name) == 0 &&
            url_decode_copy(parameter.value, URL_DECODE_QUERY, &pool, &value) == 0)
            add_argument(arguments, name, strlen(name), value);
    }
}

json_t *call_http_arguments(const struct http_match *match, struct url_span query)
{
    json_t *arguments = json_object();

    add_query(arguments, query);
    for (size_t i = 0; i < match->parameter_count; i++)
        add_argument(arguments, match->parameters[i].name, match->parameters[i].name_length,
                     match->parameters[i].value);
    return arguments;
}

static const char *find_session(struct http_call *http, json_t *body)
{
    static const char scheme[] = "Bearer ";
    struct http_request *request = http->request;
    const char *value = json_string_value(json_object_get(body, "sessionId"));
    const char *authorization = http_request_header(request, "authorization");

    if (value)
        return value;
    if (authorization && !http->call.agent->token &&
        strncasecmp(authorization, scheme, sizeof(scheme) - 1) == 0)
        return authorization + sizeof(scheme) - 1;
    value = http_request_header(request, "x-session-id");
    if (!value)
        value = http_request_query(request, "session");
    return value ? value : http_request_query(request, "sessionId");
}

static void call_http_run(struct http_call *http, json_t *body)
{
    struct call *call = &http->call;
    const char *session = find_session(http, body);

    if (session) /* it may point into the body */
        session = pool_copy_text(call->pool, session);
    if (body)
        (void) json_object_update(http->arguments, body);
    json_decref(body);
    call->arguments = http->arguments;
    call->has_session = session != NULL;
    call->session = session ? session : CALL_DEFAULT_SESSION;
    if (call_session_is_valid(call->session)) {
        if (!quiesce_refuses(call))
            call->operation->run(call);
    } else {
        call_fail_field(call, "sessionId",
                        "a session's id is 1 to 256 characters, not only spaces");
    }
}

static void call_http_body_arrived(struct http_request *request, const char *bytes, size_t length)
{
    struct http_call *http = request->data;
    const struct json_limits limits = {
        .size = length + 1, .depth = 64, .values = 1 << 20, .nul = true};
    struct error err = ERROR_INIT;
    json_t *body = json_read(bytes, length, &limits, &err);
    struct json_place root;

    if (body && json_root_object(body, &root, &err) == 0) {
        call_http_run(http, body);
        return;
    }
    json_decref(body);
    call_fail_text(&http->call, API_INTERNAL_ERROR, "Failed to parse request body: %s",
                   err.message);
}

void call_http_handle(struct http_request *request, const struct operation *operation)
{
    struct http_call *http = pool_alloc(&request->pool, sizeof(*http));

    *http = (struct http_call){
        .call = {.agent = request->context,
                 .operation = operation,
                 .pool = &request->pool,
                 .transport = &transport},
        .request = request,
        .arguments = call_http_arguments(&request->match, request->target.query),
    };
    request->data = http;
    request->on_gone = call_http_client_left;
    request->on_drain = call_http_client_took;
    if (strcmp(operation->method, "POST") == 0 || strcmp(operation->method, "PUT") == 0)
        http_request_collect(request, call_http_body_arrived);
    else
        call_http_run(http, NULL);
}
