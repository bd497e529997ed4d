/* For tests of the launcher only: a sandbox's root as the executor builds it, in a child.
 *
 * The recipe (measured; other orders fail, some of them silently):
 *   1. outside: a user namespace with its id map; detached, idmapped copies of the lower layer and
 *      of the disk's folder (one mount, because overlay wants upper and work on the same)
 *   2. inside the user namespace, in a mount namespace of its own: attach both copies (overlay
 *      takes no detached layers there), then mount overlay with userxattr
 *   3. attach the image's further mounts in the new root, pivot into it */
#pragma once

#include <grp.h>
#include <signal.h>
#include <string.h>

#include "sys/process/sys_clone.h"
#include "sys/process/sys_namespace.h"
#include "sys/process/sys_process.h"
#include "sys/sys_test.h"

#define TEST_RANGE_FIRST 0x10000000
#define TEST_RANGE_COUNT 65536

#define NEEDS_ROOT "user namespaces, idmapped mounts and overlay (root, Linux 6.1)"

/* A user namespace where 0 is TEST_RANGE_FIRST, kept alive by the descriptor. */
static inline int make_test_user_namespace(void)
{
    static const struct sys_id_range ids[] = {{0, TEST_RANGE_FIRST, TEST_RANGE_COUNT}};
    int pidfd = -EBADF, namespace;
    struct sys_clone how = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD, .ret_pidfd = &pidfd};
    struct sys_exit ended;
    pid_t pid = sys_clone(&how);

    if (pid == 0) {
        for (;;)
            pause();
    }
    if (pid == -EPERM)
        _exit(CHILD_UNABLE);
    CHECK(pid > 0);
    CHECK_EQUAL(sys_namespace_map_users(pid, ids, 1), 0);
    CHECK_EQUAL(sys_namespace_map_groups(pid, ids, 1), 0);
    namespace = sys_namespace_open(pid, "user");
    CHECK(namespace >= 0);
    CHECK_EQUAL(sys_process_kill(pidfd, SIGKILL), 0);
    CHECK_EQUAL(sys_process_wait(pidfd, -1, &ended), 0);
    (void) fd_close(pidfd);
    return namespace;
}

/* A detached, read-only copy of a folder, with ids as in that user namespace. */
static inline int make_test_lower(int folder, int user_namespace)
{
    struct sys_mount_attributes readonly = {.set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
                                                   MOUNT_ATTR_NODEV};
    int mount = sys_mount_copy(folder, "", false);

    CHECK(mount >= 0);
    CHECK_EQUAL(sys_mount_set_id_map(mount, user_namespace), 0);
    CHECK_EQUAL(sys_mount_change(mount, "", &readonly), 0);
    return mount;
}

/* Become root of the user namespace, with a mount namespace of our own. Nobody with a second thread
 * may, and ThreadSanitizer has one. */
static inline void enter_test_user_namespace(int user_namespace)
{
#ifdef __SANITIZE_THREAD__
    _exit(CHILD_UNABLE);
#endif
    CHECK_EQUAL(sys_namespace_enter(user_namespace, CLONE_NEWUSER), 0);
    CHECK_EQUAL(setgroups(0, NULL), 0);
    CHECK_EQUAL(setresgid(0, 0, 0), 0);
    CHECK_EQUAL(setresuid(0, 0, 0), 0);
    CHECK_EQUAL(sys_namespace_unshare(CLONE_NEWNS), 0);
    CHECK_EQUAL(sys_mount_path_propagate("/", MS_SLAVE, true), 0);
}

/* In that namespace: the overlay of both mounts, at /tmp/root. */
static inline void mount_test_overlay(int lower, int disk)
{
    static const struct sys_mount_option options[] = {{"lowerdir", "/tmp/lower"},
                                                      {"upperdir", "/tmp/disk/u"},
                                                      {"workdir", "/tmp/disk/w"},
                                                      {"userxattr", NULL},
                                                      {NULL, NULL}};

    CHECK_EQUAL(sys_mount_path_new("tmpfs", "tmpfs", "/tmp", MOUNT_ATTR_NOSUID, NULL), 0);
    CHECK_EQUAL(mkdir("/tmp/lower", 0700), 0);
    CHECK_EQUAL(mkdir("/tmp/disk", 0700), 0);
    CHECK_EQUAL(mkdir("/tmp/root", 0700), 0);
    CHECK_EQUAL(sys_mount_attach(lower, AT_FDCWD, "/tmp/lower"), 0);
    CHECK_EQUAL(sys_mount_attach(disk, AT_FDCWD, "/tmp/disk"), 0);
    CHECK_EQUAL(sys_mount_path_new("overlay", "overlay", "/tmp/root", 0, options), 0);
}

/* Make it the root. */
static inline void pivot_test_root(void)
{
    CHECK_EQUAL(chdir("/tmp/root"), 0);
    CHECK_EQUAL(sys_mount_pivot_root(".", "."), 0);
    CHECK_EQUAL(sys_mount_unmount(".", SYS_UNMOUNT_DETACH), 0);
    CHECK_EQUAL(chdir("/"), 0);
}

/* Run `body` in a fork and insist on its success. */
static inline void run_forked(void (*body)(void *context), void *context)
{
    int status = 0;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        body(context);
        _exit(0);
    }
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_UNABLE)
        _exit(CHILD_UNABLE);
    CHECK(WIFEXITED(status));
    CHECK_EQUAL(WEXITSTATUS(status), 0);
}
