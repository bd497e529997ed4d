/* Inside stackmemory*.c only: what the handlers share. */
#pragma once

#include <jansson.h>

#include "api/agent/agent_call.h"
#include "api/agent/visit.h"
#include "api/http/json_body.h"
#include "api/mount_work.h"
#include "base/pool.h"

#define STACKMEMORY_NAME_MIN 2
#define STACKMEMORY_NAME_MAX 64
#define STACKMEMORY_PATH_MAX ((size_t) 4096)

/* The name in the form it is kept in, in the pool; NULL: it is none. */
const char *stackmemory_name(const char *text, struct pool *pool);

/* The name in the request's path. */
const char *stackmemory_request_name(struct http_request *request);

/* Refuse with a code of this dialect's own: 400. */
void stackmemory_refuse(struct http_request *request, const char *code, const char *details);

/* The query's `path`, or `usual` when it is not there. NULL: it was refused (missing_path). */
const char *stackmemory_path(struct http_request *request, const char *usual);

/* Visit the sandbox of the request, which is made when there is none; `data` becomes visit->data. A
 * name that is none is refused. */
void stackmemory_visit(struct http_request *request, void *data,
                       void (*ready)(struct visit *visit));

/* json_body_take, after a look at the name. */
void stackmemory_take_body(struct http_request *request, json_body_read *read);

/* {"ok": true, "sandboxId": ...}: to be filled and given to stackmemory_reply, which frees it. */
json_t *stackmemory_answer(struct http_request *request);
void stackmemory_reply(struct http_request *request, json_t *answer);

/* Whether the agent gave a good answer; else it was answered with an error. */
bool stackmemory_is_good(struct visit *visit, const struct agent_reply *reply,
                         const struct error *failure);

/* What a client wants mounted, with the default of a project's own part; in the request's pool. */
struct stackmemory_mount {
    struct bucket_mount_spec spec;
    const char *prefix, *mode; /* as it is told */
};

int stackmemory_read_mount(struct http_request *request, const struct json_place *body,
                           struct stackmemory_mount *ret_mount, struct error *err);

/* {"mountPath","prefix","mode"} */
json_t *stackmemory_describe_mount(const struct stackmemory_mount *mount);

/* --- handlers -------------------------------------------------------------------------------- */

void stackmemory_bootstrap(struct http_request *request);
void stackmemory_exec(struct http_request *request);
void stackmemory_read_file(struct http_request *request);
void stackmemory_write_file(struct http_request *request);
void stackmemory_list(struct http_request *request);
void stackmemory_terminal(struct http_request *request);
void stackmemory_mount_bucket(struct http_request *request);
void stackmemory_backup(struct http_request *request);
void stackmemory_restore(struct http_request *request);
