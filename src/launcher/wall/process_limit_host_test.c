/* On a made-up /proc, so that no test changes the host; and once, without raising, on the real one.
 */
#include <string.h>
#include <sys/resource.h>

#include "base/fault.h"
#include "launcher/wall/process_limit_host.h"
#include "sys/file/sys_file.h"
#include "sys/sys_test.h"

static void put(int proc, const char *path, const char *text)
{
    AUTO(close) int fd = -EBADF;
    char folder[128];
    const char *slash = strrchr(path, '/');

    (void) snprintf(folder, sizeof(folder), "%.*s", slash ? (int) (slash - path) : 1,
                    slash ? path : ".");
    assert_int_equal(sys_file_make_directories(proc, folder, 0700), 0);
    fd = sys_file_open(proc, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(sys_file_write_full(fd, text, strlen(text)), 0);
}

static void expect_file(int proc, const char *path, const char *text)
{
    AUTO(free) char *data = NULL;
    size_t length;

    assert_int_equal(sys_file_read_all(proc, path, 4096, &data, &length), 0);
    assert_string_equal(data, text);
}

struct fixture {
    char folder[SCRATCH_SIZE];
    int proc;
};

/* The values of a small machine. As in the real /proc a write replaces the value: here because a
 * raised one is never shorter, newline included. */
static int make_proc(void **state)
{
    static struct fixture fixture;

    make_scratch(fixture.folder);
    fixture.proc = sys_file_open(AT_FDCWD, fixture.folder, O_PATH | O_DIRECTORY, 0);
    assert_true(fixture.proc >= 0);
    put(fixture.proc, "meminfo", "MemTotal:       25600 kB\nMemFree: 1 kB\n");
    put(fixture.proc, "sys/fs/inotify/max_user_instances", "128\n");
    put(fixture.proc, "sys/fs/inotify/max_user_watches", "99999999\n");
    put(fixture.proc, "sys/kernel/pid_max", "32768\n");
    put(fixture.proc, "sys/fs/file-max", "9223372036854775807\n");
    put(fixture.proc, "sys/user/max_user_namespaces", "0\n");
    put(fixture.proc, "sys/kernel/core_pattern", "core\n");
    *state = &fixture;
    return 0;
}

static int remove_proc(void **state)
{
    struct fixture *fixture = *state;

    fixture->proc = fd_close(fixture->proc);
    remove_scratch(fixture->folder);
    return 0;
}

static const struct process_limit_finding *check(const struct fixture *fixture,
                                                 struct process_limit_report *report,
                                                 uint64_t sandboxes, bool raise, const char *name)
{
    struct process_limit_need need = PROCESS_LIMIT_NEED(sandboxes);
    const struct process_limit_finding *finding;

    need.descriptors_each = 0; /* this test's own limit stays what it is */
    process_limit_check_host(fixture->proc, &need, raise, false, report);
    finding = process_limit_find(report, name);
    assert_non_null(finding);
    return finding;
}

static void what_is_too_low_is_raised(void **state)
{
    const struct fixture *fixture = *state;
    struct process_limit_report report;
    const struct process_limit_finding *finding =
        check(fixture, &report, 1000, true, "fs.inotify.max_user_instances");

    assert_int_equal(finding->state, PROCESS_LIMIT_RAISED);
    assert_int_equal(finding->value, 128);
    assert_int_equal(finding->needed, 128128);
    assert_string_equal(finding->sentence, "");
    expect_file(fixture->proc, "sys/fs/inotify/max_user_instances", "128128");
    expect_file(fixture->proc, "sys/kernel/pid_max", "260096");
}

static void what_is_enough_is_left_alone(void **state)
{
    const struct fixture *fixture = *state;
    struct process_limit_report report;

    assert_int_equal(check(fixture, &report, 1000, true, "fs.inotify.max_user_watches")->state,
                     PROCESS_LIMIT_ENOUGH);
    expect_file(fixture->proc, "sys/fs/inotify/max_user_watches", "99999999\n");
    assert_int_equal(process_limit_find(&report, "fs.file-max")->state, PROCESS_LIMIT_ENOUGH);
    assert_int_equal(process_limit_find(&report, "fs.file-max")->needed, 25600 * 1024 / 256);
}

static void looking_changes_nothing(void **state)
{
    const struct fixture *fixture = *state;
    struct process_limit_report report;
    const struct process_limit_finding *finding =
        check(fixture, &report, 1000, false, "fs.inotify.max_user_instances");

    assert_int_equal(finding->state, PROCESS_LIMIT_LOW);
    assert_non_null(strstr(finding->sentence, "is 128, 1000 sandboxes need 128128"));
    assert_non_null(strstr(finding->sentence, "sysctl -w fs.inotify.max_user_instances=128128"));
    expect_file(fixture->proc, "sys/fs/inotify/max_user_instances", "128\n");
}

static void a_decision_of_the_administrator_is_reported_only(void **state)
{
    const struct fixture *fixture = *state;
    struct process_limit_report report;
    const struct process_limit_finding *finding =
        check(fixture, &report, 10, true, "user.max_user_namespaces");

    assert_int_equal(finding->state, PROCESS_LIMIT_LOW);
    assert_non_null(strstr(finding->sentence, "left to you"));
    expect_file(fixture->proc, "sys/user/max_user_namespaces", "0\n");
}

static void a_need_is_cut_to_what_the_kernel_accepts(void **state)
{
    const struct fixture *fixture = *state;
    struct process_limit_report report;
    const struct process_limit_finding *finding =
        check(fixture, &report, 100000, true, "kernel.pid_max");

    assert_int_equal(finding->needed, 4194304);
    assert_int_equal(finding->state, PROCESS_LIMIT_RAISED);
}

/* Every system call fails in turn; one of them is the write. */
static void what_cannot_be_raised_says_why(void **state)
{
    const struct fixture *fixture = *state;
    struct process_limit_report report;
    bool said = false;

    for (unsigned int nth = 1; nth < 40 && !said; nth++) {
        const struct process_limit_finding *finding;

        put(fixture->proc, "sys/fs/inotify/max_user_instances", "128\n");
        fault_arm(FAULT_SYSTEM_CALL, nth, EROFS);
        finding = check(fixture, &report, 10, true, "fs.inotify.max_user_instances");
        (void) fault_disarm(FAULT_SYSTEM_CALL);
        said = strstr(finding->sentence, "failed: Read-only file system") != NULL;
        assert_true(!said || finding->state == PROCESS_LIMIT_LOW);
    }
    assert_true(said);
}

static void what_is_missing_or_garbage_is_missing(void **state)
{
    const struct fixture *fixture = *state;
    struct process_limit_report report;

    put(fixture->proc, "sys/kernel/pid_max", "many\n");
    assert_int_equal(check(fixture, &report, 10, true, "kernel.pid_max")->state,
                     PROCESS_LIMIT_MISSING);
    assert_int_equal(process_limit_find(&report, "kernel.pty.max")->state, PROCESS_LIMIT_MISSING);
    assert_null(process_limit_find(&report, "kernel.colour"));
}

static void check_core(const struct fixture *fixture, const char *pattern, bool handler_runs,
                       enum process_limit_state expected)
{
    struct process_limit_need need = {0};
    struct process_limit_report report;

    put(fixture->proc, "sys/kernel/core_pattern", pattern);
    process_limit_check_host(fixture->proc, &need, false, handler_runs, &report);
    assert_int_equal(process_limit_find(&report, "kernel.core_pattern")->state, expected);
}

static void core_handlers_that_no_limit_stops_are_reported(void **state)
{
    check_core(*state, "core\n", true, PROCESS_LIMIT_ENOUGH);
    check_core(*state, "|/usr/lib/handler %P\n", false, PROCESS_LIMIT_ENOUGH);
    check_core(*state, "|/usr/lib/handler %P\n", true, PROCESS_LIMIT_LOW);
    check_core(*state, "@/run/handler.socket\n", false, PROCESS_LIMIT_LOW);
}

static void raise_own_descriptors(void)
{
    struct process_limit_need need = {.sandboxes = 10, .descriptors_each = 10};
    struct process_limit_report report;
    struct rlimit now, low = {64, 700};
    AUTO(close) int proc = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &low), 0);
    process_limit_check_host(proc, &need, true, false, &report);
    CHECK_EQUAL(process_limit_find(&report, "nofile")->state, PROCESS_LIMIT_RAISED);
    CHECK_EQUAL(getrlimit(RLIMIT_NOFILE, &now), 0);
    CHECK_EQUAL(now.rlim_cur, 612);
    CHECK_EQUAL(now.rlim_max, 700);
    need.sandboxes = 1000;
    process_limit_check_host(proc, &need, false, false, &report);
    CHECK_EQUAL(process_limit_find(&report, "nofile")->state, PROCESS_LIMIT_LOW);
    CHECK(strstr(process_limit_find(&report, "nofile")->sentence, "LimitNOFILE=10512") != NULL);
}

static void own_descriptors_are_raised_up_to_the_hard_limit(void **state)
{
    (void) state;
    run_in_child(raise_own_descriptors, "");
}

static void the_real_host_is_readable(void **state)
{
    struct process_limit_need need = PROCESS_LIMIT_NEED(1000);
    struct process_limit_report report;
    AUTO(close) int proc = sys_file_open(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY, 0);

    (void) state;
    process_limit_check_host(proc, &need, false, false, &report);
    assert_true(process_limit_find(&report, "kernel.pid_max")->state != PROCESS_LIMIT_MISSING);
    assert_true(process_limit_find(&report, "fs.file-max")->needed > 0);
    for (size_t i = 0; i < report.count; i++) {
        const struct process_limit_finding *finding = &report.findings[i];

        assert_true((finding->state == PROCESS_LIMIT_LOW) == (finding->sentence[0] != '\0'));
        if (finding->sentence[0])
            assert_int_equal(finding->sentence[strlen(finding->sentence) - 1], '.');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_too_low_is_raised, make_proc, remove_proc),
        cmocka_unit_test_setup_teardown(what_is_enough_is_left_alone, make_proc, remove_proc),
        cmocka_unit_test_setup_teardown(looking_changes_nothing, make_proc, remove_proc),
        cmocka_unit_test_setup_teardown(a_decision_of_the_administrator_is_reported_only, make_proc,
                                        remove_proc),
        cmocka_unit_test_setup_teardown(a_need_is_cut_to_what_the_kernel_accepts, make_proc,
                                        remove_proc),
        cmocka_unit_test_setup_teardown(what_cannot_be_raised_says_why, make_proc, remove_proc),
        cmocka_unit_test_setup_teardown(what_is_missing_or_garbage_is_missing, make_proc,
                                        remove_proc),
        cmocka_unit_test_setup_teardown(core_handlers_that_no_limit_stops_are_reported, make_proc,
                                        remove_proc),
        cmocka_unit_test(own_descriptors_are_raised_up_to_the_hard_limit),
        cmocka_unit_test(the_real_host_is_readable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
