/* Copying a file or a folder to another place, in slices.
 *
 * For what cannot be renamed because it goes to another filesystem. Modes, times, links and named
 * pipes are kept, owners where we may; links are copied, not followed; sockets and devices are left
 * out; files with several names become several files. By descriptor, as file_walk.h. */
#pragma once

#include "base/auto.h"

struct file_copy;

/* Copy `name` of `from` (both descriptors are borrowed and outlive the copy) to `new_name` of `to`,
 * which is not there yet. */
struct file_copy *file_copy_new(int from, const char *name, int to, const char *new_name);

void file_copy_free(struct file_copy *copy);

AUTO_DEFINE_PTR(file_copy, struct file_copy, file_copy_free);

/* One slice: a millisecond or so. Returns 1 when there is more to do, 0 when all is there, or
 * -errno; what was copied is then left to the caller. */
int file_copy_step(struct file_copy *copy);
