#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "store/store_schema.h"
/* After the headers it needs. */
#include <cmocka.h>

#define EACH_KIND(kind)                                                                            \
    for (enum store_kind kind = (enum store_kind) 0; kind < STORE_KIND_COUNT;                      \
         kind = (enum store_kind)(kind + 1))

static void every_row_has_an_owner(void **state)
{
    (void) state;
    EACH_KIND(kind)
    {
        const struct store_table *table = store_table(kind);
        int owners = 0;

        for (size_t i = 0; i < table->column_count; i++)
            if (strcmp(table->columns[i].name, "owner_id") == 0) {
                owners++;
                assert_int_equal(table->columns[i].type, STORE_TEXT);
                assert_false(table->columns[i].flags & STORE_NULL);
            }
        assert_int_equal(owners, 1);
    }
}

static void every_kind_has_a_key_without_null(void **state)
{
    (void) state;
    EACH_KIND(kind)
    {
        const struct store_table *table = store_table(kind);
        int keys = 0;

        for (size_t i = 0; i < table->column_count; i++)
            if (table->columns[i].flags & STORE_KEY) {
                keys++;
                assert_false(table->columns[i].flags & (STORE_NULL | STORE_SEALED));
            }
        assert_true(keys > 0);
    }
}

/* The store gives a number at insert: it must be the whole key, and cannot be part of what a secret
 * is bound to. */
static void an_assigned_key_stands_alone(void **state)
{
    (void) state;
    EACH_KIND(kind)
    {
        const struct store_table *table = store_table(kind);
        int assigned = 0, keys = 0, sealed = 0;

        for (size_t i = 0; i < table->column_count; i++) {
            assigned += (table->columns[i].flags & STORE_ASSIGNED) != 0;
            keys += (table->columns[i].flags & STORE_KEY) != 0;
            sealed += (table->columns[i].flags & STORE_SEALED) != 0;
            if (table->columns[i].flags & STORE_ASSIGNED)
                assert_true(table->columns[i].flags & STORE_KEY &&
                            table->columns[i].type == STORE_INTEGER);
            if (table->columns[i].flags & STORE_SEALED)
                assert_int_equal(table->columns[i].type, STORE_BYTES);
        }
        if (assigned)
            assert_true(assigned == 1 && keys == 1 && sealed == 0);
    }
}

static void indexes_have_names_of_their_own_and_no_secret(void **state)
{
    const char *names[64];
    size_t count = 0;

    (void) state;
    EACH_KIND(kind)
    {
        const struct store_table *table = store_table(kind);

        for (size_t i = 0; i < table->index_count; i++) {
            const struct store_index *index = &table->indexes[i];

            for (size_t j = 0; j < count; j++)
                assert_string_not_equal(names[j], index->name);
            names[count++] = index->name;
            assert_true(index->column_count >= 1);
            for (size_t j = 0; j < index->column_count; j++) {
                assert_true(index->columns[j] < table->column_count);
                assert_false(table->columns[index->columns[j]].flags & STORE_SEALED);
            }
        }
    }
}

static void numbers_are_positions(void **state)
{
    (void) state;
    assert_string_equal(store_table(STORE_SANDBOX)->columns[STORE_SANDBOX_STATUS].name, "status");
    assert_string_equal(store_table(STORE_API_KEY)->columns[STORE_API_KEY_USED].name, "used_at");
    assert_int_equal(store_table(STORE_IDEMPOTENCY)->column_count, STORE_IDEMPOTENCY_COLUMN_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_has_an_owner),
        cmocka_unit_test(every_kind_has_a_key_without_null),
        cmocka_unit_test(an_assigned_key_stands_alone),
        cmocka_unit_test(indexes_have_names_of_their_own_and_no_secret),
        cmocka_unit_test(numbers_are_positions),
    };

    return cmocka_run_group_tests_name("store_schema", tests, NULL, NULL);
}
