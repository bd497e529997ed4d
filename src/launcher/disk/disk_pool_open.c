#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/memory.h"
#include "launcher/disk/disk_pool_internal.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_lock.h"
#include "sys/file/sys_tree.h"
#include "sys/mount/sys_mount_path.h"

AUTO_DEFINE_PTR(closedir, DIR, (void) closedir);

static const char *const set_names[] = {
    [DISK_POOL_DISKS] = "disks", [DISK_POOL_SNAPSHOTS] = "snapshots"}; /* that have a place */

void disk_pool_explain(struct disk_pool *pool, const char *format, ...)
{
    size_t used = strlen(pool->reason);
    va_list arguments;

    if (used > 0)
        used += (size_t) snprintf(pool->reason + used, sizeof(pool->reason) - used, "; ");
    if (used >= sizeof(pool->reason))
        return;
    va_start(arguments, format);
    (void) vsnprintf(pool->reason + used, sizeof(pool->reason) - used, format, arguments);
    va_end(arguments);
}

int disk_pool_lock(struct disk_pool *pool)
{
    AUTO(close) int fd = sys_file_open(pool->folder, "lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    int r;

    if (fd < 0)
        return fd;
    r = sys_lock_take(fd, SYS_LOCK_EXCLUSIVE, DISK_POOL_LOCK_MS);
    return r < 0 ? r : TAKE_FD(fd);
}

static struct disk_pool *pool_new(const char *path, const struct disk_pool_options *options)
{
    struct disk_pool *pool = mem_alloc(sizeof(*pool));

    pool->folder = pool->store = pool->trash = pool->unfinished = pool->left = -EBADF;
    pool->layers = -EBADF;
    for (size_t i = 0; i < DISK_POOL_SET_COUNT; i++)
        pool->sets[i] = -EBADF;
    pool->reserve = options->reserve ? options->reserve : DISK_POOL_RESERVE;
    (void) snprintf(pool->path, sizeof(pool->path), "%s", path);
    return pool;
}

static void close_store(struct disk_pool *pool)
{
    disk_pool_close_unfinished(pool);
    pool->unfinished = fd_close(pool->unfinished);
    pool->left = fd_close(pool->left);
    pool->trash = fd_close(pool->trash);
    pool->layers = fd_close(pool->layers);
    pool->sets[DISK_POOL_DISKS] = fd_close(pool->sets[DISK_POOL_DISKS]);
    pool->sets[DISK_POOL_SNAPSHOTS] = fd_close(pool->sets[DISK_POOL_SNAPSHOTS]);
    pool->store = fd_close(pool->store);
}

void disk_pool_free(struct disk_pool *pool)
{
    if (!pool)
        return;
    close_store(pool);
    pool->folder = fd_close(pool->folder);
    free(pool);
}

/* The folder is what keeps users of the host away from the files of sandboxes. */
static int open_folder(struct disk_pool *pool, struct error *err)
{
    struct stat status;
    int r = sys_file_make_directories(AT_FDCWD, pool->path, 0700);

    if (r == 0)
        r = pool->folder = sys_file_open(AT_FDCWD, pool->path, O_RDONLY | O_DIRECTORY, 0);
    if (r >= 0)
        r = fstat(pool->folder, &status) < 0 ? -errno : 0;
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "open the disk pool '%s'", pool->path);
    if (status.st_uid != geteuid())
        return error_set(err, ERR_FORBIDDEN, 0, "the disk pool '%s' belongs to another user",
                         pool->path);
    if (fchmod(pool->folder, 0700) < 0 ||
        (mkdirat(pool->folder, STORE_NAME, 0700) < 0 && errno != EEXIST))
        return error_set(err, error_code_from_errno(errno), errno, "prepare the disk pool '%s'",
                         pool->path);
    return 0;
}

/* What is there already. */
struct facts {
    bool is_mounted; /* something is mounted at the store */
    bool is_loop;    /* there is a filesystem in a file */
    bool has_disks;  /* the store holds disks or snapshots without that file */
    bool is_btrfs;   /* the folder lies on btrfs */
    bool has_quota;  /* ... where quota is on */
};

static bool has_entries(int directory, const char *name)
{
    int fd = sys_file_open(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    AUTO(closedir) DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    int count = 0;

    if (!entries) {
        (void) fd_close(fd);
        return false;
    }
    /* The first two are the folder itself and the one above. */
    while (count < 3 && readdir(entries))
        count++;
    return count > 2;
}

static int look(struct disk_pool *pool, struct facts *ret_facts, struct error *err)
{
    struct facts facts = {.is_mounted = false};
    struct statx status;
    struct statfs filesystem;
    int r = disk_pool_loop_exists(pool);

    if (r < 0 || statx(pool->folder, STORE_NAME, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &status) < 0 ||
        fstatfs(pool->folder, &filesystem) < 0)
        return error_set(err, ERR_INTERNAL, r < 0 ? r : errno, "look at the disk pool '%s'",
                         pool->path);
    facts.is_loop = r;
    facts.is_mounted = status.stx_attributes & STATX_ATTR_MOUNT_ROOT;
    facts.has_disks = !facts.is_loop && (has_entries(pool->folder, STORE_NAME "/disks") ||
                                         has_entries(pool->folder, STORE_NAME "/snapshots"));
    facts.is_btrfs = filesystem.f_type == BTRFS_SUPER_MAGIC;
    facts.has_quota = facts.is_btrfs && sys_btrfs_quota(pool->folder) > SYS_BTRFS_QUOTA_OFF;
    *ret_facts = facts;
    return 0;
}

/* What is there wins over what is asked for. */
static enum disk_pool_kind choose_kind(enum disk_pool_kind wanted, const struct facts *facts)
{
    if (facts->is_loop)
        return DISK_POOL_LOOP;
    if (facts->has_disks || facts->is_mounted)
        return facts->is_btrfs ? DISK_POOL_FOLDER : DISK_POOL_PLAIN;
    if (wanted != DISK_POOL_AUTO)
        return wanted;
    return facts->has_quota ? DISK_POOL_FOLDER : DISK_POOL_LOOP;
}

/* A mount of the folder on itself: nosuid and nodev also without a filesystem of our own. */
static int bind_store(struct disk_pool *pool, bool is_mounted, struct error *err)
{
    char place[PATH_MAX + 16];
    int r;

    if (is_mounted)
        return 0;
    (void) snprintf(place, sizeof(place), "%s/" STORE_NAME, pool->path);
    r = sys_mount_path_bind(place, place, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME,
                            false);
    if (r < 0)
        return error_set(err, ERR_UNAVAILABLE, r, "mount the disk pool at '%s'", place);
    return 0;
}

static int open_set(struct disk_pool *pool, const char *name, int *ret_fd, struct error *err)
{
    int fd;

    if (mkdirat(pool->store, name, 0700) < 0 && errno != EEXIST)
        return error_set(err, error_code_from_errno(errno), errno, "make '%s' in the disk pool",
                         name);
    fd = sys_file_open(pool->store, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (fd < 0)
        return error_set(err, error_code_from_errno(fd), fd, "open '%s' in the disk pool", name);
    *ret_fd = fd;
    return 0;
}

static int open_store(struct disk_pool *pool, struct error *err)
{
    pool->store = sys_file_open(pool->folder, STORE_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (pool->store < 0)
        return error_set(err, error_code_from_errno(pool->store), pool->store,
                         "open the store of the disk pool");
    for (size_t i = 0; i < ARRAY_COUNT(set_names); i++) {
        if (open_set(pool, set_names[i], &pool->sets[i], err) < 0)
            return -1;
    }
    if (open_set(pool, DISK_UNFINISHED, &pool->unfinished, err) < 0 ||
        open_set(pool, "layers", &pool->layers, err) < 0)
        return -1;
    return open_set(pool, "trash", &pool->trash, err);
}

/* Limits are worth a warning when they fail, not a pool that does not open. */
static void start_quota(struct disk_pool *pool, bool may_enable)
{
    int quota = sys_btrfs_quota(pool->store), r = 0;

    if (quota == SYS_BTRFS_QUOTA_OFF && may_enable) {
        r = sys_btrfs_enable_quota(pool->store, SYS_BTRFS_QUOTA_SIMPLE);
        if (r < 0)
            r = sys_btrfs_enable_quota(pool->store, SYS_BTRFS_QUOTA_GROUPS);
        quota = sys_btrfs_quota(pool->store);
    }
    if (quota > SYS_BTRFS_QUOTA_OFF)
        pool->quota = (enum sys_btrfs_quota) quota;
    else if (may_enable)
        disk_pool_explain(pool, "disk limits are off: quota cannot be turned on (%s)",
                          strerror(-(quota < 0 ? quota : r)));
    else
        disk_pool_explain(pool,
                          "disk limits are off: quota is off on the btrfs that holds '%s' (turn it "
                          "on with: btrfs quota enable '%s')",
                          pool->path, pool->path);
}

/* Empty disks that earlier versions kept for later sandboxes. */
static void drop_spares(struct disk_pool *pool)
{
    if (disk_pool_throw_away(pool, pool->store, "spares") == 0)
        (void) disk_pool_empty_trash(pool, NULL);
}

static int open_loop(struct disk_pool *pool, const struct disk_pool_options *options,
                     const struct facts *facts, struct error *err)
{
    if (disk_pool_loop_mount(pool, options, facts->is_mounted, err) < 0 ||
        open_store(pool, err) < 0)
        return -1;
    drop_spares(pool);
    start_quota(pool, true);
    /* With others at work it may be theirs. */
    return pool->is_fresh ? disk_pool_empty_trash(pool, err) : 0;
}

static int open_btrfs_folder(struct disk_pool *pool, const struct disk_pool_options *options,
                             const struct facts *facts, struct error *err)
{
    if (!facts->is_btrfs)
        return error_set(err, ERR_UNAVAILABLE, 0, "'%s' does not lie on btrfs", pool->path);
    if (bind_store(pool, facts->is_mounted, err) < 0 || open_store(pool, err) < 0)
        return -1;
    /* Simple quota marks the host's filesystem for good: only when that was asked for. */
    drop_spares(pool);
    start_quota(pool, options->kind == DISK_POOL_FOLDER);
    return 0;
}

static int open_plain(struct disk_pool *pool, const struct facts *facts, const char *why,
                      struct error *err)
{
    pool->kind = DISK_POOL_PLAIN;
    if (bind_store(pool, facts->is_mounted, err) < 0 || open_store(pool, err) < 0)
        return -1;
    disk_pool_explain(pool, "disk limits are off, and disks in use are copied file by file: %s",
                      why);
    return 0;
}

static int open_kind(struct disk_pool *pool, const struct disk_pool_options *options,
                     const struct facts *facts, struct error *err)
{
    pool->kind = choose_kind(options->kind, facts);
    if (pool->kind == DISK_POOL_FOLDER)
        return open_btrfs_folder(pool, options, facts, err);
    if (pool->kind == DISK_POOL_PLAIN && options->kind == DISK_POOL_PLAIN)
        return open_plain(pool, facts, "the plain kind of pool was asked for", err);
    if (pool->kind == DISK_POOL_PLAIN)
        return open_plain(pool, facts,
                          "the pool is in use as plain folders; when all its disks are gone and "
                          "nobody has it open, another kind is tried again",
                          err);
    if (open_loop(pool, options, facts, err) == 0)
        return 0;
    if (options->kind != DISK_POOL_AUTO || facts->is_loop || err->code != ERR_UNAVAILABLE)
        return -1;
    return 1;
}

/* Nothing of a pool that did not come to be may decide over the next attempt. */
static void forget_loop(struct disk_pool *pool)
{
    char place[PATH_MAX + 16];

    close_store(pool);
    (void) snprintf(place, sizeof(place), "%s/" STORE_NAME, pool->path);
    (void) sys_mount_unmount(place, SYS_UNMOUNT_NOFOLLOW);
    (void) unlinkat(pool->folder, SPARSE_NAME, 0);
    (void) unlinkat(pool->folder, ALLOCATED_NAME, 0);
    pool->is_sparse = false;
    pool->reason[0] = '\0';
}

int disk_pool_open(const char *path, const struct disk_pool_options *options,
                   struct disk_pool **ret_pool, struct error *err)
{
    AUTO(disk_pool) struct disk_pool *pool = NULL;
    AUTO(close) int lock = -EBADF;
    struct error own = ERROR_INIT, first;
    struct facts facts;
    int r;

    if (path[0] != '/' || strlen(path) >= sizeof(pool->path))
        return error_set(err, ERR_INVALID, 0, "the path of the disk pool must be absolute");
    pool = pool_new(path, options);
    if (open_folder(pool, err) < 0)
        return -1;
    lock = disk_pool_lock(pool);
    if (lock < 0)
        return error_set(err, ERR_UNAVAILABLE, lock, "wait for the lock of the disk pool '%s'",
                         path);
    if (look(pool, &facts, err) < 0)
        return -1;
    pool->is_fresh = !facts.is_mounted;
    r = open_kind(pool, options, &facts, &own);
    if (r > 0) {
        forget_loop(pool);
        first = own;
        r = open_plain(pool, &facts, first.message, &own);
    }
    if (r < 0) {
        if (err)
            *err = own;
        return -1;
    }
    disk_pool_open_unfinished(pool);
    *ret_pool = TAKE_PTR(pool);
    return 0;
}

int disk_pool_unmount(struct disk_pool *pool, struct error *err)
{
    AUTO(disk_pool) struct disk_pool *own = pool;
    AUTO(close) int lock = disk_pool_lock(own);
    char place[PATH_MAX + 16];
    int r;

    if (lock < 0)
        return error_set(err, ERR_UNAVAILABLE, lock, "wait for the lock of the disk pool");
    close_store(own);
    (void) snprintf(place, sizeof(place), "%s/" STORE_NAME, own->path);
    r = sys_mount_unmount(place, SYS_UNMOUNT_NOFOLLOW);
    /* Busy: others have it open. Invalid: one of them was quicker. */
    if (r < 0 && r != -EBUSY && r != -EINVAL)
        return error_set(err, ERR_INTERNAL, r, "unmount the disk pool at '%s'", place);
    return 0;
}
