/* Extended attributes of an entry, as the pax headers of tar and others have them:
 * "SCHILY.xattr.NAME". Taken are those in `user.` (but overlay's own) and file capabilities; all
 * others belong to the system that the archive was made on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/auto.h"
#include "base/text.h"

#define TAR_ATTRIBUTE_PREFIX "SCHILY.xattr."

/* The kernel has none longer. */
#define TAR_ATTRIBUTE_NAME_MAX 255

struct tar_attributes {
    struct text bytes; /* "NAME\0", the length of the value, the value; one after the other */
};

/* `limit`: of all together; what comes beyond it is left out. */
#define TAR_ATTRIBUTES_INIT(limit)                                                                 \
    {                                                                                              \
        .bytes = TEXT_INIT(limit)                                                                  \
    }

void tar_attributes_done(struct tar_attributes *attributes);

/* Add one, of any name. False: it would be too much, and is left out. */
bool tar_attributes_add(struct tar_attributes *attributes, const char *name, size_t name_length,
                        const char *value, size_t length);

/* Whether a record of a pax header is one. Those that will not do are left out. */
bool tar_attributes_take(struct tar_attributes *attributes, const char *key, size_t key_length,
                         const char *value, size_t length);

void tar_attributes_copy(struct tar_attributes *to, const struct tar_attributes *from);

struct tar_attribute {
    const char *name;
    const char *value; /* not terminated */
    size_t length;
    bool is_capability; /* for the owner of a file to have */
};

/* One after the other: `*at` begins with 0. False at the end. What is returned is borrowed. */
bool tar_attributes_next(const struct tar_attributes *attributes, size_t *at,
                         struct tar_attribute *ret_attribute);
