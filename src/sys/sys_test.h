/* For the tests of sys/ only: children that may do what they like to their namespaces, scratch
 * folders, and the same test once with and once without a kernel feature.
 */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "sys/file/sys_scratch_testing.h"
#include "sys/mount/sys_mount.h"
#include "sys/mount/sys_mount_path.h"
#include "sys/sys_feature.h"

/* What a child exits with when the machine cannot do what it needs. */
#define CHILD_UNABLE 77

/* A child that hangs ends by SIGALRM and fails its test. */
#define CHILD_SECONDS 100

/* cmocka's assertions jump back into the runner, which must not happen in a forked child. */
#define CHECK(condition)         child_check(condition, #condition, __FILE__, __LINE__)
#define CHECK_EQUAL(left, right) child_check_equal(left, right, #left, #right, __FILE__, __LINE__)

static inline void child_check(bool holds, const char *text, const char *file, int line)
{
    if (holds)
        return;
    (void) fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, text);
    _exit(1);
}

static inline void child_check_equal(long long left, long long right, const char *left_text,
                                     const char *right_text, const char *file, int line)
{
    if (left == right)
        return;
    (void) fprintf(stderr, "%s:%d: %s is %lld, %s is %lld\n", file, line, left_text, left,
                   right_text, right);
    _exit(1);
}

/* Leave the test because something is missing. cmocka's skip does not return. */
static inline void skip_without(const char *what)
{
    (void) printf("# skip: %s\n", what);
    (void) fflush(stdout);
    skip();
}

/* Run `body` in a child and insist that it reaches its end; skip when it says CHILD_UNABLE. */
static inline void run_in_child(void (*body)(void), const char *needed)
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        (void) alarm(CHILD_SECONDS);
        body();
        _exit(0);
    }
    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_UNABLE)
        skip_without(needed);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

#define NEEDS_MOUNTS "mounting (root with CAP_SYS_ADMIN)"

/* In a child: out of a chroot, where tests may well run but where root can neither make its mounts
 * private nor create user namespaces. With our root set below the working directory, ".." does not
 * stop there any more. Changes nothing outside a chroot. */
static inline void leave_chroot(void)
{
    if (geteuid() != 0)
        return;
    CHECK_EQUAL(chdir("/"), 0);
    if (chroot("tmp") < 0)
        return;
    for (int i = 0; i < 64; i++)
        CHECK_EQUAL(chdir(".."), 0);
    CHECK_EQUAL(chroot("."), 0);
}

/* In a child: a mount namespace whose mounts reach nobody else, its root as our root, and an empty
 * tmpfs at /tmp, where we stand. */
static inline void enter_private_mounts(void)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0)
        _exit(CHILD_UNABLE);
    leave_chroot();
    if (syscall(SYS_mount, NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        syscall(SYS_mount, "tmpfs", "/tmp", "tmpfs", 0, "size=1M") < 0)
        _exit(CHILD_UNABLE);
    CHECK_EQUAL(chdir("/tmp"), 0);
}

#define SCRATCH_SIZE 64

/* A fresh directory, for the length of a test. */
static inline void make_scratch_in(const char *parent, char ret_path[static SCRATCH_SIZE])
{
    (void) snprintf(ret_path, SCRATCH_SIZE, "%s/burrow-test-XXXXXX", parent);
    assert_non_null(mkdtemp(ret_path));
}

static inline void make_scratch(char ret_path[static SCRATCH_SIZE])
{
    make_scratch_in(scratch_parent(), ret_path);
}

static inline int remove_entry(const char *path, const struct stat *status, int type,
                               struct FTW *walk)
{
    (void) status;
    (void) type;
    (void) walk;
    return remove(path);
}

static inline void remove_scratch(const char *path)
{
    assert_int_equal(nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* How many descriptors this process has open: the same before and after means none leaked. */
static inline int count_descriptors(void)
{
    int count = 0;

    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static inline bool is_close_on_exec(int fd)
{
    return fcntl(fd, F_GETFD) & FD_CLOEXEC;
}
