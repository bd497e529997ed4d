/* For tests of stores: a loop, a store on it, rows to put in, and calls that write down what came
 * back. Included by test programs only. */
#pragma once

#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "net/net_testing.h"
#include "store/store.h"
#include "store/store_sqlite.h"

struct contract;

struct contract_backend {
    /* Open the store; called again after a close, to find what was kept. */
    struct store *(*open)(struct contract *contract);
};

struct contract {
    const struct contract_backend *backend;
    struct loop loop;
    struct keyring *keyring;
    struct testing_folder folder;
    char path[128]; /* of the database in it */
    struct store *store;
};

/* What came back from one call. Rows are copied into the pool. */
struct reply {
    int times;
    bool failed;
    struct error failure;
    size_t event_count;
    int64_t cursors[STORE_CHANGES_MAX];
    int64_t sequences[STORE_CHANGES_MAX];
    size_t row_count;
    struct store_value *rows[STORE_ROWS_MAX];
    struct pool pool;
    enum store_kind kind;              /* of a query */
    struct reply *before;              /* must have been answered earlier */
    void (*then)(struct reply *reply); /* called from inside the answer */
    void *more;
};

static inline void note(struct reply *reply, const struct error *failure)
{
    reply->times++;
    assert_true(!reply->before || reply->before->times == 1);
    reply->failed = failure != NULL;
    if (failure) {
        assert_int_not_equal(failure->code, ERR_NONE);
        assert_true(failure->message[0] != '\0');
        reply->failure = *failure;
    }
}

static inline void on_done(void *context, const struct error *failure,
                           const struct store_receipt *receipt)
{
    struct reply *reply = context;

    note(reply, failure);
    assert_true((failure == NULL) == (receipt != NULL));
    if (receipt) {
        reply->event_count = receipt->event_count;
        for (size_t i = 0; i < receipt->event_count; i++) {
            reply->cursors[i] = receipt->cursors[i];
            reply->sequences[i] = receipt->sequences[i];
        }
    }
    if (reply->then)
        reply->then(reply);
}

static inline void on_rows(void *context, const struct error *failure,
                           const struct store_rows *rows)
{
    struct reply *reply = context;
    const struct store_table *table = store_table(reply->kind);

    note(reply, failure);
    assert_true((failure == NULL) == (rows != NULL));
    reply->row_count = rows ? rows->count : 0;
    for (size_t i = 0; i < reply->row_count; i++) {
        struct store_value *copy = pool_alloc(&reply->pool, table->column_count * sizeof(*copy));

        memcpy(copy, rows->rows[i], table->column_count * sizeof(*copy));
        for (size_t j = 0; j < table->column_count; j++) {
            if (table->columns[j].type == STORE_INTEGER || copy[j].is_null)
                continue;
            assert_int_equal(copy[j].bytes[copy[j].length], '\0');
            copy[j].bytes = pool_copy_bytes(&reply->pool, copy[j].bytes, copy[j].length);
        }
        reply->rows[i] = copy;
    }
    if (reply->then)
        reply->then(reply);
}

static inline struct reply *reply_new(void)
{
    return test_calloc(1, sizeof(struct reply));
}

static inline void reply_free(struct reply *reply)
{
    pool_done(&reply->pool);
    test_free(reply);
}

AUTO_DEFINE_PTR(reply, struct reply, reply_free);

static inline void expect_ok(const struct reply *reply)
{
    assert_int_equal(reply->times, 1);
    if (reply->failed)
        fail_msg("%s: %s", error_code_text(reply->failure.code), reply->failure.message);
}

static inline void expect_code(const struct reply *reply, enum err_code code)
{
    assert_int_equal(reply->times, 1);
    assert_true(reply->failed);
    if (reply->failure.code != code)
        fail_msg("%s instead of %s: %s", error_code_text(reply->failure.code),
                 error_code_text(code), reply->failure.message);
}

/* --- calls that wait -------------------------------------------------------------------------- */

static inline struct reply *commit_now(struct contract *contract, struct store_transaction *change)
{
    struct reply *reply = reply_new();

    store_commit(change, on_done, reply);
    assert_int_equal(reply->times, 0); /* never from inside the call */
    TURN_UNTIL(&contract->loop, reply->times);
    return reply;
}

static inline void commit_ok(struct contract *contract, struct store_transaction *change)
{
    AUTO(reply) struct reply *reply = commit_now(contract, change);

    expect_ok(reply);
}

static inline void commit_fails(struct contract *contract, struct store_transaction *change,
                                enum err_code code)
{
    AUTO(reply) struct reply *reply = commit_now(contract, change);

    expect_code(reply, code);
}

static inline struct reply *find_now(struct contract *contract, const struct store_query *query)
{
    struct reply *reply = reply_new();

    reply->kind = query->kind;
    store_find(contract->store, query, on_rows, reply);
    assert_int_equal(reply->times, 0);
    TURN_UNTIL(&contract->loop, reply->times);
    return reply;
}

/* All rows of a kind in the order of a column. */
static inline struct reply *find_all(struct contract *contract, enum store_kind kind,
                                     unsigned int order)
{
    struct store_query query = {.kind = kind, .order = order, .limit = STORE_ROWS_MAX};
    struct reply *reply = find_now(contract, &query);

    expect_ok(reply);
    return reply;
}

static inline void close_store(struct contract *contract)
{
    AUTO(reply) struct reply *reply = reply_new();

    store_close(contract->store, on_done, reply);
    contract->store = NULL;
    TURN_UNTIL(&contract->loop, reply->times);
    expect_ok(reply);
}

static inline void reopen(struct contract *contract)
{
    if (contract->store)
        close_store(contract);
    contract->store = contract->backend->open(contract);
    assert_non_null(contract->store);
}

/* --- rows ------------------------------------------------------------------------------------- */

struct row {
    struct store_value values[STORE_COLUMNS_MAX];
};

static inline struct row sandbox_row(const char *id, const char *owner, const char *name)
{
    struct row row = {.values = {
                          [STORE_SANDBOX_ID] = store_text(id),
                          [STORE_SANDBOX_OWNER] = store_text(owner),
                          [STORE_SANDBOX_NODE] = store_text("here"),
                          [STORE_SANDBOX_EPOCH] = store_integer(1),
                          [STORE_SANDBOX_NAME] = store_text(name),
                          [STORE_SANDBOX_STATUS] = store_text("running"),
                          [STORE_SANDBOX_REASON] = store_text(""),
                          [STORE_SANDBOX_SPEC] = store_text("{}"),
                          [STORE_SANDBOX_INSIDE] = store_null(),
                          [STORE_SANDBOX_CREATED] = store_integer(1000),
                          [STORE_SANDBOX_UPDATED] = store_integer(1000),
                          [STORE_SANDBOX_ACTIVE] = store_integer(1000),
                          [STORE_SANDBOX_STARTED] = store_null(),
                          [STORE_SANDBOX_STORED] = store_null(),
                      }};

    return row;
}

static inline struct row secret_row(const char *id, const char *owner, const char *name,
                                    const char *value)
{
    struct row row = {.values = {
                          [STORE_SECRET_ID] = store_text(id),
                          [STORE_SECRET_OWNER] = store_text(owner),
                          [STORE_SECRET_NAME] = store_text(name),
                          [STORE_SECRET_KIND] = store_text("git"),
                          [STORE_SECRET_VALUE] = store_bytes(value, strlen(value)),
                          [STORE_SECRET_CREATED] = store_integer(1),
                          [STORE_SECRET_UPDATED] = store_integer(1),
                      }};

    return row;
}

static inline struct row audit_row(int64_t time, const char *action)
{
    struct row row = {.values = {
                          [STORE_AUDIT_OWNER] = store_text("ada"),
                          [STORE_AUDIT_TIME] = store_integer(time),
                          [STORE_AUDIT_CREDENTIAL] = store_text(""),
                          [STORE_AUDIT_ADDRESS] = store_text("127.0.0.1"),
                          [STORE_AUDIT_REQUEST] = store_text("r"),
                          [STORE_AUDIT_ACTION] = store_text(action),
                          [STORE_AUDIT_OBJECT] = store_text(""),
                          [STORE_AUDIT_OUTCOME] = store_text("ok"),
                          [STORE_AUDIT_DETAIL] = store_text(""),
                      }};

    return row;
}

static inline struct store_event event_of(const char *stream, int64_t time)
{
    return (struct store_event){.stream = stream,
                                .owner = "ada",
                                .time_ms = time,
                                .actor = "ada",
                                .request_id = "r",
                                .type = "sandbox.created",
                                .version = 1,
                                .data = "{}"};
}

static inline void insert_sandbox(struct contract *contract, const char *id, const char *owner,
                                  const char *name)
{
    struct store_transaction *change = store_begin(contract->store);
    struct row row = sandbox_row(id, owner, name);

    store_insert(change, STORE_SANDBOX, row.values);
    commit_ok(contract, change);
}

static inline void expect_text(const struct reply *reply, size_t row, unsigned int column,
                               const char *text)
{
    assert_true(row < reply->row_count);
    if (!text) {
        assert_true(reply->rows[row][column].is_null);
        return;
    }
    assert_false(reply->rows[row][column].is_null);
    assert_int_equal(reply->rows[row][column].length, strlen(text));
    assert_string_equal(reply->rows[row][column].bytes, text);
}

static inline void expect_integer(const struct reply *reply, size_t row, unsigned int column,
                                  int64_t integer)
{
    assert_true(row < reply->row_count);
    assert_false(reply->rows[row][column].is_null);
    assert_int_equal(reply->rows[row][column].integer, integer);
}

/* --- set-up ----------------------------------------------------------------------------------- */

static inline struct contract *contract_new(const struct contract_backend *backend)
{
    struct contract *contract = test_calloc(1, sizeof(*contract));

    contract->backend = backend;
    contract->keyring = keyring_new();
    testing_folder_make(&contract->folder);
    (void) snprintf(contract->path, sizeof(contract->path), "%s/db", contract->folder.path);
    assert_int_equal(loop_init(&contract->loop, NULL), 0);
    reopen(contract);
    return contract;
}

static inline void contract_free(struct contract *contract)
{
    static const char *const names[] = {"db", "db-wal", "db-journal", "copy", "copy-wal", "keys"};

    if (contract->store)
        close_store(contract);
    loop_run(&contract->loop);
    loop_done(&contract->loop);
    keyring_free(contract->keyring);
    testing_folder_remove(&contract->folder, names, ARRAY_COUNT(names));
    test_free(contract);
}
