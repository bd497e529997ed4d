/* What the handlers of the bridge share. Nothing outside of this folder includes it. */
#pragma once

#include "api/agent/agent_call.h"
#include "api/agent/visit.h"

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
