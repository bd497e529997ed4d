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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

/* Whether attributes of this name are copied. */
bool attributes_is_copied(const char *attribute);

/* Read the value of one into `value`. Its length, or -errno. */
ssize_t attributes_read(struct attributes *attributes, int folder, const char *name,
                        const char *attribute);

int attributes_write(int folder, const char *name, const char *attribute, const void *value,
                     size_t length);

/* Take all away that would be copied. Fills the list. 0 or -errno. */
int attributes_clear(struct attributes *attributes, int folder, const char *name);

/* Whether two files have the same, of those that `counts` says yes to. Fills both lists. 1 same, 0
 * different, or -errno. */
int attributes_compare(struct attributes *left, int left_folder, const char *left_name,
                       struct attributes *right, int right_folder, const char *right_name,
                       bool (*counts)(const char *attribute));

/* Put those of the first file on the second, as above. Adds what is not copied to `*left_out`. 0
 * or -errno. */
int attributes_copy(struct attributes *attributes, int folder, const char *name, int target_folder,
                    const char *target_name, uint64_t *left_out);
