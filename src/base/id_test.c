#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "base/id.h"

static void known_bytes_give_known_ids(void **state)
{
    uint8_t bytes[ID_RANDOM_SIZE] = {0};

    (void) state;
    assert_string_equal(id_from_bytes(bytes).text, "aaaaaaaaaaaaaaaaaaaaaaaaaa");
    memset(bytes, 0xff, sizeof(bytes));
    assert_string_equal(id_from_bytes(bytes).text, "77777777777777777777777774");
    /* the base32 of coreutils, lower case and without padding */
    memcpy(bytes, "burrow is a home", sizeof(bytes));
    assert_string_equal(id_from_bytes(bytes).text, "mj2xe4tpo4qgs4zameqgq33nmu");
}

static void every_bit_of_the_bytes_matters(void **state)
{
    const struct id zero = id_from_bytes((uint8_t[ID_RANDOM_SIZE]){0});

    (void) state;
    for (int bit = 0; bit < ID_RANDOM_SIZE * 8; bit++) {
        uint8_t bytes[ID_RANDOM_SIZE] = {0};
        struct id id;

        bytes[bit / 8] = (uint8_t) (0x80 >> bit % 8);
        id = id_from_bytes(bytes);
        assert_true(id_is_valid(id.text));
        for (int i = 0; i < ID_LENGTH; i++)
            assert_int_equal(id.text[i] != zero.text[i], i == bit / 5);
    }
}

static void new_ids_are_valid_and_differ(void **state)
{
    struct id ids[100];

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
        ids[i] = id_new();
        assert_true(id_is_valid(ids[i].text));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(ids[i].text, ids[k].text);
    }
}

static void anything_else_is_no_id(void **state)
{
    static const char *const wrong[] = {
        "",
        "a",
        "aaaaaaaaaaaaaaaaaaaaaaaaa",   /* 25 */
        "aaaaaaaaaaaaaaaaaaaaaaaaaaa", /* 27 */
        "Aaaaaaaaaaaaaaaaaaaaaaaaaa",  /* upper case */
        "aaaaaaaaaaaa0aaaaaaaaaaaaa",  /* 0, 1, 8, 9 are no digits of base32 */
        "aaaaaaaaaaaa1aaaaaaaaaaaaa",
        "aaaaaaaaaaaa8aaaaaaaaaaaaa",
        "aaaaaaaaaaaa/aaaaaaaaaaaaa",
        "aaaaaaaaaaaaaaaaaaaaaaaaab", /* unused bits set */
        "aaaaaaaaaaaaaaaaaaaaaaaaa7",
        "aaaaaaaaaaaaaaaaaaaaaaaaaa\n",
        "../../../../../etc/passwd.",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        if (id_is_valid(wrong[i]))
            fail_msg("accepted '%s'", wrong[i]);
    }
}

static void random_bytes_fill_exactly_what_is_asked(void **state)
{
    uint8_t bytes[1024];
    int different = 0;

    (void) state;
    memset(bytes, 0xa5, sizeof(bytes));
    random_bytes(bytes + 1, 1000); /* above 256 the kernel may return less at once */
    assert_int_equal(bytes[0], 0xa5);
    assert_int_equal(bytes[1001], 0xa5);
    for (int i = 1; i <= 1000; i++)
        different += bytes[i] != 0xa5;
    assert_true(different > 900);
    random_bytes(bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_bytes_give_known_ids),
        cmocka_unit_test(every_bit_of_the_bytes_matters),
        cmocka_unit_test(new_ids_are_valid_and_differ),
        cmocka_unit_test(anything_else_is_no_id),
        cmocka_unit_test(random_bytes_fill_exactly_what_is_asked),
    };

    return cmocka_run_group_tests_name("id", tests, NULL, NULL);
}
