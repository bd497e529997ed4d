/* What a connection's owner does from inside its events, and pauses: whatever it calls, nothing is
 * told twice, too late, or from freed memory. */
#include "net/websocket/websocket_testing.h"

static void abort_now(struct side *side, const char *bytes, size_t length)
{
    AUTO(free) char *before = mem_copy_bytes(bytes, length);

    websocket_abort(&side->ws);
    assert_memory_equal(bytes, before, length); /* still good until we return */
    assert_int_equal(websocket_send(&side->ws, WEBSOCKET_TEXT, "x", 1), -EPIPE);
    websocket_pause(&side->ws);
    websocket_resume(&side->ws);
    assert_int_equal(websocket_close(&side->ws, WEBSOCKET_CODE_NORMAL, NULL), 0);
    websocket_abort(&side->ws);
    assert_false(side->released);
}

static void abort_inside_a_message_ends_all_events(void **state)
{
    /* Three ways a message lies in memory: in the input, in the scratch, in a buffer of its own. */
    static const struct {
        enum websocket_role role;
        size_t size;
        const char *bytes;
    } ways[] = {
        {WEBSOCKET_CLIENT, BYTES("\x81\x01x\x81\x01y")},
        {WEBSOCKET_SERVER, BYTES("\x81\x81" KEY "x\x81\x81" KEY "y")},
        {WEBSOCKET_SERVER, BYTES("\x01\x80" KEY "\x80\x81" KEY "x\x81\x81" KEY "y")},
    };

    for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
        struct websocket_options options = {.role = ways[i].role};
        struct side side;

        side_start_raw(&side, *state, &options, false);
        side.then_on_message = abort_now;
        raw_send(&side, ways[i].bytes, ways[i].size);
        assert_told(&side, "T(x)");
        assert_true(side.released);
        side_finish(&side, *state);
    }
}

static void abort_inside_held_messages_is_safe(void **state)
{
    struct side side;
    int fds[2];

    testing_sockets(fds, false);
    side_start(&side, *state, fds[0], &as_client, "\x81\x01x\x81\x01y", 6);
    side.raw = fds[1];
    side.then_on_message = abort_now;
    testing_turns(*state);
    assert_told(&side, "T(x)");
    assert_true(side.released);
    side_finish(&side, *state);
}

static void close_now(struct side *side, const char *bytes, size_t length)
{
    (void) bytes;
    (void) length;
    websocket_pause(&side->ws);
    assert_int_equal(websocket_close(&side->ws, WEBSOCKET_CODE_NORMAL, "enough"), 0);
}

static void close_inside_a_message_drops_the_next(void **state)
{
    struct side side;

    side_start_raw(&side, *state, &as_client, false);
    side.then_on_message = close_now;
    SEND(&side, "\x81\x01x\x81\x01y\x88\x02\x03\xe8");
    assert_told(&side, "T(x)close(1000,,clean)");
    side_finish(&side, *state);
}

static void close_inside_a_piece_drops_the_rest(void **state)
{
    struct websocket_options options = {.role = WEBSOCKET_CLIENT, .streaming = true};
    struct side side;

    side_start_raw(&side, *state, &options, false);
    side.then_on_message = close_now;
    SEND(&side, "\x81\x04xy");
    SEND(&side, "zz\x88\x02\x03\xe8");
    assert_told(&side, "T(xyclose(1000,,clean)");
    side_finish(&side, *state);
}

static void try_everything(struct side *side)
{
    assert_int_equal(websocket_send(&side->ws, WEBSOCKET_TEXT, "x", 1), -EPIPE);
    assert_int_equal(websocket_close(&side->ws, WEBSOCKET_CODE_NORMAL, NULL), 0);
    websocket_pause(&side->ws);
    websocket_abort(&side->ws);
}

static void abort_inside_on_close_skips_the_lingering(void **state)
{
    struct side side;

    side_start_raw(&side, *state, &as_server, false);
    side.then_on_close = try_everything;
    SEND(&side, "\x88\x80" KEY);
    assert_true(side.released);
    side_finish(&side, *state);

    side_start_raw(&side, *state, &as_server, false);
    side.then_on_close = try_everything;
    side.raw = fd_close(side.raw);
    testing_turns(*state);
    assert_true(side.released);
    side_finish(&side, *state);
}

static void pause_now(struct side *side, const char *bytes, size_t length)
{
    (void) bytes;
    (void) length;
    websocket_pause(&side->ws);
}

static void pause_and_resume_now(struct side *side, const char *bytes, size_t length)
{
    pause_now(side, bytes, length);
    websocket_resume(&side->ws);
}

static void pause_holds_back_messages_already_read(void **state)
{
    struct side side;

    side_start_raw(&side, *state, &as_client, false);
    side.then_on_message = pause_now;
    SEND(&side, "\x81\x01"
                "a\x81\x01"
                "b\x81\x01"
                "c\x81");
    SEND(&side, "\x01"
                "d\x88\x00");
    assert_int_equal(shutdown(side.raw, SHUT_WR), 0);
    testing_turns(*state);
    assert_told(&side, "T(a)");
    side.then_on_message = pause_now;
    websocket_resume(&side.ws);
    assert_told(&side, "T(a)"); /* not from inside the call */
    testing_turns(*state);
    assert_told(&side, "T(a)T(b)");
    websocket_resume(&side.ws);
    testing_turns(*state);
    assert_told(&side, "T(a)T(b)T(c)T(d)close(1005,,clean)");
    assert_null(side.ws.held);
    side_finish(&side, *state);
}

static void pause_and_resume_inside_a_message_changes_nothing(void **state)
{
    struct side side;

    side_start_raw(&side, *state, &as_client, false);
    side.then_on_message = pause_and_resume_now;
    SEND(&side, "\x81\x01"
                "a\x81\x01"
                "b");
    SEND(&side, "\x81\x01"
                "c");
    assert_told(&side, "T(a)T(b)T(c)");
    side_finish(&side, *state);
}

static void close_while_paused_sees_the_peers_close(void **state)
{
    struct side side;

    side_start_raw(&side, *state, &as_client, false);
    side.then_on_message = pause_now;
    SEND(&side, "\x81\x01"
                "a\x81\x01"
                "b");
    assert_int_equal(websocket_close(&side.ws, WEBSOCKET_CODE_NORMAL, NULL), 0);
    SEND(&side, "\x88\x02\x03\xe8");
    assert_told(&side, "T(a)close(1000,,clean)");
    side_finish(&side, *state);
}

static void idle_connection_keeps_no_buffers(void **state)
{
    struct side side;

    side_start_raw(&side, *state, &as_server, false);
    SEND(&side, "\x01\x85" KEY "Hello\x80\x81" KEY "!");
    assert_int_equal(websocket_send(&side.ws, WEBSOCKET_TEXT, "Hello", 5), 0);
    testing_turns(*state);
    assert_told(&side, "T(Hello!)");
    assert_null(side.ws.reader.message);
    assert_null(side.ws.reader.lent);
    assert_null(side.ws.held);
    assert_null(side.ws.stream->output.first);
    side_finish(&side, *state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(abort_inside_a_message_ends_all_events),
        TEST(abort_inside_held_messages_is_safe),
        TEST(close_inside_a_message_drops_the_next),
        TEST(close_inside_a_piece_drops_the_rest),
        TEST(abort_inside_on_close_skips_the_lingering),
        TEST(pause_holds_back_messages_already_read),
        TEST(pause_and_resume_inside_a_message_changes_nothing),
        TEST(close_while_paused_sees_the_peers_close),
        TEST(idle_connection_keeps_no_buffers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
