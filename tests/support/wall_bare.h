/* A program beside the sandboxes: in the guard, behind the walls that are not left out as far as
 * they need no sandbox. Those are the filter, capabilities, no_new_privileges, process_limits,
 * read_only_proc, the namespaces and, for private_root, an empty root.
 *
 * So it can be seen what a namespace alone holds, and that an attempt would work on the host. */
#pragma once

#include "base/error.h"
#include "base/text.h"
#include "wall_box.h"

/* Run it; the answer has the fields stdout and exitCode as an agent's has. A program is found by
 * its place in the sandbox when it lies in a bound folder; it must need no other files. */
int wall_bare_execute(struct wall_stage *stage, const struct wall_set *without,
                      const char *const *argv, struct text *ret_answer, struct error *err);
