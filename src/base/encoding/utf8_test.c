#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "base/encoding/utf8.h"

struct utf8_case {
    const char *bytes;
    size_t length;
};

#define CASE(text)                                                                                 \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }

static const struct utf8_case valid[] = {
    CASE(""),
    CASE("plain ascii that is longer than two words of eight"),
    CASE("nul \0 is a character"),
    CASE("\x7f"),
    CASE("\xc2\x80"),         /* U+0080, the first of two bytes */
    CASE("\xdf\xbf"),         /* U+07FF */
    CASE("\xe0\xa0\x80"),     /* U+0800 */
    CASE("\xed\x9f\xbf"),     /* U+D7FF, before the surrogates */
    CASE("\xee\x80\x80"),     /* U+E000, behind them */
    CASE("\xef\xbf\xbf"),     /* U+FFFF */
    CASE("\xf0\x90\x80\x80"), /* U+10000 */
    CASE("\xf4\x8f\xbf\xbf"), /* U+10FFFF */
    CASE("0123456789abcde\xc3\xa4 0123456789abcdef\xe2\x82\xac"),
};

static const struct utf8_case invalid[] = {
    CASE("\x80"),
    CASE("\xbf"),
    CASE("\xc0\x80"), /* overlong NUL */
    CASE("\xc1\xbf"),
    CASE("\xe0\x80\x80"),
    CASE("\xe0\x9f\xbf"),
    CASE("\xf0\x80\x80\x80"),
    CASE("\xf0\x8f\xbf\xbf"),
    CASE("\xed\xa0\x80"),     /* U+D800 */
    CASE("\xed\xbf\xbf"),     /* U+DFFF */
    CASE("\xf4\x90\x80\x80"), /* U+110000 */
    CASE("\xf5\x80\x80\x80"),
    CASE("\xff"),
    CASE("\xfe"),
    CASE("\xc3\x28"),
    CASE("\xe2\x82\x28"),
    CASE("\xf0\x90\x28\x80"),
    CASE("0123456789abcdef0123456789abcde\xff"),
    CASE("\xc3\xa4\xa4"),
};

/* Whether the text passes when it is fed in pieces of `step` bytes. */
static bool passes_in_pieces(const struct utf8_case *text, size_t step)
{
    struct utf8_check check = UTF8_CHECK_INIT;

    for (size_t i = 0; i < text->length; i += step) {
        size_t left = text->length - i;

        if (!utf8_check_feed(&check, text->bytes + i, left < step ? left : step))
            return false;
    }
    return utf8_check_finish(&check);
}

static void valid_text_passes_in_pieces_of_any_size(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(valid); i++) {
        assert_true(utf8_is_valid(valid[i].bytes, valid[i].length));
        for (size_t step = 1; step <= valid[i].length; step++)
            assert_true(passes_in_pieces(&valid[i], step));
    }
}

static void invalid_text_fails_in_pieces_of_any_size(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(invalid); i++) {
        assert_false(utf8_is_valid(invalid[i].bytes, invalid[i].length));
        for (size_t step = 1; step <= invalid[i].length; step++)
            assert_false(passes_in_pieces(&invalid[i], step));
    }
}

static void text_that_ends_inside_a_character_is_incomplete(void **state)
{
    static const char euro[] = "abc\xf0\x90\x80\x80";
    struct utf8_check check = UTF8_CHECK_INIT;

    (void) state;
    for (size_t length = 4; length < 7; length++)
        assert_false(utf8_is_valid(euro, length));
    assert_true(utf8_check_feed(&check, euro, 5)); /* so far so good */
    assert_false(utf8_check_finish(&check));
    assert_true(utf8_check_feed(&check, euro + 5, 2));
    assert_true(utf8_check_finish(&check));
}

static void failure_comes_at_the_first_hopeless_byte_and_stays(void **state)
{
    struct utf8_check check = UTF8_CHECK_INIT;

    (void) state;
    assert_true(utf8_check_feed(&check, "\xf4", 1));
    assert_false(utf8_check_feed(&check, "\x90", 1)); /* before the rest arrives */
    assert_false(utf8_check_feed(&check, "abc", 3));
    assert_false(utf8_check_finish(&check));
}

static size_t encode(uint32_t character, char *to)
{
    if (character < 0x80) {
        to[0] = (char) character;
        return 1;
    }
    if (character < 0x800) {
        to[0] = (char) (0xc0 | character >> 6);
        to[1] = (char) (0x80 | (character & 0x3f));
        return 2;
    }
    if (character < 0x10000) {
        to[0] = (char) (0xe0 | character >> 12);
        to[1] = (char) (0x80 | (character >> 6 & 0x3f));
        to[2] = (char) (0x80 | (character & 0x3f));
        return 3;
    }
    to[0] = (char) (0xf0 | character >> 18);
    to[1] = (char) (0x80 | (character >> 12 & 0x3f));
    to[2] = (char) (0x80 | (character >> 6 & 0x3f));
    to[3] = (char) (0x80 | (character & 0x3f));
    return 4;
}

static void every_character_decodes_to_itself(void **state)
{
    (void) state;
    for (uint32_t character = 0; character < 0x120000; character++) {
        bool exists = character <= 0x10ffff && (character < 0xd800 || character > 0xdfff);
        uint32_t decoded = 0;
        char bytes[4];
        size_t length = encode(character, bytes);

        if (utf8_is_valid(bytes, length) != exists)
            fail_msg("wrong for U+%04X", character);
        if (utf8_decode(bytes, length, &decoded) != (exists ? length : 0) ||
            (exists && decoded != character))
            fail_msg("U+%04X decodes to U+%04X", character, decoded);
        if (utf8_decode(bytes, length - 1, &decoded) != 0)
            fail_msg("U+%04X decodes without its last byte", character);
    }
}

static void plain_words_are_those_of_plain_bytes(void **state)
{
    (void) state;
    for (unsigned int byte = 0; byte < 256; byte++) {
        for (unsigned int at = 0; at < 8; at++) {
            unsigned char bytes[8];
            uint64_t word;

            memset(bytes, 'a' + (int) at, sizeof(bytes));
            bytes[at] = (unsigned char) byte;
            memcpy(&word, bytes, sizeof(word));
            assert_int_equal(utf8_is_plain_word(word), utf8_is_plain((unsigned char) byte));
        }
    }
    assert_false(utf8_is_plain('"') || utf8_is_plain('\\') || utf8_is_plain(0x7f));
    assert_true(utf8_is_plain(' ') && utf8_is_plain('~'));
}

static void assert_harmless(const char *given, const char *expected)
{
    char text[64];

    (void) snprintf(text, sizeof(text), "%s", given);
    utf8_make_harmless(text);
    assert_string_equal(text, expected);
}

static void words_for_a_terminal_have_no_commands_in_them(void **state)
{
    /* Not as one text: a reader of this file must not be misled either. */
    const char backwards[] = {'\xe2', '\x80', '\xae', 'a', 'b', 'c', '\0'};

    (void) state;
    assert_harmless("", "");
    assert_harmless("RUN\techo 'gr\xc3\xbc\xc3\x9f' \xe2\x82\xac",
                    "RUN echo 'gr\xc3\xbc\xc3\x9f' \xe2\x82\xac");
    assert_harmless("a\033[2Jb\r\nc\x7f", "a?[2Jb??c?");
    assert_harmless("\xc2\x9b"
                    "2J",
                    "??2J"); /* CSI, in one character */
    assert_harmless("\x9b"
                    "2J",
                    "?2J"); /* and in one byte */
    assert_harmless("\xc2\xa0", "\xc2\xa0");
    assert_harmless(backwards, "???abc");
    assert_harmless("\xc3", "?");
    assert_harmless("\xe2\x82x", "??x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_text_passes_in_pieces_of_any_size),
        cmocka_unit_test(invalid_text_fails_in_pieces_of_any_size),
        cmocka_unit_test(text_that_ends_inside_a_character_is_incomplete),
        cmocka_unit_test(failure_comes_at_the_first_hopeless_byte_and_stays),
        cmocka_unit_test(every_character_decodes_to_itself),
        cmocka_unit_test(plain_words_are_those_of_plain_bytes),
        cmocka_unit_test(words_for_a_terminal_have_no_commands_in_them),
    };

    return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
