/* SQL made from the schema, prepared once. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/store_sqlite_connection.h"

/* Statements beside the fixed ones: one per shape of query that the program has, which is some
 * dozens. A program that makes more starts over. */
#define OTHERS_MAX 256

#define SQL_MAX ((size_t) 16 * 1024)

struct other {
    struct table_link link;
    sqlite3_stmt *statement; /* owned; knows its text */
};

static void append_names(struct text *sql, const struct store_table *table, unsigned int without)
{
    const char *comma = "";

    for (size_t i = 0; i < table->column_count; i++) {
        if (table->columns[i].flags & without)
            continue;
        text_format(sql, "%s\"%s\"", comma, table->columns[i].name);
        comma = ",";
    }
}

static void append_insert(struct text *sql, const struct store_table *table)
{
    const char *comma = "";

    text_format(sql, "INSERT INTO \"%s\"(", table->name);
    append_names(sql, table, STORE_ASSIGNED);
    text_append(sql, ") VALUES(");
    for (size_t i = 0; i < table->column_count; i++) {
        if (table->columns[i].flags & STORE_ASSIGNED)
            continue;
        text_format(sql, "%s?%zu", comma, i + 1);
        comma = ",";
    }
    text_append(sql, ")");
}

static void append_assignments(struct text *sql, const struct store_table *table)
{
    const char *comma = "";

    for (size_t i = 0; i < table->column_count; i++) {
        if (table->columns[i].flags & STORE_KEY)
            continue;
        text_format(sql, "%s\"%s\"=?%zu", comma, table->columns[i].name, i + 1);
        comma = ",";
    }
}

static void append_update(struct text *sql, const struct store_table *table)
{
    const char *word = " WHERE ";

    text_format(sql, "UPDATE \"%s\" SET ", table->name);
    append_assignments(sql, table);
    for (size_t i = 0; i < table->column_count; i++) {
        if (!(table->columns[i].flags & STORE_KEY))
            continue;
        text_format(sql, "%s\"%s\"=?%zu", word, table->columns[i].name, i + 1);
        word = " AND ";
    }
}

static void append_put(struct text *sql, const struct store_table *table)
{
    const char *comma = "";

    append_insert(sql, table);
    text_append(sql, " ON CONFLICT(");
    for (size_t i = 0; i < table->column_count; i++) {
        if (!(table->columns[i].flags & STORE_KEY))
            continue;
        text_format(sql, "%s\"%s\"", comma, table->columns[i].name);
        comma = ",";
    }
    text_append(sql, ") DO UPDATE SET ");
    append_assignments(sql, table);
}

static sqlite3_stmt *sqlite_statement_prepare(sqlite3 *db, const char *sql, struct error *err)
{
    sqlite3_stmt *statement = NULL;
    int r = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL);

    if (r != SQLITE_OK)
        (void) sqlite_failure(db, r, sql, err);
    return statement;
}

sqlite3_stmt *sqlite_row_statement(struct sqlite_connection *connection, enum store_kind kind,
                                   enum sqlite_fixed which, struct error *err)
{
    static void (*const append[])(struct text *, const struct store_table *) = {
        [SQLITE_FIXED_INSERT] = append_insert,
        [SQLITE_FIXED_UPDATE] = append_update,
        [SQLITE_FIXED_PUT] = append_put,
    };
    sqlite3_stmt **place = &connection->fixed[kind][which];
    AUTO(text) struct text sql = TEXT_INIT(SQL_MAX);

    if (!*place) {
        append[which](&sql, store_table(kind));
        *place = sqlite_statement_prepare(connection->db, text_string(&sql), err);
    }
    return *place;
}

/* --- the others ------------------------------------------------------------------------------- */

static void forget_others(struct sqlite_connection *connection)
{
    struct table *others = &connection->others;

    for (size_t i = 0; i < others->bucket_count; i++) {
        while (others->buckets[i]) {
            struct other *other = CONTAINER_OF(others->buckets[i], struct other, link);

            table_remove(others, &other->link);
            (void) sqlite3_finalize(other->statement);
            free(other);
            if (!others->buckets)
                return;
        }
    }
    table_done(others);
}

sqlite3_stmt *sqlite_statement(struct sqlite_connection *connection, const char *sql,
                               struct error *err)
{
    uint64_t hash = table_hash(0, sql, strlen(sql));
    sqlite3_stmt *statement;
    struct other *other;

    for (struct table_link *at = table_find(&connection->others, hash); at; at = table_next(at)) {
        other = CONTAINER_OF(at, struct other, link);
        if (strcmp(sqlite3_sql(other->statement), sql) == 0)
            return other->statement;
    }
    statement = sqlite_statement_prepare(connection->db, sql, err);
    if (!statement)
        return NULL;
    if (connection->others.count >= OTHERS_MAX)
        forget_others(connection);
    other = mem_alloc(sizeof(*other));
    other->statement = statement;
    other->link.hash = hash;
    table_add(&connection->others, &other->link);
    return statement;
}

void sqlite_connection_close(struct sqlite_connection *connection)
{
    for (int kind = 0; kind < STORE_KIND_COUNT; kind++)
        for (int which = 0; which < SQLITE_FIXED_COUNT; which++)
            (void) sqlite3_finalize(connection->fixed[kind][which]);
    forget_others(connection);
    (void) sqlite3_close(connection->db);
    *connection = (struct sqlite_connection){.others = TABLE_INIT};
}

int sqlite_bind(sqlite3_stmt *statement, int parameter, enum store_type type,
                const struct store_value *value)
{
    if (value->is_null)
        return sqlite3_bind_null(statement, parameter);
    if (type == STORE_INTEGER)
        return sqlite3_bind_int64(statement, parameter, value->integer);
    if (type == STORE_TEXT)
        return sqlite3_bind_text(statement, parameter, value->bytes, (int) value->length,
                                 SQLITE_STATIC);
    return sqlite3_bind_blob(statement, parameter, value->bytes, (int) value->length,
                             SQLITE_STATIC);
}
