#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "base/encoding/encode.h"

struct vector {
    const char *bytes;
    const char *standard;
    const char *url;
};

/* RFC 4648 section 10, and bytes whose digits differ between the two kinds. */
static const struct vector vectors[] = {
    {"", "", ""},
    {"f", "Zg==", "Zg"},
    {"fo", "Zm8=", "Zm8"},
    {"foo", "Zm9v", "Zm9v"},
    {"foob", "Zm9vYg==", "Zm9vYg"},
    {"fooba", "Zm9vYmE=", "Zm9vYmE"},
    {"foobar", "Zm9vYmFy", "Zm9vYmFy"},
    {"\xfb\xff\xfe", "+//+", "-__-"},
};

static void base64_agrees_with_the_rfc(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(vectors); i++) {
        const struct vector *vector = &vectors[i];
        size_t length = strlen(vector->bytes);
        char text[32];

        assert_int_equal(base64_encode(BASE64_STANDARD, vector->bytes, length, text),
                         strlen(vector->standard));
        assert_string_equal(text, vector->standard);
        assert_int_equal(base64_encode(BASE64_URL, vector->bytes, length, text),
                         strlen(vector->url));
        assert_string_equal(text, vector->url);
    }
}

static void fill(uint8_t *bytes, size_t count)
{
    uint32_t state = 12345;

    for (size_t i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;
        bytes[i] = (uint8_t) (state >> 24);
    }
}

static void all_lengths_come_back(void **state)
{
    uint8_t bytes[300], back[300];
    char text[BASE64_TEXT_SIZE(300) + HEX_TEXT_SIZE(300)];

    (void) state;
    fill(bytes, sizeof(bytes));
    for (size_t count = 0; count <= sizeof(bytes); count++) {
        for (int kind = BASE64_STANDARD; kind <= BASE64_URL; kind++) {
            size_t length = base64_encode((enum base64_kind) kind, bytes, count, text), got = 999;

            assert_true(length < BASE64_TEXT_SIZE(count) && count <= BASE64_BYTES_MAX(length));
            assert_int_equal(
                base64_decode((enum base64_kind) kind, text, length, back, count, &got), 0);
            assert_int_equal(got, count);
            assert_memory_equal(back, bytes, count);
        }
        assert_int_equal(hex_encode(bytes, count, text), 2 * count);
        assert_int_equal(hex_decode(text, 2 * count, back, count, &(size_t){0}), 0);
        assert_memory_equal(back, bytes, count);
    }
}

static void base64_refuses_every_other_form(void **state)
{
    static const char *const wrong_standard[] = {
        "Z",    "Zg",    "Zg=",      "Zm9",  "Zg===",  "=",       "==",
        "====", "Z===",  "Zh==",     "Zm9=", "Zg==\n", " Zg==",   "Z g=",
        "-__-", "Zm9v=", "Zg==Zg==", "Zm=v", "Zm9v\n", "Z\x80==",
    };
    static const char *const wrong_url[] = {
        "Z", "Zg==", "Zm8=", "Zh", "Zm9", "+//+", "Zm9vY", "Zg\n", " Zg", "Zm9v=",
    };
    char bytes[32];
    size_t count = 42;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong_standard); i++) {
        if (base64_decode(BASE64_STANDARD, wrong_standard[i], strlen(wrong_standard[i]), bytes,
                          sizeof(bytes), &count) != -EINVAL)
            fail_msg("accepted '%s'", wrong_standard[i]);
    }
    for (size_t i = 0; i < ARRAY_COUNT(wrong_url); i++) {
        if (base64_decode(BASE64_URL, wrong_url[i], strlen(wrong_url[i]), bytes, sizeof(bytes),
                          &count) != -EINVAL)
            fail_msg("accepted '%s'", wrong_url[i]);
    }
    assert_int_equal(count, 42);
}

static void exactly_the_digits_of_each_kind_are_accepted(void **state)
{
    static const char alphanumeric[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

    (void) state;
    for (int byte = 0; byte < 256; byte++) {
        const char text[] = {'A', (char) byte, 'A', 'A'};
        bool common = byte && strchr(alphanumeric, byte);
        char bytes[3];
        size_t count;

        assert_int_equal(base64_decode(BASE64_STANDARD, text, 4, bytes, 3, &count) == 0,
                         common || byte == '+' || byte == '/');
        assert_int_equal(base64_decode(BASE64_URL, text, 4, bytes, 3, &count) == 0,
                         common || byte == '-' || byte == '_');
    }
}

static void too_many_bytes_are_refused_before_any_is_written(void **state)
{
    char bytes[4] = "xyz";
    size_t count = 42;

    (void) state;
    assert_int_equal(base64_decode(BASE64_STANDARD, "Zm9v", 4, bytes, 2, &count), -ENOSPC);
    assert_int_equal(hex_decode("00ff", 4, bytes, 1, &count), -ENOSPC);
    assert_string_equal(bytes, "xyz");
    assert_int_equal(count, 42);
    assert_int_equal(base64_decode(BASE64_STANDARD, "Zg==", 4, bytes, 1, &count), 0);
    assert_int_equal(count, 1);
}

static void hex_takes_both_cases_and_writes_lower(void **state)
{
    uint8_t bytes[4];
    size_t count = 0;
    char text[HEX_TEXT_SIZE(4)];

    (void) state;
    assert_int_equal(hex_decode("00fFAb9c", 8, bytes, sizeof(bytes), &count), 0);
    assert_int_equal(count, 4);
    assert_memory_equal(bytes, "\x00\xff\xab\x9c", 4);
    assert_int_equal(hex_encode(bytes, 4, text), 8);
    assert_string_equal(text, "00ffab9c");
}

static void hex_refuses_every_other_form(void **state)
{
    static const char *const wrong[] = {"0",    "000", "0g", "g0", "0x00",
                                        " 00 ", "0/",  ":0", "@0", "`0"};
    uint8_t bytes[4];

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        if (hex_decode(wrong[i], strlen(wrong[i]), bytes, sizeof(bytes), &(size_t){0}) != -EINVAL)
            fail_msg("accepted '%s'", wrong[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base64_agrees_with_the_rfc),
        cmocka_unit_test(all_lengths_come_back),
        cmocka_unit_test(base64_refuses_every_other_form),
        cmocka_unit_test(exactly_the_digits_of_each_kind_are_accepted),
        cmocka_unit_test(too_many_bytes_are_refused_before_any_is_written),
        cmocka_unit_test(hex_takes_both_cases_and_writes_lower),
        cmocka_unit_test(hex_refuses_every_other_form),
    };

    return cmocka_run_group_tests_name("encode", tests, NULL, NULL);
}
