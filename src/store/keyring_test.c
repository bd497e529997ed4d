#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>

#include "net/net_testing.h"
#include "store/keyring.h"

struct place {
    struct testing_folder folder;
    int fd;
};

static int setup(void **state)
{
    struct place *place = test_calloc(1, sizeof(*place));

    testing_folder_make(&place->folder);
    place->fd = open(place->folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(place->fd >= 0);
    *state = place;
    return 0;
}

static int teardown(void **state)
{
    struct place *place = *state;
    static const char *const names[] = {"keys"};

    (void) close(place->fd);
    testing_folder_remove(&place->folder, names, 1);
    test_free(place);
    return 0;
}

static void write_keys(const struct place *place, const char *text, mode_t mode)
{
    int fd = openat(place->fd, "keys", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    (void) close(fd);
}

static void expect_opens(const struct keyring *keyring, const char *context,
                         const struct text *sealed, const char *plain)
{
    AUTO(text) struct text out = TEXT_INIT(4096);
    struct error err = ERROR_INIT;

    if (keyring_unseal(keyring, context, sealed->data, sealed->length, &out, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(out.length, strlen(plain));
    assert_string_equal(text_string(&out), plain);
}

static void expect_closed(const struct keyring *keyring, const char *context, const char *bytes,
                          size_t length)
{
    AUTO(text) struct text out = TEXT_INIT(4096);
    struct error err = ERROR_INIT;

    assert_int_equal(keyring_unseal(keyring, context, bytes, length, &out, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(out.length, 0);
}

static void what_was_sealed_opens_in_its_context_only(void **state)
{
    AUTO(keyring) struct keyring *keyring = keyring_new();
    AUTO(text) struct text sealed = TEXT_INIT(4096);

    (void) state;
    keyring_seal(keyring, "secret.value/a", "hunter2", 7, &sealed);
    assert_int_equal(sealed.length, 7 + KEYRING_SEAL_EXTRA);
    assert_null(memmem(sealed.data, sealed.length, "hunter2", 7));
    expect_opens(keyring, "secret.value/a", &sealed, "hunter2");
    expect_closed(keyring, "secret.value/b", sealed.data, sealed.length);
    expect_closed(keyring, "", sealed.data, sealed.length);
}

static void nothing_can_be_sealed_too(void **state)
{
    AUTO(keyring) struct keyring *keyring = keyring_new();
    AUTO(text) struct text sealed = TEXT_INIT(4096);

    (void) state;
    keyring_seal(keyring, "c", "", 0, &sealed);
    expect_opens(keyring, "c", &sealed, "");
}

static void the_same_value_never_looks_the_same(void **state)
{
    AUTO(keyring) struct keyring *keyring = keyring_new();
    AUTO(text) struct text one = TEXT_INIT(4096), two = TEXT_INIT(4096);

    (void) state;
    keyring_seal(keyring, "c", "same", 4, &one);
    keyring_seal(keyring, "c", "same", 4, &two);
    assert_memory_not_equal(one.data, two.data, one.length);
}

static void every_changed_bit_is_noticed(void **state)
{
    AUTO(keyring) struct keyring *keyring = keyring_new();
    AUTO(text) struct text sealed = TEXT_INIT(4096);

    (void) state;
    keyring_seal(keyring, "c", "value", 5, &sealed);
    for (size_t i = 0; i < sealed.length; i++) {
        sealed.data[i] ^= 1;
        expect_closed(keyring, "c", sealed.data, sealed.length);
        sealed.data[i] ^= 1;
    }
    for (size_t length = 0; length < sealed.length; length++)
        expect_closed(keyring, "c", sealed.data, length);
    expect_opens(keyring, "c", &sealed, "value");
}

static void the_file_is_private_and_lasts(void **state)
{
    struct place *place = *state;
    struct error err = ERROR_INIT;
    AUTO(keyring) struct keyring *first = keyring_open(place->fd, "keys", &err);
    AUTO(keyring) struct keyring *second = keyring_open(place->fd, "keys", &err);
    AUTO(text) struct text sealed = TEXT_INIT(4096);
    struct stat status;

    assert_true(first && second);
    assert_int_equal(fstatat(place->fd, "keys", &status, 0), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    keyring_seal(first, "c", "value", 5, &sealed);
    expect_opens(second, "c", &sealed, "value");
}

static void after_a_rotation_old_values_open_and_new_ones_are_current(void **state)
{
    struct place *place = *state;
    struct error err = ERROR_INIT;
    AUTO(keyring) struct keyring *keyring = keyring_open(place->fd, "keys", &err);
    AUTO(keyring) struct keyring *again = NULL;
    AUTO(text) struct text old = TEXT_INIT(4096), new = TEXT_INIT(4096);

    keyring_seal(keyring, "c", "old", 3, &old);
    assert_true(keyring_is_current(keyring, old.data, old.length));
    assert_int_equal(keyring_rotate(keyring, place->fd, "keys", &err), 0);
    keyring_seal(keyring, "c", "new", 3, &new);
    assert_false(keyring_is_current(keyring, old.data, old.length));
    assert_true(keyring_is_current(keyring, new.data, new.length));
    again = keyring_open(place->fd, "keys", &err);
    expect_opens(again, "c", &old, "old");
    expect_opens(again, "c", &new, "new");
    assert_true(keyring_is_current(again, new.data, new.length));
}

static void a_derived_secret_outlives_rotations(void **state)
{
    struct place *place = *state;
    struct error err = ERROR_INIT;
    AUTO(keyring) struct keyring *keyring = keyring_open(place->fd, "keys", &err);
    AUTO(keyring) struct keyring *again = NULL;
    AUTO(keyring) struct keyring *other = keyring_new();
    uint8_t first[SHA256_SIZE], later[SHA256_SIZE];

    keyring_derive(keyring, "one", first);
    keyring_derive(keyring, "two", later);
    assert_memory_not_equal(first, later, sizeof(first));
    keyring_derive(other, "one", later);
    assert_memory_not_equal(first, later, sizeof(first));
    assert_int_equal(keyring_rotate(keyring, place->fd, "keys", &err), 0);
    again = keyring_open(place->fd, "keys", &err);
    keyring_derive(again, "one", later);
    assert_memory_equal(first, later, sizeof(first));
}

static void a_ring_that_is_full_says_so(void **state)
{
    struct place *place = *state;
    struct error err = ERROR_INIT;
    AUTO(keyring) struct keyring *keyring = keyring_open(place->fd, "keys", &err);
    AUTO(keyring) struct keyring *again = NULL;

    for (int i = 1; i < KEYRING_KEYS_MAX; i++)
        assert_int_equal(keyring_rotate(keyring, place->fd, "keys", &err), 0);
    assert_int_equal(keyring_rotate(keyring, place->fd, "keys", &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    again = keyring_open(place->fd, "keys", &err);
    assert_non_null(again);
}

static void a_file_changed_by_others_is_not_written_over(void **state)
{
    struct place *place = *state;
    struct error err = ERROR_INIT;
    AUTO(keyring) struct keyring *one = keyring_open(place->fd, "keys", &err);
    AUTO(keyring) struct keyring *two = keyring_open(place->fd, "keys", &err);

    assert_int_equal(keyring_rotate(one, place->fd, "keys", &err), 0);
    assert_int_equal(keyring_rotate(two, place->fd, "keys", &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
}

static void values_of_a_missing_key_do_not_open(void **state)
{
    struct place *place = *state;
    struct error err = ERROR_INIT;
    AUTO(keyring) struct keyring *one = keyring_open(place->fd, "keys", &err);
    AUTO(keyring) struct keyring *other = keyring_new();
    AUTO(text) struct text sealed = TEXT_INIT(4096);

    assert_int_equal(keyring_rotate(one, place->fd, "keys", &err), 0);
    keyring_seal(one, "c", "value", 5, &sealed);
    expect_closed(other, "c", sealed.data, sealed.length);
}

static void a_file_that_others_can_read_is_refused(void **state)
{
    struct place *place = *state;
    struct error err = ERROR_INIT;
    AUTO(keyring) struct keyring *keyring = keyring_open(place->fd, "keys", &err);

    assert_non_null(keyring);
    for (mode_t bit = 1; bit < 0100; bit <<= 1) {
        assert_int_equal(fchmodat(place->fd, "keys", 0600 | bit, 0), 0);
        assert_null(keyring_open(place->fd, "keys", &err));
        assert_int_equal(err.code, ERR_INVALID);
        assert_non_null(strstr(err.message, "'keys'"));
    }
}

static void files_of_another_form_are_refused(void **state)
{
#define HEX "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
    static const struct {
        const char *text;
        bool good;
    } cases[] = {
        {"1 " HEX "\n", true},
        {"1 " HEX, true},
        {"# why\n\n7 " HEX "\n", true},
        {"", false},
        {"# only this\n", false},
        {"1 " HEX "0\n", false},
        {"1 abcd\n", false},
        {"1" HEX "\n", false},
        {"x " HEX "\n", false},
        {"1 " HEX "\n1 " HEX "\n", false},
        {"4294967296 " HEX "\n", false},
    };
    struct place *place = *state;

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct error err = ERROR_INIT;
        AUTO(keyring) struct keyring *keyring = NULL;

        write_keys(place, cases[i].text, 0600);
        keyring = keyring_open(place->fd, "keys", &err);
        assert_int_equal(keyring != NULL, cases[i].good);
        if (!cases[i].good)
            assert_int_equal(err.code, ERR_INVALID);
    }
}

static void something_else_than_a_file_is_refused(void **state)
{
    struct place *place = *state;
    struct error err = ERROR_INIT;

    assert_int_equal(symlinkat("/dev/null", place->fd, "keys"), 0);
    assert_null(keyring_open(place->fd, "keys", &err));
    assert_int_equal(unlinkat(place->fd, "keys", 0), 0);
    assert_int_equal(mkfifoat(place->fd, "keys", 0600), 0);
    assert_null(keyring_open(place->fd, "keys", &err));
}

static void *seal_much(void *data)
{
    const struct keyring *keyring = data;

    for (int i = 0; i < 2000; i++) {
        AUTO(text) struct text sealed = TEXT_INIT(4096);

        keyring_seal(keyring, "c", "value", 5, &sealed);
        expect_opens(keyring, "c", &sealed, "value");
    }
    return NULL;
}

static void another_thread_may_seal_during_a_rotation(void **state)
{
    struct place *place = *state;
    struct error err = ERROR_INIT;
    AUTO(keyring) struct keyring *keyring = keyring_open(place->fd, "keys", &err);
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, seal_much, keyring), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(keyring_rotate(keyring, place->fd, "keys", &err), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_was_sealed_opens_in_its_context_only),
        TEST(nothing_can_be_sealed_too),
        TEST(the_same_value_never_looks_the_same),
        TEST(every_changed_bit_is_noticed),
        TEST(the_file_is_private_and_lasts),
        TEST(after_a_rotation_old_values_open_and_new_ones_are_current),
        TEST(a_derived_secret_outlives_rotations),
        TEST(a_ring_that_is_full_says_so),
        TEST(a_file_changed_by_others_is_not_written_over),
        TEST(values_of_a_missing_key_do_not_open),
        TEST(a_file_that_others_can_read_is_refused),
        TEST(files_of_another_form_are_refused),
        TEST(something_else_than_a_file_is_refused),
        TEST(another_thread_may_seal_during_a_rotation),
    };

    return cmocka_run_group_tests_name("keyring", tests, NULL, NULL);
}
