/* The part of the contract about listing. Included by objects_contract.h only. */
#pragma once

#include "objects/objects_testing.h"

static void keys_are_sorted_by_their_bytes(void **state)
{
    static const char *const keys[] = {"A",  "a-b", "a/b", "a/c/d",   "a0",
                                       "ab", "b/",  "b/a", "\xc3\xa4"};
    struct contract *contract = *state;

    for (size_t i = ARRAY_COUNT(keys); i-- > 0;)
        put_ok(contract, keys[i], "x");
    for (size_t limit = 1; limit <= ARRAY_COUNT(keys) + 1; limit += 2)
        expect_listed(contract, "", false, limit, keys, ARRAY_COUNT(keys));
}

static void entries_say_what_they_are(void **state)
{
    struct contract *contract = *state;
    AUTO(reply) struct reply *put = put_text(contract, "a/b", "12345");
    AUTO(reply) struct reply *all = list(contract, "", false, NULL, 10);
    AUTO(reply) struct reply *top = list(contract, "", true, NULL, 10);

    expect_ok(put);
    expect_ok(all);
    assert_int_equal(all->count, 1);
    assert_null(all->next);
    assert_false(all->entries[0].is_folder);
    assert_int_equal(all->entries[0].size, 5);
    assert_true(!*all->entries[0].tag || strcmp(all->entries[0].tag, put->info.tag) == 0);
    assert_true(all->entries[0].modified_ms > put->info.modified_ms - 60000);
    assert_int_equal(top->count, 1);
    assert_string_equal(top->entries[0].key, "a/");
    assert_true(top->entries[0].is_folder);
}

static void a_prefix_is_of_whole_keys(void **state)
{
    static const char *const keys[] = {"one",     "one-two", "one/1", "one/2/3",
                                       "one/2/4", "onex/1",  "two"};
    static const struct {
        const char *prefix;
        const char *const *keys;
        size_t count;
    } cases[] = {
        {"", keys + 1, 6},        {"one", keys + 1, 5},    {"one/", keys + 2, 3},
        {"one/2", keys + 3, 2},   {"one/2/", keys + 3, 2}, {"one/2/3", keys + 3, 1},
        {"one/2/3/", NULL, 0},    {"onex", keys + 5, 1},   {"z", NULL, 0},
        {"one//", NULL, 0},       {"/", NULL, 0},          {"tw", keys + 6, 1},
        {"none/at/all", NULL, 0},
    };
    struct contract *contract = *state;

    for (size_t i = 1; i < ARRAY_COUNT(keys); i++)
        put_ok(contract, keys[i], "x");
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        expect_listed(contract, cases[i].prefix, false, 2, cases[i].keys, cases[i].count);
        expect_listed(contract, cases[i].prefix, false, 100, cases[i].keys, cases[i].count);
    }
}

static void folders_stand_for_what_is_in_them(void **state)
{
    static const char *const keys[] = {"a-b",  "a/", "a/1",  "a/2/3", "a/2/4",
                                       "a/2x", "a0", "b//c", "c/d"};
    static const char *const top[] = {"a-b", "a/", "a0", "b/", "c/"};
    static const char *const in_a[] = {"a/", "a/1", "a/2/", "a/2x"};
    static const char *const like_a2[] = {"a/2/", "a/2x"};
    static const char *const in_a2[] = {"a/2/3", "a/2/4"};
    static const char *const in_b[] = {"b//"};
    static const char *const in_bb[] = {"b//c"};
    static const struct {
        const char *prefix;
        const char *const *keys;
        size_t count;
    } cases[] = {
        {"", top, ARRAY_COUNT(top)},
        {"a/", in_a, ARRAY_COUNT(in_a)},
        {"a/2", like_a2, 2},
        {"a/2/", in_a2, 2},
        {"b/", in_b, 1},
        {"b//", in_bb, 1},
        {"c", top + 4, 1},
        {"a", top, 3},
    };
    struct contract *contract = *state;

    for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
        put_ok(contract, keys[i], "x");
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        for (size_t limit = 1; limit < 7; limit++)
            expect_listed(contract, cases[i].prefix, true, limit, cases[i].keys, cases[i].count);
    }
}

/* --- many ------------------------------------------------------------------------------------- */

#define AT_ONCE 200

static size_t many_of(const struct contract *contract)
{
    return contract->backend->many_keys ? contract->backend->many_keys : MANY_KEYS;
}

/* "even/0000", "odd0001" ... */
static void name_of(size_t number, char ret_key[static 32])
{
    (void) snprintf(ret_key, 32, "%s%04zu", number % 2 ? "m/odd" : "m/even/", number);
}

static void put_many(struct contract *contract, size_t count)
{
    for (size_t first = 0; first < count; first += AT_ONCE) {
        struct reply *replies[AT_ONCE];
        size_t more = count - first < AT_ONCE ? count - first : AT_ONCE;

        for (size_t i = 0; i < more; i++) {
            char key[32];

            name_of(first + i, key);
            replies[i] = reply_new();
            (void) objects_put_bytes(contract->objects, key, key, strlen(key), NULL, on_info,
                                     replies[i]);
        }
        for (size_t i = 0; i < more; i++) {
            OBJECTS_WAIT(contract, replies[i]->times);
            expect_ok(replies[i]);
            reply_free(replies[i]);
        }
    }
}

/* Every key once, in order: first all of "m/even/", then all of "m/odd". */
static void expect_many(struct contract *contract, size_t count, size_t limit)
{
    AUTO(free) char *after = NULL;
    size_t number = 0, found = 0;

    do {
        AUTO(reply) struct reply *page = list(contract, "", false, after, limit);

        expect_ok(page);
        for (size_t i = 0; i < page->count; i++, found++, number += 2) {
            char key[32];

            if (number >= count && number % 2 == 0)
                number = 1;
            name_of(number, key);
            assert_string_equal(page->entries[i].key, key);
            assert_int_equal(page->entries[i].size, strlen(key));
        }
        assert_true(!page->next || page->count == limit);
        free(after);
        after = page->next ? mem_copy_text(page->next) : NULL;
    } while (after);
    assert_int_equal(found, count);
}

static void delete_many(struct contract *contract, size_t count)
{
    for (size_t first = 0; first < count; first += OBJECTS_DELETE_MAX) {
        char names[OBJECTS_DELETE_MAX][32];
        const char *keys[OBJECTS_DELETE_MAX];
        size_t more = count - first < OBJECTS_DELETE_MAX ? count - first : OBJECTS_DELETE_MAX;

        for (size_t i = 0; i < more; i++) {
            name_of(first + i, names[i]);
            keys[i] = names[i];
        }
        {
            AUTO(reply) struct reply *reply = delete_keys(contract, keys, more);

            expect_ok(reply);
        }
    }
}

static void many_keys_are_listed_in_pages(void **state)
{
    static const char *const top[] = {"m/"};
    struct contract *contract = *state;
    size_t count = many_of(contract);

    put_many(contract, count);
    expect_many(contract, count, OBJECTS_PAGE_MAX);
    expect_many(contract, count, 333);
    expect_listed(contract, "", true, 1, top, 1);
    {
        AUTO(reply) struct reply *page = list(contract, "m/", true, NULL, 1);
        AUTO(reply) struct reply *next = list(contract, "m/", true, page->next, 1);

        assert_string_equal(page->entries[0].key, "m/even/");
        assert_string_equal(next->entries[0].key, "m/odd0001");
        assert_non_null(next->next);
    }
    delete_many(contract, count);
    expect_listed(contract, "", false, 1, NULL, 0);
}

/* A page holds what was there all the time, whatever comes and goes meanwhile. */
static void lists_go_on_while_keys_come_and_go(void **state)
{
    struct contract *contract = *state;
    struct reply *changes[40];
    size_t seen = 0;

    for (size_t i = 0; i < 20; i++) {
        char key[32];

        (void) snprintf(key, sizeof(key), "stay/%02zu/x", i);
        put_ok(contract, key, "x");
        (void) snprintf(key, sizeof(key), "go/%02zu/x", i);
        put_ok(contract, key, "x");
    }
    /* Never the same one at once: Swift then answers the one that lost as no S3 store does. */
    for (size_t i = 0; i < ARRAY_COUNT(changes); i++) {
        char key[32];
        const char *keys[] = {key};

        (void) snprintf(key, sizeof(key), "%s/%02zu/x", i % 2 == 0 ? "come" : "go", i / 2);
        changes[i] = reply_new();
        if (i % 2 == 0)
            (void) objects_put_bytes(contract->objects, key, "x", 1, NULL, on_info, changes[i]);
        else
            (void) objects_delete(contract->objects, keys, 1, on_done, changes[i]);
    }
    {
        AUTO(reply) struct reply *page = list(contract, "", false, NULL, 1000);

        expect_ok(page);
        for (size_t i = 0; i < page->count; i++)
            seen += strncmp(page->entries[i].key, "stay/", 5) == 0;
        assert_int_equal(seen, 20);
    }
    for (size_t i = 0; i < ARRAY_COUNT(changes); i++) {
        OBJECTS_WAIT(contract, changes[i]->times);
        expect_ok(changes[i]);
        reply_free(changes[i]);
    }
}

#define CONTRACT_LIST_TESTS                                                                        \
    CONTRACT_TEST(keys_are_sorted_by_their_bytes), CONTRACT_TEST(entries_say_what_they_are),       \
        CONTRACT_TEST(a_prefix_is_of_whole_keys),                                                  \
        CONTRACT_TEST(folders_stand_for_what_is_in_them),                                          \
        CONTRACT_TEST(many_keys_are_listed_in_pages),                                              \
        CONTRACT_TEST(lists_go_on_while_keys_come_and_go)
