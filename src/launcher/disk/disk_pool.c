#include "launcher/disk/disk_pool.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/memory.h"
#include "launcher/disk/disk_pool_internal.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_tree.h"
#include "sys/mount/sys_mount.h"

/* The first number of a subvolume; below are the filesystem's own trees. */
#define FIRST_RECORD 256

AUTO_DEFINE_PTR(closedir, DIR, (void) closedir);

static const char *const kind_texts[] = {
    [DISK_POOL_AUTO] = "auto",
    [DISK_POOL_LOOP] = "loop",
    [DISK_POOL_FOLDER] = "folder",
    [DISK_POOL_PLAIN] = "plain",
};

static const char *const quota_texts[] = {
    [SYS_BTRFS_QUOTA_OFF] = "none",
    [SYS_BTRFS_QUOTA_GROUPS] = "qgroups",
    [SYS_BTRFS_QUOTA_SIMPLE] = "simple quota",
};

const char *const disk_pool_set_nouns[] = {
    [DISK_POOL_DISKS] = "disk",
    [DISK_POOL_SNAPSHOTS] = "snapshot",
    [DISK_POOL_UNFINISHED] = "unfinished disk",
};

enum disk_pool_kind disk_pool_kind(const struct disk_pool *pool)
{
    return pool->kind;
}

const char *disk_pool_kind_text(enum disk_pool_kind kind)
{
    return kind_texts[kind];
}

bool disk_pool_is_limited(const struct disk_pool *pool)
{
    return pool->quota != SYS_BTRFS_QUOTA_OFF;
}

const char *disk_pool_quota_text(const struct disk_pool *pool)
{
    return quota_texts[pool->quota];
}

const char *disk_pool_reason(const struct disk_pool *pool)
{
    return pool->reason;
}

/* Every name that reaches the kernel passes here. */
int disk_pool_check_id(const struct id *id, struct error *err)
{
    if (memchr(id->text, '\0', sizeof(id->text)) && id_is_valid(id->text))
        return 0;
    return error_set(err, ERR_INVALID, 0, "not an id");
}

int disk_pool_check_limit(uint64_t limit, struct error *err)
{
    if (limit == 0 || limit >= DISK_LIMIT_MIN)
        return 0;
    return error_set(err, ERR_INVALID, 0, "a disk needs at least %llu MiB, not %" PRIu64 " bytes",
                     DISK_LIMIT_MIN >> 20, limit);
}

static int fail(struct error *err, int system, const char *what, const struct id *id)
{
    return error_set(err, error_code_from_errno(system), system, "%s %s", what, id->text);
}

int disk_pool_space(struct disk_pool *pool, struct disk_pool_space *ret_space, struct error *err)
{
    struct statvfs status, beneath;

    if (fstatvfs(pool->store, &status) < 0 || fstatvfs(pool->folder, &beneath) < 0)
        return error_set(err, ERR_INTERNAL, errno, "look at the space of the disk pool");
    ret_space->size = (uint64_t) status.f_blocks * status.f_frsize;
    ret_space->free = (uint64_t) status.f_bavail * status.f_frsize;
    ret_space->beneath_free = (uint64_t) beneath.f_bavail * beneath.f_frsize;
    ret_space->is_read_only = status.f_flag & ST_RDONLY;
    return 0;
}

/* A full pool hurts all its sandboxes, so the new ones have to wait. */
int disk_pool_check_space(struct disk_pool *pool, struct error *err)
{
    struct disk_pool_space space;
    uint64_t inside = pool->reserve;

    if (disk_pool_space(pool, &space, err) < 0)
        return -1;
    if (space.is_read_only)
        return error_set(err, ERR_UNAVAILABLE, 0,
                         "the disk pool is read-only: the kernel's log says why");
    if (inside == DISK_POOL_RESERVE && inside > space.size / DISK_POOL_RESERVE_PART)
        inside = space.size / DISK_POOL_RESERVE_PART;
    if (space.free < inside)
        return error_set(err, ERR_NO_SPACE, 0,
                         "the disk pool has only %" PRIu64 " MiB of %" PRIu64 " MiB left",
                         space.free >> 20, space.size >> 20);
    if (pool->is_sparse && space.beneath_free < pool->reserve)
        return error_set(err, ERR_NO_SPACE, 0,
                         "the filesystem beneath the disk pool has only %" PRIu64 " MiB left",
                         space.beneath_free >> 20);
    return 0;
}

/* Of a folder in `folder`, or ("") of that itself. A look first: it costs an eighth of what btrfs
 * takes to note a change that is none. */
static int set_mode(int folder, const char *name, mode_t mode)
{
    struct stat status;
    int r;

    if (fstatat(folder, name, &status, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if ((status.st_mode & ALLPERMS) == mode)
        return 0;
    r = *name ? fchmodat(folder, name, mode, 0) : fchmod(folder, mode);
    return r < 0 ? -errno : 0;
}

/* The modes are set apart from mkdir because of the umask. */
static int make_part(int folder, const char *name, mode_t mode)
{
    if (mkdirat(folder, name, mode) < 0 && errno != EEXIST)
        return -errno;
    return set_mode(folder, name, mode);
}

/* What a disk has to hold; also completes one whose making was interrupted. */
int disk_pool_make_parts(int folder)
{
    int r = set_mode(folder, "", 0755);

    if (r == 0)
        r = make_part(folder, DISK_UPPER, 0755);
    if (r == 0)
        r = make_part(folder, DISK_WORK, 0700);
    return r;
}

void disk_pool_entry_path(const struct disk_pool *pool, enum disk_pool_set set, const struct id *id,
                          char ret_path[static DISK_ENTRY_SIZE])
{
    bool is_wrapped = set == DISK_POOL_SNAPSHOTS && pool->kind != DISK_POOL_PLAIN;

    (void) snprintf(ret_path, DISK_ENTRY_SIZE, "%s%s", id->text,
                    is_wrapped ? "/" DISK_COPY_NAME : "");
}

int disk_pool_open_entry(struct disk_pool *pool, enum disk_pool_set set, const struct id *id)
{
    char path[DISK_ENTRY_SIZE];

    disk_pool_entry_path(pool, set, id, path);
    return sys_file_open(pool->sets[set], path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

static int make_folder(struct disk_pool *pool, const struct id *sandbox, uint64_t limit)
{
    int disks = pool->sets[DISK_POOL_DISKS];

    if (pool->kind != DISK_POOL_PLAIN)
        return sys_btrfs_create(disks, sandbox->text, disk_pool_is_limited(pool) ? limit : 0);
    return mkdirat(disks, sandbox->text, 0755) < 0 ? -errno : 0;
}

int disk_pool_create(struct disk_pool *pool, const struct id *sandbox, uint64_t limit,
                     struct error *err)
{
    AUTO(close) int folder = -EBADF;
    int r;

    if (disk_pool_check_id(sandbox, err) < 0 || disk_pool_check_limit(limit, err) < 0 ||
        disk_pool_check_space(pool, err) < 0)
        return -1;
    r = make_folder(pool, sandbox, limit);
    if (r < 0)
        return fail(err, r, "make disk", sandbox);
    r = folder = disk_pool_open_entry(pool, DISK_POOL_DISKS, sandbox);
    if (r >= 0)
        r = disk_pool_make_parts(folder);
    if (r < 0) {
        (void) disk_pool_delete(pool, sandbox, NULL);
        return fail(err, r, "make disk", sandbox);
    }
    return 0;
}

int disk_pool_adopt(struct disk_pool *pool, const struct id *sandbox, struct error *err)
{
    AUTO(close) int folder = -EBADF;
    int r;

    if (disk_pool_check_id(sandbox, err) < 0)
        return -1;
    r = folder = disk_pool_open_entry(pool, DISK_POOL_DISKS, sandbox);
    if (r >= 0)
        r = disk_pool_make_parts(folder);
    return r < 0 ? fail(err, r, "find disk", sandbox) : 0;
}

void disk_done(struct disk *disk)
{
    disk->upper = fd_close(disk->upper);
    disk->work = fd_close(disk->work);
    disk->folder = fd_close(disk->folder);
}

int disk_pool_open_disk(struct disk_pool *pool, const struct id *sandbox, struct disk *ret_disk,
                        struct error *err)
{
    AUTO(disk) struct disk disk = DISK_INIT;
    int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW;
    int r;

    if (disk_pool_check_id(sandbox, err) < 0)
        return -1;
    r = disk.folder = disk_pool_open_entry(pool, DISK_POOL_DISKS, sandbox);
    if (r >= 0)
        r = disk.upper = sys_file_open(disk.folder, DISK_UPPER, flags, 0);
    if (r >= 0)
        r = disk.work = sys_file_open(disk.folder, DISK_WORK, flags, 0);
    if (r < 0)
        return fail(err, r, "open disk", sandbox);
    *ret_disk = (struct disk){
        .folder = TAKE_FD(disk.folder), .upper = TAKE_FD(disk.upper), .work = TAKE_FD(disk.work)};
    return 0;
}

int disk_pool_mount_disk(struct disk_pool *pool, enum disk_pool_set set, const struct id *id,
                         const char *part, int user_namespace, int *ret_mount, struct error *err)
{
    AUTO(close) int mount = -EBADF;
    char path[DISK_ENTRY_SIZE + sizeof("/" DISK_UPPER)];
    int r;

    if (disk_pool_check_id(id, err) < 0)
        return -1;
    disk_pool_entry_path(pool, set, id, path);
    if (part)
        (void) snprintf(path + strlen(path), sizeof(path) - strlen(path), "/%s", part);
    r = mount = sys_mount_copy(pool->sets[set], path, false);
    if (r >= 0)
        r = sys_mount_set_id_map(mount, user_namespace);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "mount %s %s", disk_pool_set_nouns[set],
                         id->text);
    *ret_mount = TAKE_FD(mount);
    return 0;
}

/* The number under which a disk is counted. */
static int find_record(struct disk_pool *pool, enum disk_pool_set set, const struct id *id,
                       uint64_t *ret_number, struct error *err)
{
    struct sys_btrfs_subvolume subvolume;
    AUTO(close) int folder = -EBADF;
    int r;

    if (disk_pool_check_id(id, err) < 0)
        return -1;
    r = folder = disk_pool_open_entry(pool, set, id);
    /* Whether it is there can be told of every pool. */
    if (r >= 0 && !disk_pool_is_limited(pool))
        return error_set(err, ERR_NOT_IMPLEMENTED, 0, "this pool counts nothing: %s", pool->reason);
    if (r >= 0)
        r = sys_btrfs_inspect(folder, &subvolume);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "find %s %s", disk_pool_set_nouns[set],
                         id->text);
    *ret_number = subvolume.number;
    return 0;
}

int disk_pool_usage(struct disk_pool *pool, enum disk_pool_set set, const struct id *id,
                    struct disk_usage *ret_usage, struct error *err)
{
    struct sys_btrfs_usage usage;
    uint64_t number;
    int r;

    if (find_record(pool, set, id, &number, err) < 0)
        return -1;
    r = sys_btrfs_usage(pool->store, number, &usage);
    /* The disk is there, so its record is only not written yet. */
    if (r == -ENOENT)
        usage = (struct sys_btrfs_usage){.used = 0};
    else if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "count the bytes of %s %s",
                         disk_pool_set_nouns[set], id->text);
    *ret_usage = (struct disk_usage){.used = usage.used, .limit = usage.limit};
    return 0;
}

int disk_pool_set_limit(struct disk_pool *pool, const struct id *sandbox, uint64_t limit,
                        struct error *err)
{
    uint64_t number;
    int r;

    if (disk_pool_check_limit(limit, err) < 0 ||
        find_record(pool, DISK_POOL_DISKS, sandbox, &number, err) < 0)
        return -1;
    r = sys_btrfs_set_limit(pool->store, number, limit);
    return r < 0 ? fail(err, r, "limit disk", sandbox) : 0;
}

/* A plain folder is only put aside. The random name lets an id be used, and deleted, again. */
int disk_pool_throw_away(struct disk_pool *pool, int folder, const char *name)
{
    char new_name[SYS_FILE_NAME_SIZE];
    int r = sys_file_temporary_name(new_name);

    if (r < 0)
        return r;
    if (renameat(folder, name, pool->trash, new_name) < 0)
        return -errno;
    return 0;
}

int disk_pool_delete(struct disk_pool *pool, const struct id *sandbox, struct error *err)
{
    int r;

    if (disk_pool_check_id(sandbox, err) < 0)
        return -1;
    if (pool->kind == DISK_POOL_PLAIN)
        r = disk_pool_throw_away(pool, pool->sets[DISK_POOL_DISKS], sandbox->text);
    else
        r = sys_btrfs_delete(pool->sets[DISK_POOL_DISKS], sandbox->text);
    return r < 0 ? fail(err, r, "delete disk", sandbox) : 0;
}

bool disk_pool_has(const struct disk_pool *pool, enum disk_pool_set set, const struct id *id)
{
    return faccessat(pool->sets[set], id->text, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A second descriptor with a position of its own. */
static DIR *read_set(struct disk_pool *pool, enum disk_pool_set set)
{
    int fd = sys_file_open(pool->sets[set], ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);

    if (!entries)
        (void) fd_close(fd);
    return entries;
}

int disk_pool_list(struct disk_pool *pool, enum disk_pool_set set, struct id **ret_ids,
                   size_t *ret_count, struct error *err)
{
    AUTO(closedir) DIR *entries = read_set(pool, set);
    AUTO(free) struct id *ids = NULL;
    size_t count = 0, room = 0;
    struct dirent *entry;

    if (!entries)
        return error_set(err, ERR_INTERNAL, errno, "list the %ss of the pool",
                         disk_pool_set_nouns[set]);
    while ((entry = readdir(entries))) {
        if (!id_is_valid(entry->d_name))
            continue;
        if (count == DISK_POOL_DISKS_MAX)
            return error_set(err, ERR_TOO_LARGE, 0, "the pool has more than %d %ss",
                             DISK_POOL_DISKS_MAX, disk_pool_set_nouns[set]);
        if (count == room) {
            room = room ? room * 2 : 64;
            ids = mem_resize(ids, room * sizeof(*ids));
        }
        memcpy(ids[count++].text, entry->d_name, ID_SIZE);
    }
    *ret_ids = TAKE_PTR(ids);
    *ret_count = count;
    return 0;
}

int disk_pool_trim(struct disk_pool *pool, uint64_t *ret_bytes, struct error *err)
{
    int r;

    *ret_bytes = 0;
    if (!pool->is_sparse)
        return 0;
    r = sys_btrfs_trim(pool->store, ret_bytes);
    return r < 0 ? error_set(err, error_code_from_errno(r), r, "trim the disk pool") : 0;
}

/* A commit in between: the kernel may still have to count blocks that the dead ones gave back, and
 * without a record to count them in it turns the whole pool read-only. Busy: others still share
 * blocks that the dead one wrote first. */
static unsigned int drop_dead(struct disk_pool *pool, const uint64_t *numbers, size_t count)
{
    unsigned int dropped = 0;

    if (count == 0 || sys_btrfs_sync(pool->store) < 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        dropped += sys_btrfs_drop_record(pool->store, numbers[i]) == 0;
    return dropped;
}

int disk_pool_clean(struct disk_pool *pool, unsigned int count, unsigned int *ret_dropped,
                    struct error *err)
{
    uint64_t dead[DISK_POOL_CLEAN_MAX];
    size_t dead_count = 0;

    *ret_dropped = 0;
    if (count > DISK_POOL_CLEAN_MAX)
        count = DISK_POOL_CLEAN_MAX;
    for (unsigned int i = 0; disk_pool_is_limited(pool) && i < count; i++) {
        uint64_t number = pool->clean_from < FIRST_RECORD ? FIRST_RECORD : pool->clean_from;
        int r = sys_btrfs_next_record(pool->store, number, &number);

        pool->clean_from = r < 0 ? 0 : number + 1;
        if (r == -ENOENT)
            break;
        if (r < 0)
            return error_set(err, error_code_from_errno(r), r, "clean the disk pool");
        if (sys_btrfs_has_subvolume(pool->store, number) == 0)
            dead[dead_count++] = number;
    }
    *ret_dropped = drop_dead(pool, dead, dead_count);
    return 0;
}

/* What cannot be dropped as a subvolume is a tree of a plain pool. */
int disk_pool_empty_trash(struct disk_pool *pool, struct error *err)
{
    int fd = sys_file_open(pool->trash, ".", O_RDONLY | O_DIRECTORY, 0), r = 0;
    AUTO(closedir) DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!entries) {
        (void) fd_close(fd);
        return error_set(err, ERR_INTERNAL, fd < 0 ? fd : errno, "open the trash of the disk pool");
    }
    disk_pool_collect(pool);
    while (r == 0 && (entry = readdir(entries))) {
        if (entry->d_name[0] == '.' && strlen(entry->d_name) < 3)
            continue;
        if (pool->kind == DISK_POOL_PLAIN || sys_btrfs_delete(pool->trash, entry->d_name) < 0)
            r = sys_tree_delete(pool->trash, entry->d_name);
    }
    return r < 0 ? error_set(err, error_code_from_errno(r), r, "empty the trash of the pool") : 0;
}
