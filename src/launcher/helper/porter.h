/* The porter: a process of its own for what waits for the kernel, so that the launcher does not.
 *
 * A copy of a disk waits for the filesystem to commit, memory that goes to swap for as long as
 * there is memory. So it is handed over:
 *
 *     launcher ── task ──►  porter: each task in a thread, at most PORTER_THREADS at once
 *              ◄─ result ─
 *
 * Side by side, because copies that are made at the same time share commits: a hundred forks cost
 * little more than ten.
 *
 * In a plain pool disks that are in use, and those with too many layers, are copied file by file,
 * by keepers that are started here (keeper_job.h), at most PORTER_KEEPERS at once; the porter's
 * process then only syncs:
 *
 *     copy ──► sync ──► into place ──► sync ──► done
 *
 * A sandbox that runs goes on while its disk is copied there; `ready` tells when only what changed
 * meanwhile is left, and porter_finish when it stands still for that.
 *
 * The queue is in the launcher, so a porter that dies costs nothing: what it left half made is
 * deleted by the next one when it opens the pool, which then gets the tasks again. It dies with the
 * launcher. Of launchers that serve once it is started when it is needed, of others at once.
 *
 * One thread. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "launcher/instance/instance.h"
#include "launcher/keeper/keeper_job.h"
#include "launcher/loop/event_loop.h"
#include "launcher/site.h"

#define PORTER_QUEUE_MAX 1024
#define PORTER_THREADS   32
/* Tasks that the porter has at once: enough to keep its threads busy. */
#define PORTER_SENT_MAX 64
#define PORTER_KEEPERS  4
/* A task during which so many porters died is given up. */
#define PORTER_TRIES_MAX 3

/* Copies come first. */
enum porter_work {
    PORTER_SNAPSHOT,  /* the disk `source` to the snapshot `target` */
    PORTER_FORK,      /* the disk or snapshot `source` to the new disk `target` */
    PORTER_ROLL_BACK, /* the snapshot `source` instead of the disk `target` */
    PORTER_FLUSH,     /* what was written to the disk `source`, whose copy `target` follows */
    PORTER_RECLAIM,   /* the memory of the sandbox `target` */
    PORTER_SYNC       /* everything that was done so far is on disk */
};

/* "snapshot" and so on, for the trace. */
const char *porter_work_name(enum porter_work work);

struct porter_task {
    uint64_t number; /* the porter's business */
    enum porter_work work;
    enum disk_pool_set from; /* where the source is */
    struct id source, target;
    uint64_t limit;   /* of a new disk; 0: none */
    bool contents;    /* of a sync: also what was written into disks */
    int64_t since_ms; /* the source runs, and stood still at that time; 0: it does not run */
    struct trace_context trace; /* the porter's business: for whom */
    bool is_repeated; /* the porter's business: somebody died of it, it may be done already */
};

struct porter_job {
    struct list link;
    struct porter_task task;
    uint64_t bytes; /* the result of a reclaim */
    /* The source may change again; not told by all, nor of all that fail. */
    void (*taken)(struct porter_job *job);
    /* Of a source that runs: let it stand still now, then porter_finish or porter_give_up. */
    void (*ready)(struct porter_job *job);
    void (*done)(struct porter_job *job, const struct error *failure); /* NULL: success */

    /* The rest is the porter's. */
    struct porter *porter;
    enum { PORTER_NEW, PORTER_COPYING, PORTER_COPIED, PORTER_PLACED } stage; /* plain pools */
    bool is_sent;
    bool copies; /* file by file, in a plain pool */
    unsigned int tries;
    struct keeper_job keeper;
    struct event_source exit;   /* of the keeper */
    struct event_source report; /* of one whose source runs; its fd is owned */
    int input;                  /* owned: its end tells that keeper that the source stands still */
    struct error failure;       /* why the copy was given up */
};

struct porter {
    struct event_loop *loop;
    const struct site_options *options; /* borrowed */
    struct site *site;                  /* borrowed */
    const struct instance *instance;    /* borrowed */
    struct log *log;
    struct seccomp_filter filter;
    struct keeper_host keepers;
    struct list jobs; /* of porter_job, the oldest first */
    size_t count, sent, copying;
    uint64_t last_number;
    pid_t pid;
    int pidfd;                  /* owned */
    struct event_source socket; /* its fd is owned */
    struct event_timer restart;
};

/* Without a process yet. Returns 0 or -1. */
int porter_init(struct porter *porter, struct event_loop *loop, const struct site_options *options,
                struct site *site, const struct instance *instance, struct log *log,
                struct error *err);

/* Start the process now instead of with the first job. What fails is tried again later. */
void porter_warm_up(struct porter *porter);

/* Hand a job over; it stays the caller's memory until `done`, which may come from inside. */
void porter_add(struct porter *porter, struct porter_job *job);

/* The source of a job that is ready stands still, until it is `taken` or done. */
void porter_finish(struct porter_job *job);

/* It does not: the job ends, `done` comes later with this failure. */
void porter_give_up(struct porter_job *job, const struct error *failure);

bool porter_is_full(const struct porter *porter);

/* Whether a job under way stands or falls with this disk staying as it is: it must not be started,
 * nor be copied to or rolled back by another. */
bool porter_needs(const struct porter *porter, const struct id *disk);

/* Whether a job makes this snapshot or disk. */
bool porter_makes(const struct porter *porter, const struct id *target);

/* End the process and all keepers, without waiting for jobs. */
void porter_stop(struct porter *porter);
