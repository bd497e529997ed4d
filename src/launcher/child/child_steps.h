/* A child between clone and exec, as a table of steps.
 *
 *     static const struct { const char *text; int (*run)(struct child *child); } steps[] = {...};
 *
 * The steps run in order; the first that fails is written to the child's status pipe, and the child
 * ends. A pipe that closes without a word says that exec was reached. The parent makes an error of
 * it: the step's text is the message.
 *
 * Everything here but child_steps_read is for the child: it allocates nothing and returns -errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* What a failed child writes. */
struct child_failure {
    int step;
    int error; /* -errno */
};

/* One kind of child. */
struct child_steps {
    size_t count;
    int (*run)(void *child, size_t step);
    const char *(*text)(size_t step);
    const char *name; /* of the child, in the trace */
};

/* Run all steps, of which the last one executes a program; does not return. `status` is where the
 * status pipe is, which a step may move. */
_Noreturn void child_steps_run(const struct child_steps *steps, void *child, const int *status);

/* What the child wrote: 0 when nothing, or -1 with the step's text and `err`'s code ERR_INTERNAL.
 * *ret_is_whole (may be NULL): false when it died while it wrote, or the pipe cannot be read. */
int child_steps_read(const struct child_steps *steps, int status, bool *ret_is_whole,
                     struct error *err);

/* 0, or -errno when a libc call returned less. */
int child_result(long result);

/* User and group 0 of the user namespace we are in, and no other group. */
int child_become_root(void);

/* Put descriptors from `first` on, in this order, when everything else is closed already that could
 * be in the way of some of them. The first `open_count` stay open in the program, exec closes the
 * others. `parking` is above all of their places. */
int child_place_descriptors(int *descriptors, size_t count, size_t open_count, int first,
                            int parking);

/* Make the folder `path` the root, and let go of the old one. */
int child_pivot_to(const char *path);
