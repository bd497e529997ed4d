/* Streams of a session, both ways: rpc_outlet.c and rpc_inlet.c. */
#include "agent/rpc/rpc_expect.h"

#define ROUNDS 20

/* Numbers that are the same in every run. */
static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* --- ours ------------------------------------------------------------------------------------ */

static void start_stream(struct testing *testing, const char *method)
{
    AUTO(text) struct text frame = TEXT_INIT(256);

    text_format(&frame, "[\"push\",[\"pipeline\",0,[\"test\",\"%s\"],[]]]", method);
    testing_receive(testing, text_string(&frame));
    testing_receive(testing, "[\"pull\",1]");
}

static void events_are_a_stream_with_event_lines(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();
    struct kept_call *kept;

    (void) state;
    start_stream(testing, "events");
    kept = testing_last(testing);
    expect(testing, "[\"pipe\"]");
    expect(testing, "[\"resolve\",1,[\"readable\",1]]");
    testing_receive(testing, "[\"release\",1,1]");
    call_event(kept->call, "stdout", "{\"a\":1}", 7);
    testing_settle(testing);
    /* event: stdout\ndata: {"a":1}\n\n */
    expect(testing, "[\"stream\",[\"pipeline\",1,[\"write\"],[[\"bytes\","
                    "\"ZXZlbnQ6IHN0ZG91dApkYXRhOiB7ImEiOjF9Cgo\"]]]]");
    call_end(testing_take(kept));
    testing_settle(testing);
    expect(testing, "[\"stream\",[\"pipeline\",1,[\"close\"],[]]]");
    testing_receive(testing, "[\"resolve\",2,[\"undefined\"]]");
    expect_silence(testing);
    testing_receive(testing, "[\"resolve\",3,[\"undefined\"]]");
    expect(testing, "[\"release\",1,1]");
    expect_clean(testing);
}

static void bytes_are_the_content_of_their_head(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();

    (void) state;
    start_stream(testing, "bytes");
    expect(testing, "[\"pipe\"]");
    expect(testing, "[\"resolve\",1,{\"success\":true,\"sizes\":[[1,2]],\"content\":"
                    "[\"readable\",1]}]");
    call_write(testing_last(testing)->call, "hi", 2);
    call_break(testing_take(testing_last(testing)));
    testing_settle(testing);
    expect(testing, "[\"stream\",[\"pipeline\",1,[\"write\"],[[\"bytes\",\"aGk\"]]]]");
    expect_part(testing, "[\"stream\",[\"pipeline\",1,[\"abort\"],[[\"error\",\"Error\",");
    testing_receive(testing, "[\"release\",1,1]");
    testing_receive(testing, "[\"reject\",2,null]"); /* no cancel: we broke it off ourselves */
    testing_receive(testing, "[\"resolve\",3,[\"undefined\"]]");
    expect(testing, "[\"release\",1,1]");
    expect_clean(testing);
}

static void a_failed_start_of_a_command_is_an_event(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();
    char *bytes;
    size_t length;
    json_t *frame;

    (void) state;
    testing_receive(testing,
                    "[\"stream\",[\"pipeline\",0,[\"commands\",\"executeStream\"],[\"x\"]]]");
    expect(testing, "[\"pipe\"]");
    expect(testing, "[\"resolve\",1,[\"readable\",1]]");
    frame = json_loads(testing_next(testing), 0, NULL);
    assert_int_equal(
        rpc_expression_bytes(json_array_get(json_array_get(json_array_get(frame, 1), 3), 0), &bytes,
                             &length, NULL),
        0);
    assert_non_null(strstr(bytes, "event: error\ndata: {\"type\":\"error\",\"error\":\"File not"));
    free(bytes);
    json_decref(frame);
    expect(testing, "[\"stream\",[\"pipeline\",1,[\"close\"],[]]]");
    testing_receive(testing, "[\"resolve\",2,[\"undefined\"]]");
    testing_receive(testing, "[\"resolve\",3,[\"undefined\"]]");
    expect(testing, "[\"release\",1,1]");
    expect_clean(testing);
}

static void a_reader_that_cancels_is_gone(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();

    (void) state;
    start_stream(testing, "events");
    testing_receive(testing, "[\"release\",1,1]");
    call_event(testing_last(testing)->call, "a", "{}", 2);
    testing_settle(testing);
    call_event(testing_last(testing)->call, "b", "{}", 2);
    testing_settle(testing);
    assert_false(testing_last(testing)->gone);
    expect_part(testing, "pipe");
    expect_part(testing, "resolve");
    expect_part(testing, "write");
    expect_part(testing, "write");
    testing_receive(testing, "[\"reject\",2,\"enough\"]");
    assert_true(testing_last(testing)->gone);
    expect(testing, "[\"release\",1,1]");
    testing_receive(testing, "[\"reject\",3,\"enough\"]");
    expect_clean(testing);
}

static void a_stream_that_nobody_pulled_is_gone_when_released(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();

    (void) state;
    testing_receive(testing, "[\"push\",[\"pipeline\",0,[\"test\",\"events\"],[]]]");
    call_event(testing_last(testing)->call, "a", "{}", 2);
    testing_settle(testing);
    assert_false(testing_last(testing)->gone);
    testing_receive(testing, "[\"release\",1,1]");
    assert_true(testing_last(testing)->gone);
    expect_clean(testing);
}

static void a_stream_begun_for_nobody_is_gone(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();
    struct kept_call *kept;

    (void) state;
    testing_receive(testing, "[\"push\",[\"pipeline\",0,[\"test\",\"later\"],[]]]");
    testing_receive(testing, "[\"release\",1,1]");
    kept = testing_last(testing);
    call_begin_events(kept->call);
    call_event(kept->call, "a", "{}", 2);
    assert_false(kept->gone); /* not from inside of what it calls */
    testing_settle(testing);
    assert_true(kept->gone);
    expect_clean(testing);
}

static void a_reader_that_does_not_read_stops_the_producer(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();
    static char block[16 * 1024];
    struct kept_call *kept;
    size_t written = 0;

    (void) state;
    start_stream(testing, "bytes");
    kept = testing_last(testing);
    while (!call_is_full(kept->call)) {
        call_write(kept->call, block, sizeof(block));
        written += sizeof(block);
        testing_settle(testing);
        assert_true(written < 2 * RPC_WINDOW);
    }
    assert_true(written >= RPC_WINDOW);
    assert_int_equal(kept->drains, 0);
    for (int i = 2; i < 8; i++) {
        char frame[64];

        (void) snprintf(frame, sizeof(frame), "[\"resolve\",%d,null]", i);
        testing_receive(testing, frame);
    }
    assert_int_equal(kept->drains, 1);
    rpc_session_end(testing->session);
    assert_true(kept->gone);
}

/* The peer's side of one stream: takes pieces, answers them when it likes. */
struct reader {
    struct text bytes;
    int64_t unanswered[RPC_WINDOW_MESSAGES + 2];
    size_t sizes[RPC_WINDOW_MESSAGES + 2];
    size_t count;
    int64_t id; /* of the session's last push, stream or pipe */
    bool closed;
    bool released;
};

static void reader_take(struct reader *reader, const char *line)
{
    json_t *frame = json_loads(line, 0, NULL);
    const char *type = json_string_value(json_array_get(frame, 0));
    json_t *call = json_array_get(frame, 1);
    size_t length = 0;

    if (strcmp(type, "pipe") == 0 || strcmp(type, "stream") == 0)
        reader->id++;
    if (strcmp(type, "release") == 0)
        reader->released = true;
    if (strcmp(type, "stream") == 0) {
        const char *method = json_string_value(json_array_get(json_array_get(call, 2), 0));

        assert_false(reader->closed);
        if (strcmp(method, "write") == 0) {
            char *bytes;

            assert_int_equal(rpc_expression_bytes(json_array_get(json_array_get(call, 3), 0),
                                                  &bytes, &length, NULL),
                             0);
            assert_in_range(length, 1, RPC_CHUNK_MAX);
            text_append_bytes(&reader->bytes, bytes, length);
            free(bytes);
        } else {
            assert_string_equal(method, "close");
            reader->closed = true;
        }
        assert_true(reader->count < ARRAY_COUNT(reader->unanswered));
        reader->sizes[reader->count] = length;
        reader->unanswered[reader->count++] = reader->id;
    }
    json_decref(frame);
}

static void reader_answer(struct reader *reader, struct testing *testing, size_t which)
{
    char frame[64];

    (void) snprintf(frame, sizeof(frame), "[\"resolve\",%lld,[\"undefined\"]]",
                    (long long) reader->unanswered[which]);
    reader->count--;
    reader->unanswered[which] = reader->unanswered[reader->count];
    reader->sizes[which] = reader->sizes[reader->count];
    testing_receive(testing, frame);
}

static size_t unread(const struct reader *reader)
{
    size_t bytes = 0;

    for (size_t i = 0; i < reader->count; i++)
        bytes += reader->sizes[i];
    return bytes;
}

static void stream_round(uint32_t *random)
{
    AUTO(testing) struct testing *testing = testing_new();
    struct text sent = TEXT_INIT(TESTING_FRAMES_MAX);
    struct reader reader = {.bytes = TEXT_INIT(TESTING_FRAMES_MAX)};
    size_t left = next_random(random) % (2 * 1024 * 1024);
    const char *line;

    start_stream(testing, "bytes");
    testing_receive(testing, "[\"release\",1,1]");
    while (!reader.released) {
        struct kept_call *kept = testing_last(testing);
        size_t size = next_random(random) % (next_random(random) % 4 ? 2000 : 200000);

        if (kept->call && !left)
            call_end(testing_take(kept));
        if (kept->call && !call_is_full(kept->call)) {
            size = size < left ? size : left;
            for (size_t i = 0; i < size; i++)
                text_append_char(&sent, (char) next_random(random));
            call_write(kept->call, sent.data + sent.length - size, size);
            left -= size;
        }
        if (next_random(random) % 4 == 0)
            testing->full = !testing->full;
        if (!testing->full)
            rpc_session_drained(testing->session);
        testing_settle(testing);
        while ((line = testing_next(testing)))
            reader_take(&reader, line);
        assert_true(unread(&reader) < RPC_WINDOW + RPC_CHUNK_MAX);
        for (uint32_t i = next_random(random) % 4; i && reader.count && !testing->held; i--)
            reader_answer(&reader, testing, next_random(random) % reader.count);
    }
    assert_int_equal(reader.bytes.length, sent.length);
    assert_memory_equal(text_string(&reader.bytes), text_string(&sent), sent.length);
    testing->full = false;
    rpc_session_drained(testing->session);
    testing_settle(testing);
    expect_clean(testing);
    text_done(&sent);
    text_done(&reader.bytes);
}

static void streams_arrive_whole_and_in_order(void **state)
{
    uint32_t random = 7;

    (void) state;
    for (int i = 0; i < ROUNDS; i++)
        stream_round(&random);
}

/* --- the peer's ------------------------------------------------------------------------------ */

static void start_upload(struct testing *testing)
{
    testing_receive(testing, "[\"pipe\"]");
    testing_receive(testing,
                    "[\"push\",[\"pipeline\",0,[\"test\",\"upload\"],[\"/f\",[\"readable\",1]]]]");
}

static void input_comes_and_is_acknowledged(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();
    struct kept_call *kept;

    (void) state;
    start_upload(testing);
    kept = testing_last(testing);
    testing_receive(testing, "[\"stream\",[\"pipeline\",1,[\"write\"],[[\"bytes\",\"aGk\"]]]]");
    testing_receive(testing, "[\"stream\",[\"pipeline\",1,[\"write\"],[\" you\"]]]");
    testing_receive(testing, "[\"stream\",[\"pipeline\",1,[\"write\"],[[\"bytes\",\"IQ==\"]]]]");
    assert_string_equal(text_string(&kept->input), "hi you!");
    expect(testing, "[\"resolve\",3,[\"undefined\"]]");
    expect(testing, "[\"resolve\",4,[\"undefined\"]]");
    expect(testing, "[\"resolve\",5,[\"undefined\"]]");
    assert_false(kept->input_ended);
    testing_receive(testing, "[\"stream\",[\"pipeline\",1,[\"close\"],[]]]");
    assert_true(kept->input_complete);
    expect(testing, "[\"resolve\",6,[\"undefined\"]]");
    testing_reply(testing_take(kept), "{}");
    testing_receive(testing, "[\"release\",1,1]");
    testing_receive(testing, "[\"pull\",2]");
    expect(testing, "[\"resolve\",2,{}]");
    testing_receive(testing, "[\"release\",2,1]");
    expect_clean(testing);
}

static void input_that_came_before_the_call_is_not_lost(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();

    (void) state;
    testing_receive(testing, "[\"pipe\"]");
    testing_receive(testing, "[\"stream\",[\"pipeline\",1,[\"write\"],[\"early\"]]]");
    testing_receive(testing, "[\"stream\",[\"pipeline\",1,[\"close\"],[]]]");
    expect_silence(testing);
    testing_receive(testing, "[\"release\",1,1]"); /* before anybody took it */
    expect_part(testing, "[\"reject\",2,");
    expect_part(testing, "[\"resolve\",3,");
    testing_receive(testing, "[\"pipe\"]");
    testing_receive(testing, "[\"stream\",[\"pipeline\",4,[\"write\"],[\"early\"]]]");
    expect_silence(testing);
    testing_receive(
        testing, "[\"stream\",[\"pipeline\",0,[\"test\",\"upload\"],[\"/f\",[\"readable\",4]]]]");
    expect(testing, "[\"resolve\",5,[\"undefined\"]]");
    assert_string_equal(text_string(&testing_last(testing)->input), "early");
    testing_receive(testing, "[\"release\",4,1]");
    assert_true(testing_last(testing)->input_ended);
    assert_false(testing_last(testing)->input_complete);
    testing_reply(testing_take(testing_last(testing)), "{}");
    testing_settle(testing);
    expect(testing, "[\"resolve\",6,{}]");
    expect_clean(testing);
}

static void a_paused_reader_delays_the_acknowledgement(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();
    struct kept_call *kept;

    (void) state;
    start_upload(testing);
    kept = testing_last(testing);
    kept->pause_on_input = true;
    testing_receive(testing, "[\"stream\",[\"pipeline\",1,[\"write\"],[\"a\"]]]");
    testing_receive(testing, "[\"stream\",[\"pipeline\",1,[\"write\"],[\"b\"]]]");
    assert_string_equal(text_string(&kept->input), "a");
    expect_silence(testing);
    call_resume_input(kept->call);
    expect_silence(testing); /* not from inside of what the service calls */
    testing_settle(testing);
    expect(testing, "[\"resolve\",3,[\"undefined\"]]");
    assert_string_equal(text_string(&kept->input), "ab");
    expect_silence(testing);
    testing_receive(testing, "[\"stream\",[\"pipeline\",1,[\"abort\"],[[\"error\",\"E\",\"m\",null,"
                             "{\"f\":[\"export\",-8]}]]]]");
    expect(testing, "[\"release\",-8,1]");
    kept->pause_on_input = false;
    call_resume_input(kept->call);
    testing_settle(testing);
    expect(testing, "[\"resolve\",4,[\"undefined\"]]");
    expect(testing, "[\"resolve\",5,[\"undefined\"]]");
    assert_true(kept->input_ended);
    assert_false(kept->input_complete);
    call_fail_text(testing_take(kept), API_NO_SPACE, "full");
    testing_receive(testing, "[\"release\",1,1]");
    testing_receive(testing, "[\"release\",2,1]");
    expect_clean(testing);
}

static void input_for_a_call_that_ended_is_refused(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();
    struct kept_call *kept;

    (void) state;
    start_upload(testing);
    kept = testing_last(testing);
    kept->pause_on_input = true;
    testing_receive(testing, "[\"stream\",[\"pipeline\",1,[\"write\"],[\"a\"]]]");
    testing_receive(testing, "[\"stream\",[\"pipeline\",1,[\"write\"],[\"b\"]]]");
    call_fail_text(testing_take(kept), API_NO_SPACE, "full");
    testing_settle(testing);
    expect(testing, "[\"resolve\",3,[\"undefined\"]]");
    expect_part(testing, "[\"reject\",4,[\"error\",");
    testing_receive(testing, "[\"stream\",[\"pipeline\",1,[\"write\"],[\"c\"]]]");
    expect_part(testing, "[\"reject\",5,[\"error\",");
    testing_receive(testing, "[\"stream\",[\"pipeline\",1,[\"close\"],[]]]");
    expect(testing, "[\"resolve\",6,[\"undefined\"]]");
    testing_receive(testing, "[\"release\",1,1]");
    testing_receive(testing, "[\"release\",2,1]");
    expect_clean(testing);
}

static void a_pipe_is_read_once_and_only_written_to(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();

    (void) state;
    start_upload(testing);
    testing_receive(
        testing, "[\"stream\",[\"pipeline\",0,[\"test\",\"upload\"],[\"/f\",[\"readable\",1]]]]");
    expect_part(testing, "[\"reject\",3,");
    testing_receive(testing, "[\"stream\",[\"pipeline\",1,[\"read\"],[]]]");
    expect_part(testing, "[\"reject\",4,");
    testing_receive(testing, "[\"stream\",[\"pipeline\",1,[\"write\"],[[\"bytes\",\"!\"]]]]");
    expect_part(testing, "[\"reject\",5,");
    testing_receive(testing, "[\"stream\",[\"pipeline\",1,[\"write\"],[7]]]");
    expect_part(testing, "[\"reject\",6,");
    testing_receive(testing, "[\"stream\",[\"pipeline\",1]]");
    expect_part(testing, "[\"reject\",7,");
    testing_receive(testing, "[\"stream\",[\"pipeline\",1,[\"write\"],[\"x\"]]]");
    expect(testing, "[\"resolve\",8,[\"undefined\"]]");
    rpc_session_end(testing->session);
    assert_true(testing_last(testing)->gone);
}

static void a_pipe_passed_to_who_does_not_read_is_refused(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();

    (void) state;
    testing_receive(testing, "[\"pipe\"]");
    testing_receive(testing, "[\"stream\",[\"pipeline\",1,[\"write\"],[\"x\"]]]");
    testing_receive(testing, "[\"stream\",[\"pipeline\",0,[\"test\",\"echo\"],[1,\"s\",null,"
                             "[\"readable\",1]]]]");
    expect_part(testing, "[\"reject\",2,");
    expect_part(testing, "[\"resolve\",3,");
    testing_receive(testing, "[\"release\",1,1]");
    expect_clean(testing);
}

static void input_that_nobody_takes_stops_the_peer(void **state)
{
    AUTO(testing) struct testing *testing = testing_new();
    AUTO(text) struct text frame = TEXT_INIT(1024 * 1024);

    (void) state;
    start_upload(testing);
    testing_last(testing)->pause_on_input = true;
    text_append(&frame, "[\"stream\",[\"pipeline\",1,[\"write\"],[\"");
    memset(text_reserve(&frame, 512 * 1024), 'x', 512 * 1024);
    text_commit(&frame, 512 * 1024);
    text_append(&frame, "\"]]]");
    for (int i = 0; !testing->held; i++) {
        assert_true(i < 20);
        testing_receive(testing, text_string(&frame));
    }
    testing_last(testing)->pause_on_input = false;
    call_resume_input(testing_last(testing)->call);
    testing_settle(testing);
    assert_false(testing->held);
    rpc_session_end(testing->session);
}

static void upload_round(uint32_t *random)
{
    AUTO(testing) struct testing *testing = testing_new();
    AUTO(text) struct text sent = TEXT_INIT(TESTING_FRAMES_MAX);
    struct kept_call *kept;
    bool closed = false;

    start_upload(testing);
    kept = testing_last(testing);
    while (!kept->input_ended) {
        AUTO(text) struct text frame = TEXT_INIT(1024 * 1024);
        size_t size = next_random(random) % 3000, before = sent.length;

        kept->pause_on_input = next_random(random) % 2;
        if (!closed && next_random(random) % 2) {
            for (size_t i = 0; i < size; i++)
                text_append_char(&sent, (char) next_random(random));
            text_append(&frame, "[\"stream\",[\"pipeline\",1,[\"write\"],[");
            rpc_expression_write_bytes(&frame, text_string(&sent) + before, size);
            text_append(&frame, "]]]");
            testing_receive(testing, text_string(&frame));
        } else if (!closed && next_random(random) % 64 == 0) {
            closed = true;
            testing_receive(testing, "[\"stream\",[\"pipeline\",1,[\"close\"],[]]]");
        } else {
            call_resume_input(kept->call);
            testing_settle(testing);
        }
    }
    assert_true(kept->input_complete);
    assert_int_equal(kept->input.length, sent.length);
    assert_memory_equal(text_string(&kept->input), text_string(&sent), sent.length);
    testing_reply(testing_take(kept), "{}");
    testing_receive(testing, "[\"release\",1,1]");
    testing_receive(testing, "[\"release\",2,1]");
    while (testing_next(testing))
        ;
    expect_clean(testing);
}

static void input_arrives_whole_and_in_order(void **state)
{
    uint32_t random = 11;

    (void) state;
    for (int i = 0; i < ROUNDS; i++)
        upload_round(&random);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_a_stream_with_event_lines),
        cmocka_unit_test(bytes_are_the_content_of_their_head),
        cmocka_unit_test(a_failed_start_of_a_command_is_an_event),
        cmocka_unit_test(a_reader_that_cancels_is_gone),
        cmocka_unit_test(a_stream_that_nobody_pulled_is_gone_when_released),
        cmocka_unit_test(a_stream_begun_for_nobody_is_gone),
        cmocka_unit_test(a_reader_that_does_not_read_stops_the_producer),
        cmocka_unit_test(streams_arrive_whole_and_in_order),
        cmocka_unit_test(input_comes_and_is_acknowledged),
        cmocka_unit_test(input_that_came_before_the_call_is_not_lost),
        cmocka_unit_test(a_paused_reader_delays_the_acknowledgement),
        cmocka_unit_test(input_for_a_call_that_ended_is_refused),
        cmocka_unit_test(a_pipe_is_read_once_and_only_written_to),
        cmocka_unit_test(a_pipe_passed_to_who_does_not_read_is_refused),
        cmocka_unit_test(input_that_nobody_takes_stops_the_peer),
        cmocka_unit_test(input_arrives_whole_and_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
