/* A keeper job: one burrow-keeper process that works on disks, behind walls of its own.
 *
 *      launcher                                    child
 *      id range, cgroup
 *      clone into seven namespaces  ────────────►  waits
 *      id maps, idmapped disk(s), by socket ────►  mounts them in an empty root, gives up rights,
 *                                                  loads its filter, execs the keeper
 *      pidfd readable: keeper_job_finish  ◄──────  ends
 *
 * What it has: /disk, /base and /target, those that the task speaks of, mounted nosuid, nodev,
 * noexec and read-only unless the job changes them; ids of its own, as root of which it owns what
 * is on the disks; descriptors 0, 1, 2, and 3 for a task that has data. What it has not: any other
 * file, /proc, /dev, a network, other processes, capabilities beyond the job's
 * (keeper_job_capabilities), calls beyond keeper_profile.def. So a tree that takes over the program
 * gains the disks that it was on.
 *
 * A task that works on a view has an overlay as its /disk: the disk's upper folder on top of the
 * image's lower one, both read-only, so that what was deleted is absent and what came with the
 * image is there. What an image mounts on top of its lower folder (/usr of `host`) is not.
 *
 * In a plain pool a disk may lie on layers that it shares with others (disk_pool.h): copies, diffs
 * and packs are of all of it as one tree, views have the layers above the image's, and what is
 * measured is the disk and each of its layers. A list is of the disk's own folder alone.
 *
 * Nothing here asks whether a sandbox uses the disk: the caller refuses that. One thread. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/id.h"
#include "launcher/cgroup/cgroup.h"
#include "launcher/disk/disk_pool.h"
#include "launcher/ids/id_range.h"
#include "launcher/image/image.h"
#include "launcher/wall/process_limit.h"
#include "launcher/wall/seccomp.h"
#include "sys/process/sys_process.h"

/* What all jobs of a launcher share. All borrowed; outlives them. */
struct keeper_host {
    struct disk_pool *pool;
    struct id_range_table *ids;
    struct image_registry *images;       /* NULL: there are no views */
    const struct cgroup_host *cgroups;   /* NULL: jobs have no group */
    const struct seccomp_filter *filter; /* seccomp_filter_init_keeper; NULL: none, for tests */
    const struct process_limits *limits;
    int program; /* sealed memfd of burrow-keeper, hidden with process_limit_hide_image */
};

/* What the keeper is told, and what that needs. keeper/job.h says what each writes. */
enum keeper_task {
    KEEPER_DELETE,    /* everything in the disk's folder; the folder itself stays */
    KEEPER_MEASURE,   /* one line */
    KEEPER_LIST,      /* a line per entry; paths begin with the disk's parts, "u" and "w" */
    KEEPER_COPY,      /* the upper folder, into that of `target`, which must be empty */
    KEEPER_COPY_LIVE, /* the same while somebody works on the disk: keeper/tree/tree_copy.h */
    KEEPER_DIFF,      /* two upper folders: what `disk` has otherwise than `base` */
    KEEPER_PACK,      /* the upper folder as a layer, or what is otherwise than in `base`; data */
    KEEPER_UNPACK,    /* the layer of the input onto the upper folder of `target` */
    KEEPER_ARCHIVE,   /* a folder of a view as squashfs; data */
    KEEPER_UNARCHIVE, /* the squashfs of the input as tar; no disk at all; data */
    KEEPER_SCAN,      /* a line per entry of a folder of a view, with sums */
    KEEPER_READ,      /* files of a view; data */
    KEEPER_IMPORT,    /* an archive with an image into `target`; `base`: the layers there are */
    KEEPER_IMPORT_LAYOUT, /* the same from the folder `disk` */
    KEEPER_ADD_LAYER,     /* the layer of the input into the folder `target` */
    KEEPER_TASK_COUNT
};

struct keeper_disk { /* an empty id: none */
    enum disk_pool_set set;
    struct id id;
};

/* Folders of the host in the place of disks; their ids are those on the disk. All borrowed; -EBADF:
 * none. */
struct keeper_folders {
    int disk, base, target;
};

struct keeper_spec {
    enum keeper_task task;
    struct keeper_disk disk, base, target; /* those that the task speaks of; pack: maybe a base */
    const struct keeper_folders *folders;  /* of images, in their place; borrowed for the call */
    const char *image;                     /* of a view; borrowed for the call */
    struct limits limits; /* all 0: no group. A list of a huge folder takes 64 MB */
};

/* What becomes the descriptors 0, 1 and 3 of the job. All borrowed, duplicated; -EBADF stands for
 * /dev/null. A task without data gets none, whatever is here. */
struct keeper_streams {
    int input, output, data;
};

struct keeper_job {
    struct id id; /* names its id range and its group; no sandbox's */
    pid_t pid;
    int pidfd;  /* owned: readable when the job has ended */
    int status; /* owned: for keeper_job_finish */
    int trace;  /* owned: the keeper's ring, read when it has ended; negative: it has none */
    struct cgroup cgroup;
    bool has_cgroup;
};

#define KEEPER_JOB_INIT                                                                            \
    {                                                                                              \
        .pidfd = -EBADF, .status = -EBADF, .trace = -EBADF                                         \
    }

/* Start a job. It writes lines of JSON and stops while nobody reads them; closing the reading end
 * cancels it within a moment, wherever it is. It dies with the launcher.
 *
 * Returns 0 at once, or -1 with `err` and nothing left: ERR_NOT_FOUND for an unknown disk or image,
 * ERR_INVALID for a disk too many or too few, or written onto itself, ERR_UNAVAILABLE without a
 * free id range. About a millisecond, most of it the kernel making namespaces. */
int keeper_job_start(const struct keeper_host *host, const struct keeper_spec *spec,
                     const struct keeper_streams *streams, struct keeper_job *ret_job,
                     struct error *err);

/* Whether a task has data. */
bool keeper_job_has_data(enum keeper_task task);

/* End it now. Its pidfd becomes readable soon. */
void keeper_job_cancel(struct keeper_job *job);

/* Once the pidfd is readable: reap it, give back id range and group, close the descriptors.
 *
 * 0 and how it ended: status 0 is success, 1 a failure that its last line tells. -1 with
 * ERR_CONFLICT: it still runs, nothing changed. -1 with another code: the keeper never ran, `err`
 * says why, or something could not be given back (recovery will find it); the job is over all the
 * same. With a group it takes 0.3 ms and now and then much more: the kernel's removal of groups. */
int keeper_job_finish(const struct keeper_host *host, struct keeper_job *job,
                      struct sys_exit *ret_exit, struct error *err);

/* The capabilities of a task's process over its own user namespace, as capability bits:
 *
 *     those that only read   dac_read_search   to read whatever the modes say
 *     delete                 dac_override      to change folders whatever the modes say
 *                            fowner            in sticky folders too
 *     copy, unpack, import   both of these, and fowner also for times and modes
 *                            chown             owners
 *                            fsetid            set-id bits of groups that are not ours
 *     unarchive              none
 *
 * Not mknod: whiteouts need none, other nodes are not made. Not setfcap: see
 * keeper/tree/attributes.h.
 */
uint64_t keeper_job_capabilities(enum keeper_task task);
