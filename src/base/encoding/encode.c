#include "base/encoding/encode.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

static const char hex_digits[] = "0123456789abcdef";

static const char base64_digits[][65] = {
    [BASE64_STANDARD] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    [BASE64_URL] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
};

/* Value + 1 of every digit, 0 for all other bytes. Both kinds share it but for two digits. */
static const uint8_t base64_values[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
    ['-'] = 63, ['_'] = 64,
};

size_t hex_encode(const void *bytes, size_t count, char *ret_text)
{
    const uint8_t *from = bytes;

    for (size_t i = 0; i < count; i++) {
        ret_text[2 * i] = hex_digits[from[i] >> 4];
        ret_text[2 * i + 1] = hex_digits[from[i] & 15];
    }
    ret_text[2 * count] = '\0';
    return 2 * count;
}

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -EINVAL;
}

int hex_decode(const char *text, size_t length, void *ret_bytes, size_t capacity, size_t *ret_count)
{
    uint8_t *to = ret_bytes;

    if (length % 2)
        return -EINVAL;
    if (length / 2 > capacity)
        return -ENOSPC;
    for (size_t i = 0; i < length / 2; i++) {
        int high = hex_value(text[2 * i]), low = hex_value(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return -EINVAL;
        to[i] = (uint8_t) (high << 4 | low);
    }
    *ret_count = length / 2;
    return 0;
}

/* The last one or two bytes, which fill their digits up with zero bits. */
static char *encode_rest(enum base64_kind kind, const uint8_t *rest, size_t count, char *to)
{
    const char *digits = base64_digits[kind];
    unsigned int group = (unsigned int) rest[0] << 16;

    if (count == 2)
        group |= (unsigned int) rest[1] << 8;
    *to++ = digits[group >> 18];
    *to++ = digits[group >> 12 & 63];
    if (count == 2)
        *to++ = digits[group >> 6 & 63];
    else if (kind == BASE64_STANDARD)
        *to++ = '=';
    if (kind == BASE64_STANDARD)
        *to++ = '=';
    return to;
}

size_t base64_encode(enum base64_kind kind, const void *bytes, size_t count, char *ret_text)
{
    const char *digits = base64_digits[kind];
    const uint8_t *from = bytes;
    char *to = ret_text;
    size_t i;

    for (i = 0; count - i >= 3; i += 3) {
        unsigned int group =
            (unsigned int) from[i] << 16 | (unsigned int) from[i + 1] << 8 | from[i + 2];

        to[0] = digits[group >> 18];
        to[1] = digits[group >> 12 & 63];
        to[2] = digits[group >> 6 & 63];
        to[3] = digits[group & 63];
        to += 4;
    }
    if (i < count)
        to = encode_rest(kind, from + i, count - i, to);
    *to = '\0';
    return (size_t) (to - ret_text);
}

/* The value of a digit, or a number above 63. */
static unsigned int base64_value(enum base64_kind kind, char digit)
{
    static const char foreign[][3] = {[BASE64_STANDARD] = "-_", [BASE64_URL] = "+/"};

    if (digit == foreign[kind][0] || digit == foreign[kind][1])
        return 64;
    return (base64_values[(uint8_t) digit] - 1u) & 0xff;
}

/* Leaves in `length` the digits that carry bytes; false when their number or padding is wrong. */
static bool strip_padding(enum base64_kind kind, const char *text, size_t *length)
{
    if (kind == BASE64_STANDARD && *length) {
        if (*length % 4)
            return false;
        *length -= text[*length - 1] == '=';
        *length -= text[*length - 1] == '=';
    }
    /* One digit alone holds no whole byte. */
    return *length % 4 != 1;
}

/* The last two or three digits; their unused bits must be 0. */
static bool decode_rest(enum base64_kind kind, const char *text, size_t length, uint8_t *to)
{
    unsigned int a = base64_value(kind, text[0]), b = base64_value(kind, text[1]);
    unsigned int c = length == 3 ? base64_value(kind, text[2]) : 0;

    if ((a | b | c) > 63 || (length == 3 ? c & 3 : b & 15))
        return false;
    to[0] = (uint8_t) (a << 2 | b >> 4);
    if (length == 3)
        to[1] = (uint8_t) (b << 4 | c >> 2);
    return true;
}

int base64_decode(enum base64_kind kind, const char *text, size_t length, void *ret_bytes,
                  size_t capacity, size_t *ret_count)
{
    uint8_t *to = ret_bytes;
    size_t rest, count, i;

    if (!strip_padding(kind, text, &length))
        return -EINVAL;
    rest = length % 4;
    count = length / 4 * 3 + (rest ? rest - 1 : 0);
    if (count > capacity)
        return -ENOSPC;
    for (i = 0; length - i >= 4; i += 4) {
        unsigned int a = base64_value(kind, text[i]), b = base64_value(kind, text[i + 1]);
        unsigned int c = base64_value(kind, text[i + 2]), d = base64_value(kind, text[i + 3]);

        if ((a | b | c | d) > 63)
            return -EINVAL;
        to[0] = (uint8_t) (a << 2 | b >> 4);
        to[1] = (uint8_t) (b << 4 | c >> 2);
        to[2] = (uint8_t) (c << 6 | d);
        to += 3;
    }
    if (rest && !decode_rest(kind, text + i, rest, to))
        return -EINVAL;
    *ret_count = count;
    return 0;
}
