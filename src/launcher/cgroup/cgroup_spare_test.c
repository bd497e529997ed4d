#include "launcher/cgroup/cgroup_file.h"
#include "launcher/cgroup/cgroup_internal.h"
#include "launcher/cgroup/cgroup_spare.h"
#include "launcher/cgroup/cgroup_stats.h"
#include "launcher/cgroup/cgroup_test_kit.h"

static const struct limits some_limits = {
    .memory_bytes = 64 * MEGABYTE, .pids = 40, .cpu_millis = 1000};

/* --- the list --------------------------------------------------------------------------------- */

static void the_list_is_bounded(void **state)
{
    struct cgroup_spares spares = {.count = 0};
    const struct cgroup_spare spare = {id_new(), {true, some_limits}};
    struct cgroup_spare taken;

    (void) state;
    assert_false(cgroup_spares_take(&spares, &taken));
    for (size_t i = 0; i < CGROUP_SPARES_MAX; i++)
        assert_true(cgroup_spares_await(&spares));
    assert_false(cgroup_spares_await(&spares));
    cgroup_spares_add(&spares, NULL); /* one came to nothing: there is room for another */
    assert_true(cgroup_spares_await(&spares));
    for (size_t i = 0; i < CGROUP_SPARES_MAX; i++)
        cgroup_spares_add(&spares, &spare);
    assert_int_equal(spares.count, CGROUP_SPARES_MAX);
    assert_false(cgroup_spares_await(&spares));
    assert_true(cgroup_spares_take(&spares, &taken));
    assert_string_equal(taken.id.text, spare.id.text);
    assert_true(cgroup_limits_are(&taken.limits, &some_limits));
    assert_true(cgroup_spares_await(&spares));
}

static void what_a_dead_janitor_owed_is_not_listed(void **state)
{
    const struct cgroup_spare spare = {.id = id_new()};
    struct cgroup_spares spares = {.count = 0};

    (void) state;
    assert_true(cgroup_spares_await(&spares));
    assert_true(cgroup_spares_await(&spares));
    cgroup_spares_add(&spares, &spare);
    cgroup_spares_clear(&spares);
    assert_int_equal(spares.count, 0);
    cgroup_spares_add(&spares, &spare);
    assert_int_equal(spares.count, 0);
}

static void spares_that_nobody_takes_grow_old(void **state)
{
    const struct cgroup_spare spare = {.id = id_new()};
    struct cgroup_spares spares = {.count = 0};
    struct cgroup_spare taken;

    (void) state;
    assert_false(cgroup_spares_age(&spares, &taken));
    for (int i = 0; i < 3; i++) {
        assert_true(cgroup_spares_await(&spares));
        cgroup_spares_add(&spares, &spare);
    }
    assert_true(cgroup_spares_take(&spares, &taken));
    assert_false(cgroup_spares_age(&spares, &taken)); /* somebody needs them */
    assert_true(cgroup_spares_age(&spares, &taken));
    assert_string_equal(taken.id.text, spare.id.text);
    assert_int_equal(spares.count, 1);
    assert_true(cgroup_spares_age(&spares, &taken));
    assert_false(cgroup_spares_age(&spares, &taken));
}

/* --- groups ----------------------------------------------------------------------------------- */

/* The inode of a sandbox's group or, with the prefix, of a spare; 0 when it is not there. */
static ino_t group_at(const struct real *real, enum cgroup_controller controller,
                      const char *prefix, const struct id *id)
{
    char path[PATH_MAX];
    struct stat status;

    (void) snprintf(path, sizeof(path), "%s/%s%s", cgroup_host_place(real->host, controller),
                    prefix, id->text);
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

static bool is_spare(const struct real *real, enum cgroup_controller controller,
                     const struct id *id)
{
    return group_at(real, controller, "spare-", id) != 0;
}

/* Leave the test where groups cannot be used again. */
static void needs_v1(const struct real *real, enum cgroup_controller controller)
{
    needs(real, controller);
    if (cgroup_host_version(real->host, controller) != CGROUP_V1)
        skip_without("a v1 controller");
}

static bool retire_as(const struct real *real, const struct id *id, const struct id *spare)
{
    struct error err = ERROR_INIT;
    bool is_kept = false;

    if (cgroup_retire(real->host, id, spare, &is_kept, &err) < 0)
        fail_msg("%s", err.message);
    return is_kept;
}

/* Of one that lives only once here, by the same name. */
static bool retire(const struct real *real, const struct id *id)
{
    return retire_as(real, id, id);
}

/* From groups that are known to have these limits, or (NULL) of which nothing is known. */
static struct cgroup create_from_known(const struct real *real, const struct id *old,
                                       const struct limits *known, const struct limits *limits)
{
    struct cgroup_spare spare = {.id = *old, .limits.is_known = known != NULL};
    struct id id = id_new();
    struct error err = ERROR_INIT;
    struct cgroup cgroup;
    bool is_complete = false;
    int directory;

    if (known)
        spare.limits.limits = *known;
    if (cgroup_create_first(real->host, &id, &cgroup, &directory, &err) < 0 ||
        cgroup_create_rest(&cgroup, limits, &spare, &err) < 0 ||
        cgroup_adopt(real->host, &id, &cgroup, &is_complete, &err) < 0)
        fail_msg("%s", err.message);
    (void) fd_close(directory);
    assert_true(is_complete);
    return cgroup;
}

static struct cgroup create_from(const struct real *real, const struct id *old,
                                 const struct limits *limits)
{
    return create_from_known(real, old, NULL, limits);
}

static void eat_memory(struct real *real)
{
    size_t size = real->shared[1] * MEGABYTE;
    volatile char *bytes =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK((void *) bytes != MAP_FAILED);
    for (size_t at = 0; at < size; at += 4096)
        bytes[at] = 1;
}

static int run_eater(struct real *real, const struct cgroup *cgroup, uint64_t megabytes)
{
    real->shared[1] = megabytes;
    return real_wait(real, real_start(real, cgroup, CGROUP_WORK, eat_memory));
}

/* The kernel charges in advance, per CPU; other groups make it give that back, or this does. */
static void give_back_charges(const struct real *real, const struct id *id)
{
    char path[PATH_MAX];

    (void) snprintf(path, sizeof(path), "%s/%s/memory.force_empty",
                    cgroup_host_place(real->host, CGROUP_MEMORY), id->text);
    assert_int_equal(cgroup_file_write(AT_FDCWD, path, "0"), 0);
}

static void groups_of_the_dead_are_used_again(void **state)
{
    static const struct limits larger = {.memory_bytes = 128 * MEGABYTE, .pids = 60};
    struct real *real = *state;
    struct cgroup first = real_create(real, &some_limits), next;
    ino_t memory, processes;
    struct stats stats;

    needs_v1(real, CGROUP_MEMORY);
    needs_v1(real, CGROUP_PIDS);
    assert_ended_well(run_eater(real, &first, 20));
    memory = group_at(real, CGROUP_MEMORY, "", &first.id);
    processes = group_at(real, CGROUP_PIDS, "", &first.id);
    give_back_charges(real, &first.id);
    assert_true(retire(real, &first.id));
    assert_int_equal(cgroup_adopt(real->host, &first.id, &first, NULL, NULL), -1);
    assert_true(cgroup_spare_settle(real->host, &first.id));
    next = create_from(real, &first.id, &larger);
    assert_int_equal(group_at(real, CGROUP_MEMORY, "", &next.id), memory);
    assert_int_equal(group_at(real, CGROUP_PIDS, "", &next.id), processes);
    assert_false(is_spare(real, CGROUP_MEMORY, &first.id));
    /* Nothing tells of the first one. */
    cgroup_stats_read(&next, &stats);
    assert_true(stats.memory_bytes <= CGROUP_SPARE_MEMORY_MAX);
    assert_true(stats.memory_peak_bytes <= CGROUP_SPARE_MEMORY_MAX);
    assert_int_equal(stats.cpu_us, 0);
    assert_int_equal(stats.pids, 0);
    /* The limits are the next one's: both more and less than those of the first. */
    assert_ended_well(run_eater(real, &next, 80));
    assert_killed(run_eater(real, &next, 140));
}

static void a_smaller_limit_holds_in_a_group_that_had_a_larger_one(void **state)
{
    static const struct limits unlimited = {0};
    struct real *real = *state;
    struct cgroup first = real_create(real, &unlimited), next;

    needs_v1(real, CGROUP_MEMORY);
    needs_v1(real, CGROUP_PIDS);
    assert_true(retire(real, &first.id));
    assert_true(cgroup_spare_settle(real->host, &first.id));
    next = create_from(real, &first.id, &some_limits);
    assert_ended_well(run_eater(real, &next, 20));
    assert_killed(run_eater(real, &next, 56));
}

/* A limit as the kernel has it. */
static uint64_t limit_in(const struct real *real, const struct cgroup *cgroup,
                         enum cgroup_controller controller, const char *file)
{
    char path[PATH_MAX];
    uint64_t number = 0;

    (void) snprintf(path, sizeof(path), "%s/%s/%s", cgroup_host_place(real->host, controller),
                    cgroup->id.text, file);
    assert_int_equal(cgroup_file_number(AT_FDCWD, path, &number), 0);
    return number;
}

static void set_by_hand(const struct real *real, const struct cgroup *cgroup, const char *text)
{
    char path[PATH_MAX];

    (void) snprintf(path, sizeof(path), "%s/%s/pids.max",
                    cgroup_host_place(real->host, CGROUP_PIDS), cgroup->id.text);
    assert_int_equal(cgroup_file_write(AT_FDCWD, path, text), 0);
}

/* Seen by a limit that somebody else has changed meanwhile. */
static void limits_are_written_unless_they_are_known_to_be_the_same(void **state)
{
    static const struct limits other = {
        .memory_bytes = 64 * MEGABYTE, .pids = 41, .cpu_millis = 1000};
    static const struct {
        const struct limits *known, *wanted;
        uint64_t pids;
    } cases[] = {
        {&some_limits, &some_limits, 30},
        {&other, &some_limits, 40},
        {&some_limits, &other, 41},
        {NULL, &some_limits, 40},
    };
    struct real *real = *state;

    needs_v1(real, CGROUP_PIDS);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct cgroup first = real_create(real, &some_limits), next;

        set_by_hand(real, &first, "30");
        assert_true(retire(real, &first.id));
        assert_true(cgroup_spare_settle(real->host, &first.id));
        next = create_from_known(real, &first.id, cases[i].known, cases[i].wanted);
        assert_int_equal(limit_in(real, &next, CGROUP_PIDS, "pids.max"), cases[i].pids);
        assert_int_equal(cgroup_remove(&next, 0, NULL), 0);
    }
}

/* The others keep theirs; this one never had any. */
static void a_group_that_is_made_anew_gets_limits_that_the_others_have(void **state)
{
    struct real *real = *state;
    struct cgroup first = real_create(real, &some_limits), next;
    struct error err = ERROR_INIT;

    needs_v1(real, CGROUP_MEMORY);
    needs_v1(real, CGROUP_PIDS);
    assert_killed(run_eater(real, &first, 80)); /* not fit for anybody else */
    assert_true(retire(real, &first.id));
    assert_false(is_spare(real, CGROUP_MEMORY, &first.id));
    assert_true(cgroup_spare_settle(real->host, &first.id));
    next = create_from_known(real, &first.id, &some_limits, &some_limits);
    assert_int_equal(limit_in(real, &next, CGROUP_PIDS, "pids.max"), some_limits.pids);
    assert_int_equal(limit_in(real, &next, CGROUP_MEMORY, "memory.limit_in_bytes"),
                     some_limits.memory_bytes);
    assert_killed(run_eater(real, &next, 80));
    if (cgroup_remove(&next, PATIENCE_MS, &err) < 0)
        fail_msg("%s", err.message);
}

/* The first life leaves some groups, with its limits; the second all, with others. */
static void two_lives_of_a_sandbox_leave_two_spares(void **state)
{
    static const struct limits large = {
        .memory_bytes = 256 * MEGABYTE, .pids = 90, .cpu_millis = 1000};
    struct real *real = *state;
    struct cgroup first = real_create(real, &large), again, next;
    const struct id spares[] = {id_new(), id_new()};
    char path[PATH_MAX];

    needs_v1(real, CGROUP_MEMORY);
    needs_v1(real, CGROUP_PIDS);
    (void) snprintf(path, sizeof(path), "%s/%s/work", cgroup_host_place(real->host, CGROUP_PIDS),
                    first.id.text);
    assert_int_equal(rmdir(path), 0); /* not fit for anybody else */
    assert_true(retire_as(real, &first.id, &spares[0]));
    assert_true(cgroup_spare_settle(real->host, &spares[0]));
    assert_int_equal(cgroup_create(real->host, &first.id, &some_limits, &again, NULL), 0);
    assert_true(retire_as(real, &again.id, &spares[1]));
    assert_true(cgroup_spare_settle(real->host, &spares[1]));
    next = create_from_known(real, &spares[1], &some_limits, &some_limits);
    assert_int_equal(limit_in(real, &next, CGROUP_PIDS, "pids.max"), some_limits.pids);
    assert_int_equal(limit_in(real, &next, CGROUP_MEMORY, "memory.limit_in_bytes"),
                     some_limits.memory_bytes);
    assert_int_equal(cgroup_remove(&next, 0, NULL), 0);
    next = create_from_known(real, &spares[0], &large, &large);
    assert_int_equal(limit_in(real, &next, CGROUP_PIDS, "pids.max"), large.pids);
    assert_int_equal(limit_in(real, &next, CGROUP_MEMORY, "memory.limit_in_bytes"),
                     large.memory_bytes);
    assert_int_equal(cgroup_remove(&next, 0, NULL), 0);
}

/* What was counted there cannot be forgotten. */
static void a_group_that_ran_out_of_memory_is_not_kept(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &some_limits);

    needs_v1(real, CGROUP_MEMORY);
    needs_v1(real, CGROUP_PIDS);
    assert_killed(run_eater(real, &cgroup, 80));
    assert_true(retire(real, &cgroup.id)); /* of the others */
    assert_false(is_spare(real, CGROUP_MEMORY, &cgroup.id));
    assert_true(is_spare(real, CGROUP_PIDS, &cgroup.id));
    assert_true(cgroup_spare_settle(real->host, &cgroup.id));
    cgroup = create_from(real, &cgroup.id, &some_limits);
    assert_killed(run_eater(real, &cgroup, 80));
}

static void fork_too_often(struct real *real)
{
    (void) real;
    for (int i = 0; i < 64; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            (void) pause();
            _exit(0);
        }
    }
    (void) kill(0, SIGKILL);
}

static void lead_and_fork_too_often(struct real *real)
{
    (void) setpgid(0, 0);
    fork_too_often(real);
}

static void a_group_that_refused_a_process_is_not_kept(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &some_limits);

    needs_v1(real, CGROUP_PIDS);
    assert_killed(real_wait(real, real_start(real, &cgroup, CGROUP_WORK, lead_and_fork_too_often)));
    assert_int_equal(cgroup_kill(&cgroup, PATIENCE_MS, NULL), 0);
    (void) retire(real, &cgroup.id);
    assert_false(is_spare(real, CGROUP_PIDS, &cgroup.id));
    assert_int_equal(group_at(real, CGROUP_PIDS, "", &cgroup.id), 0);
}

static void burn(struct real *real)
{
    for (;;)
        real->shared[0]++;
}

static void a_group_that_was_throttled_is_not_kept(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &(struct limits){.cpu_millis = 10});
    struct stats stats = {0};
    pid_t pid;

    needs_v1(real, CGROUP_CPU);
    pid = real_start(real, &cgroup, CGROUP_WORK, burn);
    for (int i = 0; i < PATIENCE_MS && !stats.throttled_us; i++) {
        sleep_ms(1);
        cgroup_stats_read_some(&cgroup, STATS_BIT(THROTTLED), &stats);
    }
    assert_true(stats.throttled_us > 0);
    (void) kill(pid, SIGKILL);
    assert_killed(real_wait(real, pid));
    (void) retire(real, &cgroup.id);
    assert_false(is_spare(real, CGROUP_CPU, &cgroup.id));
    assert_int_equal(group_at(real, CGROUP_CPU, "", &cgroup.id), 0);
}

static void sit(struct real *real)
{
    real->shared[0] = 1;
    for (;;)
        (void) pause();
}

static void groups_in_use_are_not_kept(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &some_limits);
    struct error err = ERROR_INIT;
    bool is_kept = true;
    pid_t pid = real_start(real, &cgroup, CGROUP_WORK, sit);

    assert_true(grows_beyond(real, 0, 0));
    assert_int_equal(cgroup_retire(real->host, &cgroup.id, &cgroup.id, &is_kept, &err), -1);
    assert_int_equal(err.system, EBUSY);
    assert_false(is_kept);
    for (unsigned int i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
        assert_false(cgroup_host_place(real->host, i) && is_spare(real, i, &cgroup.id));
    (void) kill(pid, SIGKILL);
    assert_killed(real_wait(real, pid));
}

/* The third shared number is a descriptor of the test's: what is written there outlives the writer.
 */
static void write_megabyte(struct real *real)
{
    char block[4096] = {1};

    for (int i = 0; i < 256; i++)
        CHECK_EQUAL(sys_file_write_full((int) real->shared[2], block, sizeof(block)), 0);
}

static void a_group_that_memory_is_charged_to_is_not_kept(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &some_limits);
    AUTO(close) int file = memfd_create("stays", MFD_CLOEXEC);

    needs_v1(real, CGROUP_MEMORY);
    assert_true(file >= 0);
    real->shared[2] = (uint64_t) file;
    assert_ended_well(real_wait(real, real_start(real, &cgroup, CGROUP_WORK, write_megabyte)));
    assert_true(retire(real, &cgroup.id));
    assert_true(is_spare(real, CGROUP_MEMORY, &cgroup.id));
    (void) cgroup_spare_settle(real->host, &cgroup.id);
    assert_false(is_spare(real, CGROUP_MEMORY, &cgroup.id));
}

static void half_made_groups_are_not_kept(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &some_limits);
    char path[PATH_MAX];

    needs_v1(real, CGROUP_MEMORY);
    (void) snprintf(path, sizeof(path), "%s/%s/work", cgroup_host_place(real->host, CGROUP_MEMORY),
                    cgroup.id.text);
    assert_int_equal(rmdir(path), 0);
    (void) retire(real, &cgroup.id);
    assert_false(is_spare(real, CGROUP_MEMORY, &cgroup.id));
    assert_int_equal(group_at(real, CGROUP_MEMORY, "", &cgroup.id), 0);
}

static void a_spare_that_is_gone_costs_nothing_but_time(void **state)
{
    struct real *real = *state;
    struct cgroup first = real_create(real, &some_limits), next;

    (void) retire(real, &first.id);
    cgroup_spare_remove_all(real->host);
    for (unsigned int i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
        assert_false(cgroup_host_place(real->host, i) && is_spare(real, i, &first.id));
    assert_false(cgroup_spare_settle(real->host, &first.id));
    next = create_from(real, &first.id, &some_limits);
    assert_int_equal(cgroup_remove(&next, 0, NULL), 0);
}

static void one_spare_is_removed_and_others_stay(void **state)
{
    struct real *real = *state;
    struct cgroup first = real_create(real, &some_limits);
    struct cgroup second = real_create(real, &some_limits);

    needs_v1(real, CGROUP_PIDS);
    assert_true(retire(real, &first.id));
    assert_true(retire(real, &second.id));
    cgroup_spare_remove(real->host, &first.id);
    for (unsigned int i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
        assert_false(cgroup_host_place(real->host, i) && is_spare(real, i, &first.id));
    assert_true(is_spare(real, CGROUP_PIDS, &second.id));
}

/* As one that is being removed, of which nobody knows yet. */
static void a_spare_that_lacks_parts_is_made_anew(void **state)
{
    struct real *real = *state;
    struct cgroup first = real_create(real, &some_limits), next;
    char path[CGROUP_FILE_PATH_SIZE];

    (void) retire(real, &first.id);
    (void) snprintf(path, sizeof(path), "spare-%s/work", first.id.text);
    for (size_t i = 0; i < real->host->count; i++)
        (void) unlinkat(real->host->hierarchies[i].base, path, AT_REMOVEDIR);
    next = create_from_known(real, &first.id, &some_limits, &some_limits);
    for (size_t i = 0; i < real->host->count; i++) {
        bool found = false;

        assert_true(cgroup_is_complete_in(&real->host->hierarchies[i], &next, &found));
    }
    if (cgroup_host_version(real->host, CGROUP_PIDS) == CGROUP_V1)
        assert_int_equal(limit_in(real, &next, CGROUP_PIDS, "pids.max"), some_limits.pids);
    assert_int_equal(cgroup_remove(&next, 0, NULL), 0);
}

/* Nor is it a sandbox, for whoever lists them. */
static void a_spare_is_not_listed(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &some_limits);
    AUTO(free) struct id *ids = NULL;
    size_t count = 1;

    (void) retire(real, &cgroup.id);
    assert_int_equal(cgroup_list(real->host, &ids, &count, NULL), 0);
    assert_int_equal(count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_list_is_bounded),
        cmocka_unit_test(what_a_dead_janitor_owed_is_not_listed),
        cmocka_unit_test(spares_that_nobody_takes_grow_old),
        REAL_TESTS(groups_of_the_dead_are_used_again),
        REAL_TESTS(a_smaller_limit_holds_in_a_group_that_had_a_larger_one),
        REAL_TESTS(limits_are_written_unless_they_are_known_to_be_the_same),
        REAL_TESTS(a_group_that_is_made_anew_gets_limits_that_the_others_have),
        REAL_TESTS(two_lives_of_a_sandbox_leave_two_spares),
        REAL_TESTS(a_group_that_ran_out_of_memory_is_not_kept),
        REAL_TESTS(a_group_that_refused_a_process_is_not_kept),
        REAL_TESTS(a_group_that_was_throttled_is_not_kept),
        REAL_TESTS(groups_in_use_are_not_kept),
        REAL_TESTS(a_group_that_memory_is_charged_to_is_not_kept),
        REAL_TESTS(half_made_groups_are_not_kept),
        REAL_TESTS(a_spare_that_is_gone_costs_nothing_but_time),
        REAL_TESTS(one_spare_is_removed_and_others_stay),
        REAL_TESTS(a_spare_that_lacks_parts_is_made_anew),
        REAL_TESTS(a_spare_is_not_listed),
    };

    return run_real_tests("cgroup_spare", tests, ARRAY_COUNT(tests));
}
