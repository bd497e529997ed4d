/* Our own stdin, stdout and stderr in a loop: whatever they are, without blocking.
 *
 * Pipes and terminals are shared with other programs (the shell, the rest of a pipeline), who must
 * not find them non-blocking; so they are opened once more through /proc. What cannot be (sockets)
 * is made non-blocking and put back at the end. Files and /dev/null are always ready.
 *
 * Sources are read on request, so that a window can be kept. Sinks take everything and say when the
 * producer should rest. Both are closed asynchronously: their memory may be reused in on_closed.
 * All functions belong to the loop's thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "net/byte_queue.h"
#include "net/loop.h"

#define RUN_SINK_HIGH ((size_t) 256 * 1024)
#define RUN_SINK_LOW  ((size_t) 64 * 1024)

/* What both have in common. */
struct run_stdio {
    struct loop *loop; /* borrowed */
    uv_poll_t poll;
    struct loop_task task; /* instead of the poll, for what is always ready */
    int original;          /* borrowed: the number we were given */
    int fd;                /* owned; negative once closed */
    int flags;             /* of the original, to be put back; negative: nothing to put back */
    int wanted;            /* UV_READABLE or UV_WRITABLE, or 0 */
    bool always_ready;
    bool has_poll; /* the handle must be closed */
    void (*on_ready)(struct run_stdio *stdio);
    void (*on_closed)(struct run_stdio *stdio);
};

struct run_source {
    struct run_stdio stdio;
    void (*on_ready)(struct run_source *source);
    void (*on_closed)(struct run_source *source);
};

/* Use `fd` of ours. Returns 0 or -errno; then nothing needs closing. */
int run_source_init(struct run_source *source, struct loop *loop, int fd,
                    void (*on_ready)(struct run_source *source));

/* Whether on_ready shall be called, over and over, while there is something to read. */
void run_source_want(struct run_source *source, bool wanted);

/* Read once: bytes, 0 at the end, -EAGAIN, or another -errno. */
ssize_t run_source_read(struct run_source *source, void *buffer, size_t size);

/* Close it, and the original with it (it becomes /dev/null), so that whoever writes to it learns
 * that nobody reads. */
void run_source_shut(struct run_source *source);

void run_source_close(struct run_source *source, void (*on_closed)(struct run_source *source));

struct run_sink {
    struct run_stdio stdio;
    struct byte_queue queue;
    void *owner; /* the owner's own, as is `which` */
    int which;
    bool full; /* on_drain is owed */
    int error; /* 0, or the -errno that made it useless: what is written is dropped */
    void (*on_drain)(struct run_sink *sink);   /* room again */
    void (*on_empty)(struct run_sink *sink);   /* nothing waits any more */
    void (*on_failure)(struct run_sink *sink); /* once; nothing waits any more either */
    void (*on_closed)(struct run_sink *sink);
    struct loop_task tell; /* failures are told from the loop, never inside run_sink_write */
};

/* Set the events before the first write. Returns 0 or -errno; then nothing needs closing. */
int run_sink_init(struct run_sink *sink, struct loop *loop, int fd);

void run_sink_write(struct run_sink *sink, const void *bytes, size_t length);

static inline bool run_sink_is_full(const struct run_sink *sink)
{
    return sink->full;
}

static inline bool run_sink_is_empty(const struct run_sink *sink)
{
    return byte_queue_length(&sink->queue) == 0;
}

void run_sink_close(struct run_sink *sink, void (*on_closed)(struct run_sink *sink));
