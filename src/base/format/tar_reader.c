#include "base/format/tar_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"

#define SHOWN 160 /* of a path in a message */

#define EXTRA_INIT                                                                                 \
    {                                                                                              \
        .attributes = TAR_ATTRIBUTES_INIT(TAR_EXTENDED_MAX)                                        \
    }

void tar_reader_init(struct tar_reader *reader, const struct tar_reader_events *events, void *owner)
{
    *reader = (struct tar_reader){
        .events = events,
        .owner = owner,
        .extended = TEXT_INIT(TAR_EXTENDED_MAX),
        .extra = EXTRA_INIT,
    };
}

static void forget_extra(struct tar_reader_extra *extra)
{
    free(extra->path);
    free(extra->link);
    tar_attributes_done(&extra->attributes);
    *extra = (struct tar_reader_extra) EXTRA_INIT;
}

void tar_reader_done(struct tar_reader *reader)
{
    text_done(&reader->extended);
    forget_extra(&reader->extra);
}

static int refuse(const struct tar_reader *reader, struct error *err, const char *why)
{
    return error_set(err, ERR_INVALID, 0, "archive entry %llu '%.*s': %s",
                     (unsigned long long) reader->entries, SHOWN, reader->entry_path, why);
}

/* --- extended headers ----------------------------------------------------------------------- */

static int set_text(char **text, const char *value, size_t length)
{
    if (length > TAR_PATH_MAX || memchr(value, '\0', length))
        return -EINVAL;
    free(*text);
    *text = mem_copy_bytes(value, length);
    return 0;
}

static int set_number(const char *value, size_t length, bool *ret_has, uint64_t *ret_number)
{
    *ret_has = true;
    return number_parse_digits(value, length, INT64_MAX, ret_number);
}

/* "-1234.25": digits, and as many of the fraction as there are nanoseconds. */
static int set_time(const char *value, size_t length, struct tar_reader_extra *extra)
{
    bool negative = length && value[0] == '-';
    const char *digits = value + negative;
    size_t count = length - negative;
    const char *dot = memchr(digits, '.', count);
    size_t whole = dot ? (size_t) (dot - digits) : count;
    uint64_t seconds;
    long fraction = 0, unit = 100000000;

    if (number_parse_digits(digits, whole, INT64_MAX / 2, &seconds) < 0)
        return -EINVAL;
    for (size_t i = whole + 1; i < count; i++, unit /= 10) {
        if (digits[i] < '0' || digits[i] > '9')
            return -EINVAL;
        fraction += (digits[i] - '0') * unit;
    }
    extra->has_mtime = true;
    extra->mtime = (struct timespec){.tv_sec = (time_t) seconds, .tv_nsec = fraction};
    if (negative) {
        extra->mtime.tv_sec = -(time_t) seconds - (fraction ? 1 : 0);
        extra->mtime.tv_nsec = fraction ? 1000000000 - fraction : 0;
    }
    return 0;
}

static bool is_key(const char *key, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(key, name, length) == 0;
}

static int take_record(struct tar_reader_extra *extra, const char *key, size_t key_length,
                       const char *value, size_t length)
{
    if (key_length >= 11 && memcmp(key, "GNU.sparse.", 11) == 0)
        extra->is_sparse = true;
    if (tar_attributes_take(&extra->attributes, key, key_length, value, length))
        return 0;
    if (!length) /* taken back */
        return 0;
    if (is_key(key, key_length, "path"))
        return set_text(&extra->path, value, length);
    if (is_key(key, key_length, "linkpath"))
        return set_text(&extra->link, value, length);
    if (is_key(key, key_length, "size"))
        return set_number(value, length, &extra->has_size, &extra->size);
    if (is_key(key, key_length, "uid"))
        return set_number(value, length, &extra->has_uid, &extra->uid);
    if (is_key(key, key_length, "gid"))
        return set_number(value, length, &extra->has_gid, &extra->gid);
    if (is_key(key, key_length, "mtime"))
        return set_time(value, length, extra);
    return 0; /* others are for others */
}

/* "LENGTH KEY=VALUE\n", one after the other. */
static int take_records(struct tar_reader_extra *extra, const char *at, size_t left)
{
    while (left) {
        const char *space = memchr(at, ' ', left < 8 ? left : 8), *equals;
        size_t digits = space ? (size_t) (space - at) : 0, before;
        uint64_t length;

        if (!space || number_parse_digits(at, digits, left, &length) < 0 || length < digits + 4 ||
            at[length - 1] != '\n')
            return -EINVAL;
        equals = memchr(space + 1, '=', length - digits - 2);
        if (!equals)
            return -EINVAL;
        before = (size_t) (equals + 1 - at);
        if (take_record(extra, space + 1, (size_t) (equals - space - 1), equals + 1,
                        length - before - 1) < 0)
            return -EINVAL;
        at += length;
        left -= length;
    }
    return 0;
}

/* GNU's long names end with a NUL. */
static int take_long_name(char **text, const struct text *name)
{
    return set_text(text, text_string(name), strnlen(text_string(name), name->length));
}

static int take_extended(struct tar_reader *reader, struct error *err)
{
    const struct text *extended = &reader->extended;
    int r = 0;

    if (reader->extended_type == 'x')
        r = take_records(&reader->extra, text_string(extended), extended->length);
    else if (reader->extended_type == 'L')
        r = take_long_name(&reader->extra.path, extended);
    else if (reader->extended_type == 'K')
        r = take_long_name(&reader->extra.link, extended);
    /* Of 'g', for all entries to come, nothing is for us: git puts the commit there. */
    return r < 0 ? refuse(reader, err, "its extended header is malformed, or too long") : 0;
}

static int begin_extended(struct tar_reader *reader, const struct tar_header *header,
                          struct error *err)
{
    if (header->size > TAR_EXTENDED_MAX)
        return refuse(reader, err, "its extended header is too long");
    text_clear(&reader->extended);
    reader->extended_type = header->type;
    reader->left = header->size;
    reader->padding = tar_padding(header->size);
    reader->state = TAR_READER_EXTENDED;
    return 0;
}

/* --- entries -------------------------------------------------------------------------------- */

/* What our owner knows, or 0. Old tar has files without a type, and folders with a slash only. */
static char plain_type(char type, const char *path)
{
    size_t length = strlen(path);

    if ((type == '\0' || type == TAR_FILE) && length && path[length - 1] == '/')
        return TAR_FOLDER;
    if (type == '\0' || type == '7')
        return TAR_FILE;
    return type == TAR_FILE || (type >= TAR_HARD_LINK && type <= TAR_PIPE &&
                                type != TAR_CHARACTER && type != TAR_BLOCK_DEV)
               ? type
               : 0;
}

static bool is_device(char type)
{
    return type == TAR_CHARACTER || type == TAR_BLOCK_DEV;
}

static const char *why_refused(char type)
{
    switch (type) {
    case TAR_CHARACTER:
    case TAR_BLOCK_DEV:
        return "devices are not accepted";
    case 'S':
        return "sparse files are not accepted";
    case 'M':
        return "archives in several volumes are not accepted";
    default:
        return "its type is unknown";
    }
}

/* Beyond what the system has: -1, which changes nobody's owner. */
static uint32_t owner_of(bool has_extra, uint64_t extra, uint64_t number)
{
    if (has_extra)
        number = extra;
    return number > UINT32_MAX ? UINT32_MAX : (uint32_t) number;
}

static void fill_entry(const struct tar_reader *reader, const struct tar_header *header,
                       struct tar_entry *entry)
{
    const struct tar_reader_extra *extra = &reader->extra;

    *entry = (struct tar_entry){
        .path = extra->path ? extra->path : header->path,
        .link = extra->link ? extra->link : header->link,
        .size = extra->has_size ? extra->size : header->size,
        .mode = header->mode,
        .uid = owner_of(extra->has_uid, extra->uid, header->uid),
        .gid = owner_of(extra->has_gid, extra->gid, header->gid),
        .mtime = {.tv_sec = (time_t) header->mtime},
        .attributes = &extra->attributes,
    };
    if (extra->has_mtime)
        entry->mtime = extra->mtime;
    entry->type = plain_type(header->type, entry->path);
    if (entry->type != TAR_FILE)
        entry->size = 0; /* some say how much was behind the link, and nothing follows */
    if (entry->type != TAR_LINK && entry->type != TAR_HARD_LINK)
        entry->link = "";
}

static int begin_entry(struct tar_reader *reader, const struct tar_header *header,
                       struct error *err)
{
    struct tar_entry entry;
    int r;

    fill_entry(reader, header, &entry);
    reader->entries++;
    memcpy(reader->entry_path, entry.path, strlen(entry.path) + 1);
    if (reader->entries > TAR_ENTRIES_MAX)
        return refuse(reader, err, "the archive has too many entries");
    if (reader->extra.is_sparse)
        return refuse(reader, err, why_refused('S'));
    if (!entry.type && reader->takes_devices && is_device(header->type))
        entry.type = header->type;
    if (!entry.type)
        return refuse(reader, err, why_refused(header->type));
    reader->left = entry.size;
    reader->padding = tar_padding(entry.size);
    reader->state = TAR_READER_BYTES;
    reader->in_entry = true;
    r = reader->events->on_entry(reader->owner, &entry, err);
    forget_extra(&reader->extra);
    return r;
}

static int take_header(struct tar_reader *reader, struct error *err)
{
    struct tar_header header;
    int r = tar_header_decode(reader->block, &header);

    if (r == 1) {
        reader->state = TAR_READER_END;
        return 0;
    }
    if (r < 0 && !reader->entries)
        return error_set(err, ERR_INVALID, 0, "this is no tar archive");
    if (r < 0)
        return error_set(err, ERR_INVALID, 0, "the archive is damaged behind entry %llu '%.*s'",
                         (unsigned long long) reader->entries, SHOWN, reader->entry_path);
    if (header.type == 'V') { /* the name of a volume */
        reader->left = 0;
        return 0;
    }
    if (header.type == 'x' || header.type == 'g' || header.type == 'L' || header.type == 'K')
        return begin_extended(reader, &header, err);
    return begin_entry(reader, &header, err);
}

/* --- pieces --------------------------------------------------------------------------------- */

static size_t at_most(size_t length, uint64_t limit)
{
    return length < limit ? length : (size_t) limit;
}

/* What was counted down to nothing is followed by something else. */
static int turn_over(struct tar_reader *reader, struct error *err)
{
    if (reader->left)
        return 0;
    if (reader->state == TAR_READER_EXTENDED && take_extended(reader, err) < 0)
        return -1;
    if (reader->in_entry && reader->state == TAR_READER_BYTES) {
        reader->in_entry = false;
        if (reader->events->on_entry_end(reader->owner, err) < 0)
            return -1;
    }
    if (reader->state == TAR_READER_PADDING || !reader->padding) {
        reader->state = TAR_READER_HEADER;
    } else {
        reader->state = TAR_READER_PADDING;
        reader->left = reader->padding;
    }
    return 0;
}

static int feed_header(struct tar_reader *reader, const char *bytes, size_t length,
                       size_t *ret_used, struct error *err)
{
    *ret_used = at_most(length, TAR_BLOCK - reader->filled);
    memcpy(reader->block + reader->filled, bytes, *ret_used);
    reader->filled += *ret_used;
    if (reader->filled < TAR_BLOCK)
        return 0;
    reader->filled = 0;
    if (take_header(reader, err) < 0)
        return -1;
    return reader->state == TAR_READER_HEADER || reader->state == TAR_READER_END
               ? 0
               : turn_over(reader, err);
}

static int feed_counted(struct tar_reader *reader, const char *bytes, size_t length,
                        size_t *ret_used, struct error *err)
{
    *ret_used = at_most(length, reader->left);
    reader->left -= *ret_used;
    if (reader->state == TAR_READER_EXTENDED)
        text_append_bytes(&reader->extended, bytes, *ret_used);
    else if (reader->state == TAR_READER_BYTES &&
             reader->events->on_bytes(reader->owner, bytes, *ret_used, err) < 0)
        return -1;
    return turn_over(reader, err);
}

int tar_reader_feed(struct tar_reader *reader, const char *bytes, size_t length, struct error *err)
{
    while (length && reader->state != TAR_READER_END) {
        size_t used;
        int r = reader->state == TAR_READER_HEADER
                    ? feed_header(reader, bytes, length, &used, err)
                    : feed_counted(reader, bytes, length, &used, err);

        if (r < 0)
            return -1;
        bytes += used;
        length -= used;
    }
    return 0;
}

int tar_reader_finish(struct tar_reader *reader, struct error *err)
{
    if (reader->state == TAR_READER_END)
        return 0;
    return error_set(err, ERR_INVALID, 0, "the archive is cut short behind entry %llu '%.*s'",
                     (unsigned long long) reader->entries, SHOWN, reader->entry_path);
}
