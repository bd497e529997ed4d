/* The environment git gets: a session's, without what would turn a clone into something else, and
 * with the credentials.
 *
 * A password reaches git by a variable of this one process, through a credential helper that is
 * named for its host alone. So it is in no argument, not sent to where a server redirects, asked
 * of nobody else, and not kept: neither in .git/config nor by helpers the user has configured. */
#pragma once

#include "agent/git/git_url.h"
#include "base/pool.h"

/* Made from `base`. Free with environment_free. `pool` may be freed before. */
const char **git_environment_new(const char *const *base, const struct git_url *url,
                                 struct pool *pool);
