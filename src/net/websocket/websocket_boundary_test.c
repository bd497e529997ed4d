#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/text.h"
#include "net/net_testing.h"
#include "net/websocket/websocket_boundary.h"

#define FRAMES_MAX 40

/* Frames of random kinds and lengths, and where each ends. */
struct frames {
    struct text bytes;
    size_t ends[FRAMES_MAX];
    size_t count;
};

static uint64_t random_length(void)
{
    static const uint64_t edges[] = {0, 1, 125, 126, 127, 65535, 65536};

    return random() % 2 ? edges[(size_t) random() % ARRAY_COUNT(edges)] : (uint64_t) random() % 300;
}

static void add_frame(struct frames *frames, enum websocket_opcode opcode, uint64_t length)
{
    const struct websocket_frame frame = {
        .opcode = opcode, .final = random() % 2, .masked = random() % 2, .length = length};
    char header[WEBSOCKET_HEADER_MAX];

    text_append_bytes(&frames->bytes, header, websocket_frame_write(&frame, header));
    for (uint64_t i = 0; i < length; i++)
        text_append_char(&frames->bytes, (char) random()); /* looks like headers, too */
    frames->ends[frames->count++] = frames->bytes.length;
}

static bool is_an_end(const struct frames *frames, size_t at)
{
    for (size_t i = 0; i < frames->count; i++)
        if (frames->ends[i] == at)
            return true;
    return at == 0;
}

static void every_boundary_is_found_however_the_bytes_are_cut(void **state)
{
    (void) state;
    for (int round = 0; round < 40; round++) {
        struct frames frames = {.bytes = TEXT_INIT(SIZE_MAX / 2)};
        struct websocket_boundary boundary = {.left = 0};
        size_t at = 0;

        for (int i = 0; i < FRAMES_MAX; i++)
            add_frame(&frames, random() % 2 ? WEBSOCKET_TEXT : WEBSOCKET_CONTINUATION,
                      random_length());
        while (at < frames.bytes.length) {
            size_t most = frames.bytes.length - at, step = 1 + (size_t) random() % 400;

            if (step > most)
                step = most;
            websocket_boundary_pass(&boundary, frames.bytes.data + at, step);
            at += step;
            assert_int_equal(websocket_boundary_is_here(&boundary), is_an_end(&frames, at));
        }
        text_done(&frames.bytes);
    }
}

static void nothing_follows_a_close_frame(void **state)
{
    struct frames frames = {.bytes = TEXT_INIT(SIZE_MAX / 2)};
    struct websocket_boundary boundary = {.left = 0};

    (void) state;
    add_frame(&frames, WEBSOCKET_BINARY, 3);
    websocket_boundary_pass(&boundary, frames.bytes.data, frames.bytes.length);
    assert_true(websocket_boundary_is_here(&boundary));
    text_clear(&frames.bytes);
    add_frame(&frames, WEBSOCKET_CLOSE, 2);
    websocket_boundary_pass(&boundary, frames.bytes.data, frames.bytes.length);
    assert_false(websocket_boundary_is_here(&boundary));
    text_done(&frames.bytes);
}

/* What a hostile peer announces is never more than a number. */
static void a_frame_without_end_has_no_boundary(void **state)
{
    struct websocket_boundary boundary = {.left = 0};
    char bytes[4096];

    (void) state;
    memset(bytes, 0xff, sizeof(bytes));
    for (int i = 0; i < 100; i++) {
        websocket_boundary_pass(&boundary, bytes, sizeof(bytes));
        assert_false(websocket_boundary_is_here(&boundary));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_boundary_is_found_however_the_bytes_are_cut),
        cmocka_unit_test(nothing_follows_a_close_frame),
        cmocka_unit_test(a_frame_without_end_has_no_boundary),
    };

    srandom(1); /* the same every time */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
