/* The slow way of killing, which kernels without cgroup.kill take on v2 too, and its care with
 * pids. What callers see of it is tested in cgroup_freeze_test.c. */
#include "launcher/cgroup/cgroup_kill.c"
#include "launcher/cgroup/cgroup_test_kit.h"

static void sit(struct real *real)
{
    (void) __atomic_fetch_add(&real->shared[0], 1, __ATOMIC_RELAXED); /* two of us at once */
    for (;;)
        (void) pause();
}

static void hidden_processes_are_never_signalled(void **state)
{
    const char *list = "0\n0\n12\nnonsense\n99999999999\n-1\n345";

    (void) state;
    assert_int_equal(next_pid(&list), 12);
    assert_int_equal(next_pid(&list), 345);
    assert_int_equal(next_pid(&list), 0);
    assert_int_equal(next_pid(&list), 0);
    assert_true(is_listed("0\n12\n", 12));
    assert_false(is_listed("0\n120\n", 12));
}

static void rounds_kill_frozen_and_running_processes(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &(struct limits){0});
    pid_t agent = real_start(real, &cgroup, CGROUP_AGENT, sit);
    pid_t work = real_start(real, &cgroup, CGROUP_WORK, sit);

    assert_true(grows_beyond(real, 0, 1));
    if (cgroup_freeze(&cgroup, CGROUP_WORK, NULL) < 0) /* v2 without controllers */
        assert_int_equal(cgroup_freeze(&cgroup, CGROUP_WHOLE, NULL), 0);
    kill_round(&cgroup);
    assert_killed(real_wait(real, agent));
    assert_killed(real_wait(real, work));
}

/* A pid that was reused by a process outside between reading the list and signalling. */
static void a_process_outside_the_group_is_spared(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &(struct limits){0});
    const struct cgroup_hierarchy *hierarchy = cgroup_census(real->host);
    char path[CGROUP_FILE_PATH_SIZE];
    pid_t inside = real_start(real, &cgroup, CGROUP_WORK, sit);
    pid_t outside = fork_child();

    if (outside == 0)
        sit(real);
    real->children[real->child_count++] = outside;
    assert_true(grows_beyond(real, 0, 1));
    cgroup_path(hierarchy, &cgroup, CGROUP_WORK, "cgroup.procs", path);
    signal_checked(hierarchy, path, outside);
    signal_checked(hierarchy, path, inside);
    assert_killed(real_wait(real, inside));
    assert_int_equal(waitpid(outside, NULL, WNOHANG), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hidden_processes_are_never_signalled),
        REAL_TESTS(rounds_kill_frozen_and_running_processes),
        REAL_TESTS(a_process_outside_the_group_is_spared),
    };

    return run_real_tests("cgroup_kill", tests, ARRAY_COUNT(tests));
}
