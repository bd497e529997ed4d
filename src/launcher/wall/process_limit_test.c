#include <string.h>
#include <sys/ptrace.h>

#include "launcher/wall/capability.h"
#include "launcher/wall/capability_test_kit.h"
#include "launcher/wall/process_limit.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_memfd.h"

static void apply_and_look(void)
{
    struct process_limits limits;
    size_t count;
    const struct process_limit_row *rows = process_limit_rows(&count);

    CHECK_EQUAL(process_limits_plan(&limits, 0), 0);
    CHECK_EQUAL(limits.count, count);
    CHECK_EQUAL(process_limits_apply(&limits), 0);
    for (size_t i = 0; i < count; i++) {
        struct rlimit now;

        CHECK_EQUAL(getrlimit((__rlimit_resource_t) rows[i].resource, &now), 0);
        CHECK(now.rlim_max <= rows[i].hard);
        CHECK(now.rlim_cur <= rows[i].soft);
        CHECK(now.rlim_cur == limits.entries[i].limit.rlim_cur);
    }
}

static void limits_are_applied_as_planned(void **state)
{
    (void) state;
    run_in_child(apply_and_look, "");
}

static void lower_hard_limits(void)
{
    static const struct rlimit few = {256, 256}, none = {0, 0};

    CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &few), 0);
    CHECK_EQUAL(setrlimit(RLIMIT_CORE, &none), 0);
    /* With this capability the limits could be raised again. */
    CHECK_EQUAL(capability_confine(~capability_bit("sys_resource")), 0);
}

static void plan_below_hard_limits(void)
{
    struct process_limits limits;

    if (geteuid() != 0)
        _exit(CHILD_UNABLE);
    lower_hard_limits();
    CHECK_EQUAL(process_limits_plan(&limits, 0), 0);
    CHECK_EQUAL(process_limits_apply(&limits), 0);
    CHECK(limits.core_handler_runs);
    for (size_t i = 0; i < limits.count; i++)
        if (limits.entries[i].resource == RLIMIT_NOFILE) {
            CHECK_EQUAL(limits.entries[i].limit.rlim_max, 256);
            CHECK_EQUAL(limits.entries[i].limit.rlim_cur, 256);
        }
}

static void a_plan_stays_within_the_hard_limits(void **state)
{
    (void) state;
    run_in_child(plan_below_hard_limits, "root");
}

static void plan_processes(void)
{
    struct process_limits limits;

    CHECK_EQUAL(process_limits_plan(&limits, 40), 0);
    for (size_t i = 0; i < limits.count; i++)
        if (limits.entries[i].resource == RLIMIT_NPROC)
            CHECK_EQUAL(limits.entries[i].limit.rlim_max, 40);
}

static void processes_are_limited_where_asked(void **state)
{
    (void) state;
    run_in_child(plan_processes, "");
}

static void crash_in(const char *folder)
{
    struct process_limits limits;

    if (process_limits_plan(&limits, 0) < 0 || limits.core_handler_runs)
        _exit(CHILD_UNABLE);
    CHECK_EQUAL(chdir(folder), 0);
    CHECK_EQUAL(process_limits_apply(&limits), 0);
    (void) signal(SIGQUIT, SIG_DFL);
    (void) kill(getpid(), SIGQUIT);
    _exit(1);
}

/* With a pattern that names a file no core may appear, with one that is a pipe no handler may be
 * told: both show in the status. */
static void a_crash_leaves_no_core(void **state)
{
    char folder[SCRATCH_SIZE];
    int status;
    pid_t pid;

    (void) state;
    make_scratch(folder);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        crash_in(folder);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(rmdir(folder), 0); /* empty */
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_UNABLE)
        skip_without("a hard core limit above 0");
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGQUIT);
    assert_false(WCOREDUMP(status));
}

static void the_oom_score_is_set(void **state)
{
    char path[64];
    AUTO(free) char *text = NULL;
    size_t length;
    int status;
    pid_t pid = fork();

    (void) state;
    assert_true(pid >= 0);
    if (pid == 0)
        for (;;)
            (void) pause();
    (void) snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
    assert_int_equal(process_limit_set_oom_score(pid, PROCESS_LIMIT_OOM_SCORE), 0);
    assert_int_equal(sys_file_read_all(AT_FDCWD, path, 64, &text, &length), 0);
    assert_string_equal(text, "900\n");
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(process_limit_set_oom_score(pid, 0), -ENOENT);
}

#define PROGRAM_MAX (2 << 20)

/* The program whose memory is tried. Made by the host's root, as the launcher does. */
static int victim_image = -EBADF;

static void make_image(bool hidden)
{
    AUTO(free) char *bytes = NULL;
    size_t length;

    if (sys_file_read_all(AT_FDCWD, "/bin/sleep", PROGRAM_MAX, &bytes, &length) < 0)
        _exit(CHILD_UNABLE);
    victim_image = sys_memfd_from_bytes("victim", SYS_MEMFD_PROGRAM, bytes, length);
    CHECK(victim_image >= 0);
    CHECK_EQUAL(fchmod(victim_image, 0755), 0);
    if (hidden)
        CHECK_EQUAL(process_limit_hide_image(victim_image), 0);
}

static pid_t start_victim(void)
{
    static char *const arguments[] = {(char *) "sleep", (char *) "60", NULL};
    static char *const environment[] = {NULL};
    char byte;
    int ends[2];
    pid_t pid;

    CHECK_EQUAL(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void) execveat(victim_image, "", arguments, environment, AT_EMPTY_PATH);
        _exit(127);
    }
    (void) close(ends[1]);
    /* The end of the pipe comes with exec. */
    CHECK_EQUAL(read(ends[0], &byte, 1), 0);
    (void) close(ends[0]);
    return pid;
}

/* Root of the same user namespace, with all capabilities there. */
static int opens_for_namespace_root(pid_t pid)
{
    char path[64];
    AUTO(close) int memory = -EBADF;
    DIR *folder;
    int opened = 0;

    (void) snprintf(path, sizeof(path), "/proc/%d/mem", pid);
    memory = open(path, O_RDWR | O_CLOEXEC);
    opened += memory >= 0;
    (void) snprintf(path, sizeof(path), "/proc/%d/fd", pid);
    folder = opendir(path);
    opened += folder != NULL;
    if (folder)
        (void) closedir(folder);
    opened += ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0;
    return opened;
}

static void try_victim(int expected)
{
    int status;
    pid_t pid = start_victim();
    int opened = opens_for_namespace_root(pid);

    CHECK_EQUAL(kill(pid, SIGKILL), 0);
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status)); /* it had started */
    CHECK_EQUAL(opened, expected);
}

static void try_open_victim(void)
{
    try_victim(3);
}

static void try_hidden_victim(void)
{
    try_victim(0);
}

static void in_namespace_open_victim(void)
{
    make_image(false);
    run_as_namespace_root(try_open_victim);
}

static void in_namespace_hidden_victim(void)
{
    make_image(true);
    run_as_namespace_root(try_hidden_victim);
}

static void a_readable_image_is_open_to_namespace_root(void **state)
{
    (void) state;
    run_in_child(in_namespace_open_victim, NEEDS_USER_NAMESPACES);
}

static void a_hidden_image_is_closed_to_namespace_root(void **state)
{
    (void) state;
    run_in_child(in_namespace_hidden_victim, NEEDS_USER_NAMESPACES);
}

static int read_share(int proc, const char *name)
{
    char path[128];
    AUTO(free) char *text = NULL;
    size_t length;

    (void) snprintf(path, sizeof(path), "sys/user/%s", name);
    CHECK_EQUAL(sys_file_read_all(proc, path, 64, &text, &length), 0);
    return (int) strtol(text, NULL, 10);
}

static void shares_hold(void)
{
    AUTO(close) int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO(close) int shares = open("/proc/sys/user", O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO(close) int file = -EBADF;

    CHECK_EQUAL(unshare(CLONE_NEWUTS), 0);
    CHECK_EQUAL(process_limit_apply_shares(shares, false), 0);
    CHECK_EQUAL(process_limit_apply_shares(shares, true), 0);
    CHECK_EQUAL(read_share(proc, "max_inotify_instances"), 128);
    CHECK_EQUAL(read_share(proc, "max_user_namespaces"), 0);
    /* A second wall: these were possible a moment ago. */
    CHECK(unshare(CLONE_NEWUTS) < 0 && errno == ENOSPC);
    CHECK(unshare(CLONE_NEWNS) < 0 && errno == ENOSPC);
    CHECK(unshare(CLONE_NEWUSER) < 0 && errno == ENOSPC);
    CHECK_EQUAL(capability_confine(capability_kept()), 0);
    file = openat(proc, "sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);
    CHECK(file < 0);
}

static void in_namespace_shares(void)
{
    run_as_namespace_root(shares_hold);
}

static void shares_cannot_be_raised_from_inside(void **state)
{
    (void) state;
    run_in_child(in_namespace_shares, NEEDS_USER_NAMESPACES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_applied_as_planned),
        cmocka_unit_test(a_plan_stays_within_the_hard_limits),
        cmocka_unit_test(processes_are_limited_where_asked),
        cmocka_unit_test(a_crash_leaves_no_core),
        cmocka_unit_test(the_oom_score_is_set),
        cmocka_unit_test(a_readable_image_is_open_to_namespace_root),
        cmocka_unit_test(a_hidden_image_is_closed_to_namespace_root),
        cmocka_unit_test(shares_cannot_be_raised_from_inside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
