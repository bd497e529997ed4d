/* For tests of the SQLite engine: the contract's bench on a file. Included by test programs only.
 */
#pragma once

#include <signal.h>
#include <sqlite3.h>
#include <sys/prctl.h>

#include "store/store_testing.h"

static inline struct store *open_path(struct contract *contract, const char *path,
                                      struct error *err)
{
    struct store_sqlite_options options = {
        .loop = &contract->loop, .path = path, .keyring = contract->keyring};

    return store_sqlite_new(&options, err);
}

static inline struct store *open_file(struct contract *contract)
{
    struct error err = ERROR_INIT;
    struct store *store = open_path(contract, contract->path, &err);

    if (!store)
        print_error("%s\n", err.message);
    return store;
}

static inline int setup(void **state)
{
    static const struct contract_backend file = {.open = open_file};

    *state = contract_new(&file);
    return 0;
}

static inline int teardown(void **state)
{
    contract_free(*state);
    return 0;
}

/* First thing in a forked child that waits to be killed: it must not outlive a test that failed. */
static inline void die_with_parent(void)
{
    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* Run a text on a file that no store has open. */
static inline void run_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    char *message = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
