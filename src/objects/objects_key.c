#include "objects/objects_key.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/encoding/utf8.h"

/* Of one name, the mark not counted: file systems take 255. */
#define NAME_LIMIT 200
#define ESCAPED    3 /* bytes of "%2E" */
#define GOES_ON    "%_"
#define EMPTY      "%"

static const char digits[] = "0123456789ABCDEF";

int objects_key_check(const char *key, struct error *err)
{
    size_t length = key ? strnlen(key, OBJECTS_KEY_MAX + 1) : 0;

    if (length == 0)
        return error_set(err, ERR_INVALID, 0, "a key must not be empty");
    if (length > OBJECTS_KEY_MAX)
        return error_set(err, ERR_INVALID, 0, "a key must not be longer than %d bytes",
                         OBJECTS_KEY_MAX);
    if (!utf8_is_valid(key, length))
        return error_set(err, ERR_INVALID, 0, "a key must be UTF-8");
    return 0;
}

static bool is_escaped(unsigned char byte, bool is_first)
{
    return byte < 0x20 || byte == 0x7f || byte == '%' || (is_first && byte == '.');
}

/* Write as much of a segment as fits into one name. Returns how many bytes of it; their name and
 * its length are in `ret_name`, without NUL. */
static size_t write_name(const char *segment, size_t length, char ret_name[static NAME_LIMIT],
                         size_t *ret_length)
{
    size_t taken = 0, used = 0;

    for (; taken < length; taken++) {
        unsigned char byte = (unsigned char) segment[taken];
        bool escape = is_escaped(byte, taken == 0);

        if (used + (escape ? ESCAPED : 1) > NAME_LIMIT)
            break;
        if (!escape) {
            ret_name[used++] = (char) byte;
            continue;
        }
        ret_name[used++] = '%';
        ret_name[used++] = digits[byte >> 4];
        ret_name[used++] = digits[byte & 15];
    }
    *ret_length = used;
    return taken;
}

static char *write_segment(const char *segment, size_t length, char *path)
{
    size_t used;

    if (length == 0)
        return mempcpy(path, EMPTY, strlen(EMPTY));
    for (;;) {
        size_t taken = write_name(segment, length, path, &used);

        path += used;
        segment += taken;
        length -= taken;
        if (length == 0)
            return path;
        path = mempcpy(path, GOES_ON "/", strlen(GOES_ON "/"));
    }
}

void objects_key_path(const char *key, char ret_path[static OBJECTS_PATH_SIZE])
{
    char *at = ret_path;

    for (;;) {
        size_t length = strcspn(key, "/");

        at = write_segment(key, length, at);
        if (!key[length])
            break;
        *at++ = '/';
        key += length + 1;
    }
    *at = '\0';
}

static int digit_of(char c)
{
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int) (at - digits) : -1;
}

/* The bytes of `length` bytes of a name. Returns how many, or -EINVAL. */
static int read_name(const char *name, size_t length, char *ret_part)
{
    int count = 0;

    for (size_t i = 0; i < length; i++) {
        int high, low;

        if (name[i] != '%') {
            ret_part[count++] = name[i];
            continue;
        }
        if (length - i < ESCAPED)
            return -EINVAL;
        high = digit_of(name[i + 1]);
        low = digit_of(name[i + 2]);
        if (high < 0 || low < 0 || high + low == 0)
            return -EINVAL;
        ret_part[count++] = (char) (high << 4 | low);
        i += ESCAPED - 1;
    }
    ret_part[count] = '\0';
    return count;
}

int objects_key_part(const char *name, char ret_part[static OBJECTS_PART_SIZE], bool *ret_goes_on)
{
    size_t length = strnlen(name, NAME_LIMIT + sizeof(GOES_ON)), mark = strlen(GOES_ON);
    bool goes_on = length > mark && memcmp(name + length - mark, GOES_ON, mark) == 0;
    char again[NAME_LIMIT];
    size_t used;
    int count;

    if (goes_on)
        length -= mark;
    *ret_goes_on = goes_on;
    *ret_part = '\0';
    if (strcmp(name, EMPTY) == 0)
        return 0;
    /* What goes on had no room for one more. */
    if (length == 0 || length > NAME_LIMIT || (goes_on && length + ESCAPED <= NAME_LIMIT))
        return -EINVAL;
    count = read_name(name, length, ret_part);
    if (count < 0 || memchr(ret_part, '/', (size_t) count))
        return -EINVAL;
    /* One name for one part: "%41" is no way to write "A". */
    if (write_name(ret_part, (size_t) count, again, &used) != (size_t) count || used != length ||
        memcmp(again, name, length) != 0)
        return -EINVAL;
    return count;
}
