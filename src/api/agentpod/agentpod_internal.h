/* Inside agentpod*.c only: what the handlers share. */
#pragma once

#include <jansson.h>

#include "api/agent/visit.h"
#include "base/text.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define AGENTPOD_FOLDER     "/home/user/workspace"
#define AGENTPOD_PORT       4096 /* where OpenCode listens */
#define AGENTPOD_BODY_LIMIT ((uint64_t) 8 * 1024 * 1024)
#define AGENTPOD_REPLY_MAX  ((size_t) 16 * 1024)

/* {"error": "..."} */
void agentpod_encode_error(const struct http_request *request, const struct error *error,
                           struct text *body, const char **ret_content_type);

/* Finish the object in `json` and send it. */
void agentpod_reply(struct http_request *request, struct json_writer *json, struct text *body);

/* The sandbox of the path; NULL: answered. */
struct sandbox;
struct sandbox *agentpod_find(struct http_request *request);

/* body.model: {"providerID", "modelID"}, or nothing. In the pool. */
int agentpod_read_model(const struct json_place *body, struct pool *pool, const char **ret_provider,
                        const char **ret_model, struct error *err);

/* --- handlers -------------------------------------------------------------------------------- */

void agentpod_create(struct http_request *request);
void agentpod_message(struct http_request *request);
void agentpod_message_opencode(struct http_request *request);
void agentpod_sync(struct http_request *request);
void agentpod_workflow_execute(struct http_request *request);
void agentpod_workflow_validate(struct http_request *request);
void agentpod_workflow_status(struct http_request *request);
void agentpod_workflow_pause(struct http_request *request);
void agentpod_workflow_resume(struct http_request *request);
void agentpod_workflow_terminate(struct http_request *request);
void agentpod_wake(struct http_request *request);
