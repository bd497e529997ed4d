/* Conversations, turns, tasks and what agents ask, as this dialect shows them. */
#pragma once

#include "domain/conversation/ask.h"
#include "domain/conversation/turn.h"
#include "domain/task/task.h"
#include "domain/task/task_schedule.h"
#include "domain/task/team.h"
#include "json/json_write.h"

void agent_fields_conversation(struct json_writer *json, const struct conversation *conversation);
/* `is_brief`: for lists, without parts. */
void agent_fields_turn(struct json_writer *json, const struct turn *turn, bool is_brief);
void agent_fields_ask(struct json_writer *json, const struct ask *ask);
void agent_fields_task(struct json_writer *json, const struct task *task);
void agent_fields_team(struct json_writer *json, const struct team *team);
void agent_fields_schedule(struct json_writer *json, const struct task_schedule *schedule);

/* "provider/model" or {"providerID","modelID"}; texts in the pool. 0, or -1 with ERR_INVALID. */
int agent_fields_read_model(const struct json_place *body, struct pool *pool,
                            const char **ret_provider, const char **ret_model, struct error *err);
/* A text, or an object as text, in the pool. */
int agent_fields_read_either(const struct json_place *body, const char *key, struct pool *pool,
                             const char **ret_text, struct error *err);
