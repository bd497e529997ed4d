/* The part of the contract about keys. Included by objects_contract.h only. */
#pragma once

#include "objects/objects_testing.h"

#define X100                                                                                       \
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"                                           \
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

/* Sorted by their bytes. */
static const char *const odd_keys[] = {
    " a space ",
    "%",
    "%2E",
    "%41",
    "%_",
    "+plus+",
    ".hidden",
    ".tmp/x",
    "//",
    "/leading",
    "=?&#;:@!$'()*,",
    "A",
    "\\back\\slash",
    "a",
    "b b/c d",
    "b%20b/c",
    "b+b/c",
    "double//slash",
    "percent%",
    "quo\"te<>|^`{}[]",
    "trailing/",
    X100 X100 X100,
    X100 X100 X100 "-y",
    X100 X100 X100 "/y",
    X100 X100 X100 "0y",
    "~tilde",
    "\xc3\xa4\xc3\xb6\xc3\xbc/\xe2\x82\xac",
    "\xf0\x9f\x90\x87",
};

static const char *const dotted_keys[] = {".",      "..",         "../up",
                                          "./here", "down/../up", "down/./here"};

static void put_and_get_keys(struct contract *contract, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        /* "x/y" cannot be beside "x" in every store. */
        if (contract->backend->refuses_nested && strstr(keys[i], "xx/y"))
            continue;
        put_ok(contract, keys[i], keys[i]);
    }
    for (size_t i = 0; i < count; i++) {
        if (contract->backend->refuses_nested && strstr(keys[i], "xx/y"))
            continue;
        expect_content(contract, keys[i], keys[i]);
    }
}

static void odd_keys_are_keys(void **state)
{
    struct contract *contract = *state;
    const char *keys[ARRAY_COUNT(odd_keys)];
    size_t count = 0;

    put_and_get_keys(contract, odd_keys, ARRAY_COUNT(odd_keys));
    for (size_t i = 0; i < ARRAY_COUNT(odd_keys); i++) {
        if (!contract->backend->refuses_nested || !strstr(odd_keys[i], "xx/y"))
            keys[count++] = odd_keys[i];
    }
    expect_listed(contract, "", false, 7, keys, count);
    expect_listed(contract, "b", false, 2, keys + 14, 3); /* "b b/c d" and those behind it */
    for (size_t i = 0; i < count; i++)
        delete_ok(contract, keys[i]);
    expect_listed(contract, "", false, 1000, NULL, 0);
}

static void dots_are_nothing_special(void **state)
{
    struct contract *contract = *state;

    if (contract->backend->without_dots) {
        AUTO(reply) struct reply *refused = put_text(contract, "a/../b", "x");

        assert_true(refused->failed);
        return;
    }
    put_and_get_keys(contract, dotted_keys + 2, ARRAY_COUNT(dotted_keys) - 2);
    expect_listed(contract, "", false, 2, dotted_keys + 2, ARRAY_COUNT(dotted_keys) - 2);
    expect_missing(contract, "up");
    expect_missing(contract, "down/here");
    for (size_t i = 2; i < ARRAY_COUNT(dotted_keys); i++)
        delete_ok(contract, dotted_keys[i]);
    put_and_get_keys(contract, dotted_keys, 2);
    expect_listed(contract, "", false, 2, dotted_keys, 2);
}

static void keys_may_be_1024_bytes_long(void **state)
{
    static const char *const pieces[] = {"k", "%", "/", "k/", "\xc3\xa4"};
    struct contract *contract = *state;

    for (size_t i = 0; i < ARRAY_COUNT(pieces); i++) {
        char key[OBJECTS_KEY_MAX + 3];
        size_t size = strlen(pieces[i]);

        for (size_t j = 0; j <= OBJECTS_KEY_MAX; j++)
            key[j] = pieces[i][j % size];
        key[OBJECTS_KEY_MAX] = '\0';
        put_ok(contract, key, "longest");
        expect_content(contract, key, "longest");
        expect_listed(contract, "", false, 1, (const char *const[]){key}, 1);
        delete_ok(contract, key);
        expect_listed(contract, "", true, 1, NULL, 0);
    }
}

#define CONTRACT_KEYS_TESTS                                                                        \
    CONTRACT_TEST(odd_keys_are_keys), CONTRACT_TEST(dots_are_nothing_special),                     \
        CONTRACT_TEST(keys_may_be_1024_bytes_long)
