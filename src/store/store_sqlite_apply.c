/* Jobs as statements. */
#include <string.h>

#include "store/store_sqlite_connection.h"

#define SQL_MAX ((size_t) 8 * 1024)

/* --- conflicts -------------------------------------------------------------------------------- */

/* SQLite names the columns, "UNIQUE constraint failed: sandbox.owner_id, sandbox.name"; callers
 * know indexes. */
static const char *taken_index(const struct store_table *table, const char *message)
{
    const char *columns = strstr(message, ": ");

    for (size_t i = 0; i < table->index_count && columns; i++) {
        const struct store_index *index = &table->indexes[i];
        AUTO(text) struct text names = TEXT_INIT(SQL_MAX);

        for (size_t j = 0; j < index->column_count; j++)
            text_format(&names, "%s%s.%s", j ? ", " : "", table->name,
                        table->columns[index->columns[j]].name);
        if (index->is_unique && strcmp(text_string(&names), columns + 2) == 0)
            return index->name;
    }
    return "primary key";
}

static int change_failure(struct sqlite_connection *connection, enum store_kind kind, int code,
                          struct error *err)
{
    const struct store_table *table = store_table(kind);

    if (code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY ||
        code == SQLITE_CONSTRAINT_ROWID)
        return error_set(err, ERR_CONFLICT, 0, "a %s with these values is there already (%s)",
                         table->name, taken_index(table, sqlite3_errmsg(connection->db)));
    return sqlite_failure(connection->db, code, table->name, err);
}

/* --- changes ---------------------------------------------------------------------------------- */

int sqlite_change_row(struct sqlite_connection *connection, enum store_kind kind,
                      enum sqlite_fixed which, const struct store_value *values, struct error *err)
{
    const struct store_table *table = store_table(kind);
    sqlite3_stmt *statement = sqlite_row_statement(connection, kind, which, err);
    int r = SQLITE_OK;

    if (!statement)
        return -1;
    for (size_t i = 0; i < table->column_count && r == SQLITE_OK; i++)
        if (!(table->columns[i].flags & STORE_ASSIGNED))
            r = sqlite_bind(statement, (int) i + 1, table->columns[i].type, &values[i]);
    if (r == SQLITE_OK)
        r = sqlite3_step(statement);
    if (r != SQLITE_DONE)
        (void) change_failure(connection, kind, r, err);
    (void) sqlite3_reset(statement); /* repeats the result of the step */
    if (r != SQLITE_DONE)
        return -1;
    if (which == SQLITE_FIXED_UPDATE && sqlite3_changes(connection->db) == 0)
        return error_set(err, ERR_NOT_FOUND, 0, "no such %s", table->name);
    return 0;
}

static void append_conditions(struct text *sql, const struct store_table *table,
                              const struct store_condition *conditions, size_t count)
{
    static const char *const forms[] = {
        [STORE_EQUAL] = "=?",
        [STORE_LESS] = "<?",
        [STORE_GREATER] = ">?",
        [STORE_IS_NULL] = " IS NULL",
    };

    for (size_t i = 0; i < count; i++) {
        text_format(sql, "%s\"%s\"%s", i ? " AND " : " WHERE ",
                    table->columns[conditions[i].column].name, forms[conditions[i].comparison]);
        if (conditions[i].comparison != STORE_IS_NULL)
            text_format(sql, "%zu", i + 1);
    }
}

static int bind_conditions(sqlite3_stmt *statement, const struct store_table *table,
                           const struct store_condition *conditions, size_t count)
{
    int r = SQLITE_OK;

    for (size_t i = 0; i < count && r == SQLITE_OK; i++)
        if (conditions[i].comparison != STORE_IS_NULL)
            r = sqlite_bind(statement, (int) i + 1, table->columns[conditions[i].column].type,
                            &conditions[i].value);
    return r;
}

static int delete_rows(struct sqlite_connection *connection, const struct store_change *change,
                       struct error *err)
{
    const struct store_table *table = store_table(change->kind);
    AUTO(text) struct text sql = TEXT_INIT(SQL_MAX);
    sqlite3_stmt *statement;
    int r;

    text_format(&sql, "DELETE FROM \"%s\"", table->name);
    append_conditions(&sql, table, change->conditions, change->condition_count);
    statement = sqlite_statement(connection, text_string(&sql), err);
    if (!statement)
        return -1;
    r = bind_conditions(statement, table, change->conditions, change->condition_count);
    if (r == SQLITE_OK)
        r = sqlite3_step(statement);
    if (r != SQLITE_DONE)
        (void) change_failure(connection, change->kind, r, err);
    (void) sqlite3_reset(statement);
    return r == SQLITE_DONE ? 0 : -1;
}

static int next_sequence(struct sqlite_connection *connection, const struct store_value *stream,
                         int64_t *ret_sequence, struct error *err)
{
    sqlite3_stmt *statement =
        sqlite_statement(connection,
                         "INSERT INTO event_sequence(stream,last) VALUES(?1,1)"
                         " ON CONFLICT(stream) DO UPDATE SET last=last+1 RETURNING last",
                         err);
    int r;

    if (!statement)
        return -1;
    r = sqlite_bind(statement, 1, STORE_TEXT, stream);
    if (r == SQLITE_OK)
        r = sqlite3_step(statement);
    if (r == SQLITE_ROW)
        *ret_sequence = sqlite3_column_int64(statement, 0);
    else
        (void) change_failure(connection, STORE_EVENT, r, err);
    (void) sqlite3_reset(statement);
    return r == SQLITE_ROW ? 0 : -1;
}

static int add_event(struct sqlite_connection *connection, struct store_job *job,
                     const struct store_change *change, size_t nth)
{
    struct store_value values[STORE_EVENT_COLUMN_COUNT];

    memcpy(values, change->values, sizeof(values));
    if (next_sequence(connection, &values[STORE_EVENT_STREAM], &job->sequences[nth],
                      &job->failure) < 0)
        return -1;
    values[STORE_EVENT_SEQUENCE] = store_integer(job->sequences[nth]);
    if (sqlite_change_row(connection, STORE_EVENT, SQLITE_FIXED_INSERT, values, &job->failure) < 0)
        return -1;
    job->cursors[nth] = sqlite3_last_insert_rowid(connection->db);
    return 0;
}

int sqlite_apply(struct sqlite_connection *connection, struct store_job *job)
{
    size_t events = 0;

    for (size_t i = 0; i < job->change_count; i++) {
        const struct store_change *change = &job->changes[i];
        int r = 0;

        switch (change->type) {
        case STORE_CHANGE_INSERT:
        case STORE_CHANGE_UPDATE:
        case STORE_CHANGE_PUT:
            r = sqlite_change_row(connection, change->kind, (enum sqlite_fixed) change->type,
                                  change->values, &job->failure);
            break;
        case STORE_CHANGE_DELETE:
            r = delete_rows(connection, change, &job->failure);
            break;
        case STORE_CHANGE_EVENT:
            r = add_event(connection, job, change, events++);
            break;
        }
        if (r < 0)
            return -1;
    }
    return 0;
}

/* --- queries ---------------------------------------------------------------------------------- */

static void append_select(struct text *sql, const struct store_query *query)
{
    const struct store_table *table = store_table(query->kind);
    const char *direction = query->is_descending ? " DESC" : "";

    text_append(sql, "SELECT ");
    for (size_t i = 0; i < table->column_count; i++)
        text_format(sql, "%s\"%s\"", i ? "," : "", table->columns[i].name);
    text_format(sql, " FROM \"%s\"", table->name);
    append_conditions(sql, table, query->conditions, query->condition_count);
    text_format(sql, " ORDER BY \"%s\"%s", table->columns[query->order].name, direction);
    for (size_t i = 0; i < table->column_count; i++)
        if (table->columns[i].flags & STORE_KEY && i != query->order)
            text_format(sql, ",\"%s\"%s", table->columns[i].name, direction);
    text_format(sql, " LIMIT ?%d", STORE_CONDITIONS_MAX + 1);
}

size_t sqlite_read_row(sqlite3_stmt *statement, int first, enum store_kind kind, struct pool *pool,
                       struct store_value *row)
{
    const struct store_table *table = store_table(kind);
    size_t bytes = 0;

    for (size_t i = 0; i < table->column_count; i++) {
        int column = first + (int) i;

        if (sqlite3_column_type(statement, column) == SQLITE_NULL) {
            row[i] = store_null();
        } else if (table->columns[i].type == STORE_INTEGER) {
            row[i] = store_integer(sqlite3_column_int64(statement, column));
        } else {
            const void *data = sqlite3_column_blob(statement, column);
            size_t length = (size_t) sqlite3_column_bytes(statement, column);

            row[i] = store_bytes(pool_copy_bytes(pool, data, length), length);
            bytes += length;
        }
    }
    return bytes;
}

static int read_rows(struct sqlite_connection *connection, sqlite3_stmt *statement,
                     struct store_job *job)
{
    const struct store_table *table = store_table(job->query.kind);
    size_t bytes = 0;
    int r;

    while ((r = sqlite3_step(statement)) == SQLITE_ROW) {
        struct store_value *row = pool_alloc(&job->pool, table->column_count * sizeof(*row));

        bytes += sqlite_read_row(statement, 0, job->query.kind, &job->pool, row);
        if (bytes > STORE_ANSWER_MAX)
            return error_set(&job->failure, ERR_TOO_LARGE, 0,
                             "rows of more than %zu bytes: ask for fewer", STORE_ANSWER_MAX);
        job->rows[job->row_count++] = row;
    }
    return r == SQLITE_DONE ? 0 : sqlite_failure(connection->db, r, table->name, &job->failure);
}

int sqlite_find(struct sqlite_connection *connection, struct store_job *job)
{
    const struct store_query *query = &job->query;
    AUTO(text) struct text sql = TEXT_INIT(SQL_MAX);
    sqlite3_stmt *statement;
    int r;

    job->row_count = 0;
    job->rows = pool_alloc(&job->pool, query->limit * sizeof(struct store_value *));
    append_select(&sql, query);
    statement = sqlite_statement(connection, text_string(&sql), &job->failure);
    if (!statement)
        return -1;
    r = bind_conditions(statement, store_table(query->kind), query->conditions,
                        query->condition_count);
    if (r == SQLITE_OK)
        r = sqlite3_bind_int64(statement, STORE_CONDITIONS_MAX + 1, (int64_t) query->limit);
    r = r == SQLITE_OK ? read_rows(connection, statement, job)
                       : sqlite_failure(connection->db, r, "query", &job->failure);
    (void) sqlite3_reset(statement);
    return r;
}
