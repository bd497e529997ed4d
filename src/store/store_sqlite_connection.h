/* One connection to a SQLite file of ours: opened, checked, migrated; its failures as our errors;
 * its prepared statements. Included by src/store only.
 *
 * One thread at a time. */
#pragma once

#include <sqlite3.h>

#include "base/error.h"
#include "base/pool.h"
#include "base/table.h"
#include "store/store_engine.h"

enum sqlite_fixed {
    SQLITE_FIXED_INSERT,
    SQLITE_FIXED_UPDATE,
    SQLITE_FIXED_PUT,
    SQLITE_FIXED_COUNT,
};

struct sqlite_connection {
    sqlite3 *db;                                               /* owned */
    sqlite3_stmt *fixed[STORE_KIND_COUNT][SQLITE_FIXED_COUNT]; /* owned; made when first used */
    struct table others;                                       /* owned, by their text */
    bool is_shrinking;
    int wal_frames; /* in the log after the last commit: what a checkpoint would move */
};

enum sqlite_connection_flag {
    SQLITE_CONNECTION_UNCHECKED = 1 << 0, /* without PRAGMA quick_check */
    SQLITE_CONNECTION_AS_IT_IS = 1 << 1,  /* neither made nor migrated nor changed: for looking */
};

/* Open and lock `path`. Returns 0, or -1 as store_sqlite_new says. Blocks. */
int sqlite_connection_open(struct sqlite_connection *connection, const char *path,
                           unsigned int flags, struct error *err);

/* Accepts a half-opened one. */
void sqlite_connection_close(struct sqlite_connection *connection);
AUTO_DEFINE(sqlite_connection, struct sqlite_connection, sqlite_connection_close);

/* One step of giving free pages back to the disk, between two batches. Whether there is more to do;
 * a failure is tried again some time. */
bool sqlite_connection_shrink(struct sqlite_connection *connection);

/* Fill `err` for the result `code` of the last call. Returns -1. */
int sqlite_failure(sqlite3 *db, int code, const char *what, struct error *err);

/* Run text that returns nothing, or of which nothing is wanted. */
int sqlite_run(sqlite3 *db, const char *sql, struct error *err);

/* The first column of the first row of a text, as a number. */
int sqlite_number(sqlite3 *db, const char *sql, int64_t *ret_number, struct error *err);

/* --- statements ------------------------------------------------------------------------------- */

/* A prepared statement, borrowed until the next call; reset it after use. NULL with the error. */
sqlite3_stmt *sqlite_statement(struct sqlite_connection *connection, const char *sql,
                               struct error *err);

/* The one that inserts, updates or puts a whole row: parameter n + 1 is column n. */
sqlite3_stmt *sqlite_row_statement(struct sqlite_connection *connection, enum store_kind kind,
                                   enum sqlite_fixed which, struct error *err);

int sqlite_bind(sqlite3_stmt *statement, int parameter, enum store_type type,
                const struct store_value *value);

/* --- what jobs do (store_sqlite_apply.c) ------------------------------------------------------ */

/* Make the changes of a commit inside the open transaction; fills the receipt. 0, or -1 with the
 * job's failure: the caller rolls back. */
int sqlite_apply(struct sqlite_connection *connection, struct store_job *job);

/* Fill the rows of a query. 0, or -1 with the job's failure. */
int sqlite_find(struct sqlite_connection *connection, struct store_job *job);

/* Parts of these: one row changed, and one read into the pool from the columns behind `first`
 * (returns its bytes). */
int sqlite_change_row(struct sqlite_connection *connection, enum store_kind kind,
                      enum sqlite_fixed which, const struct store_value *values, struct error *err);
size_t sqlite_read_row(sqlite3_stmt *statement, int first, enum store_kind kind, struct pool *pool,
                       struct store_value *row);

/* --- store_sqlite_batch.c: several transactions, one sync ------------------------------------- */

/* Run these commits and queries in their order and move them to `finished` (links of struct
 * store_job), each with its result or its failure. What has no failure is on disk. Returns how many
 * times it synced. */
size_t sqlite_batch_run(struct sqlite_connection *connection, struct list *jobs,
                        struct list *finished);

/* --- store_sqlite_migration.c: from one schema to the next -------------------------------------
 *
 * Numbered texts that never change once they were released. The number is the file's PRAGMA
 * user_version. */

/* The file's version, 0 for an empty one. -1 with ERR_INVALID: newer than we know, or not ours. */
int sqlite_migration_look(sqlite3 *db, const char *path, struct error *err);

/* Bring a file from `version` to the newest, in one transaction. Returns 0 or -1. */
int sqlite_migrate(sqlite3 *db, int version, struct error *err);

/* The newest version. */
int sqlite_migration_newest(void);

/* --- store_sqlite_care.c: long work in small steps, so that commits go on between them ---------- */

struct sqlite_care;

/* Begin what a STORE_JOB_BACKUP or STORE_JOB_RESEAL asks for. Takes the job; never NULL. */
struct sqlite_care *sqlite_care_new(struct sqlite_connection *connection, struct store_job *job);

/* One step, of some milliseconds. The job when it is finished, with its result or failure, and the
 * care is gone; NULL: go on. Never while a transaction is open. */
struct store_job *sqlite_care_step(struct sqlite_care *care);
