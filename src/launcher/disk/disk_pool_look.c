#include "launcher/disk/disk_pool_look.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/memory.h"
#include "launcher/disk/disk_pool_internal.h"
#include "launcher/launcher_look.h"
#include "sys/file/sys_file.h"

#define FILESYSTEMS_MAX 65536

static void __attribute__((format(printf, 2, 3)))
explain(struct disk_pool_look *look, const char *format, ...)
{
    size_t used = strlen(look->reason);
    va_list arguments;

    if (used > 0)
        used += (size_t) snprintf(look->reason + used, sizeof(look->reason) - used, "; ");
    if (used >= sizeof(look->reason))
        return;
    va_start(arguments, format);
    (void) vsnprintf(look->reason + used, sizeof(look->reason) - used, format, arguments);
    va_end(arguments);
}

/* The nearest folder above `path` that is there, O_RDONLY, or -errno. */
static int open_above(const char *path)
{
    AUTO(free) char *at = mem_copy_text(path);

    for (;;) {
        int fd = sys_file_open(AT_FDCWD, *at ? at : "/", O_RDONLY | O_DIRECTORY, 0);
        char *slash = strrchr(at, '/');

        if (fd != -ENOENT || !slash)
            return fd;
        *slash = '\0';
    }
}

static bool is_btrfs(int folder)
{
    struct statfs filesystem;

    return fstatfs(folder, &filesystem) == 0 && filesystem.f_type == BTRFS_SUPER_MAGIC;
}

static void look_at_quota(int folder, struct disk_pool_look *look)
{
    static const char *const texts[] = {[SYS_BTRFS_QUOTA_OFF] = "none",
                                        [SYS_BTRFS_QUOTA_GROUPS] = "qgroups",
                                        [SYS_BTRFS_QUOTA_SIMPLE] = "simple quota"};
    int quota = sys_btrfs_quota(folder);

    look->is_limited = quota > SYS_BTRFS_QUOTA_OFF;
    look->quota = quota >= 0 ? texts[quota] : "none";
}

/* --- a pool that is not there yet ----------------------------------------------------------- */

static bool kernel_has_btrfs(const char *proc)
{
    AUTO(free) char *text = NULL;
    char path[PATH_MAX];
    size_t length;

    (void) snprintf(path, sizeof(path), "%s/filesystems", proc);
    return sys_file_read_all(AT_FDCWD, path, FILESYSTEMS_MAX, &text, &length) == 0 &&
           strstr(text, "\tbtrfs\n");
}

static bool has_loop(const char *dev)
{
    char path[PATH_MAX];

    (void) snprintf(path, sizeof(path), "%s/loop-control", dev);
    return access(path, R_OK | W_OK) == 0;
}

static bool has_mkfs(void)
{
    static const char *const programs[] = {"/usr/sbin/mkfs.btrfs", "/sbin/mkfs.btrfs",
                                           "/usr/bin/mkfs.btrfs"};

    for (size_t i = 0; i < ARRAY_COUNT(programs); i++) {
        if (access(programs[i], X_OK) == 0)
            return true;
    }
    return false;
}

/* A module that is not loaded yet would be loaded by the mount, so that part is a guess. */
static bool can_make_loop(struct disk_pool_look *look)
{
    bool can = look->has_loop && look->has_mkfs;

    if (!look->has_loop)
        explain(look, "there are no loop devices here");
    if (!look->has_mkfs)
        explain(look, "mkfs.btrfs is missing: install the package btrfs-progs");
    if (look->space.beneath_free < DISK_POOL_SIZE_MIN) {
        explain(look, "less than %llu MiB are free there", DISK_POOL_SIZE_MIN >> 20);
        can = false;
    }
    return can;
}

static void foresee(int above, struct disk_pool_look *look)
{
    look->quota = "";
    if (is_btrfs(above) && sys_btrfs_quota(above) > SYS_BTRFS_QUOTA_OFF) {
        look->kind = DISK_POOL_FOLDER;
        look_at_quota(above, look);
        return;
    }
    look->is_limited = can_make_loop(look);
    look->kind = look->is_limited ? DISK_POOL_LOOP : DISK_POOL_PLAIN;
}

/* --- one that is ---------------------------------------------------------------------------- */

static void look_at_space(int store, struct disk_pool_look *look)
{
    struct statvfs status;

    if (fstatvfs(store, &status) < 0)
        return;
    look->space.size = (uint64_t) status.f_blocks * status.f_frsize;
    look->space.free = (uint64_t) status.f_bavail * status.f_frsize;
    look->space.is_read_only = status.f_flag & ST_RDONLY;
    if (look->space.is_read_only)
        explain(look, "the pool is read-only: the kernel's log says why");
}

static void look_at_mounted(int store, struct disk_pool_look *look)
{
    look_at_space(store, look);
    if (look->kind == DISK_POOL_PLAIN) {
        look->quota = "none";
        explain(look, "the pool is in use as plain folders; when all its disks are gone and nobody "
                      "has it open, another kind is tried again");
        return;
    }
    look_at_quota(store, look);
    if (!look->is_limited)
        explain(look, "quota is off on that btrfs");
}

static bool is_mount(int folder)
{
    struct statx status;

    return folder >= 0 && statx(folder, "", AT_EMPTY_PATH, STATX_TYPE, &status) == 0 &&
           status.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

/* The pool is mounted for the launcher alone: the store as one of them sees it, or -ENOENT. */
static int open_by_launcher(const char *proc, const char *path)
{
    DIR *entries = opendir(proc);
    int store = -ENOENT;
    struct dirent *entry;

    while (entries && store < 0 && (entry = readdir(entries))) {
        char place[PATH_MAX];

        if (!isdigit((unsigned char) entry->d_name[0]) ||
            !launcher_look_is(dirfd(entries), entry->d_name) ||
            snprintf(place, sizeof(place), "%s/root%s/" STORE_NAME, entry->d_name, path) >=
                PATH_MAX)
            continue;
        store = sys_file_open(dirfd(entries), place, O_RDONLY | O_DIRECTORY, 0);
        if (store >= 0 && !is_mount(store)) {
            (void) close(store);
            store = -ENOENT;
        }
    }
    if (entries)
        (void) closedir(entries);
    return store;
}

static int open_store(int folder, const char *path, const char *proc)
{
    int store = sys_file_open(folder, STORE_NAME, O_RDONLY | O_DIRECTORY, 0), seen;

    if (store < 0 || is_mount(store))
        return store;
    seen = open_by_launcher(proc, path);
    if (seen < 0)
        return store;
    (void) close(store);
    return seen;
}

/* Whether it holds a pool of its own at all: 1, 0 or -errno. */
static int look_at_pool(int folder, const char *path, const char *proc, struct disk_pool_look *look)
{
    struct disk_pool pool = {.folder = folder};
    AUTO(close) int store = open_store(folder, path, proc);
    int is_loop = disk_pool_loop_exists(&pool);

    if (is_loop < 0)
        return is_loop;
    look->is_mounted = is_mount(store);
    if (!is_loop && !look->is_mounted)
        return 0;
    look->exists = true;
    look->kind = is_loop ? DISK_POOL_LOOP : is_btrfs(store) ? DISK_POOL_FOLDER : DISK_POOL_PLAIN;
    look->quota = "";
    look->is_limited = look->kind != DISK_POOL_PLAIN;
    if (look->is_mounted)
        look_at_mounted(store, look);
    return 1;
}

int disk_pool_look(const char *path, const char *dev, const char *proc,
                   struct disk_pool_look *ret_look, struct error *err)
{
    struct disk_pool_look look = {
        .has_loop = has_loop(dev), .has_btrfs = kernel_has_btrfs(proc), .has_mkfs = has_mkfs()};
    AUTO(close) int folder = sys_file_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    AUTO(close) int above = open_above(path);
    struct statvfs beneath;
    int r = folder == -ENOENT ? 0 : folder;

    if (above < 0 || fstatvfs(above, &beneath) < 0)
        return error_set(err, ERR_INTERNAL, above < 0 ? above : errno, "look at '%s'", path);
    look.space.beneath_free = (uint64_t) beneath.f_bavail * beneath.f_frsize;
    if (folder >= 0)
        r = look_at_pool(folder, path, proc, &look);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "look at the disk pool '%s'", path);
    if (r == 0)
        foresee(above, &look);
    *ret_look = look;
    return 0;
}
