/* What the handlers of the bridge share. Nothing outside of this folder includes it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/agent/agent_call.h"
#include "api/agent/visit.h"
#include "base/error.h"
#include "base/pool.h"
#include "base/text.h"
#include "net/http/http_request.h"

#define BRIDGE_JSON "application/json"
#define BRIDGE_OK   "{\"ok\":true}"

#define BRIDGE_BODY_MAX ((uint64_t) 32 * 1024 * 1024) /* of a file */
#define BRIDGE_EXEC_MAX ((uint64_t) 2 * 1024 * 1024)  /* of a command as JSON */

/* The agent's word for "in no session": a process of its own each time. */
#define BRIDGE_NO_SESSION "__DISABLE_SESSION__"

/* --- bridge_visit.c -------------------------------------------------------------------------- */

/* Visit the sandbox that the URL names; it is made when there is none, and started when somebody
 * stopped it: a client of the bridge knows nothing of either. `flags` as for visit_begin. */
void bridge_visit(struct http_request *request, unsigned int flags,
                  void (*ready)(struct visit *visit));

/* The client's Session-Id; BRIDGE_NO_SESSION when it gives none. NULL: it is malformed, and that
 * was answered. */
const char *bridge_session(struct http_request *request);

/* Take bytes from the agent and pass them on as they are. When it refuses, `refused` answers. */
typedef void bridge_refused(struct visit *visit, const char *code, const char *reason);
void bridge_download(struct visit *visit, const struct agent_request *request,
                     bridge_refused *refused);

/* Why the agent did not do it, for a sentence; NULL when it did. */
const char *bridge_reason(const struct agent_reply *reply, const struct error *failure,
                          struct error *storage);

/* --- handlers -------------------------------------------------------------------------------- */

void bridge_create(struct http_request *request); /* bridge_sandbox.c */
void bridge_running(struct http_request *request);
void bridge_delete(struct http_request *request);

void bridge_exec(struct http_request *request); /* bridge_exec.c */

void bridge_read_file(struct http_request *request); /* bridge_file.c */
void bridge_write_file(struct http_request *request);

void bridge_persist(struct http_request *request); /* bridge_archive.c */
void bridge_hydrate(struct http_request *request);

void bridge_make_session(struct http_request *request); /* bridge_session.c */
void bridge_delete_session(struct http_request *request);

void bridge_terminal(struct http_request *request); /* bridge_terminal.c */

void bridge_open_tunnel(struct http_request *request); /* bridge_tunnel.c */
void bridge_close_tunnel(struct http_request *request);

void bridge_mount_bucket(struct http_request *request); /* bridge_bucket.c */
void bridge_unmount_bucket(struct http_request *request);

void bridge_pool_read(struct http_request *request); /* bridge_pool.c */
void bridge_pool_prime(struct http_request *request);
void bridge_pool_drain(struct http_request *request);

void bridge_document_json(struct http_request *request); /* bridge_document.c */
void bridge_document_page(struct http_request *request);

/* --- bridge_command.c ------------------------------------------------------------------------ */

void bridge_command_write(struct text *line, const char *const *arguments, size_t count);

/* Whether running `program` needs no shell to mean the same: a path is what bash would execute, a
 * bare name may be a builtin, and NAME=VALUE is an assignment. */
bool bridge_command_is_program(const char *program);

/* --- bridge_path.c --------------------------------------------------------------------------- */

#define BRIDGE_ROOT     "/workspace"
#define BRIDGE_PATH_MAX ((size_t) 4095)

/* `path` as an absolute one without "." and "..", and without a slash at its end; a relative one
 * begins at the root. In the pool; NULL when it leads out of the root. */
const char *bridge_path_resolve(struct pool *pool, const char *path);

/* --- bridge_name.c: names that a client may choose ------------------------------------------- */

#define BRIDGE_SANDBOX_MAX ((size_t) 128)
#define BRIDGE_SESSION_MAX ((size_t) 128)
#define BRIDGE_TUNNEL_MAX  ((size_t) 63)

/* [a-z2-7]{1,128}: ids as POST /v1/sandbox gives them, and any other text of that alphabet. */
bool bridge_name_is_sandbox(const char *name);

/* [a-zA-Z0-9._-]{1,128} without "..". */
bool bridge_name_is_session(const char *name);

/* A DNS label: [a-z0-9] and inner hyphens, 1 to 63. */
bool bridge_name_is_tunnel(const char *name);

/* --- bridge_error.c: {"error": sentence, "code": word} ----------------------------------------
 *
 * Its words are about what was tried, ours about what went wrong; both are kept: the status is the
 * one of our code, the word is the bridge's where it has one. */

/* For http_mount: words for what goes wrong before a sandbox can be used. */
void bridge_error_encode(const struct http_request *request, const struct error *error,
                         struct text *body, const char **ret_content_type);

/* The same text for a word of one's own; in `body`, which must be empty. */
void bridge_error_write(const char *word, const char *sentence, struct text *body);

/* Answer with a word of one's own. */
void bridge_error_reply(struct http_request *request, enum err_code code, const char *word,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));
