#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "net/websocket/websocket_frame.h"

#define S WEBSOCKET_SERVER
#define C WEBSOCKET_CLIENT

struct header_case {
    const char *name;
    enum websocket_role role;
    size_t size;
    const char *bytes;
    int result; /* 1 or -EPROTO */
    enum websocket_opcode opcode;
    bool final;
    uint64_t length;
};

#define BYTES(text) sizeof(text) - 1, text

static const struct header_case header_cases[] = {
    {"empty text", C, BYTES("\x81\x00"), 1, WEBSOCKET_TEXT, true, 0},
    {"125 bytes", C, BYTES("\x82\x7d"), 1, WEBSOCKET_BINARY, true, 125},
    {"126 bytes", C, BYTES("\x82\x7e\x00\x7e"), 1, WEBSOCKET_BINARY, true, 126},
    {"65535 bytes", C, BYTES("\x82\x7e\xff\xff"), 1, WEBSOCKET_BINARY, true, 65535},
    {"65536 bytes", C, BYTES("\x82\x7f\0\0\0\0\0\1\0\0"), 1, WEBSOCKET_BINARY, true, 65536},
    {"largest", C, BYTES("\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"), 1, WEBSOCKET_BINARY, true,
     INT64_MAX},
    {"first fragment", C, BYTES("\x01\x05"), 1, WEBSOCKET_TEXT, false, 5},
    {"continuation", C, BYTES("\x00\x05"), 1, WEBSOCKET_CONTINUATION, false, 5},
    {"last fragment", C, BYTES("\x80\x05"), 1, WEBSOCKET_CONTINUATION, true, 5},
    {"close", C, BYTES("\x88\x02"), 1, WEBSOCKET_CLOSE, true, 2},
    {"ping", C, BYTES("\x89\x00"), 1, WEBSOCKET_PING, true, 0},
    {"pong", C, BYTES("\x8a\x7d"), 1, WEBSOCKET_PONG, true, 125},
    {"masked", S, BYTES("\x81\x85kkkk"), 1, WEBSOCKET_TEXT, true, 5},
    {"masked 16 bit", S, BYTES("\x81\xfe\x01\x00kkkk"), 1, WEBSOCKET_TEXT, true, 256},
    {"masked 64 bit", S, BYTES("\x81\xff\0\0\0\0\0\1\0\0kkkk"), 1, WEBSOCKET_TEXT, true, 65536},
    {"rsv1", C, BYTES("\xc1"), -EPROTO, 0, 0, 0},
    {"rsv2", C, BYTES("\xa1"), -EPROTO, 0, 0, 0},
    {"rsv3", C, BYTES("\x91"), -EPROTO, 0, 0, 0},
    {"opcode 3", C, BYTES("\x83"), -EPROTO, 0, 0, 0},
    {"opcode 7", C, BYTES("\x87"), -EPROTO, 0, 0, 0},
    {"opcode 11", C, BYTES("\x8b"), -EPROTO, 0, 0, 0},
    {"opcode 15", C, BYTES("\x8f"), -EPROTO, 0, 0, 0},
    {"fragmented close", C, BYTES("\x08"), -EPROTO, 0, 0, 0},
    {"fragmented ping", C, BYTES("\x09"), -EPROTO, 0, 0, 0},
    {"fragmented pong", C, BYTES("\x0a"), -EPROTO, 0, 0, 0},
    {"long ping", C, BYTES("\x89\x7e"), -EPROTO, 0, 0, 0},
    {"longer close", C, BYTES("\x88\x7f"), -EPROTO, 0, 0, 0},
    {"unmasked to server", S, BYTES("\x81\x05"), -EPROTO, 0, 0, 0},
    {"masked to client", C, BYTES("\x81\x85"), -EPROTO, 0, 0, 0},
    {"16 bits for 125", C, BYTES("\x82\x7e\x00\x7d"), -EPROTO, 0, 0, 0},
    {"64 bits for 65535", C, BYTES("\x82\x7f\0\0\0\0\0\0\xff\xff"), -EPROTO, 0, 0, 0},
    {"top bit", C, BYTES("\x82\x7f\x80\0\0\0\0\0\0\0"), -EPROTO, 0, 0, 0},
};

static void check_frame(const struct header_case *expected, int result,
                        const struct websocket_frame *frame)
{
    if (result != expected->result)
        fail_msg("%s: result %d", expected->name, result);
    if (result < 0)
        return;
    assert_int_equal(frame->opcode, expected->opcode);
    assert_int_equal(frame->final, expected->final);
    assert_int_equal(frame->length, expected->length);
    assert_int_equal(frame->masked, expected->role == S);
    if (frame->masked)
        assert_memory_equal(frame->key, "kkkk", WEBSOCKET_KEY_SIZE);
}

/* Feed in two pieces; whatever follows the header must stay untouched. */
static void parse_split(const struct header_case *header, size_t split)
{
    struct websocket_frame_parser parser = WEBSOCKET_FRAME_PARSER_INIT(header->role);
    struct websocket_frame frame = {0};
    char input[WEBSOCKET_HEADER_MAX + 1] = {0};
    const char *fault = NULL, *bytes = input;
    size_t length = split;
    int r;

    memcpy(input, header->bytes, header->size);
    r = websocket_frame_parse(&parser, &bytes, &length, &frame, &fault);
    assert_int_equal(length, 0);
    if (split < header->size) {
        assert_int_equal(r, 0);
        length = header->size - split + 1;
        r = websocket_frame_parse(&parser, &bytes, &length, &frame, &fault);
        assert_int_equal(length, 1);
        assert_ptr_equal(bytes, input + header->size);
    }
    check_frame(header, r, &frame);
    assert_true((r < 0) == (fault != NULL));
}

static void headers_are_read_at_every_split(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(header_cases); i++) {
        for (size_t split = 0; split <= header_cases[i].size; split++)
            parse_split(&header_cases[i], split);
    }
}

static void one_parser_reads_frame_after_frame(void **state)
{
    struct websocket_frame_parser parser = WEBSOCKET_FRAME_PARSER_INIT(S);
    const char *bytes = "\x81\x80kkkk\x82\xfe\x01\x00kkkk\x8a\x80kkkk", *fault;
    size_t length = 20;
    struct websocket_frame frame;

    (void) state;
    assert_int_equal(websocket_frame_parse(&parser, &bytes, &length, &frame, &fault), 1);
    assert_int_equal(frame.opcode, WEBSOCKET_TEXT);
    assert_int_equal(websocket_frame_parse(&parser, &bytes, &length, &frame, &fault), 1);
    assert_int_equal(frame.length, 256);
    assert_int_equal(websocket_frame_parse(&parser, &bytes, &length, &frame, &fault), 1);
    assert_int_equal(frame.opcode, WEBSOCKET_PONG);
    assert_int_equal(length, 0);
}

static void written_headers_are_the_shortest_and_read_back(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(header_cases); i++) {
        const struct header_case *header = &header_cases[i];
        struct websocket_frame frame = {
            .opcode = header->opcode,
            .final = header->final,
            .masked = header->role == S,
            .key = {'k', 'k', 'k', 'k'},
            .length = header->length,
        };
        char bytes[WEBSOCKET_HEADER_MAX];

        if (header->result < 0)
            continue;
        assert_int_equal(websocket_frame_write(&frame, bytes), header->size);
        assert_memory_equal(bytes, header->bytes, header->size);
    }
}

#define AREA 400

/* Every length around the block sizes, every phase of the key, every alignment of both sides. */
static void masking_equals_the_naive_loop(void **state)
{
    static const uint8_t key[WEBSOCKET_KEY_SIZE] = {0x12, 0xa5, 0x00, 0xff};
    char from[AREA], to[AREA];

    (void) state;
    for (size_t i = 0; i < AREA; i++)
        from[i] = (char) (i * 131 + 7);
    for (size_t length = 0; length <= 200; length++) {
        for (size_t variant = 0; variant < 64; variant++) {
            size_t phase = variant % 4, in = variant / 4 % 4 * 5, out = variant / 16 * 3;

            memset(to, 0x55, sizeof(to));
            websocket_mask(to + out, from + in, length, key, phase + (uint64_t) variant * 4);
            for (size_t i = 0; i < length; i++)
                assert_int_equal(to[out + i], (char) (from[in + i] ^ key[(phase + i) % 4]));
            for (size_t i = 0; i < AREA; i++) {
                if (i < out || i >= out + length)
                    assert_int_equal(to[i], 0x55);
            }
        }
    }
}

static void masking_in_place_twice_gives_the_bytes_back(void **state)
{
    static const uint8_t key[WEBSOCKET_KEY_SIZE] = {1, 2, 3, 4};
    char bytes[AREA], masked[AREA];

    (void) state;
    memset(bytes, 'x', sizeof(bytes));
    websocket_mask(masked, bytes, sizeof(bytes), key, 3);
    assert_memory_not_equal(masked, bytes, sizeof(bytes));
    websocket_mask(masked, masked, sizeof(bytes), key, 3);
    assert_memory_equal(masked, bytes, sizeof(bytes));
}

static void masking_in_pieces_equals_masking_at_once(void **state)
{
    static const uint8_t key[WEBSOCKET_KEY_SIZE] = {0xde, 0xad, 0xbe, 0xef};
    char from[AREA], whole[AREA], pieces[AREA];

    (void) state;
    for (size_t i = 0; i < AREA; i++)
        from[i] = (char) i;
    websocket_mask(whole, from, AREA, key, 0);
    for (size_t step = 1; step < 70; step++) {
        for (size_t at = 0; at < AREA; at += step) {
            size_t part = AREA - at < step ? AREA - at : step;

            websocket_mask(pieces + at, from + at, part, key, at);
        }
        assert_memory_equal(pieces, whole, AREA);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_are_read_at_every_split),
        cmocka_unit_test(one_parser_reads_frame_after_frame),
        cmocka_unit_test(written_headers_are_the_shortest_and_read_back),
        cmocka_unit_test(masking_equals_the_naive_loop),
        cmocka_unit_test(masking_in_place_twice_gives_the_bytes_back),
        cmocka_unit_test(masking_in_pieces_equals_masking_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
