/* A watch: one descriptor of ours and what the loop shall tell about it.
 *
 * Owns the descriptor. The memory around it may be reused in `on_closed`, not before. All
 * functions belong to the loop's thread. */
#pragma once

#include <stdbool.h>

#include "net/loop.h"

struct watch {
    uv_poll_t poll;
    int fd;     /* owned; negative once closed or given away */
    int wanted; /* UV_READABLE | UV_WRITABLE now polled for */
    bool open;  /* the handle exists: on_closed is still to come */
    void (*on_ready)(struct watch *watch);
    void (*on_closed)(struct watch *watch);
};

/* Take `fd` (non-blocking) over. Returns 0, or -errno with the descriptor still the caller's. */
int watch_init(struct watch *watch, struct loop *loop, int fd,
               void (*on_ready)(struct watch *watch), void (*on_closed)(struct watch *watch));

/* Call on_ready when the descriptor is readable (UV_READABLE), writable or both, over and over; 0:
 * never. An error on the descriptor counts as ready: the next read or write tells. */
void watch_for(struct watch *watch, int events);

/* Close the descriptor and, later, call on_closed. Does nothing the second time. */
void watch_close(struct watch *watch);

/* The same without closing the descriptor, which is the caller's again. */
int watch_release(struct watch *watch);
