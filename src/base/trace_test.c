#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "base/trace.h"

#define WRITERS          4
#define ENTRIES_EACH     20000
#define OUTPUT_SIZE      (256 * 1024)
#define COLLECTED_PLACES 16

static const struct trace_context anybody;
static struct trace_entry entries[TRACE_ENTRIES_MAX];

static const struct id one = {.text = "aaaaaaaaaaaaaaaaaaaaaaaaaa"};
static const struct id other = {.text = "bbbbbbbbbbbbbbbbbbbbbbbbba"};

static void an_entry_says_what_and_for_whom(void **state)
{
    TRACE_FOR(&one, &other);

    (void) state;
    TRACE_WITH("test.made", "twice");
    assert_int_equal(trace_read(&anybody, entries, 1), 1);
    assert_string_equal(entries[0].point, "test.made twice");
    assert_string_equal(entries[0].context.request.text, one.text);
    assert_string_equal(entries[0].context.sandbox.text, other.text);
    assert_true(entries[0].time_ns > 0);
}

static void scopes_end_with_what_was_before(void **state)
{
    (void) state;
    {
        TRACE_FOR(&one, NULL);
        {
            TRACE_FOR(NULL, &other);
            assert_string_equal(trace_context.request.text, one.text);
            assert_string_equal(trace_context.sandbox.text, other.text);
        }
        assert_string_equal(trace_context.sandbox.text, "");
    }
    assert_string_equal(trace_context.request.text, "");
}

static void a_long_text_is_cut(void **state)
{
    char text[200];

    (void) state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    TRACE_WITH("test.long", text);
    TRACE_WITH(text, "more");
    assert_int_equal(trace_read(&anybody, entries, 2), 2);
    assert_int_equal(strlen(entries[0].point), TRACE_POINT_SIZE - 1);
    assert_memory_equal(entries[0].point, "test.long xxx", 13);
    assert_int_equal(strlen(entries[1].point), TRACE_POINT_SIZE - 1);
}

static void the_ring_keeps_the_newest_in_order(void **state)
{
    size_t count;

    (void) state;
    for (int i = 0; i < 3 * TRACE_ENTRIES_DEFAULT; i++) {
        char number[16];

        (void) snprintf(number, sizeof(number), "%d", i);
        TRACE_WITH("test.count", number);
    }
    count = trace_read(&anybody, entries, TRACE_ENTRIES_MAX);
    assert_int_equal(count, TRACE_ENTRIES_DEFAULT);
    for (size_t i = 0; i < count; i++) {
        char expected[32];

        (void) snprintf(expected, sizeof(expected), "test.count %zu",
                        i + 2 * TRACE_ENTRIES_DEFAULT);
        assert_string_equal(entries[i].point, expected);
    }
}

static void what_is_about_others_is_left_out(void **state)
{
    const struct trace_context mine = {.request = one}, its = {.request = one, .sandbox = other};

    (void) state;
    for (int i = 0; i < 4; i++) {
        TRACE_FOR(i % 2 ? &one : &other, i == 3 ? &other : NULL);
        TRACE("test.mine");
    }
    assert_int_equal(trace_read(&its, entries, TRACE_ENTRIES_MAX), 1);
    assert_int_equal(trace_read(&mine, entries, 1), 1);
    assert_string_equal(entries[0].context.sandbox.text, other.text);
}

static void new_entries_are_read_once(void **state)
{
    uint64_t seen = 0;

    (void) state;
    while (trace_read_new(&seen, entries, TRACE_ENTRIES_MAX))
        ;
    TRACE("test.new");
    TRACE("test.newer");
    assert_int_equal(trace_read_new(&seen, entries, 1), 1);
    assert_string_equal(entries[0].point, "test.new");
    assert_int_equal(trace_read_new(&seen, entries, 8), 1);
    assert_string_equal(entries[0].point, "test.newer");
    assert_int_equal(trace_read_new(&seen, entries, 8), 0);
}

static void a_crash_point_is_an_entry(void **state)
{
    (void) state;
    CRASH_POINT("test.crash");
    assert_int_equal(trace_read(&anybody, entries, 1), 1);
    assert_string_equal(entries[0].point, "test.crash");
}

/* --- several threads -------------------------------------------------------------------------- */

/* Each writes its own id three times: an entry that was mixed from two would show. */
static void *write_many(void *data)
{
    const struct id *id = data;
    TRACE_FOR(id, id);

    for (int i = 0; i < ENTRIES_EACH; i++)
        TRACE(id->text);
    return NULL;
}

/* Entries up to number `before` are of other tests. */
static size_t check_whole(size_t count, uint64_t before)
{
    size_t theirs = 0;

    for (size_t i = 0; i < count; i++) {
        const struct trace_entry *entry = &entries[i];

        if (entry->number <= before)
            continue;
        theirs++;
        assert_string_equal(entry->context.request.text, entry->context.sandbox.text);
        assert_string_equal(entry->context.request.text, entry->point);
        if (i)
            assert_true(entry->number > entries[i - 1].number);
    }
    return theirs;
}

static void entries_of_many_threads_stay_whole(void **state)
{
    pthread_t threads[WRITERS];
    struct id ids[WRITERS];
    uint64_t before;
    size_t seen = 0;

    (void) state;
    TRACE("test.before");
    assert_int_equal(trace_read(&anybody, entries, 1), 1);
    before = entries[0].number;
    for (int i = 0; i < WRITERS; i++) {
        ids[i] = id_new();
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, &ids[i]), 0);
    }
    for (int i = 0; i < 200 || seen == 0; i++)
        seen += check_whole(trace_read(&anybody, entries, TRACE_ENTRIES_MAX), before);
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(seen > 0);
    assert_true(check_whole(trace_read(&anybody, entries, TRACE_ENTRIES_MAX), before) >
                TRACE_ENTRIES_DEFAULT / 2);
    assert_string_equal(trace_context.request.text, "");
}

/* --- several processes ------------------------------------------------------------------------ */

static void ended_well(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* In a child, because the ring is this process's for good. */
static void a_forked_process_shares_the_ring(void **state)
{
    pid_t pid = fork();

    (void) state;
    if (pid == 0) {
        pid_t helper;

        trace_start("parent", 1024);
        helper = fork();
        if (helper == 0) {
            trace_name("helper");
            TRACE("test.helped");
            _exit(0);
        }
        ended_well(helper);
        assert_int_equal(trace_read(&anybody, entries, 8), 1);
        assert_string_equal(entries[0].process, "helper");
        assert_string_equal(entries[0].point, "test.helped");
        _exit(0);
    }
    ended_well(pid);
}

static void write_into(int fd, const char *point)
{
    pid_t pid = fork();

    if (pid == 0) {
        TRACE_FOR(&other, &other);
        if (trace_start_in("liar", COLLECTED_PLACES, fd) < 0)
            _exit(1);
        TRACE(point);
        _exit(0);
    }
    ended_well(pid);
}

static void the_ring_of_a_stranger_is_taken_over_clean(void **state)
{
    AUTO(close) int fd = memfd_create("ring", MFD_CLOEXEC);
    const struct trace_context mine = {.request = one};
    TRACE_FOR(&one, NULL);

    (void) state;
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, TRACE_FILE_SIZE(COLLECTED_PLACES)), 0);
    write_into(fd, "test.\x1b[31mred");
    trace_collect(fd, COLLECTED_PLACES, "keeper");
    assert_int_equal(trace_read(&mine, entries, 1), 1);
    assert_string_equal(entries[0].process, "keeper");
    assert_string_equal(entries[0].context.sandbox.text, "");
    assert_string_equal(entries[0].point, "test.?[31mred");
}

static void a_file_of_noise_does_no_harm(void **state)
{
    AUTO(close) int fd = memfd_create("ring", MFD_CLOEXEC);
    static uint8_t noise[TRACE_FILE_SIZE(COLLECTED_PLACES)];
    size_t count;

    (void) state;
    random_bytes(noise, sizeof(noise));
    assert_int_equal(write(fd, noise, sizeof(noise) / 2), sizeof(noise) / 2);
    trace_collect(fd, COLLECTED_PLACES, "keeper");
    count = trace_read(&anybody, entries, COLLECTED_PLACES / 2 - 1);
    assert_int_equal(count, COLLECTED_PLACES / 2 - 1);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(entries[i].process, "keeper");
        for (const char *at = entries[i].point; *at; at++)
            assert_in_range(*at, ' ', '~');
        assert_true(strnlen(entries[i].point, TRACE_POINT_SIZE) < TRACE_POINT_SIZE);
    }
}

/* --- the end ---------------------------------------------------------------------------------- */

/* What a child says that ends by `number` after one entry. */
static void read_last_words(int number, char text[static OUTPUT_SIZE])
{
    size_t length = 0;
    int pipes[2], status;
    ssize_t got;
    pid_t pid;

    assert_int_equal(pipe(pipes), 0);
    pid = fork();
    if (pid == 0) {
        TRACE_FOR(&one, NULL);
        (void) dup2(pipes[1], STDERR_FILENO);
        trace_start("doomed", 1024);
        TRACE_WITH("test.doomed", "soon");
        if (number == SIGABRT)
            abort();
        (void) raise(number);
        _exit(0);
    }
    (void) close(pipes[1]);
    while ((got = read(pipes[0], text + length, OUTPUT_SIZE - 1 - length)) > 0)
        length += (size_t) got;
    text[length] = '\0';
    (void) close(pipes[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), number);
}

static void a_process_that_aborts_prints_its_ring(void **state)
{
    static char text[OUTPUT_SIZE];

    (void) state;
    read_last_words(SIGABRT, text);
    assert_non_null(strstr(text, " doomed aaaaaaaaaaaaaaaaaaaaaaaaaa - test.doomed soon\n"));
    assert_ptr_equal(strstr(text, "the trace"), text);
}

static void one_that_is_killed_says_nothing(void **state)
{
    static char text[OUTPUT_SIZE];

    (void) state;
    read_last_words(SIGKILL, text);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_says_what_and_for_whom),
        cmocka_unit_test(scopes_end_with_what_was_before),
        cmocka_unit_test(a_long_text_is_cut),
        cmocka_unit_test(the_ring_keeps_the_newest_in_order),
        cmocka_unit_test(what_is_about_others_is_left_out),
        cmocka_unit_test(new_entries_are_read_once),
        cmocka_unit_test(a_crash_point_is_an_entry),
        cmocka_unit_test(entries_of_many_threads_stay_whole),
        cmocka_unit_test(a_forked_process_shares_the_ring),
        cmocka_unit_test(the_ring_of_a_stranger_is_taken_over_clean),
        cmocka_unit_test(a_file_of_noise_does_no_harm),
        cmocka_unit_test(a_process_that_aborts_prints_its_ring),
        cmocka_unit_test(one_that_is_killed_says_nothing),
    };

    return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
