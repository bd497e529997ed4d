#include "sys/process/sys_close_range.h"
#include "sys/sys_test.h"

static const unsigned int modes[] = {0, SYS_FEATURE_BIT(SYS_FEATURE_CLOSE_RANGE)};

static int reset(void **state)
{
    (void) state;
    sys_feature_pretend(0);
    return 0;
}

/* In a child: descriptors 100 to 299, enough for more than one read of the directory. */
static void open_many(void)
{
    for (int fd = 100; fd < 300; fd++)
        CHECK_EQUAL(dup2(2, fd), fd);
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void close_some(void)
{
    open_many();
    CHECK_EQUAL(sys_close_range(150, 250, false), 0);
    for (int fd = 100; fd < 300; fd++)
        CHECK_EQUAL(is_open(fd), fd < 150 || fd > 250);
    CHECK_EQUAL(sys_close_range(100, ~0u, false), 0);
    for (int fd = 100; fd < 300; fd++)
        CHECK(!is_open(fd));
    CHECK(is_open(2));
}

static void mark_some(void)
{
    open_many();
    CHECK_EQUAL(sys_close_range(200, ~0u, true), 0);
    for (int fd = 100; fd < 300; fd++) {
        CHECK(is_open(fd));
        CHECK_EQUAL(is_close_on_exec(fd), fd >= 200);
    }
}

static void close_all_but_some(void)
{
    static const int kept[] = {250, 100, -EBADF, 299, 101, 250};

    open_many();
    CHECK_EQUAL(sys_close_all_but(100, kept, ARRAY_COUNT(kept)), 0);
    for (int fd = 100; fd < 300; fd++)
        CHECK_EQUAL(is_open(fd), fd == 100 || fd == 101 || fd == 250 || fd == 299);
    CHECK(is_open(2));
    CHECK_EQUAL(sys_close_all_but(101, NULL, 0), 0);
    CHECK(is_open(100) && !is_open(101) && !is_open(299));
}

static void do_without_proc(void)
{
    enter_private_mounts();
    if (syscall(SYS_mount, "tmpfs", "/proc", "tmpfs", 0, NULL) < 0)
        _exit(CHILD_UNABLE);
    CHECK_EQUAL(sys_close_range(100, ~0u, false), -ENOENT);
}

static void those_that_are_kept_stay_open(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        sys_feature_pretend(modes[i]);
        run_in_child(close_all_but_some, "");
    }
}

static void exactly_the_range_is_closed(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        sys_feature_pretend(modes[i]);
        run_in_child(close_some, "");
    }
}

static void descriptors_can_be_marked_instead(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        sys_feature_pretend(modes[i]);
        run_in_child(mark_some, "");
    }
}

static void an_empty_range_is_refused(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        sys_feature_pretend(modes[i]);
        assert_int_equal(sys_close_range(5, 4, false), -EINVAL);
    }
}

static void the_fallback_does_not_guess_without_proc(void **state)
{
    (void) state;
    sys_feature_pretend(SYS_FEATURE_BIT(SYS_FEATURE_CLOSE_RANGE));
    run_in_child(do_without_proc, NEEDS_MOUNTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(exactly_the_range_is_closed, reset),
        cmocka_unit_test_teardown(descriptors_can_be_marked_instead, reset),
        cmocka_unit_test_teardown(those_that_are_kept_stay_open, reset),
        cmocka_unit_test_teardown(an_empty_range_is_refused, reset),
        cmocka_unit_test_teardown(the_fallback_does_not_guess_without_proc, reset),
    };

    return cmocka_run_group_tests_name("sys_close_range", tests, NULL, NULL);
}
