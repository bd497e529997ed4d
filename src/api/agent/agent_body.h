/* The JSON body of a question to an agent, written field by field into the request's pool.
 *
 *     struct agent_body body;
 *
 *     agent_body_begin(&body);
 *     json_add_text(&body.json, "path", path);
 *     agent_body_end(&body, pool, "/api/read", request);
 *
 * Texts may hold any bytes; what is not UTF-8 arrives as U+FFFD, so paths are checked before. */
#pragma once

#include "api/agent/agent_call.h"
#include "base/pool.h"
#include "base/text.h"
#include "json/json_write.h"

/* What an agent takes of a file in one body (32 MiB, escaped); callers bound what they put in. */
#define AGENT_BODY_MAX ((size_t) 48 * 1024 * 1024)

struct agent_body {
    struct json_writer json; /* inside the object */
    struct text text;
};

void agent_body_begin(struct agent_body *body);

/* Close the object and make it the body of a POST to `path` (borrowed as long as the request). A
 * body that does not fit has no content, which the agent refuses. Frees what was gathered. */
void agent_body_end(struct agent_body *body, struct pool *pool, const char *path,
                    struct agent_request *ret_request);
