#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_test.h"
#include "agent/process/process_log.h"
#include "base/memory.h"
#include "base/text.h"

/* Everything a cursor gives, as "o:text" and "e:text"; neighbours of the same output are joined. */
static void drain(struct process_log_cursor *cursor, struct text *text)
{
    enum exec_output which;
    const char *bytes;
    size_t length;
    int last = -1;

    while (process_log_next(cursor, &which, &bytes, &length)) {
        if ((int) which != last)
            text_append(text, which == EXEC_STDOUT ? "o:" : "e:");
        text_append_bytes(text, bytes, length);
        last = (int) which;
    }
}

static void append(struct process_log *log, enum exec_output which, const char *text)
{
    process_log_append(log, which, text, strlen(text));
}

static void order_and_outputs_are_kept(void **state)
{
    AUTO(text) struct text seen = TEXT_INIT(1024);
    struct process_log_store store;
    struct process_log_cursor cursor;
    struct process_log log;

    (void) state;
    process_log_store_init(&store);
    process_log_init(&log, &store);
    append(&log, EXEC_STDOUT, "one");
    append(&log, EXEC_STDOUT, " two");
    append(&log, EXEC_STDERR, "three");
    append(&log, EXEC_STDOUT, "four");
    process_log_open(&cursor, &log);
    drain(&cursor, &seen);
    assert_string_equal(text_string(&seen), "o:one twoe:threeo:four");
    process_log_close(&cursor);
    process_log_close(&cursor);
    process_log_done(&log);
    assert_int_equal(store.used, 0);
}

static void a_cursor_goes_on_where_it_was(void **state)
{
    AUTO(text) struct text seen = TEXT_INIT(1024);
    struct process_log_store store;
    struct process_log_cursor cursor;
    struct process_log log;

    (void) state;
    process_log_store_init(&store);
    process_log_init(&log, &store);
    process_log_open(&cursor, &log);
    drain(&cursor, &seen);
    assert_int_equal(seen.length, 0);
    append(&log, EXEC_STDOUT, "a");
    drain(&cursor, &seen);
    append(&log, EXEC_STDOUT, "b");
    drain(&cursor, &seen);
    append(&log, EXEC_STDERR, "c");
    drain(&cursor, &seen);
    assert_string_equal(text_string(&seen), "o:ao:be:c");
    assert_int_equal(cursor.position, log.total);
    process_log_close(&cursor);
    process_log_done(&log);
}

/* Fill with pieces of random sizes and read with cursors of random diligence: what a cursor saw and
 * what it was told to have missed are together what was written, in order and to the last byte. */
static void what_was_read_and_dropped_is_all_that_was_written(void **state)
{
    enum { CURSORS = 3, ROUNDS = 4000, ALPHABET = 251 };
    struct process_log_store store;
    struct process_log_cursor cursors[CURSORS];
    uint64_t next[CURSORS] = {0}; /* how many bytes of the sequence were passed */
    unsigned int seed = 7;
    struct process_log log;
    uint64_t written = 0;
    char bytes[5000];

    (void) state;
    process_log_store_init(&store);
    store.log_max = 60000;
    process_log_init(&log, &store);
    for (int i = 0; i < CURSORS; i++)
        process_log_open(&cursors[i], &log);
    for (int round = 0; round < ROUNDS; round++) {
        size_t length = (seed = seed * 1103515245 + 12345) / 65536 % sizeof(bytes);

        for (size_t i = 0; i < length; i++)
            bytes[i] = (char) ((written + i) % ALPHABET);
        process_log_append(&log, EXEC_STDOUT, bytes, length);
        written += length;
        assert_true(log.used <= store.log_max);
        for (int i = 0; i < CURSORS; i++) {
            enum exec_output which;
            const char *got;

            if (round % (1 + i * 20) != 0)
                continue;
            next[i] += process_log_take_dropped(&cursors[i], EXEC_STDOUT);
            while (process_log_next(&cursors[i], &which, &got, &length)) {
                for (size_t j = 0; j < length; j++)
                    assert_int_equal((unsigned char) got[j], (next[i] + j) % ALPHABET);
                next[i] += length;
            }
            assert_int_equal(next[i], written);
            assert_int_equal(cursors[i].position, written);
        }
    }
    assert_int_equal(next[0], written); /* the diligent one missed nothing, and the last much */
    assert_true(log.dropped[EXEC_STDOUT] > 0);
    for (int i = 0; i < CURSORS; i++)
        process_log_close(&cursors[i]);
    process_log_done(&log);
    assert_int_equal(store.used, 0);
}

static void a_new_cursor_is_told_what_was_dropped_before(void **state)
{
    struct process_log_store store;
    struct process_log_cursor cursor;
    struct process_log log;

    (void) state;
    process_log_store_init(&store);
    store.log_max = 3 * PROCESS_LOG_PIECE;
    process_log_init(&log, &store);
    for (int i = 0; i < 20000; i++)
        append(&log, EXEC_STDERR, "0123456789");
    process_log_open(&cursor, &log);
    assert_int_equal(process_log_take_dropped(&cursor, EXEC_STDOUT), 0);
    assert_int_equal(process_log_take_dropped(&cursor, EXEC_STDERR), log.dropped[EXEC_STDERR]);
    assert_int_equal(process_log_take_dropped(&cursor, EXEC_STDERR), 0);
    assert_int_equal(cursor.position, log.dropped[EXEC_STDERR]);
    process_log_close(&cursor);
    process_log_done(&log);
}

static void the_largest_log_gives_way(void **state)
{
    struct process_log_store store;
    struct process_log large, small;
    char *block = mem_alloc(PROCESS_LOG_PIECE);

    (void) state;
    process_log_store_init(&store);
    store.total_max = 8 * (PROCESS_LOG_PIECE + 256);
    process_log_init(&large, &store);
    process_log_init(&small, &store);
    append(&small, EXEC_STDOUT, "small");
    for (int i = 0; i < 20; i++)
        process_log_append(&large, EXEC_STDOUT, block, PROCESS_LOG_PIECE);
    append(&small, EXEC_STDOUT, " talk");
    assert_int_equal(small.dropped[EXEC_STDOUT], 0);
    assert_true(large.dropped[EXEC_STDOUT] > 0);
    assert_true(store.used <= store.total_max);
    process_log_done(&large);
    process_log_done(&small);
    free(block);
}

static void tiny_pieces_count_for_what_they_cost(void **state)
{
    struct process_log_store store;
    struct process_log log;

    (void) state;
    process_log_store_init(&store);
    store.log_max = 100000;
    process_log_init(&log, &store);
    for (int i = 0; i < 10000; i++)
        append(&log, i % 2 ? EXEC_STDERR : EXEC_STDOUT, "x");
    assert_true(log.used <= store.log_max);
    assert_true(log.dropped[EXEC_STDOUT] > 8000 / 2);
    process_log_done(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_and_outputs_are_kept),
        cmocka_unit_test(a_cursor_goes_on_where_it_was),
        cmocka_unit_test(what_was_read_and_dropped_is_all_that_was_written),
        cmocka_unit_test(a_new_cursor_is_told_what_was_dropped_before),
        cmocka_unit_test(the_largest_log_gives_way),
        cmocka_unit_test(tiny_pieces_count_for_what_they_cost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
