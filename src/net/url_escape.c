/* The escapes and the parameters of url.h. */
#include <errno.h>
#include <string.h>

#include "net/url.h"

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The value of the escape that starts at `index`, or -1 when it is not one. */
static int escape_at(struct url_span span, size_t index)
{
    int high, low;

    if (span.length - index < 3)
        return -1;
    high = hex_value(span.text[index + 1]);
    low = hex_value(span.text[index + 2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

bool url_escapes_are_sound(struct url_span span)
{
    for (size_t i = 0; i < span.length; i++) {
        if (span.text[i] == '%' && escape_at(span, i) < 0)
            return false;
    }
    return true;
}

/* One unescaped byte from the front of `rest`, or -1 for a bad escape or a NUL. */
static int next_byte(struct url_span *rest, enum url_decoding decoding)
{
    unsigned char c = (unsigned char) rest->text[0];
    size_t taken = 1;
    int value = c;

    if (c == '%') {
        value = escape_at(*rest, 0);
        taken = 3;
    } else if (c == '+' && decoding == URL_DECODE_QUERY) {
        value = ' ';
    }
    if (value <= 0)
        return -1;
    *rest = url_span(rest->text + taken, rest->length - taken);
    return value;
}

ssize_t url_decode(struct url_span raw, enum url_decoding decoding, char *buffer, size_t size)
{
    size_t length = 0;

    while (raw.length) {
        int value = next_byte(&raw, decoding);

        if (value < 0)
            return -EINVAL;
        if (length + 1 >= size)
            return -ENOBUFS;
        buffer[length++] = (char) value;
    }
    if (length >= size)
        return -ENOBUFS;
    buffer[length] = '\0';
    return (ssize_t) length;
}

int url_decode_copy(struct url_span raw, enum url_decoding decoding, struct pool *pool,
                    const char **ret_text)
{
    char *text = pool_alloc(pool, raw.length + 1);
    ssize_t length = url_decode(raw, decoding, text, raw.length + 1);

    if (length < 0)
        return (int) length;
    *ret_text = text;
    return 0;
}

/* RFC 3986 2.3; isalnum(3) would follow the locale. */
static bool is_unreserved(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

static void encode(struct text *out, const void *bytes, size_t length, bool keep_slash)
{
    static const char digits[] = "0123456789ABCDEF";
    const unsigned char *at = bytes;

    for (size_t i = 0; i < length; i++) {
        unsigned char c = at[i];

        if (is_unreserved(c) || (keep_slash && c == '/'))
            text_append_char(out, (char) c);
        else
            text_append_bytes(out, (char[]){'%', digits[c >> 4], digits[c & 15]}, 3);
    }
}

void url_encode(struct text *out, const void *bytes, size_t length)
{
    encode(out, bytes, length, false);
}

void url_encode_path(struct text *out, const void *bytes, size_t length)
{
    encode(out, bytes, length, true);
}

bool url_query_next(struct url_span *rest, struct url_parameter *ret_parameter)
{
    while (rest->text) {
        struct url_span pair = url_span_cut(rest, '&');

        if (pair.length == 0)
            continue;
        ret_parameter->name = url_span_cut(&pair, '=');
        ret_parameter->value = pair;
        return true;
    }
    return false;
}

static bool decodes_to(struct url_span raw, const char *wanted)
{
    while (raw.length) {
        int value = next_byte(&raw, URL_DECODE_QUERY);

        if (value < 0 || value != (unsigned char) *wanted)
            return false;
        wanted++;
    }
    return *wanted == '\0';
}

int url_query_find(struct url_span query, const char *name, struct url_span *ret_value)
{
    struct url_parameter parameter;

    while (url_query_next(&query, &parameter)) {
        if (!decodes_to(parameter.name, name))
            continue;
        *ret_value = parameter.value.text
                         ? parameter.value
                         : url_span(parameter.name.text + parameter.name.length, 0);
        return 0;
    }
    return -ENOENT;
}

int url_query_get(struct url_span query, const char *name, struct pool *pool,
                  const char **ret_value)
{
    struct url_span raw;
    int result = url_query_find(query, name, &raw);

    return result < 0 ? result : url_decode_copy(raw, URL_DECODE_QUERY, pool, ret_value);
}
