/* Opening: whose file it is, and what it looks like to others. */
#include <signal.h>
#include <sys/wait.h>

#include "store/store_sqlite_testing.h"
#include "sys/file/sys_file.h"

static void expect_refused(struct contract *contract, enum err_code code, const char *word)
{
    struct error err = ERROR_INIT;

    assert_null(open_path(contract, contract->path, &err));
    assert_string_equal(error_code_text(err.code), error_code_text(code));
    if (!strstr(err.message, word))
        fail_msg("'%s' is not in: %s", word, err.message);
}

static void write_file(const char *path, const char *bytes, size_t length)
{
    assert_int_equal(sys_file_replace(AT_FDCWD, path, bytes, length, 0600), 0);
}

static char *read_file(const char *path, size_t *ret_length)
{
    char *bytes = NULL;

    assert_int_equal(sys_file_read_all(AT_FDCWD, path, 64 << 20, &bytes, ret_length), 0);
    return bytes;
}

static void the_files_are_private(void **state)
{
    struct contract *contract = *state;
    AUTO(free) char *log = testing_path(&contract->folder, "db-wal");
    struct stat status;

    insert_sandbox(contract, "a", "ada", NULL);
    assert_int_equal(stat(contract->path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(stat(log, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_true(status.st_size > 0); /* it is the log that is in use */
}

static void a_newer_schema_is_refused_and_left_alone(void **state)
{
    struct contract *contract = *state;
    AUTO(free) char *before = NULL, *after = NULL;
    size_t before_length, after_length;

    insert_sandbox(contract, "a", "ada", NULL);
    close_store(contract);
    run_sql(contract->path, "PRAGMA user_version=999");
    before = read_file(contract->path, &before_length);
    expect_refused(contract, ERR_INVALID, "schema 999");
    after = read_file(contract->path, &after_length);
    assert_int_equal(before_length, after_length);
    assert_memory_equal(before, after, before_length);
}

/* The version is in the log only: the file's owner died before it was moved. */
static void a_newer_schema_in_the_log_is_refused_and_left_alone(void **state)
{
    struct contract *contract = *state;
    AUTO(free) char *log = testing_path(&contract->folder, "db-wal");
    AUTO(free) char *before = NULL, *after = NULL;
    size_t before_length, after_length;
    int status;
    pid_t pid;

    close_store(contract);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        sqlite3 *db = NULL;

        (void) sqlite3_open(contract->path, &db);
        (void) sqlite3_exec(db, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA user_version=999", NULL,
                            NULL, NULL);
        _exit(0); /* without closing */
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    before = read_file(log, &before_length);
    assert_true(before_length > 0);
    expect_refused(contract, ERR_INVALID, "schema 999");
    after = read_file(log, &after_length);
    assert_int_equal(before_length, after_length);
    assert_memory_equal(before, after, before_length);
}

static void what_is_no_database_is_refused(void **state)
{
    struct contract *contract = *state;
    char text[4096];

    close_store(contract);
    memset(text, 'x', sizeof(text));
    write_file(contract->path, text, sizeof(text));
    expect_refused(contract, ERR_INVALID, "no database");
}

static void a_database_of_others_is_refused(void **state)
{
    struct contract *contract = *state;

    close_store(contract);
    assert_int_equal(unlink(contract->path), 0);
    run_sql(contract->path, "CREATE TABLE theirs(x)");
    expect_refused(contract, ERR_INVALID, "another program");
}

static void a_missing_folder_is_an_error(void **state)
{
    struct contract *contract = *state;
    struct error err = ERROR_INIT;

    assert_null(open_path(contract, "/nowhere/at/all", &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
}

static void a_damaged_file_is_refused(void **state)
{
    struct contract *contract = *state;
    AUTO(free) char *bytes = NULL;
    size_t length;

    for (int i = 0; i < 20; i++) {
        char id[2] = {(char) ('a' + i), '\0'};

        insert_sandbox(contract, id, "ada", id);
    }
    close_store(contract);
    bytes = read_file(contract->path, &length);
    memset(bytes + 4096, 0x5a, length - 4096); /* all but the first page */
    write_file(contract->path, bytes, length);
    expect_refused(contract, ERR_INTERNAL, "damaged");
}

/* A child that has the file open until it is killed. Forked while this process has no thread. */
static pid_t open_elsewhere(struct contract *contract)
{
    int ready[2];
    char byte = 0;
    pid_t pid;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct error err = ERROR_INIT;

        die_with_parent();
        byte = open_path(contract, contract->path, &err) ? 'y' : 'n';
        (void) !write(ready[1], &byte, 1);
        for (;;)
            (void) pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    (void) close(ready[0]);
    (void) close(ready[1]);
    return pid;
}

static void a_second_process_finds_it_locked(void **state)
{
    struct contract *contract = *state;
    struct store_sqlite_report report;
    struct error err = ERROR_INIT;
    int status;
    pid_t pid;

    close_store(contract);
    pid = open_elsewhere(contract);
    expect_refused(contract, ERR_CONFLICT, "another process");
    assert_int_equal(store_sqlite_check(contract->path, NULL, NULL, NULL, &report, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    reopen(contract); /* a lock dies with its owner */
    insert_sandbox(contract, "a", "ada", NULL);
}

static void secrets_are_not_in_the_file(void **state)
{
    struct contract *contract = *state;
    const char *value = "a-rather-unmistakable-secret", *name = "a-rather-unmistakable-name";
    struct row row = secret_row("s", "ada", name, value);
    struct store_transaction *change = store_begin(contract->store);
    AUTO(free) char *bytes = NULL;
    size_t length;

    store_insert(change, STORE_SECRET, row.values);
    commit_ok(contract, change);
    close_store(contract); /* everything is in the file now */
    bytes = read_file(contract->path, &length);
    assert_null(memmem(bytes, length, value, strlen(value)));
    assert_non_null(memmem(bytes, length, name, strlen(name))); /* this test can find things */
}

static void secrets_moved_to_another_row_do_not_open(void **state)
{
    struct contract *contract = *state;
    struct store_query query = {.kind = STORE_SECRET, .limit = 10};
    struct row row = secret_row("s", "ada", "n", "value");
    struct store_transaction *change = store_begin(contract->store);

    store_insert(change, STORE_SECRET, row.values);
    commit_ok(contract, change);
    close_store(contract);
    run_sql(contract->path, "UPDATE secret SET id='t'");
    reopen(contract);
    {
        AUTO(reply) struct reply *reply = find_now(contract, &query);

        expect_code(reply, ERR_INTERNAL);
    }
}

static void a_store_in_memory_works_too(void **state)
{
    struct contract *contract = *state;
    struct error err = ERROR_INIT;

    close_store(contract);
    contract->store = open_path(contract, ":memory:", &err);
    assert_non_null(contract->store);
    insert_sandbox(contract, "a", "ada", NULL);
    {
        AUTO(reply) struct reply *all = find_all(contract, STORE_SANDBOX, STORE_SANDBOX_ID);

        assert_int_equal(all->row_count, 1);
    }
    close_store(contract);
}

static void the_log_stays_short(void **state)
{
    struct contract *contract = *state;
    AUTO(free) char *log = testing_path(&contract->folder, "db-wal");
    AUTO(free) char *spec = mem_alloc(200001);
    struct stat status;
    off_t longest = 0;

    for (int i = 0; i < 200; i++) { /* 40 MB, none of it as it was */
        struct row row = sandbox_row("a", "ada", NULL);
        struct store_transaction *change = store_begin(contract->store);

        memset(spec, 'a' + i % 26, 200000);
        row.values[STORE_SANDBOX_SPEC] = store_text(spec);
        store_put(change, STORE_SANDBOX, row.values);
        commit_ok(contract, change);
        assert_int_equal(stat(log, &status), 0);
        longest = status.st_size > longest ? status.st_size : longest;
    }
    assert_true(longest > 1 << 20);
    assert_true(longest < 8 << 20);
}

/* What counts events does not grow with every sandbox there ever was. */
static void the_count_of_a_stream_that_is_over_is_forgotten(void **state)
{
    struct contract *contract = *state;
    struct store_condition old = {STORE_EVENT_TIME, STORE_LESS, store_integer(100)};
    struct store_transaction *change = store_begin(contract->store);
    const char *streams[] = {"here", "gone", "system"};
    sqlite3_stmt *statement = NULL;
    sqlite3 *db = NULL;

    insert_sandbox(contract, "here", "ada", NULL);
    for (int i = 0; i < 3; i++) {
        struct store_event event = event_of(streams[i], 1);

        store_add_event(change, &event);
    }
    commit_ok(contract, change);
    change = store_begin(contract->store);
    store_delete(change, STORE_EVENT, &old, 1);
    commit_ok(contract, change);
    close_store(contract);
    assert_int_equal(sqlite3_open(contract->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT group_concat(stream) FROM event_sequence", -1,
                                        &statement, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    assert_string_equal(sqlite3_column_text(statement, 0), "here,system");
    (void) sqlite3_finalize(statement);
    (void) sqlite3_close(db);
}

#define MANY 64

static void put_reply(struct contract *contract, int number)
{
    static char reply[256 * 1024];
    struct store_transaction *change = store_begin(contract->store);
    char key[16];

    (void) snprintf(key, sizeof(key), "%d", number);
    store_put(change, STORE_IDEMPOTENCY,
              (const struct store_value[STORE_IDEMPOTENCY_COLUMN_COUNT]){
                  [STORE_IDEMPOTENCY_OWNER] = store_text("ada"),
                  [STORE_IDEMPOTENCY_KEY] = store_text(key),
                  [STORE_IDEMPOTENCY_REQUEST] = store_bytes("x", 1),
                  [STORE_IDEMPOTENCY_STATUS] = store_integer(200),
                  [STORE_IDEMPOTENCY_REPLY] = store_bytes(reply, sizeof(reply)),
                  [STORE_IDEMPOTENCY_CREATED] = store_integer(1 + number),
              });
    commit_ok(contract, change);
}

static void fill_and_empty(struct contract *contract)
{
    const struct store_condition all = {STORE_IDEMPOTENCY_CREATED, STORE_GREATER, store_integer(0)};
    struct store_transaction *change;

    for (int i = 0; i < MANY; i++)
        put_reply(contract, i);
    change = store_begin(contract->store);
    store_delete(change, STORE_IDEMPOTENCY, &all, 1);
    commit_ok(contract, change);
}

static uint64_t size_of_file(const struct contract *contract)
{
    struct stat status;

    assert_int_equal(stat(contract->path, &status), 0);
    return (uint64_t) status.st_size;
}

static void what_is_deleted_goes_back_to_the_disk(void **state)
{
    struct contract *contract = *state;

    fill_and_empty(contract);
    TURN_UNTIL(&contract->loop, size_of_file(contract) < (uint64_t) MANY * 256 * 1024 / 2);
    insert_sandbox(contract, "a", "ada", NULL); /* and it goes on */
}

static void a_file_from_before_learns_to_shrink(void **state)
{
    struct contract *contract = *state;

    close_store(contract);
    run_sql(contract->path, "PRAGMA journal_mode=DELETE; PRAGMA auto_vacuum=NONE; VACUUM");
    reopen(contract);
    insert_sandbox(contract, "a", "ada", NULL);
    fill_and_empty(contract);
    TURN_UNTIL(&contract->loop, size_of_file(contract) < (uint64_t) MANY * 256 * 1024 / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(the_files_are_private),
        STORE_TEST(a_newer_schema_is_refused_and_left_alone),
        STORE_TEST(a_newer_schema_in_the_log_is_refused_and_left_alone),
        STORE_TEST(what_is_no_database_is_refused),
        STORE_TEST(a_database_of_others_is_refused),
        STORE_TEST(a_missing_folder_is_an_error),
        STORE_TEST(a_damaged_file_is_refused),
        STORE_TEST(a_second_process_finds_it_locked),
        STORE_TEST(secrets_are_not_in_the_file),
        STORE_TEST(secrets_moved_to_another_row_do_not_open),
        STORE_TEST(a_store_in_memory_works_too),
        STORE_TEST(the_log_stays_short),
        STORE_TEST(what_is_deleted_goes_back_to_the_disk),
        STORE_TEST(a_file_from_before_learns_to_shrink),
        STORE_TEST(the_count_of_a_stream_that_is_over_is_forgotten),
    };

    return cmocka_run_group_tests_name("store_sqlite_file", tests, NULL, NULL);
}
