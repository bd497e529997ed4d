#include "mount/mount_marks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/number.h"

#define SECONDS_MAX     INT64_C(253402300799) /* the year 9999 */
#define FRACTION_DIGITS 9
#define PERMISSIONS     07777

static const char *value_of(const struct object_info *info, const char *name)
{
    for (size_t i = 0; i < info->metadata_count; i++) {
        if (strcmp(info->metadata[i].name, name) == 0)
            return info->metadata[i].value;
    }
    return NULL;
}

static void read_mode(const char *text, mode_t *mode)
{
    int64_t number;

    if (!text || number_parse(text, 0, UINT16_MAX, &number) < 0)
        return;
    if (S_ISREG(number) || S_ISDIR(number) || S_ISLNK(number))
        *mode = (mode_t) number;
    else if ((number & S_IFMT) == 0)
        *mode = (*mode & S_IFMT) | (mode_t) number;
}

static void read_id(const char *text, uint32_t *id)
{
    int64_t number;

    if (text && number_parse(text, 0, MOUNT_ID_MAX, &number) == 0)
        *id = (uint32_t) number;
}

/* "123" behind the point is 123 thousandths. */
static bool read_fraction(const char *text, uint32_t *ret_nanoseconds)
{
    size_t length = strlen(text);
    uint64_t number;

    if (length > FRACTION_DIGITS || number_parse_digits(text, length, UINT32_MAX, &number) < 0)
        return false;
    for (size_t i = length; i < FRACTION_DIGITS; i++)
        number *= 10;
    *ret_nanoseconds = (uint32_t) number;
    return true;
}

static void read_time(const char *text, struct mount_marks *marks)
{
    size_t whole = text ? strcspn(text, ".") : 0;
    uint32_t nanoseconds = 0;
    uint64_t seconds;

    if (!whole || number_parse_digits(text, whole, SECONDS_MAX, &seconds) < 0 ||
        (text[whole] && !read_fraction(text + whole + 1, &nanoseconds)))
        return;
    marks->seconds = (int64_t) seconds;
    marks->nanoseconds = nanoseconds;
}

void mount_marks_read(struct mount_marks *marks, const struct object_info *info)
{
    read_mode(value_of(info, "mode"), &marks->mode);
    read_id(value_of(info, "uid"), &marks->uid);
    read_id(value_of(info, "gid"), &marks->gid);
    read_time(value_of(info, "mtime"), marks);
}

void mount_marks_write(const struct mount_marks *marks, struct mount_marks_text *ret_text)
{
    static const char *const names[MOUNT_MARKS_COUNT] = {"mode", "uid", "gid", "mtime"};
    int64_t seconds = marks->seconds < 0             ? 0
                      : marks->seconds > SECONDS_MAX ? SECONDS_MAX
                                                     : marks->seconds;
    mode_t mode = marks->mode & (S_IFMT | PERMISSIONS);

    (void) snprintf(ret_text->values[0], sizeof(ret_text->values[0]), "%u", (unsigned int) mode);
    (void) snprintf(ret_text->values[1], sizeof(ret_text->values[1]), "%" PRIu32, marks->uid);
    (void) snprintf(ret_text->values[2], sizeof(ret_text->values[2]), "%" PRIu32, marks->gid);
    (void) snprintf(ret_text->values[3], sizeof(ret_text->values[3]), "%" PRId64 ".%09" PRIu32,
                    seconds, marks->nanoseconds % 1000000000);
    for (size_t i = 0; i < MOUNT_MARKS_COUNT; i++)
        ret_text->pairs[i] = (struct object_pair){names[i], ret_text->values[i]};
}
