/* What a shell exports, read from what it prints: `export -p`, `declare -Fx` and `declare -f`.
 *
 * Understood are bash, with and without POSIX mode, and POSIX shells; lines that are none of theirs
 * are passed over. The session's own commands decide what is printed, so nothing is believed: the
 * result is bounded, and at worst the wrong environment for that session. */
#pragma once

#include <stddef.h>

#include "base/pool.h"

/* Most variables and functions that are taken; further ones are passed over. */
#define SESSION_EXPORTS_MAX   ((size_t) 4096)
#define SESSION_FUNCTIONS_MAX ((size_t) 256)

struct session_exports {
    const char **items; /* "NAME=text", in the pool, with room for a NULL behind the last */
    size_t count;
    size_t room;
};

/* Add the variables of `export -p`; those without a value and arrays are left out. */
void session_exports_read(struct session_exports *exports, struct pool *pool, const char *text,
                          size_t length);

/* The names in `declare -Fx`, in the pool; returns how many. */
size_t session_exports_functions(struct pool *pool, const char *text, size_t length,
                                 const char ***ret_names);

/* Add a function as bash hands it to programs (BASH_FUNC_name%%), from what `declare -f` prints. */
void session_exports_add_function(struct session_exports *exports, struct pool *pool,
                                  const char *name, const char *text, size_t length);

/* The environment: NULL at the end, never NULL itself. */
const char *const *session_exports_environment(struct session_exports *exports, struct pool *pool);
