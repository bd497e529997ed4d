/* What every store promises, as tests. A test program defines a struct contract_backend and adds
 * CONTRACT_TESTS to its table. Included by test programs only. */
#pragma once

#include "store/store_contract_limits.h"
#include "store/store_testing.h"

static void what_was_inserted_is_found(void **state)
{
    struct contract *contract = *state;

    insert_sandbox(contract, "a", "ada", "demo");
    insert_sandbox(contract, "b", "ada", NULL);
    {
        AUTO(reply) struct reply *all = find_all(contract, STORE_SANDBOX, STORE_SANDBOX_ID);

        assert_int_equal(all->row_count, 2);
        expect_text(all, 0, STORE_SANDBOX_ID, "a");
        expect_text(all, 0, STORE_SANDBOX_NAME, "demo");
        expect_text(all, 0, STORE_SANDBOX_REASON, "");
        expect_text(all, 0, STORE_SANDBOX_INSIDE, NULL);
        expect_integer(all, 0, STORE_SANDBOX_EPOCH, 1);
        expect_text(all, 1, STORE_SANDBOX_NAME, NULL);
    }
}

static void a_taken_key_is_a_conflict(void **state)
{
    struct contract *contract = *state;
    struct row row = sandbox_row("a", "bob", NULL);
    struct store_transaction *change;

    insert_sandbox(contract, "a", "ada", NULL);
    change = store_begin(contract->store);
    store_insert(change, STORE_SANDBOX, row.values);
    commit_fails(contract, change, ERR_CONFLICT);
}

static void a_taken_index_is_named(void **state)
{
    struct contract *contract = *state;
    struct row row = sandbox_row("b", "ada", "demo");
    struct store_transaction *change = store_begin(contract->store);

    insert_sandbox(contract, "a", "ada", "demo");
    insert_sandbox(contract, "c", "bob", "demo"); /* another owner's */
    store_insert(change, STORE_SANDBOX, row.values);
    {
        AUTO(reply) struct reply *reply = commit_now(contract, change);

        expect_code(reply, ERR_CONFLICT);
        assert_non_null(strstr(reply->failure.message, "sandbox_name"));
    }
}

static void nulls_are_not_equal_in_a_unique_index(void **state)
{
    struct contract *contract = *state;

    insert_sandbox(contract, "a", "ada", NULL);
    insert_sandbox(contract, "b", "ada", NULL);
}

static void an_update_changes_the_whole_row(void **state)
{
    struct contract *contract = *state;
    struct row row = sandbox_row("a", "ada", "new");
    struct store_transaction *change = store_begin(contract->store);

    insert_sandbox(contract, "a", "ada", "old");
    insert_sandbox(contract, "b", "ada", "other");
    row.values[STORE_SANDBOX_STARTED] = store_integer(INT64_MIN);
    store_update(change, STORE_SANDBOX, row.values);
    commit_ok(contract, change);
    {
        AUTO(reply) struct reply *all = find_all(contract, STORE_SANDBOX, STORE_SANDBOX_ID);

        expect_text(all, 0, STORE_SANDBOX_NAME, "new");
        expect_integer(all, 0, STORE_SANDBOX_STARTED, INT64_MIN);
        expect_text(all, 1, STORE_SANDBOX_NAME, "other");
    }
}

static void an_update_of_nothing_is_not_found(void **state)
{
    struct contract *contract = *state;
    struct row row = sandbox_row("a", "ada", NULL);
    struct store_transaction *change = store_begin(contract->store);

    store_update(change, STORE_SANDBOX, row.values);
    commit_fails(contract, change, ERR_NOT_FOUND);
}

static void a_put_inserts_and_then_updates(void **state)
{
    struct contract *contract = *state;
    const char *names[] = {"one", "two"};

    for (int i = 0; i < 2; i++) {
        struct row row = sandbox_row("a", "ada", names[i]);
        struct store_transaction *change = store_begin(contract->store);

        store_put(change, STORE_SANDBOX, row.values);
        commit_ok(contract, change);
    }
    {
        AUTO(reply) struct reply *all = find_all(contract, STORE_SANDBOX, STORE_SANDBOX_ID);

        assert_int_equal(all->row_count, 1);
        expect_text(all, 0, STORE_SANDBOX_NAME, "two");
    }
}

static void a_delete_takes_what_meets_all_conditions(void **state)
{
    struct contract *contract = *state;
    struct store_condition conditions[] = {
        {STORE_SANDBOX_OWNER, STORE_EQUAL, store_text("ada")},
        {STORE_SANDBOX_ID, STORE_LESS, store_text("c")},
    };

    insert_sandbox(contract, "a", "ada", NULL);
    insert_sandbox(contract, "b", "bob", NULL);
    insert_sandbox(contract, "c", "ada", NULL);
    for (int i = 0; i < 2; i++) { /* the second time there is none, which is no failure */
        struct store_transaction *change = store_begin(contract->store);
        AUTO(reply) struct reply *all = NULL;

        store_delete(change, STORE_SANDBOX, conditions, 2);
        commit_ok(contract, change);
        all = find_all(contract, STORE_SANDBOX, STORE_SANDBOX_ID);
        assert_int_equal(all->row_count, 2);
        expect_text(all, 0, STORE_SANDBOX_ID, "b");
        expect_text(all, 1, STORE_SANDBOX_ID, "c");
    }
}

static void a_transaction_is_all_or_nothing(void **state)
{
    struct contract *contract = *state;
    struct row first = sandbox_row("x", "ada", NULL), second = sandbox_row("a", "ada", NULL);
    struct store_event event = event_of("x", 1);
    struct store_transaction *change = store_begin(contract->store);

    insert_sandbox(contract, "a", "ada", NULL);
    store_insert(change, STORE_SANDBOX, first.values);
    store_add_event(change, &event);
    store_insert(change, STORE_SANDBOX, second.values); /* taken */
    commit_fails(contract, change, ERR_CONFLICT);
    {
        AUTO(reply) struct reply *all = find_all(contract, STORE_SANDBOX, STORE_SANDBOX_ID);
        AUTO(reply) struct reply *events = find_all(contract, STORE_EVENT, STORE_EVENT_CURSOR);

        assert_int_equal(all->row_count, 1);
        assert_int_equal(events->row_count, 0);
    }
}

/* Asked for in one turn, so that an engine may put them into one batch. */
static void transactions_fail_alone(void **state)
{
    struct contract *contract = *state;
    struct reply *replies[10];

    for (int i = 0; i < 10; i++) {
        char id[2] = {(char) ('a' + i / 2), '\0'}; /* every second one is taken */
        struct row row = sandbox_row(id, "ada", NULL);
        struct store_transaction *change = store_begin(contract->store);

        replies[i] = reply_new();
        replies[i]->before = i ? replies[i - 1] : NULL;
        store_insert(change, STORE_SANDBOX, row.values);
        store_commit(change, on_done, replies[i]);
    }
    TURN_UNTIL(&contract->loop, replies[9]->times);
    for (int i = 0; i < 10; i++) {
        if (i % 2)
            expect_code(replies[i], ERR_CONFLICT);
        else
            expect_ok(replies[i]);
        reply_free(replies[i]);
    }
    {
        AUTO(reply) struct reply *all = find_all(contract, STORE_SANDBOX, STORE_SANDBOX_ID);

        assert_int_equal(all->row_count, 5);
    }
}

static void a_query_sees_commits_asked_before_it(void **state)
{
    struct contract *contract = *state;
    struct store_query query = {
        .kind = STORE_SANDBOX, .order = STORE_SANDBOX_ID, .limit = STORE_ROWS_MAX};
    struct reply *commits[20], *finds[20];

    for (int i = 0; i < 20; i++) {
        char id[2] = {(char) ('a' + i), '\0'};
        struct row row = sandbox_row(id, "ada", NULL);
        struct store_transaction *change = store_begin(contract->store);

        commits[i] = reply_new();
        finds[i] = reply_new();
        commits[i]->before = i ? finds[i - 1] : NULL;
        finds[i]->before = commits[i];
        finds[i]->kind = STORE_SANDBOX;
        store_insert(change, STORE_SANDBOX, row.values);
        store_commit(change, on_done, commits[i]);
        store_find(contract->store, &query, on_rows, finds[i]);
    }
    TURN_UNTIL(&contract->loop, finds[19]->times);
    for (int i = 0; i < 20; i++) {
        expect_ok(commits[i]);
        expect_ok(finds[i]);
        assert_int_equal(finds[i]->row_count, i + 1);
        reply_free(commits[i]);
        reply_free(finds[i]);
    }
}

static void queries_sort_limit_and_go_on(void **state)
{
    struct contract *contract = *state;
    struct store_condition behind = {STORE_SANDBOX_ID, STORE_LESS, store_text("d")};
    struct store_query query = {
        .kind = STORE_SANDBOX, .order = STORE_SANDBOX_ID, .is_descending = true, .limit = 2};

    for (int c = 'a'; c <= 'e'; c++) {
        char id[2] = {(char) c, '\0'};

        insert_sandbox(contract, id, "ada", NULL);
    }
    {
        AUTO(reply) struct reply *first = find_now(contract, &query);
        AUTO(reply) struct reply *second = NULL;

        query.conditions = &behind;
        query.condition_count = 1;
        second = find_now(contract, &query);
        assert_int_equal(first->row_count, 2);
        expect_text(first, 0, STORE_SANDBOX_ID, "e");
        expect_text(first, 1, STORE_SANDBOX_ID, "d");
        assert_int_equal(second->row_count, 2);
        expect_text(second, 0, STORE_SANDBOX_ID, "c");
        expect_text(second, 1, STORE_SANDBOX_ID, "b");
    }
}

/* Equal values of the order come by their key. */
static void the_key_decides_between_equals(void **state)
{
    struct contract *contract = *state;

    insert_sandbox(contract, "c", "ada", NULL);
    insert_sandbox(contract, "a", "ada", NULL);
    insert_sandbox(contract, "b", "ada", NULL);
    {
        AUTO(reply) struct reply *all = find_all(contract, STORE_SANDBOX, STORE_SANDBOX_CREATED);

        expect_text(all, 0, STORE_SANDBOX_ID, "a");
        expect_text(all, 1, STORE_SANDBOX_ID, "b");
        expect_text(all, 2, STORE_SANDBOX_ID, "c");
    }
}

static void conditions_compare_and_find_nulls(void **state)
{
    static const struct {
        struct store_condition condition;
        const char *ids;
    } cases[] = {
        {{STORE_SANDBOX_NAME, STORE_IS_NULL, {.is_null = true}}, "b"},
        {{STORE_SANDBOX_CREATED, STORE_EQUAL, {.integer = 2}}, "b"},
        {{STORE_SANDBOX_CREATED, STORE_LESS, {.integer = 2}}, "a"},
        {{STORE_SANDBOX_CREATED, STORE_GREATER, {.integer = 1}}, "bc"},
        {{STORE_SANDBOX_NAME, STORE_GREATER, {.bytes = "\xc3\xa4xx", .length = 2}}, "c"},
        {{STORE_SANDBOX_NAME, STORE_EQUAL, {.bytes = "\xc3\xa4", .length = 2}}, "a"},
    };
    struct contract *contract = *state;
    const char *names[] = {"\xc3\xa4", NULL, "\xc3\xb6"};

    for (int i = 0; i < 3; i++) {
        char id[2] = {(char) ('a' + i), '\0'};
        struct row row = sandbox_row(id, "ada", names[i]);
        struct store_transaction *change = store_begin(contract->store);

        row.values[STORE_SANDBOX_CREATED] = store_integer(i + 1);
        store_insert(change, STORE_SANDBOX, row.values);
        commit_ok(contract, change);
    }
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct store_query query = {.kind = STORE_SANDBOX,
                                    .conditions = &cases[i].condition,
                                    .condition_count = 1,
                                    .limit = 10};
        AUTO(reply) struct reply *reply = find_now(contract, &query);
        char found[8] = "";

        for (size_t j = 0; j < reply->row_count; j++)
            found[j] = reply->rows[j][STORE_SANDBOX_ID].bytes[0];
        assert_string_equal(found, cases[i].ids);
    }
}

static void bytes_are_kept_exactly(void **state)
{
    struct contract *contract = *state;
    struct store_transaction *change = store_begin(contract->store);
    const struct store_value values[STORE_LOGIN_COLUMN_COUNT] = {
        [STORE_LOGIN_HASH] = store_bytes("\0\xff\n'", 4),
        [STORE_LOGIN_OWNER] = store_text("a'b\"c\\"),
        [STORE_LOGIN_ID] = store_bytes("not to the end", 3),
        [STORE_LOGIN_ADDRESS] = store_text("\xe2\x82\xac"),
        [STORE_LOGIN_PROGRAM] = store_text("\n"),
    };

    store_insert(change, STORE_LOGIN, values);
    commit_ok(contract, change);
    {
        AUTO(reply) struct reply *all = find_all(contract, STORE_LOGIN, STORE_LOGIN_ID);

        assert_int_equal(all->rows[0][STORE_LOGIN_HASH].length, 4);
        assert_memory_equal(all->rows[0][STORE_LOGIN_HASH].bytes, "\0\xff\n'", 4);
        expect_text(all, 0, STORE_LOGIN_OWNER, "a'b\"c\\");
        expect_text(all, 0, STORE_LOGIN_ID, "not");
        expect_text(all, 0, STORE_LOGIN_ADDRESS, "\xe2\x82\xac");
    }
}

/* --- events ----------------------------------------------------------------------------------- */

static void events_get_cursors_and_sequences(void **state)
{
    struct contract *contract = *state;
    const char *streams[] = {"a", "b", "a", "system"};
    int64_t sequences[] = {1, 1, 2, 1}, last = 0;
    struct store_transaction *change = store_begin(contract->store);

    for (int i = 0; i < 4; i++) {
        struct store_event event = event_of(streams[i], i);

        store_add_event(change, &event);
    }
    {
        AUTO(reply) struct reply *reply = commit_now(contract, change);
        AUTO(reply) struct reply *all = find_all(contract, STORE_EVENT, STORE_EVENT_CURSOR);

        expect_ok(reply);
        assert_int_equal(reply->event_count, 4);
        assert_int_equal(all->row_count, 4);
        for (size_t i = 0; i < 4; i++) {
            assert_true(reply->cursors[i] > last);
            last = reply->cursors[i];
            assert_int_equal(reply->sequences[i], sequences[i]);
            expect_integer(all, i, STORE_EVENT_CURSOR, reply->cursors[i]);
            expect_integer(all, i, STORE_EVENT_SEQUENCE, sequences[i]);
            expect_text(all, i, STORE_EVENT_STREAM, streams[i]);
            expect_text(all, i, STORE_EVENT_DATA, "{}");
        }
    }
}

static int64_t add_event(struct contract *contract, const char *stream, int64_t *ret_sequence)
{
    struct store_transaction *change = store_begin(contract->store);
    struct store_event event = event_of(stream, 1);
    AUTO(reply) struct reply *reply = NULL;

    store_add_event(change, &event);
    reply = commit_now(contract, change);
    expect_ok(reply);
    assert_int_equal(reply->event_count, 1);
    *ret_sequence = reply->sequences[0];
    return reply->cursors[0];
}

static void counting_goes_on_after_old_events_are_deleted(void **state)
{
    struct contract *contract = *state;
    struct store_condition all = {STORE_EVENT_TIME, STORE_LESS, store_integer(100)};
    struct store_transaction *change;
    int64_t first, second, sequence;

    insert_sandbox(contract, "a", "ada", NULL);
    first = add_event(contract, "a", &sequence);
    (void) add_event(contract, "system", &sequence);
    change = store_begin(contract->store);
    store_delete(change, STORE_EVENT, &all, 1);
    commit_ok(contract, change);
    reopen(contract);
    second = add_event(contract, "a", &sequence);
    assert_true(second > first + 1);
    assert_int_equal(sequence, 2);
    (void) add_event(contract, "system", &sequence);
    assert_int_equal(sequence, 2);
}

static int64_t newest_audit(struct contract *contract)
{
    struct store_query query = {
        .kind = STORE_AUDIT, .order = STORE_AUDIT_NUMBER, .is_descending = true, .limit = 1};
    AUTO(reply) struct reply *reply = find_now(contract, &query);

    expect_ok(reply);
    return reply->row_count ? reply->rows[0][STORE_AUDIT_NUMBER].integer : 0;
}

static void assigned_numbers_never_come_again(void **state)
{
    struct contract *contract = *state;
    struct store_condition all = {STORE_AUDIT_TIME, STORE_GREATER, store_integer(-1)};
    int64_t last = 0;

    for (int i = 0; i < 4; i++) {
        struct store_transaction *change = store_begin(contract->store);
        struct row row = audit_row(i, "key.create");

        if (i == 2)
            store_delete(change, STORE_AUDIT, &all, 1);
        row.values[STORE_AUDIT_NUMBER] = store_integer(-5); /* ignored */
        store_insert(change, STORE_AUDIT, row.values);
        commit_ok(contract, change);
        assert_true(newest_audit(contract) > last);
        last = newest_audit(contract);
    }
}

/* --- secrets ---------------------------------------------------------------------------------- */

static void secrets_come_back_in_the_clear(void **state)
{
    struct contract *contract = *state;
    struct row row = secret_row("s", "ada", "deploy", "hunter2");
    struct store_transaction *change = store_begin(contract->store);

    store_insert(change, STORE_SECRET, row.values);
    commit_ok(contract, change);
    change = store_begin(contract->store);
    row.values[STORE_SECRET_VALUE] = store_bytes("", 0);
    row.values[STORE_SECRET_ID] = store_text("t");
    row.values[STORE_SECRET_NAME] = store_text("empty");
    store_insert(change, STORE_SECRET, row.values);
    commit_ok(contract, change);
    reopen(contract);
    {
        AUTO(reply) struct reply *all = find_all(contract, STORE_SECRET, STORE_SECRET_ID);

        expect_text(all, 0, STORE_SECRET_VALUE, "hunter2");
        expect_text(all, 1, STORE_SECRET_VALUE, "");
    }
}

#define CONTRACT_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define CONTRACT_TESTS                                                                             \
    CONTRACT_TEST(what_was_inserted_is_found), CONTRACT_TEST(a_taken_key_is_a_conflict),           \
        CONTRACT_TEST(a_taken_index_is_named),                                                     \
        CONTRACT_TEST(nulls_are_not_equal_in_a_unique_index),                                      \
        CONTRACT_TEST(an_update_changes_the_whole_row),                                            \
        CONTRACT_TEST(an_update_of_nothing_is_not_found),                                          \
        CONTRACT_TEST(a_put_inserts_and_then_updates),                                             \
        CONTRACT_TEST(a_delete_takes_what_meets_all_conditions),                                   \
        CONTRACT_TEST(a_transaction_is_all_or_nothing), CONTRACT_TEST(transactions_fail_alone),    \
        CONTRACT_TEST(a_query_sees_commits_asked_before_it),                                       \
        CONTRACT_TEST(queries_sort_limit_and_go_on),                                               \
        CONTRACT_TEST(the_key_decides_between_equals),                                             \
        CONTRACT_TEST(conditions_compare_and_find_nulls), CONTRACT_TEST(bytes_are_kept_exactly),   \
        CONTRACT_TEST(events_get_cursors_and_sequences),                                           \
        CONTRACT_TEST(counting_goes_on_after_old_events_are_deleted),                              \
        CONTRACT_TEST(assigned_numbers_never_come_again),                                          \
        CONTRACT_TEST(secrets_come_back_in_the_clear), CONTRACT_TEST(wrong_rows_are_refused),      \
        CONTRACT_TEST(wrong_changes_are_refused), CONTRACT_TEST(wrong_queries_are_refused),        \
        CONTRACT_TEST(a_transaction_can_be_abandoned),                                             \
        CONTRACT_TEST(an_empty_transaction_is_kept_too),                                           \
        CONTRACT_TEST(a_full_queue_refuses_and_recovers),                                          \
        CONTRACT_TEST(closing_finishes_what_was_asked), CONTRACT_TEST(answers_may_ask_and_close),  \
        CONTRACT_TEST(an_idle_store_lets_the_loop_end)
