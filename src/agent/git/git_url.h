/* A git URL: where a repository is, apart from who asks for it.
 *
 *     https://user:token@host/group/name.git      http too
 *     ssh://git@host:22/group/name.git
 *     git@host:group/name.git
 *     file:///srv/name.git
 *
 * What git gets in its arguments, what is shown and what stays in .git/config is `clean`, which
 * holds no password. Everything else that git would take (ext::, fd::, options, plain paths) is
 * refused. Pure functions. */
#pragma once

#include <stdbool.h>

#include "agent/redaction.h"
#include "base/pool.h"

#define GIT_URL_MAX      ((size_t) 8 * 1024)
#define GIT_URL_NAME_MAX 200

/* For GIT_ALLOW_PROTOCOL: what git itself may use, also when a server redirects it. */
#define GIT_URL_PROTOCOLS "http:https:ssh:file"

enum git_transport { GIT_TRANSPORT_HTTP, GIT_TRANSPORT_SSH, GIT_TRANSPORT_FILE };

struct git_url {
    enum git_transport transport;
    const char *clean;    /* without a password; for http without the user too */
    const char *origin;   /* http: "https://host:port", for which the credentials are; else NULL */
    const char *name;     /* the repository's, made fit to be a folder's */
    const char *user;     /* of http, decoded; NULL: no credentials */
    const char *password; /* likewise, "" when there is only a user */
    const char *raw_user; /* as it was written */
    const char *raw_password;
};

/* Take `text` apart; all of `ret_url` is the pool's. Returns 0, or -1 with the reason in
 * `ret_reason` (static), which does not repeat any of it. */
int git_url_parse(const char *text, struct pool *pool, struct git_url *ret_url,
                  const char **ret_reason);

/* Add what must not be repeated, in every form it may appear in. The strings are the pool's. */
void git_url_redact(const struct git_url *url, struct pool *pool, struct redaction *redaction);
