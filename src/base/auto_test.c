#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"

struct counter {
    int *destroyed;
};

static void counter_done(struct counter *counter)
{
    (*counter->destroyed)++;
}

static void counter_free(struct counter *counter)
{
    (*counter->destroyed)++;
    free(counter);
}

AUTO_DEFINE(counter, struct counter, counter_done);
AUTO_DEFINE_PTR(counter_ptr, struct counter, counter_free);

static int open_null(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void a_descriptor_closes_with_its_scope(void **state)
{
    int seen;

    (void) state;
    {
        AUTO(close) int fd = open_null();

        seen = fd;
        assert_true(is_open(seen));
    }
    assert_false(is_open(seen));
}

static void a_taken_descriptor_stays_open(void **state)
{
    int taken;

    (void) state;
    {
        AUTO(close) int fd = open_null();

        taken = TAKE_FD(fd);
        assert_int_equal(fd, -EBADF);
    }
    assert_true(is_open(taken));
    assert_int_equal(fd_close(taken), -EBADF);
    assert_false(is_open(taken));
}

static void closing_keeps_errno_and_ignores_no_descriptor(void **state)
{
    (void) state;
    errno = ENOSPC;
    assert_int_equal(fd_close(-EBADF), -EBADF);
    assert_int_equal(fd_close(1 << 20), -EBADF); /* not open: close(2) sets EBADF */
    assert_int_equal(errno, ENOSPC);
}

static void a_taken_pointer_leaves_null(void **state)
{
    AUTO(free) char *owned = malloc(1);
    AUTO(free) char *taken = NULL;
    char *before = owned;

    (void) state;
    taken = TAKE_PTR(owned);
    assert_ptr_equal(taken, before);
    assert_null(owned);
}

static char **next_of(char **pointers, size_t *index)
{
    return &pointers[(*index)++];
}

static void take_evaluates_its_argument_once(void **state)
{
    char one = 0, two = 0;
    char *pointers[] = {&one, &two};
    size_t index = 0;

    (void) state;
    assert_ptr_equal(TAKE_PTR(*next_of(pointers, &index)), &one);
    assert_int_equal(index, 1);
    assert_ptr_equal(pointers[1], &two);
}

static void own_destructors_run_once_per_scope(void **state)
{
    int destroyed = 0;

    (void) state;
    {
        AUTO(counter) struct counter on_stack = {.destroyed = &destroyed};
        AUTO(counter_ptr) struct counter *on_heap = malloc(sizeof(*on_heap));
        AUTO(counter_ptr) struct counter *empty = NULL;

        on_heap->destroyed = on_stack.destroyed;
        assert_null(empty);
        assert_int_equal(destroyed, 0);
    }
    assert_int_equal(destroyed, 2);
}

static void container_of_finds_the_object(void **state)
{
    struct object {
        int before;
        int member;
    } object;

    (void) state;
    assert_ptr_equal(CONTAINER_OF(&object.member, struct object, member), &object);
    assert_int_equal(ARRAY_COUNT(((int[]){1, 2, 3})), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_descriptor_closes_with_its_scope),
        cmocka_unit_test(a_taken_descriptor_stays_open),
        cmocka_unit_test(closing_keeps_errno_and_ignores_no_descriptor),
        cmocka_unit_test(a_taken_pointer_leaves_null),
        cmocka_unit_test(take_evaluates_its_argument_once),
        cmocka_unit_test(own_destructors_run_once_per_scope),
        cmocka_unit_test(container_of_finds_the_object),
    };

    return cmocka_run_group_tests_name("auto", tests, NULL, NULL);
}
