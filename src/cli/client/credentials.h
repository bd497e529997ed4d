/* Where the daemon is and which key opens it, when nobody says so on the command line:
 *
 *     BURROW_URL, BURROW_API_KEY
 *     ~/.config/burrow/credentials      two lines, "url = ..." and "key = ...", mode 0600
 *     the administrator's key in the data folder, when we may read it (root beside the daemon)
 *
 * The key of the file is used for the URL of the file only, the administrator's on this machine
 * only: a daemon that somebody else names must not get to see them.
 *
 * A credentials file that others can read is not used, which is said on stderr. */
#pragma once

#include "base/error.h"
#include "base/pool.h"

struct credentials {
    const char *url; /* never NULL */
    const char *key; /* NULL: none found */
};

/* What was given wins (NULL: not given). All texts are in `pool`. Blocks on the disk. */
void credentials_find(struct pool *pool, const char *url, const char *key,
                      struct credentials *ret_credentials);

/* The file's place, for messages. Static. */
const char *credentials_place(void);

/* Keep them there, mode 0600. Returns 0 or -1. */
int credentials_keep(const char *url, const char *key, struct error *err);
