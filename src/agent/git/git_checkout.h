/* Git: a repository is cloned into a folder of the sandbox, by the image's own git.
 *
 *     where the session is ──► git clone ──► which branch ──► reply
 *                                  │
 *                                  └── fails, takes too long, client leaves ──► folder removed
 *
 * Only a folder that was not there before is removed. */
#pragma once

#include "agent/operation.h"

extern const struct operation_table git_operations;
