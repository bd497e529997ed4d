#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/table.h"

#define THINGS 5000

struct thing {
    struct table_link link;
    int number;
};

static uint64_t hash_of(int number)
{
    return table_hash(7, &number, sizeof(number));
}

static struct thing *find(const struct table *table, int number)
{
    for (struct table_link *at = table_find(table, hash_of(number)); at; at = table_next(at)) {
        struct thing *thing = CONTAINER_OF(at, struct thing, link);

        if (thing->number == number)
            return thing;
    }
    return NULL;
}

static void an_empty_table_finds_nothing_and_owns_nothing(void **state)
{
    struct table table = TABLE_INIT;

    (void) state;
    assert_null(table_find(&table, 1));
    table_done(&table);
}

static void what_was_added_is_found_until_it_is_removed(void **state)
{
    AUTO(free) struct thing *things = calloc(THINGS, sizeof(*things));
    AUTO(table) struct table table = TABLE_INIT;

    (void) state;
    for (int i = 0; i < THINGS; i++) {
        things[i].number = i;
        things[i].link.hash = hash_of(i);
        table_add(&table, &things[i].link);
    }
    assert_int_equal(table.count, THINGS);
    for (int i = 0; i < THINGS; i += 2)
        table_remove(&table, &things[i].link);
    for (int i = 0; i < THINGS; i++)
        assert_ptr_equal(find(&table, i), i % 2 ? &things[i] : NULL);
    for (int i = 1; i < THINGS; i += 2)
        table_remove(&table, &things[i].link);
    assert_null(table.buckets);
}

static void objects_with_the_same_hash_are_all_kept(void **state)
{
    AUTO(table) struct table table = TABLE_INIT;
    struct thing things[3] = {{.link.hash = 9}, {.link.hash = 9}, {.link.hash = 9}};
    int count = 0;

    (void) state;
    for (int i = 0; i < 3; i++)
        table_add(&table, &things[i].link);
    table_remove(&table, &things[1].link);
    for (struct table_link *at = table_find(&table, 9); at; at = table_next(at)) {
        assert_ptr_not_equal(at, &things[1].link);
        count++;
    }
    assert_int_equal(count, 2);
}

static void the_hash_depends_on_every_byte_the_length_and_the_seed(void **state)
{
    char bytes[33] = {0};
    uint64_t plain = table_hash(1, bytes, sizeof(bytes));

    (void) state;
    assert_true(plain != table_hash(2, bytes, sizeof(bytes)));
    assert_true(plain != table_hash(1, bytes, sizeof(bytes) - 1));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = 1;
        assert_true(plain != table_hash(1, bytes, sizeof(bytes)));
        bytes[i] = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_table_finds_nothing_and_owns_nothing),
        cmocka_unit_test(what_was_added_is_found_until_it_is_removed),
        cmocka_unit_test(objects_with_the_same_hash_are_all_kept),
        cmocka_unit_test(the_hash_depends_on_every_byte_the_length_and_the_seed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
