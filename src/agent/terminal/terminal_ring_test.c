#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/terminal/terminal_ring.h"
#include "base/auto.h"
#include "base/memory.h"

AUTO_DEFINE(ring, struct terminal_ring, terminal_ring_done);

/* The byte at a position: prime, so that a shift by the ring's size shows. */
static char expected(uint64_t position)
{
    return (char) (position % 251);
}

static void append(struct terminal_ring *ring, size_t length)
{
    AUTO(free) char *bytes = mem_alloc(length + 1);

    for (size_t i = 0; i < length; i++)
        bytes[i] = expected(ring->end + i);
    terminal_ring_append(ring, bytes, length);
}

static uint64_t read_all(const struct terminal_ring *ring, uint64_t from)
{
    const char *bytes;
    size_t length;

    while ((length = terminal_ring_peek(ring, from, &bytes))) {
        for (size_t i = 0; i < length; i++)
            assert_int_equal(bytes[i], expected(from + i));
        from += length;
    }
    return from;
}

static void an_empty_ring_has_nothing(void **state)
{
    AUTO(ring) struct terminal_ring ring = {.bytes = NULL};
    const char *bytes;

    (void) state;
    assert_int_equal(terminal_ring_start(&ring), 0);
    assert_int_equal(terminal_ring_entry(&ring), 0);
    assert_int_equal(terminal_ring_peek(&ring, 0, &bytes), 0);
    terminal_ring_append(&ring, "", 0);
    assert_int_equal(terminal_ring_peek(&ring, 0, &bytes), 0);
}

static void pieces_of_any_size_are_read_back(void **state)
{
    static const size_t sizes[] = {1,
                                   7,
                                   4096,
                                   TERMINAL_RING_SIZE / 2 + 1,
                                   TERMINAL_RING_SIZE - 1,
                                   TERMINAL_RING_SIZE,
                                   TERMINAL_RING_SIZE + 1,
                                   3 * TERMINAL_RING_SIZE + 5,
                                   3};
    AUTO(ring) struct terminal_ring ring = {.bytes = NULL};
    uint64_t total = 0;
    unsigned int seed = 1;

    (void) state;
    for (int round = 0; round < 60; round++) {
        size_t length;

        seed = seed * 1103515245 + 12345;
        length = sizes[(seed >> 16) % ARRAY_COUNT(sizes)];
        append(&ring, length);
        total += length;
        assert_int_equal(ring.end, total);
        assert_int_equal(terminal_ring_start(&ring),
                         total > TERMINAL_RING_SIZE ? total - TERMINAL_RING_SIZE : 0);
        assert_int_equal(read_all(&ring, terminal_ring_start(&ring)), total);
        assert_true(terminal_ring_entry(&ring) >= terminal_ring_start(&ring));
        assert_true(terminal_ring_entry(&ring) <= total);
    }
}

static void the_entry_is_behind_a_line_break(void **state)
{
    AUTO(ring) struct terminal_ring ring = {.bytes = NULL};
    AUTO(free) char *fill = mem_alloc(TERMINAL_RING_SIZE);

    (void) state;
    memset(fill, 'x', TERMINAL_RING_SIZE);
    fill[100] = '\n';
    terminal_ring_append(&ring, fill, TERMINAL_RING_SIZE);
    assert_int_equal(terminal_ring_entry(&ring), 0); /* nothing is missing */
    terminal_ring_append(&ring, "y", 1);
    assert_int_equal(terminal_ring_entry(&ring), 101);
}

static void without_line_breaks_the_entry_is_a_whole_character(void **state)
{
    AUTO(ring) struct terminal_ring ring = {.bytes = NULL};
    AUTO(free) char *fill = mem_alloc(TERMINAL_RING_SIZE);

    (void) state;
    memset(fill, 'x', TERMINAL_RING_SIZE);
    for (size_t i = 0; i < 3; i++)
        fill[i] = "\xe2\x82\xac"[i];
    terminal_ring_append(&ring, fill, TERMINAL_RING_SIZE);
    terminal_ring_append(&ring, "y", 1);
    assert_int_equal(terminal_ring_start(&ring), 1);
    assert_int_equal(terminal_ring_entry(&ring), 3);
    memset(fill, '\x80', TERMINAL_RING_SIZE); /* no text at all */
    terminal_ring_append(&ring, fill, TERMINAL_RING_SIZE);
    assert_int_equal(terminal_ring_entry(&ring), terminal_ring_start(&ring));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_ring_has_nothing),
        cmocka_unit_test(pieces_of_any_size_are_read_back),
        cmocka_unit_test(the_entry_is_behind_a_line_break),
        cmocka_unit_test(without_line_breaks_the_entry_is_a_whole_character),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
