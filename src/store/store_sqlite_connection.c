#include "store/store_sqlite_connection.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "sys/file/sys_file.h"

/* A predecessor that was just killed may need a moment to be gone. */
#define BUSY_TIMEOUT_MS 1000

/* The log keeps this much of its file when it starts over: overwriting is cheaper to sync than
 * growing. */
#define WAL_KEPT_BYTES "16777216"

#define AUTO_VACUUM_INCREMENTAL 2            /* SQLite's number */
#define REWRITE_PAGES_MAX       (256 * 1024) /* 1 GiB: some seconds, once */

/* Free pages are kept for what comes next, unless they are many, by number and by share. */
#define SHRINK_PAGES_MIN 1024 /* 4 MiB */
#define SHRINK_PART      4
#define SHRINK_STEP      "256"

/* --- failures --------------------------------------------------------------------------------- */

/* The errno behind a result, or 0. A commit that fails does not tell sqlite3_system_errno; the file
 * that could not be written, mostly the log, knows it. */
static int system_of(sqlite3 *db, int code)
{
    int system = 0;
    sqlite3_file *log = NULL;

    if ((code & 0xff) != SQLITE_IOERR && (code & 0xff) != SQLITE_CANTOPEN)
        return 0;
    if (code != SQLITE_IOERR_WRITE)
        return sqlite3_system_errno(db);
    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK && log &&
        log->pMethods)
        (void) log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &system);
    if (!system)
        (void) sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &system);
    return system;
}

static enum err_code sqlite_connection_code_of(int code, int system)
{
    switch (code & 0xff) {
    case SQLITE_FULL:
        return ERR_NO_SPACE;
    case SQLITE_IOERR:
        return system == ENOSPC || system == EDQUOT || system == EFBIG ? ERR_NO_SPACE
                                                                       : ERR_UNAVAILABLE;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_NOMEM:
    case SQLITE_INTERRUPT:
        return ERR_UNAVAILABLE;
    case SQLITE_TOOBIG:
        return ERR_TOO_LARGE;
    default:
        return ERR_INTERNAL;
    }
}

int sqlite_failure(sqlite3 *db, int code, const char *what, struct error *err)
{
    int system = system_of(db, code);

    return error_set(err, sqlite_connection_code_of(code, system), system, "%s: %s", what,
                     sqlite3_errmsg(db));
}

int sqlite_run(sqlite3 *db, const char *sql, struct error *err)
{
    int r = sqlite3_exec(db, sql, NULL, NULL, NULL);

    return r == SQLITE_OK ? 0 : sqlite_failure(db, r, "database", err);
}

int sqlite_number(sqlite3 *db, const char *sql, int64_t *ret_number, struct error *err)
{
    sqlite3_stmt *statement = NULL;
    int r = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);

    if (r == SQLITE_OK)
        r = sqlite3_step(statement);
    if (r == SQLITE_ROW)
        *ret_number = sqlite3_column_int64(statement, 0);
    else
        (void) sqlite_failure(db, r, "database", err);
    (void) sqlite3_finalize(statement);
    return r == SQLITE_ROW ? 0 : -1;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* SQLite takes over the mode of the file for those it puts beside it. */
static int make_file(const char *path, struct error *err)
{
    int fd = sys_file_open(AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL, 0600);
    int r = fd;

    if (fd == -EEXIST)
        return 0;
    if (fd >= 0) {
        (void) fd_close(fd);
        r = sys_file_sync_parent(AT_FDCWD, path);
    }
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "make the database '%s'", path);
    return 0;
}

/* What the first look at the file says: from here on it is ours alone. */
static int sqlite_connection_explain(sqlite3 *db, const char *path, struct error *err)
{
    switch (sqlite3_errcode(db) & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return error_set(err, ERR_CONFLICT, 0,
                         "another process has the database '%s' open; stop it first", path);
    case SQLITE_NOTADB:
        return error_set(err, ERR_INVALID, 0, "'%s' is no database", path);
    case SQLITE_CORRUPT:
        return error_set(err, ERR_INTERNAL, 0,
                         "the database '%s' is damaged (%s): put a backup in its place, or save "
                         "what is left with `sqlite3 '%s' .recover`",
                         path, sqlite3_errmsg(db), path);
    default:
        return error_wrap(err, "open '%s'", path);
    }
}

static int quick_check(sqlite3 *db, const char *path, struct error *err)
{
    sqlite3_stmt *statement = NULL;
    int r = sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &statement, NULL);

    if (r == SQLITE_OK)
        r = sqlite3_step(statement);
    if (r != SQLITE_ROW) {
        (void) sqlite_failure(db, r, "check the database", err);
        r = sqlite_connection_explain(db, path, err);
    } else if (strcmp((const char *) sqlite3_column_text(statement, 0), "ok") != 0) {
        r = error_set(err, ERR_INTERNAL, 0,
                      "the database '%s' is damaged (%.80s): put a backup in its place, or save "
                      "what is left with `sqlite3 '%s' .recover`",
                      path, (const char *) sqlite3_column_text(statement, 0), path);
    } else {
        r = 0;
    }
    (void) sqlite3_finalize(statement);
    return r;
}

static int note_frames(void *data, sqlite3 *db, const char *name, int frames)
{
    (void) db;
    (void) name;
    ((struct sqlite_connection *) data)->wal_frames = frames;
    return SQLITE_OK;
}

/* Room that was given back must be able to go back to the disk. A file from before that was so is
 * written anew, once, unless that would take long or there is no room for it: then it stays as it
 * is. Before temp_store: the copy is no matter for memory. */
static int sqlite_connection_let_shrink(sqlite3 *db, int version, struct error *err)
{
    int64_t mode, pages;

    if (version == 0)
        return sqlite_run(db, "PRAGMA auto_vacuum=INCREMENTAL", err);
    if (sqlite_number(db, "PRAGMA auto_vacuum", &mode, err) < 0 ||
        sqlite_number(db, "PRAGMA page_count", &pages, err) < 0)
        return -1;
    if (mode == AUTO_VACUUM_INCREMENTAL || pages > REWRITE_PAGES_MAX)
        return 0;
    (void) sqlite_run(db, "PRAGMA auto_vacuum=INCREMENTAL; VACUUM", NULL);
    return 0;
}

static int set_up(struct sqlite_connection *connection, const char *path, unsigned int flags,
                  struct error *err)
{
    sqlite3 *db = connection->db;
    int version;

    (void) sqlite3_busy_timeout(db, BUSY_TIMEOUT_MS);
    /* Until it is known to be ours to change, not even closing may change it. */
    (void) sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    (void) sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void) sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    /* Exclusive: nobody else reads or writes the file, and no shared memory is needed for that. */
    if (sqlite_run(db, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA cell_size_check=ON", err) < 0)
        return -1;
    version = sqlite_migration_look(db, path, err);
    if (version < 0)
        return err->code == ERR_INVALID ? -1 : sqlite_connection_explain(db, path, err);
    if (!(flags & SQLITE_CONNECTION_UNCHECKED) && quick_check(db, path, err) < 0)
        return -1;
    if (flags & SQLITE_CONNECTION_AS_IT_IS)
        return 0;
    (void) sqlite3_wal_hook(db, note_frames, connection);
    if (sqlite_connection_let_shrink(db, version, err) < 0 ||
        sqlite_run(db,
                   "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY;"
                   "PRAGMA journal_size_limit=" WAL_KEPT_BYTES "; PRAGMA cache_size=-16384",
                   err) < 0 ||
        sqlite_migrate(db, version, err) < 0)
        return sqlite_connection_explain(db, path, err);
    (void) sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    return 0;
}

int sqlite_connection_open(struct sqlite_connection *connection, const char *path,
                           unsigned int flags, struct error *err)
{
    struct error storage = ERROR_INIT;
    int r;

    *connection = (struct sqlite_connection){.others = TABLE_INIT};
    err = err ? err : &storage;
    if (strcmp(path, ":memory:") != 0 && !(flags & SQLITE_CONNECTION_AS_IT_IS) &&
        make_file(path, err) < 0)
        return -1;
    r = sqlite3_open_v2(path, &connection->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    if (r != SQLITE_OK) {
        (void) sqlite_failure(connection->db, r, path, err);
        if ((r & 0xff) == SQLITE_CANTOPEN)
            err->code = error_code_from_errno(err->system);
        sqlite_connection_close(connection);
        return -1;
    }
    if (set_up(connection, path, flags, err) < 0) {
        sqlite_connection_close(connection);
        return -1;
    }
    return 0;
}

/* --- shrinking -------------------------------------------------------------------------------- */

static int64_t sqlite_connection_pages(struct sqlite_connection *connection, const char *pragma)
{
    sqlite3_stmt *statement = sqlite_statement(connection, pragma, NULL);
    int64_t pages = 0;

    if (statement && sqlite3_step(statement) == SQLITE_ROW)
        pages = sqlite3_column_int64(statement, 0);
    if (statement)
        (void) sqlite3_reset(statement);
    return pages;
}

bool sqlite_connection_shrink(struct sqlite_connection *connection)
{
    int64_t before = sqlite_connection_pages(connection, "PRAGMA freelist_count");
    int64_t all = sqlite_connection_pages(connection, "PRAGMA page_count"), after;

    if (before < SHRINK_PAGES_MIN || (!connection->is_shrinking && before < all / SHRINK_PART))
        return connection->is_shrinking = false;
    if (sqlite_run(connection->db, "PRAGMA incremental_vacuum(" SHRINK_STEP ")", NULL) < 0)
        return connection->is_shrinking = false;
    after = sqlite_connection_pages(connection, "PRAGMA freelist_count");
    connection->is_shrinking = after < before && after >= SHRINK_PAGES_MIN;
    if (!connection->is_shrinking)
        connection->wal_frames = INT_MAX; /* the file itself is cut when the log is moved into it */
    return connection->is_shrinking;
}
