/* The agent's side of the worker: keeps one alive, and sends it launches in order.
 *
 * Sandboxed programs may kill the worker whenever they like; it is forked again at once, or after
 * WORKER_REST_MS when it did not live that long. Launches wait meanwhile, at most
 * WORKER_WAITING_MAX of them. A worker that takes no launch for WORKER_STALL_MS (it was stopped) is
 * killed and replaced. When no worker can be started, those waiting fail with the reason.
 *
 * All functions belong to the loop's thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "agent/exec/launch.h"
#include "agent/exec/worker.h"
#include "base/list.h"
#include "net/loop.h"

#define WORKER_REST_MS     50
#define WORKER_STALL_MS    3000
#define WORKER_WAITING_MAX 1024

struct worker_link;

/* A launch on its way. The owner keeps it alive until on_sent or worker_link_forget. */
struct worker_errand {
    struct list link;
    struct worker_link *waiting_for; /* the link's own: NULL unless it waits */
    char *bytes;                     /* borrowed: an encoded launch, which gets a serial */
    size_t length;
    int fds[LAUNCH_DESCRIPTORS]; /* borrowed */
    /* 0: the worker's queue has it; -errno: it never will. Not called from inside
     * worker_link_send. */
    void (*on_sent)(struct worker_errand *errand, int error);
};

/* Fork the first worker. `settings` is copied, but for what is the link's own (the socket and the
 * notes); `settings->groups` is borrowed.
 * NULL with `*ret_error` (-errno) when that cannot be done. */
struct worker_link *worker_link_new(struct loop *loop, const struct worker_settings *settings,
                                    int *ret_error);

/* Send or queue. Returns 1 when it was sent already, 0 when on_sent will tell, -errno when it
 * cannot be sent: then on_sent is not called. */
int worker_link_send(struct worker_link *worker, struct worker_errand *errand);

/* Whether a worker has received the errand: one that was sent and was not may be sent again. */
bool worker_link_was_received(const struct worker_link *worker, const struct worker_errand *errand);

/* The pid of the command that an errand became, as noted before the command ran; 0: none. */
pid_t worker_link_command(const struct worker_link *worker, const struct worker_errand *errand);

/* Take an errand back that waits; safe when it does not. */
void worker_link_forget(struct worker_errand *errand);

/* Let the worker end, and free; errands that wait are forgotten. The loop must run once more. */
void worker_link_close(struct worker_link *worker);
