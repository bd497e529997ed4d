#include "keeper/tree/attributes.h"

#include <errno.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/memory.h"

void attributes_init(struct attributes *attributes)
{
    *attributes = (struct attributes){
        .list = mem_alloc(ATTRIBUTES_LIST_MAX),
        .value = mem_alloc(ATTRIBUTES_VALUE_MAX),
    };
}

void attributes_done(struct attributes *attributes)
{
    free((void *) attributes->names);
    free(attributes->list);
    free(attributes->value);
    *attributes = (struct attributes){0};
}

static int compare(const void *left, const void *right)
{
    return strcmp(*(const char *const *) left, *(const char *const *) right);
}

static void split_list(struct attributes *attributes, size_t length)
{
    attributes->count = 0;
    for (size_t at = 0; at < length; at += strlen(attributes->list + at) + 1) {
        if (attributes->count == attributes->capacity) {
            attributes->capacity = attributes->capacity ? attributes->capacity * 2 : 16;
            attributes->names = mem_resize((void *) attributes->names,
                                           attributes->capacity * sizeof(*attributes->names));
        }
        attributes->names[attributes->count++] = attributes->list + at;
    }
    if (attributes->count > 1)
        qsort((void *) attributes->names, attributes->count, sizeof(*attributes->names), compare);
}

int attributes_list(struct attributes *attributes, int folder, const char *name)
{
    ssize_t length;

    attributes->count = 0;
    if (fchdir(folder) < 0)
        return -errno;
    length = llistxattr(name, attributes->list, ATTRIBUTES_LIST_MAX);
    if (length < 0)
        return errno == EOPNOTSUPP ? 0 : -errno;
    split_list(attributes, (size_t) length);
    return 0;
}

bool attributes_is_copied(const char *attribute)
{
    return strncmp(attribute, "user.", strlen("user.")) == 0 ||
           strcmp(attribute, "system.posix_acl_access") == 0 ||
           strcmp(attribute, "system.posix_acl_default") == 0;
}

ssize_t attributes_read(struct attributes *attributes, int folder, const char *name,
                        const char *attribute)
{
    ssize_t length;

    if (fchdir(folder) < 0)
        return -errno;
    length = lgetxattr(name, attribute, attributes->value, ATTRIBUTES_VALUE_MAX);
    return length < 0 ? -errno : length;
}

int attributes_write(int folder, const char *name, const char *attribute, const void *value,
                     size_t length)
{
    if (fchdir(folder) < 0 || lsetxattr(name, attribute, value, length, 0) < 0)
        return -errno;
    return 0;
}

int attributes_clear(struct attributes *attributes, int folder, const char *name)
{
    int result = attributes_list(attributes, folder, name);

    for (size_t i = 0; result == 0 && i < attributes->count; i++)
        if (attributes_is_copied(attributes->names[i]) &&
            lremovexattr(name, attributes->names[i]) < 0)
            return -errno;
    return result;
}

/* The next name that counts, or NULL. */
static const char *next_counted(const struct attributes *attributes, size_t *at,
                                bool (*counts)(const char *attribute))
{
    while (*at < attributes->count) {
        const char *name = attributes->names[(*at)++];

        if (counts(name))
            return name;
    }
    return NULL;
}

int attributes_compare(struct attributes *left, int left_folder, const char *left_name,
                       struct attributes *right, int right_folder, const char *right_name,
                       bool (*counts)(const char *attribute))
{
    int result = attributes_list(left, left_folder, left_name);
    size_t left_at = 0, right_at = 0;

    if (result == 0)
        result = attributes_list(right, right_folder, right_name);
    while (result == 0) {
        const char *first = next_counted(left, &left_at, counts);
        const char *second = next_counted(right, &right_at, counts);
        ssize_t left_length, right_length;

        if (!first || !second)
            return first == second;
        if (strcmp(first, second) != 0)
            return 0;
        left_length = attributes_read(left, left_folder, left_name, first);
        right_length = attributes_read(right, right_folder, right_name, second);
        if (left_length < 0 || right_length < 0)
            return (int) (left_length < 0 ? left_length : right_length);
        if (left_length != right_length ||
            memcmp(left->value, right->value, (size_t) left_length) != 0)
            return 0;
    }
    return result;
}

static int copy_one(struct attributes *attributes, const char *attribute, int folder,
                    const char *name, int target_folder, const char *target_name)
{
    ssize_t length = attributes_read(attributes, folder, name, attribute);

    if (length < 0)
        return (int) length;
    return attributes_write(target_folder, target_name, attribute, attributes->value,
                            (size_t) length);
}

int attributes_copy(struct attributes *attributes, int folder, const char *name, int target_folder,
                    const char *target_name, uint64_t *left_out)
{
    int result = attributes_list(attributes, folder, name);

    for (size_t i = 0; result == 0 && i < attributes->count; i++) {
        const char *attribute = attributes->names[i];

        if (attributes_is_copied(attribute))
            result = copy_one(attributes, attribute, folder, name, target_folder, target_name);
        else
            (*left_out)++;
    }
    return result;
}
