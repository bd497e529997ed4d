/* Inside launcher/service: keeper jobs of a conversation, from request to answer.
 *
 * A job works on a disk that no sandbox uses; a copy makes the target's disk, with the limit of the
 * source, and takes it away again when the job fails. Jobs end with their conversation. */
#pragma once

#include "base/list.h"
#include "launcher/keeper_job.h"
#include "launcher/residents.h"
#include "wire/wire_channel.h"

/* At once. */
#define SERVICE_KEEPER_MAX 8

struct service_keeper {
    struct residents *residents; /* borrowed */
    struct seccomp_filter filter;
    struct keeper_host host;
    struct list jobs;
    size_t count;
    void *context;
    void (*ended)(void *context, uint64_t request, const struct wire_ending *ending,
                  const struct error *failure);
};

/* `residents` and `ended` are filled. Returns 0 or -1. */
int service_keeper_init(struct service_keeper *keeper, struct error *err);

/* End all jobs; no answers follow. */
void service_keeper_done(struct service_keeper *keeper);

/* Whether a job works on the disk of this sandbox: it cannot start meanwhile. */
bool service_keeper_uses(const struct service_keeper *keeper, const struct id *id);

/* Start a job; `ended` follows. ERR_CONFLICT: the disk is in use; ERR_UNAVAILABLE: too many jobs.
 */
int service_keeper_start(struct service_keeper *keeper, const struct wire_keeper_job *asked,
                         const int fds[static 2], uint64_t request, struct error *err);
