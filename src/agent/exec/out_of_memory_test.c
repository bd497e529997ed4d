#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/exec/out_of_memory.h"

static void the_line_is_found_in_both_kinds_of_files(void **state)
{
    (void) state;
    assert_int_equal(out_of_memory_parse("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"), 3);
    assert_int_equal(out_of_memory_parse("low 0\nhigh 0\nmax 9\noom 4\noom_kill 12\n"
                                         "oom_group_kill 7\n"),
                     12);
    assert_int_equal(out_of_memory_parse("oom_kill 5"), 5);
}

static void anything_else_counts_nothing(void **state)
{
    (void) state;
    assert_int_equal(out_of_memory_parse(""), 0);
    assert_int_equal(out_of_memory_parse("oom_kill\n"), 0);
    assert_int_equal(out_of_memory_parse("oom_kill -1\n"), 0);
    assert_int_equal(out_of_memory_parse("xoom_kill 5\n"), 0);
    assert_int_equal(out_of_memory_parse("oom_kill 99999999999999999999999\n"), 0);
}

static void a_file_is_read_from_its_start_each_time(void **state)
{
    int ends[2];
    int file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    (void) state;
    assert_true(file >= 0);
    assert_int_equal(write(file, "oom_kill 1\n", 11), 11);
    assert_int_equal(out_of_memory_kills(file), 1);
    assert_int_equal(pwrite(file, "oom_kill 2\n", 11, 0), 11);
    assert_int_equal(out_of_memory_kills(file), 2);
    (void) close(file);
    assert_int_equal(out_of_memory_kills(-1), 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(out_of_memory_kills(ends[0]), 0); /* cannot be read at a place */
    (void) close(ends[0]);
    (void) close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_line_is_found_in_both_kinds_of_files),
        cmocka_unit_test(anything_else_counts_nothing),
        cmocka_unit_test(a_file_is_read_from_its_start_each_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
