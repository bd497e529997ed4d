/* Turns: who goes when, step by step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "vault/turns.h"
/* After the headers it needs. */
#include <cmocka.h>

#define OPERATIONS_MAX 128

struct operation {
    struct mover_turn turn;
    struct table_of_turns *table;
    bool has_gone, has_ended;
};

struct table_of_turns {
    struct turns turns;
    struct operation operations[OPERATIONS_MAX];
    size_t count;
};

static void operation_goes(struct mover_turn *turn)
{
    struct operation *operation = CONTAINER_OF(turn, struct operation, turn);

    assert_false(operation->has_gone);
    operation->has_gone = true;
}

static struct operation *try_to_ask(struct table_of_turns *table, uint8_t owner,
                                    enum vault_haste haste, struct error *err)
{
    uint8_t bytes[ID_RANDOM_SIZE] = {owner};
    const struct vault_asker asker = {.who = {.owner = id_from_bytes(bytes)}, .haste = haste};
    struct operation *operation = &table->operations[table->count++];

    assert_true(table->count <= OPERATIONS_MAX);
    return turn_ask(&table->turns, &operation->turn, &asker, operation_goes, err) < 0 ? NULL
                                                                                      : operation;
}

static struct operation *ask(struct table_of_turns *table, uint8_t owner, enum vault_haste haste)
{
    struct error err = ERROR_INIT;
    struct operation *operation = try_to_ask(table, owner, haste, &err);

    if (!operation)
        fail_msg("%s", err.message);
    return operation;
}

static void end(struct operation *operation)
{
    assert_false(operation->has_ended);
    operation->has_ended = true;
    turn_end(&operation->turn);
}

static int table_set(void **state)
{
    struct table_of_turns *table = mem_alloc(sizeof(*table));

    turns_init(&table->turns, shares_new(8000));
    *state = table;
    return 0;
}

static int table_clear(void **state)
{
    struct table_of_turns *table = *state;

    for (size_t i = table->count; i-- > 0;)
        if (!table->operations[i].has_ended)
            end(&table->operations[i]);
    assert_true(list_is_empty(&table->turns.owners));
    assert_int_equal(table->turns.running + table->turns.running_but_wakes, 0);
    assert_int_equal(shares_held_by_all(table->turns.shares, SHARE_DISK_JOBS), 0);
    shares_free(table->turns.shares);
    free(table);
    return 0;
}

/* --- what an owner gets ---------------------------------------------------------------------- */

static void who_asks_for_much_waits_for_himself(void **state)
{
    struct table_of_turns *table = *state;
    struct operation *many[12], *others[2];
    size_t gone = 0;

    for (size_t i = 0; i < ARRAY_COUNT(many); i++)
        many[i] = ask(table, 1, VAULT_ASKED);
    for (size_t i = 0; i < ARRAY_COUNT(many); i++)
        gone += many[i]->has_gone;
    assert_int_equal(gone, TURNS_OF_ONE);
    assert_true(many[TURNS_OF_ONE - 1]->has_gone);
    /* Nothing has to end for somebody else's. */
    for (size_t i = 0; i < ARRAY_COUNT(others); i++) {
        others[i] = ask(table, 2, VAULT_ASKED);
        assert_true(others[i]->has_gone);
    }
}

static void owners_take_turns_while_all_wait(void **state)
{
    struct table_of_turns *table = *state;
    struct operation *first[8], *second[4], *third[4];

    for (size_t i = 0; i < ARRAY_COUNT(first); i++)
        first[i] = ask(table, 1, VAULT_ASKED);
    for (size_t i = 0; i < ARRAY_COUNT(second); i++)
        second[i] = ask(table, 2, VAULT_LATER);
    for (size_t i = 0; i < ARRAY_COUNT(third); i++)
        third[i] = ask(table, 3, VAULT_ASKED);
    assert_true(first[3]->has_gone && second[1]->has_gone);
    assert_false(first[4]->has_gone || second[2]->has_gone || third[0]->has_gone);
    /* Who has more than his part while others wait is served when he has less. */
    end(first[0]);
    end(first[1]);
    assert_true(third[0]->has_gone && third[1]->has_gone);
    end(first[2]);
    assert_true(first[4]->has_gone);
    end(second[0]);
    assert_true(second[2]->has_gone);
    end(third[0]);
    assert_true(third[2]->has_gone);
    assert_false(first[5]->has_gone || second[3]->has_gone || third[3]->has_gone);
}

static void an_owner_alone_has_more_again(void **state)
{
    struct table_of_turns *table = *state;
    struct operation *other, *many[8];

    for (size_t i = 0; i < 6; i++)
        (void) ask(table, (uint8_t) (10 + i), VAULT_ASKED);
    other = ask(table, 2, VAULT_ASKED);
    for (size_t i = 0; i < ARRAY_COUNT(many); i++)
        many[i] = ask(table, 1, VAULT_ASKED);
    assert_false(other->has_gone || many[0]->has_gone);
    /* One that waits may leave, too. */
    end(other);
    for (size_t i = 0; i < 6; i++)
        end(&table->operations[i]);
    assert_true(many[TURNS_OF_ONE - 1]->has_gone);
    assert_false(many[TURNS_OF_ONE]->has_gone);
}

/* --- what is urgent -------------------------------------------------------------------------- */

static void wakes_go_before_all_else(void **state)
{
    struct table_of_turns *table = *state;
    struct operation *busy[9], *wake, *late, *asked;

    for (size_t i = 0; i < ARRAY_COUNT(busy); i++)
        busy[i] = ask(table, (uint8_t) (1 + i % 3), VAULT_ASKED);
    assert_true(busy[5]->has_gone);
    assert_false(busy[6]->has_gone);
    /* Some turns are for nothing but wakes, also of who has his part already. */
    for (size_t i = TURNS_BUT_WAKES; i < TURNS_MAX; i++)
        assert_true(ask(table, 1, VAULT_WAKE)->has_gone);
    late = ask(table, 9, VAULT_LATER);
    asked = ask(table, 9, VAULT_ASKED);
    wake = ask(table, 2, VAULT_WAKE);
    assert_false(wake->has_gone);
    end(busy[0]);
    assert_true(wake->has_gone);
    end(busy[1]);
    end(wake);
    end(busy[4]);
    end(busy[7]);
    assert_true(asked->has_gone);
    assert_false(late->has_gone && !asked->has_gone);
}

/* --- how many may wait ------------------------------------------------------------------------ */

static void more_than_may_wait_are_refused_by_name(void **state)
{
    struct table_of_turns *table = *state;
    struct error err = ERROR_INIT;

    for (uint64_t i = 0; i < share_rows[SHARE_DISK_JOBS].of_one; i++)
        (void) ask(table, 1, VAULT_ASKED);
    assert_null(try_to_ask(table, 1, VAULT_ASKED, &err));
    assert_int_equal(err.code, ERR_QUOTA);
    assert_non_null(strstr(err.message, "disk_jobs: 16 of at most 16"));
    /* But a sandbox wakes, and Burrow's own work is done. */
    assert_true(ask(table, 1, VAULT_WAKE)->has_gone);
    (void) ask(table, 1, VAULT_LATER);
    end(&table->operations[15]);
    end(&table->operations[0]);
    end(&table->operations[1]);
    (void) ask(table, 1, VAULT_ASKED);
    assert_true(ask(table, 2, VAULT_ASKED)->has_gone);
}

static void what_was_claimed_before_is_not_claimed_again(void **state)
{
    struct table_of_turns *table = *state;
    uint8_t bytes[ID_RANDOM_SIZE] = {1};
    const struct id owner = id_from_bytes(bytes);
    const struct vault_asker asker = {
        .who = {.owner = owner}, .haste = VAULT_ASKED, .is_claimed = true};
    struct operation *operation = &table->operations[table->count++];

    assert_int_equal(turn_ask(&table->turns, &operation->turn, &asker, operation_goes, NULL), 0);
    assert_true(operation->has_gone);
    assert_int_equal(shares_held(table->turns.shares, &owner, SHARE_DISK_JOBS), 0);
    end(operation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_claimed_before_is_not_claimed_again, table_set,
                                        table_clear),
        cmocka_unit_test_setup_teardown(who_asks_for_much_waits_for_himself, table_set,
                                        table_clear),
        cmocka_unit_test_setup_teardown(owners_take_turns_while_all_wait, table_set, table_clear),
        cmocka_unit_test_setup_teardown(an_owner_alone_has_more_again, table_set, table_clear),
        cmocka_unit_test_setup_teardown(wakes_go_before_all_else, table_set, table_clear),
        cmocka_unit_test_setup_teardown(more_than_may_wait_are_refused_by_name, table_set,
                                        table_clear),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
