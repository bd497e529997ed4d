#include "net/websocket/websocket_testing.h"

/* --- messages and pings ---------------------------------------------------------------------- */

static void server_gets_messages_and_sends_plain_frames(void **state)
{
    struct side side;

    side_start_raw(&side, *state, &as_server, false);
    SEND(&side, "\x81\x85" KEY "Hello\x02\x81" KEY "a\x80\x81" KEY "b");
    assert_told(&side, "T(Hello)B(ab)");
    assert_int_equal(websocket_send(&side.ws, WEBSOCKET_TEXT, "hi", 2), 0);
    assert_int_equal(websocket_send(&side.ws, WEBSOCKET_BINARY, NULL, 0), 0);
    RECEIVED(&side, "\x81\x02hi\x82\x00", false);
    side_finish(&side, *state);
}

static void client_sends_masked_frames_with_fresh_keys(void **state)
{
    AUTO(text) struct text got = TEXT_INIT(TESTING_TEXT_MAX);
    struct side side;
    int different = 0;

    side_start_raw(&side, *state, &as_client, false);
    for (int i = 0; i < 40; i++)
        assert_int_equal(websocket_send(&side.ws, WEBSOCKET_TEXT, "hi", 2), 0);
    testing_turns(*state);
    assert_false(raw_receive(&side, &got));
    assert_int_equal(got.length, 40 * 8);
    for (size_t i = 0; i < 40; i++) {
        char *frame = got.data + i * 8;

        assert_memory_equal(frame, "\x81\x82", 2);
        different += i && memcmp(frame + 2, frame + 2 - 8, WEBSOCKET_KEY_SIZE) != 0;
        websocket_mask(frame + 6, frame + 6, 2, (const uint8_t *) frame + 2, 0);
        assert_memory_equal(frame + 6, "hi", 2);
    }
    assert_true(different >= 38);
    side_finish(&side, *state);
}

static void pieces_become_fragments_with_controls_between(void **state)
{
    struct side side;

    side_start_raw(&side, *state, &as_server, false);
    assert_int_equal(websocket_send_piece(&side.ws, WEBSOCKET_TEXT, false, "a", 1), 0);
    assert_int_equal(websocket_send(&side.ws, WEBSOCKET_TEXT, "x", 1), -EBUSY);
    assert_int_equal(websocket_ping(&side.ws, "p", 1), 0);
    assert_int_equal(websocket_send_piece(&side.ws, WEBSOCKET_TEXT, false, "b", 1), 0);
    assert_int_equal(websocket_send_piece(&side.ws, WEBSOCKET_TEXT, true, "", 0), 0);
    assert_int_equal(websocket_send(&side.ws, WEBSOCKET_BINARY, "x", 1), 0);
    RECEIVED(&side,
             "\x01\x01"
             "a\x89\x01p\x00\x01"
             "b\x80\x00\x82\x01x",
             false);
    side_finish(&side, *state);
}

static void pending_bytes_are_read_before_the_stream(void **state)
{
    struct side side;
    int fds[2];

    testing_sockets(fds, false);
    assert_int_equal(send(fds[1], "2\x81\x01", 3, 0), 3);
    side_start(&side, *state, fds[0], &as_client,
               "\x81\x01x\x81\x02"
               "1",
               6);
    side.raw = fds[1];
    SEND(&side, "y");
    assert_told(&side, "T(x)T(12)T(y)");
    assert_null(side.ws.held);
    side_finish(&side, *state);
}

static void pings_are_answered_and_pongs_told(void **state)
{
    struct side side;

    side_start_raw(&side, *state, &as_server, false);
    SEND(&side, "\x89\x84" KEY "ping\x89\x80" KEY "\x8a\x81" KEY "q");
    RECEIVED(&side, "\x8a\x04ping\x8a\x00", false);
    assert_told(&side, "pong(q)");
    assert_int_equal(websocket_ping(&side.ws, side.ws.pong, 126), -EMSGSIZE);
    side_finish(&side, *state);
}

/* A peer that pings and never reads costs a full queue and one pong, and gets the newest. */
static void flood_of_pings_is_answered_with_the_newest_only(void **state)
{
    AUTO(text) struct text got = TEXT_INIT(TESTING_TEXT_MAX);
    AUTO(free) char *noise = mem_alloc(STREAM_HIGH_WATER + 1);
    struct side side;
    char ping[] = "\x89\x84" KEY "0000";
    uint32_t number;

    side_start_raw(&side, *state, &as_server, true);
    while (!websocket_is_full(&side.ws))
        assert_int_equal(websocket_send(&side.ws, WEBSOCKET_BINARY, noise, STREAM_HIGH_WATER), 0);
    for (number = 0xabcd0000; number < 0xabcd0000 + 2000; number++) {
        memcpy(ping + 6, &number, sizeof(number));
        raw_send(&side, ping, 10);
    }
    number--;
    assert_true(stream_queued(side.ws.stream) < 2 * STREAM_HIGH_WATER + 100);
    for (int i = 0; i < 1000; i++) {
        assert_false(raw_receive(&side, &got));
        (void) uv_run(&((struct loop *) *state)->uv, UV_RUN_NOWAIT);
    }
    assert_memory_equal(got.data + got.length - 6, "\x8a\x04", 2);
    assert_memory_equal(got.data + got.length - 4, &number, sizeof(number));
    number--;
    assert_null(memmem(got.data, got.length, &number, sizeof(number)));
    side_finish(&side, *state);
}

/* --- closing --------------------------------------------------------------------------------- */

static void server_closes_and_ends_first(void **state)
{
    struct side side;

    side_start_raw(&side, *state, &as_server, false);
    assert_int_equal(websocket_close(&side.ws, WEBSOCKET_CODE_GOING_AWAY, "bye"), 0);
    RECEIVED(&side,
             "\x88\x05\x03\xe9"
             "bye",
             false);
    assert_told(&side, "");
    SEND(&side, "\x88\x85" KEY "\x03\xe9"
                "BYE");
    assert_told(&side, "close(1001,BYE,clean)");
    RECEIVED(&side, "", true);
    assert_false(side.released);
    side.raw = fd_close(side.raw);
    testing_turns(*state);
    assert_true(side.released);
    side_finish(&side, *state);
}

static void client_waits_for_the_server_to_end(void **state)
{
    struct side side;

    side_start_raw(&side, *state, &as_client, false);
    SEND(&side, "\x88\x02\x03\xe8");
    assert_told(&side, "close(1000,,clean)");
    {
        AUTO(text) struct text got = TEXT_INIT(100);

        assert_false(raw_receive(&side, &got));
        assert_int_equal(got.length, 8);
        websocket_mask(got.data + 6, got.data + 6, 2, (const uint8_t *) got.data + 2, 0);
        assert_memory_equal(got.data + 6, "\x03\xe8", 2);
    }
    assert_false(side.released);
    assert_int_equal(shutdown(side.raw, SHUT_WR), 0);
    testing_turns(*state);
    assert_true(side.released);
    side_finish(&side, *state);
}

static void close_without_a_code_is_answered_without(void **state)
{
    struct side side;

    side_start_raw(&side, *state, &as_server, false);
    SEND(&side, "\x88\x80" KEY);
    assert_told(&side, "close(1005,,clean)");
    RECEIVED(&side, "\x88\x00", true);
    side_finish(&side, *state);
}

static void both_closing_at_once_is_clean(void **state)
{
    struct side server, client;
    struct websocket_options options = {0};

    side_start_pair(&server, &client, *state, options, false);
    assert_int_equal(websocket_close(&server.ws, 3000, "s"), 0);
    assert_int_equal(websocket_close(&client.ws, 4999, "c"), 0);
    testing_turns(*state);
    assert_told(&server, "close(4999,c,clean)");
    assert_told(&client, "close(3000,s,clean)");
    assert_true(server.released && client.released);
    side_finish(&server, *state);
    side_finish(&client, *state);
}

static void only_sendable_codes_are_sent(void **state)
{
    static const unsigned int refused[] = {0,    999,  1004, 1006,  1015,
                                           1016, 2999, 5000, 65535, 65536 + 1000};
    static const unsigned int sent[] = {1000, 1003, 1007, 1011, 1014, 3000, 4999};
    struct side side;

    side_start_raw(&side, *state, &as_server, false);
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++)
        assert_int_equal(websocket_close(&side.ws, refused[i], NULL), -EINVAL);
    assert_int_equal(side.ws.state, WEBSOCKET_OPEN);
    side_finish(&side, *state);
    for (size_t i = 0; i < ARRAY_COUNT(sent); i++) {
        char frame[] = {(char) 0x88, 2, (char) (sent[i] >> 8), (char) sent[i]};

        side_start_raw(&side, *state, &as_server, false);
        assert_int_equal(websocket_close(&side.ws, sent[i], NULL), 0);
        assert_received(&side, frame, sizeof(frame), false);
        side_finish(&side, *state);
    }
    side_start_raw(&side, *state, &as_server, false);
    assert_int_equal(websocket_close(&side.ws, WEBSOCKET_CODE_NONE, "unsaid"), 0);
    RECEIVED(&side, "\x88\x00", false);
    side_finish(&side, *state);
}

static void reasons_are_cut_at_a_character_and_must_be_text(void **state)
{
    struct side side;
    char reason[200];
    char frame[WEBSOCKET_CONTROL_MAX + 2] = "\x88\x7c\x03\xe8";

    side_start_raw(&side, *state, &as_server, false);
    memset(reason, 'x', sizeof(reason));
    memcpy(reason + 122, "ß", 3); /* two bytes across the limit, and the NUL */
    memcpy(frame + 4, reason, 122);
    assert_int_equal(websocket_close(&side.ws, WEBSOCKET_CODE_NORMAL, reason), 0);
    assert_received(&side, frame, 4 + 122, false);
    side_finish(&side, *state);

    side_start_raw(&side, *state, &as_server, false);
    assert_int_equal(websocket_close(&side.ws, WEBSOCKET_CODE_NORMAL, "\xff"), 0);
    RECEIVED(&side, "\x88\x02\x03\xe8", false);
    side_finish(&side, *state);
}

static void nothing_is_sent_or_delivered_after_close(void **state)
{
    struct side side;

    side_start_raw(&side, *state, &as_server, false);
    assert_int_equal(websocket_close(&side.ws, WEBSOCKET_CODE_NORMAL, NULL), 0);
    assert_int_equal(websocket_send(&side.ws, WEBSOCKET_TEXT, "x", 1), -EPIPE);
    assert_int_equal(websocket_send_piece(&side.ws, WEBSOCKET_TEXT, true, "x", 1), -EPIPE);
    assert_int_equal(websocket_ping(&side.ws, "x", 1), -EPIPE);
    assert_int_equal(websocket_close(&side.ws, WEBSOCKET_CODE_NORMAL, NULL), 0);
    SEND(&side, "\x81\x81" KEY "x\x89\x80" KEY "\x8a\x80" KEY);
    RECEIVED(&side, "\x88\x02\x03\xe8", false);
    assert_told(&side, "");
    side_finish(&side, *state);
}

static void silent_peer_is_not_waited_for_longer_than_allowed(void **state)
{
    struct websocket_options options = {.role = WEBSOCKET_SERVER, .close_timeout_ms = 20};
    struct side side;

    side_start_raw(&side, *state, &options, false);
    assert_int_equal(websocket_close(&side.ws, WEBSOCKET_CODE_NORMAL, NULL), 0);
    testing_run_until(*state, &side.released);
    assert_told(&side, "close(1006,no close frame in time,lost)");
    side_finish(&side, *state);
}

static void peer_that_does_not_end_is_cut_off(void **state)
{
    struct websocket_options options = {.role = WEBSOCKET_SERVER, .close_timeout_ms = 20};
    struct side side;

    side_start_raw(&side, *state, &options, false);
    SEND(&side, "\x88\x80" KEY);
    SEND(&side, "and on and on");
    assert_false(side.released);
    testing_run_until(*state, &side.released);
    assert_told(&side, "close(1005,,clean)");
    side_finish(&side, *state);
}

/* The peer's end is read in the very turn in which our close frame was queued. */
static void close_frame_leaves_although_the_peer_ended(void **state)
{
    struct side side;
    int fds[2];

    testing_sockets(fds, false);
    side_start(&side, *state, fds[0], &as_server, "\x88\x80" KEY, 6);
    side.raw = fds[1];
    assert_int_equal(shutdown(side.raw, SHUT_WR), 0);
    testing_turns(*state);
    assert_true(side.released);
    RECEIVED(&side, "\x88\x00", true);
    side_finish(&side, *state);
}

static void end_without_close_frame_is_a_loss(void **state)
{
    struct side side;

    side_start_raw(&side, *state, &as_server, false);
    SEND(&side, "\x01\x81" KEY "x");
    side.raw = fd_close(side.raw);
    testing_turns(*state);
    assert_told(&side, "close(1006,connection ended without a close frame,lost)");
    assert_true(side.released);
    side_finish(&side, *state);
}

static void failed_connection_is_a_loss(void **state)
{
    struct side side;

    side_start_raw(&side, *state, &as_server, false);
    side.raw = fd_close(side.raw);
    assert_int_equal(websocket_send(&side.ws, WEBSOCKET_TEXT, "x", 1), 0);
    testing_turns(*state);
    assert_true(side.released);
    assert_non_null(strstr(text_string(&side.told), "close(1006,"));
    side_finish(&side, *state);
}

struct fault_case {
    size_t size;
    const char *bytes;
    unsigned int code;
};

static const struct fault_case faults[] = {
    {BYTES("\xc1"), 1002},
    {BYTES("\x81\x01"), 1002}, /* not masked */
    {BYTES("\x88\x82" KEY "\x03\xed"), 1002},
    {BYTES("\x81\x81" KEY "\xff"), 1007},
    {BYTES("\x88\x83" KEY "\x03\xe8\xff"), 1007},
    {BYTES("\x82\xfe\x01\x00" KEY), 1009},
    {BYTES("\x02\x80" KEY "\x00\x80" KEY "\x00\x80" KEY "\x00\x80" KEY), 1008},
};

static void faults_close_with_their_code(void **state)
{
    struct websocket_options options = {
        .role = WEBSOCKET_SERVER, .message_max = 255, .frames_max = 3};

    for (size_t i = 0; i < ARRAY_COUNT(faults); i++) {
        AUTO(text) struct text got = TEXT_INIT(1000);
        struct side side;
        char expected[20];

        side_start_raw(&side, *state, &options, false);
        raw_send(&side, faults[i].bytes, faults[i].size);
        assert_true(raw_receive(&side, &got));
        assert_int_equal(got.data[0], (char) 0x88);
        assert_int_equal((uint8_t) got.data[2] << 8 | (uint8_t) got.data[3], faults[i].code);
        (void) snprintf(expected, sizeof(expected), "close(%u,", faults[i].code);
        assert_memory_equal(text_string(&side.told), expected, strlen(expected));
        assert_non_null(strstr(text_string(&side.told), ",lost)"));
        side_finish(&side, *state);
    }
}

static void fault_after_our_close_ends_without_a_second_frame(void **state)
{
    struct side side;

    side_start_raw(&side, *state, &as_server, false);
    assert_int_equal(websocket_close(&side.ws, WEBSOCKET_CODE_NORMAL, NULL), 0);
    SEND(&side, "\xff");
    RECEIVED(&side, "\x88\x02\x03\xe8", true);
    assert_memory_equal(text_string(&side.told), "close(1002,", 11);
    side_finish(&side, *state);
}

/* --- signs of life --------------------------------------------------------------------------- */

static void silent_peer_is_pinged_and_lost(void **state)
{
    struct websocket_options options = {
        .role = WEBSOCKET_SERVER, .ping_interval_ms = 15, .pong_timeout_ms = 15};
    struct side side;

    side_start_raw(&side, *state, &options, false);
    testing_run_until(*state, &side.released);
    assert_told(&side, "close(1006,no answer to ping,lost)");
    {
        AUTO(text) struct text got = TEXT_INIT(100);

        assert_true(raw_receive(&side, &got));
        assert_int_equal(got.length, 2);
        assert_memory_equal(got.data, "\x89\x00", 2);
    }
    side_finish(&side, *state);
}

/* Turn for so many milliseconds; the connection's own timer wakes the loop. */
static void pass_time(struct loop *loop, uint64_t milliseconds)
{
    uint64_t until = loop_now(loop) + milliseconds;

    while (loop_now(loop) < until)
        (void) uv_run(&loop->uv, UV_RUN_ONCE);
}

static void answering_peer_is_kept(void **state)
{
    struct websocket_options options = {.ping_interval_ms = 10, .pong_timeout_ms = 1000};
    struct side server, client;

    side_start_pair(&server, &client, *state, options, false);
    pass_time(*state, 60);
    assert_int_equal(server.ws.state, WEBSOCKET_OPEN);
    assert_int_equal(client.ws.state, WEBSOCKET_OPEN);
    assert_non_null(strstr(text_string(&server.told), "pong()"));
    side_finish(&server, *state);
    side_finish(&client, *state);
}

static void paused_connection_expects_no_pong(void **state)
{
    struct websocket_options options = {
        .role = WEBSOCKET_SERVER, .ping_interval_ms = 5, .pong_timeout_ms = 5};
    struct side side;

    side_start_raw(&side, *state, &options, false);
    websocket_pause(&side.ws);
    pass_time(*state, 60);
    assert_int_equal(side.ws.state, WEBSOCKET_OPEN);
    RECEIVED(&side, "\x89\x00", false);
    websocket_resume(&side.ws); /* and gets a new chance */
    testing_run_until(*state, &side.released);
    assert_told(&side, "close(1006,no answer to ping,lost)");
    RECEIVED(&side, "\x89\x00", true);
    side_finish(&side, *state);
}

/* Make the deadline of an unanswered ping come now, without waiting for it. */
static void let_pong_be_due(struct side *side)
{
    side->ws.heard_at = 0;
    side->ws.pinged_at = 1;
    side->ws.deadline.on_due(&side->ws.deadline);
}

static void peer_that_takes_output_is_alive(void **state)
{
    struct websocket_options options = {.role = WEBSOCKET_SERVER, .ping_interval_ms = 100000};
    AUTO(free) char *noise = mem_alloc(STREAM_HIGH_WATER);
    char taken[1024];
    struct side side;

    side_start_raw(&side, *state, &options, true);
    assert_int_equal(websocket_send(&side.ws, WEBSOCKET_BINARY, noise, STREAM_HIGH_WATER), 0);
    let_pong_be_due(&side); /* since the start something was taken: the socket's own buffer */
    assert_int_equal(side.ws.state, WEBSOCKET_OPEN);
    for (int i = 0; i < 100; i++)
        (void) !recv(side.raw, taken, sizeof(taken), 0);
    testing_turns(*state);
    let_pong_be_due(&side);
    assert_int_equal(side.ws.state, WEBSOCKET_OPEN);
    testing_turns(*state);
    let_pong_be_due(&side);
    assert_told(&side, "close(1006,no answer to ping,lost)");
    side_finish(&side, *state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(server_gets_messages_and_sends_plain_frames),
        TEST(client_sends_masked_frames_with_fresh_keys),
        TEST(pieces_become_fragments_with_controls_between),
        TEST(pending_bytes_are_read_before_the_stream),
        TEST(pings_are_answered_and_pongs_told),
        TEST(flood_of_pings_is_answered_with_the_newest_only),
        TEST(server_closes_and_ends_first),
        TEST(client_waits_for_the_server_to_end),
        TEST(close_without_a_code_is_answered_without),
        TEST(both_closing_at_once_is_clean),
        TEST(only_sendable_codes_are_sent),
        TEST(reasons_are_cut_at_a_character_and_must_be_text),
        TEST(nothing_is_sent_or_delivered_after_close),
        TEST(silent_peer_is_not_waited_for_longer_than_allowed),
        TEST(peer_that_does_not_end_is_cut_off),
        TEST(close_frame_leaves_although_the_peer_ended),
        TEST(end_without_close_frame_is_a_loss),
        TEST(failed_connection_is_a_loss),
        TEST(faults_close_with_their_code),
        TEST(fault_after_our_close_ends_without_a_second_frame),
        TEST(silent_peer_is_pinged_and_lost),
        TEST(answering_peer_is_kept),
        TEST(paused_connection_expects_no_pong),
        TEST(peer_that_takes_output_is_alive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
