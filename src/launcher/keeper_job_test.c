/* Real jobs of the real burrow-keeper on real disks: what they do and how they end. */
#include "launcher/keeper_job_test_kit.h"

/* --- what jobs do --------------------------------------------------------------------------- */

/* The lines of a list that are about the upper folder. */
static void keep_upper(char *said)
{
    char *from = strstr(said, "{\"path\":\"u\""), *end = strstr(said, "{\"path\":\"w\"");

    CHECK(from != NULL && end != NULL && from < end);
    *end = '\0';
    memmove(said, from, strlen(from) + 1);
}

static void copy_and_compare(void)
{
    struct stage stage;
    struct keeper_spec spec = {.task = KEEPER_COPY};
    AUTO(close) int upper = -EBADF;
    AUTO(free) char *said = NULL, *source = NULL, *target = NULL;

    set_stage(&stage, &small_pool);
    spec.disk = make_disk(stage.host.pool, 0);
    spec.target = make_disk(stage.host.pool, 64 * MEGABYTE);
    upper = open_part(&stage, &spec.disk, DISK_UPPER);
    fill_disk(upper);
    said = run_job(&stage, &spec, 0);
    check_says(said, "{\"folders\":3,\"files\":4,\"links\":1,\"fifos\":1,\"whiteouts\":1,"
                     "\"hard_links\":1,");
    spec.task = KEEPER_LIST;
    source = run_job(&stage, &spec, 0);
    spec.disk = spec.target;
    target = run_job(&stage, &spec, 0);
    keep_upper(source);
    keep_upper(target);
    check_says(source, "\"mode\":\"6755\",\"uid\":1000,\"gid\":1000,"); /* as inside the sandbox */
    check_says(source, "\"attributes\":[\"user.overlay.opaque\"]");
    CHECK_EQUAL(count_lines(source), 11);
    CHECK_EQUAL(strcmp(source, target), 0);
    free(said);
    spec.task = KEEPER_MEASURE;
    said = run_job(&stage, &spec, 0);
    check_says(said, "{\"files\":4,\"folders\":5,\"links\":1,\"others\":2,");
    strike_stage(&stage);
}

static void grow_chain(int top, int depth)
{
    int at = fcntl(top, F_DUPFD_CLOEXEC, 0);

    for (int i = 0; i < depth; i++) {
        int next;

        CHECK_EQUAL(mkdirat(at, "deeper", i % 3 ? 0 : 0700), 0);
        next = openat(at, "deeper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(next >= 0);
        CHECK_EQUAL(fchown(next, (uid_t) i % 100, 0), 0);
        (void) close(at);
        at = next;
    }
    (void) close(at);
}

static void delete_from_a_plain_pool(void)
{
    struct stage stage;
    struct keeper_spec spec = {.task = KEEPER_DELETE};
    AUTO(close) int upper = -EBADF;
    AUTO(free) char *said = NULL, *list = NULL;

    set_stage(&stage, &plain_pool);
    spec.disk = make_disk(stage.host.pool, 0);
    upper = open_part(&stage, &spec.disk, DISK_UPPER);
    fill_disk(upper);
    fill_much(upper);
    grow_chain(upper, 5000);
    said = run_job(&stage, &spec, 0);
    CHECK_EQUAL(strcmp(said, "{\"deleted\":true}\n"), 0);
    spec.task = KEEPER_LIST;
    list = run_job(&stage, &spec, 0);
    CHECK_EQUAL(count_lines(list), 2); /* the folder itself, and the count */
    CHECK_OK(disk_pool_delete(stage.host.pool, &spec.disk, &test_error));
    CHECK_OK(disk_pool_empty_trash(stage.host.pool, &test_error));
    strike_stage(&stage);
}

/* A disk that is too small for the copy: the limit holds for the keeper too. */
static void fail_inside(void)
{
    struct stage stage;
    struct keeper_spec spec = {.task = KEEPER_COPY};
    AUTO(close) int upper = -EBADF;
    AUTO(free) char *said = NULL;
    int error;

    set_stage(&stage, &small_pool);
    if (!disk_pool_is_limited(stage.host.pool))
        _exit(CHILD_UNABLE);
    spec.disk = make_disk(stage.host.pool, 0);
    spec.target = make_disk(stage.host.pool, DISK_LIMIT_MIN);
    upper = open_part(&stage, &spec.disk, DISK_UPPER);
    CHECK_EQUAL(write_file(upper, "large", 40 * MEGABYTE, &error), 40 * MEGABYTE);
    said = run_job(&stage, &spec, 1);
    check_says(said, "{\"error\":{\"code\":\"");
    check_says(said, "copy 'large': Disk quota exceeded");
    strike_stage(&stage);
}

static void fail_to_start(void)
{
    struct stage stage;
    struct keeper_spec spec = {.task = KEEPER_COPY};
    struct keeper_job job = KEEPER_JOB_INIT;
    struct sys_exit ended;

    set_stage(&stage, &small_pool);
    spec.disk = spec.target = make_disk(stage.host.pool, 0);
    CHECK_EQUAL(keeper_job_start(&stage.host, &spec, -EBADF, -EBADF, &job, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_INVALID);
    spec.target = id_new();
    spec.limits.pids = 8;
    CHECK_EQUAL(keeper_job_start(&stage.host, &spec, -EBADF, -EBADF, &job, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_NOT_FOUND);
    spec.task = KEEPER_LIST;
    spec.disk = id_new();
    CHECK_EQUAL(keeper_job_start(&stage.host, &spec, -EBADF, -EBADF, &job, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_NOT_FOUND);

    spec.disk = make_disk(stage.host.pool, 0);
    stage.host.program = sys_memfd_from_bytes("keeper", SYS_MEMFD_PROGRAM, "no program", 10);
    CHECK_OK(keeper_job_start(&stage.host, &spec, -EBADF, -EBADF, &job, &test_error));
    CHECK(sys_file_poll(job.pidfd, POLLIN, PATIENCE_MS) > 0);
    CHECK_EQUAL(keeper_job_finish(&stage.host, &job, &ended, &test_error), -1);
    check_says(test_error.message, "start the keeper: Exec format error");
    (void) close(stage.host.program);
    strike_stage(&stage);
}

/* --- how jobs end --------------------------------------------------------------------------- */

/* A list of many files that waits for its reader. */
static void start_waiting_job(struct stage *stage, struct keeper_job *job, int *ret_reader)
{
    struct keeper_spec spec = {.task = KEEPER_LIST, .disk = make_disk(stage->host.pool, 0)};
    AUTO(close) int upper = open_part(stage, &spec.disk, DISK_UPPER);

    fill_much(upper);
    start_job(stage, &spec, job, ret_reader);
    CHECK(sys_file_poll(*ret_reader, POLLIN, PATIENCE_MS) > 0);
}

static void cancel_jobs(void)
{
    struct stage stage;
    struct keeper_job job = KEEPER_JOB_INIT;
    struct sys_exit ended;
    int reader;

    set_stage(&stage, &small_pool);
    start_waiting_job(&stage, &job, &reader);
    (void) close(reader);
    ended = finish_job(&stage, &job);
    CHECK_EQUAL(ended.kind, SYS_EXIT_STATUS);
    CHECK_EQUAL(ended.value, 1);

    start_waiting_job(&stage, &job, &reader);
    keeper_job_cancel(&job);
    ended = finish_job(&stage, &job);
    CHECK_EQUAL(ended.kind, SYS_EXIT_SIGNAL);
    CHECK_EQUAL(ended.value, SIGKILL);
    (void) close(reader);
    strike_stage(&stage);
}

/* In a process of its own, which then dies without a word. Whoever reads the job's output stays
 * alive, so that this is not what ends the keeper. */
static _Noreturn void be_launcher(struct stage *stage, int output, int writer)
{
    struct keeper_spec spec = {.task = KEEPER_LIST, .disk = make_disk(stage->host.pool, 0)};
    struct keeper_job job = KEEPER_JOB_INIT;
    AUTO(close) int upper = open_part(stage, &spec.disk, DISK_UPPER);

    fill_much(upper);
    CHECK_OK(keeper_job_start(&stage->host, &spec, -EBADF, output, &job, &test_error));
    CHECK_EQUAL(sys_file_write_full(writer, &job.pid, sizeof(job.pid)), 0);
    for (;;)
        (void) pause();
}

static void lose_the_launcher(void)
{
    struct stage stage;
    AUTO(close) int keeper = -EBADF;
    pid_t launcher, pid;
    int ends[2], output[2], status;

    set_stage(&stage, &small_pool);
    CHECK_EQUAL(pipe2(ends, O_CLOEXEC), 0);
    CHECK_EQUAL(pipe2(output, O_CLOEXEC), 0);
    launcher = fork();
    CHECK(launcher >= 0);
    if (launcher == 0)
        be_launcher(&stage, output[1], ends[1]);
    CHECK_EQUAL(sys_file_read_full(ends[0], &pid, sizeof(pid)), sizeof(pid));
    keeper = sys_process_open(pid);
    CHECK(keeper >= 0);
    CHECK(sys_file_poll(output[0], POLLIN, PATIENCE_MS) > 0);
    CHECK_EQUAL(sys_file_poll(keeper, POLLIN, 50), 0); /* it lives as long as the launcher does */
    CHECK_EQUAL(kill(launcher, SIGKILL), 0);
    CHECK_EQUAL(waitpid(launcher, &status, 0), launcher);
    CHECK(sys_file_poll(keeper, POLLIN, PATIENCE_MS) > 0);
    for (int i = 0; i < 2; i++) {
        (void) close(ends[i]);
        (void) close(output[i]);
    }
    cgroup_host_remove_base(stage.cgroups);
    cgroup_host_free(stage.cgroups);
    id_range_table_free(stage.host.ids);
    CHECK_OK(disk_pool_unmount(stage.host.pool, &test_error));
}

/* --- the tests ------------------------------------------------------------------------------ */

static void a_copy_is_the_same_to_the_sandbox(void **state)
{
    (void) state;
    run_with_keeper(copy_and_compare);
}

static void a_disk_of_a_plain_pool_is_deleted(void **state)
{
    (void) state;
    run_with_keeper(delete_from_a_plain_pool);
}

static void the_limit_of_the_target_holds(void **state)
{
    (void) state;
    run_with_keeper(fail_inside);
}

static void what_cannot_start_is_told_and_leaves_nothing(void **state)
{
    (void) state;
    run_in_child(fail_to_start, NEEDS_KEEPER);
}

static void jobs_end_when_cancelled_or_unread(void **state)
{
    (void) state;
    run_with_keeper(cancel_jobs);
}

static void a_job_dies_with_its_launcher(void **state)
{
    (void) state;
    run_with_keeper(lose_the_launcher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_copy_is_the_same_to_the_sandbox, remove_groups),
        cmocka_unit_test_teardown(a_disk_of_a_plain_pool_is_deleted, remove_groups),
        cmocka_unit_test_teardown(the_limit_of_the_target_holds, remove_groups),
        cmocka_unit_test_teardown(what_cannot_start_is_told_and_leaves_nothing, remove_groups),
        cmocka_unit_test_teardown(jobs_end_when_cancelled_or_unread, remove_groups),
        cmocka_unit_test_teardown(a_job_dies_with_its_launcher, remove_groups),
    };

    load_program();
    return cmocka_run_group_tests_name("keeper_job", tests, NULL, NULL);
}
