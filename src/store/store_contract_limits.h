/* The part of the contract that says no: wrong calls, a full queue, a store that closes. Included
 * by store_contract.h only. */
#pragma once

#include "store/store_testing.h"

/* --- what is refused -------------------------------------------------------------------------- */

static void wrong_rows_are_refused(void **state)
{
    struct contract *contract = *state;
    AUTO(free) char *long_text = mem_alloc(STORE_VALUE_MAX + 2);
    const struct {
        unsigned int column;
        struct store_value value;
        enum err_code code;
    } cases[] = {
        {STORE_SANDBOX_ID, store_null(), ERR_INVALID},
        {STORE_SANDBOX_STATUS, store_null(), ERR_INVALID},
        {STORE_SANDBOX_NAME, store_text("\xff"), ERR_INVALID},
        {STORE_SANDBOX_NAME, store_bytes("a\0b", 3), ERR_INVALID},
        {STORE_SANDBOX_NAME, {.length = 3}, ERR_INVALID},
        {STORE_SANDBOX_SPEC, store_bytes(long_text, STORE_VALUE_MAX + 1), ERR_TOO_LARGE},
    };

    memset(long_text, 'x', STORE_VALUE_MAX + 1);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct row row = sandbox_row("a", "ada", NULL);
        struct store_transaction *change = store_begin(contract->store);

        row.values[cases[i].column] = cases[i].value;
        store_insert(change, STORE_SANDBOX, row.values);
        commit_fails(contract, change, cases[i].code);
    }
    {
        AUTO(reply) struct reply *all = find_all(contract, STORE_SANDBOX, STORE_SANDBOX_ID);

        assert_int_equal(all->row_count, 0);
    }
}

static void wrong_changes_are_refused(void **state)
{
    struct contract *contract = *state;
    struct store_condition sealed = {STORE_SECRET_VALUE, STORE_EQUAL, store_text("x")};
    struct store_condition nothing = {STORE_SECRET_NAME, STORE_EQUAL, store_null()};
    struct row row = audit_row(1, "x");
    struct store_event event = event_of("a", 1);
    AUTO(free) char *data = mem_alloc(STORE_EVENT_DATA_MAX + 2);
    struct store_transaction *change = store_begin(contract->store);

    store_delete(change, STORE_SECRET, NULL, 0);
    commit_fails(contract, change, ERR_INVALID);
    change = store_begin(contract->store);
    store_delete(change, STORE_SECRET, &sealed, 1);
    commit_fails(contract, change, ERR_INVALID);
    change = store_begin(contract->store);
    store_delete(change, STORE_SECRET, &nothing, 1);
    commit_fails(contract, change, ERR_INVALID);
    change = store_begin(contract->store);
    store_put(change, STORE_AUDIT, row.values);
    commit_fails(contract, change, ERR_INVALID);
    change = store_begin(contract->store);
    memset(data, 'x', STORE_EVENT_DATA_MAX + 1);
    event.data = data;
    store_add_event(change, &event);
    commit_fails(contract, change, ERR_TOO_LARGE);
    change = store_begin(contract->store);
    event.data = "{}";
    for (int i = 0; i <= STORE_CHANGES_MAX; i++)
        store_add_event(change, &event);
    commit_fails(contract, change, ERR_TOO_LARGE);
}

static void wrong_queries_are_refused(void **state)
{
    struct contract *contract = *state;
    struct store_condition conditions[STORE_CONDITIONS_MAX + 1] = {
        {STORE_SECRET_VALUE, STORE_EQUAL, store_text("x")}};
    const struct store_query queries[] = {
        {.kind = STORE_SECRET, .limit = 0},
        {.kind = STORE_SECRET, .limit = STORE_ROWS_MAX + 1},
        {.kind = STORE_SECRET, .limit = 1, .order = STORE_SECRET_VALUE},
        {.kind = STORE_SECRET, .limit = 1, .order = STORE_SECRET_COLUMN_COUNT},
        {.kind = STORE_SECRET, .limit = 1, .conditions = conditions, .condition_count = 1},
        {.kind = STORE_SECRET,
         .limit = 1,
         .conditions = conditions,
         .condition_count = STORE_CONDITIONS_MAX + 1},
    };

    for (size_t i = 0; i < ARRAY_COUNT(queries); i++) {
        AUTO(reply) struct reply *reply = find_now(contract, &queries[i]);

        expect_code(reply, ERR_INVALID);
    }
}

static void a_transaction_can_be_abandoned(void **state)
{
    struct contract *contract = *state;
    struct row row = sandbox_row("a", "ada", NULL);
    struct store_transaction *change = store_begin(contract->store);

    store_insert(change, STORE_SANDBOX, row.values);
    store_abandon(change);
    store_abandon(NULL);
    {
        AUTO(reply) struct reply *all = find_all(contract, STORE_SANDBOX, STORE_SANDBOX_ID);

        assert_int_equal(all->row_count, 0);
    }
}

static void an_empty_transaction_is_kept_too(void **state)
{
    struct contract *contract = *state;

    commit_ok(contract, store_begin(contract->store));
}

/* --- the queue -------------------------------------------------------------------------------- */

static void count_reply(void *context, const struct error *failure,
                        const struct store_receipt *receipt)
{
    size_t *counts = context;

    (void) receipt;
    if (failure)
        assert_string_equal(error_code_text(failure->code), "unavailable");
    counts[failure ? 1 : 0]++;
}

static void a_full_queue_refuses_and_recovers(void **state)
{
    struct contract *contract = *state;
    struct store_counters counters;
    size_t counts[2] = {0, 0};

    for (int i = 0; i < STORE_QUEUE_MAX + 10; i++) {
        struct row row = audit_row(i, "x");
        struct store_transaction *change = store_begin(contract->store);

        store_insert(change, STORE_AUDIT, row.values);
        store_commit(change, count_reply, counts);
    }
    store_counters(contract->store, &counters);
    assert_int_equal(counters.queued, STORE_QUEUE_MAX);
    TURN_UNTIL(&contract->loop, counts[0] + counts[1] == STORE_QUEUE_MAX + 10);
    assert_int_equal(counts[1], 10);
    insert_sandbox(contract, "a", "ada", NULL);
    store_counters(contract->store, &counters);
    assert_int_equal(counters.queued, 0);
    assert_int_equal(counters.commits, STORE_QUEUE_MAX + 1);
    assert_int_equal(counters.failures, 10);
    assert_true(counters.batches < STORE_QUEUE_MAX / 10);
}

static void closing_finishes_what_was_asked(void **state)
{
    struct contract *contract = *state;
    struct row row = sandbox_row("a", "ada", NULL);
    AUTO(reply) struct reply *asked = reply_new(), *late = reply_new(), *closed = reply_new();
    struct store_transaction *change = store_begin(contract->store);

    store_insert(change, STORE_SANDBOX, row.values);
    store_commit(change, on_done, asked);
    store_close(contract->store, on_done, closed);
    closed->before = asked;
    store_commit(store_begin(contract->store), on_done, late);
    contract->store = NULL;
    TURN_UNTIL(&contract->loop, closed->times);
    expect_ok(asked);
    expect_ok(closed);
    expect_code(late, ERR_UNAVAILABLE);
    reopen(contract);
    {
        AUTO(reply) struct reply *all = find_all(contract, STORE_SANDBOX, STORE_SANDBOX_ID);

        assert_int_equal(all->row_count, 1);
    }
}

static void ask_again(struct reply *reply)
{
    struct contract *contract = reply->more;

    if (reply->times < 5) {
        store_commit(store_begin(contract->store), on_done, reply);
        return;
    }
    store_close(contract->store, NULL, NULL);
    contract->store = NULL;
}

static void answers_may_ask_and_close(void **state)
{
    struct contract *contract = *state;
    AUTO(reply) struct reply *reply = reply_new();

    reply->then = ask_again;
    reply->more = contract;
    store_commit(store_begin(contract->store), on_done, reply);
    loop_run(&contract->loop); /* ends when the store is gone */
    assert_int_equal(reply->times, 5);
}

static void an_idle_store_lets_the_loop_end(void **state)
{
    struct contract *contract = *state;

    store_commit(store_begin(contract->store), NULL, NULL);
    loop_run(&contract->loop);
    insert_sandbox(contract, "a", "ada", NULL);
}
