#include "base/format/tar_attributes.h"

#include <string.h>

#define USER       "user."
#define OVERLAY    "user.overlay."
#define CAPABILITY "security.capability"

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
    if (length > TAR_ATTRIBUTE_NAME_MAX || memchr(name, '\0', length))
        return false;
    return is_capability(name, length) ||
           (has_prefix(name, length, USER) && !has_prefix(name, length, OVERLAY));
}

bool tar_attributes_add(struct tar_attributes *attributes, const char *name, size_t name_length,
                        const char *value, size_t length)
{
    struct text *bytes = &attributes->bytes;

    if (name_length + 1 + sizeof(length) + length > bytes->maximum - bytes->length)
        return false;
    text_append_bytes(bytes, name, name_length);
    text_append_char(bytes, '\0');
    text_append_bytes(bytes, (const char *) &length, sizeof(length));
    text_append_bytes(bytes, value, length);
    return true;
}

bool tar_attributes_take(struct tar_attributes *attributes, const char *key, size_t key_length,
                         const char *value, size_t length)
{
    const char *name = key + strlen(TAR_ATTRIBUTE_PREFIX);

    if (!has_prefix(key, key_length, TAR_ATTRIBUTE_PREFIX))
        return false;
    key_length -= strlen(TAR_ATTRIBUTE_PREFIX);
    if (is_wanted(name, key_length))
        (void) tar_attributes_add(attributes, name, key_length, value, length);
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
