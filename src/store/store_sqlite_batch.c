#include <limits.h>

#include "base/crash_point.h"
#include "store/store_sqlite_connection.h"

/* Run a text without rows; -1 with the error. */
static int sqlite_batch_perform(struct sqlite_connection *connection, const char *sql,
                                struct error *err)
{
    sqlite3_stmt *statement = sqlite_statement(connection, sql, err);
    int r;

    if (!statement)
        return -1;
    r = sqlite3_step(statement);
    if (r != SQLITE_DONE)
        (void) sqlite_failure(connection->db, r, sql, err);
    (void) sqlite3_reset(statement);
    return r == SQLITE_DONE ? 0 : -1;
}

static bool is_open(const struct sqlite_connection *connection)
{
    return !sqlite3_get_autocommit(connection->db);
}

/* One transaction in its savepoint. Returns 0 while the batch is intact, also when this one failed
 * alone; -1 with the job's failure when the whole batch is lost with it: SQLite rolls everything
 * back where the disk is full or fails. */
static int run_commit(struct sqlite_connection *connection, struct store_job *job)
{
    struct error ignored;
    TRACE_AS(&job->trace);

    TRACE("store.commit.apply");
    if (!is_open(connection) &&
        sqlite_batch_perform(connection, "BEGIN IMMEDIATE", &job->failure) < 0)
        return 0; /* nothing else was in it */
    if (sqlite_batch_perform(connection, "SAVEPOINT one", &job->failure) == 0) {
        if (sqlite_apply(connection, job) == 0 &&
            sqlite_batch_perform(connection, "RELEASE one", &job->failure) == 0)
            return 0;
        if (is_open(connection) &&
            sqlite_batch_perform(connection, "ROLLBACK TO one", &ignored) == 0 &&
            sqlite_batch_perform(connection, "RELEASE one", &ignored) == 0)
            return 0;
    }
    return -1;
}

/* Nothing of it was kept: say so to all, and ask again what saw a state that never came to be. */
static void sqlite_batch_lose(struct sqlite_connection *connection, struct list *started,
                              const struct error *failure)
{
    if (is_open(connection))
        (void) sqlite_run(connection->db, "ROLLBACK", NULL); /* an error here means it is done */
    connection->wal_frames = INT_MAX; /* a log that starts over may be all the room there is */
    LIST_EACH (started, at) {
        struct store_job *job = CONTAINER_OF(at, struct store_job, link);

        if (job->failure.code)
            continue;
        if (job->type == STORE_JOB_COMMIT)
            job->failure = *failure;
        else
            (void) sqlite_find(connection, job);
    }
}

/* Run jobs until there are none or the transaction is lost. Returns whether anything was synced. */
static bool run_some(struct sqlite_connection *connection, struct list *jobs, struct list *started)
{
    struct error failure = ERROR_INIT;
    struct list *link;

    while ((link = list_first(jobs))) {
        struct store_job *job = CONTAINER_OF(link, struct store_job, link);

        list_remove(link);
        list_append(started, link);
        if (job->failure.code)
            continue;
        if (job->type == STORE_JOB_FIND) {
            (void) sqlite_find(connection, job);
        } else if (run_commit(connection, job) < 0) {
            failure = job->failure;
            sqlite_batch_lose(connection, started, &failure);
            return false;
        }
    }
    if (!is_open(connection))
        return false;
    CRASH_POINT("store.commit.before");
    if (sqlite_batch_perform(connection, "COMMIT", &failure) < 0) {
        sqlite_batch_lose(connection, started, &failure);
        return false;
    }
    CRASH_POINT("store.commit.after");
    return true;
}

size_t sqlite_batch_run(struct sqlite_connection *connection, struct list *jobs,
                        struct list *finished)
{
    size_t synced = 0;

    while (!list_is_empty(jobs)) {
        struct list started;
        struct list *link;

        list_init(&started);
        if (run_some(connection, jobs, &started))
            synced++;
        while ((link = list_first(&started))) {
            list_remove(link);
            list_append(finished, link);
        }
    }
    return synced;
}
