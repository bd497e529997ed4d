/* Tunnels of WebSockets that are ended from outside; what goes through them is http_proxy_test's. */
#include "net/http/http_testing.h"
#include "net/tunnel.h"

#define FRAME  "\x82\x05hello"
#define CLOSED "\x88\x15\x03\xf0the port was closed"

struct bench {
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

static struct stream *side_new(struct bench *bench, struct raw *ret_peer)
{
    static const struct stream_events events = {.on_failure = tunnel_test_failed};
    struct stream *stream = mem_alloc(sizeof(*stream));
    int fds[2];

    testing_pair(fds, false);
    assert_int_equal(stream_init(stream, &bench->loop, fds[0], NULL, false, &events), 0);
    *ret_peer = raw_take(fds[1]);
    return stream;
}

static void tunnel_test_over(struct tunnel_watch *watch)
{
    CONTAINER_OF(watch, struct bench, watch)->is_over = true;
}

static int setup(void **state)
{
    struct bench *bench = test_calloc(1, sizeof(*bench));

    (void) signal(SIGPIPE, SIG_IGN);
    bench->watch.ended = tunnel_test_over;
    *state = bench;
    return loop_init(&bench->loop, NULL);
}

/* Joined; `pending` came from upstream already. */
static void begin(struct bench *bench, bool is_websocket, const char *pending)
{
    const struct tunnel_options options = {.watch = &bench->watch, .is_websocket = is_websocket};
    struct stream *client = side_new(bench, &bench->client);

    tunnel_start(client, NULL, 0, side_new(bench, &bench->upstream), pending, strlen(pending),
                 &options);
}

static int teardown(void **state)
{
    struct bench *bench = *state;

    TURN_UNTIL(&bench->loop, bench->is_over);
    raw_close(&bench->client);
    raw_close(&bench->upstream);
    loop_run(&bench->loop);
    loop_done(&bench->loop);
    test_free(bench);
    return 0;
}

#define HEARD(bench, raw, text) TURN_UNTIL(&(bench)->loop, raw_has((raw), (text)))
#define SAY(bench, raw, text)   raw_send((raw), &(bench)->loop, (text))

static void the_client_of_a_websocket_is_told_why(void **state)
{
    struct bench *bench = *state;

    begin(bench, true, FRAME);
    SAY(bench, &bench->upstream, FRAME);
    HEARD(bench, &bench->client, FRAME FRAME);
    tunnel_expel(bench->watch.tunnel, "the port was closed");
    tunnel_expel(bench->watch.tunnel, "once is enough");
    HEARD(bench, &bench->client, FRAME FRAME CLOSED);
    TURN_UNTIL(&bench->loop, raw_is_over(&bench->upstream)); /* at once, whatever the client does */
    assert_false(bench->is_over);
    raw_send_bytes(&bench->client, &bench->loop, "\x82\x82\0\0\0\0hi", 8);
    raw_send_bytes(&bench->client, &bench->loop, "\x88\x82\0\0\0\0\x03\xf0", 8);
    TURN_UNTIL(&bench->loop, raw_is_over(&bench->client));
    assert_int_equal(bench->upstream.got.length, 0);
    assert_int_equal(raw_count(&bench->client, "\x88"), 1);
    assert_int_equal(shutdown(bench->client.fd, SHUT_WR), 0);
}

static void whoever_does_not_answer_is_cut_all_the_same(void **state)
{
    struct bench *bench = *state;

    begin(bench, true, "");
    tunnel_expel(bench->watch.tunnel, "the port was closed");
    HEARD(bench, &bench->client, CLOSED);
    tunnel_cut(bench->watch.tunnel);
    TURN_UNTIL(&bench->loop, raw_is_over(&bench->client));
}

/* A close frame in the middle of another would be part of it. */
static void no_frame_is_put_into_another(void **state)
{
    struct bench *bench = *state;

    begin(bench, true, FRAME "\x82\x05hel");
    HEARD(bench, &bench->client, "\x05hel");
    tunnel_expel(bench->watch.tunnel, "the port was closed");
    TURN_UNTIL(&bench->loop, raw_is_over(&bench->client) && raw_is_over(&bench->upstream));
    assert_false(raw_has(&bench->client, "\x88"));
}

static void other_protocols_are_cut(void **state)
{
    struct bench *bench = *state;

    begin(bench, false, FRAME);
    HEARD(bench, &bench->client, FRAME);
    tunnel_expel(bench->watch.tunnel, "the port was closed");
    TURN_UNTIL(&bench->loop, raw_is_over(&bench->client) && raw_is_over(&bench->upstream));
    assert_false(raw_has(&bench->client, "\x88"));
}

#define TUNNEL_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TUNNEL_TEST(the_client_of_a_websocket_is_told_why),
        TUNNEL_TEST(whoever_does_not_answer_is_cut_all_the_same),
        TUNNEL_TEST(no_frame_is_put_into_another),
        TUNNEL_TEST(other_protocols_are_cut),
    };

    return cmocka_run_group_tests_name("tunnel", tests, NULL, NULL);
}
