/* The walls that the daemon puts around itself before it reads a byte from outside, in every mode:
 * no rights by running programs, no core and no look into its memory by its own user, and a filter
 * for system calls that it never makes (launcher/wall/daemon_profile.def).
 *
 * Builds with a sanitizer have none of them: it looks for leaks from a second process. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* In the only thread there is; those that are started later are behind the same walls. */
int daemon_walls_raise(bool core_dumps, struct error *err);
