/* The server over time: time limits, slow clients, draining, upgrades. */
#include "net/http/http_testing.h"

#define HOST  "Host: a\r\n"
#define LARGE ((size_t) 12 * 1024 * 1024)
#define PIECE ((size_t) 32 * 1024)
#define CLOSE "Connection: close\r\n"

static void gone(struct http_request *request)
{
    text_append(&web_of(request)->told, "gone ");
    web_of(request)->waiting = NULL;
}

static void say_hello(struct http_request *request)
{
    http_reply_text(request, 200, "text/plain", "hello\n");
}

static void wait_for_test(struct http_request *request)
{
    request->on_gone = gone;
    web_of(request)->waiting = request;
}

static void collected(struct http_request *request, const char *body, size_t length)
{
    http_reply(request, 200, NULL, body, length);
}

static void collect(struct http_request *request)
{
    request->on_gone = gone;
    http_request_collect(request, collected);
}

/* Writes LARGE bytes, stopping whenever it should. */
static void produce(struct http_request *request)
{
    uint64_t *made = request->data;
    char bytes[PIECE];

    while (*made < LARGE && !http_reply_is_full(request)) {
        testing_fill(bytes, sizeof(bytes), *made);
        *made += sizeof(bytes);
        http_reply_write(request, bytes, sizeof(bytes));
    }
    if (*made == LARGE)
        http_reply_end(request);
}

static void start_producing(struct http_request *request)
{
    request->data = pool_alloc(&request->pool, sizeof(uint64_t));
    request->on_gone = gone;
    request->on_drain = produce;
    http_reply_begin(request, 200, NULL, (int64_t) LARGE);
    produce(request);
}

static void all_at_once(struct http_request *request)
{
    AUTO(free) char *bytes = mem_alloc(LARGE);

    testing_fill(bytes, LARGE, 0);
    http_reply(request, 200, NULL, bytes, LARGE);
}

static void medium(struct http_request *request)
{
    char bytes[PIECE];

    testing_fill(bytes, sizeof(bytes), 0);
    http_reply(request, 200, NULL, bytes, sizeof(bytes));
}

/* --- an upgraded connection ----------------------------------------------------------------- */

struct guest {
    struct http_guest guest;
    struct stream *stream;
    struct web *web;
};

static void guest_closed(struct stream *stream)
{
    struct guest *guest = stream->owner;

    http_guest_leave(&guest->guest);
    stream_free(stream);
    free(guest);
}

static void guest_data(struct stream *stream, const char *bytes, size_t length)
{
    struct guest *guest = stream->owner;

    text_append_bytes(&guest->web->told, bytes, length);
    stream_write(stream, "heard", 5);
}

static void guest_end(struct stream *stream)
{
    stream_close(stream, guest_closed);
}

static void guest_failed(struct stream *stream, int error)
{
    (void) error;
    stream_close(stream, guest_closed);
}

static const struct stream_events guest_events = {
    .on_data = guest_data, .on_end = guest_end, .on_failure = guest_failed};

static void guest_shuts_down(struct http_guest *guest, enum http_leave how, const char *reason)
{
    struct guest *self = CONTAINER_OF(guest, struct guest, guest);

    (void) reason;
    text_append(&self->web->told, how == HTTP_LEAVE_POLITELY ? "please " : "now ");
    if (how != HTTP_LEAVE_POLITELY)
        stream_close(self->stream, guest_closed);
}

static void take_over(struct http_request *request)
{
    AUTO(text) struct text pending = TEXT_INIT(RAW_MAX);
    struct http_server *server = http_request_server(request);
    struct web *web = web_of(request);
    struct error error = ERROR_INIT;
    struct stream *stream;
    struct guest *guest;

    (void) http_reply_header(request, "X-Taken", "yes");
    stream = http_reply_upgrade(request, "test", &pending, &error);
    if (!stream) {
        http_reply_error(request, &error);
        return;
    }
    guest = mem_alloc(sizeof(*guest));
    guest->stream = stream;
    guest->web = web;
    stream_set_owner(stream, guest, &guest_events);
    http_guest_enter(&guest->guest, server, NULL, guest_shuts_down);
    text_append_bytes(&web->told, text_string(&pending), pending.length);
}

static const struct http_route routes[] = {
    {.method = "GET", .pattern = "/hello", .handle = say_hello},
    {.method = "GET", .pattern = "/wait", .handle = wait_for_test},
    {.method = "POST", .pattern = "/collect", .handle = collect},
    {.method = "GET", .pattern = "/produce", .handle = start_producing},
    {.method = "GET", .pattern = "/large", .handle = all_at_once},
    {.method = "GET", .pattern = "/medium", .handle = medium},
    {.method = "GET", .pattern = "/upgrade", .handle = take_over},
    {.method = "GET", .pattern = "/later", .handle = wait_for_test},
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

/* --- time ----------------------------------------------------------------------------------- */

static void a_head_that_trickles_in_is_refused(void **state)
{
    static const char head[] = "GET /hello HTTP/1.1\r\nHost: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    struct web *web = *state;
    struct raw raw;

    web->options.head_timeout_ms = 100;
    raw = start(web);
    for (size_t i = 0; i < strlen(head) && !raw_is_over(&raw); i++) {
        raw_send_bytes(&raw, &web->loop, head + i, 1);
        testing_turn(&web->loop);
    }
    TURN_UNTIL(&web->loop, raw_is_over(&raw));
    assert_true(raw_has(&raw, "HTTP/1.1 408 "));
    assert_int_equal(http_server_counters(web->server)->timeouts, 1);
    raw_close(&raw);
}

static void an_idle_connection_is_closed_without_a_word(void **state)
{
    struct web *web = *state;
    struct raw fresh, used;

    web->options.idle_timeout_ms = 100;
    fresh = start(web);
    used = start(web);
    raw_send(&used, &web->loop, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    TURN_UNTIL(&web->loop, raw_is_over(&fresh) && raw_is_over(&used));
    assert_int_equal(fresh.got.length, 0);
    assert_int_equal(raw_count(&used, "HTTP/1.1"), 1);
    raw_close(&fresh);
    raw_close(&used);
}

static void a_body_that_stops_coming_is_refused(void **state)
{
    struct web *web = *state;
    struct raw raw;

    web->options.body_timeout_ms = 100;
    raw = start(web);
    raw_send(&raw, &web->loop, "POST /collect HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nabc");
    TURN_UNTIL(&web->loop, raw_is_over(&raw));
    assert_true(raw_has(&raw, "HTTP/1.1 408 "));
    assert_string_equal(text_string(&web->told), "gone ");
    raw_close(&raw);
}

static void a_handler_may_take_its_time(void **state)
{
    struct web *web = *state;
    struct raw raw;
    uint64_t start_ms;

    /* Long enough for the request to come, far shorter than the handler takes. */
    web->options.head_timeout_ms = web->options.body_timeout_ms = 300;
    web->options.idle_timeout_ms = web->options.stall_timeout_ms = 300;
    raw = start(web);
    raw_send(&raw, &web->loop, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
    TURN_UNTIL(&web->loop, web->waiting);
    start_ms = loop_now(&web->loop);
    TURN_UNTIL(&web->loop, loop_now(&web->loop) > start_ms + 1500);
    http_reply_text(TAKE_PTR(web->waiting), 200, NULL, "at last");
    TURN_UNTIL(&web->loop, raw_has(&raw, "at last"));
    raw_close(&raw);
}

/* --- slow clients --------------------------------------------------------------------------- */

static void a_client_that_takes_nothing_is_cut(void **state)
{
    struct web *web = *state;
    struct raw raw;

    web->options.stall_timeout_ms = 100;
    raw = start(web);
    raw_send(&raw, &web->loop, "GET /produce HTTP/1.1\r\n" HOST "\r\n");
    TURN_UNTIL(&web->loop, strstr(text_string(&web->told), "gone"));
    assert_int_equal(http_server_counters(web->server)->timeouts, 1);
    assert_int_equal(http_server_connections(web->server), 0);
    raw_close(&raw);
}

static void expect_series(struct raw *raw, size_t length)
{
    const char *body = strstr(text_string(&raw->got), "\r\n\r\n");

    assert_non_null(body);
    body += 4;
    assert_int_equal(raw->got.length - (size_t) (body - raw->got.data), length);
    for (size_t i = 0; i < length; i++) {
        if (body[i] != testing_byte(i))
            fail_msg("byte %zu is wrong", i);
    }
}

static void a_slow_reader_stops_the_producer(void **state)
{
    struct web *web = *state;
    struct raw raw = start(web);

    raw_send(&raw, &web->loop, "GET /produce HTTP/1.1\r\n" HOST CLOSE "\r\n");
    for (int i = 0; i < 20; i++)
        testing_turn(&web->loop);
    assert_true(http_server_counters(web->server)->bytes_sent < LARGE);
    TURN_UNTIL(&web->loop, raw_is_over(&raw));
    expect_series(&raw, LARGE);
    assert_string_equal(text_string(&web->told), "");
    raw_close(&raw);
}

/* Slower than any fixed time for the end, but never still. */
static void a_slow_reader_gets_the_end_of_its_last_reply(void **state)
{
    struct web *web = *state;
    char buffer[16384];
    struct raw raw;

    raw = start(web);
    raw_send(&raw, &web->loop, "GET /large HTTP/1.1\r\n" HOST CLOSE "\r\n");
    for (uint64_t start_ms = loop_now(&web->loop); loop_now(&web->loop) < start_ms + 2800;) {
        ssize_t got = recv(raw.fd, buffer, sizeof(buffer), 0);

        testing_turn(&web->loop);
        if (got > 0)
            text_append_bytes(&raw.got, buffer, (size_t) got);
    }
    TURN_UNTIL(&web->loop, raw_is_over(&raw));
    assert_int_equal(raw.error, 0);
    expect_series(&raw, LARGE);
    raw_close(&raw);
}

static void a_client_that_asks_but_does_not_read_is_not_served_without_end(void **state)
{
    enum { REQUESTS = 800 };
    struct web *web = *state;
    struct raw raw = start(web);

    for (int i = 0; i < REQUESTS; i++)
        raw_send(&raw, &web->loop, "GET /medium HTTP/1.1\r\n" HOST "\r\n");
    for (int i = 0; i < 20; i++)
        testing_turn(&web->loop);
    assert_true(http_server_counters(web->server)->bytes_sent < REQUESTS * PIECE / 2);
    TURN_UNTIL(&web->loop, raw_count(&raw, "HTTP/1.1 200 OK") == REQUESTS);
    assert_false(raw.ended);
    raw_close(&raw);
}

static void more_connections_than_allowed_wait(void **state)
{
    struct web *web = *state;
    struct raw raws[3];

    web->options.connections_max = 2;
    for (int i = 0; i < 3; i++) {
        raws[i] = start(web);
        raw_send(&raws[i], &web->loop, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    }
    TURN_UNTIL(&web->loop, raw_has(&raws[0], "hello\n") && raw_has(&raws[1], "hello\n"));
    for (int i = 0; i < 5; i++)
        testing_turn(&web->loop);
    assert_false(raw_has(&raws[2], "hello\n"));
    raw_close(&raws[0]);
    TURN_UNTIL(&web->loop, raw_has(&raws[2], "hello\n"));
    raw_close(&raws[1]);
    raw_close(&raws[2]);
}

/* --- draining ------------------------------------------------------------------------------- */

static void draining_waits_for_requests_and_closes_the_rest(void **state)
{
    struct web *web = *state;
    struct raw idle = start(web), busy = start(web), late;

    raw_send(&busy, &web->loop,
             "GET /wait HTTP/1.1\r\n" HOST "\r\nGET /hello HTTP/1.1\r\n" HOST "\r\n");
    TURN_UNTIL(&web->loop, web->waiting && http_server_connections(web->server) == 2);
    http_server_drain(web->server, 60000, web_drained, web);
    TURN_UNTIL(&web->loop, raw_is_over(&idle));
    assert_false(web->drained);
    late = raw_connect(web->port);
    TURN_UNTIL(&web->loop, raw_is_over(&late));
    assert_int_equal(late.error, ECONNREFUSED);
    http_reply_text(TAKE_PTR(web->waiting), 200, NULL, "last words");
    TURN_UNTIL(&web->loop, raw_is_over(&busy));
    assert_true(raw_has(&busy, "last words"));
    assert_true(raw_has(&busy, "\r\nConnection: close\r\n"));
    assert_false(raw_has(&busy, "hello"));
    raw_close(&busy);
    raw_close(&idle);
    raw_close(&late);
    TURN_UNTIL(&web->loop, web->drained);
}

static void draining_cuts_what_takes_too_long(void **state)
{
    struct web *web = *state;
    struct raw raw = start(web);

    raw_send(&raw, &web->loop, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
    TURN_UNTIL(&web->loop, web->waiting);
    http_server_drain(web->server, 50, web_drained, web);
    TURN_UNTIL(&web->loop, web->drained);
    assert_string_equal(text_string(&web->told), "gone ");
    TURN_UNTIL(&web->loop, raw_is_over(&raw));
    raw_close(&raw);
}

/* --- upgrades ------------------------------------------------------------------------------- */

#define UPGRADE "Connection: Upgrade\r\nUpgrade: test\r\n"

static void an_upgrade_hands_the_connection_over(void **state)
{
    struct web *web = *state;
    struct raw raw = start(web);

    raw_send(&raw, &web->loop, "GET /upgrade HTTP/1.1\r\n" HOST UPGRADE "\r\nearly");
    TURN_UNTIL(&web->loop, raw_has(&raw, "\r\n\r\n"));
    assert_true(raw_has(&raw, "HTTP/1.1 101 Switching Protocols\r\n"));
    assert_true(raw_has(&raw, "\r\nUpgrade: test\r\n") && raw_has(&raw, "\r\nX-Taken: yes\r\n"));
    assert_string_equal(text_string(&web->told), "early");
    raw_send(&raw, &web->loop, " and late");
    TURN_UNTIL(&web->loop, raw_has(&raw, "heard"));
    assert_string_equal(text_string(&web->told), "early and late");
    assert_int_equal(http_server_connections(web->server), 1);
    raw_close(&raw);
    TURN_UNTIL(&web->loop, http_server_connections(web->server) == 0);
}

static void much_that_came_before_an_upgrade_does_not_stop_it(void **state)
{
    struct web *web = *state;
    AUTO(free) char *bytes = mem_alloc(300000);
    struct raw raw = start(web);

    memset(bytes, 'x', 300000);
    raw_send(&raw, &web->loop, "GET /later HTTP/1.1\r\n" HOST UPGRADE "\r\n");
    TURN_UNTIL(&web->loop, web->waiting);
    raw_send_bytes(&raw, &web->loop, bytes, 300000);
    for (int i = 0; i < 5; i++)
        testing_turn(&web->loop);
    take_over(TAKE_PTR(web->waiting));
    TURN_UNTIL(&web->loop, web->told.length == 300000);
    raw_close(&raw);
}

static void a_request_without_upgrade_is_told_so(void **state)
{
    struct web *web = *state;
    struct raw raw = start(web);

    raw_send(&raw, &web->loop, "GET /upgrade HTTP/1.1\r\n" HOST "\r\n");
    TURN_UNTIL(&web->loop, raw_has(&raw, "HTTP/1.1 426 "));
    raw_close(&raw);
}

static void an_upgrade_nobody_takes_is_an_ordinary_request(void **state)
{
    struct web *web = *state;
    struct raw raw = start(web);

    raw_send(&raw, &web->loop,
             "GET /hello HTTP/1.1\r\n" HOST UPGRADE "\r\nGET /hello HTTP/1.1\r\n" HOST "\r\n");
    TURN_UNTIL(&web->loop, raw_count(&raw, "hello\n") == 2);
    raw_close(&raw);
}

static void draining_asks_guests_and_then_insists(void **state)
{
    struct web *web = *state;
    struct raw raw = start(web);

    raw_send(&raw, &web->loop, "GET /upgrade HTTP/1.1\r\n" HOST UPGRADE "\r\n");
    TURN_UNTIL(&web->loop, raw_has(&raw, "\r\n\r\n"));
    http_server_drain(web->server, 50, web_drained, web);
    assert_string_equal(text_string(&web->told), "please ");
    TURN_UNTIL(&web->loop, web->drained);
    assert_string_equal(text_string(&web->told), "please now ");
    raw_close(&raw);
}

#define SERVER_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVER_TEST(a_head_that_trickles_in_is_refused),
        SERVER_TEST(an_idle_connection_is_closed_without_a_word),
        SERVER_TEST(a_body_that_stops_coming_is_refused),
        SERVER_TEST(a_handler_may_take_its_time),
        SERVER_TEST(a_client_that_takes_nothing_is_cut),
        SERVER_TEST(a_slow_reader_stops_the_producer),
        SERVER_TEST(a_slow_reader_gets_the_end_of_its_last_reply),
        SERVER_TEST(a_client_that_asks_but_does_not_read_is_not_served_without_end),
        SERVER_TEST(more_connections_than_allowed_wait),
        SERVER_TEST(draining_waits_for_requests_and_closes_the_rest),
        SERVER_TEST(draining_cuts_what_takes_too_long),
        SERVER_TEST(an_upgrade_hands_the_connection_over),
        SERVER_TEST(much_that_came_before_an_upgrade_does_not_stop_it),
        SERVER_TEST(a_request_without_upgrade_is_told_so),
        SERVER_TEST(an_upgrade_nobody_takes_is_an_ordinary_request),
        SERVER_TEST(draining_asks_guests_and_then_insists),
    };

    return cmocka_run_group_tests_name("http_server_flow", tests, NULL, NULL);
}
