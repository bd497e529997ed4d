#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "base/text.h"
#include "net/byte_queue.h"

#define QUEUE_MAX ((size_t) 8 * 1024 * 1024)

/* The same numbers every time: a failure can be looked at again. */
static uint32_t next_number(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t) (*state >> 33);
}

static size_t random_size(uint64_t *state)
{
    static const size_t sizes[] = {
        0, 1, 2, 100, BYTE_BLOCK_SIZE - 40, BYTE_BLOCK_SIZE, 3 * BYTE_BLOCK_SIZE};
    size_t size = sizes[next_number(state) % ARRAY_COUNT(sizes)];

    return size ? size - next_number(state) % (size < 64 ? size : 64) : 0;
}

static void append_random(struct byte_queue *queue, struct text *flat, uint64_t *state)
{
    char bytes[3 * BYTE_BLOCK_SIZE];
    size_t length = random_size(state);

    for (size_t i = 0; i < length; i++)
        bytes[i] = (char) next_number(state);
    byte_queue_append(queue, bytes, length);
    text_append_bytes(flat, bytes, length);
}

/* The parts that peek shows are the beginning of the flat copy, as far as they go. */
static void expect_same(const struct byte_queue *queue, const struct text *flat, int count)
{
    struct iovec parts[8];
    int filled = byte_queue_peek(queue, parts, count);
    size_t seen = 0;

    assert_int_equal(byte_queue_length(queue), flat->length);
    assert_in_range(filled, 0, count);
    for (int i = 0; i < filled; i++) {
        assert_true(parts[i].iov_len > 0);
        assert_true(parts[i].iov_len <= flat->length - seen);
        assert_memory_equal(parts[i].iov_base, flat->data + seen, parts[i].iov_len);
        seen += parts[i].iov_len;
    }
    if (filled < count)
        assert_int_equal(seen, flat->length);
    else
        assert_true(seen > 0);
}

static void any_appends_and_consumes_move_the_same_bytes(void **state)
{
    struct block_store *store = block_store_new(4);

    (void) state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        AUTO(text) struct text flat = TEXT_INIT(QUEUE_MAX);
        struct byte_queue queue;
        uint64_t numbers = seed;

        byte_queue_init(&queue, store);
        for (int i = 0; i < 200; i++) {
            size_t some = random_size(&numbers);

            if (next_number(&numbers) % 2) {
                append_random(&queue, &flat, &numbers);
            } else {
                some = some < flat.length ? some : flat.length;
                byte_queue_consume(&queue, some);
                text_consume(&flat, some);
            }
            expect_same(&queue, &flat, 1 + (int) (next_number(&numbers) % 8));
        }
        byte_queue_done(&queue);
        assert_int_equal(byte_queue_length(&queue), 0);
    }
    block_store_free(store);
}

static void an_emptied_queue_starts_again(void **state)
{
    struct block_store *store = block_store_new(0);
    struct byte_queue queue;
    struct iovec part;

    (void) state;
    byte_queue_init(&queue, store);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(byte_queue_peek(&queue, &part, 1), 0);
        byte_queue_append(&queue, "abc", 3);
        byte_queue_consume(&queue, 1);
        byte_queue_consume(&queue, 2);
    }
    byte_queue_append(&queue, "abc", 3);
    byte_queue_done(&queue);
    byte_queue_append(&queue, "xyz", 3);
    assert_int_equal(byte_queue_peek(&queue, &part, 1), 1);
    assert_memory_equal(part.iov_base, "xyz", 3);
    byte_queue_done(&queue);
    block_store_free(store);
}

static void two_queues_share_a_store_without_mixing(void **state)
{
    struct block_store *store = block_store_new(2);
    struct byte_queue one, other;
    struct iovec part;

    (void) state;
    byte_queue_init(&one, store);
    byte_queue_init(&other, store);
    byte_queue_append(&one, "one", 3);
    byte_queue_append(&other, "other", 5);
    byte_queue_done(&one);
    byte_queue_append(&one, "again", 5);
    assert_int_equal(byte_queue_peek(&other, &part, 1), 1);
    assert_memory_equal(part.iov_base, "other", 5);
    assert_int_equal(byte_queue_peek(&one, &part, 1), 1);
    assert_memory_equal(part.iov_base, "again", 5);
    byte_queue_done(&one);
    byte_queue_done(&other);
    block_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_appends_and_consumes_move_the_same_bytes),
        cmocka_unit_test(an_emptied_queue_starts_again),
        cmocka_unit_test(two_queues_share_a_store_without_mixing),
    };

    return cmocka_run_group_tests_name("byte_queue", tests, NULL, NULL);
}
