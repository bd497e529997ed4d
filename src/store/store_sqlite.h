/* The store in one SQLite file: WAL, synchronous=FULL, a thread of its own that owns the
 * connection.
 *
 * What waits together is committed together: every transaction of a batch has its savepoint and
 * fails alone, and the batch is synced once before any of it is acknowledged. */
#pragma once

#include "base/log.h"
#include "net/loop.h"
#include "store/keyring.h"
#include "store/store.h"

struct store_sqlite_options {
    struct loop *loop;             /* borrowed */
    struct log *log;               /* borrowed, may be NULL */
    const char *path;              /* of the file; its folder exists. ":memory:" for tests */
    const struct keyring *keyring; /* borrowed: opens and makes sealed values */
    bool skip_integrity_check;     /* for tests and huge files */
};

/* Opens, checks (PRAGMA quick_check), migrates. Blocks: only at start. NULL with ERR_INVALID (a
 * newer schema, which is left as it is; a file that is no database), ERR_CONFLICT (another process
 * has it), ERR_INTERNAL (damaged: the message says how to go on), ERR_NO_SPACE. */
struct store *store_sqlite_new(const struct store_sqlite_options *options, struct error *err);

/* --- offline ---------------------------------------------------------------------------------- */

struct store_sqlite_report {
    int version;                    /* of the schema; 0: empty */
    size_t problems;                /* told one by one */
    int64_t rows[STORE_KIND_COUNT]; /* counted when the file is whole and of our version */
    size_t secrets, old_secrets;    /* all, and those that an older key sealed */
};

/* Look at every page of a file, and when a ring is given (it may be NULL) whether its secrets open.
 * Changes nothing. Returns 0 when it could look, whatever it found; -1 like store_sqlite_new:
 * ERR_CONFLICT while a daemon has it (make a backup and look at that). Blocks. */
int store_sqlite_check(const char *path, const struct keyring *keyring,
                       void (*on_problem)(void *context, const char *problem), void *context,
                       struct store_sqlite_report *ret_report, struct error *err);
