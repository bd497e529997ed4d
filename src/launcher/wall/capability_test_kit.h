/* For tests of the walls only: root of a user namespace, as a sandbox has one. */
#pragma once

#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/process/sys_clone.h"
#include "sys/process/sys_namespace.h"
#include "sys/process/sys_process.h"
#include "sys/sys_test.h"

#define NEEDS_USER_NAMESPACES "user namespaces with mapped ids (root, /proc)"

/* Run `body` as root of a new user namespace with 65536 ids, its own mounts and network, and an
 * empty /tmp as working directory. Called in a child of the test. */
static inline void run_as_namespace_root(void (*body)(void))
{
    static const struct sys_id_range ids = {0, 100000, 65536};
    int pidfd = -EBADF, ends[2];
    struct sys_exit ended = {0};
    struct sys_clone how = {.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET,
                            .exit_signal = SIGCHLD,
                            .ret_pidfd = &pidfd};
    pid_t pid;

    leave_chroot();
    if (geteuid() != 0 || access("/proc/self/uid_map", R_OK) < 0)
        _exit(CHILD_UNABLE);
    CHECK_EQUAL(pipe2(ends, O_CLOEXEC), 0);
    pid = sys_clone(&how);
    if (pid == -EPERM || pid == -ENOSPC || pid == -EUSERS)
        _exit(CHILD_UNABLE);
    CHECK(pid >= 0);
    if (pid == 0) {
        char byte;

        CHECK_EQUAL(read(ends[0], &byte, 1), 1);
        /* Not libc's, which wait for a sanitizer's thread (sys_clone.h). */
        CHECK_EQUAL(syscall(SYS_setgroups, 0, NULL), 0);
        CHECK_EQUAL(syscall(SYS_setresgid, 0, 0, 0), 0);
        CHECK_EQUAL(syscall(SYS_setresuid, 0, 0, 0), 0);
        CHECK_EQUAL(mount("tmpfs", "/tmp", "tmpfs", 0, "size=4M,mode=755"), 0);
        CHECK_EQUAL(chdir("/tmp"), 0);
        body();
        _exit(0);
    }
    CHECK_EQUAL(sys_namespace_map_users(pid, &ids, 1), 0);
    CHECK_EQUAL(sys_namespace_map_groups(pid, &ids, 1), 0);
    CHECK_EQUAL(write(ends[1], "", 1), 1);
    CHECK_EQUAL(sys_process_wait(pidfd, 20000, &ended), 0);
    CHECK_EQUAL(ended.kind, SYS_EXIT_STATUS);
    CHECK_EQUAL(ended.value, 0);
}
