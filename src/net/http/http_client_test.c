#include "net/http/http_client_testing.h"

/* --- good peers ----------------------------------------------------------------------------- */

static void a_connection_is_used_again(void **state)
{
    struct bench *bench = *state;
    struct raw raw = {.fd = -1};

    for (int i = 0; i < 3; i++) {
        struct talk talk = {.over = false};

        get(&talk, bench);
        if (raw.fd < 0)
            raw = peer(bench);
        heard(&raw, bench, "GET / HTTP/1.1\r\n");
        answer(&raw, bench, OK "Content-Length: 2\r\n\r\nhi");
        expect_told(&talk, "200(hi)end");
        assert_int_equal(http_origin_connections(bench->origin), 1);
    }
    assert_int_equal(sys_socket_accept(bench->listener, NULL), -EAGAIN);
    raw_close(&raw);
}

static void answers_of_every_framing_are_taken(void **state)
{
    static const struct {
        const char *method, *bytes, *told;
        bool close;
    } rows[] = {
        {"GET", OK "Content-Length: 0\r\n\r\n", "200()end", false},
        {"GET", OK "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX: y\r\n\r\n", "200(hi)end",
         false},
        {"GET", OK "\r\nuntil the end", "200(until the end)end", true},
        {"GET", "HTTP/1.0 200 OK\r\n\r\nold", "200(old)end", true},
        {"HEAD", OK "Content-Length: 9\r\n\r\n", "200()end", false},
        {"GET", "HTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n", "304()end", false},
        {"GET", "HTTP/1.1 204 x\r\n\r\n", "204()end", false},
        {"GET",
         "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 x\r\n\r\n" OK "Content-Length: 1\r\n\r\n1",
         "200(1)end", false},
    };
    struct bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct http_exchange_request request = {.method = rows[i].method, .target = "/"};
        struct talk talk = {.over = false};
        struct raw raw;

        talk_start(&talk, bench, &request);
        raw = peer(bench);
        TURN_UNTIL(&bench->loop, raw_has(&raw, "\r\n\r\n"));
        answer(&raw, bench, rows[i].bytes);
        if (rows[i].close)
            raw_close(&raw);
        expect_told(&talk, rows[i].told);
        raw_close(&raw);
        TURN_UNTIL(&bench->loop, http_origin_connections(bench->origin) == 0);
    }
}

static void request_bodies_are_framed(void **state)
{
    static const struct http_header headers[] = {
        {.name = "Host", .value = "a", .name_length = 4, .value_length = 1}};
    struct http_exchange_request request = {
        .method = "POST", .target = "/x", .headers = headers, .header_count = 1};
    static const struct {
        int64_t length;
        bool send_length;
        const char *expected;
    } rows[] = {
        {5, false, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"},
        {HTTP_LENGTH_UNKNOWN, false,
         "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
         "5\r\nhello\r\n0\r\n\r\n"},
        {0, true, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"},
        {0, false, "POST /x HTTP/1.1\r\nHost: a\r\n\r\n"},
    };
    struct bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct talk talk = {.over = false};
        struct raw raw;

        request.body_length = rows[i].length;
        request.send_length = rows[i].send_length;
        talk_start(&talk, bench, &request);
        http_exchange_write(talk.exchange, "hel", rows[i].length > 0 ? 3 : 0);
        raw = peer(bench);
        testing_turn(&bench->loop);
        if (rows[i].length)
            http_exchange_write(talk.exchange, "hello", 5);
        http_exchange_end(talk.exchange);
        TURN_UNTIL(&bench->loop, raw_has(&raw, i < 2 ? "lo" : "\r\n\r\n"));
        testing_turn(&bench->loop);
        raw_read(&raw);
        if (rows[i].length <= 0)
            assert_string_equal(text_string(&raw.got), rows[i].expected);
        answer(&raw, bench, OK "Content-Length: 0\r\nConnection: close\r\n\r\n");
        expect_told(&talk, "200()end");
        raw_close(&raw);
    }
}

static void an_answer_before_the_body_is_complete_ends_the_connection(void **state)
{
    struct http_exchange_request request = {.method = "PUT", .target = "/", .body_length = 100};
    struct bench *bench = *state;
    struct talk talk = {.over = false};
    struct raw raw;

    talk_start(&talk, bench, &request);
    http_exchange_write(talk.exchange, "some", 4);
    raw = peer(bench);
    answer(&raw, bench, "HTTP/1.1 413 x\r\nContent-Length: 0\r\n\r\n");
    expect_told(&talk, "413()end");
    assert_int_equal(http_origin_connections(bench->origin), 0);
    raw_close(&raw);
}

static void a_new_exchange_may_begin_in_the_last_event(void **state)
{
    struct bench *bench = *state;
    struct talk second = {.over = false}, first = {.next = &second};
    struct raw raw;

    get(&first, bench);
    raw = peer(bench);
    heard(&raw, bench, "GET ");
    answer(&raw, bench, OK "Content-Length: 1\r\n\r\n1");
    expect_told(&first, "200(1)end");
    heard(&raw, bench, "GET "); /* on the same connection */
    answer(&raw, bench, OK "Content-Length: 1\r\n\r\n2");
    expect_told(&second, "200(2)end");
    raw_close(&raw);
}

/* --- kept connections that died ------------------------------------------------------------- */

static void a_safe_request_is_sent_again_when_its_kept_connection_is_dead(void **state)
{
    struct bench *bench = *state;
    struct raw raw = keep_one(bench);
    struct talk talk = {.over = false};

    get(&talk, bench);
    TURN_UNTIL(&bench->loop, raw_has(&raw, "GET "));
    raw_close(&raw); /* read, but not a word of an answer */
    raw = peer(bench);
    heard(&raw, bench, "GET / HTTP/1.1\r\n");
    answer(&raw, bench, OK "Content-Length: 1\r\n\r\n2");
    expect_told(&talk, "200(2)end");
    raw_close(&raw);
}

static void a_request_that_changes_things_is_not_sent_again(void **state)
{
    struct http_exchange_request request = {.method = "POST", .target = "/"};
    struct bench *bench = *state;
    struct raw raw = keep_one(bench);
    struct talk talk = {.over = false};

    talk_start(&talk, bench, &request);
    TURN_UNTIL(&bench->loop, raw_has(&raw, "POST "));
    raw_close(&raw);
    expect_failure(&talk, ERR_UPSTREAM, "without an answer");
}

static void a_request_is_not_sent_again_for_ever(void **state)
{
    struct bench *bench = *state;
    struct raw raw = keep_one(bench);
    struct talk talk = {.over = false};

    get(&talk, bench);
    TURN_UNTIL(&bench->loop, raw_has(&raw, "GET "));
    raw_close(&raw);
    raw = peer(bench);
    heard(&raw, bench, "GET ");
    raw_close(&raw);
    expect_failure(&talk, ERR_UPSTREAM, "without an answer");
}

/* The one that waits must not get a connection on top of the one that is tried again. */
static void sending_again_keeps_the_number_of_connections(void **state)
{
    struct talk first = {.over = false}, second = {.over = false};
    struct bench *bench = *state;
    struct raw raw;

    bench->options.connections_max = 1;
    raw = keep_one(bench);
    get(&first, bench);
    get(&second, bench);
    TURN_UNTIL(&bench->loop, raw_has(&raw, "GET "));
    raw_close(&raw);
    raw = peer(bench);
    assert_int_equal(http_origin_connections(bench->origin), 1);
    for (int i = 0; i < 2; i++) {
        heard(&raw, bench, "GET ");
        answer(&raw, bench, OK "Content-Length: 0\r\n\r\n");
        expect_told(i ? &second : &first, "200()end");
    }
    raw_close(&raw);
}

static void a_kept_connection_that_ends_is_forgotten(void **state)
{
    struct bench *bench = *state;
    struct raw raw = keep_one(bench);

    assert_int_equal(http_origin_connections(bench->origin), 1);
    raw_close(&raw);
    TURN_UNTIL(&bench->loop, http_origin_connections(bench->origin) == 0);
}

/* --- upgrades ------------------------------------------------------------------------------- */

#define SWITCH "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n"

static void finish_upgrade(struct talk *talk, struct raw *raw)
{
    struct bench *bench = talk->bench;

    answer(raw, bench, "later");
    TURN_UNTIL(&bench->loop, strstr(text_string(&talk->told), "later"));
    stream_write(talk->stream, "reply", 5);
    TURN_UNTIL(&bench->loop, raw_has(raw, "reply"));
    stream_close(talk->stream, stream_free);
    TURN_UNTIL(&bench->loop, raw_is_over(raw));
    expect_told(talk, "101|test|earlylater");
    raw_close(raw);
}

static void an_upgrade_hands_the_connection_over(void **state)
{
    struct http_exchange_request request = {.method = "GET", .target = "/", .upgrade = true};
    struct bench *bench = *state;

    for (int close = 0; close < 2; close++) {
        struct talk talk = {.close_origin = close};
        struct raw raw;

        talk_start(&talk, bench, &request);
        raw = peer(bench);
        heard(&raw, bench, "GET ");
        answer(&raw, bench, SWITCH "early");
        TURN_UNTIL(&bench->loop, talk.over);
        if (!close)
            assert_int_equal(http_origin_connections(bench->origin), 0);
        finish_upgrade(&talk, &raw);
    }
    TURN_UNTIL(&bench->loop, bench->closed);
}

static void an_upgrade_may_be_answered_otherwise(void **state)
{
    struct http_exchange_request request = {.method = "GET", .target = "/", .upgrade = true};
    struct bench *bench = *state;
    struct talk talk = {.over = false};
    struct raw raw;

    talk_start(&talk, bench, &request);
    raw = peer(bench);
    heard(&raw, bench, "GET ");
    answer(&raw, bench, "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno");
    expect_told(&talk, "403(no)end");
    raw_close(&raw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLIENT_TEST(a_connection_is_used_again),
        CLIENT_TEST(answers_of_every_framing_are_taken),
        CLIENT_TEST(request_bodies_are_framed),
        CLIENT_TEST(an_answer_before_the_body_is_complete_ends_the_connection),
        CLIENT_TEST(a_new_exchange_may_begin_in_the_last_event),
        CLIENT_TEST(a_safe_request_is_sent_again_when_its_kept_connection_is_dead),
        CLIENT_TEST(a_request_that_changes_things_is_not_sent_again),
        CLIENT_TEST(a_request_is_not_sent_again_for_ever),
        CLIENT_TEST(sending_again_keeps_the_number_of_connections),
        CLIENT_TEST(a_kept_connection_that_ends_is_forgotten),
        CLIENT_TEST(an_upgrade_hands_the_connection_over),
        CLIENT_TEST(an_upgrade_may_be_answered_otherwise),
    };

    return cmocka_run_group_tests_name("http_client", tests, NULL, NULL);
}
