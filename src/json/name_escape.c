#include "json/name_escape.h"

#include <stdint.h>

#include "base/encoding/encode.h"
#include "base/encoding/utf8.h"

static void escape_byte(struct text *text, uint8_t byte)
{
    char digits[HEX_TEXT_SIZE(1)];

    (void) hex_encode(&byte, 1, digits);
    text_append(text, "\\x");
    text_append(text, digits);
}

void name_escape(struct text *text, const void *bytes, size_t length)
{
    const uint8_t *at = bytes, *end = at + length;

    while (at < end) {
        uint32_t character;
        size_t size = utf8_decode(at, (size_t) (end - at), &character);

        if (size == 0)
            escape_byte(text, *at);
        else if (*at == '\\')
            text_append(text, "\\\\");
        else
            text_append_bytes(text, at, size);
        at += size ? size : 1;
    }
}

bool name_unescape(struct text *name, const char *text, size_t length)
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
