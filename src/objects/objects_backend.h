/* For those who write a store of objects: what each brings.
 *
 * A backend works on threads and may block: objects.c has the threads, the queue, the answers and
 * the checks of arguments. Several threads call one backend at the same time. Its errors are those
 * of objects.h. */
#pragma once

#include <stdatomic.h>

#include "base/pool.h"
#include "net/loop.h"
#include "objects/objects.h"

/* One call on its thread. */
struct objects_work {
    struct pool *pool;                 /* for what the answer points to; gone after the answer */
    atomic_bool *cancelled;            /* look at it between blocks of work and before every wait */
    atomic_uint_least64_t *done_bytes; /* of a put: add to it */
    atomic_uint_least64_t *retries;    /* of the handle: count them */
};

/* Where a put takes its bytes from: memory, or a descriptor. */
struct objects_source {
    const void *bytes; /* NULL: `fd` */
    size_t length;     /* of the bytes, or of the file when the call was made */
    int fd;
    bool is_stream; /* length unknown, read it to its end */
};

/* Where a get brings them: memory of the pool, or a descriptor. */
struct objects_sink {
    int fd; /* -EBADF: memory, in `bytes` and `length` */
    const void *bytes;
    size_t length;
    const uint8_t *sum; /* what the whole must have; NULL: whatever. Else ERR_UPSTREAM */
};

/* All return 0, or -1 with `err`. */
struct objects_backend {
    void *self; /* owned by the backend; end() frees it */
    int (*put)(void *self, struct objects_work *work, const char *key,
               const struct objects_source *source, const struct object_put_options *options,
               struct object_info *ret_info, struct error *err);
    int (*copy)(void *self, struct objects_work *work, const char *from, const char *to,
                struct object_info *ret_info, struct error *err);
    int (*remove)(void *self, struct objects_work *work, const char *const *keys, size_t count,
                  struct error *err);
    int (*head)(void *self, struct objects_work *work, const char *key,
                struct object_info *ret_info, struct error *err);
    /* `range` and `only_tag` may be NULL. Checks the object's own sum where it has one, and the
     * sink's. */
    int (*get)(void *self, struct objects_work *work, const char *key,
               const struct object_range *range, const char *only_tag, struct objects_sink *sink,
               struct object_info *ret_info, struct error *err);
    int (*list)(void *self, struct objects_work *work, const struct object_query *query,
                struct object_list *ret_list, struct error *err);
    int (*check)(void *self, struct objects_work *work, struct error *err);
    void (*end)(void *self);
    const char *text; /* owned by self */
};

#define OBJECTS_THREADS 8

/* A handle over a backend, which it takes. `threads` 0: OBJECTS_THREADS. */
struct objects *objects_new(struct loop *loop, const struct objects_backend *backend,
                            unsigned int threads);
