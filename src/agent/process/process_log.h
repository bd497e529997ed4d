/* The output of a background process, as much of it as is kept: stdout and stderr in the order in
 * which they were read, the oldest dropped when there is too much.
 *
 * Any number of cursors read a log, each at its own pace. What is dropped before a cursor came to
 * it is skipped and counted for that cursor, so that its reader can say so.
 *
 * Logs share a store with a limit of its own: when all of them together are too large, the largest
 * gives way. Memory is accounted for as it is allocated. Not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/exec/exec.h"
#include "base/list.h"

/* Of one log, and of all. The agent lives on 16 MB when the sandbox's programs take the rest. */
#define PROCESS_LOG_MAX       ((size_t) 2 * 1024 * 1024)
#define PROCESS_LOG_TOTAL_MAX ((size_t) 8 * 1024 * 1024)
/* What is kept and dropped at a time, and the most that a cursor returns at once. */
#define PROCESS_LOG_PIECE ((size_t) 16 * 1024)

struct process_log_piece;

struct process_log_store {
    struct list logs; /* of process_log */
    size_t used;      /* bytes */
    size_t log_max;
    size_t total_max;
};

struct process_log {
    struct list link;
    struct process_log_store *store; /* borrowed: outlives us */
    struct list pieces;              /* of process_log_piece, oldest first */
    struct list cursors;             /* of process_log_cursor */
    size_t used;
    uint64_t total;                 /* bytes that were ever appended */
    uint64_t dropped[EXEC_OUTPUTS]; /* bytes */
};

struct process_log_cursor {
    struct list link;
    struct process_log *log;
    struct process_log_piece *piece; /* NULL: whatever is appended next */
    size_t offset;                   /* in it */
    uint64_t position;               /* bytes passed, read or not: of log->total */
    uint64_t dropped[EXEC_OUTPUTS];  /* bytes that were never read, and not yet told */
};

void process_log_store_init(struct process_log_store *store);

void process_log_init(struct process_log *log, struct process_log_store *store);

/* Forget everything. All cursors were closed. */
void process_log_done(struct process_log *log);

void process_log_append(struct process_log *log, enum exec_output which, const char *bytes,
                        size_t length);

/* Begin at the oldest byte; what was dropped before counts. */
void process_log_open(struct process_log_cursor *cursor, struct process_log *log);

/* Safe the second time. */
void process_log_close(struct process_log_cursor *cursor);

/* The next bytes, all of one output, borrowed until something is appended; the cursor moves behind
 * them. Returns false when there are none now. */
bool process_log_next(struct process_log_cursor *cursor, enum exec_output *ret_which,
                      const char **ret_bytes, size_t *ret_length);

/* How many bytes of this output were dropped before the cursor came to them, since the last time
 * this was asked. */
uint64_t process_log_take_dropped(struct process_log_cursor *cursor, enum exec_output which);
