/* Bytes between a thread and a descriptor: files at an offset, pipes and sockets in order. For
 * backends only.
 *
 * A pipe is waited for in short steps, so that a call that is cancelled does not wait for a peer
 * that never comes; whether it is blocking does not matter. */
#pragma once

#include <sys/types.h>

#include "objects/objects_backend.h"

#define OBJECTS_BLOCK ((size_t) 256 * 1024) /* of work between two looks at `cancelled` */

/* Returns 0, or -1 with ERR_CANCELLED. */
int objects_work_go_on(const struct objects_work *work, struct error *err);

/* Fill `buffer` with what comes next; `offset` is how much came before. Returns how much came, less
 * than `size` only at the end, or -1. Adds to the work's done bytes. */
ssize_t objects_source_read(const struct objects_work *work, const struct objects_source *source,
                            void *buffer, size_t size, uint64_t offset, struct error *err);

/* Write all of it to a sink with a descriptor; `offset` is how much was written before. Returns 0,
 * or -1: ERR_CANCELLED when the pipe has no reader any more. */
int objects_sink_write(const struct objects_work *work, const struct objects_sink *sink,
                       const void *bytes, size_t length, uint64_t offset, struct error *err);
