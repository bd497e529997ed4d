#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/number.h"
#include "launcher/disk/disk_pool_internal.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_loop.h"
#include "sys/mount/sys_mount_path.h"
#include "sys/process/sys_process.h"
#include "sys/process/sys_spawn.h"

#define UNFINISHED ".new"

/* A size that was not given: this part of what is free, the rest is the host's. */
#define DEFAULT_SIZE_PERCENT 80

/* Blocks of the loop device; a size that is no multiple would be cut. */
#define SIZE_STEP (1ULL << 20)

/* mkfs of a terabyte takes under a second; this is for a disk that hangs. */
#define MKFS_TIMEOUT_MS 120000

#define QUOTE(x)     #x
#define TEXT_OF(x)   QUOTE(x)
#define COMMIT_VALUE TEXT_OF(DISK_POOL_COMMIT_SECONDS)

int disk_pool_loop_exists(struct disk_pool *pool)
{
    static const char *const names[] = {SPARSE_NAME, ALLOCATED_NAME};

    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (faccessat(pool->folder, names[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return 1;
        if (errno != ENOENT)
            return -errno;
    }
    return 0;
}

static int choose_size(struct disk_pool *pool, const struct disk_pool_options *options,
                       uint64_t *ret_size, struct error *err)
{
    uint64_t size = options->size;
    struct statvfs status;

    if (size == 0) {
        if (fstatvfs(pool->folder, &status) < 0)
            return error_set(err, ERR_INTERNAL, errno, "look at the space for the disk pool");
        size = (uint64_t) status.f_bavail * status.f_frsize / 100 * DEFAULT_SIZE_PERCENT;
    }
    size = size / SIZE_STEP * SIZE_STEP;
    if (size < DISK_POOL_SIZE_MIN)
        return error_set(err, options->size ? ERR_INVALID : ERR_NO_SPACE, 0,
                         "the disk pool needs at least %llu MiB, not %" PRIu64 " MiB",
                         DISK_POOL_SIZE_MIN >> 20, size >> 20);
    *ret_size = size;
    return 0;
}

/* Reserved blocks cannot run out later, when it would hurt all sandboxes at once. */
static int set_size(int image, uint64_t size, bool is_sparse, struct error *err)
{
    int r;

    if (is_sparse)
        r = ftruncate(image, (off_t) size);
    else
        r = fallocate(image, 0, 0, (off_t) size);
    if (r < 0)
        return error_set(err, error_code_from_errno(errno), errno,
                         "give the file of the disk pool %" PRIu64 " MiB", size >> 20);
    return 0;
}

/* -K: no discard, which would punch holes into a file that was reserved on purpose. */
static int start_mkfs(const char *path)
{
    static const char *const programs[] = {"/usr/sbin/mkfs.btrfs", "/sbin/mkfs.btrfs",
                                           "/usr/bin/mkfs.btrfs"};
    const char *const arguments[] = {"mkfs.btrfs", "-q",          "-f", "-K",
                                     "-L",         "burrow-pool", path, NULL};
    int pidfd = -ENOENT;

    for (size_t i = 0; i < ARRAY_COUNT(programs) && pidfd == -ENOENT; i++) {
        struct sys_spawn how = {.path = programs[i], .arguments = arguments};

        pidfd = sys_spawn(&how, NULL);
    }
    return pidfd;
}

static int make_filesystem(const char *path, struct error *err)
{
    struct sys_exit ended = {.kind = SYS_EXIT_UNKNOWN};
    AUTO(close) int pidfd = start_mkfs(path);
    int r;

    if (pidfd == -ENOENT)
        return error_set(err, ERR_UNAVAILABLE, 0,
                         "mkfs.btrfs is missing: install the package btrfs-progs");
    if (pidfd < 0)
        return error_set(err, ERR_UNAVAILABLE, pidfd, "start mkfs.btrfs");
    /* One that went on would write into the file of the next attempt, which has the same name. */
    r = sys_process_wait_or_kill(pidfd, MKFS_TIMEOUT_MS, &ended);
    if (r < 0 || ended.kind != SYS_EXIT_STATUS || ended.value != 0)
        return error_set(err, ERR_UNAVAILABLE, r, "mkfs.btrfs failed (status %d) for '%s'",
                         ended.value, path);
    return 0;
}

static int fill_image(struct disk_pool *pool, const char *name,
                      const struct disk_pool_options *options, struct error *err)
{
    AUTO(close) int image = sys_file_open(pool->folder, name, O_RDWR | O_CREAT | O_EXCL, 0600);
    char path[PATH_MAX + 32];
    uint64_t size;
    int r;

    if (image < 0)
        return error_set(err, error_code_from_errno(image), image, "make '%s/%s'", pool->path,
                         name);
    if (choose_size(pool, options, &size, err) < 0)
        return -1;
    /* On btrfs: no copy on write beneath a filesystem that does its own. Elsewhere it fails. */
    (void) sys_btrfs_disable_copy(image);
    if (set_size(image, size, !options->allocate, err) < 0)
        return -1;
    (void) snprintf(path, sizeof(path), "%s/%s", pool->path, name);
    if (make_filesystem(path, err) < 0)
        return -1;
    r = sys_file_sync(image);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "write '%s'", path);
    return 0;
}

/* Under another name until it is complete: a crash leaves nothing that looks like a pool. */
static int make_image(struct disk_pool *pool, const struct disk_pool_options *options,
                      struct error *err)
{
    const char *name = options->allocate ? ALLOCATED_NAME : SPARSE_NAME;
    char unfinished[64];
    int r;

    (void) snprintf(unfinished, sizeof(unfinished), "%s" UNFINISHED, name);
    (void) unlinkat(pool->folder, unfinished, 0);
    if (fill_image(pool, unfinished, options, err) < 0) {
        (void) unlinkat(pool->folder, unfinished, 0);
        return -1;
    }
    r = renameat(pool->folder, unfinished, pool->folder, name) < 0 ? -errno : 0;
    if (r == 0)
        r = sys_file_sync_parent(pool->folder, name);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "finish '%s/%s'", pool->path, name);
    return 0;
}

/* The file, made when missing. */
static int open_image(struct disk_pool *pool, const struct disk_pool_options *options,
                      struct error *err)
{
    int image, exists = disk_pool_loop_exists(pool);

    if (exists == 0 && make_image(pool, options, err) < 0)
        return -1;
    pool->is_sparse = true;
    image = sys_file_open(pool->folder, SPARSE_NAME, O_RDWR | O_NOFOLLOW, 0);
    if (image == -ENOENT) {
        pool->is_sparse = false;
        image = sys_file_open(pool->folder, ALLOCATED_NAME, O_RDWR | O_NOFOLLOW, 0);
    }
    if (image < 0)
        return error_set(err, error_code_from_errno(image), image,
                         "open the file of the disk pool in '%s'", pool->path);
    if (pool->is_sparse && options->allocate)
        disk_pool_explain(pool, "the pool's file stays sparse, as it was made");
    return image;
}

static int grow_image(struct disk_pool *pool, int image, uint64_t size, struct error *err)
{
    struct stat status;

    if (fstat(image, &status) < 0)
        return error_set(err, ERR_INTERNAL, errno, "look at the file of the disk pool");
    size = size / SIZE_STEP * SIZE_STEP;
    if (size > (uint64_t) status.st_size)
        return set_size(image, size, pool->is_sparse, err);
    if (size && size < (uint64_t) status.st_size)
        disk_pool_explain(pool, "the pool keeps its size of %" PRIu64 " MiB: it only grows",
                          (uint64_t) status.st_size >> 20);
    return 0;
}

static int mount_device(struct disk_pool *pool, const char *device, struct error *err)
{
    /* Trimming a reserved file would give its reserve away. */
    struct sys_mount_option options[] = {
        {"commit", COMMIT_VALUE},
        {pool->is_sparse ? "discard" : "nodiscard", pool->is_sparse ? "async" : NULL},
        {NULL, NULL},
    };
    char place[PATH_MAX + 16];
    int r;

    (void) snprintf(place, sizeof(place), "%s/" STORE_NAME, pool->path);
    r = sys_mount_path_new("btrfs", device, place,
                           MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME, options);
    if (r == -ENODEV)
        return error_set(err, ERR_UNAVAILABLE, 0, "this kernel has no btrfs");
    if (r < 0)
        return error_set(err, ERR_UNAVAILABLE, r,
                         "mount the disk pool at '%s' (see the kernel's log; a pool with simple "
                         "quota needs Linux 6.7)",
                         place);
    return 0;
}

/* The filesystem follows when the file grew, now or before an opener that died. */
static int follow_size(struct disk_pool *pool, int image, int device, struct error *err)
{
    char place[PATH_MAX + 16];
    AUTO(close) int top = -EBADF;
    struct stat file;
    struct statvfs status;
    int r;

    (void) snprintf(place, sizeof(place), "%s/" STORE_NAME, pool->path);
    top = sys_file_open(AT_FDCWD, place, O_RDONLY | O_DIRECTORY, 0);
    if (top < 0 || fstat(image, &file) < 0 || fstatvfs(top, &status) < 0)
        return error_set(err, ERR_INTERNAL, errno, "look at the size of the disk pool");
    if ((uint64_t) status.f_blocks * status.f_frsize + SIZE_STEP > (uint64_t) file.st_size)
        return 0;
    r = sys_loop_grow(device);
    if (r == 0)
        r = sys_btrfs_grow(top);
    if (r < 0)
        return error_set(err, ERR_UNAVAILABLE, r, "let the disk pool grow");
    return 0;
}

int disk_pool_loop_mount(struct disk_pool *pool, const struct disk_pool_options *options,
                         bool is_mounted, struct error *err)
{
    AUTO(close) int image = open_image(pool, options, err), device = -EBADF;
    char path[SYS_LOOP_PATH_SIZE];

    if (image < 0 || grow_image(pool, image, options->size, err) < 0)
        return -1;
    /* Also attached when it is mounted in another mount namespace or by a sandbox that outlived
     * its launcher. A second device on the same file would destroy it. */
    device = sys_loop_find(image, path);
    pool->is_fresh = device == -ENOENT;
    if (device == -ENOENT && is_mounted)
        return error_set(err, ERR_CONFLICT, 0,
                         "'%s/" STORE_NAME "' is a mount of something else: unmount it",
                         pool->path);
    if (device == -ENOENT)
        device = sys_loop_attach(image, path);
    if (device < 0)
        return error_set(err, ERR_UNAVAILABLE, device,
                         "no loop device for the disk pool (is /dev/loop-control there?)");
    if (sys_loop_is_direct(device) == 0)
        disk_pool_explain(pool, "the loop device cannot go around the page cache here: writes take "
                                "twice the memory and time");
    if (!is_mounted && mount_device(pool, path, err) < 0)
        return -1;
    return follow_size(pool, image, device, err);
}
