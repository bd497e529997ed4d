#include "objects/objects_arguments.h"

#include <string.h>

#include "base/encoding/utf8.h"

static bool is_printable(const char *text)
{
    for (; *text; text++) {
        if (*text < 0x20 || *text > 0x7e)
            return false;
    }
    return true;
}

/* It travels as the value of a header, which loses spaces at its ends, and all of an empty one. */
static bool is_value(const char *text)
{
    size_t length = strlen(text);

    return length > 0 && is_printable(text) && text[0] != ' ' && text[length - 1] != ' ';
}

static bool is_name(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

    return length > 0 && length <= OBJECTS_NAME_MAX && !name[length];
}

static int check_pair(const struct object_pair *pair, struct error *err)
{
    if (!pair->name || !is_name(pair->name))
        return error_set(err, ERR_INVALID, 0,
                         "a name of metadata must be 1 to %d of a-z, 0-9 and '-'",
                         OBJECTS_NAME_MAX);
    if (!pair->value || !is_value(pair->value))
        return error_set(err, ERR_INVALID, 0,
                         "the metadata '%s' must be printable ASCII, not empty, without a space at "
                         "its ends",
                         pair->name);
    return 0;
}

static int check_metadata(const struct object_pair *pairs, size_t count, struct error *err)
{
    size_t total = 0;

    if (count > OBJECTS_METADATA_COUNT)
        return error_set(err, ERR_INVALID, 0, "more than %d metadata", OBJECTS_METADATA_COUNT);
    for (size_t i = 0; i < count; i++) {
        if (check_pair(&pairs[i], err) < 0)
            return -1;
        total += strlen(pairs[i].name) + strlen(pairs[i].value);
        for (size_t j = 0; j < i; j++) {
            if (strcmp(pairs[j].name, pairs[i].name) == 0)
                return error_set(err, ERR_INVALID, 0, "the metadata '%s' is there twice",
                                 pairs[i].name);
        }
    }
    if (total > OBJECTS_METADATA_MAX)
        return error_set(err, ERR_INVALID, 0, "more than %d bytes of metadata",
                         OBJECTS_METADATA_MAX);
    return 0;
}

int objects_tag_check(const char *tag, struct error *err)
{
    if (!tag)
        return 0;
    if (!*tag || strlen(tag) >= OBJECTS_TAG_SIZE || !is_printable(tag) || strpbrk(tag, "\" "))
        return error_set(err, ERR_INVALID, 0, "a tag must be one that the store gave");
    return 0;
}

int objects_options_check(const struct object_put_options *options, struct error *err)
{
    if (!options)
        return 0;
    if (options->only_new && options->only_tag)
        return error_set(err, ERR_INVALID, 0, "what must be new has no tag yet");
    if (options->media_type &&
        (strlen(options->media_type) > OBJECTS_MEDIA_TYPE_MAX || !is_value(options->media_type)))
        return error_set(err, ERR_INVALID, 0, "that is no media type");
    if (objects_tag_check(options->only_tag, err) < 0)
        return -1;
    return check_metadata(options->metadata, options->metadata_count, err);
}

int objects_range_check(const struct object_range *range, struct error *err)
{
    if (range && range->offset > INT64_MAX)
        return error_set(err, ERR_RANGE, 0, "the range begins behind the end");
    return 0;
}

int objects_query_check(const struct object_query *query, struct error *err)
{
    size_t length = strnlen(query->prefix, OBJECTS_KEY_MAX + 1);

    if (length > OBJECTS_KEY_MAX || !utf8_is_valid(query->prefix, length))
        return error_set(err, ERR_INVALID, 0, "a prefix must be at most %d bytes of UTF-8",
                         OBJECTS_KEY_MAX);
    if (query->after && strnlen(query->after, OBJECTS_AFTER_MAX + 1) > OBJECTS_AFTER_MAX)
        return error_set(err, ERR_INVALID, 0, "that is no end of a page");
    if (query->limit < 1 || query->limit > OBJECTS_PAGE_MAX)
        return error_set(err, ERR_INVALID, 0, "a page has 1 to %d entries", OBJECTS_PAGE_MAX);
    return 0;
}
