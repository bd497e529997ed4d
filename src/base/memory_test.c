#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "base/fault.h"
#include "base/memory.h"

static bool is_zero(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i])
            return false;
    }
    return true;
}

static void memory_comes_zeroed(void **state)
{
    (void) state;
    for (int i = 0; i < 50; i++) {
        AUTO(free) unsigned char *memory = mem_alloc(3000);

        assert_true(is_zero(memory, 3000));
        memset(memory, 0xff, 3000); /* dirty for the next round */
    }
}

static void zero_bytes_still_give_memory(void **state)
{
    AUTO(free) void *plain = mem_alloc(0);
    AUTO(free) void *array = mem_alloc_array(0, 8);
    AUTO(free) void *resized = mem_resize(NULL, 0);
    AUTO(free) void *tried = mem_try_alloc(0, 0);

    (void) state;
    assert_non_null(plain);
    assert_non_null(array);
    assert_non_null(resized);
    assert_non_null(tried);
}

static void resizing_keeps_the_content(void **state)
{
    AUTO(free) char *memory = mem_alloc(4);

    (void) state;
    memcpy(memory, "abc", 4);
    memory = mem_resize(memory, 100000);
    assert_string_equal(memory, "abc");
}

static void copies_end_in_nul(void **state)
{
    AUTO(free) char *text = mem_copy_text("hello");
    AUTO(free) char *bytes = mem_copy_bytes("a\0bc", 3);
    AUTO(free) char *empty = mem_copy_bytes(NULL, 0);

    (void) state;
    assert_string_equal(text, "hello");
    assert_memory_equal(bytes, "a\0b\0", 4);
    assert_string_equal(empty, "");
}

static void trying_is_refused_above_the_limit(void **state)
{
    AUTO(free) unsigned char *fits = mem_try_alloc(64, 64);

    (void) state;
    assert_non_null(fits);
    assert_true(is_zero(fits, 64));
    assert_null(mem_try_alloc(65, 64));
    fault_arm(FAULT_ALLOCATION, 1, ENOMEM);
    assert_null(mem_try_alloc(1, 64));
    assert_true(fault_disarm(FAULT_ALLOCATION));
}

/* The signal that ended a child which ran `run`, and what it said on stderr. */
static int child_signal(void (*run)(void), char *said, size_t size)
{
    int pipes[2], status;
    ssize_t length;
    pid_t child;

    assert_int_equal(pipe(pipes), 0);
    child = fork();
    if (child == 0) {
        const struct rlimit no_core = {0, 0};

        (void) setrlimit(RLIMIT_CORE, &no_core);
        (void) signal(SIGABRT, SIG_DFL); /* cmocka and sanitizers catch it */
        (void) dup2(pipes[1], STDERR_FILENO);
        run();
        _exit(0);
    }
    assert_true(child > 0);
    (void) close(pipes[1]);
    length = read(pipes[0], said, size - 1);
    assert_true(length >= 0);
    said[length] = '\0';
    (void) close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void fail_alloc(void)
{
    fault_arm(FAULT_ALLOCATION, 1, ENOMEM);
    free(mem_alloc(123));
}

static void fail_resize(void)
{
    fault_arm(FAULT_ALLOCATION, 1, ENOMEM);
    free(mem_resize(NULL, 456));
}

static void overflow_array(void)
{
    free(mem_alloc_array(SIZE_MAX / 2, 3));
}

static void overflow_copy(void)
{
    free(mem_copy_bytes("", SIZE_MAX));
}

static void no_memory_aborts_and_says_how_much(void **state)
{
    char said[256];

    (void) state;
    assert_int_equal(child_signal(fail_alloc, said, sizeof(said)), SIGABRT);
    assert_string_equal(said, "burrow: out of memory allocating 123 bytes\n");
    assert_int_equal(child_signal(fail_resize, said, sizeof(said)), SIGABRT);
    assert_string_equal(said, "burrow: out of memory allocating 456 bytes\n");
}

static void sizes_that_overflow_abort(void **state)
{
    char said[256];

    (void) state;
    assert_int_equal(child_signal(overflow_array, said, sizeof(said)), SIGABRT);
    assert_int_equal(child_signal(overflow_copy, said, sizeof(said)), SIGABRT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_comes_zeroed),
        cmocka_unit_test(zero_bytes_still_give_memory),
        cmocka_unit_test(resizing_keeps_the_content),
        cmocka_unit_test(copies_end_in_nul),
        cmocka_unit_test(trying_is_refused_above_the_limit),
        cmocka_unit_test(no_memory_aborts_and_says_how_much),
        cmocka_unit_test(sizes_that_overflow_abort),
    };

    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
