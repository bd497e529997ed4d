/* What the migrations make is what store_schema.h says. */
#include "store/store_sqlite_connection.h"
#include "store/store_sqlite_migration.c"
#include "store/store_sqlite_testing.h"

/* A file as the first release left it, with a sandbox and its events in it. */
static const char *const first_release =
    "INSERT INTO owner VALUES('o', 'o', 'Ann', NULL, NULL, 'user', '{}', NULL, 1, 1);"
    "INSERT INTO sandbox VALUES('s', 'o', 'here', 3, 'demo', 'stopped', 'asked', '{\"env\":{}}',"
    "  '{\"sessions\":[]}', 10, 11, 12, NULL);"
    "INSERT INTO event(stream, sequence, owner_id, time, actor, request_id, type, version, data)"
    "  VALUES('s', 1, 'o', 10, 'o', 'r', 'sandbox.created', 1, '{}');"
    "INSERT INTO event_sequence VALUES('s', 1);";

static sqlite3 *db_at_newest(void)
{
    struct error err = ERROR_INIT;
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    if (sqlite_migrate(db, 0, &err) < 0)
        fail_msg("%s", err.message);
    return db;
}

static sqlite3_stmt *ask(sqlite3 *db, const char *sql, const char *parameter)
{
    sqlite3_stmt *statement = NULL;

    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    if (sqlite3_bind_parameter_count(statement))
        assert_int_equal(sqlite3_bind_text(statement, 1, parameter, -1, SQLITE_STATIC), SQLITE_OK);
    return statement;
}

static void expect_columns(sqlite3 *db, const struct store_table *table)
{
    static const char *const types[] = {
        [STORE_TEXT] = "TEXT", [STORE_INTEGER] = "INTEGER", [STORE_BYTES] = "BLOB"};
    sqlite3_stmt *statement =
        ask(db, "SELECT name, type, \"notnull\", pk FROM pragma_table_info(?1) ORDER BY cid",
            table->name);

    for (size_t i = 0; i < table->column_count; i++) {
        const struct store_column *column = &table->columns[i];

        assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
        assert_string_equal(sqlite3_column_text(statement, 0), column->name);
        assert_string_equal(sqlite3_column_text(statement, 1), types[column->type]);
        assert_int_equal(sqlite3_column_int(statement, 2),
                         !(column->flags & (STORE_NULL | STORE_ASSIGNED)));
        assert_int_equal(sqlite3_column_int(statement, 3) > 0, (column->flags & STORE_KEY) != 0);
    }
    assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
    (void) sqlite3_finalize(statement);
}

static void expect_index(sqlite3 *db, const struct store_table *table,
                         const struct store_index *index)
{
    sqlite3_stmt *statement =
        ask(db, "SELECT name FROM pragma_index_info(?1) ORDER BY seqno", index->name);

    for (size_t i = 0; i < index->column_count; i++) {
        assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
        assert_string_equal(sqlite3_column_text(statement, 0),
                            table->columns[index->columns[i]].name);
    }
    assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
    (void) sqlite3_finalize(statement);
}

static void expect_indexes(sqlite3 *db, const struct store_table *table)
{
    sqlite3_stmt *statement = ask(
        db, "SELECT name, \"unique\" FROM pragma_index_list(?1) WHERE origin = 'c'", table->name);
    size_t count = 0;

    while (sqlite3_step(statement) == SQLITE_ROW) {
        const char *name = (const char *) sqlite3_column_text(statement, 0);
        size_t i = 0;

        while (i < table->index_count && strcmp(table->indexes[i].name, name) != 0)
            i++;
        assert_true(i < table->index_count);
        assert_int_equal(sqlite3_column_int(statement, 1), table->indexes[i].is_unique);
        expect_index(db, table, &table->indexes[i]);
        count++;
    }
    assert_int_equal(count, table->index_count);
    (void) sqlite3_finalize(statement);
}

static void the_newest_version_is_the_schema(void **state)
{
    sqlite3 *db = db_at_newest();

    (void) state;
    for (int kind = 0; kind < STORE_KIND_COUNT; kind++) {
        expect_columns(db, store_table((enum store_kind) kind));
        expect_indexes(db, store_table((enum store_kind) kind));
    }
    (void) sqlite3_close(db);
}

static void migrating_twice_changes_nothing(void **state)
{
    sqlite3 *db = db_at_newest();
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(sqlite_migration_look(db, "x", &err), sqlite_migration_newest());
    assert_int_equal(sqlite_migrate(db, sqlite_migration_newest(), &err), 0);
    (void) sqlite3_close(db);
}

/* Only the first text, as that release ran it. */
static sqlite3 *db_of_first_release(void)
{
    AUTO(text) struct text sql = TEXT_INIT(256);
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, version_1, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, first_release, NULL, NULL, NULL), SQLITE_OK);
    text_format(&sql, "PRAGMA application_id=%d; PRAGMA user_version=1", APPLICATION_ID);
    assert_int_equal(sqlite3_exec(db, text_string(&sql), NULL, NULL, NULL), SQLITE_OK);
    return db;
}

static void a_file_of_the_first_release_becomes_the_newest_with_its_rows(void **state)
{
    sqlite3 *db = db_of_first_release();
    struct error err = ERROR_INIT;
    sqlite3_stmt *statement;

    (void) state;
    assert_int_equal(sqlite_migration_look(db, "x", &err), 1);
    if (sqlite_migrate(db, 1, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(sqlite_migration_look(db, "x", &err), sqlite_migration_newest());
    for (int kind = 0; kind < STORE_KIND_COUNT; kind++) {
        expect_columns(db, store_table((enum store_kind) kind));
        expect_indexes(db, store_table((enum store_kind) kind));
    }
    statement = ask(db, "SELECT name, spec, inside, active_at, stored FROM sandbox", "");
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    assert_string_equal(sqlite3_column_text(statement, 0), "demo");
    assert_string_equal(sqlite3_column_text(statement, 1), "{\"env\":{}}");
    assert_string_equal(sqlite3_column_text(statement, 2), "{\"sessions\":[]}");
    assert_int_equal(sqlite3_column_int(statement, 3), 12);
    assert_int_equal(sqlite3_column_type(statement, 4), SQLITE_NULL);
    assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
    (void) sqlite3_finalize(statement);
    (void) sqlite3_close(db);
}

static void a_second_migration_that_fails_leaves_the_first_release(void **state)
{
    sqlite3 *db = db_of_first_release();
    struct error err = ERROR_INIT;
    sqlite3_stmt *statement;

    (void) state;
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE workspace(x)", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite_migrate(db, 1, &err), -1);
    assert_non_null(strstr(err.message, "migration 2"));
    assert_int_equal(sqlite_migration_look(db, "x", &err), 1);
    statement = ask(db, "SELECT count(*) FROM pragma_table_info('sandbox')", "");
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(statement, 0), STORE_SANDBOX_COLUMN_COUNT - 1);
    (void) sqlite3_finalize(statement);
    (void) sqlite3_close(db);
}

static void a_migration_that_fails_leaves_nothing(void **state)
{
    struct error err = ERROR_INIT;
    sqlite3 *db = NULL;
    sqlite3_stmt *statement;

    (void) state;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    /* In the way of one of its last steps. */
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE event_sequence(x)", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite_migrate(db, 0, &err), -1);
    assert_non_null(strstr(err.message, "migration 1"));
    statement = ask(db, "SELECT count(*) FROM sqlite_schema", "");
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(statement, 0), 1);
    (void) sqlite3_finalize(statement);
    (void) sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_version_is_the_schema),
        cmocka_unit_test(migrating_twice_changes_nothing),
        cmocka_unit_test(a_file_of_the_first_release_becomes_the_newest_with_its_rows),
        cmocka_unit_test(a_second_migration_that_fails_leaves_the_first_release),
        cmocka_unit_test(a_migration_that_fails_leaves_nothing),
    };

    return cmocka_run_group_tests_name("store_sqlite_migration", tests, NULL, NULL);
}
