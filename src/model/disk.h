/* Disks by name, and the jobs that are done on them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"
#include "model/words.h"

#define DISK_SETS(W)                                                                               \
    W(DISK_OF_SANDBOX, "sandbox", "the disk of a sandbox")                                         \
    W(DISK_OF_SNAPSHOT, "snapshot", "a read-only copy with an id of its own")
enum disk_set { DISK_SETS(WORD_CONSTANT) };

/* A disk that is there: of a sandbox, whatever its state, or a snapshot. No id: no disk, and then
 * the set is DISK_OF_SANDBOX, so that "none" has one spelling. */
struct disk_ref {
    enum disk_set set;
    struct id id;
};

static inline struct disk_ref disk_ref_or_none(struct disk_ref disk)
{
    if (!disk.id.text[0])
        disk.set = DISK_OF_SANDBOX;
    return disk;
}

/* What a copy of a disk took. */
struct snapshot_made {
    uint64_t pause_us; /* how long the sandbox stood still */
    uint64_t took_us;  /* from the request to the answer */
    bool is_copied;    /* byte by byte: this pool cannot do it in one step */
};

/* Jobs of a confined process, the keeper (keeper/job.h says what each reads and writes). */
#define DISK_JOBS(W)                                                                               \
    W(DISK_JOB_DELETE, "delete", "remove everything on `on`, a sandbox's disk")                    \
    W(DISK_JOB_MEASURE, "measure", "count files and bytes of `on`")                                \
    W(DISK_JOB_LIST, "list", "write every entry of `on` to the output")                            \
    W(DISK_JOB_COPY, "copy", "copy `on` to the new disk of `target`")                              \
    W(DISK_JOB_DIFF, "diff", "what `on` has that `base` has not, and the other way round")         \
    W(DISK_JOB_PACK, "pack", "`on`, or what differs from `base`, as a layer on the data")          \
    W(DISK_JOB_UNPACK, "unpack", "the layers of the input onto the disk of `target`")              \
    W(DISK_JOB_ARCHIVE, "archive", "a folder of the view of `on` as squashfs on the data")         \
    W(DISK_JOB_UNARCHIVE, "unarchive", "the squashfs of the input as tar on the data")             \
    W(DISK_JOB_SCAN, "scan", "every entry of the view of `on`, with sums, to the output")          \
    W(DISK_JOB_READ, "read", "files of the view of `on` to the data")
enum disk_job_kind { DISK_JOBS(WORD_CONSTANT) };
enum { DISK_JOB_COUNT = 0 DISK_JOBS(WORD_ONE) };

/* "measure" */
const char *disk_job_text(enum disk_job_kind kind);

/* What a job can be given. */
enum disk_job_part {
    DISK_JOB_ON,     /* the disk that is read */
    DISK_JOB_BASE,   /* what it is compared with */
    DISK_JOB_TARGET, /* the disk that is written */
    DISK_JOB_IMAGE,  /* under the disk: the job sees a view, as the sandbox saw it */
    DISK_JOB_INPUT,
    DISK_JOB_DATA,
    DISK_JOB_PART_COUNT
};

/* Whether a job of this kind is given what it needs and nothing else: `given` has a bit (1 << part)
 * for what is there. Only the parts in `looked_at` are looked at. -1 with ERR_INVALID. Pure. */
int disk_job_check(enum disk_job_kind kind, unsigned int given, unsigned int looked_at,
                   struct error *err);

/* Whether the job sees the disk on top of an image. */
bool disk_job_is_view(enum disk_job_kind kind);
