/* What a launcher writes down about a sandbox, so that the next launcher finds it.
 *
 *     RUN/<instance>/records/<id>
 *         burrow-record 1
 *         boot     3f0c...            of the kernel that runs it
 *         pid      4711               PID 1, as the host counts; 0: was about to be started
 *         start    883412             its start time
 *         pooled   0
 *         nat      1
 *         image    host
 *         fresh    1                  its disk was made for it, by this start
 *         ready    1                  it is whole: from now on somebody may know of it
 *         killed   0                  its end was asked for
 *         keep     1                  what was asked for: its disk stays
 *         told     0                  the daemon knows of its end, or need not
 *         held     0                  frozen for a moment, by us: whoever finds it thaws it
 *         snapshot 0                  no sandbox at all: a snapshot that ends with this launcher
 *         ended    1                  only when it is over: how ...
 *         value    9                  ... and with which status or signal
 *                                     behind an empty line, where earlier launchers do not look:
 *         owner    ID                 whose part of the CPUs it has, if the daemon said
 *
 * A record is there from before the sandbox's first instruction until its exit was told and
 * everything of it is gone. It is written whole (the folder is on a tmpfs: this is about the death
 * of processes, not of power). -errno; some microseconds. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/id.h"
#include "launcher/image/image.h"
#include "wire/wire_message.h"

struct record {
    struct id id;
    pid_t pid;
    uint64_t start_time;
    bool pooled;
    bool nat;
    bool fresh;
    bool ready;
    bool was_killed;
    char image[IMAGE_NAME_MAX + 1];
    bool has_ended;
    struct ending ending;
    bool keep_disk;
    bool was_told;
    bool is_held;
    bool is_snapshot;
    struct id owner; /* or none */
};

/* The kernel's id of this boot. */
#define RECORD_BOOT_SIZE 37
int record_read_boot(char ret_boot[static RECORD_BOOT_SIZE]);

int record_write(int folder, const char *boot, const struct record *record);

/* -ENOENT; -EINVAL: no record, or one of another boot (then its sandbox is gone). */
int record_read(int folder, const char *boot, const struct id *id, struct record *ret_record);

int record_remove(int folder, const struct id *id);

/* Where a record is before it is whole; a crash may leave it, until record_list. */
#define RECORD_UNFINISHED "unfinished"

/* For who starts: the ids of all records, in no order. The caller frees the array; NULL when there
 * are none. */
int record_list(int folder, struct id **ret_ids, size_t *ret_count);
