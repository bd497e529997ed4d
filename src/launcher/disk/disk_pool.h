/* The disk pool: the writable disks of all sandboxes, their limits, snapshots and forks.
 *
 *     DATA/pool/                  0700, root
 *       lock                      openers take turns
 *       sparse.btrfs              the filesystem in a file (or allocated.btrfs: all of it reserved)
 *       store/                    that file, mounted nosuid,nodev,noatime, for the launcher alone
 *         disks/<id>/u, w         a subvolume per sandbox: upper and work folder of its overlay
 *         snapshots/<id>/d/u      read-only copies (plain: <id>/u)
 *         unfinished/<handle>/    copies that are being made
 *         trash/                  on its way out, or not finished yet
 *         layers/<id>/u           plain: what disks and snapshots share; their file `l` names them
 *
 * Three kinds, chosen when the pool is opened (research behind it: create, limit and delete in
 * microseconds, snapshot and fork in milliseconds, a limit that sandboxes cannot pass):
 *
 *     loop      btrfs in a file on a direct-I/O loop device. The default.
 *     folder    DATA lies on btrfs and quota is on there (or this kind was asked for, which turns
 *               it on): subvolumes of that filesystem, no file in between.
 *     plain     neither works here: folders WITHOUT LIMITS. A disk that nothing is mounted of is
 *               shared, as overlay layers; one that is in use is copied file by file.
 *               disk_pool_reason says why in words, and `doctor` repeats it.
 *
 * What a pool holds decides before any option does, so that no disk is lost from sight by a changed
 * setting. Accounting is simple quota (Linux 6.7) or qgroups; either way a sandbox over its limit
 * gets EDQUOT for what needs space and can still delete.
 *
 * Several processes may have one pool open. State is in the filesystem alone: a disk is found by
 * the sandbox's id, after a crash as before. Ids on disk are those inside the sandbox (0 is its
 * root): disks are mounted with an id map.
 *
 * All functions return 0, or -1 with `err` filled. One thread uses a pool. Inline means well under
 * a millisecond; slow means a child process or a quiet moment, never the request path. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/id.h"

/* A disk's folders: the overlay's upperdir and workdir. */
#define DISK_UPPER "u"
#define DISK_WORK  "w"

/* The smallest limit: btrfs reserves megabytes for one new folder. */
#define DISK_LIMIT_MIN (16ULL << 20)

/* The smallest pool, and the smallest step from one size to a larger one. */
#define DISK_POOL_SIZE_MIN (256ULL << 20)

/* Disks are refused while less than this is free, in the pool or (for a sparse file) beneath it. A
 * full filesystem beneath is the worst case: the kernel turns the whole pool read-only. */
#define DISK_POOL_RESERVE (1ULL << 30)

/* Inside a small pool this reserve is not more than one such part of it. */
#define DISK_POOL_RESERVE_PART 16

/* Records that one call of disk_pool_clean looks at. */
#define DISK_POOL_CLEAN_MAX 512

/* The filesystem commits this often: the age of usage numbers, and what a power cut may cost. */
#define DISK_POOL_COMMIT_SECONDS 5

/* Layers beneath a disk of a plain pool. The next copy of one that has as many is copied file by
 * file. */
#define DISK_LAYERS_MAX 16

/* More disks or snapshots than this are not listed. */
#define DISK_POOL_DISKS_MAX (1 << 20)

enum disk_pool_kind { DISK_POOL_AUTO, DISK_POOL_LOOP, DISK_POOL_FOLDER, DISK_POOL_PLAIN };

struct disk_pool_options {
    enum disk_pool_kind kind; /* what to make; DISK_POOL_AUTO: the best that works */
    uint64_t size;            /* of the file; 0: most of what is free. A larger one grows it */
    bool allocate;            /* reserve all of the file now instead of letting it grow */
    uint64_t reserve;         /* 0: DISK_POOL_RESERVE */
};

struct disk_pool;

/* Unfinished ones are this handle's own: copies that are being made, in a plain pool. Others do not
 * see them, and after our death they go (disk_pool_open). */
enum disk_pool_set {
    DISK_POOL_DISKS,
    DISK_POOL_SNAPSHOTS,
    DISK_POOL_UNFINISHED,
    DISK_POOL_SET_COUNT
};

/* Open the pool at `path` (absolute, trusted; made when missing), mount it when nobody has yet.
 * ERR_CONFLICT: something else is mounted there; ERR_UNAVAILABLE: the pool exists but cannot be
 * used (its file does not mount, no loop device), or what was asked for is not possible. With
 * DISK_POOL_AUTO and nothing there yet that falls back to the plain kind instead. Slow when it has
 * to make or mount the filesystem: 5 to 100 ms. */
int disk_pool_open(const char *path, const struct disk_pool_options *options,
                   struct disk_pool **ret_pool, struct error *err);

/* Forget the handle; the pool stays mounted for others and for sandboxes. Accepts NULL. */
void disk_pool_free(struct disk_pool *pool);

AUTO_DEFINE_PTR(disk_pool, struct disk_pool, disk_pool_free);

/* Forget the handle and unmount the pool unless somebody else has it open. Sandboxes that run keep
 * their disks; the loop device goes with the last of them. Slow. Consumes `pool`, also on failure.
 */
int disk_pool_unmount(struct disk_pool *pool, struct error *err);

/* The kind it is; never DISK_POOL_AUTO. */
enum disk_pool_kind disk_pool_kind(const struct disk_pool *pool);

/* "loop", "folder", "plain". Static. */
const char *disk_pool_kind_text(enum disk_pool_kind kind);

/* Whether limits hold. When they do not, disk_pool_reason says why. */
bool disk_pool_is_limited(const struct disk_pool *pool);

/* "simple quota", "qgroups" or "none". Static. */
const char *disk_pool_quota_text(const struct disk_pool *pool);

/* What is not as good as it could be and what to do about it, for people; "" when nothing is.
 * Borrowed from the pool. */
const char *disk_pool_reason(const struct disk_pool *pool);

/* Make the disk of a sandbox, with at most `limit` bytes (0: no limit). Unlike a copy it is not on
 * disk when this returns, but with the next commit: it holds nothing yet that could be lost.
 * ERR_CONFLICT: it has one; ERR_NO_SPACE: the pool is below its reserve; ERR_INVALID: limit below
 * DISK_LIMIT_MIN. Inline. */
int disk_pool_create(struct disk_pool *pool, const struct id *sandbox, uint64_t limit,
                     struct error *err);

/* Find the disk of a sandbox again and complete one whose making was interrupted. ERR_NOT_FOUND.
 * Inline. */
int disk_pool_adopt(struct disk_pool *pool, const struct id *sandbox, struct error *err);

/* Descriptors of a disk; CLOEXEC. */
struct disk {
    int folder; /* owned: what holds the two */
    int upper;  /* owned, O_PATH */
    int work;   /* owned, O_PATH */
};

#define DISK_INIT                                                                                  \
    {                                                                                              \
        .folder = -EBADF, .upper = -EBADF, .work = -EBADF                                          \
    }

/* ERR_NOT_FOUND. Inline. */
int disk_pool_open_disk(struct disk_pool *pool, const struct id *sandbox, struct disk *ret_disk,
                        struct error *err);

/* Close them. */
void disk_done(struct disk *disk);

AUTO_DEFINE(disk, struct disk, disk_done);

/* A detached mount of the disk's folder with the id map of `user_namespace`: what the child
 * attaches in its own mount namespace to use u and w in it as upperdir and workdir (overlay wants
 * both on one mount, and in a user namespace only takes mounts of its own mount namespace). `part`
 * is NULL for all of it, or DISK_UPPER for that folder, wherever it is moved to. Returns a CLOEXEC
 * descriptor the caller owns. Inline. */
int disk_pool_mount_disk(struct disk_pool *pool, enum disk_pool_set set, const struct id *id,
                         const char *part, int user_namespace, int *ret_mount, struct error *err);

/* The same for the layers that lie beneath a disk's upper folder, in a plain pool; the topmost
 * first. They are shared: the caller makes the mounts read-only. Mount the disk first: whoever
 * makes copies of it then adds to the layers what is in the mount already, and takes nothing away.
 * Inline. */
int disk_pool_mount_layers(struct disk_pool *pool, enum disk_pool_set set, const struct id *id,
                           int user_namespace, int ret_mounts[static DISK_LAYERS_MAX],
                           size_t *ret_count, struct error *err);

/* How many layers those are; 0 in other pools. Inline. */
size_t disk_pool_height(struct disk_pool *pool, enum disk_pool_set set, const struct id *id);

/* Whether its upper folder would have to become a layer for which there is no place any more: a
 * copy of it is to be made file by file. Inline. */
bool disk_pool_is_full(struct disk_pool *pool, enum disk_pool_set set, const struct id *id);

/* As of the last commit: a change shows up to DISK_POOL_COMMIT_SECONDS later, a new disk reads 0.
 */
struct disk_usage {
    uint64_t used;  /* bytes, data and metadata */
    uint64_t limit; /* 0: none */
};

/* With simple quota a block counts for whoever wrote it first, as long as anybody has it: a fresh
 * copy reads next to nothing. ERR_NOT_FOUND; ERR_NOT_IMPLEMENTED where nothing is counted (measure
 * the tree instead). Inline. */
int disk_pool_usage(struct disk_pool *pool, enum disk_pool_set set, const struct id *id,
                    struct disk_usage *ret_usage, struct error *err);

/* Change the limit, also of a running sandbox; 0: none. Inline. */
int disk_pool_set_limit(struct disk_pool *pool, const struct id *sandbox, uint64_t limit,
                        struct error *err);

/* Drop the disk whatever is in it; processes that still have it open keep it until they end. In a
 * plain pool it only goes to the trash. ERR_NOT_FOUND. Inline. */
int disk_pool_delete(struct disk_pool *pool, const struct id *sandbox, struct error *err);

/* --- copies ---
 *
 * On btrfs a copy shares all its blocks with the source and takes a commit or two, whatever the
 * size: 1 ms when idle to 30 ms beside writers. It is made beside, complete, and then moved: there
 * is a whole one or none, also after a crash. Those that are made at the same time share commits;
 * these functions may run side by side on one handle, in several threads.
 *
 * In a plain pool the upper folder of a source that nothing is mounted of becomes a layer, which
 * the source and its copies share from then on: a rename, whatever the size.
 *
 *     disk: u (empty)            snapshot: u (empty)         each with its list `l`: X, L
 *           └──── layers/X/u (was the disk's u) ── layers/L/u ────┘
 *
 * The list is written first, when X is still empty; then X and the upper folder change places. At
 * every moment the two together are the same tree.
 *
 * What is in use is copied there, file by file, the changes of who writes to the source meanwhile
 * at the end, when he stands still (keeper/tree/tree_copy.h):
 *
 *     disk_pool_begin_copy, the keeper copies into (DISK_POOL_UNFINISHED, id), disk_pool_sync,
 *     disk_pool_place_copy, disk_pool_sync
 *
 * A full pool is refused in time for all of them: ERR_NO_SPACE, as for create. */

/* Whether copies of disks in use are made in one step; otherwise the pool is a plain one. */
bool disk_pool_shares(const struct disk_pool *pool);

/* Who wants to know that the copy shows the disk as it was, and that it may change again. */
struct disk_pool_waiter {
    void (*taken)(void *context);
    void *context;
};

/* Write back what the sandbox wrote, while it goes on: a snapshot that follows takes less time.
 * Slow. */
int disk_pool_flush(struct disk_pool *pool, const struct id *sandbox, struct error *err);

/* A read-only copy of the disk as it is now (freeze the sandbox first when its programs must agree
 * with it, until `waiter`, which may be NULL, is told), on disk when this returns. In a plain pool
 * nothing may be mounted of it. ERR_CONFLICT: `snapshot` exists. Slow. */
int disk_pool_snapshot(struct disk_pool *pool, const struct id *sandbox, const struct id *snapshot,
                       const struct disk_pool_waiter *waiter, struct error *err);

/* Drop a snapshot; disks that were made from it stay. ERR_NOT_FOUND. Inline. */
int disk_pool_delete_snapshot(struct disk_pool *pool, const struct id *snapshot, struct error *err);

/* Make the disk of a new sandbox a copy of a disk or snapshot, with an empty work folder. With
 * simple quota a fork starts with nothing on its account, whatever it shares: bound the number of
 * forks. On disk when this returns; should the power go before its place is, too, the next one to
 * mount the pool puts it there. `waiter` and errors as for snapshots, and of create. Slow. */
int disk_pool_fork(struct disk_pool *pool, enum disk_pool_set from, const struct id *source,
                   const struct id *sandbox, uint64_t limit, const struct disk_pool_waiter *waiter,
                   struct error *err);

/* Make the disk of a sandbox, which nothing is mounted of, a copy of a snapshot. At every moment
 * there is the old one or the new one; on disk when this returns. Doing it twice does no harm.
 * ERR_NOT_FOUND. Slow. */
int disk_pool_roll_back(struct disk_pool *pool, const struct id *sandbox, const struct id *snapshot,
                        uint64_t limit, struct error *err);

/* Everything that was done so far is on disk when this returns: disks, snapshots, their places and
 * limits. Slow. */
int disk_pool_sync(struct disk_pool *pool, struct error *err);

/* The same, with everything that was written into disks, whether or not anybody synced it there;
 * also fails when the kernel could not write back something since the last call. As slow as all
 * writers of the pool together make it. */
int disk_pool_sync_contents(struct disk_pool *pool, struct error *err);

/* Plain pools: an empty disk that is not finished. Inline. */
int disk_pool_begin_copy(struct disk_pool *pool, const struct id *id, struct error *err);

/* Give it the layers that lie beneath a disk or snapshot, of which only the upper folder is copied
 * then. Inline. */
int disk_pool_begin_layers(struct disk_pool *pool, enum disk_pool_set from, const struct id *source,
                           const struct id *id, struct error *err);

/* Make it a disk or a snapshot; with `replace` it changes places with the disk of that id. Inline.
 */
int disk_pool_place_copy(struct disk_pool *pool, const struct id *id, enum disk_pool_set as,
                         bool replace, struct error *err);

/* It goes to the trash; also what a replaced one left here. Inline. */
void disk_pool_drop_copy(struct disk_pool *pool, const struct id *id);

/* Whether there is such a disk or snapshot. Inline. */
bool disk_pool_has(const struct disk_pool *pool, enum disk_pool_set set, const struct id *id);

/* The ids of all disks or snapshots, in no order. The caller frees the array; NULL when empty. */
int disk_pool_list(struct disk_pool *pool, enum disk_pool_set set, struct id **ret_ids,
                   size_t *ret_count, struct error *err);

struct disk_pool_space {
    uint64_t size;         /* of the pool's filesystem */
    uint64_t free;         /* in it */
    uint64_t beneath_free; /* in the filesystem the file lies on; equals `free` in other kinds */
    bool is_read_only;     /* the kernel gave up on it: nothing can be written any more */
};

/* How full it is, for `doctor` and for a watch that warns in time. Inline. */
int disk_pool_space(struct disk_pool *pool, struct disk_pool_space *ret_space, struct error *err);

/* Whether something new may begin: ERR_NO_SPACE below the reserve, ERR_UNAVAILABLE when it is
 * read-only. Everything that makes a disk asks by itself, too. Inline. */
int disk_pool_check_space(struct disk_pool *pool, struct error *err);

/* Give freed blocks of a sparse file back to the filesystem beneath. Returns how many bytes were
 * free; 0 where there is nothing to do. Slow: 0.1 s and more, now and then. */
int disk_pool_trim(struct disk_pool *pool, uint64_t *ret_bytes, struct error *err);

/* Drop accounting records of disks that are gone, looking at most at `count` records per call
 * (DISK_POOL_CLEAN_MAX) and going on where the last call stopped. Returns how many were dropped.
 * Newer kernels do it themselves. Some 10 us per record, and a commit when there are dead ones. */
int disk_pool_clean(struct disk_pool *pool, unsigned int count, unsigned int *ret_dropped,
                    struct error *err);

/* Delete what lies in the trash. Safe with hostile trees (sys_tree.h), as slow as they are large:
 * for a helper process. */
int disk_pool_empty_trash(struct disk_pool *pool, struct error *err);
