/* Paths as the bridge takes them: everything lies below /workspace.
 *
 * Lexical only: links are not looked at, which is the sandbox's own business. */
#pragma once

#include "base/pool.h"

#define BRIDGE_ROOT     "/workspace"
#define BRIDGE_PATH_MAX ((size_t) 4095)

/* `path` as an absolute one without "." and "..", and without a slash at its end; a relative one
 * begins at the root. In the pool; NULL when it leads out of the root. */
const char *bridge_path_resolve(struct pool *pool, const char *path);
