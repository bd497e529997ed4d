#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/text.h"
#include "net/websocket/websocket_reader.h"

#define TEST_MESSAGE_MAX 64
#define TEST_FRAMES_MAX  4

/* What a reader told, written down: T(text) B(binary) ping(x) pong(x) close(code,x) fault(code).
 * Pieces are joined and written when their message ends, so that both modes read the same. */
struct story {
    struct text told;
    struct text pieces;
    bool in_message;
};

#define STORY_INIT                                                                                 \
    {                                                                                              \
        .told = TEXT_INIT(1 << 20), .pieces = TEXT_INIT(1 << 20)                                   \
    }

static void story_done(struct story *story)
{
    text_done(&story->told);
    text_done(&story->pieces);
}

AUTO_DEFINE(story, struct story, story_done);

static void tell_data(struct story *story, const struct websocket_event *event)
{
    assert_int_equal(event->first, !story->in_message);
    assert_true(event->length > 0 || event->last);
    story->in_message = !event->last;
    text_append_bytes(&story->pieces, event->bytes, event->length);
    if (!event->last)
        return;
    text_append(&story->told, event->kind == WEBSOCKET_TEXT ? "T(" : "B(");
    text_append_bytes(&story->told, text_string(&story->pieces), story->pieces.length);
    text_append(&story->told, ")");
    text_clear(&story->pieces);
}

static void tell(struct story *story, const struct websocket_event *event)
{
    assert_non_null(event->bytes);
    switch (event->type) {
    case WEBSOCKET_EVENT_DATA:
        tell_data(story, event);
        return;
    case WEBSOCKET_EVENT_PING:
    case WEBSOCKET_EVENT_PONG:
        text_append(&story->told, event->type == WEBSOCKET_EVENT_PING ? "ping(" : "pong(");
        text_append_bytes(&story->told, event->bytes, event->length);
        break;
    case WEBSOCKET_EVENT_CLOSE:
        text_format(&story->told, "close(%d,", event->code);
        text_append_bytes(&story->told, event->bytes, event->length);
        break;
    case WEBSOCKET_EVENT_FAULT:
        text_format(&story->told, "fault(%d", event->code);
        break;
    }
    text_append(&story->told, ")");
}

/* Each piece is copied to memory of exactly its size, so that reading past it is found. */
static void feed(struct websocket_reader *reader, struct story *story, const char *bytes,
                 size_t length)
{
    AUTO(free) char *copy = mem_copy_bytes(bytes, length);
    char scratch[WEBSOCKET_SCRATCH_SIZE];
    struct websocket_event event;
    const char *at = copy;

    while (websocket_reader_next(reader, &at, &length, scratch, &event))
        tell(story, &event);
    assert_int_equal(length, 0);
}

/* The same frames as a client would send them. Faults may end the input early. */
static void mask_frames(const char *bytes, size_t size, struct text *ret_masked)
{
    static const uint8_t key[] = {0x37, 0xfa, 0x21, 0x3d};
    size_t at = 0;

    while (at + 2 <= size) {
        size_t length = (uint8_t) bytes[at + 1] & 0x7f, header = 2;

        if (length == 126 && at + 4 <= size) {
            length = (size_t) (uint8_t) bytes[at + 2] << 8 | (uint8_t) bytes[at + 3];
            header = 4;
        }
        text_append_char(ret_masked, bytes[at]);
        text_append_char(ret_masked, (char) (bytes[at + 1] | 0x80));
        text_append_bytes(ret_masked, bytes + at + 2, header - 2);
        text_append_bytes(ret_masked, key, sizeof(key));
        at += header;
        for (size_t i = 0; i < length && at < size; i++, at++)
            text_append_char(ret_masked, (char) (bytes[at] ^ key[i % 4]));
    }
    text_append_bytes(ret_masked, bytes + at, size - at);
}

struct reader_case {
    const char *name;
    size_t size;
    const char *bytes; /* as a server sends them */
    const char *told;
};

#define BYTES(text) sizeof(text) - 1, text
#define TEN         "0123456789"
#define SIXTY       TEN TEN TEN TEN TEN TEN
#define HUNDRED     SIXTY TEN TEN TEN TEN

static const struct reader_case cases[] = {
    {"a text", BYTES("\x81\x05Hello"), "T(Hello)"},
    {"a binary", BYTES("\x82\x03\x80\xff\xfe"), "B(\x80\xff\xfe)"},
    {"empty messages", BYTES("\x81\x00\x82\x00"), "T()B()"},
    {"two messages",
     BYTES("\x81\x01"
           "a\x81\x01"
           "b"),
     "T(a)T(b)"},
    {"fragments", BYTES("\x01\x03Hel\x80\x02lo"), "T(Hello)"},
    {"fragments around controls",
     BYTES("\x01\x01H\x89\x01p\x00\x02"
           "el\x8a\x00\x80\x02lo"),
     "ping(p)pong()T(Hello)"},
    {"empty fragments", BYTES("\x02\x00\x00\x00\x00\x01x\x80\x00"), "B(x)"},
    {"only empty fragments", BYTES("\x01\x00\x00\x00\x80\x00"), "T()"},
    {"longest message", BYTES("\x81\x40" SIXTY "0123"), "T(" SIXTY "0123)"},
    {"message too long", BYTES("\x81\x41"), "fault(1009)"},
    {"fragments too long", BYTES("\x01\x3c" SIXTY "\x00\x05"), "fault(1009)"},
    {"very long", BYTES("\x82\x7e\xff\xff"), "fault(1009)"},
    {"most frames", BYTES("\x01\x00\x00\x00\x00\x00\x80\x00"), "T()"},
    {"too many frames", BYTES("\x01\x00\x00\x00\x00\x00\x00\x00\x80\x00"), "fault(1008)"},
    {"controls are not counted", BYTES("\x01\x00\x00\x00\x89\x00\x00\x00\x89\x00\x80\x00"),
     "ping()ping()T()"},
    {"continuation of nothing", BYTES("\x80\x01x"), "fault(1002)"},
    {"continuation after the end", BYTES("\x81\x00\x80\x00"), "T()fault(1002)"},
    {"text inside text", BYTES("\x01\x01x\x81\x01y"), "fault(1002)"},
    {"binary inside text", BYTES("\x01\x01x\x02\x01y"), "fault(1002)"},
    {"reserved bit", BYTES("\x81\x01x\xc1\x01y"), "T(x)fault(1002)"},
    {"reserved opcode", BYTES("\x83\x00"), "fault(1002)"},
    {"fragmented ping", BYTES("\x09\x00"), "fault(1002)"},
    {"longest ping", BYTES("\x89\x7d" HUNDRED TEN TEN "01234"), "ping(" HUNDRED TEN TEN "01234)"},
    {"long ping", BYTES("\x89\x7e"), "fault(1002)"},
    {"character across fragments", BYTES("\x01\x01\xc3\x80\x01\xa4"), "T(\xc3\xa4)"},
    {"character across control", BYTES("\x01\x01\xc3\x89\x00\x80\x01\xa4"), "ping()T(\xc3\xa4)"},
    {"broken text", BYTES("\x81\x02\xc3x"), "fault(1007)"},
    {"broken in the first fragment", BYTES("\x01\x02\xc3x"), "fault(1007)"},
    {"surrogate", BYTES("\x81\x03\xed\xa0\x80"), "fault(1007)"},
    {"overlong", BYTES("\x81\x02\xc0\xaf"), "fault(1007)"},
    {"beyond unicode before it is complete", BYTES("\x01\x02\xf4\x90"), "fault(1007)"},
    {"ends inside a character", BYTES("\x81\x01\xc3"), "fault(1007)"},
    {"ends inside, by an empty fragment", BYTES("\x01\x01\xc3\x80\x00"), "fault(1007)"},
    {"next text starts afresh", BYTES("\x82\x01\xc3\x81\x01x"), "B(\xc3)T(x)"},
    {"close without a code", BYTES("\x88\x00"), "close(1005,)"},
    {"close", BYTES("\x88\x02\x03\xe8"), "close(1000,)"},
    {"close with a reason",
     BYTES("\x88\x05\x03\xe9"
           "bye"),
     "close(1001,bye)"},
    {"nothing after close", BYTES("\x88\x00\x81\x01x\xff"), "close(1005,)"},
    {"close inside a message", BYTES("\x01\x01x\x88\x00\x80\x01y"), "close(1005,)"},
    {"half a code", BYTES("\x88\x01\x03"), "fault(1002)"},
    {"broken reason", BYTES("\x88\x03\x03\xe8\xff"), "fault(1007)"},
    {"reason ends inside a character", BYTES("\x88\x03\x03\xe8\xc3"), "fault(1007)"},
    {"nothing after a fault", BYTES("\x83\x00\x81\x01x"), "fault(1002)"},
    {"unfinished header", BYTES("\x81\x01x\x81"), "T(x)"},
    {"unfinished payload", BYTES("\x81\x01x\x81\x02y"), "T(x)"},
};

static struct websocket_reader new_reader(enum websocket_role role, bool streaming)
{
    struct websocket_reader reader;

    websocket_reader_init(&reader, role, streaming, TEST_MESSAGE_MAX, TEST_FRAMES_MAX);
    return reader;
}

static void run_in_two(const struct reader_case *test, enum websocket_role role, bool streaming,
                       const struct text *input, size_t split)
{
    struct websocket_reader reader = new_reader(role, streaming);
    AUTO(story) struct story story = STORY_INIT;

    feed(&reader, &story, input->data, split);
    feed(&reader, &story, input->data + split, input->length - split);
    if (strcmp(text_string(&story.told), test->told) != 0)
        fail_msg("%s: '%s' at split %zu", test->name, text_string(&story.told), split);
    websocket_reader_release(&reader);
    assert_null(reader.lent);
    websocket_reader_done(&reader);
}

static void run_byte_by_byte(const struct reader_case *test, enum websocket_role role,
                             bool streaming, const struct text *input)
{
    struct websocket_reader reader = new_reader(role, streaming);
    AUTO(story) struct story story = STORY_INIT;

    for (size_t i = 0; i < input->length; i++)
        feed(&reader, &story, input->data + i, 1);
    if (strcmp(text_string(&story.told), test->told) != 0)
        fail_msg("%s: '%s' byte by byte", test->name, text_string(&story.told));
    websocket_reader_done(&reader);
}

static void run_all_ways(enum websocket_role role, bool streaming)
{
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        AUTO(text) struct text input = TEXT_INIT(4096);

        if (role == WEBSOCKET_SERVER)
            mask_frames(cases[i].bytes, cases[i].size, &input);
        else
            text_append_bytes(&input, cases[i].bytes, cases[i].size);
        for (size_t split = 0; split <= input.length; split++)
            run_in_two(&cases[i], role, streaming, &input, split);
        run_byte_by_byte(&cases[i], role, streaming, &input);
    }
}

static void client_reads_messages_at_every_split(void **state)
{
    (void) state;
    run_all_ways(WEBSOCKET_CLIENT, false);
}

static void server_reads_messages_at_every_split(void **state)
{
    (void) state;
    run_all_ways(WEBSOCKET_SERVER, false);
}

static void client_streams_pieces_at_every_split(void **state)
{
    (void) state;
    run_all_ways(WEBSOCKET_CLIENT, true);
}

static void server_streams_pieces_at_every_split(void **state)
{
    (void) state;
    run_all_ways(WEBSOCKET_SERVER, true);
}

static bool may_be_sent(unsigned int code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
           (code >= 3000 && code <= 4999);
}

static void every_close_code_is_judged(void **state)
{
    (void) state;
    for (unsigned int code = 0; code <= UINT16_MAX; code++) {
        struct websocket_reader reader = new_reader(WEBSOCKET_CLIENT, false);
        char scratch[WEBSOCKET_SCRATCH_SIZE];
        char frame[] = {(char) 0x88, 2, (char) (code >> 8), (char) code};
        const char *bytes = frame;
        size_t length = sizeof(frame);
        struct websocket_event event;

        assert_int_equal(websocket_code_is_valid(code), may_be_sent(code));
        assert_true(websocket_reader_next(&reader, &bytes, &length, scratch, &event));
        if (may_be_sent(code)) {
            assert_int_equal(event.type, WEBSOCKET_EVENT_CLOSE);
            assert_int_equal(event.code, code);
        } else {
            assert_int_equal(event.type, WEBSOCKET_EVENT_FAULT);
            assert_int_equal(event.code, WEBSOCKET_CODE_PROTOCOL);
        }
    }
    assert_false(websocket_code_is_valid(65536 + 1000));
}

static void announced_bytes_cost_nothing_until_they_come(void **state)
{
    struct websocket_reader reader;
    AUTO(story) struct story story = STORY_INIT;

    (void) state;
    websocket_reader_init(&reader, WEBSOCKET_CLIENT, false, 1 << 30, 10);
    feed(&reader, &story, "\x82\x7f\0\0\0\0\x20\0\0\0" HUNDRED, 10 + 100);
    assert_true(reader.capacity <= 200);
    websocket_reader_done(&reader);
}

static void plain_whole_message_is_not_copied(void **state)
{
    struct websocket_reader reader = new_reader(WEBSOCKET_CLIENT, false);
    char scratch[WEBSOCKET_SCRATCH_SIZE];
    const char *input = "\x81\x05Hello", *bytes = input;
    size_t length = 7;
    struct websocket_event event;

    (void) state;
    assert_true(websocket_reader_next(&reader, &bytes, &length, scratch, &event));
    assert_ptr_equal(event.bytes, input + 2);
}

static void small_masked_message_needs_no_memory(void **state)
{
    struct websocket_reader reader = new_reader(WEBSOCKET_SERVER, false);
    char scratch[WEBSOCKET_SCRATCH_SIZE];
    const char *bytes = "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
    size_t length = 11;
    struct websocket_event event;

    (void) state;
    assert_true(websocket_reader_next(&reader, &bytes, &length, scratch, &event));
    assert_ptr_equal(event.bytes, scratch);
    assert_memory_equal(event.bytes, "Hello", 5);
    assert_null(reader.message);
}

static void discarding_reader_waits_for_close_only(void **state)
{
    struct websocket_reader reader = new_reader(WEBSOCKET_CLIENT, false);
    AUTO(story) struct story story = STORY_INIT;

    (void) state;
    feed(&reader, &story, "\x01\x02xy", 4);
    assert_non_null(reader.message);
    websocket_reader_discard(&reader);
    assert_null(reader.message);
    /* broken text, too long, in too many frames: none of it matters any more */
    feed(&reader, &story, "\x00\x01\xff\x00\x7d" HUNDRED TEN TEN "01234", 5 + 125);
    feed(&reader, &story, "\x00\x00\x00\x00\x00\x00\x80\x00\x81\x01x\x88\x02\x03\xe8", 15);
    assert_string_equal(text_string(&story.told), "close(1000,)");
    websocket_reader_done(&reader);
}

static void discarding_reader_still_knows_frames(void **state)
{
    struct websocket_reader reader = new_reader(WEBSOCKET_CLIENT, false);
    AUTO(story) struct story story = STORY_INIT;

    (void) state;
    websocket_reader_discard(&reader);
    feed(&reader, &story, "\x81\x00\x80\x00", 4);
    assert_string_equal(text_string(&story.told), "fault(1002)");
}

/* Large messages go through every branch of unmasking, growing and checking: cut at random. */
static void large_messages_survive_random_cuts(void **state)
{
    const size_t size = 300000;
    AUTO(free) char *payload = mem_alloc(size);
    AUTO(text) struct text input = TEXT_INIT(1 << 20);
    uint8_t key[] = {9, 8, 7, 6};
    uint32_t random = 1;

    (void) state;
    for (size_t i = 0; i < size; i++)
        payload[i] = "aß"[i % 3];
    for (size_t at = 0, part; at < size; at += part) {
        struct websocket_frame frame = {.masked = true, .key = {9, 8, 7, 6}};
        char header[WEBSOCKET_HEADER_MAX];

        part = size - at < 70000 ? size - at : 70000;
        frame.opcode = at ? WEBSOCKET_CONTINUATION : WEBSOCKET_TEXT;
        frame.final = at + part == size;
        frame.length = part;
        text_append_bytes(&input, header, websocket_frame_write(&frame, header));
        websocket_mask(text_reserve(&input, part), payload + at, part, key, 0);
        text_commit(&input, part);
    }
    for (int round = 0; round < 40; round++) {
        struct websocket_reader reader;
        AUTO(story) struct story story = STORY_INIT;

        websocket_reader_init(&reader, WEBSOCKET_SERVER, round % 2, size, 10);
        for (size_t at = 0, part; at < input.length; at += part) {
            random = random * 1664525 + 1013904223;
            part = 1 + (random >> 8) % 60000;
            part = part < input.length - at ? part : input.length - at;
            feed(&reader, &story, input.data + at, part);
        }
        assert_int_equal(story.told.length, size + 3);
        assert_memory_equal(story.told.data + 2, payload, size);
        websocket_reader_done(&reader);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(client_reads_messages_at_every_split),
        cmocka_unit_test(server_reads_messages_at_every_split),
        cmocka_unit_test(client_streams_pieces_at_every_split),
        cmocka_unit_test(server_streams_pieces_at_every_split),
        cmocka_unit_test(every_close_code_is_judged),
        cmocka_unit_test(announced_bytes_cost_nothing_until_they_come),
        cmocka_unit_test(plain_whole_message_is_not_copied),
        cmocka_unit_test(small_masked_message_needs_no_memory),
        cmocka_unit_test(discarding_reader_waits_for_close_only),
        cmocka_unit_test(discarding_reader_still_knows_frames),
        cmocka_unit_test(large_messages_survive_random_cuts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
