/* Between store.c and the engines: what was asked for becomes a job, the engine runs it, and
 * store.c answers. Included by src/store only.
 *
 *     loop's thread                                     the engine
 *     store_commit -> checks, copies, seals -> ask ───► runs it, fills results or failure
 *     callback     <- unseals, counts <- answered  ◄─── hands it back, on the loop's thread
 *
 * A job owns all of its memory (its pool) and has one owner at a time; whoever has it may write. */
#pragma once

#include <stdatomic.h>

#include "base/list.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/trace.h"
#include "net/loop.h"
#include "store/keyring.h"
#include "store/store.h"

enum store_change_type {
    STORE_CHANGE_INSERT,
    STORE_CHANGE_UPDATE,
    STORE_CHANGE_PUT,
    STORE_CHANGE_DELETE,
    STORE_CHANGE_EVENT,
};

struct store_change {
    enum store_change_type type;
    enum store_kind kind;
    const struct store_value *values;         /* per column, sealed ones as they are kept */
    const struct store_condition *conditions; /* for a delete */
    size_t condition_count;
};

enum store_job_type {
    STORE_JOB_COMMIT,
    STORE_JOB_FIND,
    STORE_JOB_BACKUP,
    STORE_JOB_RESEAL,
    STORE_JOB_CLOSE,
};

struct store_job {
    struct list link;
    struct store *store;
    enum store_job_type type;
    struct pool pool;
    size_t bytes;               /* copied into it */
    uint64_t asked_ns;          /* when */
    struct trace_context trace; /* for whom; the engine runs it and it is answered as that */
    struct error failure; /* code ERR_NONE: none. One that has it already is only handed back */

    store_done *done; /* may be NULL */
    store_rows_done *rows_done;
    void *context;

    struct store_change *changes; /* STORE_JOB_COMMIT; in the pool */
    size_t change_count;
    size_t event_count;
    int64_t *cursors; /* what the engine gave the events; event_count of each */
    int64_t *sequences;

    struct store_query query;  /* STORE_JOB_FIND */
    struct store_value **rows; /* what the engine found; in the pool, sealed as kept */
    size_t row_count;

    const char *path; /* STORE_JOB_BACKUP */
};

struct store_engine {
    /* Takes these jobs (links of struct store_job), in this order, and returns at once. Each comes
     * back through store_answer, commits and queries in this order; the STORE_JOB_CLOSE, which is
     * the last, through store_gone. */
    void (*ask)(struct store *store, struct list *jobs);
};

/* Common part, first in the struct of every engine. */
struct store {
    const struct store_engine *engine;
    struct loop *loop;             /* borrowed */
    struct log *log;               /* borrowed, may be NULL */
    const struct keyring *keyring; /* borrowed */

    struct list asked;   /* of this turn, handed over at its end */
    struct list refused; /* answered at its end */
    struct loop_task turn;
    size_t queued_bytes;
    bool is_closing;

    struct store_counters counters;
    atomic_uint_fast64_t batches; /* written by the engine's thread */
    atomic_uint_fast64_t size_bytes;
};

/* Fill the common part. */
void store_init(struct store *store, const struct store_engine *engine, struct loop *loop,
                struct log *log, const struct keyring *keyring);

/* Answer one job and free it. The loop's thread, never from inside a call of store.h. */
void store_answer(struct store_job *job);

/* The close came back and the engine has stopped: answer it, and everything refused meanwhile.
 * The engine frees the store behind this. */
void store_gone(struct store *store, struct store_job *closing);

/* --- jobs (store.c, store_change.c) ----------------------------------------------------------- */

/* A job of `size` bytes (at least its own) that nobody has asked yet. */
struct store_job *store_job_new(struct store *store, enum store_job_type type, size_t size);
void store_job_free(struct store_job *job);

/* Into the queue, or among the refused. */
void store_ask(struct store_job *job);

/* Copy conditions into the job's pool. Returns 0, or -1 with the job's failure. */
int store_copy_conditions(struct store_job *job, enum store_kind kind,
                          const struct store_condition *conditions, size_t count,
                          const struct store_condition **ret_copy);

/* --- sealed columns --------------------------------------------------------------------------- */

/* Longer keys than these have no sealed columns. */
#define STORE_SEAL_CONTEXT_MAX ((size_t) 4096)

/* Append the context of one: "webhook.secret/" and the key of the row. */
void store_seal_context(enum store_kind kind, unsigned int column, const struct store_value *values,
                        struct text *out);

/* Open what is sealed in a row that was found. Returns 0, or -1 with the job's failure. */
int store_unseal_row(struct store_job *job, struct store_value *row);
