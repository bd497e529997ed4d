#include "net/http/http_testing.h"

/* --- handlers ------------------------------------------------------------------------------- */

static void gone(struct http_request *request)
{
    text_append(&web_of(request)->told, "gone ");
    web_of(request)->waiting = NULL;
}

static void say_hello(struct http_request *request)
{
    text_format(&web_of(request)->told, "%s ", request->head->target);
    http_reply_text(request, 200, "text/plain", "hello\n");
}

static void echo_collected(struct http_request *request, const char *body, size_t length)
{
    text_format(&web_of(request)->told, "collected:%zu ", length);
    assert_int_equal(body[length], '\0');
    http_reply(request, 200, NULL, body, length);
}

static void echo(struct http_request *request)
{
    request->on_gone = gone;
    http_request_collect(request, echo_collected);
}

static void count_piece(struct http_request *request, const char *bytes, size_t length)
{
    uint64_t *got = request->data;

    for (size_t i = 0; i < length; i++)
        assert_int_equal(bytes[i], testing_byte(*got + i));
    *got += length;
    if (request->body_limit == HTTP_BODY_UNLIMITED) { /* the route that pauses */
        http_request_pause(request);
        web_of(request)->waiting = request;
    }
}

static void count_end(struct http_request *request)
{
    AUTO(text) struct text reply = TEXT_INIT(64);

    text_format(&reply, "counted %llu\n", (unsigned long long) *(uint64_t *) request->data);
    http_reply_text(request, 200, NULL, text_string(&reply));
}

static void count(struct http_request *request)
{
    request->data = pool_alloc(&request->pool, sizeof(uint64_t));
    request->on_gone = gone;
    http_request_stream(request, count_piece, count_end);
}

static void wait_for_test(struct http_request *request)
{
    text_format(&web_of(request)->told, "%s ", request->head->target);
    request->on_gone = gone;
    web_of(request)->waiting = request;
}

static void forget(struct http_request *request)
{
    (void) request; /* a bug: neither reply nor on_gone */
}

static void no_content(struct http_request *request)
{
    http_reply(request, 204, NULL, "dropped", 7);
}

static void stream_reply(struct http_request *request)
{
    http_reply_begin(request, 200, "text/plain", HTTP_LENGTH_UNKNOWN);
    http_reply_write(request, "one ", 4);
    http_reply_write(request, "", 0);
    http_reply_write(request, "two", 3);
    http_reply_end(request);
}

static void promise_more(struct http_request *request)
{
    http_reply_begin(request, 200, "text/plain", 10);
    http_reply_write(request, "short", 5);
    http_reply_end(request);
}

static void forge(struct http_request *request)
{
    assert_int_equal(http_reply_header(request, "X", "a\r\nSet-Cookie: b"), -EINVAL);
    assert_int_equal(http_reply_header(request, "X\r\nY", "a"), -EINVAL);
    assert_int_equal(http_reply_header(request, "X-Fine", "yes"), 0);
    http_reply_text(request, 200, NULL, "");
}

static void refuse_early(struct http_request *request)
{
    http_reply_text(request, 403, NULL, "no");
}

/* --- the bench ------------------------------------------------------------------------------ */

static const struct http_route routes[] = {
    {.method = "GET", .pattern = "/hello", .handle = say_hello},
    {.method = "GET", .pattern = "/hello/{name}", .handle = say_hello},
    {.method = "POST", .pattern = "/echo", .handle = echo, .body_limit = 1000},
    {.method = "POST", .pattern = "/default", .handle = echo},
    {.method = "POST", .pattern = "/count", .handle = count, .body_limit = 8 << 20},
    {.method = "POST", .pattern = "/slowly", .handle = count, .body_limit = HTTP_BODY_UNLIMITED},
    {.method = "GET", .pattern = "/wait", .handle = wait_for_test},
    {.method = "POST", .pattern = "/wait", .handle = wait_for_test},
    {.method = "GET", .pattern = "/bug", .handle = forget},
    {.method = "GET", .pattern = "/nothing", .handle = no_content},
    {.method = "GET", .pattern = "/stream", .handle = stream_reply},
    {.method = "GET", .pattern = "/short", .handle = promise_more},
    {.method = "GET", .pattern = "/forge", .handle = forge},
    {.method = "POST", .pattern = "/refuse", .handle = refuse_early, .body_limit = 8 << 20},
};

static struct http_mount mount = {
    .name = "test", .routes = routes, .route_count = ARRAY_COUNT(routes)};

static int setup(void **state)
{
    struct web *web = test_calloc(1, sizeof(*web));

    web_init(web);
    *state = web;
    return 0;
}

static int teardown(void **state)
{
    web_done(*state);
    test_free(*state);
    return 0;
}

static struct raw start(struct web *web)
{
    if (!web->server)
        web_serve(web, &mount);
    return raw_connect(web->port);
}

#define HOST "Host: a\r\n"

static void expect_reply(struct web *web, const char *request, const char *part)
{
    struct raw raw = start(web);

    raw_send(&raw, &web->loop, request);
    TURN_UNTIL(&web->loop, raw_has(&raw, part) || raw.ended);
    if (!raw_has(&raw, part))
        fail_msg("%s\ngave\n%s\nwithout %s", request, text_string(&raw.got), part);
    raw_close(&raw);
}

/* Sent as it is, the connection must end; returns everything that came. */
static char *reply_until_end(struct web *web, const char *request)
{
    struct raw raw = start(web);
    char *got;

    raw_send(&raw, &web->loop, request);
    TURN_UNTIL(&web->loop, raw_is_over(&raw));
    assert_int_equal(raw.error, 0);
    got = text_take(&raw.got);
    raw_close(&raw);
    return got;
}

/* --- replies -------------------------------------------------------------------------------- */

static void a_connection_serves_many_requests(void **state)
{
    struct web *web = *state;
    struct raw raw = start(web);

    for (size_t i = 1; i <= 5; i++) {
        raw_send(&raw, &web->loop, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
        TURN_UNTIL(&web->loop, raw_count(&raw, "hello\n") == i);
    }
    assert_int_equal(http_server_counters(web->server)->connections, 1);
    assert_int_equal(http_server_counters(web->server)->requests, 5);
    assert_int_equal(http_server_counters(web->server)->replies[2], 5);
    assert_int_equal(raw_count(&raw, "\r\nContent-Length: 6\r\n"), 5);
    assert_int_equal(raw_count(&raw, "\r\nX-Request-Id: "), 5);
    assert_int_equal(raw_count(&raw, "\r\nDate: "), 5);
    assert_false(raw_has(&raw, "Connection"));
    raw_close(&raw);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    struct web *web = *state;
    struct raw raw = start(web);

    raw_send(&raw, &web->loop,
             "GET /hello/1 HTTP/1.1\r\n" HOST "\r\n"
             "GET /wait HTTP/1.1\r\n" HOST "\r\n"
             "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nthird"
             "GET /hello/4 HTTP/1.1\r\n" HOST "\r\n");
    TURN_UNTIL(&web->loop, web->waiting);
    testing_turn(&web->loop);
    assert_false(raw_has(&raw, "third")); /* the second is not answered yet */
    assert_string_equal(text_string(&web->told), "/hello/1 /wait ");
    http_reply_text(TAKE_PTR(web->waiting), 200, NULL, "second");
    TURN_UNTIL(&web->loop, raw_count(&raw, "hello\n") == 2);
    assert_true(strstr(text_string(&raw.got), "second") < strstr(text_string(&raw.got), "third"));
    assert_string_equal(text_string(&web->told), "/hello/1 /wait collected:5 /hello/4 ");
    raw_close(&raw);
}

static void heads_and_empty_replies_have_no_body(void **state)
{
    struct web *web = *state;
    AUTO(free)
    char *got = reply_until_end(web, "HEAD /hello HTTP/1.1\r\n" HOST "\r\n"
                                     "GET /nothing HTTP/1.1\r\n" HOST "\r\n"
                                     "HEAD /stream HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");

    assert_non_null(strstr(got, "200 OK\r\n"));
    assert_non_null(strstr(got, "Content-Length: 6\r\n"));
    assert_non_null(strstr(got, "\r\n\r\nHTTP/1.1 204 No Content\r\n"));
    assert_null(strstr(got, "hello"));
    assert_null(strstr(got, "dropped"));
    assert_null(strstr(got, "Content-Length: 7"));
    assert_null(strstr(got, "one"));
    assert_string_equal(got + strlen(got) - 4, "\r\n\r\n");
}

static void a_reply_of_unknown_length_is_chunked(void **state)
{
    struct web *web = *state;
    AUTO(free)
    char *got = reply_until_end(web, "GET /stream HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");

    assert_non_null(strstr(got, "\r\nTransfer-Encoding: chunked\r\n"));
    assert_non_null(strstr(got, "\r\nConnection: close\r\n"));
    assert_non_null(strstr(got, "\r\n\r\n4\r\none \r\n3\r\ntwo\r\n0\r\n\r\n"));
}

static void an_old_client_gets_the_end_of_the_connection(void **state)
{
    struct web *web = *state;
    AUTO(free) char *got = reply_until_end(web, "GET /stream HTTP/1.0\r\n\r\n");

    assert_null(strstr(got, "chunked"));
    assert_non_null(strstr(got, "\r\n\r\none two"));
    assert_string_equal(got + strlen(got) - 7, "one two");
}

static void an_old_client_may_stay(void **state)
{
    struct web *web = *state;
    AUTO(free)
    char *got = reply_until_end(web, "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
                                     "GET /hello HTTP/1.0\r\n\r\n");

    assert_non_null(strstr(got, "\r\nConnection: keep-alive\r\n"));
    assert_non_null(strstr(strstr(got, "hello\n"), "\r\nConnection: close\r\n"));
}

static void a_reply_that_is_too_short_cuts_the_connection(void **state)
{
    struct web *web = *state;
    AUTO(free) char *got = reply_until_end(web, "GET /short HTTP/1.1\r\n" HOST "\r\n");

    assert_null(strstr(got, "\r\n\r\n0123"));
    assert_int_equal(http_server_connections(web->server), 0);
}

static void a_handler_that_forgets_to_answer_is_answered_for(void **state)
{
    expect_reply(*state, "GET /bug HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 500 Internal");
}

static void headers_cannot_be_forged(void **state)
{
    struct web *web = *state;
    AUTO(free)
    char *got = reply_until_end(web, "GET /forge HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");

    assert_non_null(strstr(got, "X-Fine: yes\r\n"));
    assert_null(strstr(got, "Set-Cookie"));
}

static void what_no_table_knows_is_answered(void **state)
{
    expect_reply(*state, "GET /nowhere HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 404 ");
    expect_reply(*state, "PUT /hello HTTP/1.1\r\n" HOST "\r\n", "\r\nAllow: GET, HEAD\r\n");
    expect_reply(*state, "GET /%zz HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400 ");
    expect_reply(*state, "OPTIONS * HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 404 ");
    expect_reply(*state, "CONNECT a:1 HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 501 ");
    expect_reply(*state, "GET /hello HTTP/1.1\r\n" HOST "Expect: magic\r\n\r\n", "HTTP/1.1 417 ");
}

static void malformed_requests_are_refused_and_closed(void **state)
{
    static const char *const requests[] = {
        "GET /hello HTTP/1.1\r\n\r\n",
        "GET /hello HTTP/1.1\r\n" HOST "X : y\r\n\r\nGET /hello HTTP/1.1\r\n" HOST "\r\n",
        "POST /echo HTTP/1.1\r\n" HOST
        "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "nonsense\r\n\r\n",
    };
    struct web *web = *state;

    for (size_t i = 0; i < ARRAY_COUNT(requests); i++) {
        AUTO(free) char *got = reply_until_end(web, requests[i]);

        assert_memory_equal(got, "HTTP/1.1 400 Bad Request\r\n", 26);
        assert_non_null(strstr(got, "\r\nConnection: close\r\n"));
        assert_null(strstr(got, "hello"));
    }
    assert_int_equal(http_server_counters(web->server)->refused_heads, ARRAY_COUNT(requests));
    assert_string_equal(text_string(&web->told), "");
}

/* --- bodies --------------------------------------------------------------------------------- */

static void bodies_are_collected(void **state)
{
    expect_reply(*state, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello",
                 "\r\n\r\nhello");
    expect_reply(*state,
                 "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                 "5\r\nhello\r\n7\r\n, world\r\n0\r\nX: y\r\n\r\n",
                 "\r\n\r\nhello, world");
    expect_reply(*state, "POST /echo HTTP/1.1\r\n" HOST "\r\n", "Content-Length: 0\r\n");
}

static void send_body(struct web *web, struct raw *raw, bool chunked, size_t length)
{
    AUTO(free) char *bytes = mem_alloc(length + 1);
    char line[32];

    testing_fill(bytes, length, 0);
    for (size_t at = 0, part; at < length; at += part) {
        part = length - at < 5000 ? length - at : 5000;
        (void) snprintf(line, sizeof(line), "%zx\r\n", part);
        if (chunked)
            raw_send(raw, &web->loop, line);
        raw_send_bytes(raw, &web->loop, bytes + at, part);
        if (chunked)
            raw_send(raw, &web->loop, "\r\n");
        raw_read(raw);
    }
    if (chunked)
        raw_send(raw, &web->loop, "0\r\n\r\n");
}

static void bodies_are_streamed(void **state)
{
    struct web *web = *state;

    for (int chunked = 0; chunked < 2; chunked++) {
        struct raw raw = start(web);

        raw_send(&raw, &web->loop,
                 chunked ? "POST /count HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                         : "POST /count HTTP/1.1\r\n" HOST "Content-Length: 1000000\r\n\r\n");
        send_body(web, &raw, chunked, 1000000);
        TURN_UNTIL(&web->loop, raw_has(&raw, "counted 1000000\n"));
        raw_close(&raw);
    }
}

static void a_paused_body_stops_its_sender(void **state)
{
    struct web *web = *state;
    AUTO(free) char *bytes = mem_alloc(20 << 20);
    struct raw raw = start(web);
    size_t sent = 0, length = 20 << 20;
    int idle = 0;

    testing_fill(bytes, length, 0);
    raw_send(&raw, &web->loop, "POST /slowly HTTP/1.1\r\n" HOST "Content-Length: 20971520\r\n\r\n");
    while (idle < 5) { /* until nothing moves any more */
        ssize_t part = send(raw.fd, bytes + sent, length - sent, MSG_NOSIGNAL);

        idle = part > 0 ? 0 : idle + 1;
        sent += part > 0 ? (size_t) part : 0;
        testing_turn(&web->loop);
    }
    assert_true(sent < length);
    while (!raw_has(&raw, "counted 20971520\n")) {
        ssize_t part = send(raw.fd, bytes + sent, length - sent, MSG_NOSIGNAL);

        sent += part > 0 ? (size_t) part : 0;
        if (web->waiting)
            http_request_resume(TAKE_PTR(web->waiting));
        (void) uv_run(&web->loop.uv, UV_RUN_NOWAIT);
    }
    raw_close(&raw);
}

static void bodies_over_the_limit_are_refused(void **state)
{
    struct web *web = *state;

    expect_reply(web, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1001\r\n\r\n",
                 "HTTP/1.1 413 ");
    assert_string_equal(text_string(&web->told), ""); /* the handler never saw it */
    for (int chunked = 0; chunked < 2; chunked++) {
        struct raw raw = start(web);

        raw_send(&raw, &web->loop,
                 chunked ? "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                         : "POST /default HTTP/1.1\r\n" HOST "Content-Length: 65537\r\n\r\n");
        send_body(web, &raw, chunked, 65537);
        TURN_UNTIL(&web->loop, raw_has(&raw, "HTTP/1.1 413 "));
        raw_close(&raw);
    }
    assert_string_equal(text_string(&web->told), "gone "); /* once, for the chunked one */
    assert_null(web->waiting);
}

static void the_client_is_asked_to_continue(void **state)
{
    struct web *web = *state;
    struct raw raw = start(web);

    raw_send(&raw, &web->loop,
             "POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    TURN_UNTIL(&web->loop, raw_has(&raw, "HTTP/1.1 100 Continue\r\n\r\n"));
    assert_int_equal(raw_count(&raw, "HTTP/1.1"), 1);
    raw_send(&raw, &web->loop, "hello");
    TURN_UNTIL(&web->loop, raw_has(&raw, "\r\n\r\nhello"));
    raw_close(&raw);
}

/* A client that was never told to continue may leave the body out: what follows would be
 * ambiguous, so the connection must end. */
static void a_final_answer_instead_of_continue_closes(void **state)
{
    static const char *const requests[] = {
        "POST /refuse HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n",
        "POST /nowhere HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n",
        "POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 5000\r\n\r\n",
    };

    for (size_t i = 0; i < ARRAY_COUNT(requests); i++) {
        AUTO(free) char *got = reply_until_end(*state, requests[i]);

        assert_non_null(strstr(got, "HTTP/1.1 4"));
        assert_non_null(strstr(got, "\r\nConnection: close\r\n"));
        assert_null(strstr(got, "100 Continue"));
    }
}

static void a_body_nobody_wants_is_dropped_and_the_next_request_served(void **state)
{
    struct web *web = *state;
    struct raw raw = start(web);

    raw_send(&raw, &web->loop, "POST /refuse HTTP/1.1\r\n" HOST "Content-Length: 100000\r\n\r\n");
    TURN_UNTIL(&web->loop, raw_has(&raw, "HTTP/1.1 403 ")); /* before the body came */
    send_body(web, &raw, false, 100000);
    raw_send(&raw, &web->loop, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    TURN_UNTIL(&web->loop, raw_has(&raw, "hello\n"));
    assert_int_equal(http_server_counters(web->server)->requests, 2);
    assert_int_equal(http_server_counters(web->server)->replies[4], 1);
    raw_close(&raw);
}

static void a_large_body_nobody_wants_ends_the_connection(void **state)
{
    struct web *web = *state;
    struct raw raw = start(web);

    raw_send(&raw, &web->loop, "POST /refuse HTTP/1.1\r\n" HOST "Content-Length: 8000000\r\n\r\n");
    send_body(web, &raw, false, 8000000);
    TURN_UNTIL(&web->loop, raw_is_over(&raw));
    assert_true(raw_has(&raw, "HTTP/1.1 403 "));
    raw_close(&raw);
    TURN_UNTIL(&web->loop, http_server_connections(web->server) == 0);
    assert_int_equal(http_server_counters(web->server)->requests, 1);
}

/* --- clients that leave --------------------------------------------------------------------- */

static void the_handler_learns_that_its_client_left(void **state)
{
    static const char *const requests[] = {
        "GET /wait HTTP/1.1\r\n" HOST "\r\n",
        "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 100\r\n\r\nsome",
        "POST /count HTTP/1.1\r\n" HOST "Content-Length: 100\r\n\r\n",
    };
    struct web *web = *state;

    for (size_t i = 0; i < ARRAY_COUNT(requests); i++) {
        struct raw raw = start(web);

        text_clear(&web->told);
        raw_send(&raw, &web->loop, requests[i]);
        TURN_UNTIL(&web->loop, http_server_connections(web->server) == 1);
        testing_turn(&web->loop);
        raw_close(&raw);
        TURN_UNTIL(&web->loop, strstr(text_string(&web->told), "gone "));
        assert_int_equal(http_server_connections(web->server), 0);
    }
}

static void a_paused_request_that_is_answered_frees_its_connection(void **state)
{
    struct web *web = *state;
    AUTO(free) char *bytes = mem_alloc(300000);
    struct raw raw = start(web);

    testing_fill(bytes, 300000, 0);
    raw_send(&raw, &web->loop, "POST /slowly HTTP/1.1\r\n" HOST "Content-Length: 300000\r\n\r\n");
    (void) !send(raw.fd, bytes, 1000, MSG_NOSIGNAL);
    TURN_UNTIL(&web->loop, web->waiting); /* paused */
    http_reply_text(TAKE_PTR(web->waiting), 503, NULL, "enough");
    raw_send_bytes(&raw, &web->loop, bytes + 1000, 299000);
    raw_send(&raw, &web->loop, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    TURN_UNTIL(&web->loop, raw_has(&raw, "hello\n"));
    assert_true(raw_has(&raw, "enough"));
    raw_close(&raw);
}

static int nobody_is_let_in(struct http_request *request, void *data, struct error *err)
{
    (void) request;
    (void) data;
    return error_set(err, ERR_UNAUTHENTICATED, 0, "who are you?");
}

static int check_name(const struct http_request *request, struct error *err)
{
    const char *name = http_request_parameter(request, "name");

    return name && strcmp(name, "bad") == 0 ? error_set(err, ERR_INVALID, 0, "a bad name") : 0;
}

static void a_dialect_looks_before_anybody_is_asked_for_a_key(void **state)
{
    struct web *web = *state;
    struct http_mount checked = mount;

    checked.check = check_name;
    web->options.authorize = nobody_is_let_in;
    web_serve(web, &checked);
    expect_reply(web, "GET /hello/bad HTTP/1.1\r\n" HOST "\r\n", "a bad name");
    expect_reply(web, "GET /hello/good HTTP/1.1\r\n" HOST "\r\n", "who are you?");
    expect_reply(web, "GET /hello HTTP/1.1\r\n" HOST "\r\n", "who are you?");
}

#define SERVER_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVER_TEST(a_connection_serves_many_requests),
        SERVER_TEST(pipelined_requests_are_answered_in_order),
        SERVER_TEST(heads_and_empty_replies_have_no_body),
        SERVER_TEST(a_reply_of_unknown_length_is_chunked),
        SERVER_TEST(an_old_client_gets_the_end_of_the_connection),
        SERVER_TEST(an_old_client_may_stay),
        SERVER_TEST(a_reply_that_is_too_short_cuts_the_connection),
        SERVER_TEST(a_handler_that_forgets_to_answer_is_answered_for),
        SERVER_TEST(headers_cannot_be_forged),
        SERVER_TEST(what_no_table_knows_is_answered),
        SERVER_TEST(malformed_requests_are_refused_and_closed),
        SERVER_TEST(bodies_are_collected),
        SERVER_TEST(bodies_are_streamed),
        SERVER_TEST(a_paused_body_stops_its_sender),
        SERVER_TEST(bodies_over_the_limit_are_refused),
        SERVER_TEST(the_client_is_asked_to_continue),
        SERVER_TEST(a_final_answer_instead_of_continue_closes),
        SERVER_TEST(a_body_nobody_wants_is_dropped_and_the_next_request_served),
        SERVER_TEST(a_large_body_nobody_wants_ends_the_connection),
        SERVER_TEST(the_handler_learns_that_its_client_left),
        SERVER_TEST(a_paused_request_that_is_answered_frees_its_connection),
        SERVER_TEST(a_dialect_looks_before_anybody_is_asked_for_a_key),
    };

    return cmocka_run_group_tests_name("http_server", tests, NULL, NULL);
}
