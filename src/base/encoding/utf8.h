/* UTF-8: whether bytes are it, also when they arrive in pieces.
 *
 * Valid is what RFC 3629 allows: no overlong forms, no surrogates, nothing above U+10FFFF.
 *
 *     struct utf8_check check = UTF8_CHECK_INIT;
 *     if (!utf8_check_feed(&check, piece, length)) ... the message is wrong already
 *     if (!utf8_check_finish(&check)) ... it ends inside a character */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is still expected of a character that began in an earlier piece. */
struct utf8_check {
    uint8_t needed; /* continuation bytes to come */
    uint8_t low;    /* smallest and largest value of the next one */
    uint8_t high;
    bool failed; /* stays set */
};

#define UTF8_CHECK_INIT                                                                            \
    {                                                                                              \
        .needed = 0                                                                                \
    }

/* Returns whether everything fed so far can be the beginning of valid text. A sequence that can no
 * longer become valid fails at its first wrong byte. */
bool utf8_check_feed(struct utf8_check *check, const void *bytes, size_t length);

/* Whether everything fed was valid and complete. */
bool utf8_check_finish(const struct utf8_check *check);

/* Both at once. */
bool utf8_is_valid(const void *bytes, size_t length);

/* The character that begins at `bytes` and its length in bytes (1 to 4); 0 when no valid character
 * begins there or `length` ends inside it. */
size_t utf8_decode(const void *bytes, size_t length, uint32_t *ret_character);

/* Make somebody's words fit for a terminal, in place: bytes that are no character, and those of
 * characters that a terminal or its reader could be led astray by (control characters of both sets,
 * line breaks included, and marks that turn the direction of writing), become '?', tabs blanks. */
void utf8_make_harmless(char *text);

/* Plain bytes are printable ASCII other than '"' and '\\': what JSON, and a log line that must not
 * be forged, copy as they are. */
static inline bool utf8_is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

/* Whether all eight bytes are plain. For each condition the high bit of a byte is set where it
 * fails; a borrow may set more of them, but only above a real one. */
static inline bool utf8_is_plain_word(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t quote = word ^ ones * '"', backslash = word ^ ones * '\\', delete = word ^ ones * 0x7f;

    return !((word | ((word - ones * 0x20) & ~word) | ((quote - ones) & ~quote) |
              ((backslash - ones) & ~backslash) | ((delete - ones) & ~delete)) &
             ones * 0x80);
}
