/* Two connections over sockets that take a few kilobytes at a time: what is sent arrives, whatever
 * the cuts, and nobody buffers more than was agreed. */
#include "net/websocket/websocket_testing.h"

#define ROUNDS         60
#define MESSAGES       12
#define LONGEST        ((size_t) 200 * 1024)
#define FLOOD_MESSAGE  ((size_t) 32 * 1024)
#define FLOOD_MESSAGES 200

/* Repeatable, so that a failure is too. */
static uint32_t next_random(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525 + 1013904223;
    return (uint32_t) (((uint64_t) *seed * below) >> 32);
}

/* --- round trips ----------------------------------------------------------------------------- */

/* Mostly around the places where headers and buffers change, sometimes anything. */
static size_t random_length(uint32_t *seed)
{
    static const uint32_t edges[] = {0, 1, 125, 126, 4096, 16384, 65535, 65536, 131072};
    size_t edge = edges[next_random(seed, ARRAY_COUNT(edges))];

    switch (next_random(seed, 3)) {
    case 0:
        return next_random(seed, LONGEST);
    case 1:
        return next_random(seed, 300);
    default:
        return edge + next_random(seed, 3);
    }
}

/* Send one message whole or in random pieces, and note in `expected` what should arrive. */
static void send_random(struct side *side, uint32_t *seed, struct text *expected)
{
    size_t length = random_length(seed), done = 0;
    bool is_text = next_random(seed, 2), in_pieces = next_random(seed, 2);
    enum websocket_opcode kind = is_text ? WEBSOCKET_TEXT : WEBSOCKET_BINARY;
    AUTO(free) char *bytes = mem_alloc(length + 1);

    for (size_t i = 0; i < length; i++)
        bytes[i] = (char) next_random(seed, is_text ? 128 : 256);
    text_append(expected, is_text ? "T(" : "B(");
    text_append_bytes(expected, bytes, length);
    text_append(expected, ")");
    if (!in_pieces) {
        assert_int_equal(websocket_send(&side->ws, kind, bytes, length), 0);
        return;
    }
    do {
        size_t part = next_random(seed, (uint32_t) (length - done) + 1);
        bool last = next_random(seed, 4) == 0;

        part = last ? length - done : part;
        assert_int_equal(websocket_send_piece(&side->ws, kind, last, bytes + done, part), 0);
        done += part;
        if (last)
            break;
    } while (true);
}

static void pause_sometimes(struct side *side, uint32_t *seed)
{
    if (next_random(seed, 3) == 0)
        websocket_pause(&side->ws);
    else
        websocket_resume(&side->ws);
}

static bool all_told(const struct side *side, const struct text *expected)
{
    assert_true(side->told.length <= expected->length);
    return side->told.length == expected->length;
}

static void run_round(struct loop *loop, uint32_t seed, bool streaming)
{
    struct websocket_options options = {.streaming = streaming};
    AUTO(text) struct text to_server = TEXT_INIT(TESTING_TEXT_MAX);
    AUTO(text) struct text to_client = TEXT_INIT(TESTING_TEXT_MAX);
    struct side server, client;
    int turns = 0;

    side_start_pair(&server, &client, loop, options, true);
    for (int i = 0; i < MESSAGES; i++) {
        send_random(&client, &seed, &to_server);
        send_random(&server, &seed, &to_client);
        (void) uv_run(&loop->uv, UV_RUN_NOWAIT);
    }
    while (!all_told(&server, &to_server) || !all_told(&client, &to_client)) {
        pause_sometimes(&server, &seed);
        pause_sometimes(&client, &seed);
        (void) uv_run(&loop->uv, UV_RUN_NOWAIT);
        assert_true(++turns < TESTING_TURNS_MAX);
    }
    assert_memory_equal(server.told.data, to_server.data, to_server.length);
    assert_memory_equal(client.told.data, to_client.data, to_client.length);
    side_finish(&server, loop);
    side_finish(&client, loop);
}

static void messages_survive_small_sockets_and_pauses(void **state)
{
    for (uint32_t seed = 0; seed < ROUNDS; seed++)
        run_round(*state, seed, false);
}

static void streamed_pieces_survive_small_sockets_and_pauses(void **state)
{
    for (uint32_t seed = 0; seed < ROUNDS; seed++)
        run_round(*state, seed + 1000, true);
}

/* The bytes of a real client, given to the server in writes of random size. */
static void random_writes_of_the_peer_change_nothing(void **state)
{
    struct websocket_options options = {.role = WEBSOCKET_CLIENT};
    AUTO(text) struct text expected = TEXT_INIT(TESTING_TEXT_MAX);
    AUTO(text) struct text sent = TEXT_INIT(TESTING_TEXT_MAX);
    struct side client, server;
    uint32_t seed = 7;

    side_start_raw(&client, *state, &options, false);
    for (int i = 0; i < 30; i++) {
        send_random(&client, &seed, &expected);
        testing_turns(*state);
        assert_false(raw_receive(&client, &sent));
    }
    while (stream_queued(client.ws.stream)) {
        testing_turns(*state);
        assert_false(raw_receive(&client, &sent));
    }
    assert_false(raw_receive(&client, &sent));
    options.role = WEBSOCKET_SERVER;
    side_start_raw(&server, *state, &options, false);
    for (size_t at = 0, part; at < sent.length; at += part) {
        part = 1 + next_random(&seed, next_random(&seed, 10) ? 200 : 40000);
        part = part < sent.length - at ? part : sent.length - at;
        assert_int_equal(send(server.raw, sent.data + at, part, 0), (ssize_t) part);
        (void) uv_run(&((struct loop *) *state)->uv, UV_RUN_NOWAIT);
    }
    testing_turns(*state);
    assert_int_equal(server.told.length, expected.length);
    assert_memory_equal(server.told.data, expected.data, expected.length);
    side_finish(&client, *state);
    side_finish(&server, *state);
}

/* --- back-pressure --------------------------------------------------------------------------- */

static char flood_bytes[FLOOD_MESSAGE];

/* Send until full; `sent` counts on across calls. */
static void send_flood(struct side *side, size_t *sent)
{
    while (*sent < FLOOD_MESSAGES && !websocket_is_full(&side->ws)) {
        assert_int_equal(
            websocket_send(&side->ws, WEBSOCKET_BINARY, flood_bytes, sizeof(flood_bytes)), 0);
        ++*sent;
    }
}

static void paused_consumer_stalls_the_producer(void **state)
{
    struct websocket_options options = {0};
    struct side server, client;
    size_t sent = 0, stalled;

    side_start_pair(&server, &client, *state, options, true);
    websocket_pause(&server.ws);
    for (int i = 0; i < 50; i++) {
        send_flood(&client, &sent);
        testing_turns(*state);
    }
    stalled = sent;
    assert_true(stalled < 16);
    assert_true(stream_queued(client.ws.stream) < STREAM_HIGH_WATER + FLOOD_MESSAGE + 100);
    assert_int_equal(server.told.length, 0);
    assert_true(server.ws.held_length <= LOOP_SCRATCH_SIZE);

    websocket_resume(&server.ws);
    for (int i = 0;
         i < TESTING_TURNS_MAX && server.told.length < FLOOD_MESSAGES * (FLOOD_MESSAGE + 3); i++) {
        send_flood(&client, &sent);
        (void) uv_run(&((struct loop *) *state)->uv, UV_RUN_NOWAIT);
    }
    assert_int_equal(sent, FLOOD_MESSAGES);
    assert_int_equal(server.told.length, FLOOD_MESSAGES * (FLOOD_MESSAGE + 3));
    side_finish(&server, *state);
    side_finish(&client, *state);
}

static size_t drained_sent;

static void send_on(struct side *side)
{
    send_flood(side, &drained_sent);
}

static void drain_event_keeps_a_producer_going(void **state)
{
    struct websocket_options options = {0};
    struct side server, client;

    drained_sent = 0;
    side_start_pair(&server, &client, *state, options, true);
    server.then_on_drain = send_on;
    send_on(&server);
    for (int i = 0;
         i < TESTING_TURNS_MAX && client.told.length < FLOOD_MESSAGES * (FLOOD_MESSAGE + 3); i++)
        (void) uv_run(&((struct loop *) *state)->uv, UV_RUN_NOWAIT);
    assert_int_equal(client.told.length, FLOOD_MESSAGES * (FLOOD_MESSAGE + 3));
    side_finish(&server, *state);
    side_finish(&client, *state);
}

static void abort_on_drain(struct side *side)
{
    websocket_abort(&side->ws);
}

static void abort_inside_on_drain_is_safe(void **state)
{
    struct websocket_options options = {0};
    struct side server, client;
    size_t sent = 0;

    side_start_pair(&server, &client, *state, options, true);
    server.then_on_drain = abort_on_drain;
    send_flood(&server, &sent);
    testing_run_until(*state, &server.released);
    side_finish(&server, *state);
    side_finish(&client, *state);
}

/* --- limits ---------------------------------------------------------------------------------- */

static void ten_thousand_fragments_are_one_message(void **state)
{
    struct websocket_options options = {0};
    struct side server, client;

    side_start_pair(&server, &client, *state, options, false);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(websocket_send_piece(&client.ws, WEBSOCKET_TEXT, i == 9999, "x", 1), 0);
    for (int i = 0; i < 100; i++)
        testing_turns(*state);
    assert_int_equal(server.told.length, 10000 + 3);
    side_finish(&server, *state);
    side_finish(&client, *state);
}

static void ten_thousand_fragments_are_refused_above_the_limit(void **state)
{
    struct websocket_options options = {.frames_max = 1000};
    struct side server, client;

    side_start_pair(&server, &client, *state, options, false);
    for (int i = 0; i < 10000; i++)
        (void) websocket_send_piece(&client.ws, WEBSOCKET_TEXT, false, "", 0);
    testing_run_until(*state, &client.released);
    assert_told(&server, "close(1008,message in too many frames,lost)");
    assert_told(&client, "close(1008,message in too many frames,clean)");
    assert_null(server.ws.reader.message);
    side_finish(&server, *state);
    side_finish(&client, *state);
}

static void largest_message_passes_and_one_byte_more_does_not(void **state)
{
    struct websocket_options options = {.message_max = LONGEST};
    AUTO(free) char *bytes = mem_alloc(LONGEST + 1);
    struct side server, client;

    side_start_pair(&server, &client, *state, options, true);
    assert_int_equal(websocket_send(&client.ws, WEBSOCKET_BINARY, bytes, LONGEST), 0);
    for (int i = 0; i < 100; i++)
        testing_turns(*state);
    assert_int_equal(server.told.length, LONGEST + 3);
    text_clear(&server.told);
    assert_int_equal(websocket_send(&client.ws, WEBSOCKET_BINARY, bytes, LONGEST + 1), 0);
    testing_run_until(*state, &server.released);
    assert_told(&server, "close(1009,message too long,lost)");
    side_finish(&server, *state);
    side_finish(&client, *state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(messages_survive_small_sockets_and_pauses),
        TEST(streamed_pieces_survive_small_sockets_and_pauses),
        TEST(random_writes_of_the_peer_change_nothing),
        TEST(paused_consumer_stalls_the_producer),
        TEST(drain_event_keeps_a_producer_going),
        TEST(abort_inside_on_drain_is_safe),
        TEST(ten_thousand_fragments_are_one_message),
        TEST(ten_thousand_fragments_are_refused_above_the_limit),
        TEST(largest_message_passes_and_one_byte_more_does_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
