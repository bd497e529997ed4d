/* A look at a database that no program has open. */
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "store/store_sqlite.h"
#include "store/store_sqlite_connection.h"

struct sqlite_check {
    struct sqlite_connection connection;
    const struct keyring *keyring;
    struct store_sqlite_report *report;
    void (*on_problem)(void *context, const char *problem);
    void *context;
};

static void sqlite_check_tell(struct sqlite_check *check, const char *problem)
{
    check->report->problems++;
    if (check->on_problem)
        check->on_problem(check->context, problem);
}

static int check_pages(struct sqlite_check *check, struct error *err)
{
    sqlite3_stmt *statement = sqlite_statement(&check->connection, "PRAGMA integrity_check", err);
    int r;

    if (!statement)
        return -1;
    while ((r = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *line = (const char *) sqlite3_column_text(statement, 0);

        if (line && strcmp(line, "ok") != 0)
            sqlite_check_tell(check, line);
    }
    if (r != SQLITE_DONE)
        sqlite_check_tell(check, sqlite3_errmsg(check->connection.db));
    (void) sqlite3_reset(statement);
    return 0;
}

static void check_row(struct sqlite_check *check, enum store_kind kind,
                      const struct store_value *row)
{
    const struct store_table *table = store_table(kind);

    for (unsigned int i = 0; i < table->column_count; i++) {
        AUTO(text) struct text context = TEXT_INIT(STORE_SEAL_CONTEXT_MAX);
        AUTO(text) struct text plain = TEXT_INIT(STORE_VALUE_MAX + 1);
        struct error err = ERROR_INIT;

        if (!(table->columns[i].flags & STORE_SEALED) || row[i].is_null)
            continue;
        store_seal_context(kind, i, row, &context);
        check->report->secrets++;
        if (keyring_unseal(check->keyring, text_string(&context), row[i].bytes, row[i].length,
                           &plain, &err) < 0) {
            (void) error_wrap(&err, "%s", text_string(&context));
            sqlite_check_tell(check, err.message);
        } else if (!keyring_is_current(check->keyring, row[i].bytes, row[i].length)) {
            check->report->old_secrets++;
        }
        if (plain.data)
            explicit_bzero(plain.data, plain.capacity);
    }
}

static int check_secrets(struct sqlite_check *check, enum store_kind kind, struct error *err)
{
    const struct store_table *table = store_table(kind);
    AUTO(text) struct text sql = TEXT_INIT(128);
    sqlite3_stmt *statement;
    bool has_sealed = false;

    for (size_t i = 0; i < table->column_count; i++)
        has_sealed = has_sealed || table->columns[i].flags & STORE_SEALED;
    if (!has_sealed)
        return 0;
    text_format(&sql, "SELECT * FROM \"%s\"", table->name);
    statement = sqlite_statement(&check->connection, text_string(&sql), err);
    if (!statement)
        return -1;
    while (sqlite3_step(statement) == SQLITE_ROW) {
        AUTO(pool) struct pool pool = POOL_INIT;
        struct store_value row[STORE_COLUMNS_MAX];

        (void) sqlite_read_row(statement, 0, kind, &pool, row);
        check_row(check, kind, row);
    }
    (void) sqlite3_reset(statement);
    return 0;
}

static int check_kinds(struct sqlite_check *check, struct error *err)
{
    for (int kind = 0; kind < STORE_KIND_COUNT; kind++) {
        AUTO(text) struct text sql = TEXT_INIT(128);

        text_format(&sql, "SELECT count(*) FROM \"%s\"", store_table((enum store_kind) kind)->name);
        if (sqlite_number(check->connection.db, text_string(&sql), &check->report->rows[kind],
                          err) < 0)
            return -1;
        if (check->keyring && check_secrets(check, (enum store_kind) kind, err) < 0)
            return -1;
    }
    return 0;
}

/* Opening makes a log where there is none. While the lock is ours it is nobody else's. */
static void remove_empty_log(const char *path)
{
    AUTO(text) struct text log = TEXT_INIT(PATH_MAX + 8);
    struct stat status;

    text_format(&log, "%s-wal", path);
    if (stat(text_string(&log), &status) == 0 && status.st_size == 0)
        (void) unlink(text_string(&log));
}

int store_sqlite_check(const char *path, const struct keyring *keyring,
                       void (*on_problem)(void *context, const char *problem), void *context,
                       struct store_sqlite_report *ret_report, struct error *err)
{
    struct store_sqlite_report report = {.problems = 0};
    struct sqlite_check check = {
        .keyring = keyring, .report = &report, .on_problem = on_problem, .context = context};
    int64_t version;
    int r;

    if (sqlite_connection_open(&check.connection, path,
                               SQLITE_CONNECTION_UNCHECKED | SQLITE_CONNECTION_AS_IT_IS, err) < 0)
        return -1;
    r = sqlite_number(check.connection.db, "PRAGMA user_version", &version, err);
    if (r == 0)
        r = check_pages(&check, err);
    report.version = (int) version;
    /* An older file lacks tables, and a damaged one may have lost them. */
    if (r == 0 && version == sqlite_migration_newest() && !report.problems)
        r = check_kinds(&check, err);
    remove_empty_log(path);
    sqlite_connection_close(&check.connection);
    if (r == 0)
        *ret_report = report;
    return r;
}
