#include <poll.h>

#include "launcher/cgroup/cgroup_freeze.h"
#include "launcher/cgroup/cgroup_test_kit.h"
#include "launcher/cgroup/cgroup_watch.h"

static const struct limits some_limits = {
    .memory_bytes = 64 * MEGABYTE, .pids = 64, .cpu_millis = 1000};

static void count_in(struct real *real, size_t index)
{
    for (;;) {
        real->shared[index]++;
        sleep_ms(1);
    }
}

static void count_as_work(struct real *real)
{
    count_in(real, 0);
}

static void count_as_agent(struct real *real)
{
    count_in(real, 1);
}

static void freeze_and_wait(const struct cgroup *cgroup, enum cgroup_part part)
{
    struct error err = ERROR_INIT;

    assert_int_equal(cgroup_freeze(cgroup, part, &err), 0);
    if (cgroup_freeze_wait(cgroup, part, PATIENCE_MS, &err) < 0)
        fail_msg("%s", err.message);
}

static void assert_state(const struct cgroup *cgroup, enum cgroup_part part, bool asked,
                         bool frozen)
{
    struct cgroup_freeze_state state;

    assert_int_equal(cgroup_freeze_state(cgroup, part, &state, NULL), 0);
    assert_int_equal(state.asked, asked);
    assert_int_equal(state.frozen, frozen);
}

/* Where v2 only freezes there is no group `work` to freeze alone. */
static bool has_work(const struct cgroup *cgroup)
{
    struct cgroup_freeze_state state;
    struct error err = ERROR_INIT;

    if (cgroup_freeze_state(cgroup, CGROUP_WORK, &state, &err) == 0)
        return true;
    assert_int_equal(err.code, ERR_NOT_IMPLEMENTED);
    assert_int_equal(cgroup_freeze(cgroup, CGROUP_WORK, &err), -1);
    assert_int_equal(err.code, ERR_NOT_IMPLEMENTED);
    return false;
}

static void needs_work(const struct cgroup *cgroup)
{
    if (!has_work(cgroup))
        skip_without("a freezer of cgroup v1, to freeze work alone");
}

static void a_frozen_process_stands_still_until_thawed(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &some_limits);
    uint64_t stopped;

    needs(real, CGROUP_FREEZER);
    (void) real_start(real, &cgroup, CGROUP_WORK, count_as_work);
    assert_true(grows_beyond(real, 0, 2));
    assert_state(&cgroup, CGROUP_WHOLE, false, false);
    freeze_and_wait(&cgroup, CGROUP_WHOLE);
    assert_state(&cgroup, CGROUP_WHOLE, true, true);
    assert_true(stands_still(real, 0));
    stopped = real->shared[0];
    assert_int_equal(cgroup_thaw(&cgroup, CGROUP_WHOLE, NULL), 0);
    assert_true(grows_beyond(real, 0, stopped));
    assert_state(&cgroup, CGROUP_WHOLE, false, false);
}

static void the_agent_goes_on_while_work_is_frozen(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &some_limits);
    struct error err = ERROR_INIT;

    needs(real, CGROUP_FREEZER);
    needs_work(&cgroup);
    (void) real_start(real, &cgroup, CGROUP_WORK, count_as_work);
    (void) real_start(real, &cgroup, CGROUP_AGENT, count_as_agent);
    assert_true(grows_beyond(real, 0, 2) && grows_beyond(real, 1, 2));
    freeze_and_wait(&cgroup, CGROUP_WORK);
    assert_true(stands_still(real, 0));
    assert_true(grows_beyond(real, 1, real->shared[1]));
    assert_state(&cgroup, CGROUP_WHOLE, false, false);
    assert_int_equal(cgroup_freeze(&cgroup, CGROUP_AGENT, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
}

static void freezing_nests(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &some_limits);

    needs(real, CGROUP_FREEZER);
    needs_work(&cgroup);
    (void) real_start(real, &cgroup, CGROUP_WORK, count_as_work);
    assert_true(grows_beyond(real, 0, 2));
    freeze_and_wait(&cgroup, CGROUP_WHOLE);
    assert_state(&cgroup, CGROUP_WORK, false, true);
    freeze_and_wait(&cgroup, CGROUP_WORK);
    assert_int_equal(cgroup_thaw(&cgroup, CGROUP_WHOLE, NULL), 0);
    assert_state(&cgroup, CGROUP_WORK, true, true);
    assert_true(stands_still(real, 0));
    assert_int_equal(cgroup_thaw(&cgroup, CGROUP_WORK, NULL), 0);
    assert_true(grows_beyond(real, 0, real->shared[0]));
}

static void waiting_for_what_was_not_asked_times_out(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &some_limits);
    struct error err = ERROR_INIT;

    needs(real, CGROUP_FREEZER);
    (void) real_start(real, &cgroup, CGROUP_WORK, count_as_work);
    assert_true(grows_beyond(real, 0, 0));
    assert_int_equal(cgroup_freeze_wait(&cgroup, CGROUP_WHOLE, 10, &err), -1);
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_int_equal(err.system, ETIMEDOUT);
}

static void a_frozen_sandbox_can_be_killed(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &some_limits);
    struct error err = ERROR_INIT;
    pid_t work, agent;

    needs(real, CGROUP_FREEZER);
    work = real_start(real, &cgroup, CGROUP_WORK, count_as_work);
    agent = real_start(real, &cgroup, CGROUP_AGENT, count_as_agent);
    assert_true(grows_beyond(real, 0, 0) && grows_beyond(real, 1, 0));
    if (has_work(&cgroup))
        freeze_and_wait(&cgroup, CGROUP_WORK);
    freeze_and_wait(&cgroup, CGROUP_WHOLE);
    if (cgroup_kill(&cgroup, PATIENCE_MS, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(cgroup_populated(&cgroup, &err), 0);
    assert_killed(real_wait(real, work));
    assert_killed(real_wait(real, agent));
    assert_int_equal(cgroup_remove(&cgroup, PATIENCE_MS, &err), 0);
}

/* Times the usual patience. */
#define BOMB_PATIENCE 6

/* No limit of memory: what a sanitizer adds to so many would have them killed below their number.
 */
static const struct limits bomb_limits = {.pids = 64, .cpu_millis = 1000};

/* Every process forks for ever and its children too: only all at once can they be caught. */
static void bomb(struct real *real)
{
    (void) signal(SIGCHLD, SIG_IGN);
    for (;;) {
        pid_t pid = fork();

        if (pid < 0)
            sleep_ms(1);
        real->shared[0] += pid < 0;
        if (pid == 0 && getpid() % 4 == 0) /* some die young, most stay: the limit is reached */
            _exit(0);
    }
}

static void a_fork_bomb_can_be_killed(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &bomb_limits);
    struct error err = ERROR_INIT;
    bool refused = false;
    pid_t pid;

    needs(real, CGROUP_PIDS);
    pid = real_start(real, &cgroup, CGROUP_WORK, bomb);
    /* Under a sanitizer beside other tests a fork takes long: patience, not fewer refusals. */
    for (int i = 0; i < BOMB_PATIENCE && !refused; i++)
        refused = grows_beyond(real, 0, 20);
    assert_true(refused);
    if (cgroup_kill(&cgroup, PATIENCE_MS, &err) < 0)
        fail_msg("%s", err.message);
    assert_killed(real_wait(real, pid));
    assert_int_equal(cgroup_remove(&cgroup, PATIENCE_MS, &err), 0);
}

static void killing_without_a_timeout_only_sends(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &some_limits);
    pid_t pid;

    assert_int_equal(cgroup_kill(&cgroup, 0, NULL), 0);
    pid = real_start(real, &cgroup, CGROUP_WORK, count_as_work);
    assert_true(grows_beyond(real, 0, 0));
    assert_int_equal(cgroup_kill(&cgroup, 0, NULL), 0);
    assert_killed(real_wait(real, pid));
}

static void the_state_descriptor_tells_of_frozen_and_empty(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &some_limits);
    AUTO(cgroup_watch) struct cgroup_watch watch = CGROUP_WATCH_INIT;
    pid_t pid;

    if (real->variant->without_v2) {
        assert_int_equal(cgroup_watch_open(&cgroup, &watch, NULL), 0);
        assert_int_equal(watch.state, -EBADF);
        return;
    }
    pid = real_start(real, &cgroup, CGROUP_WORK, count_as_work);
    assert_true(grows_beyond(real, 0, 0));
    assert_int_equal(cgroup_watch_open(&cgroup, &watch, NULL), 0);
    assert_int_equal(sys_file_poll(watch.state, watch.state_events, 0), 0);
    assert_int_equal(cgroup_freeze(&cgroup, CGROUP_WHOLE, NULL), 0);
    assert_true(sys_file_poll(watch.state, watch.state_events, PATIENCE_MS) & POLLPRI);
    cgroup_watch_clear(&watch);
    assert_int_equal(sys_file_poll(watch.state, watch.state_events, 0), 0);
    assert_int_equal(cgroup_kill(&cgroup, 0, NULL), 0);
    do {
        assert_true(sys_file_poll(watch.state, watch.state_events, PATIENCE_MS) & POLLPRI);
        cgroup_watch_clear(&watch);
    } while (cgroup_populated(&cgroup, NULL) == 1);
    assert_killed(real_wait(real, pid));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REAL_TESTS(a_frozen_process_stands_still_until_thawed),
        REAL_TESTS(the_agent_goes_on_while_work_is_frozen),
        REAL_TESTS(freezing_nests),
        REAL_TESTS(waiting_for_what_was_not_asked_times_out),
        REAL_TESTS(a_frozen_sandbox_can_be_killed),
        REAL_TESTS(a_fork_bomb_can_be_killed),
        REAL_TESTS(killing_without_a_timeout_only_sends),
        REAL_TESTS(the_state_descriptor_tells_of_frozen_and_empty),
    };

    return run_real_tests("cgroup_freeze", tests, ARRAY_COUNT(tests));
}
