/* For tests only: a btrfs filesystem to try things on. */
#pragma once

#include "sys/file/sys_loop.h"
#include "sys/process/sys_process.h"
#include "sys/process/sys_spawn.h"
#include "sys/sys_test.h"

#define NEEDS_BTRFS "btrfs on a loop device (root, mkfs.btrfs, kernel support)"

#define IMAGE_SIZE (256 << 20)

static inline void run_mkfs(const char *image)
{
    struct sys_spawn how = {
        .path = "/usr/sbin/mkfs.btrfs",
        .arguments = (const char *const[]){"mkfs.btrfs", "-q", image, NULL},
    };
    AUTO(close) int pidfd = sys_spawn(&how, NULL);
    struct sys_exit ended;

    if (pidfd == -ENOENT)
        _exit(CHILD_UNABLE);
    CHECK(pidfd >= 0);
    CHECK_EQUAL(sys_process_wait(pidfd, -1, &ended), 0);
    CHECK(ended.kind == SYS_EXIT_STATUS && ended.value == 0);
}

/* In a child: a fresh btrfs in a file on a private tmpfs; all of it ends with the child. Returns a
 * descriptor of its top. */
static inline int make_filesystem(void)
{
    struct sys_mount_option options[] = {{"size", "512M"}, {NULL, NULL}};
    char device_path[SYS_LOOP_PATH_SIZE];
    AUTO(close) int image = -EBADF, device = -EBADF;
    int top;

    enter_private_mounts();
    CHECK_EQUAL(mkdir("big", 0700), 0);
    CHECK_EQUAL(sys_mount_path_new("tmpfs", "tmpfs", "big", 0, options), 0);
    image = open("big/image", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(image >= 0);
    CHECK_EQUAL(ftruncate(image, IMAGE_SIZE), 0);
    run_mkfs("/tmp/big/image");
    device = sys_loop_attach(image, device_path);
    if (device < 0)
        _exit(CHILD_UNABLE);
    CHECK_EQUAL(mkdir("top", 0700), 0);
    if (sys_mount_path_new("btrfs", device_path, "top", MOUNT_ATTR_NOSUID, NULL) < 0)
        _exit(CHILD_UNABLE);
    top = open("top", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(top >= 0);
    return top;
}
