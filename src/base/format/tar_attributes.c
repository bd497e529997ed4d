#include "base/format/tar_attributes.h"

#include <string.h>

#define PREFIX     "SCHILY.xattr."
#define USER       "user."
#define OVERLAY    "user.overlay."
#define CAPABILITY "security.capability"

/* The kernel has none longer. */
#define NAME_LENGTH_MAX 255

void tar_attributes_done(struct tar_attributes *attributes)
{
    text_done(&attributes->bytes);
}

static bool has_prefix(const char *text, size_t length, const char *prefix)
{
    size_t prefix_length = strlen(prefix);

    return length > prefix_length && memcmp(text, prefix, prefix_length) == 0;
}

static bool is_capability(const char *name, size_t length)
{
    return length == strlen(CAPABILITY) && memcmp(name, CAPABILITY, length) == 0;
}

static bool is_wanted(const char *name, size_t length)
{
    if (length > NAME_LENGTH_MAX || memchr(name, '\0', length))
        return false;
    return is_capability(name, length) ||
           (has_prefix(name, length, USER) && !has_prefix(name, length, OVERLAY));
}

bool tar_attributes_take(struct tar_attributes *attributes, const char *key, size_t key_length,
                         const char *value, size_t length)
{
    const char *name = key + strlen(PREFIX);
    struct text *bytes = &attributes->bytes;

    if (!has_prefix(key, key_length, PREFIX))
        return false;
    key_length -= strlen(PREFIX);
    if (!is_wanted(name, key_length) ||
        key_length + 1 + sizeof(length) + length > bytes->maximum - bytes->length)
        return true;
    text_append_bytes(bytes, name, key_length);
    text_append_char(bytes, '\0');
    text_append_bytes(bytes, (const char *) &length, sizeof(length));
    text_append_bytes(bytes, value, length);
    return true;
}

void tar_attributes_copy(struct tar_attributes *to, const struct tar_attributes *from)
{
    text_clear(&to->bytes);
    if (from->bytes.length)
        text_append_bytes(&to->bytes, from->bytes.data, from->bytes.length);
}

bool tar_attributes_next(const struct tar_attributes *attributes, size_t *at,
                         struct tar_attribute *ret_attribute)
{
    const struct text *bytes = &attributes->bytes;

    if (*at >= bytes->length)
        return false;
    ret_attribute->name = bytes->data + *at;
    *at += strlen(ret_attribute->name) + 1;
    memcpy(&ret_attribute->length, bytes->data + *at, sizeof(ret_attribute->length));
    *at += sizeof(ret_attribute->length);
    ret_attribute->value = bytes->data + *at;
    *at += ret_attribute->length;
    ret_attribute->is_capability = is_capability(ret_attribute->name, strlen(ret_attribute->name));
    return true;
}
