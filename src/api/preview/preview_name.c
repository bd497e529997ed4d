#include "api/preview/preview_name.h"

#include <errno.h>
#include <string.h>

#include "base/number.h"

#define DIGITS_MIN 4
#define DIGITS_MAX 5

static size_t digits_of(const char *text, size_t length)
{
    size_t count = 0;

    while (count < length && text[count] >= '0' && text[count] <= '9')
        count++;
    return count;
}

bool preview_name_is_meant(const char *text, size_t length)
{
    size_t digits = digits_of(text, length);

    return digits >= DIGITS_MIN && digits <= DIGITS_MAX && digits < length && text[digits] == '-';
}

int preview_name_parse(const char *text, size_t length, struct preview_name *ret_name)
{
    size_t digits = digits_of(text, length), id_at = digits + 1, token_at = id_at + ID_LENGTH + 1;
    struct preview_name name = {.number = 0};
    uint64_t number;

    if (!preview_name_is_meant(text, length) || length <= token_at || text[token_at - 1] != '-' ||
        length - token_at > PORT_TOKEN_MAX ||
        number_parse_digits(text, digits, UINT16_MAX, &number) < 0)
        return -EINVAL;
    name.number = (uint16_t) number;
    memcpy(name.sandbox.text, text + id_at, ID_LENGTH);
    memcpy(name.token, text + token_at, length - token_at);
    if (!id_is_valid(name.sandbox.text) || memchr(name.token, '\0', length - token_at))
        return -EINVAL;
    *ret_name = name;
    return 0;
}
