/* Backups, resealing, and the check of a file that nobody has open. */
#include <dirent.h>
#include <fcntl.h>

#include "store/store_sqlite_testing.h"
#include "sys/file/sys_file.h"

static struct reply *backup_now(struct contract *contract, const char *path)
{
    struct reply *reply = reply_new();

    store_backup(contract->store, path, on_done, reply);
    TURN_UNTIL(&contract->loop, reply->times);
    return reply;
}

static struct store_sqlite_report check_file(struct contract *contract, const char *path)
{
    struct store_sqlite_report report;
    struct error err = ERROR_INIT;

    if (store_sqlite_check(path, contract->keyring, NULL, NULL, &report, &err) < 0)
        fail_msg("%s", err.message);
    return report;
}

static size_t count_files(const struct contract *contract)
{
    DIR *folder = opendir(contract->folder.path);
    size_t count = 0;

    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        count += entry->d_name[0] != '.' || entry->d_name[1] == 'b'; /* .burrow-*.tmp */
    (void) closedir(folder);
    return count;
}

static void insert_many(struct contract *contract, int count, size_t size)
{
    AUTO(free) char *spec = mem_alloc(size + 1);
    struct reply *last = NULL;

    memset(spec, 'x', size);
    for (int i = 0; i < count; i++) {
        struct store_transaction *change = store_begin(contract->store);
        char id[32];
        struct row row;

        (void) snprintf(id, sizeof(id), "many-%d", i);
        row = sandbox_row(id, "ada", NULL);
        row.values[STORE_SANDBOX_SPEC] = store_text(spec);
        store_insert(change, STORE_SANDBOX, row.values);
        if (i + 1 < count) {
            store_commit(change, NULL, NULL);
            continue;
        }
        last = commit_now(contract, change);
        expect_ok(last);
        reply_free(last);
    }
}

static void a_backup_is_a_whole_database(void **state)
{
    struct contract *contract = *state;
    AUTO(free) char *copy = testing_path(&contract->folder, "copy");
    AUTO(reply) struct reply *reply = NULL;
    struct store_sqlite_report report;
    struct stat status;

    insert_many(contract, 20, 1000);
    reply = backup_now(contract, copy);
    expect_ok(reply);
    assert_int_equal(stat(copy, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    report = check_file(contract, copy);
    assert_int_equal(report.problems, 0);
    assert_int_equal(report.rows[STORE_SANDBOX], 20);
    close_store(contract);
    contract->store = open_path(contract, copy, NULL); /* and can be used in place of the other */
    assert_non_null(contract->store);
    insert_sandbox(contract, "a", "ada", NULL);
}

static void a_backup_is_never_written_over_a_file(void **state)
{
    struct contract *contract = *state;
    AUTO(free) char *copy = testing_path(&contract->folder, "copy");
    AUTO(reply) struct reply *itself = backup_now(contract, contract->path);
    AUTO(reply) struct reply *other = NULL;

    expect_code(itself, ERR_CONFLICT);
    assert_int_equal(sys_file_replace(AT_FDCWD, copy, "mine", 4, 0600), 0);
    other = backup_now(contract, copy);
    expect_code(other, ERR_CONFLICT);
    insert_sandbox(contract, "a", "ada", NULL);
    assert_int_equal(count_files(contract), 3); /* database, log, mine */
}

static void a_backup_that_fails_leaves_nothing(void **state)
{
    static const char *const paths[] = {"/nowhere/at/all", "", "/", "/dev/full/x"};
    struct contract *contract = *state;

    for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
        AUTO(reply) struct reply *reply = backup_now(contract, paths[i]);

        assert_true(reply->failed);
    }
    insert_sandbox(contract, "a", "ada", NULL);
    assert_int_equal(count_files(contract), 2);
}

/* Of what is committed while it runs a backup has a part that was there at one moment. */
static void commits_go_on_during_a_backup(void **state)
{
    struct contract *contract = *state;
    AUTO(free) char *copy = testing_path(&contract->folder, "copy");
    AUTO(reply) struct reply *backup = reply_new();
    struct store_sqlite_report report;
    int meanwhile = 0;

    insert_many(contract, 200, 100000); /* 20 MB: some twenty steps */
    store_backup(contract->store, copy, on_done, backup);
    for (; !backup->times && meanwhile < 2000; meanwhile++) {
        char id[32];

        (void) snprintf(id, sizeof(id), "meanwhile-%d", meanwhile);
        insert_sandbox(contract, id, "ada", NULL);
    }
    expect_ok(backup);
    assert_true(meanwhile > 2);
    report = check_file(contract, copy);
    assert_int_equal(report.problems, 0);
    assert_in_range(report.rows[STORE_SANDBOX], 200, 200 + meanwhile);
}

static void backups_asked_for_together_are_all_made(void **state)
{
    struct contract *contract = *state;
    AUTO(free) char *copy = testing_path(&contract->folder, "copy");
    AUTO(free) char *keys = testing_path(&contract->folder, "keys"); /* a name like any other */
    AUTO(reply) struct reply *first = reply_new(), *second = reply_new(), *closed = reply_new();

    insert_many(contract, 30, 100000);
    store_backup(contract->store, copy, on_done, first);
    store_backup(contract->store, keys, on_done, second);
    store_close(contract->store, on_done, closed); /* which waits for them */
    contract->store = NULL;
    TURN_UNTIL(&contract->loop, closed->times);
    expect_ok(first);
    expect_ok(second);
    assert_int_equal(check_file(contract, copy).rows[STORE_SANDBOX], 30);
    assert_int_equal(check_file(contract, keys).rows[STORE_SANDBOX], 30);
}

/* --- resealing -------------------------------------------------------------------------------- */

static void insert_secrets(struct contract *contract, int count)
{
    for (int i = 0; i < count; i++) {
        struct store_transaction *change = store_begin(contract->store);
        char id[32], value[32];
        struct row row;

        (void) snprintf(id, sizeof(id), "s-%03d", i);
        (void) snprintf(value, sizeof(value), "value-%d", i);
        row = secret_row(id, "ada", id, value);
        store_insert(change, STORE_SECRET, row.values);
        if (i + 1 < count)
            store_commit(change, NULL, NULL);
        else
            commit_ok(contract, change);
    }
}

static void after_resealing_only_the_newest_key_is_needed(void **state)
{
    struct contract *contract = *state;
    AUTO(close) int folder = open(contract->folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO(reply) struct reply *resealed = reply_new();
    struct store_sqlite_report report;
    struct error err = ERROR_INIT;

    insert_secrets(contract, 150); /* more than two steps */
    assert_int_equal(keyring_rotate(contract->keyring, folder, "keys", &err), 0);
    store_reseal(contract->store, on_done, resealed);
    TURN_UNTIL(&contract->loop, resealed->times);
    expect_ok(resealed);
    {
        AUTO(reply) struct reply *all = find_all(contract, STORE_SECRET, STORE_SECRET_ID);

        assert_int_equal(all->row_count, 150);
        expect_text(all, 149, STORE_SECRET_VALUE, "value-149");
        expect_text(all, 0, STORE_SECRET_NAME, "s-000");
    }
    close_store(contract);
    report = check_file(contract, contract->path);
    assert_int_equal(report.problems, 0);
    assert_int_equal(report.secrets, 150);
    assert_int_equal(report.old_secrets, 0);
}

static void a_secret_that_does_not_open_stops_resealing(void **state)
{
    struct contract *contract = *state;
    AUTO(close) int folder = open(contract->folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO(reply) struct reply *resealed = reply_new();
    struct store_sqlite_report report;
    struct error err = ERROR_INIT;

    insert_secrets(contract, 2);
    close_store(contract);
    keyring_free(contract->keyring);
    contract->keyring = keyring_new(); /* the file with the keys is lost */
    report = check_file(contract, contract->path);
    assert_int_equal(report.secrets, 2);
    assert_int_equal(report.problems, 2);
    assert_int_equal(keyring_rotate(contract->keyring, folder, "keys", &err), 0);
    reopen(contract);
    store_reseal(contract->store, on_done, resealed);
    TURN_UNTIL(&contract->loop, resealed->times);
    expect_code(resealed, ERR_INTERNAL);
    assert_non_null(strstr(resealed->failure.message, "secret.value/s-000"));
    insert_sandbox(contract, "b", "ada", NULL); /* the store goes on */
}

/* --- checking --------------------------------------------------------------------------------- */

static void tell(void *context, const char *problem)
{
    assert_true(problem[0] != '\0');
    ++*(int *) context;
}

static void the_check_finds_damage(void **state)
{
    struct contract *contract = *state;
    struct store_sqlite_report report;
    struct error err = ERROR_INIT;
    AUTO(free) char *bytes = NULL;
    size_t length;
    int told = 0;

    insert_many(contract, 50, 2000);
    close_store(contract);
    assert_int_equal(check_file(contract, contract->path).problems, 0);
    assert_int_equal(sys_file_read_all(AT_FDCWD, contract->path, 64 << 20, &bytes, &length), 0);
    memset(bytes + length - 60000, 0x5a, 20000); /* among the rows, not in the schema */
    assert_int_equal(sys_file_replace(AT_FDCWD, contract->path, bytes, length, 0600), 0);
    assert_int_equal(store_sqlite_check(contract->path, NULL, tell, &told, &report, &err), 0);
    assert_true(report.problems > 0);
    assert_int_equal(report.problems, told);
}

static void the_check_of_nothing_is_not_found(void **state)
{
    struct contract *contract = *state;
    AUTO(free) char *copy = testing_path(&contract->folder, "copy");
    struct store_sqlite_report report;
    struct error err = ERROR_INIT;

    assert_int_equal(store_sqlite_check(copy, NULL, NULL, NULL, &report, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(a_backup_is_a_whole_database),
        STORE_TEST(a_backup_is_never_written_over_a_file),
        STORE_TEST(a_backup_that_fails_leaves_nothing),
        STORE_TEST(commits_go_on_during_a_backup),
        STORE_TEST(backups_asked_for_together_are_all_made),
        STORE_TEST(after_resealing_only_the_newest_key_is_needed),
        STORE_TEST(a_secret_that_does_not_open_stops_resealing),
        STORE_TEST(the_check_finds_damage),
        STORE_TEST(the_check_of_nothing_is_not_found),
    };

    return cmocka_run_group_tests_name("store_sqlite_care", tests, NULL, NULL);
}
