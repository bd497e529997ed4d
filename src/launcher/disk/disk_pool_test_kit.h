/* For tests of the disk pool only. Everything happens in a child with private mounts: its tmpfs,
 * the pool on it and the pool's loop device all end with the child. */
#pragma once

#include <linux/magic.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include "launcher/disk/disk_pool.h"
#include "sys/sys_test.h"

#define NEEDS_POOL "btrfs on a loop device (root, mkfs.btrfs, kernel support)"

#define MEGABYTE (1ULL << 20)
/* A test that looks for its loop device among all of the machine chooses a name of its own. */
#ifndef POOL_PATH
#define POOL_PATH "/tmp/big/pool"
#endif

static const struct disk_pool_options small_pool = {
    .kind = DISK_POOL_LOOP, .size = 512 * MEGABYTE, .reserve = 16 * MEGABYTE};

/* Print what went wrong: the check alone would not say. */
#define CHECK_OK(call) check_ok((call), &test_error, #call, __FILE__, __LINE__)

static struct error test_error;

static inline void check_ok(int result, const struct error *err, const char *text, const char *file,
                            int line)
{
    if (result == 0)
        return;
    (void) fprintf(stderr, "%s:%d: %s: %s\n", file, line, text, err->message);
    _exit(1);
}

static inline void enter_pool_place(void)
{
    struct sys_mount_option options[] = {{"size", "2G"}, {NULL, NULL}};

    enter_private_mounts();
    CHECK_EQUAL(mkdir("/tmp/big", 0700), 0);
    CHECK_EQUAL(sys_mount_path_new("tmpfs", "tmpfs", "/tmp/big", 0, options), 0);
}

/* Open a pool, and leave with CHILD_UNABLE when this machine has no loop devices or no btrfs. */
static inline struct disk_pool *open_pool(const struct disk_pool_options *options)
{
    struct disk_pool *pool = NULL;

    if (disk_pool_open(POOL_PATH, options, &pool, &test_error) < 0) {
        (void) fprintf(stderr, "# %s\n", test_error.message);
        if (test_error.code == ERR_UNAVAILABLE)
            _exit(CHILD_UNABLE);
        _exit(1);
    }
    return pool;
}

static inline struct id make_disk(struct disk_pool *pool, uint64_t limit)
{
    struct id id = id_new();

    CHECK_OK(disk_pool_create(pool, &id, limit, &test_error));
    return id;
}

/* Write `bytes` bytes. Returns what was written before the errno. */
static inline uint64_t write_file(int directory, const char *path, uint64_t bytes, int *ret_errno)
{
    static char block[1 << 16];
    AUTO(close) int fd = openat(directory, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    uint64_t written = 0;

    *ret_errno = fd < 0 ? errno : 0;
    memset(block, 'x', sizeof(block));
    while (fd >= 0 && written < bytes) {
        ssize_t count =
            write(fd, block, bytes - written < sizeof(block) ? bytes - written : sizeof(block));

        if (count < 0) {
            *ret_errno = errno;
            break;
        }
        written += (uint64_t) count;
    }
    if (fd >= 0 && *ret_errno == 0 && fsync(fd) < 0)
        *ret_errno = errno;
    return written;
}
