/* The launcher's loop: one thread, descriptors that become ready, timers.
 *
 * epoll, and nothing else: the launcher links no library for it. One event is taken at a time, so
 * that a callback may remove any source, its own too; the kernel takes ready sources in turns.
 *
 *     static void exited(struct event_source *source, uint32_t events) { ... }
 *     sandbox->exit = (struct event_source){.fd = pidfd, .events = EPOLLIN, .ready = exited};
 *     event_loop_add(&loop, &sandbox->exit);
 *
 * Sources and timers live inside the objects that need them; the loop borrows them until they are
 * removed. One thread. -errno where something can fail. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/trace.h"

struct event_loop {
    int epoll; /* owned */
    bool stopped;
    struct list timers; /* of event_timer, the soonest first */
    const struct clock *clock;
    struct log *log; /* NULL, or borrowed: its lines are written before each wait */
};

struct event_source {
    int fd;          /* borrowed; not to be closed before it is removed */
    uint32_t events; /* EPOLLIN, EPOLLOUT, EPOLLPRI; 0: only hang-ups and errors */
    void (*ready)(struct event_source *source, uint32_t events);
    struct trace_context trace; /* for whom `ready` is called; empty unless the owner sets it */
    bool is_added;
};

struct event_timer {
    struct list link;
    uint64_t due_ns;
    void (*fire)(struct event_timer *timer);
    struct trace_context trace; /* of whoever set it; it fires as that */
    bool is_set;
};

int event_loop_init(struct event_loop *loop, const struct clock *clock);
void event_loop_done(struct event_loop *loop);

/* Run until event_loop_stop. Returns 0, or -errno when epoll itself fails. */
int event_loop_run(struct event_loop *loop);

/* Let event_loop_run return after this callback. */
void event_loop_stop(struct event_loop *loop);

/* Watch a source, or look for its changed `events`. */
int event_loop_add(struct event_loop *loop, struct event_source *source);

/* Safe on a source that is not watched. */
void event_loop_remove(struct event_loop *loop, struct event_source *source);

/* Fire once, so many milliseconds from now; a timer that is set already is moved. */
void event_timer_set(struct event_loop *loop, struct event_timer *timer, uint64_t milliseconds);
void event_timer_clear(struct event_timer *timer);
