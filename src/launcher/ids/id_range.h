/* Ranges of 65,536 user and group ids, one per sandbox, from one table that all burrow processes of
 * a host share.
 *
 *     0 .. 65535 inside a sandbox  =  first .. first + 65535 on the host
 *
 * The table is a root-owned file in a run folder, which is worked on under a lock. A range belongs
 * to the sandbox whose id is written there, not to the process that took it: it is free again when
 * somebody says so, or when recovery finds neither its owner process nor the sandbox. The place of
 * a range follows from the sandbox's id, so that it is found by looking at a few entries.
 *
 * All launchers of a host use one table (SITE_IDS_FOLDER), whatever run folder they have. Each says
 * which that is, and gives back what was taken for it. What others took it gives back when it can
 * see that their process is dead, which takes the same pid namespace: a launcher that was killed and
 * whose run folder is gone has nobody else.
 *
 * Entries are written whole, with a checksum, and survive the death of any process; one that does
 * not add up is never handed out. After a reboot no process of a sandbox lives, so a table of an
 * earlier boot is started afresh; that is also why nothing here waits for a disk.
 *
 * Ranges that touch accounts of the host, /etc/subuid, /etc/subgid or ids that our own user
 * namespace lacks are never used; changes to those files count from the next range on.
 *
 * All functions return 0, or -1 with `err` filled, and take microseconds unless another process
 * holds the lock: then up to ID_RANGE_LOCK_MS. Not thread-safe; a forked child opens its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/id.h"

#define ID_RANGE_SIZE 65536

/* Where ranges lie unless told otherwise. Above what distributions and systemd give to people and
 * services, below 2^31 (some programs keep ids in an int) and systemd's "foreign" range. */
#define ID_RANGE_FIRST 0x10000000u
#define ID_RANGE_END   0x7ffe0000u

#define ID_RANGE_LOCK_MS 2000

struct id_range {
    uint32_t first;
    uint32_t count; /* always ID_RANGE_SIZE */
};

struct id_range_options {
    const char *folder; /* absolute, trusted; made 0700 when missing, best on a tmpfs */
    uint32_t first;     /* multiples of ID_RANGE_SIZE; both 0: the defaults above */
    uint32_t end;       /* not included */
    const char *user;   /* for whom ranges are taken: its run folder; NULL: nobody in particular */

    /* For tests; NULL: /etc, /proc/self and the kernel's boot id. */
    const char *etc;
    const char *process;
    const char *boot;
};

struct id_range_table;

/* Open the table, make it when missing. While ranges are in use, the place they were given from
 * stays, whatever `first` and `end` say. ERR_INVALID: bad bounds; ERR_FORBIDDEN: the folder or the
 * table could be changed by others; ERR_CONFLICT: the file is no table. */
int id_range_table_open(const struct id_range_options *options, struct id_range_table **ret_table,
                        struct error *err);

/* Accepts NULL. Ranges stay taken. */
void id_range_table_free(struct id_range_table *table);

AUTO_DEFINE_PTR(id_range_table, struct id_range_table, id_range_table_free);

/* A range for this sandbox; the calling process is its owner. ERR_CONFLICT: it has one (unless
 * another user of the table took that, whose process is dead: then it is the same one);
 * ERR_UNAVAILABLE: all are taken, or the lock is. */
int id_range_take(struct id_range_table *table, const struct id *sandbox,
                  struct id_range *ret_range, struct error *err);

/* Name another owner: PID 1 of the sandbox, once there is one. ERR_NOT_FOUND: no such range, or no
 * such process. */
int id_range_hand_over(struct id_range_table *table, const struct id *sandbox, pid_t owner,
                       struct error *err);

/* The range of a sandbox: adoption. ERR_NOT_FOUND. */
int id_range_find(struct id_range_table *table, const struct id *sandbox,
                  struct id_range *ret_range, struct error *err);

/* Give it back: only when no process of the sandbox is left. ERR_NOT_FOUND. */
int id_range_release(struct id_range_table *table, const struct id *sandbox, struct error *err);

struct id_range_entry {
    struct id sandbox;
    struct id_range range;
    pid_t owner;
    uint64_t owner_start; /* its start time, see sys_process_start_time */
    uint64_t user;        /* a hash of whom it was taken for; 0: nobody in particular */
    uint64_t pids;        /* inode of the pid namespace that `owner` is a number in; 0: not known */
};

/* All ranges in use. The caller frees the array; NULL when empty. Takes up to a few milliseconds.
 */
int id_range_list(struct id_range_table *table, struct id_range_entry **ret_entries,
                  size_t *ret_count, struct error *err);

/* Whether a range was taken for whom this table was opened for, or for nobody in particular. */
bool id_range_is_for_us(const struct id_range_table *table, const struct id_range_entry *entry);

/* Whether nothing of a sandbox exists any more (no process, no cgroup). */
typedef bool (*id_range_is_gone)(void *context, const struct id *sandbox);

/* Give back the ranges whose owner process has ended and whose sandbox `is_gone` calls gone; of other
 * users of the table those whose process we would see. It is asked without the lock held. Returns
 * how many. */
int id_range_recover(struct id_range_table *table, id_range_is_gone is_gone, void *context,
                     size_t *ret_released, struct error *err);

/* Take over the ranges that live sandboxes have by a table of an earlier version's, in `folder`; none
 * when there is no such table. What is taken over already, or cannot be, is left out. */
int id_range_import(struct id_range_table *table, const char *folder, struct error *err);
