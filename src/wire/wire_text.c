#include "wire/wire_text.h"

#include <string.h>

static bool is_printable(char c)
{
    return c >= ' ' && c <= '~';
}

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool wire_text_is_name(const char *text)
{
    size_t length = 0;

    if (!is_letter_or_digit(text[0]))
        return false;
    for (; text[length]; length++)
        if (length >= WIRE_NAME_MAX ||
            (!is_letter_or_digit(text[length]) && !strchr("._-", text[length])))
            return false;
    return true;
}

bool wire_text_is_printable(const char *text)
{
    for (; *text; text++)
        if (!is_printable(*text))
            return false;
    return true;
}

static bool is_component(const char *text, size_t length)
{
    return length > 0 && !(length == 1 && text[0] == '.') &&
           !(length == 2 && text[0] == '.' && text[1] == '.');
}

bool wire_text_is_path(const char *text)
{
    if (text[0] != '/' || strnlen(text, WIRE_PATH_MAX + 1) > WIRE_PATH_MAX ||
        !wire_text_is_printable(text))
        return false;
    while (*text == '/') {
        size_t length = strcspn(++text, "/");

        if (!is_component(text, length))
            return false;
        text += length;
    }
    return true;
}

void wire_text_set(char *ret_text, size_t size, const char *text)
{
    size_t length = 0;

    for (; length + 1 < size && text[length]; length++)
        ret_text[length] = text[length];
    for (size_t i = 0; i < length; i++)
        if (!is_printable(ret_text[i]))
            ret_text[i] = '?';
    ret_text[length] = '\0';
}
