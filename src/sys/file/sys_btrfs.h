/* btrfs: subvolumes, snapshots and their limits.
 *
 * A subvolume is a directory tree of its own that is made, copied (a snapshot shares all its
 * blocks) and dropped as a whole in microseconds. With quota on, every subvolume has an accounting
 * record (a "qgroup" of level 0 with the subvolume's number) that may carry a limit in bytes; data
 * and metadata count. Two kinds of accounting:
 *
 *     simple     Linux 6.7: a block counts for the subvolume that first wrote it, whoever still
 *                uses it. Cheap. Marks the filesystem so that older kernels cannot mount it.
 *     qgroups    a block counts for all that refer to it. Exact, costs a walk of back references.
 *
 * `directory`, `subvolume` and `filesystem` are open directories (not O_PATH: the kernel refuses
 * ioctls on those). Everything needs root, returns -errno, and settles EINTR; -ENOTTY when it is
 * not btrfs. Numbers of used bytes are those of the last commit (sys_btrfs_sync makes one).
 * Thread-safe and async-signal-safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Make subvolume `name` in `directory`, with a limit unless that is 0. -EEXIST when the name is
 * taken. Does not wait for a commit: some 30 us. */
int sys_btrfs_create(int directory, const char *name, uint64_t limit);

/* Make `name` in `directory` a copy of `subvolume` as it is at this moment. Waits for a commit of
 * the filesystem: a millisecond when idle, more beside heavy writers. */
int sys_btrfs_snapshot(int subvolume, int directory, const char *name, bool read_only,
                       uint64_t limit);

/* Write back what programs wrote into `subvolume`, and nothing of other subvolumes: a snapshot that
 * follows soon waits for little but its commit. `name` is a name in `directory` that is taken: the
 * kernel has no call for this, but before it looks at the name of a snapshot it does just that. One
 * that looks earlier makes the snapshot slower, not wrong. */
int sys_btrfs_flush(int subvolume, int directory, const char *name);

/* Drop the subvolume `name` whatever is in it; its blocks are freed in the background. -ENOENT;
 * -ENOTEMPTY while it holds other subvolumes; -EINVAL when it is a plain directory. */
int sys_btrfs_delete(int directory, const char *name);

struct sys_btrfs_subvolume {
    uint64_t number;
    bool read_only;
};

/* About the subvolume that this directory lies in. */
int sys_btrfs_inspect(int directory, struct sys_btrfs_subvolume *ret_subvolume);

enum sys_btrfs_quota { SYS_BTRFS_QUOTA_OFF, SYS_BTRFS_QUOTA_GROUPS, SYS_BTRFS_QUOTA_SIMPLE };

/* Returns an enum sys_btrfs_quota, or -errno. */
int sys_btrfs_quota(int filesystem);

/* Turn it on, and wait for the first count of a filesystem with qgroups. Changes nothing when some
 * kind is on already. -EINVAL when the kernel lacks the simple kind. */
int sys_btrfs_enable_quota(int filesystem, enum sys_btrfs_quota kind);

/* Turn it off; all limits are forgotten. */
int sys_btrfs_disable_quota(int filesystem);

struct sys_btrfs_usage {
    uint64_t used;
    uint64_t limit; /* 0: none */
};

/* What a subvolume uses and may use. -ENOENT without quota or such a subvolume. */
int sys_btrfs_usage(int filesystem, uint64_t number, struct sys_btrfs_usage *ret_usage);

/* Change the limit of a subvolume; 0 takes it away. A limit below what is used already stops
 * writes and deletes nothing. */
int sys_btrfs_set_limit(int filesystem, uint64_t number, uint64_t limit);

/* The lowest accounting record with a number of at least `from`. -ENOENT at the end. */
int sys_btrfs_next_record(int filesystem, uint64_t from, uint64_t *ret_number);

/* Drop an accounting record. -EBUSY while blocks still count for it. */
int sys_btrfs_drop_record(int filesystem, uint64_t number);

/* Whether that subvolume exists: 1, or 0; a dropped one exists until its blocks are freed. */
int sys_btrfs_has_subvolume(int filesystem, uint64_t number);

/* Commit what was written so far. */
int sys_btrfs_sync(int filesystem);

/* Commit what has changed, without writing back the data of files that nobody asked to sync: what
 * snapshots, names and limits need, and cheaper beside heavy writers. */
int sys_btrfs_commit(int filesystem);

/* Grow into all of the device. */
int sys_btrfs_grow(int filesystem);

/* Write the blocks of a new, empty file in place instead of to a new place each time. -ENOTTY or
 * -EOPNOTSUPP where that means nothing. */
int sys_btrfs_disable_copy(int file);

/* Give free blocks back to the device (a sparse file shrinks). Returns 0 and how many bytes. Takes
 * from 0.1 s to minutes. */
int sys_btrfs_trim(int filesystem, uint64_t *ret_bytes);
