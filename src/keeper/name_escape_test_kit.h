/* For tests and the fuzzer only: the way back from an escaped name, as a reader would go it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/encode.h"
#include "base/text.h"

/* Append the name that `text` stands for. False when it is no escaped name. */
static inline bool name_unescape(struct text *name, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        uint8_t byte;
        size_t count;

        if (text[i] != '\\') {
            text_append_char(name, text[i]);
        } else if (i + 1 < length && text[i + 1] == '\\') {
            text_append_char(name, '\\');
            i++;
        } else if (i + 3 < length && text[i + 1] == 'x' &&
                   hex_decode(text + i + 2, 2, &byte, 1, &count) == 0) {
            text_append_bytes(name, &byte, 1);
            i += 3;
        } else {
            return false;
        }
    }
    return true;
}
