/* What every store of objects promises, as tests. A test program defines a struct contract_backend,
 * setup and teardown, and adds CONTRACT_TESTS to its table. What a store cannot do it says in its
 * contract_backend. Included by test programs only. */
#pragma once

#include <sys/stat.h>

#include "base/clock.h"
#include "objects/objects_contract_flow.h"
#include "objects/objects_contract_keys.h"
#include "objects/objects_contract_list.h"
#include "objects/objects_testing.h"

/* --- putting and getting ---------------------------------------------------------------------- */

static void what_was_put_is_got(void **state)
{
    struct contract *contract = *state;
    AUTO(reply) struct reply *put = put_text(contract, "a/b/c", "hello");
    AUTO(reply) struct reply *got = get_bytes(contract, "a/b/c");
    AUTO(reply) struct reply *seen = head(contract, "a/b/c");
    uint8_t sum[OBJECTS_SUM_SIZE];
    int64_t age;

    expect_ok(put);
    expect_ok(got);
    expect_ok(seen);
    assert_int_equal(got->length, 5);
    assert_string_equal(got->bytes, "hello");
    assert_int_equal(put->info.size, 5);
    assert_int_equal(seen->info.size, 5);
    assert_true(*put->info.tag);
    assert_string_equal(put->info.tag, got->info.tag);
    assert_string_equal(put->info.tag, seen->info.tag);
    sha256_bytes("hello", 5, sum);
    assert_true(put->info.has_sum && seen->info.has_sum && got->info.has_sum);
    assert_memory_equal(seen->info.sum, sum, sizeof(sum));
    assert_memory_equal(got->info.sum, sum, sizeof(sum));
    age = clock_wall_ms(clock_system()) - seen->info.modified_ms;
    assert_true(age > -60000 && age < 60000);
}

static void what_was_put_is_there_after_a_close(void **state)
{
    struct contract *contract = *state;

    put_ok(contract, "kept", "for good");
    reopen(contract);
    expect_content(contract, "kept", "for good");
}

static void an_empty_object_is_one(void **state)
{
    struct contract *contract = *state;

    put_ok(contract, "empty", "");
    expect_content(contract, "empty", "");
    {
        AUTO(reply) struct reply *part = get_part(contract, "empty", 0, 0);

        expect_code(part, ERR_RANGE);
    }
}

static void all_bytes_are_kept(void **state)
{
    struct contract *contract = *state;
    char bytes[512];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char) i;
    {
        AUTO(reply) struct reply *put = put_bytes(contract, "bytes", bytes, sizeof(bytes), NULL);
        AUTO(reply) struct reply *got = get_bytes(contract, "bytes");

        expect_ok(put);
        expect_ok(got);
        assert_int_equal(got->length, sizeof(bytes));
        assert_memory_equal(got->bytes, bytes, sizeof(bytes));
    }
}

static void a_put_replaces_the_whole(void **state)
{
    struct contract *contract = *state;
    AUTO(reply) struct reply *first = put_text(contract, "key", "a longer text");
    AUTO(reply) struct reply *second = put_text(contract, "key", "short");

    expect_ok(first);
    expect_ok(second);
    assert_string_not_equal(first->info.tag, second->info.tag);
    expect_content(contract, "key", "short");
    if (contract->backend->tags_are_new) {
        AUTO(reply) struct reply *again = put_text(contract, "key", "short");

        assert_string_not_equal(second->info.tag, again->info.tag);
    }
}

static void metadata_comes_back(void **state)
{
    struct contract *contract = *state;
    const struct object_pair pairs[] = {{"mode", "0644"}, {"mtime-ns", "17 = \"x\"; ~"}};
    struct object_put_options options = {
        .media_type = "text/plain; charset=utf-8", .metadata = pairs, .metadata_count = 2};
    AUTO(reply) struct reply *put = put_bytes(contract, "key", "x", 1, &options);
    AUTO(reply) struct reply *got = get_bytes(contract, "key");
    AUTO(reply) struct reply *seen = head(contract, "key");

    expect_ok(put);
    expect_ok(got);
    expect_ok(seen);
    for (size_t i = 0; i < 2; i++) {
        const struct object_info *info = i ? &got->info : &seen->info;
        size_t found = 0;

        assert_int_equal(info->metadata_count, 2);
        for (size_t j = 0; j < 2; j++) { /* in whatever order */
            for (size_t k = 0; k < 2; k++)
                found += strcmp(info->metadata[j].name, pairs[k].name) == 0 &&
                         strcmp(info->metadata[j].value, pairs[k].value) == 0;
        }
        assert_int_equal(found, 2);
    }
    put_ok(contract, "key", "y"); /* and goes with what it belongs to */
    {
        AUTO(reply) struct reply *later = head(contract, "key");

        assert_int_equal(later->info.metadata_count, 0);
    }
}

static void much_metadata_is_kept(void **state)
{
    struct contract *contract = *state;
    struct object_pair pairs[OBJECTS_METADATA_COUNT];
    struct object_put_options options = {.metadata = pairs,
                                         .metadata_count = OBJECTS_METADATA_COUNT};
    char names[OBJECTS_METADATA_COUNT][16];
    char value[OBJECTS_METADATA_MAX / OBJECTS_METADATA_COUNT - 7];

    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    for (size_t i = 0; i < OBJECTS_METADATA_COUNT; i++) {
        (void) snprintf(names[i], sizeof(names[i]), "name-%02zu", i);
        pairs[i] = (struct object_pair){names[i], value};
    }
    {
        AUTO(reply) struct reply *put = put_bytes(contract, "key", "x", 1, &options);
        AUTO(reply) struct reply *seen = head(contract, "key");

        expect_ok(put);
        assert_int_equal(seen->info.metadata_count, OBJECTS_METADATA_COUNT);
    }
}

static void what_is_not_there_is_not_found(void **state)
{
    struct contract *contract = *state;
    const char *const keys[] = {"none", "a/none", "a"};

    put_ok(contract, "a/b", "x");
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        int file = file_of(0);
        AUTO(reply) struct reply *got = get_bytes(contract, keys[i]);
        AUTO(reply) struct reply *written = get_file(contract, keys[i], file, NULL);
        AUTO(reply) struct reply *copied = copy(contract, keys[i], "to");

        expect_missing(contract, keys[i]);
        expect_code(got, ERR_NOT_FOUND);
        expect_code(written, ERR_NOT_FOUND);
        expect_code(copied, ERR_NOT_FOUND);
        delete_ok(contract, keys[i]);
        (void) close(file);
    }
    expect_missing(contract, "to");
    expect_content(contract, "a/b", "x");
}

static void ranges_fit_or_are_refused(void **state)
{
    static const struct {
        uint64_t offset, length;
        const char *expected; /* NULL: ERR_RANGE */
    } cases[] = {
        {0, 0, "0123456789"},
        {0, 10, "0123456789"},
        {0, 1, "0"},
        {3, 4, "3456"},
        {9, 1, "9"},
        {8, 100, "89"},
        {5, 0, "56789"},
        {0, UINT64_MAX, "0123456789"},
        {5, UINT64_MAX, "56789"},
        {10, 0, NULL},
        {10, 1, NULL},
        {UINT64_MAX, 1, NULL},
        {UINT64_MAX, 0, NULL},
        {INT64_MAX, 2, NULL},
    };
    struct contract *contract = *state;

    put_ok(contract, "digits", "0123456789");
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        AUTO(reply)
        struct reply *part = get_part(contract, "digits", cases[i].offset, cases[i].length);

        if (!cases[i].expected) {
            expect_code(part, ERR_RANGE);
            continue;
        }
        expect_ok(part);
        assert_int_equal(part->length, strlen(cases[i].expected));
        assert_memory_equal(part->bytes, cases[i].expected, part->length);
        assert_int_equal(part->info.size, 10); /* of the object */
    }
}

static void what_is_too_large_for_memory_is_refused(void **state)
{
    struct contract *contract = *state;
    AUTO(close) int file = file_of(OBJECTS_BYTES_MAX + 1);
    AUTO(reply) struct reply *put = put_file(contract, "large", file, NULL);
    AUTO(reply) struct reply *all = get_bytes(contract, "large");
    AUTO(reply) struct reply *most = get_part(contract, "large", 1, OBJECTS_BYTES_MAX);
    AUTO(reply) struct reply *rest = get_part(contract, "large", OBJECTS_BYTES_MAX, 0);
    AUTO(reply) struct reply *bytes = put_bytes(contract, "x", "", OBJECTS_BYTES_MAX + 1, NULL);

    expect_ok(put);
    expect_code(all, ERR_TOO_LARGE);
    expect_ok(most);
    assert_int_equal(most->length, OBJECTS_BYTES_MAX);
    expect_ok(rest);
    assert_int_equal(rest->length, 1);
    expect_code(bytes, ERR_TOO_LARGE);
}

/* --- conditions ------------------------------------------------------------------------------- */

static void only_new_refuses_what_is_there(void **state)
{
    struct contract *contract = *state;
    struct object_put_options options = {.only_new = true};
    AUTO(reply) struct reply *first = put_bytes(contract, "key", "first", 5, &options);
    AUTO(reply) struct reply *second = put_bytes(contract, "key", "second", 6, &options);

    expect_ok(first);
    expect_code(second, ERR_CONFLICT);
    expect_content(contract, "key", "first");
    delete_ok(contract, "key");
    {
        AUTO(reply) struct reply *third = put_bytes(contract, "key", "third", 5, &options);

        expect_ok(third);
    }
}

static void only_tag_refuses_what_has_changed(void **state)
{
    struct contract *contract = *state;
    AUTO(reply) struct reply *first = put_text(contract, "key", "first");
    struct object_put_options options = {.only_tag = first->info.tag};
    AUTO(reply) struct reply *second = put_bytes(contract, "key", "second", 6, &options);
    AUTO(reply) struct reply *late = put_bytes(contract, "key", "late", 4, &options);
    AUTO(reply) struct reply *nothing = put_bytes(contract, "none", "x", 1, &options);
    AUTO(reply) struct reply *old = get_tagged(contract, "key", first->info.tag);
    AUTO(reply) struct reply *now = get_tagged(contract, "key", second->info.tag);

    expect_ok(second);
    expect_code(late, ERR_CONFLICT);
    expect_code(nothing, ERR_CONFLICT);
    expect_code(old, ERR_CONFLICT);
    expect_ok(now);
    expect_content(contract, "key", "second");
    expect_missing(contract, "none");
}

/* Of many that want the same, exactly one has it. */
static void put_at_once(struct contract *contract, const struct object_put_options *options)
{
    struct reply *replies[16];
    size_t won = 0, winner = 0;
    char text[32];

    for (size_t i = 0; i < ARRAY_COUNT(replies); i++) {
        (void) snprintf(text, sizeof(text), "number %02zu", i);
        replies[i] = reply_new();
        (void) objects_put_bytes(contract->objects, "raced", text, strlen(text), options, on_info,
                                 replies[i]);
    }
    for (size_t i = 0; i < ARRAY_COUNT(replies); i++) {
        OBJECTS_WAIT(contract, replies[i]->times);
        if (!replies[i]->failed) {
            won++;
            winner = i;
        } else {
            expect_code(replies[i], ERR_CONFLICT);
        }
        reply_free(replies[i]);
    }
    assert_int_equal(won, 1);
    (void) snprintf(text, sizeof(text), "number %02zu", winner);
    expect_content(contract, "raced", text);
}

static void one_of_many_conditional_puts_wins(void **state)
{
    struct contract *contract = *state;
    struct object_put_options options = {.only_new = true};

    put_at_once(contract, &options);
    {
        AUTO(reply) struct reply *seen = head(contract, "raced");
        struct object_put_options tagged = {.only_tag = seen->info.tag};

        put_ok(contract, "raced", "other bytes");
        {
            AUTO(reply) struct reply *late = put_bytes(contract, "raced", "x", 1, &tagged);

            expect_code(late, ERR_CONFLICT);
        }
    }
    {
        AUTO(reply) struct reply *seen = head(contract, "raced");
        struct object_put_options tagged = {.only_tag = seen->info.tag};

        put_at_once(contract, &tagged);
    }
}

/* --- copies and deletes ----------------------------------------------------------------------- */

static void a_copy_is_an_object_of_its_own(void **state)
{
    struct contract *contract = *state;
    const struct object_pair pair = {"origin", "here"};
    struct object_put_options options = {.metadata = &pair, .metadata_count = 1};
    AUTO(reply) struct reply *put = put_bytes(contract, "from/a", "content", 7, &options);
    AUTO(reply) struct reply *copied = copy(contract, "from/a", "to/b");
    AUTO(reply) struct reply *seen = head(contract, "to/b");

    expect_ok(put);
    expect_ok(copied);
    assert_int_equal(copied->info.size, 7);
    assert_int_equal(seen->info.metadata_count, 1);
    assert_string_equal(seen->info.metadata[0].value, "here");
    assert_true(seen->info.has_sum);
    delete_ok(contract, "from/a");
    expect_content(contract, "to/b", "content");
    put_ok(contract, "from/a", "other");
    {
        AUTO(reply) struct reply *over = copy(contract, "from/a", "to/b");

        expect_ok(over);
    }
    expect_content(contract, "to/b", "other");
}

static void a_delete_takes_what_it_names(void **state)
{
    struct contract *contract = *state;
    const char *const keys[] = {"d/1", "d/2", "d/none", "d/e/3", "d/1"};
    const char *const left[] = {"d", "d-1", "d2/1"};

    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        if (i != 2)
            put_ok(contract, keys[i], "x");
    }
    put_ok(contract, "d-1", "x");
    put_ok(contract, "d2/1", "x");
    {
        AUTO(reply) struct reply *reply = delete_keys(contract, keys, ARRAY_COUNT(keys));

        expect_ok(reply);
    }
    put_ok(contract, "d", "a folder no more");
    delete_ok(contract, "d/e/3"); /* what cannot be there is not there */
    expect_listed(contract, "", false, 100, left, ARRAY_COUNT(left));
    {
        AUTO(reply) struct reply *none = delete_keys(contract, keys, 0);

        expect_ok(none);
    }
}

/* --- what is refused -------------------------------------------------------------------------- */

static void wrong_keys_are_refused(void **state)
{
    struct contract *contract = *state;
    char longer[OBJECTS_KEY_MAX + 2];
    const char *const keys[] = {"", longer, "\xff", "a/\xc3", "\xed\xa0\x80"};

    memset(longer, 'k', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        AUTO(close) int file = file_of(1);
        AUTO(reply) struct reply *put = put_text(contract, keys[i], "x");
        AUTO(reply) struct reply *put_a_file = put_file(contract, keys[i], file, NULL);
        AUTO(reply) struct reply *got = get_bytes(contract, keys[i]);
        AUTO(reply) struct reply *written = get_file(contract, keys[i], file, NULL);
        AUTO(reply) struct reply *seen = head(contract, keys[i]);
        AUTO(reply) struct reply *from = copy(contract, keys[i], "x");
        AUTO(reply) struct reply *to = copy(contract, "x", keys[i]);
        AUTO(reply) struct reply *deleted = delete_keys(contract, &keys[i], 1);
        const struct reply *all[] = {put, put_a_file, got, written, seen, from, to, deleted};

        for (size_t j = 0; j < ARRAY_COUNT(all); j++)
            expect_code(all[j], ERR_INVALID);
    }
}

static void wrong_arguments_are_refused(void **state)
{
    static const struct object_pair wrong[] = {
        {"Upper", "x"}, {"", "x"},   {"under_score", "x"}, {"a", ""},   {"a", " x"},
        {"a", "x "},    {"a", "\n"}, {"a", "\xc3\xa4"},    {"a", NULL},
    };
    static const struct object_pair twice[] = {{"a", "x"}, {"a", "y"}};
    struct contract *contract = *state;
    const struct object_put_options options[] = {
        {.only_new = true, .only_tag = "x"},
        {.only_tag = ""},
        {.only_tag = "a\"b"},
        {.media_type = "text\r\nx: y"},
        {.metadata = twice, .metadata_count = 2},
        {.metadata = wrong, .metadata_count = OBJECTS_METADATA_COUNT + 1},
    };
    const char *keys[OBJECTS_DELETE_MAX + 1] = {NULL};
    int pipes[2];

    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        struct object_put_options one = {.metadata = &wrong[i], .metadata_count = 1};
        AUTO(reply) struct reply *put = put_bytes(contract, "key", "x", 1, &one);

        expect_code(put, ERR_INVALID);
    }
    for (size_t i = 0; i < ARRAY_COUNT(options); i++) {
        AUTO(reply) struct reply *put = put_bytes(contract, "key", "x", 1, &options[i]);

        expect_code(put, ERR_INVALID);
    }
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    {
        AUTO(reply) struct reply *no_file = put_file(contract, "key", pipes[0], NULL);
        AUTO(reply) struct reply *closed = put_file(contract, "key", -1, NULL);
        AUTO(reply) struct reply *many = delete_keys(contract, keys, ARRAY_COUNT(keys));
        AUTO(reply) struct reply *no_page = list(contract, "", false, NULL, 0);
        AUTO(reply)
        struct reply *big_page = list(contract, "", false, NULL, OBJECTS_PAGE_MAX + 1);
        const struct reply *all[] = {no_file, closed, many, no_page, big_page};

        for (size_t i = 0; i < ARRAY_COUNT(all); i++)
            expect_code(all[i], ERR_INVALID);
    }
    (void) close(pipes[0]);
    (void) close(pipes[1]);
    expect_missing(contract, "key");
}

static void a_store_says_how_it_is(void **state)
{
    struct contract *contract = *state;
    AUTO(reply) struct reply *reply = reply_new();
    struct objects_counters before, counters;

    (void) objects_check(contract->objects, on_done, reply);
    OBJECTS_WAIT(contract, reply->times);
    expect_ok(reply);
    assert_true(*objects_text(contract->objects));
    objects_counters(contract->objects, &before);
    put_ok(contract, "key", "12345");
    expect_content(contract, "key", "12345");
    expect_missing(contract, "none");
    objects_counters(contract->objects, &counters);
    assert_int_equal(counters.calls - before.calls, 3);
    assert_int_equal(counters.failures - before.failures, 1);
    assert_int_equal(counters.bytes_in - before.bytes_in, 5);
    assert_int_equal(counters.bytes_out - before.bytes_out, 5);
    assert_int_equal(counters.queued + counters.running, 0);
}

#define CONTRACT_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define CONTRACT_TESTS                                                                             \
    CONTRACT_TEST(what_was_put_is_got), CONTRACT_TEST(what_was_put_is_there_after_a_close),        \
        CONTRACT_TEST(an_empty_object_is_one), CONTRACT_TEST(all_bytes_are_kept),                  \
        CONTRACT_TEST(a_put_replaces_the_whole), CONTRACT_TEST(metadata_comes_back),               \
        CONTRACT_TEST(much_metadata_is_kept), CONTRACT_TEST(what_is_not_there_is_not_found),       \
        CONTRACT_TEST(ranges_fit_or_are_refused),                                                  \
        CONTRACT_TEST(what_is_too_large_for_memory_is_refused),                                    \
        CONTRACT_TEST(only_new_refuses_what_is_there),                                             \
        CONTRACT_TEST(only_tag_refuses_what_has_changed),                                          \
        CONTRACT_TEST(one_of_many_conditional_puts_wins),                                          \
        CONTRACT_TEST(a_copy_is_an_object_of_its_own),                                             \
        CONTRACT_TEST(a_delete_takes_what_it_names), CONTRACT_KEYS_TESTS,                          \
        CONTRACT_TEST(wrong_keys_are_refused), CONTRACT_TEST(wrong_arguments_are_refused),         \
        CONTRACT_TEST(a_store_says_how_it_is), CONTRACT_FLOW_TESTS, CONTRACT_LIST_TESTS
