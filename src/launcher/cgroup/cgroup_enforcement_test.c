/* Whether the kernel does what cgroup_limits.h promises, and cgroup_stats.h tells of it. */
#include <poll.h>

#include "launcher/cgroup/cgroup_limits.h"
#include "launcher/cgroup/cgroup_stats.h"
#include "launcher/cgroup/cgroup_test_kit.h"
#include "launcher/cgroup/cgroup_watch.h"
#include "sys/process/sys_clone.h"

/* Touch as many megabytes as the second shared number says. */
static void eat_memory(struct real *real)
{
    size_t size = real->shared[1] * MEGABYTE;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(memory != MAP_FAILED);
    for (size_t i = 0; i < size; i += 4096)
        memory[i] = 1;
    real->shared[0] = 1;
}

static int run_eater(struct real *real, const struct cgroup *cgroup, uint64_t megabytes)
{
    real->shared[1] = megabytes;
    return real_wait(real, real_start(real, cgroup, CGROUP_WORK, eat_memory));
}

static void a_memory_hog_is_killed_and_reported(void **state)
{
    struct real *real = *state;
    struct limits limits = {.memory_bytes = 48 * MEGABYTE};
    struct cgroup cgroup = real_create(real, &limits);
    AUTO(cgroup_watch) struct cgroup_watch watch = CGROUP_WATCH_INIT;
    uint64_t agent, work;

    needs(real, CGROUP_MEMORY);
    assert_int_equal(cgroup_watch_open(&cgroup, &watch, NULL), 0);
    assert_int_equal(sys_file_poll(watch.memory, watch.memory_events, 0), 0);
    assert_int_equal(cgroup_oom_kills(&cgroup, &agent, &work, NULL), 0);
    assert_int_equal(agent + work, 0);
    assert_killed(run_eater(real, &cgroup, 128));
    assert_int_equal(real->shared[0], 0);
    assert_true(sys_file_poll(watch.memory, watch.memory_events, PATIENCE_MS) &
                watch.memory_events);
    assert_int_equal(cgroup_oom_kills(&cgroup, &agent, &work, NULL), 0);
    assert_int_equal(agent, 0);
    assert_int_equal(work, 1);
    cgroup_watch_clear(&watch);
    assert_int_equal(sys_file_poll(watch.memory, watch.memory_events, 0), 0);
}

static void a_raised_memory_limit_takes_effect(void **state)
{
    struct real *real = *state;
    struct limits limits = {.memory_bytes = 48 * MEGABYTE};
    struct cgroup cgroup = real_create(real, &limits);
    struct error err = ERROR_INIT;

    needs(real, CGROUP_MEMORY);
    assert_killed(run_eater(real, &cgroup, 64));
    limits.memory_bytes = 160 * MEGABYTE;
    if (cgroup_set_limits(&cgroup, NULL, &limits, &err) < 0)
        fail_msg("%s", err.message);
    assert_ended_well(run_eater(real, &cgroup, 64));
    limits.memory_bytes = 0;
    assert_int_equal(cgroup_set_limits(&cgroup, NULL, &limits, &err), 0);
    assert_ended_well(run_eater(real, &cgroup, 192));
    limits.memory_bytes = 48 * MEGABYTE;
    if (cgroup_set_limits(&cgroup, NULL, &limits, &err) < 0)
        fail_msg("%s", err.message);
    assert_killed(run_eater(real, &cgroup, 64));
}

static void work_leaves_the_agent_its_reserve_of_memory(void **state)
{
    struct real *real = *state;
    struct limits limits = {.memory_bytes = 64 * MEGABYTE};
    struct cgroup cgroup = real_create(real, &limits);

    needs(real, CGROUP_MEMORY);
    /* More than 64 - 16, less than 64. */
    assert_killed(run_eater(real, &cgroup, 54));
    real->shared[1] = 8;
    assert_ended_well(real_wait(real, real_start(real, &cgroup, CGROUP_AGENT, eat_memory)));
}

/* Fork until it fails, keep the children, and count them. Not by fork(), after which a sanitizer
 * starts a thread of its own in each, which counts too. */
static void fork_all(struct real *real)
{
    const struct sys_clone how = {.exit_signal = SIGCHLD};

    real->shared[0] = 0;
    for (;;) {
        pid_t pid = sys_clone(&how);

        if (pid == 0) {
            for (;;)
                (void) pause();
        }
        if (pid < 0)
            break;
        real->shared[0]++;
    }
    real->shared[1]++;
    for (;;)
        (void) pause();
}

static void fork_a_little(struct real *real)
{
    for (int i = 0; i < 20; i++) {
        int status = 0;
        pid_t pid = fork();

        if (pid == 0)
            _exit(0);
        CHECK(pid > 0);
        CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    }
    real->shared[2] = 1;
}

static void a_fork_bomb_is_bounded_and_the_agent_still_forks(void **state)
{
    struct real *real = *state;
    struct limits limits = {.pids = 48};
    struct cgroup cgroup = real_create(real, &limits);
    struct stats stats;

    needs(real, CGROUP_PIDS);
    (void) real_start(real, &cgroup, CGROUP_WORK, fork_all);
    assert_true(grows_beyond(real, 1, 0));
    assert_int_equal(real->shared[0], 48 - CGROUP_PIDS_RESERVE - 1);
    assert_ended_well(real_wait(real, real_start(real, &cgroup, CGROUP_AGENT, fork_a_little)));
    assert_int_equal(real->shared[2], 1);
    cgroup_stats_read(&cgroup, &stats);
    assert_true(stats.known & STATS_BIT(PIDS) && stats.known & STATS_BIT(PIDS_REFUSED));
    assert_int_equal(stats.pids, 48 - CGROUP_PIDS_RESERVE);
    assert_true(stats.pids_refused > 0);
}

static void a_raised_process_limit_takes_effect(void **state)
{
    struct real *real = *state;
    struct limits limits = {.pids = 40};
    struct cgroup cgroup = real_create(real, &limits);

    needs(real, CGROUP_PIDS);
    (void) real_start(real, &cgroup, CGROUP_WORK, fork_all);
    assert_true(grows_beyond(real, 1, 0));
    limits.pids = 60;
    assert_int_equal(cgroup_set_limits(&cgroup, NULL, &limits, NULL), 0);
    real->shared[1] = 0;
    (void) real_start(real, &cgroup, CGROUP_WORK, fork_all);
    assert_true(grows_beyond(real, 1, 0));
    assert_int_equal(real->shared[0], 60 - 40 - 1);
}

static void burn(struct real *real)
{
    for (;;)
        real->shared[0]++;
}

/* How much of a CPU is used over the next `milliseconds`, in thousandths. */
static uint64_t use_over(const struct cgroup *cgroup, long milliseconds)
{
    uint64_t start = clock_monotonic_ns(clock_system());
    struct stats before, after;

    cgroup_stats_read(cgroup, &before);
    sleep_ms(milliseconds);
    cgroup_stats_read(cgroup, &after);
    assert_true(after.known & STATS_BIT(CPU));
    return (after.cpu_us - before.cpu_us) * 1000000 / (clock_monotonic_ns(clock_system()) - start);
}

static void set_cpu(const struct cgroup *cgroup, uint32_t millis)
{
    struct error err = ERROR_INIT;

    if (cgroup_set_limits(cgroup, NULL, &(struct limits){.cpu_millis = millis}, &err) < 0)
        fail_msg("%s", err.message);
}

static void the_cpu_quota_throttles_and_can_be_raised(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &(struct limits){.cpu_millis = 50});
    struct stats stats;

    needs(real, CGROUP_CPU);
    needs(real, CGROUP_CPU_TIME);
    (void) real_start(real, &cgroup, CGROUP_WORK, burn);
    assert_true(grows_beyond(real, 0, 0));
    /* 50, and a period or two of slack. */
    assert_true(use_over(&cgroup, 500) < 100);
    cgroup_stats_read(&cgroup, &stats);
    assert_true(stats.known & STATS_BIT(THROTTLED));
    assert_true(stats.throttled_us > 0);
    set_cpu(&cgroup, 1000);
    /* Others may be busy too: some of the time must show what it may have. */
    for (int i = 0; use_over(&cgroup, 200) <= 100; i++)
        assert_true(i < 50);
    set_cpu(&cgroup, 50);
    (void) use_over(&cgroup, 200);
    assert_true(use_over(&cgroup, 500) < 100);
    set_cpu(&cgroup, 0);
}

static void write_to_disk(struct real *real)
{
    char path[] = "/var/tmp/burrow-test-XXXXXX";
    char block[4096] = {1};
    int fd = mkstemp(path);

    CHECK(fd >= 0);
    CHECK_EQUAL(unlink(path), 0);
    for (int i = 0; i < 16; i++)
        CHECK_EQUAL(sys_file_write_full(fd, block, sizeof(block)), 0);
    CHECK_EQUAL(fsync(fd), 0);
    real->shared[0] = 1;
}

static void statistics_say_what_was_used(void **state)
{
    struct real *real = *state;
    struct limits limits = {.memory_bytes = 128 * MEGABYTE, .pids = 64};
    struct cgroup cgroup = real_create(real, &limits);
    struct stats stats;

    assert_ended_well(run_eater(real, &cgroup, 24));
    assert_ended_well(real_wait(real, real_start(real, &cgroup, CGROUP_WORK, write_to_disk)));
    cgroup_stats_read(&cgroup, &stats);
    needs(real, CGROUP_CPU_TIME);
    assert_true(stats.cpu_us > 0 && stats.cpu_us < 60 * 1000000ULL);
    needs(real, CGROUP_MEMORY);
    assert_true(stats.known & STATS_BIT(MEMORY));
    assert_true(stats.memory_bytes < 24 * MEGABYTE);
    if (stats.known & STATS_BIT(MEMORY_PEAK))
        assert_true(stats.memory_peak_bytes >= 24 * MEGABYTE);
    assert_true(stats.known & STATS_BIT(OOM));
    assert_int_equal(stats.oom_kills_agent + stats.oom_kills_work, 0);
    assert_int_equal(stats.pids, 0);
    needs(real, CGROUP_IO);
    assert_true(stats.known & STATS_BIT(IO));
}

static void nothing_is_known_of_groups_that_are_gone(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &(struct limits){0});
    AUTO(cgroup_watch) struct cgroup_watch watch = CGROUP_WATCH_INIT;
    struct error err = ERROR_INIT;
    struct stats stats;
    uint64_t agent, work;

    assert_int_equal(cgroup_remove(&cgroup, 0, NULL), 0);
    cgroup_stats_read(&cgroup, &stats);
    assert_int_equal(stats.known, 0);
    assert_int_equal(cgroup_oom_kills(&cgroup, &agent, &work, &err), -1);
    assert_int_equal(cgroup_watch_open(&cgroup, &watch, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REAL_TESTS(a_memory_hog_is_killed_and_reported),
        REAL_TESTS(a_raised_memory_limit_takes_effect),
        REAL_TESTS(work_leaves_the_agent_its_reserve_of_memory),
        REAL_TESTS(a_fork_bomb_is_bounded_and_the_agent_still_forks),
        REAL_TESTS(a_raised_process_limit_takes_effect),
        REAL_TESTS(the_cpu_quota_throttles_and_can_be_raised),
        REAL_TESTS(statistics_say_what_was_used),
        REAL_TESTS(nothing_is_known_of_groups_that_are_gone),
    };

    return run_real_tests("cgroup_enforcement", tests, ARRAY_COUNT(tests));
}
