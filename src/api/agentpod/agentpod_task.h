/* What the routes below /api/v2/agents share: what is asked for, and how a task is shown there.
 *
 * Tasks made here have an id of AgentPod's form, 12 characters, which is in their key; all others of the
 * user are seen here, too, under their own id. */
#pragma once

#include "api/agentpod/agentpod_internal.h"
#include "api/agentpod/agentpod_provider.h"
#include "domain/task/task.h"

#define AGENTPOD_LABEL_LENGTH 12
#define AGENTPOD_LABEL_SIZE   (AGENTPOD_LABEL_LENGTH + 1)

/* A new id of that form, and what it is kept as. */
void agentpod_label_new(char ret_label[static AGENTPOD_LABEL_SIZE]);
const char *agentpod_task_key(struct pool *pool, const char *label);

/* The id under which a task is known here. Borrowed from the task. */
const char *agentpod_task_label(const struct task *task);

/* A request for a task, from the request's pool. */
struct agentpod_wish {
    struct task_spec spec;
    enum agentpod_provider provider;
    char label[AGENTPOD_LABEL_SIZE];
};

/* message, provider, useCase, model, sandboxId, gitUrl, gitBranch. */
int agentpod_wish_read(struct http_request *request, const struct json_place *body,
                       struct agentpod_wish *ret_wish, struct error *err);

/* The agent's session of a task; "" while there is none. Borrowed. */
const char *agentpod_task_session(const struct api *api, const struct caller *caller,
                                  const struct task *task);
/* What its sandbox is called; "" when it is gone. Borrowed. */
const char *agentpod_task_sandbox(const struct api *api, const struct caller *caller,
                                  const struct task *task);

/* A row of agent_tasks, in camelCase. */
void agentpod_task_write(struct json_writer *json, const struct api *api,
                         const struct caller *caller, const struct task *task);

/* --- handlers -------------------------------------------------------------------------------- */

void agentpod_task_create(struct http_request *request);
void agentpod_task_stream(struct http_request *request);
void agentpod_task_get(struct http_request *request);
void agentpod_task_cancel(struct http_request *request);
void agentpod_tasks_list(struct http_request *request);
void agentpod_team_create(struct http_request *request);
void agentpod_team_get(struct http_request *request);
void agentpod_team_cancel(struct http_request *request);
void agentpod_providers_list(struct http_request *request);
void agentpod_agents_sync(struct http_request *request);
