/* Environment variables in requests: {"env": {"NAME": "text", "GONE": null}}, read and checked, and
 * PUT /burrow/environment, which changes what all later commands start from. */
#pragma once

#include "agent/api_error.h"
#include "agent/environment.h"
#include "base/pool.h"
#include "json/json_read.h"
#include "net/http/http_request.h"

/* Of one request, and of the environment that commands start from. */
#define VARIABLES_MAX ((size_t) 4096)
/* Bytes of that environment, all names and values: the kernel takes 2 MB with the arguments. */
#define VARIABLES_SIZE_MAX ((size_t) 1024 * 1024)
#define VARIABLES_BODY_MAX ((size_t) 2 * 1024 * 1024)

struct agent;

struct variables {
    const struct environment_change *changes; /* in the pool; names and texts in the JSON */
    size_t count;
};

/* Read the field "env" of `root`, which may be missing. Cloudflare's API passes over variables that
 * are null, ours (`null_removes`) takes them away. Returns 0, or -1 with the error to answer. */
int variables_read(const struct json_place *root, bool null_removes, struct pool *pool,
                   struct variables *ret_variables, struct api_error *error);

/* Whether an environment is within VARIABLES_MAX and VARIABLES_SIZE_MAX. */
bool variables_fit(const char *const *environment);

/* What a request with "env" and "replace" says about the environment that commands start from. */
int variables_change(struct agent *agent, const struct json_place *root, struct pool *pool,
                     struct api_error *error);

/* PUT /burrow/environment. */
void variables_handle(struct http_request *request);
