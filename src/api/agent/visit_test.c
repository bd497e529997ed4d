#include "api/agent/visit_testing.h"

#define HOST "Host: a.test\r\n"
#define JSON "Content-Type: application/json\r\n"

/* --- handlers -------------------------------------------------------------------------------- */

static void replied(struct visit *visit, const struct agent_reply *reply,
                    const struct error *failure)
{
    struct error error = ERROR_INIT;

    if (failure)
        http_reply_error(visit->request, failure);
    else if (agent_reply_error(reply, &error) < 0)
        http_reply_error(visit->request, &error);
    else
        http_reply_text(visit->request, 200, "text/plain",
                        json_string_value(json_object_get(reply->json, "say")));
}

static void ask_within(struct visit *visit, int timeout_ms)
{
    struct agent_request request = {.path = "/api/ask",
                                    .body = "{\"q\":1}",
                                    .length = 7,
                                    .session = "s1",
                                    .timeout_ms = timeout_ms};

    agent_call(visit, &request, replied);
}

static void ask(struct visit *visit)
{
    ask_within(visit, 10000);
}

static void ask_impatiently(struct visit *visit)
{
    ask_within(visit, 200);
}

static void get_ask(struct http_request *request)
{
    visit_begin(request, http_request_parameter(request, "id"), 0, ask);
}

static void get_soon(struct http_request *request)
{
    visit_begin(request, http_request_parameter(request, "id"), 0, ask_impatiently);
}

static void get_look(struct http_request *request)
{
    visit_begin(request, http_request_parameter(request, "id"), VISIT_READ | VISIT_NO_WAKE, ask);
}

static void post_new(struct http_request *request)
{
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;

    visit_begin_new(request, http_request_parameter(request, "id"), &spec, VISIT_CREATE, ask);
}

/* Tells each event; "stop" is answered at once, in the middle of a piece. */
static void event_came(struct visit *visit, const char *type, json_t *event)
{
    text_format(&bench_of(visit->request)->told, "%s=%s;", type,
                json_string_value(json_object_get(event, "data")));
    if (strcmp(type, "stop") == 0)
        http_reply_text(visit->request, 200, "text/plain", "stopped");
}

static void events_refused(struct visit *visit, const struct agent_reply *reply)
{
    struct error error = ERROR_INIT;

    (void) agent_reply_error(reply, &error);
    http_reply_error(visit->request, &error);
}

static void events_ended(struct visit *visit, const struct error *failure)
{
    if (failure)
        http_reply_error(visit->request, failure);
    else
        http_reply_text(visit->request, 200, "text/plain", "ended");
}

static void follow(struct visit *visit)
{
    static const struct agent_stream_events events = {
        .on_refused = events_refused, .on_event = event_came, .on_end = events_ended};
    struct agent_request request = {.method = "GET", .path = "/api/follow"};

    agent_stream(visit, &request, &events);
}

static void get_follow(struct http_request *request)
{
    visit_begin(request, "demo", 0, follow);
}

static void send_on(struct visit *visit)
{
    struct agent_request request = {
        .method = "PUT", .path = "/api/put", .content_type = "application/octet-stream"};

    agent_send_body(visit, &request, replied);
}

static void put_body(struct http_request *request)
{
    visit_begin(request, "demo", 0, send_on);
}

static void bytes_head(struct visit *visit, int status, const struct http_head *head)
{
    http_reply_begin(visit->request, status, "text/plain", head->content_length);
}

static void bytes_came(struct visit *visit, const char *bytes, size_t length)
{
    http_reply_write(visit->request, bytes, length);
}

static void bytes_ended(struct visit *visit, const struct error *failure)
{
    if (failure)
        http_reply_error(visit->request, failure);
    else
        http_reply_end(visit->request);
}

static void fetch(struct visit *visit)
{
    static const struct agent_body_events events = {
        .on_head = bytes_head, .on_bytes = bytes_came, .on_end = bytes_ended};
    struct agent_request request = {.method = "GET", .path = "/api/bytes"};

    agent_fetch(visit, &request, &events);
}

static void get_bytes(struct http_request *request)
{
    visit_begin(request, "demo", 0, fetch);
}

static void pass_on(struct visit *visit)
{
    visit_proxy(visit, visit_target(visit, "/inner"));
}

static void get_proxy(struct http_request *request)
{
    visit_begin(request, "demo", 0, pass_on);
}

static void pass_socket(struct visit *visit)
{
    visit_proxy_socket(visit, "/inner");
}

static void get_socket(struct http_request *request)
{
    visit_begin(request, "demo", 0, pass_socket);
}

#define ROW(method, path, handler)                                                                 \
    {                                                                                              \
        method, path, handler, .body_limit = HTTP_BODY_UNLIMITED                                   \
    }

static const struct http_route routes[] = {
    ROW("GET", "/ask/{id}", get_ask),   ROW("GET", "/look/{id}", get_look),
    ROW("POST", "/new/{id}", post_new), ROW("GET", "/follow", get_follow),
    ROW("GET", "/bytes", get_bytes),    ROW("GET", "/proxy", get_proxy),
    ROW("PUT", "/body", put_body),      ROW("GET", "/socket", get_socket),
    ROW("GET", "/soon/{id}", get_soon),
};

static int setup(void **state)
{
    *state = bench_new(routes, ARRAY_COUNT(routes));
    return 0;
}

static int teardown(void **state)
{
    bench_free(*state);
    return 0;
}

/* --- whole replies --------------------------------------------------------------------------- */

static void an_agent_is_asked_and_its_answer_given(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = bench_client(bench, "GET /ask/demo HTTP/1.1\r\n" HOST "\r\n");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "{\"q\":1}");
    assert_true(raw_has(&agent, "POST /api/ask HTTP/1.1\r\nHost: agent\r\n" JSON
                                "X-Session-Id: s1\r\nX-Request-Id: "));
    assert_true(raw_has(&agent, "\r\nContent-Length: 7\r\n\r\n"));
    assert_int_equal(bench->uses, 1);
    SAY(bench, &agent, "HTTP/1.1 200 OK\r\n" JSON "Content-Length: 15\r\n\r\n{\"say\":\"hello\"");
    raw_close(&agent); /* one byte short: the answer is broken */
    HEARD(bench, &raw, "HTTP/1.1 502 ");
    assert_int_equal(bench->uses, 0);
    raw_close(&raw);
    raw = bench_client(bench, "GET /ask/demo HTTP/1.1\r\n" HOST "\r\n");
    agent = bench_agent(bench);
    HEARD(bench, &agent, "{\"q\":1}");
    SAY(bench, &agent, "HTTP/1.1 200 OK\r\n" JSON "Content-Length: 15\r\n\r\n{\"say\":\"hello\"}");
    HEARD(bench, &raw, "\r\n\r\nhello");
    assert_int_equal(bench->uses, 0);
    raw_close(&raw);
    raw_close(&agent);
}

static void errors_of_the_agent_become_ours(void **state)
{
    static const struct {
        const char *reply, *expected;
    } cases[] = {
        {"404 Not Found\r\n" JSON "Content-Length: 40\r\n\r\n"
         "{\"code\":\"FILE_NOT_FOUND\",\"message\":\"no\"}",
         "\"code\":\"not_found\",\"message\":\"no\""},
        {"500 Oops\r\n" JSON "Content-Length: 36\r\n\r\n"
         "{\"code\":\"NO_SPACE\",\"message\":\"full\"}",
         "\"code\":\"no_space\",\"message\":\"full\""},
        {"500 Oops\r\nContent-Length: 0\r\n\r\n", "\"code\":\"upstream_failed\""},
        {"401 No\r\nContent-Length: 0\r\n\r\n", "\"code\":\"forbidden\""},
        {"299 Fine\r\n" JSON "Content-Length: 12\r\n\r\n{\"say\":\"hi\"}", "\r\n\r\nhi"},
    };
    struct visit_bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct raw raw = bench_client(bench, "GET /ask/demo HTTP/1.1\r\n" HOST "\r\n");
        struct raw agent = bench_agent(bench);

        HEARD(bench, &agent, "{\"q\":1}");
        SAY(bench, &agent, "HTTP/1.1 ");
        SAY(bench, &agent, cases[i].reply);
        HEARD(bench, &raw, cases[i].expected);
        raw_close(&raw);
        raw_close(&agent);
    }
}

static void an_agent_that_does_not_answer_is_given_up(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = bench_client(bench, "GET /soon/demo HTTP/1.1\r\n" HOST "\r\n");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &raw, "\"code\":\"upstream_timeout\"");
    TURN_UNTIL(&bench->web.loop, raw_is_over(&agent));
    raw_close(&raw);
    raw_close(&agent);
}

static void a_client_that_leaves_ends_its_visit(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = bench_client(bench, "GET /ask/demo HTTP/1.1\r\n" HOST "\r\n");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "{\"q\":1}");
    raw_close(&raw);
    TURN_UNTIL(&bench->web.loop, raw_is_over(&agent));
    assert_int_equal(bench->uses, 0);
    raw_close(&agent);
}

/* --- who and what ---------------------------------------------------------------------------- */

static void who_may_only_look_may_not_enter(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw, agent;

    bench->caller.scope = CALLER_READ;
    raw = bench_client(bench, "GET /ask/demo HTTP/1.1\r\n" HOST "\r\n"
                              "GET /ask/other HTTP/1.1\r\n" HOST "\r\n"
                              "GET /look/demo HTTP/1.1\r\n" HOST "\r\n");
    HEARD(bench, &raw, "\"code\":\"forbidden\"");
    HEARD(bench, &raw, "\"code\":\"not_found\"");
    agent = bench_agent(bench);
    SAY(bench, &agent, "HTTP/1.1 200 OK\r\n" JSON "Content-Length: 12\r\n\r\n{\"say\":\"hi\"}");
    HEARD(bench, &raw, "\r\n\r\nhi");
    raw_close(&raw);
    raw_close(&agent);
}

static void a_sleeping_one_is_waited_for(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw, agent;

    bench->is_asleep = true;
    raw = bench_client(bench, "GET /look/demo HTTP/1.1\r\n" HOST "\r\n"
                              "GET /ask/demo HTTP/1.1\r\n" HOST "\r\n");
    HEARD(bench, &raw, "\"code\":\"conflict\"");
    TURN_UNTIL(&bench->web.loop, bench->waits != NULL);
    bench->waits->ready(TAKE_PTR(bench->waits), NULL);
    agent = bench_agent(bench);
    SAY(bench, &agent, "HTTP/1.1 200 OK\r\n" JSON "Content-Length: 12\r\n\r\n{\"say\":\"hi\"}");
    HEARD(bench, &raw, "\r\n\r\nhi");
    raw_close(&raw);
    raw_close(&agent);
    raw = bench_client(bench, "GET /ask/demo HTTP/1.1\r\n" HOST "\r\n");
    TURN_UNTIL(&bench->web.loop, bench->waits != NULL);
    raw_close(&raw);
    TURN_UNTIL(&bench->web.loop, bench->waits == NULL && bench->uses == 0);
}

static void a_missing_one_is_made(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw, agent;

    bench->is_there = false;
    raw = bench_client(bench, "POST /new/demo HTTP/1.1\r\n" HOST "\r\n");
    TURN_UNTIL(&bench->web.loop, bench->created != NULL);
    bench->is_there = true;
    TAKE_PTR(bench->created)(bench->created_context, NULL, &bench->sandbox, true);
    agent = bench_agent(bench);
    SAY(bench, &agent, "HTTP/1.1 200 OK\r\n" JSON "Content-Length: 12\r\n\r\n{\"say\":\"hi\"}");
    HEARD(bench, &raw, "\r\n\r\nhi");
    raw_close(&raw);
    raw_close(&agent);
}

static void a_client_may_leave_while_one_is_made(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw;

    bench->is_there = false;
    raw = bench_client(bench, "POST /new/demo HTTP/1.1\r\n" HOST "\r\n");
    TURN_UNTIL(&bench->web.loop, bench->created != NULL);
    raw_close(&raw);
    TURN_UNTIL(&bench->web.loop, http_server_connections(bench->web.server) == 0);
    TAKE_PTR(bench->created)(bench->created_context, NULL, &bench->sandbox, true);
    assert_int_equal(bench->uses, 0);
}

/* --- streams --------------------------------------------------------------------------------- */

#define EVENTS "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"

static void events_come_one_by_one(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = bench_client(bench, "GET /follow HTTP/1.1\r\n" HOST "\r\n");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "\r\n\r\n");
    SAY(bench, &agent, EVENTS "data: {\"type\":\"a\",\"data\":\"1\"}\n\ndata: {\"ty");
    TOLD(bench, "a=1;");
    SAY(bench, &agent, "pe\":\"b\",\"data\":\"2\"}\n\n");
    TOLD(bench, "b=2;");
    raw_close(&agent);
    HEARD(bench, &raw, "\r\n\r\nended");
    raw_close(&raw);
}

static void an_answer_in_the_middle_ends_the_stream(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = bench_client(bench, "GET /follow HTTP/1.1\r\n" HOST "\r\n");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "\r\n\r\n");
    SAY(bench, &agent,
        EVENTS "data: {\"type\":\"stop\",\"data\":\"1\"}\n\n"
               "data: {\"type\":\"late\",\"data\":\"2\"}\n\n");
    HEARD(bench, &raw, "\r\n\r\nstopped");
    TURN_UNTIL(&bench->web.loop, raw_is_over(&agent));
    assert_string_equal(text_string(&bench->told), "stop=1;");
    raw_close(&raw);
    raw_close(&agent);
}

static void events_that_are_no_json_break_the_stream(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = bench_client(bench, "GET /follow HTTP/1.1\r\n" HOST "\r\n");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "\r\n\r\n");
    SAY(bench, &agent, EVENTS "data: [1]\n\ndata: {\"type\":\"late\",\"data\":\"2\"}\n\n");
    HEARD(bench, &raw, "\"code\":\"upstream_failed\"");
    TURN_UNTIL(&bench->web.loop, raw_is_over(&agent));
    assert_string_equal(text_string(&bench->told), "");
    raw_close(&raw);
    raw_close(&agent);
}

static void a_refusal_is_told_apart_from_events(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = bench_client(bench, "GET /follow HTTP/1.1\r\n" HOST "\r\n");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "\r\n\r\n");
    SAY(bench, &agent,
        "HTTP/1.1 409 No\r\n" JSON
        "Content-Length: 44\r\n\r\n{\"code\":\"RESOURCE_BUSY\",\"message\":\"not now\"}");
    HEARD(bench, &raw, "\"code\":\"conflict\",\"message\":\"not now\"");
    raw_close(&raw);
    raw_close(&agent);
}

static void a_slow_client_holds_up_the_agent(void **state)
{
    enum { LENGTH = 30000000 };
    struct visit_bench *bench = *state;
    AUTO(free) char *bytes = mem_alloc(LENGTH);
    struct raw raw = bench_client(bench, "GET /bytes HTTP/1.1\r\n" HOST "\r\n");
    struct raw agent = bench_agent(bench);
    size_t sent = 0;
    int idle = 0;

    testing_fill(bytes, LENGTH, 0);
    HEARD(bench, &agent, "\r\n\r\n");
    SAY(bench, &agent, "HTTP/1.1 200 OK\r\nContent-Length: 30000000\r\n\r\n");
    while (idle < 10) { /* until nothing moves any more */
        ssize_t part = send(agent.fd, bytes + sent, LENGTH - sent, MSG_NOSIGNAL);

        idle = part > 0 ? 0 : idle + 1;
        sent += part > 0 ? (size_t) part : 0;
        testing_turn(&bench->web.loop);
    }
    assert_true(sent < LENGTH);
    HEARD(bench, &raw, "\r\n\r\n");
    text_consume(&raw.got, (size_t) (strstr(raw.got.data, "\r\n\r\n") + 4 - raw.got.data));
    while (raw.got.length < LENGTH) {
        ssize_t part = send(agent.fd, bytes + sent, LENGTH - sent, MSG_NOSIGNAL);

        sent += part > 0 ? (size_t) part : 0;
        raw_read(&raw);
        assert_false(raw.ended);
        (void) uv_run(&bench->web.loop.uv, UV_RUN_NOWAIT);
    }
    assert_memory_equal(raw.got.data, bytes, LENGTH);
    raw_close(&raw);
    raw_close(&agent);
}

static void a_body_streams_to_the_agent(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = bench_client(bench, "PUT /body HTTP/1.1\r\n" HOST
                                         "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "abc");
    assert_true(raw_has(&agent, "PUT /api/put ") &&
                raw_has(&agent, "Content-Type: application/octet-stream\r\n"));
    SAY(bench, &raw, "3\r\ndef\r\n0\r\n\r\n");
    HEARD(bench, &agent, "def\r\n0\r\n\r\n");
    SAY(bench, &agent, "HTTP/1.1 200 OK\r\n" JSON "Content-Length: 12\r\n\r\n{\"say\":\"hi\"}");
    HEARD(bench, &raw, "\r\n\r\nhi");
    raw_close(&raw);
    raw_close(&agent);
}

static void an_early_refusal_ends_an_upload(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw =
        bench_client(bench, "PUT /body HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nabc");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "abc");
    SAY(bench, &agent, "HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n");
    HEARD(bench, &raw, "\"code\":\"payload_too_large\"");
    SAY(bench, &raw, "defghi");
    SAY(bench, &raw, "GET /ask/other HTTP/1.1\r\n" HOST "\r\n");
    HEARD(bench, &raw, "\"code\":\"not_found\"");
    raw_close(&raw);
    raw_close(&agent);
}

/* --- passing on ------------------------------------------------------------------------------ */

static void credentials_of_ours_are_not_passed_on(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = bench_client(
        bench, "GET /proxy?a=1&token=t1&Authorization=Bearer%20x&b=%26&%74oken=t2 HTTP/1.1\r\n" HOST
               "Authorization: Bearer secret\r\nCookie: burrow_session=s\r\nX-Mine: 1\r\n\r\n");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "\r\n\r\n");
    assert_true(raw_has(&agent, "GET /inner?a=1&b=%26 HTTP/1.1\r\n"));
    assert_true(raw_has(&agent, "X-Mine: 1\r\n"));
    assert_false(raw_has(&agent, "secret") || raw_has(&agent, "ookie"));
    SAY(bench, &agent,
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: a=b\r\nX-Own: yes\r\n"
        "X-Accel-Redirect: /internal\r\n"
        "Access-Control-Allow-Origin: *\r\nContent-Security-Policy: none\r\n"
        "Content-Length: 2\r\n\r\nhi");
    HEARD(bench, &raw, "\r\n\r\nhi");
    assert_true(raw_has(&raw, "Content-Type: text/html\r\n") && raw_has(&raw, "X-Own: yes\r\n"));
    assert_true(raw_has(&raw, "Content-Security-Policy: sandbox\r\n"));
    assert_int_equal(raw_count(&raw, "Content-Security-Policy"), 1);
    assert_false(raw_has(&raw, "Set-Cookie") || raw_has(&raw, "Access-Control") ||
                 raw_has(&raw, "X-Accel-Redirect"));
    raw_close(&raw);
    raw_close(&agent);
}

static void a_tunnel_keeps_the_sandbox_awake(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = bench_client(bench, "GET /proxy HTTP/1.1\r\n" HOST
                                         "Connection: Upgrade\r\nUpgrade: test\r\n\r\n");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "\r\n\r\n");
    SAY(bench, &agent, "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n");
    HEARD(bench, &raw, "\r\n\r\n");
    assert_int_equal(bench->uses, 1);
    SAY(bench, &raw, "ping");
    HEARD(bench, &agent, "ping");
    raw_close(&raw);
    raw_close(&agent);
    TURN_UNTIL(&bench->web.loop, bench->uses == 0);
}

static void a_websocket_that_the_agent_refuses_is_refused_in_our_words(void **state)
{
    struct visit_bench *bench = *state;
    struct raw raw = bench_client(bench, "GET /socket HTTP/1.1\r\n" HOST
                                         "Connection: Upgrade\r\nUpgrade: test\r\n\r\n");
    struct raw agent = bench_agent(bench);

    HEARD(bench, &agent, "\r\n\r\n");
    SAY(bench, &agent, "HTTP/1.1 400 Bad\r\nX-Own: yes\r\nContent-Length: 5\r\n\r\nwords");
    HEARD(bench, &raw, "}}");
    assert_true(raw_has(&raw, "HTTP/1.1 400 ") && raw_has(&raw, "\"code\":\"invalid_request\""));
    assert_false(raw_has(&raw, "words") || raw_has(&raw, "X-Own"));
    raw_close(&raw);
    raw_close(&agent);
    TURN_UNTIL(&bench->web.loop, bench->uses == 0);
}

int main(void)
{
#define VISIT_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        VISIT_TEST(an_agent_is_asked_and_its_answer_given),
        VISIT_TEST(errors_of_the_agent_become_ours),
        VISIT_TEST(an_agent_that_does_not_answer_is_given_up),
        VISIT_TEST(a_client_that_leaves_ends_its_visit),
        VISIT_TEST(who_may_only_look_may_not_enter),
        VISIT_TEST(a_sleeping_one_is_waited_for),
        VISIT_TEST(a_missing_one_is_made),
        VISIT_TEST(a_client_may_leave_while_one_is_made),
        VISIT_TEST(events_come_one_by_one),
        VISIT_TEST(an_answer_in_the_middle_ends_the_stream),
        VISIT_TEST(events_that_are_no_json_break_the_stream),
        VISIT_TEST(a_refusal_is_told_apart_from_events),
        VISIT_TEST(a_slow_client_holds_up_the_agent),
        VISIT_TEST(a_body_streams_to_the_agent),
        VISIT_TEST(an_early_refusal_ends_an_upload),
        VISIT_TEST(credentials_of_ours_are_not_passed_on),
        VISIT_TEST(a_tunnel_keeps_the_sandbox_awake),
        VISIT_TEST(a_websocket_that_the_agent_refuses_is_refused_in_our_words),
    };

    return cmocka_run_group_tests_name("visit", tests, NULL, NULL);
}
