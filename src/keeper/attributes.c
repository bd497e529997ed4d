#include "keeper/attributes.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/types.h>
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

static bool is_copied(const char *name)
{
    return strncmp(name, "user.", strlen("user.")) == 0 ||
           strcmp(name, "system.posix_acl_access") == 0 ||
           strcmp(name, "system.posix_acl_default") == 0;
}

static int copy_one(struct attributes *attributes, const char *attribute, int folder,
                    const char *name, int target_folder, const char *target_name)
{
    ssize_t length;

    if (fchdir(folder) < 0)
        return -errno;
    length = lgetxattr(name, attribute, attributes->value, ATTRIBUTES_VALUE_MAX);
    if (length < 0 || fchdir(target_folder) < 0)
        return -errno;
    if (lsetxattr(target_name, attribute, attributes->value, (size_t) length, 0) < 0)
        return -errno;
    return 0;
}

int attributes_copy(struct attributes *attributes, int folder, const char *name, int target_folder,
                    const char *target_name, uint64_t *left_out)
{
    int result = attributes_list(attributes, folder, name);

    for (size_t i = 0; result == 0 && i < attributes->count; i++) {
        const char *attribute = attributes->names[i];

        if (is_copied(attribute))
            result = copy_one(attributes, attribute, folder, name, target_folder, target_name);
        else
            (*left_out)++;
    }
    return result;
}
