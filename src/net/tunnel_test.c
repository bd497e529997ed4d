/* Tunnels of WebSockets that are ended from outside; what goes through them is http_proxy_test's. */
#include "net/http/http_testing.h"
#include "net/tunnel.h"

#define FRAME  "\x82\x05hello"
#define CLOSED "\x88\x15\x03\xf0the port was closed"

struct tunnel_test {
    struct loop loop;
    struct tunnel_watch watch;
    struct raw client, upstream;
    bool is_over;
};

static void tunnel_test_failed(struct stream *stream, int error)
{
    (void) stream;
    (void) error;
}

static struct stream *side_new(struct tunnel_test *test, struct raw *ret_peer)
{
    static const struct stream_events events = {.on_failure = tunnel_test_failed};
    struct stream *stream = mem_alloc(sizeof(*stream));
    int fds[2];

    testing_pair(fds, false);
    assert_int_equal(stream_init(stream, &test->loop, fds[0], NULL, false, &events), 0);
    *ret_peer = raw_take(fds[1]);
    return stream;
}

static void tunnel_test_over(struct tunnel_watch *watch)
{
    CONTAINER_OF(watch, struct tunnel_test, watch)->is_over = true;
}

static int setup(void **state)
{
    struct tunnel_test *test = test_calloc(1, sizeof(*test));

    (void) signal(SIGPIPE, SIG_IGN);
    test->watch.ended = tunnel_test_over;
    *state = test;
    return loop_init(&test->loop, NULL);
}

/* Joined; `pending` came from upstream already. */
static void begin(struct tunnel_test *test, bool is_websocket, const char *pending)
{
    const struct tunnel_options options = {.watch = &test->watch, .is_websocket = is_websocket};
    struct stream *client = side_new(test, &test->client);

    tunnel_start(client, NULL, 0, side_new(test, &test->upstream), pending, strlen(pending),
                 &options);
}

static int teardown(void **state)
{
    struct tunnel_test *test = *state;

    TURN_UNTIL(&test->loop, test->is_over);
    raw_close(&test->client);
    raw_close(&test->upstream);
    loop_run(&test->loop);
    loop_done(&test->loop);
    test_free(test);
    return 0;
}

#define HEARD(test, raw, text) TURN_UNTIL(&(test)->loop, raw_has((raw), (text)))
#define SAY(test, raw, text)   raw_send((raw), &(test)->loop, (text))

static void the_client_of_a_websocket_is_told_why(void **state)
{
    struct tunnel_test *test = *state;

    begin(test, true, FRAME);
    SAY(test, &test->upstream, FRAME);
    HEARD(test, &test->client, FRAME FRAME);
    tunnel_expel(test->watch.tunnel, "the port was closed");
    tunnel_expel(test->watch.tunnel, "once is enough");
    HEARD(test, &test->client, FRAME FRAME CLOSED);
    TURN_UNTIL(&test->loop, raw_is_over(&test->upstream)); /* at once, whatever the client does */
    assert_false(test->is_over);
    raw_send_bytes(&test->client, &test->loop, "\x82\x82\0\0\0\0hi", 8);
    raw_send_bytes(&test->client, &test->loop, "\x88\x82\0\0\0\0\x03\xf0", 8);
    TURN_UNTIL(&test->loop, raw_is_over(&test->client));
    assert_int_equal(test->upstream.got.length, 0);
    assert_int_equal(raw_count(&test->client, "\x88"), 1);
    assert_int_equal(shutdown(test->client.fd, SHUT_WR), 0);
}

static void whoever_does_not_answer_is_cut_all_the_same(void **state)
{
    struct tunnel_test *test = *state;

    begin(test, true, "");
    tunnel_expel(test->watch.tunnel, "the port was closed");
    HEARD(test, &test->client, CLOSED);
    tunnel_cut(test->watch.tunnel);
    TURN_UNTIL(&test->loop, raw_is_over(&test->client));
}

/* A close frame in the middle of another would be part of it. */
static void no_frame_is_put_into_another(void **state)
{
    struct tunnel_test *test = *state;

    begin(test, true, FRAME "\x82\x05hel");
    HEARD(test, &test->client, "\x05hel");
    tunnel_expel(test->watch.tunnel, "the port was closed");
    TURN_UNTIL(&test->loop, raw_is_over(&test->client) && raw_is_over(&test->upstream));
    assert_false(raw_has(&test->client, "\x88"));
}

static void other_protocols_are_cut(void **state)
{
    struct tunnel_test *test = *state;

    begin(test, false, FRAME);
    HEARD(test, &test->client, FRAME);
    tunnel_expel(test->watch.tunnel, "the port was closed");
    TURN_UNTIL(&test->loop, raw_is_over(&test->client) && raw_is_over(&test->upstream));
    assert_false(raw_has(&test->client, "\x88"));
}

#define TUNNEL_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void what_goes_each_way_is_counted(void **state)
{
    struct tunnel_test *test = *state;

    begin(test, false, "hello");
    raw_send(&test->client, &test->loop, "to upstream");
    TURN_UNTIL(&test->loop, raw_has(&test->upstream, "to upstream"));
    raw_send(&test->upstream, &test->loop, "back");
    TURN_UNTIL(&test->loop, raw_has(&test->client, "helloback"));
    assert_int_equal(test->watch.from_client, strlen("to upstream"));
    assert_int_equal(test->watch.from_upstream, strlen("helloback"));
    tunnel_cut(test->watch.tunnel);
}

static void one_that_is_forgotten_tells_nobody(void **state)
{
    struct tunnel_test *test = *state;

    begin(test, false, "");
    tunnel_forget(test->watch.tunnel);
    tunnel_cut(test->watch.tunnel);
    TURN_UNTIL(&test->loop, raw_is_over(&test->client) && raw_is_over(&test->upstream));
    loop_run(&test->loop);
    assert_false(test->is_over);
    test->is_over = true; /* so far for teardown */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TUNNEL_TEST(the_client_of_a_websocket_is_told_why),
        TUNNEL_TEST(whoever_does_not_answer_is_cut_all_the_same),
        TUNNEL_TEST(no_frame_is_put_into_another),
        TUNNEL_TEST(other_protocols_are_cut),
        TUNNEL_TEST(what_goes_each_way_is_counted),
        TUNNEL_TEST(one_that_is_forgotten_tells_nobody),
    };

    return cmocka_run_group_tests_name("tunnel", tests, NULL, NULL);
}
