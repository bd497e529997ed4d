/* Inside launcher/service: keeper jobs of a conversation, from request to answer.
 *
 *     asked ──► running ──► ended, answered
 *        └──► waiting ─┘    while SERVICE_KEEPER_MAX run; in the order they came
 *
 * A job reads disks that no sandbox uses, and snapshots; any number of jobs may read one, but what
 * a job writes is its own, from when it was asked for. One that has a target makes that disk and
 * takes it away again when it fails; only `unpack` also takes one that is there. Jobs end with
 * their conversation.
 *
 * A job waits for whoever reads its output or writes its input. So a daemon that feeds one job with
 * what another makes must not need more than SERVICE_KEEPER_MAX at once for that. */
#pragma once

#include "base/list.h"
#include "launcher/keeper/keeper_job.h"
#include "launcher/residents/residents.h"
#include "wire/wire_channel.h"

/* At once, and behind them. */
#define SERVICE_KEEPER_MAX         8
#define SERVICE_KEEPER_WAITING_MAX 64

/* Descriptors of a request: input, output, data. */
#define SERVICE_KEEPER_FDS 3

struct service_keeper {
    struct residents *residents; /* borrowed */
    struct seccomp_filter filter;
    struct keeper_host host;
    struct list running, waiting; /* of service_job */
    size_t running_count, waiting_count;
    void *context;
    void (*ended)(void *context, uint64_t request, const struct ending *ending,
                  const struct error *failure);
};

/* `residents` and `ended` are filled. Returns 0 or -1. */
int service_keeper_init(struct service_keeper *keeper, struct error *err);

/* End all jobs; no answers follow. */
void service_keeper_done(struct service_keeper *keeper);

/* Whether a job works on this disk or snapshot, or waits to: it must not be started, changed or
 * deleted meanwhile. */
bool service_keeper_uses(const struct service_keeper *keeper, enum disk_set set,
                         const struct id *id);

/* Start a job, or let it wait; `ended` follows. ERR_CONFLICT: a disk is in use; ERR_UNAVAILABLE:
 * too many wait. The descriptors are borrowed for the call. */
int service_keeper_start(struct service_keeper *keeper, const struct wire_keeper_job *asked,
                         const int fds[static SERVICE_KEEPER_FDS], uint64_t request,
                         struct error *err);
