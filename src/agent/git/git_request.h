/* What a client asks of a checkout: read and checked, nothing done yet. */
#pragma once

#include <stdint.h>

#include "agent/call.h"
#include "agent/git/git_url.h"

#define GIT_TIMEOUT_DEFAULT_MS 600000
#define GIT_TIMEOUT_MAX_MS     86400000
#define GIT_PATH_MAX           ((size_t) 4096)
#define GIT_BRANCH_MAX         ((size_t) 1024)

struct git_request {
    struct git_url url;
    const char *shown;  /* the URL for replies and errors */
    const char *branch; /* NULL: the repository's own */
    const char *target; /* as it was given; NULL: named after the repository */
    int64_t depth;      /* 0: everything */
    int64_t timeout_ms;
};

/* Read the arguments of the call; the strings are the pool's. Returns 0, or -1 when the call was
 * failed and is gone: VALIDATION_FAILED, INVALID_GIT_URL. */
int git_request_read(struct call *call, struct pool *pool, struct git_request *ret_request);

/* The folder for it, as an absolute path of the pool's: relative ones begin at `directory`. */
const char *git_request_target(const struct git_request *request, const char *directory,
                               struct pool *pool);
