#include "base/encoding/utf8.h"

#include <string.h>

#include "base/auto.h"

/* The ranges of RFC 3629: overlong forms and surrogates are excluded by the second byte alone. */
struct lead {
    uint8_t first, last; /* range of the first byte */
    uint8_t needed;      /* bytes behind it */
    uint8_t low, high;   /* range of the second byte */
};

static const struct lead leads[] = {
    {0xc2, 0xdf, 1, 0x80, 0xbf}, {0xe1, 0xec, 2, 0x80, 0xbf}, {0xee, 0xef, 2, 0x80, 0xbf},
    {0xe0, 0xe0, 2, 0xa0, 0xbf}, {0xed, 0xed, 2, 0x80, 0x9f}, {0xf1, 0xf3, 3, 0x80, 0xbf},
    {0xf0, 0xf0, 3, 0x90, 0xbf}, {0xf4, 0xf4, 3, 0x80, 0x8f},
};

static const struct lead *find_lead(uint8_t byte)
{
    for (size_t i = 0; i < ARRAY_COUNT(leads); i++) {
        if (byte >= leads[i].first && byte <= leads[i].last)
            return &leads[i];
    }
    return NULL;
}

/* The number of ASCII bytes at the front, rounded down to what whole words show. */
static size_t skip_ascii_words(const uint8_t *bytes, size_t length)
{
    size_t i = 0;

    while (length - i >= 2 * sizeof(uint64_t)) {
        uint64_t first, second;

        memcpy(&first, bytes + i, sizeof(first));
        memcpy(&second, bytes + i + sizeof(first), sizeof(second));
        if ((first | second) & UINT64_C(0x8080808080808080))
            break;
        i += 2 * sizeof(uint64_t);
    }
    return i;
}

static bool feed_byte(struct utf8_check *check, uint8_t byte)
{
    const struct lead *lead;

    if (check->needed) {
        if (byte < check->low || byte > check->high)
            return false;
        check->needed--;
        check->low = 0x80;
        check->high = 0xbf;
        return true;
    }
    lead = find_lead(byte);
    if (!lead)
        return false;
    check->needed = lead->needed;
    check->low = lead->low;
    check->high = lead->high;
    return true;
}

bool utf8_check_feed(struct utf8_check *check, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    size_t i = 0;

    while (i < length && !check->failed) {
        if (!check->needed && at[i] < 0x80) {
            i += skip_ascii_words(at + i, length - i);
            while (i < length && at[i] < 0x80)
                i++;
        } else if (!feed_byte(check, at[i++])) {
            check->failed = true;
        }
    }
    return !check->failed;
}

bool utf8_check_finish(const struct utf8_check *check)
{
    return !check->failed && !check->needed;
}

bool utf8_is_valid(const void *bytes, size_t length)
{
    struct utf8_check check = UTF8_CHECK_INIT;

    return utf8_check_feed(&check, bytes, length) && utf8_check_finish(&check);
}

size_t utf8_decode(const void *bytes, size_t length, uint32_t *ret_character)
{
    const uint8_t *at = bytes;
    const struct lead *lead;
    uint32_t character;

    if (!length)
        return 0;
    if (at[0] < 0x80) {
        *ret_character = at[0];
        return 1;
    }
    lead = find_lead(at[0]);
    if (!lead || length <= lead->needed || at[1] < lead->low || at[1] > lead->high)
        return 0;
    character = at[0] & (0x3fu >> lead->needed);
    for (size_t i = 1; i <= lead->needed; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        character = character << 6 | (at[i] & 0x3fu);
    }
    *ret_character = character;
    return lead->needed + 1u;
}

static bool is_harmless(uint32_t character)
{
    static const struct {
        uint32_t first, last;
    } harmful[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     {0x061c, 0x061c},
        {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
    };

    for (size_t i = 0; i < ARRAY_COUNT(harmful); i++) {
        if (character >= harmful[i].first && character <= harmful[i].last)
            return false;
    }
    return true;
}

void utf8_make_harmless(char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        uint32_t character = 0;
        size_t length = utf8_decode(text, left, &character);

        if (*text == '\t')
            *text = ' ';
        else if (!length || !is_harmless(character))
            memset(text, '?', length ? length : 1);
        text += length ? length : 1;
        left -= length ? length : 1;
    }
}
