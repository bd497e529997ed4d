/* Extended attributes of files that a stranger made.
 *
 * The calls of Linux 6.1 take a path or a descriptor that is open for more than its place, which
 * links, pipes and device nodes do not have here. So these functions make `folder` the working
 * directory of the process and use a name without a slash there: nothing is followed.
 *
 * Copied are those in `user.` (overlay's `user.overlay.*` marks are such) and the access lists
 * (system.posix_acl_...). Left out and counted are all others: `security.capability` has no effect
 * in a sandbox, labels belong to a host, and writing either would need rights that the keeper
 * should not have. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"

/* The kernel's own bounds. */
#define ATTRIBUTES_LIST_MAX  65536
#define ATTRIBUTES_VALUE_MAX 65536

/* Storage for one list and one value, used again for every file. */
struct attributes {
    const char **names; /* owned; in order, borrowed until the next call */
    size_t count;
    char *list;  /* owned */
    char *value; /* owned */
    size_t capacity;
};

void attributes_init(struct attributes *attributes);
void attributes_done(struct attributes *attributes);

AUTO_DEFINE(attributes, struct attributes, attributes_done);

/* The names at `name` in `folder`, in the order of their bytes; none where the filesystem has no
 * attributes. 0 or -errno. */
int attributes_list(struct attributes *attributes, int folder, const char *name);

/* Put those of the first file on the second, as above. Adds what is not copied to `*left_out`. 0
 * or -errno. */
int attributes_copy(struct attributes *attributes, int folder, const char *name, int target_folder,
                    const char *target_name, uint64_t *left_out);
