#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/store_sqlite_connection.h"
#include "sys/file/sys_file.h"

/* One step of a backup: 1 MiB of pages of 4 KiB. */
#define BACKUP_STEP_PAGES 256

/* One step of resealing. */
#define RESEAL_STEP_ROWS 64

struct sqlite_care {
    struct sqlite_connection *connection; /* borrowed */
    struct store_job *job;                /* owned */

    char *folder;                       /* owned: of the backup */
    const char *name;                   /* of the backup in it; in the job */
    char temporary[SYS_FILE_NAME_SIZE]; /* what it is called until it is whole; "": not there */
    sqlite3 *copy;                      /* owned */
    sqlite3_backup *backup;             /* owned */

    int kind; /* resealing: the table and the row it has come to */
    int64_t rowid;
};

/* --- backup ----------------------------------------------------------------------------------- */

static char *path_in(const struct sqlite_care *care, const char *name)
{
    AUTO(text) struct text path = TEXT_INIT(2 * PATH_MAX);

    text_format(&path, "%s/%s", care->folder, name);
    return text_take(&path);
}

static int split_path(struct sqlite_care *care)
{
    int r;

    care->folder = mem_alloc(PATH_MAX);
    r = sys_file_split(care->job->path, care->folder, PATH_MAX, &care->name);
    if (r < 0)
        return error_set(&care->job->failure, ERR_INVALID, r, "'%s' names no file",
                         care->job->path);
    if (faccessat(AT_FDCWD, care->job->path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return error_set(&care->job->failure, ERR_CONFLICT, 0,
                         "'%s' is there already: a backup is never written over a file",
                         care->job->path);
    return 0;
}

static int begin_backup(struct sqlite_care *care)
{
    struct error *err = &care->job->failure;
    AUTO(free) char *path = NULL;
    char name[SYS_FILE_NAME_SIZE];
    int fd, r;

    if (split_path(care) < 0)
        return -1;
    r = sys_file_temporary_name(name);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "name a file");
    path = path_in(care, name);
    fd = sys_file_open(AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return error_set(err, error_code_from_errno(fd), fd, "make a file in '%s'", care->folder);
    (void) fd_close(fd);
    memcpy(care->temporary, name, sizeof(name));
    r = sqlite3_open_v2(path, &care->copy,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    if (r != SQLITE_OK)
        return sqlite_failure(care->copy, r, "open the copy", err);
    /* It is synced once at the end, and thrown away when that does not happen. */
    if (sqlite_run(care->copy, "PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF", err) < 0)
        return -1;
    care->backup = sqlite3_backup_init(care->copy, "main", care->connection->db, "main");
    if (!care->backup)
        return sqlite_failure(care->copy, sqlite3_errcode(care->copy), "begin the copy", err);
    return 0;
}

/* A link, because rename would replace what came to be there meanwhile. */
static int publish(struct sqlite_care *care)
{
    AUTO(free) char *path = path_in(care, care->temporary);
    AUTO(close) int fd = sys_file_open(AT_FDCWD, path, O_RDWR, 0);
    struct error *err = &care->job->failure;
    int r = fd < 0 ? fd : sys_file_sync(fd);

    if (r == 0 && linkat(AT_FDCWD, path, AT_FDCWD, care->job->path, 0) < 0)
        r = -errno;
    if (r == 0 && unlink(path) == 0)
        care->temporary[0] = '\0';
    if (r == 0)
        r = sys_file_sync_parent(AT_FDCWD, care->job->path);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "keep the backup '%s'", care->job->path);
    return 0;
}

static int close_copy(struct sqlite_care *care)
{
    int r = SQLITE_OK;

    if (care->backup)
        r = sqlite3_backup_finish(care->backup);
    care->backup = NULL;
    if (r != SQLITE_OK && !care->job->failure.code)
        (void) sqlite_failure(care->copy, r, "copy the database", &care->job->failure);
    if (care->copy)
        (void) sqlite3_close(care->copy);
    care->copy = NULL;
    return care->job->failure.code ? -1 : 0;
}

/* Whether it is over. */
static bool step_backup(struct sqlite_care *care)
{
    int r;

    if (!care->backup && begin_backup(care) < 0)
        return true;
    r = sqlite3_backup_step(care->backup, BACKUP_STEP_PAGES);
    if (r == SQLITE_OK || r == SQLITE_BUSY || r == SQLITE_LOCKED)
        return false;
    if (close_copy(care) == 0)
        (void) publish(care);
    return true;
}

/* --- reseal ----------------------------------------------------------------------------------- */

static bool has_sealed(int kind)
{
    const struct store_table *table = store_table((enum store_kind) kind);

    for (size_t i = 0; i < table->column_count; i++)
        if (table->columns[i].flags & STORE_SEALED)
            return true;
    return false;
}

/* The row as the engine keeps it, with what is sealed by an old key sealed anew. 1: it changed. */
static int reseal_row(struct sqlite_care *care, struct store_value *row)
{
    const struct keyring *keyring = care->job->store->keyring;
    const struct store_table *table = store_table((enum store_kind) care->kind);
    struct error *err = &care->job->failure;
    int changed = 0;

    for (unsigned int i = 0; i < table->column_count; i++) {
        AUTO(text) struct text context = TEXT_INIT(STORE_SEAL_CONTEXT_MAX);
        AUTO(text) struct text plain = TEXT_INIT(STORE_VALUE_MAX + 1);
        AUTO(text) struct text sealed = TEXT_INIT(STORE_VALUE_MAX + KEYRING_SEAL_EXTRA);

        if (!(table->columns[i].flags & STORE_SEALED) || row[i].is_null ||
            keyring_is_current(keyring, row[i].bytes, row[i].length))
            continue;
        store_seal_context((enum store_kind) care->kind, i, row, &context);
        if (keyring_unseal(keyring, text_string(&context), row[i].bytes, row[i].length, &plain,
                           err) < 0) {
            err->code = ERR_INTERNAL; /* it is not the asker's fault */
            return error_wrap(err, "%s", text_string(&context));
        }
        keyring_seal(keyring, text_string(&context), text_string(&plain), plain.length, &sealed);
        if (plain.data)
            explicit_bzero(plain.data, plain.capacity);
        row[i] = store_bytes(pool_copy_bytes(&care->job->pool, sealed.data, sealed.length),
                             sealed.length);
        changed = 1;
    }
    return changed;
}

static int reseal_rows(struct sqlite_care *care, sqlite3_stmt *statement, int *ret_count)
{
    enum store_kind kind = (enum store_kind) care->kind;
    struct error *err = &care->job->failure;
    int r, changed;

    *ret_count = 0;
    while ((r = sqlite3_step(statement)) == SQLITE_ROW) {
        struct store_value row[STORE_COLUMNS_MAX];

        ++*ret_count;
        care->rowid = sqlite3_column_int64(statement, 0);
        (void) sqlite_read_row(statement, 1, kind, &care->job->pool, row);
        changed = reseal_row(care, row);
        if (changed < 0 || (changed && sqlite_change_row(care->connection, kind,
                                                         SQLITE_FIXED_UPDATE, row, err) < 0))
            return -1;
    }
    return r == SQLITE_DONE ? 0 : sqlite_failure(care->connection->db, r, "reseal", err);
}

/* Some rows of one table in a transaction of their own. */
static int reseal_some(struct sqlite_care *care, int *ret_count)
{
    struct sqlite_connection *connection = care->connection;
    struct error *err = &care->job->failure;
    AUTO(text) struct text sql = TEXT_INIT(256);
    sqlite3_stmt *statement;
    int r;

    text_format(&sql, "SELECT rowid,* FROM \"%s\" WHERE rowid>?1 ORDER BY rowid LIMIT %d",
                store_table((enum store_kind) care->kind)->name, RESEAL_STEP_ROWS);
    statement = sqlite_statement(connection, text_string(&sql), err);
    if (!statement || sqlite_run(connection->db, "BEGIN IMMEDIATE", err) < 0)
        return -1;
    (void) sqlite3_bind_int64(statement, 1, care->rowid);
    r = reseal_rows(care, statement, ret_count);
    (void) sqlite3_reset(statement);
    if (r == 0)
        r = sqlite_run(connection->db, "COMMIT", err);
    if (r < 0 && !sqlite3_get_autocommit(connection->db))
        (void) sqlite_run(connection->db, "ROLLBACK", NULL);
    pool_reset(&care->job->pool);
    return r;
}

/* Whether it is over. */
static bool step_reseal(struct sqlite_care *care)
{
    int count = 0;

    while (care->kind < STORE_KIND_COUNT && !has_sealed(care->kind))
        care->kind++;
    if (care->kind == STORE_KIND_COUNT || reseal_some(care, &count) < 0)
        return true;
    if (count < RESEAL_STEP_ROWS) {
        care->kind++;
        care->rowid = INT64_MIN;
    }
    return false;
}

/* --- both ------------------------------------------------------------------------------------- */

struct sqlite_care *sqlite_care_new(struct sqlite_connection *connection, struct store_job *job)
{
    struct sqlite_care *care = mem_alloc(sizeof(*care));

    care->connection = connection;
    care->job = job;
    care->rowid = INT64_MIN;
    return care;
}

struct store_job *sqlite_care_step(struct sqlite_care *care)
{
    struct store_job *job = care->job;

    if (!job->failure.code &&
        !(job->type == STORE_JOB_BACKUP ? step_backup(care) : step_reseal(care)))
        return NULL;
    (void) close_copy(care);
    if (care->temporary[0]) {
        AUTO(free) char *path = path_in(care, care->temporary);

        (void) unlink(path);
    }
    free(care->folder);
    free(care);
    return job;
}
