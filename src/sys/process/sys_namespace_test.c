#include <net/if.h>
#include <signal.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "base/fault.h"
#include "sys/file/sys_file.h"
#include "sys/process/sys_clone.h"
#include "sys/process/sys_namespace.h"
#include "sys/process/sys_process.h"
#include "sys/sys_test.h"

#define NEEDS_NAMESPACES      "new namespaces (root with CAP_SYS_ADMIN)"
#define NEEDS_USER_NAMESPACES "user namespaces with mapped ids (root, /proc)"

static void unshare_and_come_back(void)
{
    AUTO(close) int outside = sys_namespace_open(0, "uts");
    struct utsname before, inside, after;

    if (outside < 0 || sys_namespace_unshare(CLONE_NEWUTS) == -EPERM)
        _exit(CHILD_UNABLE);
    CHECK(is_close_on_exec(outside));
    CHECK_EQUAL(uname(&before), 0);
    CHECK_EQUAL(sethostname("burrow-test", strlen("burrow-test")), 0);
    CHECK_EQUAL(uname(&inside), 0);
    CHECK(strcmp(inside.nodename, "burrow-test") == 0);
    CHECK_EQUAL(sys_namespace_enter(outside, CLONE_NEWNET), -EINVAL);
    CHECK_EQUAL(sys_namespace_enter(outside, CLONE_NEWUTS), 0);
    CHECK_EQUAL(uname(&after), 0);
    CHECK(strcmp(after.nodename, before.nodename) == 0);
}

static void a_namespace_is_left_and_entered_again(void **state)
{
    (void) state;
    run_in_child(unshare_and_come_back, NEEDS_NAMESPACES);
}

/* A child in its own user and uts namespaces that waits for one byte before it runs `body`, which
 * uses plain system calls to change ids: see sys_clone.h. */
struct inmate {
    pid_t pid;
    int pidfd;
    int go; /* write end: one byte lets it continue */
};

static struct inmate start_inmate(int (*body)(void))
{
    struct inmate inmate = {.pidfd = -EBADF};
    struct sys_clone how = {
        .flags = CLONE_NEWUSER | CLONE_NEWUTS, .exit_signal = SIGCHLD, .ret_pidfd = &inmate.pidfd};
    int ends[2];

    CHECK_EQUAL(pipe2(ends, O_CLOEXEC), 0);
    inmate.pid = sys_clone(&how);
    if (inmate.pid == -EPERM || inmate.pid == -ENOSPC || inmate.pid == -EUSERS)
        _exit(CHILD_UNABLE);
    CHECK(inmate.pid >= 0);
    if (inmate.pid == 0) {
        char byte;

        (void) alarm(CHILD_SECONDS);
        (void) close(ends[1]);
        CHECK_EQUAL(read(ends[0], &byte, 1), 1);
        _exit(body());
    }
    (void) close(ends[0]);
    inmate.go = ends[1];
    return inmate;
}

static void expect_exit(struct inmate *inmate, int status)
{
    struct sys_exit ended = {0};

    CHECK_EQUAL(write(inmate->go, "", 1), 1);
    CHECK_EQUAL(sys_process_wait(inmate->pidfd, 10000, &ended), 0);
    CHECK_EQUAL(ended.kind, SYS_EXIT_STATUS);
    CHECK_EQUAL(ended.value, status);
}

static int become_mapped_ids(void)
{
    if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, 7, 7, 7) < 0 ||
        syscall(SYS_setresuid, 1000, 1000, 1000) < 0)
        return 1;
    if (getuid() != 1000 || getgid() != 7)
        return 2;
    return syscall(SYS_setresuid, 2000, 2000, 2000) == 0 ? 3 : 0;
}

static void map_two_ranges(void)
{
    static const struct sys_id_range users[] = {{0, 100000, 10}, {1000, 200000, 5}};
    static const struct sys_id_range groups[] = {{0, 100000, 10}};
    char path[64];
    AUTO(free) char *text = NULL;
    struct inmate inmate;
    size_t length;

    leave_chroot();
    if (geteuid() != 0 || access("/proc/self/uid_map", R_OK) < 0)
        _exit(CHILD_UNABLE);
    inmate = start_inmate(become_mapped_ids);
    CHECK_EQUAL(sys_namespace_map_users(inmate.pid, users, ARRAY_COUNT(users)), 0);
    CHECK_EQUAL(sys_namespace_map_groups(inmate.pid, groups, ARRAY_COUNT(groups)), 0);
    CHECK_EQUAL(sys_namespace_map_users(inmate.pid, users, ARRAY_COUNT(users)), -EPERM);
    (void) snprintf(path, sizeof(path), "/proc/%d/uid_map", inmate.pid);
    CHECK_EQUAL(sys_file_read_all(AT_FDCWD, path, 4096, &text, &length), 0);
    CHECK(strstr(text, "200000          5\n") != NULL);
    expect_exit(&inmate, 0);
}

static void ids_are_mapped_as_asked(void **state)
{
    (void) state;
    run_in_child(map_two_ranges, NEEDS_USER_NAMESPACES);
}

static int try_setgroups(void)
{
    return syscall(SYS_setgroups, 0, NULL) < 0 && errno == EPERM ? 0 : 1;
}

static void deny_groups(void)
{
    static const struct sys_id_range ids[] = {{0, 100000, 1}};
    struct inmate inmate;

    leave_chroot();
    if (geteuid() != 0 || access("/proc/self/uid_map", R_OK) < 0)
        _exit(CHILD_UNABLE);
    inmate = start_inmate(try_setgroups);
    CHECK_EQUAL(sys_namespace_deny_setgroups(inmate.pid), 0);
    CHECK_EQUAL(sys_namespace_map_users(inmate.pid, ids, 1), 0);
    CHECK_EQUAL(sys_namespace_map_groups(inmate.pid, ids, 1), 0);
    expect_exit(&inmate, 0);
}

static void setgroups_can_be_denied(void **state)
{
    (void) state;
    run_in_child(deny_groups, NEEDS_USER_NAMESPACES);
}

static int stay(void)
{
    return 0;
}

static void enter_both(void)
{
    static const struct sys_id_range ids[] = {{0, 100000, 10}};
    struct inmate inmate;
    struct sys_clone how = {.exit_signal = SIGCHLD};
    int status = 0;
    pid_t pid;

    leave_chroot();
    if (geteuid() != 0 || access("/proc/self/uid_map", R_OK) < 0)
        _exit(CHILD_UNABLE);
    inmate = start_inmate(stay);
    CHECK_EQUAL(sys_namespace_map_users(inmate.pid, ids, 1), 0);
    CHECK_EQUAL(sys_namespace_map_groups(inmate.pid, ids, 1), 0);
    pid = sys_clone(&how);
    if (pid == 0) {
        CHECK_EQUAL(sys_namespace_enter(inmate.pidfd, CLONE_NEWUSER | CLONE_NEWUTS), 0);
        CHECK_EQUAL(syscall(SYS_setresuid, 0, 0, 0), 0);
        CHECK_EQUAL(sethostname("inside", 6), 0);
        _exit(0);
    }
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    CHECK_EQUAL(status, 0);
    expect_exit(&inmate, 0);
}

static void several_namespaces_are_entered_by_pidfd(void **state)
{
    (void) state;
    run_in_child(enter_both, NEEDS_USER_NAMESPACES);
}

static void wrong_maps_and_names_are_refused(void **state)
{
    static struct sys_id_range many[SYS_ID_RANGES_MAX + 1];
    char longer[100];

    (void) state;
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_int_equal(sys_namespace_map_users(0, many, 0), -EINVAL);
    assert_int_equal(sys_namespace_map_users(0, many, ARRAY_COUNT(many)), -EINVAL);
    assert_int_equal(sys_namespace_map_users(-1, many, 1), -EINVAL);
    assert_int_equal(sys_namespace_open(0, longer), -ENAMETOOLONG);
    assert_int_equal(sys_namespace_open(0, "none"), -ENOENT);
    assert_int_equal(sys_namespace_enter(-1, 0), -EBADF);
    fault_arm(FAULT_SYSTEM_CALL, 1, ENOSPC);
    assert_int_equal(sys_namespace_unshare(CLONE_NEWUTS), -ENOSPC);
    assert_true(fault_disarm(FAULT_SYSTEM_CALL));
}

/* --- networks that belong to nobody ------------------------------------------------------------
 */

static void make_network(void)
{
    AUTO(close) int network = -EBADF, home = sys_namespace_open(0, "net");
    int before = count_descriptors();

    if (geteuid() != 0)
        _exit(CHILD_UNABLE);
    fault_arm(FAULT_SYSTEM_CALL, 1, ENOSPC);
    CHECK_EQUAL(sys_namespace_make_network(), -ENOSPC);
    CHECK(fault_disarm(FAULT_SYSTEM_CALL));
    CHECK_EQUAL(count_descriptors(), before);
    network = sys_namespace_make_network();
    if (network == -EPERM || network == -EUSERS)
        _exit(CHILD_UNABLE);
    CHECK(network >= 0);
    CHECK(is_close_on_exec(network));
    CHECK_EQUAL(waitpid(-1, NULL, WNOHANG), -1);
    CHECK_EQUAL(errno, ECHILD);
    CHECK_EQUAL(sys_namespace_enter(network, CLONE_NEWNET), 0);
    CHECK_EQUAL(if_nametoindex("lo"), 1);
    CHECK_EQUAL(if_nametoindex("eth0"), 0);
    CHECK_EQUAL(sys_namespace_enter(home, CLONE_NEWNET), 0);
}

static void a_network_is_made_with_nobody_in_it(void **state)
{
    (void) state;
    run_in_child(make_network, NEEDS_NAMESPACES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_namespace_is_left_and_entered_again),
        cmocka_unit_test(ids_are_mapped_as_asked),
        cmocka_unit_test(setgroups_can_be_denied),
        cmocka_unit_test(several_namespaces_are_entered_by_pidfd),
        cmocka_unit_test(wrong_maps_and_names_are_refused),
        cmocka_unit_test(a_network_is_made_with_nobody_in_it),
    };

    return cmocka_run_group_tests_name("sys_namespace", tests, NULL, NULL);
}
