/* Snapshots, forks and going back: copies of disks. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crash_point.h"
#include "launcher/disk/disk_pool_internal.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_tree.h"

bool disk_pool_shares(const struct disk_pool *pool)
{
    return pool->kind != DISK_POOL_PLAIN;
}

static int fail(struct error *err, int system, const char *what, const struct id *id)
{
    return error_set(err, error_code_from_errno(system), system, "%s %s", what, id->text);
}

static int check(struct disk_pool *pool, const struct id *from, const struct id *to,
                 struct error *err)
{
    if (disk_pool_check_id(from, err) < 0 || disk_pool_check_id(to, err) < 0)
        return -1;
    return disk_pool_check_space(pool, err);
}

/* --- one that is being made ------------------------------------------------------------------ */

/* A subvolume in a folder of its own: the kernel holds the folder's lock while it waits for the
 * commit, and nobody else shall wait for that. */
struct beside {
    struct disk_pool *pool;
    const char *name; /* NULL: there is none */
    int folder;       /* owned */
};

/* Whatever is still in it goes. */
static void beside_done(struct beside *beside)
{
    int ours = beside->pool->sets[DISK_POOL_UNFINISHED];

    if (!beside->name)
        return;
    if (beside->folder >= 0)
        (void) sys_btrfs_delete(beside->folder, DISK_COPY_NAME);
    beside->folder = fd_close(beside->folder);
    (void) unlinkat(ours, beside->name, AT_REMOVEDIR);
}

AUTO_DEFINE(beside, struct beside, beside_done);

/* -EBUSY: just this one is being made already. */
static int copy_beside(struct beside *beside, int source, const struct id *id, bool read_only,
                       uint64_t limit)
{
    int ours = beside->pool->sets[DISK_POOL_UNFINISHED];

    if (ours < 0)
        return -EROFS;
    if (mkdirat(ours, id->text, 0700) < 0)
        return errno == EEXIST ? -EBUSY : -errno;
    beside->name = id->text;
    beside->folder = sys_file_open(ours, id->text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (beside->folder < 0)
        return beside->folder;
    return sys_btrfs_snapshot(source, beside->folder, DISK_COPY_NAME, read_only,
                              disk_pool_is_limited(beside->pool) ? limit : 0);
}

/* Only the kernel writes into it, so there is little to delete. */
int disk_pool_renew_work(int around)
{
    AUTO(close)
    int folder = sys_file_open(around, DISK_COPY_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    int r = folder;

    if (r >= 0)
        r = sys_tree_delete(folder, DISK_WORK);
    if (r >= 0)
        r = disk_pool_make_parts(folder);
    return r;
}

static int move(int folder, const char *name, int to, const char *new_name, unsigned int flags)
{
    return renameat2(folder, name, to, new_name, flags) < 0 ? -errno : 0;
}

/* --- on btrfs -------------------------------------------------------------------------------- */

static int open_source(struct disk_pool *pool, enum disk_pool_set from, const struct id *id,
                       int *ret_folder, struct error *err)
{
    AUTO(close) int folder = disk_pool_open_entry(pool, from, id);
    int r = folder;

    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "open %s %s", disk_pool_set_nouns[from],
                         id->text);
    *ret_folder = TAKE_FD(folder);
    return 0;
}

int disk_pool_snapshot(struct disk_pool *pool, const struct id *sandbox, const struct id *snapshot,
                       const struct disk_pool_waiter *waiter, struct error *err)
{
    AUTO(beside) struct beside beside = {.pool = pool, .folder = -EBADF};
    AUTO(close) int source = -EBADF;
    int r;

    if (check(pool, sandbox, snapshot, err) < 0)
        return -1;
    if (!disk_pool_shares(pool))
        return disk_pool_share(pool,
                               &(struct disk_pool_share){.from = DISK_POOL_DISKS,
                                                         .source = sandbox,
                                                         .as = DISK_POOL_SNAPSHOTS,
                                                         .target = snapshot,
                                                         .sync = true},
                               err);
    if (disk_pool_has(pool, DISK_POOL_SNAPSHOTS, snapshot))
        return fail(err, -EEXIST, "make snapshot", snapshot);
    if (open_source(pool, DISK_POOL_DISKS, sandbox, &source, err) < 0)
        return -1;
    r = copy_beside(&beside, source, snapshot, true, 0);
    CRASH_POINT("launcher.snapshot.copied");
    if (r == 0 && waiter)
        waiter->taken(waiter->context);
    if (r == 0)
        r = move(pool->sets[DISK_POOL_UNFINISHED], snapshot->text, pool->sets[DISK_POOL_SNAPSHOTS],
                 snapshot->text, RENAME_NOREPLACE);
    if (r < 0)
        return fail(err, r, "make snapshot", snapshot);
    beside.name = NULL; /* it is the snapshot now */
    beside.folder = fd_close(beside.folder);
    CRASH_POINT("launcher.snapshot.placed");
    return disk_pool_sync(pool, err);
}

int disk_pool_flush(struct disk_pool *pool, const struct id *sandbox, struct error *err)
{
    AUTO(close) int source = -EBADF;
    int r;

    if (disk_pool_check_id(sandbox, err) < 0 || disk_pool_check_space(pool, err) < 0)
        return -1;
    if (!disk_pool_shares(pool))
        return 0;
    r = source = disk_pool_open_entry(pool, DISK_POOL_DISKS, sandbox);
    if (r >= 0)
        r = sys_btrfs_flush(source, pool->store, DISK_UNFINISHED);
    return r < 0 ? fail(err, r, "write back disk", sandbox) : 0;
}

int disk_pool_fork(struct disk_pool *pool, enum disk_pool_set from, const struct id *source,
                   const struct id *sandbox, uint64_t limit, const struct disk_pool_waiter *waiter,
                   struct error *err)
{
    AUTO(beside) struct beside beside = {.pool = pool, .folder = -EBADF};
    AUTO(close) int folder = -EBADF;
    int r;

    if (disk_pool_check_limit(limit, err) < 0 || check(pool, source, sandbox, err) < 0)
        return -1;
    if (!disk_pool_shares(pool))
        return disk_pool_share(pool,
                               &(struct disk_pool_share){.from = from,
                                                         .source = source,
                                                         .as = DISK_POOL_DISKS,
                                                         .target = sandbox,
                                                         .sync = true},
                               err);
    if (disk_pool_has(pool, DISK_POOL_DISKS, sandbox))
        return fail(err, -EEXIST, "fork to disk", sandbox);
    if (open_source(pool, from, source, &folder, err) < 0)
        return -1;
    r = copy_beside(&beside, folder, sandbox, false, limit);
    CRASH_POINT("launcher.fork.copied");
    if (r == 0 && waiter)
        waiter->taken(waiter->context);
    if (r == 0)
        r = disk_pool_renew_work(beside.folder);
    if (r == 0)
        r = move(beside.folder, DISK_COPY_NAME, pool->sets[DISK_POOL_DISKS], sandbox->text,
                 RENAME_NOREPLACE);
    if (r < 0)
        return fail(err, r, "fork to disk", sandbox);
    /* The copy was committed by the kernel, only its place was not: disk_pool_open_unfinished. */
    CRASH_POINT("launcher.fork.placed");
    return 0;
}

int disk_pool_roll_back(struct disk_pool *pool, const struct id *sandbox, const struct id *snapshot,
                        uint64_t limit, struct error *err)
{
    AUTO(beside) struct beside beside = {.pool = pool, .folder = -EBADF};
    AUTO(close) int folder = -EBADF;
    int r;

    if (disk_pool_check_limit(limit, err) < 0 || check(pool, snapshot, sandbox, err) < 0)
        return -1;
    if (!disk_pool_shares(pool))
        return disk_pool_share(pool,
                               &(struct disk_pool_share){.from = DISK_POOL_SNAPSHOTS,
                                                         .source = snapshot,
                                                         .as = DISK_POOL_DISKS,
                                                         .target = sandbox,
                                                         .replace = true,
                                                         .sync = true},
                               err);
    if (!disk_pool_has(pool, DISK_POOL_DISKS, sandbox))
        return fail(err, -ENOENT, "roll back disk", sandbox);
    if (open_source(pool, DISK_POOL_SNAPSHOTS, snapshot, &folder, err) < 0)
        return -1;
    r = copy_beside(&beside, folder, sandbox, false, limit);
    CRASH_POINT("launcher.roll_back.copied");
    if (r == 0)
        r = disk_pool_renew_work(beside.folder);
    if (r == 0)
        r = move(beside.folder, DISK_COPY_NAME, pool->sets[DISK_POOL_DISKS], sandbox->text,
                 RENAME_EXCHANGE);
    if (r < 0)
        return fail(err, r, "roll back disk", sandbox);
    CRASH_POINT("launcher.roll_back.exchanged");
    if (disk_pool_sync(pool, err) == 0)
        return 0;
    /* The old one, which is beside now, goes only when the new one is sure to be there. So they
     * change places again; if not even that works, both stay for the next one to open the pool. */
    if (move(beside.folder, DISK_COPY_NAME, pool->sets[DISK_POOL_DISKS], sandbox->text,
             RENAME_EXCHANGE) < 0) {
        beside.name = NULL;
        beside.folder = fd_close(beside.folder);
    }
    return -1;
}

/* Out of sight in one step, whatever is slow or fails behind it. */
int disk_pool_delete_snapshot(struct disk_pool *pool, const struct id *snapshot, struct error *err)
{
    AUTO(beside) struct beside beside = {.pool = pool, .folder = -EBADF};
    int snapshots = pool->sets[DISK_POOL_SNAPSHOTS], ours = pool->sets[DISK_POOL_UNFINISHED];
    struct id new_name = id_new();
    int r;

    if (disk_pool_check_id(snapshot, err) < 0)
        return -1;
    if (!disk_pool_shares(pool)) {
        r = disk_pool_throw_away(pool, snapshots, snapshot->text);
    } else {
        r = ours < 0 ? -EROFS : move(snapshots, snapshot->text, ours, new_name.text, 0);
        if (r == 0) {
            beside.name = new_name.text;
            beside.folder =
                sys_file_open(ours, new_name.text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
        }
    }
    return r < 0 ? fail(err, r, "delete snapshot", snapshot) : 0;
}

static int written_back(int r, struct error *err)
{
    return r < 0 ? error_set(err, error_code_from_errno(r), r, "write back the disk pool") : 0;
}

int disk_pool_sync(struct disk_pool *pool, struct error *err)
{
    return disk_pool_shares(pool) ? written_back(sys_btrfs_commit(pool->store), err)
                                  : disk_pool_sync_contents(pool, err);
}

/* Not BTRFS_IOC_SYNC: that says nothing of data that could not be written. */
int disk_pool_sync_contents(struct disk_pool *pool, struct error *err)
{
    return written_back(syncfs(pool->store) < 0 ? -errno : 0, err);
}

/* --- in a plain pool ------------------------------------------------------------------------- */

int disk_pool_begin_copy(struct disk_pool *pool, const struct id *id, struct error *err)
{
    int ours = pool->sets[DISK_POOL_UNFINISHED];
    AUTO(close) int folder = -EBADF;
    int r;

    if (disk_pool_check_id(id, err) < 0 || disk_pool_check_space(pool, err) < 0)
        return -1;
    r = ours < 0 ? -EROFS : mkdirat(ours, id->text, 0755) < 0 ? -errno : 0;
    if (r < 0)
        return fail(err, r, "begin a copy of disk", id);
    r = folder = disk_pool_open_entry(pool, DISK_POOL_UNFINISHED, id);
    if (r >= 0)
        r = disk_pool_make_parts(folder);
    if (r < 0) {
        disk_pool_drop_copy(pool, id);
        return fail(err, r, "begin a copy of disk", id);
    }
    return 0;
}

int disk_pool_begin_layers(struct disk_pool *pool, enum disk_pool_set from, const struct id *source,
                           const struct id *id, struct error *err)
{
    AUTO(close) int folder = disk_pool_open_entry(pool, from, source);
    int r = folder < 0 ? folder : disk_pool_copy_stack(pool, folder, id);

    return r < 0 ? fail(err, r, "begin a copy of disk", id) : 0;
}

int disk_pool_place_copy(struct disk_pool *pool, const struct id *id, enum disk_pool_set as,
                         bool replace, struct error *err)
{
    int r;

    if (disk_pool_check_id(id, err) < 0)
        return -1;
    r = move(pool->sets[DISK_POOL_UNFINISHED], id->text, pool->sets[as], id->text,
             replace ? RENAME_EXCHANGE : RENAME_NOREPLACE);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "put %s %s into place",
                         disk_pool_set_nouns[as], id->text);
    return 0;
}

void disk_pool_drop_copy(struct disk_pool *pool, const struct id *id)
{
    (void) disk_pool_throw_away(pool, pool->sets[DISK_POOL_UNFINISHED], id->text);
}
