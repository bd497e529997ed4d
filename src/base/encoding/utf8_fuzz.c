/* The checker and the decoder agree with a decoder so simple that it is plainly right, however the
 * bytes are cut into pieces (the first byte of the input says how). */
#include <stdlib.h>

#include "base/encoding/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* By the definition: assemble the bits, then ask whether the value belongs to that length. */
static size_t simple_decode(const uint8_t *at, size_t left, uint32_t *ret_character)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = at[0] < 0x80       ? 1
                    : at[0] >> 5 == 6  ? 2
                    : at[0] >> 4 == 14 ? 3
                    : at[0] >> 3 == 30 ? 4
                                       : 0;
    uint32_t character = length < 2 ? at[0] : at[0] & (0x7fu >> length);

    if (length == 0 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if (at[i] >> 6 != 2)
            return 0;
        character = character << 6 | (at[i] & 0x3f);
    }
    if (character < smallest[length] || character > 0x10ffff || character >> 11 == 27)
        return 0;
    *ret_character = character;
    return length;
}

static bool simple_is_valid(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size;) {
        uint32_t character;
        size_t length = simple_decode(data + i, size - i, &character);

        if (!length)
            return false;
        i += length;
    }
    return true;
}

static bool valid_in_pieces(const uint8_t *data, size_t size, size_t step)
{
    struct utf8_check check = UTF8_CHECK_INIT;
    bool hopeful = true;

    for (size_t i = 0; i < size; i += step) {
        bool now = utf8_check_feed(&check, data + i, size - i < step ? size - i : step);

        must(hopeful || !now); /* failed once is failed for good */
        hopeful = now;
    }
    must(hopeful || !utf8_check_finish(&check));
    return utf8_check_finish(&check);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t step;
    bool valid;

    if (!size)
        return 0;
    step = data[0] % 40 + 1u;
    data++;
    size--;
    valid = simple_is_valid(data, size);
    must(utf8_is_valid(data, size) == valid);
    must(valid_in_pieces(data, size, step) == valid);
    for (size_t i = 0; i < size; i++) {
        uint32_t ours = 0, theirs = 0;
        size_t length = utf8_decode(data + i, size - i, &ours);

        must(length == simple_decode(data + i, size - i, &theirs) && ours == theirs);
    }
    return 0;
}
