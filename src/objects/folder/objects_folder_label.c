/* The label of a file: lines of "word value" in one attribute, so that `getfattr -d` shows it.
 *
 *     tag 0f3a...
 *     sum 2c26...
 *     type application/json
 *     meta NAME VALUE */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/encoding/encode.h"
#include "base/id.h"
#include "base/text.h"
#include "objects/folder/objects_folder_internal.h"
#include "objects/objects_arguments.h"

#define LABEL_NAME "user.burrow.object"

/* ext4 has one block for all attributes of a file, their names included. */
#define LABEL_MAX ((size_t) 3800)
#define TAG_BYTES 16

void folder_label_stamp(struct folder_label *label)
{
    uint8_t bytes[TAG_BYTES];

    _Static_assert(HEX_TEXT_SIZE(TAG_BYTES) <= OBJECTS_TAG_SIZE, "a tag has room");
    random_bytes(bytes, sizeof(bytes));
    (void) hex_encode(bytes, sizeof(bytes), label->tag);
}

int folder_label_write(int file, const struct folder_label *label)
{
    AUTO(text) struct text text = TEXT_INIT(LABEL_MAX);
    char sum[HEX_TEXT_SIZE(OBJECTS_SUM_SIZE)];

    text_format(&text, "tag %s\n", label->tag);
    if (label->has_sum) {
        (void) hex_encode(label->sum, sizeof(label->sum), sum);
        text_format(&text, "sum %s\n", sum);
    }
    if (label->media_type)
        text_format(&text, "type %s\n", label->media_type);
    for (size_t i = 0; i < label->metadata_count; i++)
        text_format(&text, "meta %s %s\n", label->metadata[i].name, label->metadata[i].value);
    if (text.overflowed)
        return -E2BIG;
    return fsetxattr(file, LABEL_NAME, text.data, text.length, 0) < 0 ? -errno : 0;
}

/* --- reading ---------------------------------------------------------------------------------- */

struct reading {
    struct folder_label *label;
    struct object_pair *pairs; /* OBJECTS_METADATA_COUNT of them */
};

static int read_tag(struct reading *reading, char *value)
{
    size_t length = strlen(value);

    if (length == 0 || length >= OBJECTS_TAG_SIZE)
        return -EBADMSG;
    memcpy(reading->label->tag, value, length + 1);
    return 0;
}

static int read_sum(struct reading *reading, char *value)
{
    struct folder_label *label = reading->label;
    size_t count = 0;

    if (hex_decode(value, strlen(value), label->sum, sizeof(label->sum), &count) < 0 ||
        count != sizeof(label->sum))
        return -EBADMSG;
    label->has_sum = true;
    return 0;
}

static int read_type(struct reading *reading, char *value)
{
    reading->label->media_type = value;
    return 0;
}

static int read_pair(struct reading *reading, char *value)
{
    struct folder_label *label = reading->label;
    char *space = strchr(value, ' ');

    if (!space || label->metadata_count == OBJECTS_METADATA_COUNT)
        return -EBADMSG;
    *space = '\0';
    reading->pairs[label->metadata_count++] = (struct object_pair){value, space + 1};
    return 0;
}

static const struct {
    const char *word;
    int (*read)(struct reading *reading, char *value);
} words[] = {
    {"tag ", read_tag},
    {"sum ", read_sum},
    {"type ", read_type},
    {"meta ", read_pair},
};

static int read_line(struct reading *reading, char *line)
{
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        size_t length = strlen(words[i].word);

        if (strncmp(line, words[i].word, length) == 0)
            return words[i].read(reading, line + length);
    }
    return 0; /* of a later version */
}

/* `text` is written to, and pointed into. */
static int read_text(char *text, struct pool *pool, struct folder_label *label)
{
    struct object_pair *pairs = pool_alloc(pool, OBJECTS_METADATA_COUNT * sizeof(*pairs));
    struct reading reading = {.label = label, .pairs = pairs};

    label->metadata = pairs;
    while (*text) {
        char *end = strchr(text, '\n');
        int r;

        if (!end)
            return -EBADMSG;
        *end = '\0';
        r = read_line(&reading, text);
        if (r < 0)
            return r;
        text = end + 1;
    }
    return *label->tag ? 0 : -EBADMSG;
}

int folder_label_read(int file, const struct stat *status, struct pool *pool,
                      struct folder_label *ret_label)
{
    char text[LABEL_MAX + 1];
    ssize_t length = fgetxattr(file, LABEL_NAME, text, LABEL_MAX);

    *ret_label = (struct folder_label){.has_sum = false};
    if (length < 0 && (errno == ENODATA || errno == EOPNOTSUPP)) {
        (void) snprintf(ret_label->tag, sizeof(ret_label->tag),
                        "%" PRIx64 "-%" PRIx64 ".%lx-%" PRIx64, (uint64_t) status->st_ino,
                        (uint64_t) status->st_mtim.tv_sec, (unsigned long) status->st_mtim.tv_nsec,
                        (uint64_t) status->st_size);
        return 0;
    }
    if (length < 0)
        return errno == ERANGE ? -EBADMSG : -errno;
    return read_text(pool_copy_bytes(pool, text, (size_t) length), pool, ret_label);
}

void folder_label_info(const struct folder_label *label, const struct stat *status,
                       struct object_info *ret_info)
{
    *ret_info = (struct object_info){
        .size = (uint64_t) status->st_size,
        .modified_ms = (int64_t) status->st_mtim.tv_sec * 1000 + status->st_mtim.tv_nsec / 1000000,
        .has_sum = label->has_sum,
        .metadata = label->metadata,
        .metadata_count = label->metadata_count,
    };
    memcpy(ret_info->tag, label->tag, sizeof(ret_info->tag));
    memcpy(ret_info->sum, label->sum, sizeof(ret_info->sum));
}
