/* The loop: one thread, many file descriptors.
 *
 * A thin layer over libuv that adds what every connection shares: one read buffer, a store of
 * spare output blocks, work put off to the end of the turn, deadlines that cost nothing to move,
 * and the log that is flushed once per turn.
 *
 * A turn: poll -> callbacks of ready descriptors -> deferred work (flush output, free objects) ->
 * flush the log -> poll. All functions belong to the loop's thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/list.h"
#include "base/log.h"
#include "base/trace.h"

/* Bytes read from a socket in one go; also the most a consumer must take in one call. */
#define LOOP_SCRATCH_SIZE (128 * 1024)

struct loop_task {
    struct list link;
    struct trace_context trace; /* of whoever deferred it; it runs as that */
    void (*run)(struct loop_task *task);
};

struct block_store;

struct loop {
    uv_loop_t uv;
    uv_prepare_t before_poll;
    uv_idle_t awake;            /* active while work is deferred, so that poll does not sleep */
    struct list deferred;       /* of loop_task */
    struct block_store *blocks; /* owned: spare output blocks */
    char *scratch;              /* owned: LOOP_SCRATCH_SIZE bytes, valid during one callback */
    struct log *log;            /* borrowed, may be NULL */
};

/* Returns 0 or -errno. `log` is borrowed and may be NULL. */
int loop_init(struct loop *loop, struct log *log);

/* Run until nothing is left to do, or loop_stop. */
void loop_run(struct loop *loop);

/* Let loop_run return after this turn. */
void loop_stop(struct loop *loop);

/* Close the loop. Every handle of others must have been closed; aborts when one is still open,
 * because its memory would be used after free. */
void loop_done(struct loop *loop);

/* A task must be initialised once before its first use. */
void loop_task_init(struct loop_task *task, void (*run)(struct loop_task *task));

/* Run `task` once at the end of this turn. Deferring it twice runs it once. */
void loop_defer(struct loop *loop, struct loop_task *task);

/* Forget a deferred task; safe when it is not deferred. */
void loop_task_cancel(struct loop_task *task);

/* Milliseconds of the loop's own clock: monotonic, read once per turn. */
static inline uint64_t loop_now(struct loop *loop)
{
    return uv_now(&loop->uv);
}

/* A deadline that may be moved on every request: moving it later is one assignment, the timer
 * behind it is touched only when it fires early or must fire sooner. */
struct deadline {
    uv_timer_t timer;
    uint64_t due; /* loop_now() value; 0: not set */
    void (*on_due)(struct deadline *deadline);
    void (*on_closed)(struct deadline *deadline);
};

void deadline_init(struct loop *loop, struct deadline *deadline,
                   void (*on_due)(struct deadline *deadline));

/* `on_due` is called once, at least `milliseconds` from now, unless moved or cleared before. */
void deadline_set(struct deadline *deadline, uint64_t milliseconds);

void deadline_clear(struct deadline *deadline);

/* The memory may be reused in `on_closed`, not before. */
void deadline_close(struct deadline *deadline, void (*on_closed)(struct deadline *deadline));
