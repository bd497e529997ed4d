/* The part of the contract about files, streams, and calls side by side. Included by
 * objects_contract.h only. */
#pragma once

#include <poll.h>

#include "objects/objects_testing.h"
#include "sys/file/sys_file.h"

static size_t large_of(const struct contract *contract)
{
    return contract->backend->large_bytes ? contract->backend->large_bytes : LARGE_BYTES;
}

static void sum_of(int file, uint8_t ret_sum[static OBJECTS_SUM_SIZE])
{
    struct sha256 sum;
    AUTO(free) char *bytes = mem_alloc(1 << 20);
    off_t done = 0;
    ssize_t count;

    sha256_init(&sum);
    while ((count = pread(file, bytes, 1 << 20, done)) > 0) {
        sha256_add(&sum, bytes, (size_t) count);
        done += count;
    }
    sha256_finish(&sum, ret_sum);
}

/* --- files ------------------------------------------------------------------------------------ */

static void a_large_file_comes_back(void **state)
{
    struct contract *contract = *state;
    struct object_put_options options = {.progress = on_progress};
    size_t size = large_of(contract);
    AUTO(close) int file = file_of(size);
    AUTO(close) int back = file_of(0);
    uint8_t sum[OBJECTS_SUM_SIZE];
    /* The descriptor stands at its end: that does not matter. */
    AUTO(reply) struct reply *put = put_file(contract, "large", file, &options);
    AUTO(reply) struct reply *got = NULL;
    AUTO(reply) struct reply *copied = NULL;

    expect_ok(put);
    assert_int_equal(put->info.size, size);
    assert_int_equal(put->progress_bytes, size);
    assert_true(put->progress_times > 0);
    sum_of(file, sum);
    assert_true(put->info.has_sum);
    assert_memory_equal(put->info.sum, sum, sizeof(sum));
    copied = copy(contract, "large", "copied");
    expect_ok(copied);
    got = get_file(contract, "copied", back, sum);
    expect_ok(got);
    expect_series(back, size);
}

static void a_file_that_was_longer_is_cut(void **state)
{
    struct contract *contract = *state;
    AUTO(close) int file = file_of(1000);
    AUTO(close) int back = file_of(300000);
    AUTO(reply) struct reply *put = put_file(contract, "key", file, NULL);
    AUTO(reply) struct reply *got = get_file(contract, "key", back, NULL);

    expect_ok(put);
    expect_ok(got);
    expect_series(back, 1000);
}

static void an_empty_file_is_an_object(void **state)
{
    struct contract *contract = *state;
    AUTO(close) int file = file_of(0);
    AUTO(close) int back = file_of(10);
    AUTO(reply) struct reply *put = put_file(contract, "key", file, NULL);
    AUTO(reply) struct reply *got = get_file(contract, "key", back, NULL);

    expect_ok(put);
    expect_ok(got);
    expect_series(back, 0);
}

static void what_has_another_sum_is_refused(void **state)
{
    struct contract *contract = *state;
    AUTO(close) int file = file_of(1000);
    AUTO(close) int back = file_of(0);
    uint8_t sum[OBJECTS_SUM_SIZE];
    AUTO(reply) struct reply *put = put_file(contract, "key", file, NULL);

    expect_ok(put);
    sum_of(file, sum);
    {
        AUTO(reply) struct reply *right = get_file(contract, "key", back, sum);

        expect_ok(right);
    }
    sum[0] ^= 1;
    {
        AUTO(reply) struct reply *wrong = get_file(contract, "key", back, sum);

        expect_code(wrong, ERR_UPSTREAM);
    }
}

static void the_callers_descriptor_may_be_closed(void **state)
{
    struct contract *contract = *state;
    int file = file_of(100000);
    AUTO(reply) struct reply *put = reply_new();

    (void) objects_put_file(contract->objects, "key", file, NULL, on_info, put);
    (void) close(file);
    OBJECTS_WAIT(contract, put->times);
    expect_ok(put);
    assert_int_equal(put->info.size, 100000);
}

/* --- streams ---------------------------------------------------------------------------------- */

static struct reply *stream_in(struct contract *contract, const char *key, size_t length,
                               size_t pause_every, int flags)
{
    struct reply *reply = reply_new();
    struct peer peer;
    int pipes[2];

    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    assert_int_equal(fcntl(pipes[0], F_SETFL, flags), 0);
    peer_start(&peer, peer_write, pipes[1], length, pause_every);
    (void) objects_put_stream(contract->objects, key, pipes[0], NULL, on_info, reply);
    (void) close(pipes[0]);
    OBJECTS_WAIT(contract, reply->times);
    peer_join(&peer);
    return reply;
}

static void stream_out(struct contract *contract, const char *key, size_t length,
                       size_t pause_every, int flags)
{
    AUTO(reply) struct reply *reply = reply_new();
    struct peer peer;
    int pipes[2];

    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    assert_int_equal(fcntl(pipes[1], F_SETFL, flags), 0);
    peer_start(&peer, peer_read, pipes[0], length, pause_every);
    (void) objects_get_file(contract->objects, key, pipes[1], NULL, on_info, reply);
    (void) close(pipes[1]);
    OBJECTS_WAIT(contract, reply->times);
    peer_join(&peer);
    expect_ok(reply);
    assert_true(peer.is_right);
}

static void streams_go_both_ways(void **state)
{
    static const struct {
        size_t length, pause_every;
        int flags;
    } cases[] = {
        {0, 0, 0},
        {1, 0, O_NONBLOCK},
        {100000, 20000, 0},
        {3000000, 1000000, O_NONBLOCK},
        {20 * 1024 * 1024 + 17, 0, 0},
    };
    struct contract *contract = *state;

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        AUTO(reply)
        struct reply *put =
            stream_in(contract, "stream", cases[i].length, cases[i].pause_every, cases[i].flags);

        expect_ok(put);
        assert_int_equal(put->info.size, cases[i].length);
        if (contract->backend->sums_streams)
            assert_true(put->info.has_sum);
        stream_out(contract, "stream", cases[i].length, cases[i].pause_every, cases[i].flags);
    }
}

/* A stream can be asked for with a sum, too, that the store itself may not know. */
static void a_stream_is_checked_against_a_given_sum(void **state)
{
    struct contract *contract = *state;
    AUTO(reply) struct reply *put = stream_in(contract, "stream", 500000, 0, 0);
    AUTO(close) int file = file_of(500000);
    AUTO(close) int back = file_of(0);
    uint8_t sum[OBJECTS_SUM_SIZE];

    expect_ok(put);
    sum_of(file, sum);
    {
        AUTO(reply) struct reply *right = get_file(contract, "stream", back, sum);

        expect_ok(right);
        expect_series(back, 500000);
    }
    sum[31] ^= 0x80;
    {
        AUTO(reply) struct reply *wrong = get_file(contract, "stream", back, sum);

        expect_code(wrong, ERR_UPSTREAM);
    }
}

static void a_reader_that_goes_ends_the_call(void **state)
{
    struct contract *contract = *state;
    AUTO(close) int file = file_of(4 << 20);
    AUTO(reply) struct reply *put = put_file(contract, "key", file, NULL);
    AUTO(reply) struct reply *got = reply_new();
    int pipes[2];

    expect_ok(put);
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    (void) objects_get_file(contract->objects, "key", pipes[1], NULL, on_info, got);
    (void) close(pipes[1]);
    testing_turn(&contract->loop);
    (void) close(pipes[0]);
    OBJECTS_WAIT(contract, got->times);
    assert_true(got->failed);
}

/* Who reads sees the old one to its end, who comes later the new one. */
static void what_is_read_is_not_replaced(void **state)
{
    struct contract *contract = *state;
    size_t size = (size_t) 4 << 20;
    AUTO(close) int file = file_of(size);
    AUTO(reply) struct reply *put = put_file(contract, "key", file, NULL);
    AUTO(reply) struct reply *got = reply_new();
    struct peer peer;
    int pipes[2];

    expect_ok(put);
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    (void) objects_get_file(contract->objects, "key", pipes[1], put->info.sum, on_info, got);
    (void) close(pipes[1]);
    OBJECTS_WAIT(contract, sys_file_poll(pipes[0], POLLIN, 0) > 0); /* it waits for its reader */
    put_ok(contract, "key", "something else");
    assert_int_equal(got->times, 0);
    peer_start(&peer, peer_read, pipes[0], size, 0);
    OBJECTS_WAIT(contract, got->times);
    peer_join(&peer);
    expect_ok(got);
    assert_true(peer.is_right);
    expect_content(contract, "key", "something else");
}

/* --- side by side ----------------------------------------------------------------------------- */

#define SILENT 12

/* Streams that wait for their writers. */
struct silence {
    int pipes[SILENT][2];
    struct reply *replies[SILENT];
    struct objects_call *calls[SILENT];
};

static void silence_begin(struct contract *contract, struct silence *silence)
{
    for (size_t i = 0; i < SILENT; i++) {
        char key[32];

        (void) snprintf(key, sizeof(key), "silent/%zu", i);
        assert_int_equal(pipe2(silence->pipes[i], O_CLOEXEC), 0);
        silence->replies[i] = reply_new();
        silence->calls[i] = objects_put_stream(contract->objects, key, silence->pipes[i][0], NULL,
                                               on_info, silence->replies[i]);
    }
}

static void silence_end(struct silence *silence)
{
    for (size_t i = 0; i < SILENT; i++) {
        (void) close(silence->pipes[i][0]);
        (void) close(silence->pipes[i][1]);
        reply_free(silence->replies[i]);
    }
}

static void waiting_streams_hold_up_nobody(void **state)
{
    struct contract *contract = *state;
    AUTO(close) int file = file_of(100000);
    struct silence silence;

    silence_begin(contract, &silence);
    {
        AUTO(reply) struct reply *put = put_file(contract, "file", file, NULL);

        expect_ok(put);
    }
    put_ok(contract, "key", "x");
    expect_content(contract, "key", "x");
    for (size_t i = 0; i < SILENT; i++) {
        assert_int_equal(silence.replies[i]->times, 0);
        assert_int_equal(write(silence.pipes[i][1], "end", 3), 3);
        (void) close(silence.pipes[i][1]);
        silence.pipes[i][1] = -1;
    }
    for (size_t i = 0; i < SILENT; i++) {
        OBJECTS_WAIT(contract, silence.replies[i]->times);
        expect_ok(silence.replies[i]);
    }
    expect_content(contract, "silent/11", "end");
    silence_end(&silence);
}

static void what_is_cancelled_leaves_nothing(void **state)
{
    struct contract *contract = *state;
    struct silence silence;

    silence_begin(contract, &silence);
    for (int i = 0; i < 5; i++)
        testing_turn(&contract->loop);
    for (size_t i = 0; i < SILENT; i++) {
        if (i % 2)
            assert_int_equal(write(silence.pipes[i][1], "part", 4), 4);
        objects_cancel(silence.calls[i]);
        assert_int_equal(silence.replies[i]->times, 0);
    }
    for (size_t i = 0; i < SILENT; i++) {
        OBJECTS_WAIT(contract, silence.replies[i]->times);
        expect_code(silence.replies[i], ERR_CANCELLED);
    }
    expect_listed(contract, "", false, 100, NULL, 0);
    silence_end(&silence);
}

/* In whatever state a call is: it is cancelled, or it was over. */
static void a_cancel_at_any_time_is_one_answer(void **state)
{
    struct contract *contract = *state;
    struct reply *replies[60];
    struct objects_call *calls[60];

    for (size_t i = 0; i < ARRAY_COUNT(replies); i++) {
        char key[32];

        (void) snprintf(key, sizeof(key), "key-%zu", i);
        replies[i] = reply_new();
        calls[i] =
            objects_put_bytes(contract->objects, key, key, strlen(key), NULL, on_info, replies[i]);
        if (i % 3 == 0)
            objects_cancel(calls[i]);
    }
    for (size_t i = 0; i < ARRAY_COUNT(replies); i++) {
        if (i % 3 == 1 && !replies[i]->times)
            objects_cancel(calls[i]);
        if (i % 7 == 0)
            testing_turn(&contract->loop);
    }
    for (size_t i = 0; i < ARRAY_COUNT(replies); i++) {
        char key[32];

        (void) snprintf(key, sizeof(key), "key-%zu", i);
        OBJECTS_WAIT(contract, replies[i]->times);
        if (i % 3 == 2)
            expect_ok(replies[i]);
        if (replies[i]->failed)
            expect_code(replies[i], ERR_CANCELLED);
        else
            expect_content(contract, key, key);
        reply_free(replies[i]);
    }
}

static void many_at_once_are_all_answered(void **state)
{
    struct contract *contract = *state;
    struct reply *puts[300], *gets[300];

    for (size_t i = 0; i < ARRAY_COUNT(puts); i++) {
        char key[32];

        (void) snprintf(key, sizeof(key), "d%zu/k%zu", i % 7, i);
        puts[i] = reply_new();
        (void) objects_put_bytes(contract->objects, key, key, strlen(key), NULL, on_info, puts[i]);
    }
    for (size_t i = 0; i < ARRAY_COUNT(puts); i++) {
        char key[32];

        OBJECTS_WAIT(contract, puts[i]->times);
        expect_ok(puts[i]);
        (void) snprintf(key, sizeof(key), "d%zu/k%zu", i % 7, i);
        gets[i] = reply_new();
        (void) objects_get_bytes(contract->objects, key, NULL, puts[i]->info.tag, on_bytes,
                                 gets[i]);
    }
    for (size_t i = 0; i < ARRAY_COUNT(puts); i++) {
        char key[32];

        OBJECTS_WAIT(contract, gets[i]->times);
        expect_ok(gets[i]);
        (void) snprintf(key, sizeof(key), "d%zu/k%zu", i % 7, i);
        assert_string_equal(gets[i]->bytes, key);
        reply_free(puts[i]);
        reply_free(gets[i]);
    }
}

static void ask_again(struct reply *reply)
{
    struct contract *contract = reply->more;
    struct reply *next = reply_new();

    contract->more = next;
    (void) objects_get_bytes(contract->objects, "key", NULL, NULL, on_bytes, next);
    assert_int_equal(next->times, 0);
}

static void answers_may_ask(void **state)
{
    struct contract *contract = *state;
    AUTO(reply) struct reply *first = reply_new();
    void *own = contract->more;
    AUTO(reply) struct reply *next = NULL;

    first->then = ask_again;
    first->more = contract;
    (void) objects_put_bytes(contract->objects, "key", "x", 1, NULL, on_info, first);
    OBJECTS_WAIT(contract, first->times);
    next = contract->more;
    contract->more = own;
    OBJECTS_WAIT(contract, next->times);
    expect_ok(next);
}

static void closing_answers_everybody(void **state)
{
    struct contract *contract = *state;
    AUTO(reply) struct reply *closed = reply_new();
    AUTO(reply) struct reply *late = reply_new();
    struct reply *more[50];
    struct silence silence;

    silence_begin(contract, &silence);
    for (size_t i = 0; i < ARRAY_COUNT(more); i++) {
        more[i] = reply_new();
        (void) objects_put_bytes(contract->objects, "key", "x", 1, NULL, on_info, more[i]);
    }
    objects_close(contract->objects, on_done, closed);
    (void) objects_head(contract->objects, "key", on_info, late);
    contract->objects = NULL;
    assert_int_equal(closed->times + late->times + more[0]->times, 0);
    OBJECTS_WAIT(contract, closed->times);
    expect_ok(closed);
    expect_code(late, ERR_UNAVAILABLE);
    for (size_t i = 0; i < SILENT; i++)
        expect_code(silence.replies[i], ERR_UNAVAILABLE);
    for (size_t i = 0; i < ARRAY_COUNT(more); i++) {
        expect_code(more[i], ERR_UNAVAILABLE);
        reply_free(more[i]);
    }
    silence_end(&silence);
    reopen(contract);
    put_ok(contract, "key", "y"); /* whatever became of the others */
    expect_content(contract, "key", "y");
}

static void an_idle_store_lets_the_loop_end(void **state)
{
    struct contract *contract = *state;
    AUTO(reply) struct reply *reply = reply_new();

    loop_run(&contract->loop);
    (void) objects_put_bytes(contract->objects, "key", "x", 1, NULL, on_info, reply);
    loop_run(&contract->loop);
    expect_ok(reply);
}

#define CONTRACT_FLOW_TESTS                                                                        \
    CONTRACT_TEST(a_large_file_comes_back), CONTRACT_TEST(a_file_that_was_longer_is_cut),          \
        CONTRACT_TEST(an_empty_file_is_an_object), CONTRACT_TEST(what_has_another_sum_is_refused), \
        CONTRACT_TEST(the_callers_descriptor_may_be_closed), CONTRACT_TEST(streams_go_both_ways),  \
        CONTRACT_TEST(a_stream_is_checked_against_a_given_sum),                                    \
        CONTRACT_TEST(a_reader_that_goes_ends_the_call),                                           \
        CONTRACT_TEST(what_is_read_is_not_replaced),                                               \
        CONTRACT_TEST(waiting_streams_hold_up_nobody),                                             \
        CONTRACT_TEST(what_is_cancelled_leaves_nothing),                                           \
        CONTRACT_TEST(a_cancel_at_any_time_is_one_answer),                                         \
        CONTRACT_TEST(many_at_once_are_all_answered), CONTRACT_TEST(answers_may_ask),              \
        CONTRACT_TEST(closing_answers_everybody), CONTRACT_TEST(an_idle_store_lets_the_loop_end)
