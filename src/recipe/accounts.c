#include "recipe/accounts.h"

#include <stdbool.h>
#include <string.h>

#include "base/number.h"

#define NAME_MAX_LENGTH 255
#define ID_MAX          65535

/* The field of that number of a line, without its end. */
static bool find_field(const char *line, size_t length, int number, const char **ret_field,
                       size_t *ret_length)
{
    const char *end = line + length;

    for (; number > 0; number--) {
        line = memchr(line, ':', (size_t) (end - line));
        if (!line)
            return false;
        line++;
    }
    *ret_field = line;
    line = memchr(line, ':', (size_t) (end - line));
    *ret_length = (size_t) ((line ? line : end) - *ret_field);
    return true;
}

static bool read_number(const char *text, size_t length, uint64_t *ret_number)
{
    return length && number_parse_digits(text, length, ID_MAX, ret_number) == 0;
}

/* The line whose field `number` is this text, and the numbers in its third and fourth. */
static bool find_line(const char *file, int number, const char *text, size_t length,
                      uint64_t ret_ids[static 2])
{
    for (size_t size; *file; file += size + (file[size] == '\n')) {
        const char *field;
        size_t found;

        size = strcspn(file, "\n");
        if (!find_field(file, size, number, &field, &found) || found != length ||
            memcmp(field, text, length) != 0)
            continue;
        if (!find_field(file, size, 2, &field, &found) || !read_number(field, found, &ret_ids[0]))
            continue;
        ret_ids[1] = ret_ids[0];
        if (find_field(file, size, 3, &field, &found))
            (void) read_number(field, found, &ret_ids[1]);
        return true;
    }
    return false;
}

static int find_id(const char *file, const char *text, size_t length, const char *noun,
                   uint64_t ret_ids[static 2], struct error *err)
{
    if (read_number(text, length, &ret_ids[0])) {
        uint64_t found[2];

        ret_ids[1] = find_line(file, 2, text, length, found) ? found[1] : ret_ids[0];
        return 0;
    }
    if (find_line(file, 0, text, length, ret_ids))
        return 0;
    return error_set(err, ERR_NOT_FOUND, 0, "there is no %s '%.*s' in the image", noun,
                     (int) length, text);
}

int accounts_find(const char *owner, const char *passwd, const char *group, uid_t *ret_uid,
                  gid_t *ret_gid, struct error *err)
{
    size_t length = strcspn(owner, ":");
    const char *second = owner[length] ? owner + length + 1 : "";
    uint64_t user[2] = {0, 0}, groups[2];

    if (strlen(owner) > NAME_MAX_LENGTH || (!length && !*second))
        return error_set(err, ERR_INVALID, 0, "an owner is USER, USER:GROUP or :GROUP");
    if (length && find_id(passwd, owner, length, "user", user, err) < 0)
        return -1;
    if (*second && find_id(group, second, strlen(second), "group", groups, err) < 0)
        return -1;
    *ret_uid = (uid_t) user[0];
    *ret_gid = (gid_t) (*second ? groups[0] : user[1]);
    return 0;
}
