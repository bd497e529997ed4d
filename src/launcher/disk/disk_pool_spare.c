/* Disks of deleted sandboxes, empty again, for the next ones. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/disk/disk_pool_internal.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_tree.h"

AUTO_DEFINE_PTR(closedir, DIR, (void) closedir);

int disk_pool_mark_copied(int folder)
{
    return mknodat(folder, DISK_COPIED, S_IFREG | 0600, 0) < 0 && errno != EEXIST ? -errno : 0;
}

static void look_for_spares(struct disk_pool *pool)
{
    int fd = sys_file_open(pool->spares, ".", O_RDONLY | O_DIRECTORY, 0);
    AUTO(closedir) DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    pool->spare_count = 0;
    if (!entries) {
        (void) fd_close(fd);
        return; /* without spares, disks are made */
    }
    while (pool->spare_count < DISK_POOL_SPARES_MAX && (entry = readdir(entries))) {
        if (id_is_valid(entry->d_name))
            memcpy(pool->spare_names[pool->spare_count++].text, entry->d_name, ID_SIZE);
    }
}

static int set_limit(struct disk_pool *pool, const struct id *sandbox, uint64_t limit)
{
    AUTO(close)
    int folder = sys_file_open(pool->sets[DISK_POOL_DISKS], sandbox->text,
                               O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    struct sys_btrfs_subvolume subvolume;
    int r = folder < 0 ? folder : sys_btrfs_inspect(folder, &subvolume);

    return r < 0 ? r : sys_btrfs_set_limit(pool->store, subvolume.number, limit);
}

int disk_pool_take_spare(struct disk_pool *pool, const struct id *sandbox, uint64_t limit)
{
    int disks = pool->sets[DISK_POOL_DISKS];

    if (pool->kind == DISK_POOL_PLAIN)
        return 0;
    if (pool->spare_count == 0)
        look_for_spares(pool);
    while (pool->spare_count > 0) {
        const char *name = pool->spare_names[--pool->spare_count].text;

        if (renameat2(pool->spares, name, disks, sandbox->text, RENAME_NOREPLACE) < 0) {
            if (errno == ENOENT)
                continue; /* another launcher had it */
            return errno == EEXIST ? -EEXIST : 0;
        }
        if (!disk_pool_is_limited(pool) || set_limit(pool, sandbox, limit) == 0)
            return 1;
        (void) sys_btrfs_delete(disks, sandbox->text); /* never one without its limit */
        return 0;
    }
    return 0;
}

/* What overlay makes in its work folder. The folder itself stays: no sandbox can reach it. */
static int empty_work(int folder)
{
    static const char *const parts[] = {"work", "index"};
    AUTO(close)
    int work = sys_file_open(folder, DISK_WORK, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    int r = work < 0 ? work : 0;

    for (size_t i = 0; r == 0 && i < ARRAY_COUNT(parts); i++)
        r = sys_tree_delete_small(work, parts[i], DISK_POOL_SPARE_FILES);
    return r;
}

/* Everything that a sandbox may have changed goes. The upper folder is its root: with it go mode,
 * owner, attributes and times. */
static int empty(struct disk_pool *pool, const struct id *sandbox)
{
    AUTO(close)
    int folder = sys_file_open(pool->sets[DISK_POOL_DISKS], sandbox->text,
                               O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    int r;

    if (folder < 0)
        return folder;
    if (faccessat(folder, DISK_COPIED, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return -EMLINK;
    r = sys_tree_delete_small(folder, DISK_UPPER, DISK_POOL_SPARE_FILES);
    return r < 0 ? r : empty_work(folder);
}

/* Spares that were taken since the last look only make more room than we know of. */
static bool has_room(struct disk_pool *pool)
{
    if (pool->spare_room == 0) {
        look_for_spares(pool);
        pool->spare_room = DISK_POOL_SPARES_MAX - pool->spare_count;
    }
    return pool->spare_room > 0;
}

static bool keep_as_spare(struct disk_pool *pool, const struct id *sandbox)
{
    if (!has_room(pool) || empty(pool, sandbox) < 0 ||
        renameat2(pool->sets[DISK_POOL_DISKS], sandbox->text, pool->spares, sandbox->text,
                  RENAME_NOREPLACE) < 0)
        return false;
    pool->spare_room--;
    return true;
}

int disk_pool_retire(struct disk_pool *pool, const struct id *sandbox, struct error *err)
{
    if (pool->kind != DISK_POOL_PLAIN && id_is_valid(sandbox->text) && keep_as_spare(pool, sandbox))
        return 0;
    return disk_pool_delete(pool, sandbox, err);
}
