#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "base/memory.h"
#include "provider/provider_table.h"

AUTO_DEFINE(provider_table, struct provider_table, provider_table_done);

static const struct ending killed = {.kind = ENDED_SIGNAL, .value = 9};

static void begin(struct provider_table *table, enum provider_call_kind kind, const struct id *id,
                  enum run_state *before)
{
    struct error err = ERROR_INIT;

    if (provider_table_begin(table, kind, id, before, &err) < 0)
        fail_msg("%s", err.message);
}

static enum err_code refusal(struct provider_table *table, enum provider_call_kind kind,
                             const struct id *id)
{
    enum run_state before;
    struct error err = ERROR_INIT;

    assert_int_equal(provider_table_begin(table, kind, id, &before, &err), -1);
    return err.code;
}

static bool end(struct provider_table *table, enum provider_call_kind kind, const struct id *id,
                enum run_state before, bool success)
{
    struct ending ending;

    return provider_table_end(table, kind, id, before, success, &ending);
}

static enum run_state state_of(const struct provider_table *table, const struct id *id)
{
    const struct provider_entry *entry = provider_table_find(table, id);

    return entry ? entry->state : RUN_STATE_ABSENT;
}

static struct id running(struct provider_table *table)
{
    struct id id = id_new();

    assert_non_null(provider_table_add(table, &id, RUN_STATE_RUNNING));
    return id;
}

/* Against a plain list of what was added and removed. */
static void entries_stay_sorted(void **state)
{
    AUTO(provider_table) struct provider_table table = {.count = 0};
    struct id ids[300];
    bool there[300] = {false};
    uint64_t seed = 1;
    size_t expected = 0;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++)
        ids[i] = id_new();
    for (int round = 0; round < 3000; round++) {
        size_t i = (seed = seed * 6364136223846793005u + 1442695040888963407u) >> 33;

        i %= ARRAY_COUNT(ids);
        if (there[i])
            provider_table_remove(&table, &ids[i]);
        else
            assert_non_null(provider_table_add(&table, &ids[i], RUN_STATE_RUNNING));
        expected += there[i] ? -1 : 1;
        there[i] = !there[i];
        assert_int_equal(table.count, expected);
    }
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++)
        assert_int_equal(provider_table_find(&table, &ids[i]) != NULL, there[i]);
    for (size_t i = 1; i < table.count; i++)
        assert_true(strcmp(table.entries[i - 1].id.text, table.entries[i].id.text) < 0);
    provider_table_remove(&table, &(struct id){.text = "zzz"});
    assert_int_equal(table.count, expected);
}

static void an_id_is_there_once(void **state)
{
    AUTO(provider_table) struct provider_table table = {.count = 0};
    struct id id = running(&table);

    (void) state;
    assert_null(provider_table_add(&table, &id, RUN_STATE_STOPPED));
    assert_int_equal(refusal(&table, PROVIDER_CALL_CREATE, &id), ERR_CONFLICT);
}

static int compare_ids(const void *one, const void *other)
{
    return strcmp(((const struct id *) one)->text, ((const struct id *) other)->text);
}

static void a_full_table_takes_no_more(void **state)
{
    AUTO(provider_table) struct provider_table table = {.count = 0};
    AUTO(free) struct id *ids = mem_alloc_array(PROVIDER_TABLE_MAX, sizeof(*ids));
    struct id id;

    (void) state;
    for (uint32_t i = 0; i < PROVIDER_TABLE_MAX; i++) {
        uint8_t bytes[ID_RANDOM_SIZE] = {(uint8_t) (i >> 8), (uint8_t) i};

        ids[i] = id_from_bytes(bytes);
    }
    /* Each becomes the last: making room in the middle of so many takes seconds. */
    qsort(ids, PROVIDER_TABLE_MAX, sizeof(*ids), compare_ids);
    for (uint32_t i = 0; i < PROVIDER_TABLE_MAX; i++)
        (void) provider_table_add(&table, &ids[i], RUN_STATE_RUNNING);
    assert_int_equal(table.count, PROVIDER_TABLE_MAX);
    id = id_new();
    assert_int_equal(refusal(&table, PROVIDER_CALL_CREATE, &id), ERR_UNAVAILABLE);
}

static void a_place_that_is_kept_is_not_seen(void **state)
{
    AUTO(provider_table) struct provider_table table = {.count = 0};
    struct id id = id_new();
    enum run_state before;

    (void) state;
    begin(&table, PROVIDER_CALL_CREATE, &id, &before);
    assert_false(provider_entry_is_visible(provider_table_find(&table, &id)));
    assert_int_equal(refusal(&table, PROVIDER_CALL_CREATE, &id), ERR_CONFLICT);
    assert_int_equal(refusal(&table, PROVIDER_CALL_DESTROY, &id), ERR_NOT_FOUND);
    assert_false(provider_table_exit(&table, &id, &killed));
    assert_false(end(&table, PROVIDER_CALL_CREATE, &id, before, false));
    assert_int_equal(state_of(&table, &id), RUN_STATE_ABSENT);
}

/* Which call each state permits: the whole table. */
static void every_state_has_its_calls(void **state)
{
    static const char *const permitted[RUN_STATE_COUNT] = {
        /* create start stop destroy freeze thaw set_limits stats sockets disk_job */
        [RUN_STATE_ABSENT] = "yNNNNNNNNN",     [RUN_STATE_CREATING] = "CNNNNNNNNN",
        [RUN_STATE_RUNNING] = "CCyyyyyyyC",    [RUN_STATE_FROZEN] = "CCyyyyyyyC",
        [RUN_STATE_STOPPING] = "CCCyCCCCCC",   [RUN_STATE_STOPPED] = "CyyyCCCyCy",
        [RUN_STATE_STARTING] = "CCCyCCCCCC",   [RUN_STATE_BROKEN] = "CCCyCCCCCC",
        [RUN_STATE_DESTROYING] = "CCCCCCCCCC",
    };
    static const enum provider_call_kind kinds[] = {
        PROVIDER_CALL_CREATE,     PROVIDER_CALL_START,  PROVIDER_CALL_STOP,
        PROVIDER_CALL_DESTROY,    PROVIDER_CALL_FREEZE, PROVIDER_CALL_THAW,
        PROVIDER_CALL_SET_LIMITS, PROVIDER_CALL_STATS,  PROVIDER_CALL_SOCKETS,
        PROVIDER_CALL_DISK_JOB,
    };

    (void) state;
    for (unsigned int at = 0; at < RUN_STATE_COUNT; at++) {
        for (size_t i = 0; permitted[at] && i < ARRAY_COUNT(kinds); i++) {
            AUTO(provider_table) struct provider_table table = {.count = 0};
            struct id id = id_new();
            enum run_state before;
            struct error err = ERROR_INIT;
            int result;

            if (at != RUN_STATE_ABSENT)
                (void) provider_table_add(&table, &id, (enum run_state) at);
            result = provider_table_begin(&table, kinds[i], &id, &before, &err);
            if (permitted[at][i] == 'y')
                assert_int_equal(result, 0);
            else
                assert_int_equal(err.code, permitted[at][i] == 'C' ? ERR_CONFLICT : ERR_NOT_FOUND);
        }
    }
}

static void an_exit_is_told_once(void **state)
{
    AUTO(provider_table) struct provider_table table = {.count = 0};
    struct id id = running(&table), unknown = id_new();

    (void) state;
    assert_false(provider_table_exit(&table, &unknown, &killed));
    assert_true(provider_table_exit(&table, &id, &killed));
    assert_int_equal(state_of(&table, &id), RUN_STATE_STOPPED);
    assert_false(provider_table_exit(&table, &id, &killed));
}

/* The exit of a life that was stopped may come late, when the next one is on its way. */
static void a_late_exit_is_not_taken_for_the_next_one(void **state)
{
    AUTO(provider_table) struct provider_table table = {.count = 0};
    struct id id = running(&table);
    enum run_state before;

    (void) state;
    begin(&table, PROVIDER_CALL_STOP, &id, &before);
    assert_false(end(&table, PROVIDER_CALL_STOP, &id, before, true));
    begin(&table, PROVIDER_CALL_START, &id, &before);
    assert_false(provider_table_exit(&table, &id, &killed));
    assert_int_equal(state_of(&table, &id), RUN_STATE_STARTING);
    assert_false(end(&table, PROVIDER_CALL_START, &id, before, true));
    assert_true(provider_table_exit(&table, &id, &killed));
}

static void an_exit_is_held_back_while_one_is_asked_for(void **state)
{
    AUTO(provider_table) struct provider_table table = {.count = 0};
    struct id id = running(&table);
    struct ending ending = {.kind = ENDED_UNKNOWN};
    enum run_state before;

    (void) state;
    begin(&table, PROVIDER_CALL_DESTROY, &id, &before);
    assert_false(provider_table_exit(&table, &id, &killed));
    assert_true(provider_table_end(&table, PROVIDER_CALL_DESTROY, &id, before, false, &ending));
    assert_int_equal(ending.value, 9);
    assert_int_equal(state_of(&table, &id), RUN_STATE_STOPPED);
    assert_false(provider_table_exit(&table, &id, &killed));
}

static void a_failed_call_leaves_things_as_they_were(void **state)
{
    AUTO(provider_table) struct provider_table table = {.count = 0};
    struct id id = running(&table);
    enum run_state before, second;

    (void) state;
    begin(&table, PROVIDER_CALL_STOP, &id, &before);
    assert_false(end(&table, PROVIDER_CALL_STOP, &id, before, false));
    assert_int_equal(state_of(&table, &id), RUN_STATE_RUNNING);
    begin(&table, PROVIDER_CALL_STOP, &id, &before);
    begin(&table, PROVIDER_CALL_DESTROY, &id, &second);
    assert_false(end(&table, PROVIDER_CALL_STOP, &id, before, true));
    assert_int_equal(state_of(&table, &id), RUN_STATE_DESTROYING);
    /* It was on its way to something: nobody knows what it is now. */
    assert_false(end(&table, PROVIDER_CALL_DESTROY, &id, second, false));
    assert_int_equal(state_of(&table, &id), RUN_STATE_BROKEN);
}

static void an_answer_that_comes_too_late_changes_nothing(void **state)
{
    AUTO(provider_table) struct provider_table table = {.count = 0};
    struct id id = running(&table);
    enum run_state before;

    (void) state;
    begin(&table, PROVIDER_CALL_FREEZE, &id, &before);
    assert_true(provider_table_exit(&table, &id, &killed));
    assert_false(end(&table, PROVIDER_CALL_FREEZE, &id, before, true));
    assert_int_equal(state_of(&table, &id), RUN_STATE_STOPPED);
}

static void freezing_and_thawing_may_overlap(void **state)
{
    AUTO(provider_table) struct provider_table table = {.count = 0};
    struct id id = running(&table);
    enum run_state freeze, thaw;

    (void) state;
    begin(&table, PROVIDER_CALL_FREEZE, &id, &freeze);
    begin(&table, PROVIDER_CALL_THAW, &id, &thaw);
    (void) end(&table, PROVIDER_CALL_FREEZE, &id, freeze, true);
    assert_int_equal(state_of(&table, &id), RUN_STATE_FROZEN);
    (void) end(&table, PROVIDER_CALL_THAW, &id, thaw, true);
    assert_int_equal(state_of(&table, &id), RUN_STATE_RUNNING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_stay_sorted),
        cmocka_unit_test(an_id_is_there_once),
        cmocka_unit_test(a_full_table_takes_no_more),
        cmocka_unit_test(a_place_that_is_kept_is_not_seen),
        cmocka_unit_test(every_state_has_its_calls),
        cmocka_unit_test(an_exit_is_told_once),
        cmocka_unit_test(a_late_exit_is_not_taken_for_the_next_one),
        cmocka_unit_test(an_exit_is_held_back_while_one_is_asked_for),
        cmocka_unit_test(a_failed_call_leaves_things_as_they_were),
        cmocka_unit_test(an_answer_that_comes_too_late_changes_nothing),
        cmocka_unit_test(freezing_and_thawing_may_overlap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
