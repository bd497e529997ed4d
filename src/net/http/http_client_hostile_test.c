/* The client with peers that lie, flood, stall or vanish, and with callers that give up. */
#include "net/http/http_client_testing.h"

/* --- hostile peers -------------------------------------------------------------------------- */

static void hostile_answers_fail(void **state)
{
    static const struct {
        const char *bytes, *part;
        bool close;
    } rows[] = {
        {"SSH-2.0-OpenSSH\r\n", "malformed HTTP response", false},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
         "malformed HTTP response", false},
        {"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", "folded", false},
        {"HTTP/2.0 200 OK\r\n\r\n", "only HTTP/1.0 and HTTP/1.1", false},
        {"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
         "without being asked", false},
        {"", "without an answer", true},
        {"HTTP/1.1 200 O", "without an answer", true},
        {"HTTP/1.1 100 Continue\r\n\r\n", "without an answer", true},
        {OK "Content-Length: 5\r\n\r\nhel", "broke off", true},
        {OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "broke off", true},
        {OK "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", "malformed HTTP response", false},
    };
    struct bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct talk talk = {.over = false};
        struct raw raw;

        get(&talk, bench);
        raw = peer(bench);
        heard(&raw, bench, "GET ");
        answer(&raw, bench, rows[i].bytes);
        if (rows[i].close)
            raw_close(&raw);
        expect_failure(&talk, ERR_UPSTREAM, rows[i].part);
        assert_int_equal(http_origin_connections(bench->origin), 0);
        raw_close(&raw);
    }
}

static void answers_without_end_fail(void **state)
{
    static const struct {
        const char *first, *again, *part;
    } rows[] = {
        {"", "HTTP/1.1 100 Continue\r\n\r\n", "interim responses without end"},
        {OK, "X-Header: 0123456789\r\n", "too many headers"},
        {OK "X: ", "0123456789abcdef", "too large"},
        {OK "Transfer-Encoding: chunked\r\n\r\n1;", "0123456789abcdef", "framing"},
    };
    struct bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct talk talk = {.over = false};
        struct raw raw;

        get(&talk, bench);
        raw = peer(bench);
        heard(&raw, bench, "GET ");
        answer(&raw, bench, rows[i].first);
        for (int n = 0; n < 20000 && !talk.over; n++) {
            raw_send(&raw, &bench->loop, rows[i].again);
            (void) uv_run(&bench->loop.uv, UV_RUN_NOWAIT);
        }
        expect_failure(&talk, ERR_UPSTREAM, rows[i].part);
        raw_close(&raw);
    }
}

static void data_nobody_asked_for_ends_the_connection(void **state)
{
    struct bench *bench = *state;
    struct raw raw = keep_one(bench);
    struct talk talk = {.over = false};

    answer(&raw, bench, OK "Content-Length: 6\r\n\r\nforged");
    TURN_UNTIL(&bench->loop, http_origin_connections(bench->origin) == 0);
    raw_close(&raw);
    get(&talk, bench);
    raw = peer(bench);
    heard(&raw, bench, "GET ");
    answer(&raw, bench, OK "Content-Length: 4\r\n\r\ntrue" OK "Content-Length: 6\r\n\r\nforged");
    expect_told(&talk, "200(true)end");
    assert_int_equal(http_origin_connections(bench->origin), 0); /* not kept: it said too much */
    raw_close(&raw);
}

/* --- time and number ------------------------------------------------------------------------ */

static void a_silent_peer_runs_out_of_time(void **state)
{
    struct bench *bench = *state;
    struct talk talk = {.over = false};
    struct raw raw;

    bench->options.head_timeout_ms = 60;
    get(&talk, bench);
    raw = peer(bench);
    expect_failure(&talk, ERR_UPSTREAM_TIMEOUT, "did not answer in time");
    raw_close(&raw);
}

static void a_peer_that_stops_in_the_middle_runs_out_of_time(void **state)
{
    struct bench *bench = *state;
    struct talk talk = {.over = false};
    struct raw raw;

    bench->options.body_timeout_ms = 60;
    get(&talk, bench);
    raw = peer(bench);
    answer(&raw, bench, OK "Content-Length: 9\r\n\r\nsome");
    expect_failure(&talk, ERR_UPSTREAM_TIMEOUT, "in the middle");
    raw_close(&raw);
}

static void a_pause_of_our_own_is_not_the_peers_silence(void **state)
{
    struct bench *bench = *state;
    struct talk talk = {.over = false};
    uint64_t start_ms;
    struct raw raw;

    bench->options.body_timeout_ms = 60;
    get(&talk, bench);
    raw = peer(bench);
    answer(&raw, bench, OK "Content-Length: 8\r\n\r\nsome");
    TURN_UNTIL(&bench->loop, strstr(text_string(&talk.told), "some"));
    http_exchange_pause(talk.exchange);
    answer(&raw, bench, "more");
    start_ms = loop_now(&bench->loop);
    TURN_UNTIL(&bench->loop, loop_now(&bench->loop) > start_ms + 250);
    assert_false(talk.over);
    http_exchange_resume(talk.exchange);
    expect_told(&talk, "200(somemore)end");
    raw_close(&raw);
}

static void a_peer_that_does_not_accept_runs_out_of_time(void **state)
{
    struct bench *bench = *state;
    struct raw fillers[4];
    struct talk talk = {.over = false};
    struct sys_address address;

    (void) fd_close(bench->listener);
    assert_int_equal(sys_address_parse("127.0.0.1:0", &address), 0);
    bench->listener = sys_socket_listen(&address, 1, 0);
    assert_int_equal(sys_socket_local_address(bench->listener, &address), 0);
    sys_address_format(&address, bench->address);
    for (size_t i = 0; i < ARRAY_COUNT(fillers); i++) /* the kernel's queue is full then */
        fillers[i] = raw_connect(ntohs(address.ipv4.sin_port));
    bench->options.connect_timeout_ms = 100;
    get(&talk, bench);
    expect_failure(&talk, ERR_UPSTREAM_TIMEOUT, "did not accept");
    for (size_t i = 0; i < ARRAY_COUNT(fillers); i++)
        raw_close(&fillers[i]);
}

static void a_refused_connection_fails(void **state)
{
    struct bench *bench = *state;
    struct talk talk = {.over = false}, second = {.over = false};

    bench->listener = fd_close(bench->listener);
    talk.next = &second;
    get(&talk, bench);
    expect_failure(&talk, ERR_UPSTREAM, "cannot connect");
    expect_failure(&second, ERR_UPSTREAM, "cannot connect");
    assert_int_equal(http_origin_connections(bench->origin), 0);
}

static void exchanges_wait_in_a_bounded_queue(void **state)
{
    struct talk talks[4] = {{.over = false}};
    struct bench *bench = *state;
    struct raw raw;

    bench->options.connections_max = 1;
    bench->options.waiting_max = 2;
    for (int i = 0; i < 4; i++)
        get(&talks[i], bench);
    expect_failure(&talks[3], ERR_UNAVAILABLE, "too many requests wait");
    raw = peer(bench);
    http_exchange_cancel(TAKE_PTR(talks[1].exchange)); /* one of those that wait */
    text_done(&talks[1].told);
    for (int i = 0; i < 3; i += 2) {
        heard(&raw, bench, "GET ");
        answer(&raw, bench, OK "Content-Length: 0\r\n\r\n");
        expect_told(&talks[i], "200()end");
    }
    assert_int_equal(sys_socket_accept(bench->listener, NULL), -EAGAIN);
    raw_close(&raw);
}

/* --- giving up ------------------------------------------------------------------------------ */

static void an_exchange_may_be_cancelled_in_every_event(void **state)
{
    static const struct {
        enum event event;
        const char *told;
    } rows[] = {{ON_HEAD, "200(cancelled"}, {ON_BODY, "200(12cancelled"}};
    struct bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct talk talk = {.cancel_on = rows[i].event};
        struct raw raw;

        get(&talk, bench);
        raw = peer(bench);
        heard(&raw, bench, "GET ");
        answer(&raw, bench, OK "Transfer-Encoding: chunked\r\n\r\n2\r\n12\r\n2\r\n34\r\n0\r\n\r\n");
        expect_told(&talk, rows[i].told);
        assert_int_equal(http_origin_connections(bench->origin), 0);
        TURN_UNTIL(&bench->loop, raw_is_over(&raw));
        raw_close(&raw);
    }
}

static void a_slow_peer_stops_the_request_body(void **state)
{
    struct http_exchange_request request = {
        .method = "PUT", .target = "/", .body_length = HTTP_LENGTH_UNKNOWN};
    struct bench *bench = *state;
    AUTO(free) char *bytes = mem_alloc(65536);
    struct talk talk = {.over = false};
    struct raw raw;

    talk_start(&talk, bench, &request);
    raw = peer(bench);
    for (int i = 0; i < 2000 && !http_exchange_is_full(talk.exchange); i++) {
        http_exchange_write(talk.exchange, bytes, 65536);
        (void) uv_run(&bench->loop.uv, UV_RUN_NOWAIT);
    }
    assert_true(http_exchange_is_full(talk.exchange));
    TURN_UNTIL(&bench->loop, (raw_read(&raw), strstr(text_string(&talk.told), "drain ")));
    talk.cancel_on = ON_DRAIN; /* the next one */
    for (int i = 0; i < 2000 && !http_exchange_is_full(talk.exchange); i++) {
        http_exchange_write(talk.exchange, bytes, 65536);
        (void) uv_run(&bench->loop.uv, UV_RUN_NOWAIT);
    }
    TURN_UNTIL(&bench->loop, (raw_read(&raw), talk.over));
    expect_told(&talk, "drain drain cancelled");
    raw_close(&raw);
}

static void closing_the_origin_fails_what_is_under_way(void **state)
{
    struct talk talks[3] = {{.over = false}};
    struct bench *bench = *state;
    struct raw raw;

    bench->options.connections_max = 1;
    raw = keep_one(bench);
    for (int i = 0; i < 3; i++)
        get(&talks[i], bench);
    close_origin(bench);
    for (int i = 0; i < 3; i++)
        expect_failure(&talks[i], ERR_CANCELLED, "taken away");
    raw_close(&raw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLIENT_TEST(hostile_answers_fail),
        CLIENT_TEST(answers_without_end_fail),
        CLIENT_TEST(data_nobody_asked_for_ends_the_connection),
        CLIENT_TEST(a_silent_peer_runs_out_of_time),
        CLIENT_TEST(a_peer_that_stops_in_the_middle_runs_out_of_time),
        CLIENT_TEST(a_pause_of_our_own_is_not_the_peers_silence),
        CLIENT_TEST(a_peer_that_does_not_accept_runs_out_of_time),
        CLIENT_TEST(a_refused_connection_fails),
        CLIENT_TEST(exchanges_wait_in_a_bounded_queue),
        CLIENT_TEST(an_exchange_may_be_cancelled_in_every_event),
        CLIENT_TEST(a_slow_peer_stops_the_request_body),
        CLIENT_TEST(closing_the_origin_fails_what_is_under_way),
    };

    return cmocka_run_group_tests_name("http_client_hostile", tests, NULL, NULL);
}
