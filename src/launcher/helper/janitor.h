/* The janitor: a process of its own that takes down what is left of sandboxes.
 *
 * Removing cgroups in use, waiting for a link to go, deleting a disk: each can take the kernel tens
 * of milliseconds, and none of it is on anybody's way. So the launcher hands it over and goes on:
 *
 *     launcher ── task ──►  janitor: groups, agent's socket, mounts, disk, network, id range
 *              ◄─ result ─
 *
 * In this order: the range last, so that no other sandbox gets it too early.
 *
 * The queue is in the launcher, so a janitor that dies costs nothing: the next one gets the tasks
 * again, and every step is one that may be done twice. It is bounded: at JANITOR_QUEUE_MAX the
 * launcher starts no more sandboxes (janitor_is_full). The janitor dies with the launcher, and what
 * is left is found by the next one.
 *
 * A sandbox that is killed leaves its mounts to the janitor, too: the last one out unmounts, and
 * unmounting an overlay writes back the whole pool (2.5 ms measured, against 0.1 ms for the death
 * of the processes). The janitor lets them linger for a moment and closes many in one go, so that
 * they share one such write.
 *
 * So it is with network namespaces that lead nowhere. The kernel ends all that are given up at the
 * same time in one round, and a round has a price of its own: it waits for every CPU several times
 * and looks through the table of all connections of the host.
 *
 * In between it looks after the pool: dead accounting records, trash, freed blocks. */
#pragma once

#include <errno.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "launcher/instance/instance.h"
#include "launcher/loop/event_loop.h"
#include "launcher/site.h"

#define JANITOR_QUEUE_MAX 1024
/* Tasks that the janitor has at once: enough to keep it busy. */
#define JANITOR_SENT_MAX 256
/* Namespaces of deleted sandboxes that are kept to be closed together, and for how long. The
 * filesystem commits once or twice for all of them: twice as long is 3 % less work for short
 * sandboxes, four times as long no less. */
#define JANITOR_LINGER_MAX 256
#define JANITOR_LINGER_MS  400
/* A task during which so many janitors died is given up. */
#define JANITOR_TRIES_MAX 3

struct janitor_task {
    uint64_t number;
    struct id id;
    bool keep_disk;
    bool has_network;
    struct trace_context trace; /* for whom; the janitor's business, too */
};

/* Namespaces of a dead sandbox, or -EBADF; owned. */
struct janitor_hold {
    int mounts;
    int network; /* only with mounts, and only one without a link to the router */
};

#define JANITOR_HOLD_INIT                                                                          \
    {                                                                                              \
        .mounts = -EBADF, .network = -EBADF                                                        \
    }

struct janitor_job {
    struct list link;
    struct janitor_task task; /* the number is the janitor's business */
    struct janitor_hold hold;
    bool is_sent;
    unsigned int tries;
    void (*done)(struct janitor_job *job, const struct error *failure); /* NULL: all is gone */
};

struct janitor {
    struct event_loop *loop;
    const struct site_options *site; /* borrowed */
    const struct instance *instance; /* borrowed */
    struct log *log;
    struct list jobs; /* of janitor_job; those that were sent first */
    size_t count, sent;
    uint64_t last_number;
    pid_t pid;
    int pidfd;                  /* owned */
    struct event_source socket; /* its fd is owned */
    struct event_timer restart;
};

/* Close what is held; afterwards nothing is. */
void janitor_hold_done(struct janitor_hold *hold);

/* Start the process. Returns 0 or -1. */
int janitor_start(struct janitor *janitor, struct event_loop *loop, const struct site_options *site,
                  const struct instance *instance, struct log *log, struct error *err);

/* Hand a job over; it stays the caller's memory until `done`. */
void janitor_add(struct janitor *janitor, struct janitor_job *job);

bool janitor_is_full(const struct janitor *janitor);

/* End the process, without waiting for jobs. */
void janitor_stop(struct janitor *janitor);
