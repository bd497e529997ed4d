#include "launcher/cgroup/cgroup.h"
#include "launcher/cgroup/cgroup_test_kit.h"
#include "sys/process/sys_clone.h"

static const struct limits some_limits = {
    .memory_bytes = 64 * MEGABYTE, .pids = 40, .cpu_millis = 1000};

static bool is_complete(const struct cgroup_host *host, const struct id *id)
{
    struct cgroup cgroup;
    bool complete = false;

    return cgroup_adopt(host, id, &cgroup, &complete, NULL) == 0 && complete;
}

static void sit(struct real *real)
{
    real->shared[0] = 1;
    for (;;)
        (void) pause();
}

static void groups_are_made_listed_and_removed(void **state)
{
    struct real *real = *state;
    struct cgroup first = real_create(real, &some_limits);
    struct cgroup second = real_create(real, &some_limits);
    AUTO(free) struct id *ids = NULL;
    AUTO(free) struct id *left = NULL;
    struct error err = ERROR_INIT;
    size_t count;

    assert_true(is_complete(real->host, &first.id));
    assert_int_equal(cgroup_list(real->host, &ids, &count, &err), 0);
    assert_int_equal(count, 2);
    assert_true(strcmp(ids[0].text, ids[1].text) < 0);
    assert_int_equal(cgroup_remove(&first, 0, &err), 0);
    assert_int_equal(cgroup_list(real->host, &left, &count, &err), 0);
    assert_int_equal(count, 1);
    assert_string_equal(left[0].text, second.id.text);
    assert_int_equal(cgroup_remove(&first, 0, &err), 0);
}

static void an_id_is_not_used_twice(void **state)
{
    struct real *real = *state;
    struct cgroup first = real_create(real, &some_limits);
    struct cgroup second;
    struct error err = ERROR_INIT;

    assert_int_equal(cgroup_create(real->host, &first.id, &some_limits, &second, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_int_equal(err.system, EEXIST);
    assert_true(is_complete(real->host, &first.id));
}

static void groups_in_use_are_not_removed(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &some_limits);
    struct error err = ERROR_INIT;
    pid_t pid;

    assert_int_equal(cgroup_populated(&cgroup, &err), 0);
    pid = real_start(real, &cgroup, CGROUP_WORK, sit);
    assert_true(grows_beyond(real, 0, 0));
    assert_int_equal(cgroup_populated(&cgroup, &err), 1);
    assert_int_equal(cgroup_remove(&cgroup, 20, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_int_equal(err.system, EBUSY);
    assert_true(is_complete(real->host, &cgroup.id));
    (void) kill(pid, SIGKILL);
    assert_killed(real_wait(real, pid));
    assert_int_equal(cgroup_remove(&cgroup, PATIENCE_MS, &err), 0);
    assert_int_equal(cgroup_adopt(real->host, &cgroup.id, &cgroup, NULL, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
}

static void groups_of_the_dead_go_by_their_id(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &some_limits);
    struct id bad = {"../.."};
    struct error err = ERROR_INIT;
    pid_t pid = real_start(real, &cgroup, CGROUP_WORK, sit);

    assert_true(grows_beyond(real, 0, 0));
    assert_int_equal(cgroup_remove_dead(real->host, &cgroup.id, &err), -1);
    assert_int_equal(err.system, EBUSY);
    (void) kill(pid, SIGKILL);
    assert_killed(real_wait(real, pid));
    assert_int_equal(cgroup_remove_dead(real->host, &cgroup.id, &err), 0);
    assert_int_equal(cgroup_adopt(real->host, &cgroup.id, &cgroup, NULL, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_int_equal(cgroup_remove_dead(real->host, &cgroup.id, &err), 0);
    assert_int_equal(cgroup_remove_dead(real->host, &bad, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
}

/* Removal is slow and runs in a helper, which knows the sandbox by its id only. */
static void a_helper_process_can_remove(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &some_limits);
    int status = 0;
    pid_t pid = fork_child();

    if (pid == 0) {
        struct cgroup_host *host = real_open(real);
        struct cgroup found;

        CHECK_EQUAL(cgroup_adopt(host, &cgroup.id, &found, NULL, NULL), 0);
        CHECK_EQUAL(cgroup_remove(&found, PATIENCE_MS, NULL), 0);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_ended_well(status);
    assert_false(is_complete(real->host, &cgroup.id));
}

static void a_restarted_launcher_adopts_what_runs(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &some_limits);
    struct id id = cgroup.id;
    AUTO(free) struct id *ids = NULL;
    struct error err = ERROR_INIT;
    bool complete = false;
    size_t count;
    pid_t pid = real_start(real, &cgroup, CGROUP_WORK, sit);

    assert_true(grows_beyond(real, 0, 0));
    cgroup_host_free(real->host);
    real->host = real_open(real);
    assert_int_equal(cgroup_list(real->host, &ids, &count, &err), 0);
    assert_int_equal(count, 1);
    assert_string_equal(ids[0].text, id.text);
    assert_int_equal(cgroup_adopt(real->host, &ids[0], &cgroup, &complete, &err), 0);
    assert_true(complete);
    assert_int_equal(cgroup_populated(&cgroup, &err), 1);
    assert_int_equal(cgroup_kill(&cgroup, PATIENCE_MS, &err), 0);
    assert_killed(real_wait(real, pid));
    assert_int_equal(cgroup_remove(&cgroup, PATIENCE_MS, &err), 0);
}

static void half_made_groups_are_found_and_removed(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &some_limits);
    char path[PATH_MAX];
    bool complete = true;

    needs(real, CGROUP_PIDS);
    (void) snprintf(path, sizeof(path), "%s/%s/work", cgroup_host_place(real->host, CGROUP_PIDS),
                    cgroup.id.text);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(cgroup_adopt(real->host, &cgroup.id, &cgroup, &complete, NULL), 0);
    assert_false(complete);
    assert_int_equal(cgroup_remove(&cgroup, 0, NULL), 0);
}

static void a_failed_creation_leaves_nothing(void **state)
{
    struct real *real = *state;
    struct limits wrong = {.memory_bytes = 1};
    AUTO(free) struct id *ids = NULL;
    struct id id = id_new();
    struct cgroup cgroup;
    struct error err = ERROR_INIT;
    size_t count;

    assert_int_equal(cgroup_create(real->host, &id, &wrong, &cgroup, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    for (unsigned int nth = 1;; nth++) {
        int result;

        fault_arm(FAULT_SYSTEM_CALL, nth, EIO);
        result = cgroup_create(real->host, &id, &some_limits, &cgroup, &err);
        if (!fault_disarm(FAULT_SYSTEM_CALL)) {
            assert_int_equal(result, 0);
            break;
        }
        assert_int_equal(result, -1);
        assert_int_equal(cgroup_list(real->host, &ids, &count, &err), 0);
        assert_int_equal(count, 0);
        free(TAKE_PTR(ids));
    }
}

static void an_invalid_id_names_no_group(void **state)
{
    struct real *real = *state;
    struct id id = {"../../other"};
    struct cgroup cgroup;
    struct error err = ERROR_INIT;

    assert_int_equal(cgroup_create(real->host, &id, &some_limits, &cgroup, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(cgroup_adopt(real->host, &id, &cgroup, NULL, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
}

/* As PID 1 of a sandbox has to, without any rights of its own. */
static void enter_work_without_rights(const struct cgroup_entry *entry)
{
    CHECK_EQUAL(cgroup_enter(entry->agent, entry->agent_count), 0);
    CHECK_EQUAL(syscall(SYS_setresgid, 1000, 1000, 1000), 0);
    CHECK_EQUAL(syscall(SYS_setresuid, 1000, 1000, 1000), 0);
    CHECK_EQUAL(cgroup_enter(entry->work, entry->work_count), 0);
}

static void descriptors_let_in_whoever_holds_them(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &some_limits);
    AUTO(cgroup_entry) struct cgroup_entry entry = CGROUP_ENTRY_INIT;
    int before = count_descriptors(), status = 0;
    pid_t pid;

    assert_int_equal(cgroup_entry_open(&cgroup, false, &entry, NULL), 0);
    assert_true(entry.work_count > 0);
    for (size_t i = 0; i < entry.agent_count; i++)
        assert_true(is_close_on_exec(entry.agent[i]));
    for (size_t i = 0; i < entry.work_count; i++)
        assert_true(is_close_on_exec(entry.work[i]));
    pid = fork_child();
    if (pid == 0) {
        enter_work_without_rights(&entry);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_ended_well(status);
    cgroup_entry_close(&entry);
    assert_int_equal(count_descriptors(), before);
}

/* Whether the v2 line names the sandbox: that of v1 would be a move, not a birth. */
static bool is_in_group(const struct cgroup *cgroup)
{
    AUTO(free) char *text = NULL;
    const char *line;
    size_t length;

    if (sys_file_read_all(AT_FDCWD, "/proc/self/cgroup", 65536, &text, &length) < 0)
        return false;
    line = strstr(text, "0::/");
    return line && strstr(line, cgroup->id.text);
}

static void a_child_can_be_born_in_its_group(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &some_limits);
    AUTO(cgroup_entry) struct cgroup_entry entry = CGROUP_ENTRY_INIT;
    struct sys_clone how = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD};
    int status = 0;
    pid_t pid;

    assert_int_equal(cgroup_entry_open(&cgroup, true, &entry, NULL), 0);
    if (real->variant->without_v2) {
        assert_int_equal(entry.clone_into, -EBADF);
        return;
    }
    assert_true(is_close_on_exec(entry.clone_into));
    how.cgroup = entry.clone_into;
    pid = sys_clone(&how);
    if (pid == -ENOSYS)
        skip_without("clone3 with CLONE_INTO_CGROUP");
    if (pid == 0)
        _exit(is_in_group(&cgroup) ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_ended_well(status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REAL_TESTS(groups_are_made_listed_and_removed),
        REAL_TESTS(an_id_is_not_used_twice),
        REAL_TESTS(groups_in_use_are_not_removed),
        REAL_TESTS(groups_of_the_dead_go_by_their_id),
        REAL_TESTS(a_helper_process_can_remove),
        REAL_TESTS(a_restarted_launcher_adopts_what_runs),
        REAL_TESTS(half_made_groups_are_found_and_removed),
        REAL_TESTS(a_failed_creation_leaves_nothing),
        REAL_TESTS(an_invalid_id_names_no_group),
        REAL_TESTS(descriptors_let_in_whoever_holds_them),
        REAL_TESTS(a_child_can_be_born_in_its_group),
    };

    return run_real_tests("cgroup", tests, ARRAY_COUNT(tests));
}
