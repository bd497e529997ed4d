/* What the daemon keeps: rows, in one engine (SQLite; PostgreSQL behind the same header and the
 * same contract test).
 *
 * Asynchronous: a transaction is a message, its answer a callback. Nothing here blocks the caller.
 *
 *     struct store_transaction *change = store_begin(store);
 *     store_update(change, STORE_SANDBOX, values);
 *     store_add_event(change, &event);
 *     store_commit(change, on_kept, mine);
 *     -> on_kept(mine, NULL, &receipt)      it is on disk and survives power loss; all of it or,
 *                                           with a failure, nothing
 *
 * Answers come exactly once, from the loop, never from inside a call, and in the order of the
 * calls: a query sees every commit that was asked for before it. Out of turn come refusals because
 * the queue is full or the store is closing (soon, and nothing was tried), and backups and
 * resealing (late, and others do not wait for them). What a call is given is copied, what an answer
 * is given is borrowed for the call. Only the loop's thread.
 *
 * What is asked for in one turn of the loop is kept together and costs one sync.
 *
 * Failures: ERR_CONFLICT for a key or unique index that is taken (the message names the index),
 * ERR_NOT_FOUND for an update of a row that is not there, ERR_NO_SPACE for a full disk,
 * ERR_UNAVAILABLE when the queue is full (STORE_QUEUE_MAX, STORE_QUEUE_BYTES_MAX), the store is
 * closing or the engine is away: all of these may be tried again. ERR_INVALID (a value that the
 * column cannot have, text that is no UTF-8 or has a NUL, a query that makes no sense) and
 * ERR_TOO_LARGE stay failures. A secret that does not open is ERR_INTERNAL. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store_schema.h"

#define STORE_QUEUE_MAX      4096
#define STORE_ROWS_MAX       1000 /* that one query returns; more: go on behind the last */
#define STORE_VALUE_MAX      ((size_t) 1024 * 1024)
#define STORE_EVENT_DATA_MAX ((size_t) 8 * 1024)
#define STORE_CHANGES_MAX    64 /* in one transaction */

/* Memory that callers can make us hold: in one transaction, in all that waits, in one answer (whose
 * query gets ERR_TOO_LARGE: ask for fewer rows). */
#define STORE_TRANSACTION_BYTES_MAX ((size_t) 16 * 1024 * 1024)
#define STORE_QUEUE_BYTES_MAX       ((size_t) 64 * 1024 * 1024)
#define STORE_ANSWER_MAX            ((size_t) 64 * 1024 * 1024)

struct store;
struct store_transaction;

/* The type is the column's. `bytes` of text need no NUL when given, and have one when returned. */
struct store_value {
    bool is_null;
    int64_t integer;
    const char *bytes;
    size_t length;
};

struct store_value store_text(const char *text); /* NULL: null */
struct store_value store_bytes(const void *bytes, size_t length);
struct store_value store_integer(int64_t integer);
struct store_value store_null(void);

/* --- changes --------------------------------------------------------------------------------- */

struct store_transaction *store_begin(struct store *store);

/* One value per column of the kind; STORE_ASSIGNED ones are ignored. Not for events. */
void store_insert(struct store_transaction *change, enum store_kind kind,
                  const struct store_value *values);

/* All columns of the row with these key columns. Rows of a kind whose key is STORE_ASSIGNED are a
 * log and never change: ERR_INVALID, also for a put. */
void store_update(struct store_transaction *change, enum store_kind kind,
                  const struct store_value *values);

/* Like update, and insert when it is not there. */
void store_put(struct store_transaction *change, enum store_kind kind,
               const struct store_value *values);

enum store_comparison { STORE_EQUAL, STORE_LESS, STORE_GREATER, STORE_IS_NULL };

struct store_condition {
    unsigned int column;
    enum store_comparison comparison;
    struct store_value value;
};

#define STORE_CONDITIONS_MAX 4

/* All rows that meet all conditions, of which there is at least one; sealed columns have none. No
 * row is no failure. Deleting many at once makes others wait: old rows go in slices. */
void store_delete(struct store_transaction *transaction, enum store_kind kind,
                  const struct store_condition *conditions, size_t count);

/* An entry of the log; the store gives it cursor and sequence. Both go on counting when old events
 * are deleted; a stream forgets its count with its last event only when it is no sandbox any more.
 */
struct store_event {
    const char *stream;
    const char *owner;
    int64_t time_ms;
    const char *actor;
    const char *request_id;
    const char *type;
    int version;
    const char *data; /* JSON object */
};

void store_add_event(struct store_transaction *transaction, const struct store_event *event);

/* What the store gave out: the cursors and sequences of the events, in the order they were added.
 */
struct store_receipt {
    size_t event_count;
    const int64_t *cursors;
    const int64_t *sequences;
};

typedef void store_done(void *context, const struct error *failure,
                        const struct store_receipt *receipt);

/* Keep it. `done` may be NULL: failures are then only logged. The transaction is gone. */
void store_commit(struct store_transaction *change, store_done *done, void *context);

/* Forget it instead. Accepts NULL. */
void store_abandon(struct store_transaction *change);

/* --- questions ------------------------------------------------------------------------------- */

struct store_query {
    enum store_kind kind;
    const struct store_condition *conditions;
    size_t condition_count;
    unsigned int order; /* the column to sort by, then by the key */
    bool is_descending;
    size_t limit; /* 1 to STORE_ROWS_MAX */
};

struct store_rows {
    size_t count;
    const struct store_value *const *rows; /* one value per column each */
};

typedef void store_rows_done(void *context, const struct error *failure,
                             const struct store_rows *rows);

void store_find(struct store *store, const struct store_query *query, store_rows_done *done,
                void *context);

/* --- care ------------------------------------------------------------------------------------ */

/* A consistent copy while the store works, into a new file (mode 0600, never over an old one). */
void store_backup(struct store *store, const char *path, store_done *done, void *context);

/* Encrypt every sealed value with the newest key of the ring; then older keys may go. */
void store_reseal(struct store *store, store_done *done, void *context);

/* Finish what was asked for, then call `done` (may be NULL); the store is gone. */
void store_close(struct store *store, store_done *done, void *context);

struct store_counters {
    uint64_t commits, batches, failures, queries;
    size_t queued;
    uint64_t size_bytes;      /* of the database and its log */
    uint64_t commit_us_total; /* from store_commit to the answer */
};

void store_counters(const struct store *store, struct store_counters *ret_counters);
