/* A handle and its calls, between the files that share them. Included by objects*.c only. */
#pragma once

#include <pthread.h>
#include <uv.h>

#include "base/list.h"
#include "base/trace.h"
#include "objects/objects_backend.h"

/* Calls of a lane wait for each other only. So small ones never wait behind large ones, and a
 * stream whose writer waits for another call of ours cannot hold that one up. */
enum objects_lane_name {
    OBJECTS_LANE_QUICK,  /* bytes in memory, names */
    OBJECTS_LANE_FILE,   /* whole files */
    OBJECTS_LANE_INLET,  /* pipes into the store: as slow as whoever is at the other end */
    OBJECTS_LANE_OUTLET, /* and out of it: for who joins one with the other */
    OBJECTS_LANE_COUNT,
};

struct objects_lane {
    struct objects *objects;
    struct list queue; /* of calls */
    size_t queued;
    pthread_cond_t more;
    pthread_t *threads; /* owned: `thread_max` places; made when they are needed */
    unsigned int thread_count, thread_max;
    unsigned int idle;
};

struct objects {
    struct loop *loop; /* borrowed */
    struct objects_backend backend;
    uv_async_t answers;
    uv_timer_t progress;
    unsigned int progress_calls; /* that want to hear of it */
    unsigned int handles;        /* of libuv, still open */
    struct list calls;           /* all that have no answer yet */
    uint64_t held_bytes;         /* of what they shall put */
    bool is_closing;
    objects_done *closed;
    void *closed_context;

    struct objects_counters counters; /* the loop's */
    atomic_uint_least64_t retries;
    atomic_size_t queued, running;

    pthread_mutex_t lock; /* over what follows, and the places of calls */
    struct objects_lane lanes[OBJECTS_LANE_COUNT];
    struct list done; /* calls on their way to the loop */
    bool is_ending;   /* threads go home */
};

struct objects_call;

/* What a call is: how its work is done on a thread, and how its answer is told. */
struct objects_kind {
    const char *name; /* in the trace */
    int (*run)(struct objects_call *call, struct objects_work *work, struct error *err);
    void (*tell)(const struct objects_call *call, const struct error *failure);
};

struct objects_call {
    struct list link; /* in a queue, or done; in neither while it runs */
    struct list open; /* in `calls` */
    struct objects *objects;
    const struct objects_kind *kind;
    struct trace_context trace; /* for whom; it runs and is answered as that */
    enum objects_lane_name lane;
    bool is_queued;
    struct pool pool;
    atomic_bool cancelled;
    atomic_uint_least64_t done_bytes;
    uint64_t told_bytes; /* of progress */

    const char *key, *to; /* all arguments live in the pool */
    const char **keys;
    size_t count;
    int fd; /* owned */
    struct objects_source source;
    struct object_put_options options;
    struct object_range range;
    bool has_range;
    const char *only_tag;
    uint8_t sum[OBJECTS_SUM_SIZE];
    struct object_query query;

    bool failed;
    struct error failure;
    struct object_info info;
    struct objects_sink sink;
    struct object_list list;

    union {
        objects_done *plain;
        objects_info_done *info;
        objects_bytes_done *bytes;
        objects_list_done *list;
    } answer; /* may be NULL */
    void *context;
};

/* A call that is not under way yet. */
struct objects_call *objects_call_new(struct objects *objects, const struct objects_kind *kind,
                                      enum objects_lane_name lane, void *context);

/* Put it into the queue of its lane; or, when `ok` is not 0, answer it with the failure it has.
 * Returns the call. */
struct objects_call *objects_call_start(struct objects_call *call, int ok);
