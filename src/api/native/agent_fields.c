#include "api/native/agent_fields.h"

#include <stdlib.h>
#include <string.h>

#include "api/native/body.h"
#include "base/auto.h"
#include "domain/conversation/turn_usage.h"

/* A time that may not have come: null then. */
static void agent_add_time(struct json_writer *json, const char *key, int64_t time_ms)
{
    if (time_ms)
        native_add_time(json, key, time_ms);
    else
        json_add_null(json, key);
}

static void agent_add_id(struct json_writer *json, const char *key, const struct id *id)
{
    json_add_text(json, key, *id->text ? id->text : NULL);
}

static void agent_add_model(struct json_writer *json, const char *provider, const char *model)
{
    json_key(json, "model");
    if (!provider || !model) {
        json_put_null(json);
        return;
    }
    json_begin_object(json);
    json_add_text(json, "providerID", provider);
    json_add_text(json, "modelID", model);
    json_end_object(json);
}

static void agent_add_error(struct json_writer *json, const char *code, const char *message)
{
    json_key(json, "error");
    if (!*code) {
        json_put_null(json);
        return;
    }
    json_begin_object(json);
    json_add_text(json, "code", code);
    json_add_text(json, "message", message);
    json_end_object(json);
}

static void agent_add_raw(struct json_writer *json, const char *key, const char *raw)
{
    json_key(json, key);
    json_put_raw(json, raw, strlen(raw));
}

void agent_fields_conversation(struct json_writer *json, const struct conversation *conversation)
{
    json_begin_object(json);
    json_add_text(json, "id", conversation->id.text);
    agent_add_id(json, "sandboxId", &conversation->sandbox);
    json_add_text(json, "owner", conversation->owner.text);
    agent_add_id(json, "task", &conversation->task);
    json_add_text(json, "title", conversation->title);
    json_add_text(json, "kind", conversation->kind);
    agent_add_model(json, conversation->provider, conversation->model);
    json_add_text(json, "agent", conversation->agent);
    json_add_text(json, "agentSession", conversation->agent_session);
    agent_add_time(json, "createdAt", conversation->created_ms);
    agent_add_time(json, "updatedAt", conversation->updated_ms);
    json_end_object(json);
}

void agent_fields_turn(struct json_writer *json, const struct turn *turn, bool is_brief)
{
    AUTO(text) struct text prompt = TEXT_INIT(TURN_INPUT_MAX);

    turn_write_input_text(turn, &prompt);
    json_begin_object(json);
    json_add_text(json, "id", turn->id.text);
    json_add_text(json, "conversation", turn->conversation.text);
    json_add_text(json, "sandboxId", turn->sandbox.text);
    agent_add_id(json, "task", &turn->task);
    json_add_text(json, "state", turn_state_text(turn->state));
    json_add_text(json, "text", text_string(&prompt));
    json_add_text(json, "answer", turn->answer);
    if (!is_brief)
        agent_add_raw(json, "parts", turn->parts);
    agent_add_model(json, turn->provider, turn->model);
    json_key(json, "usage");
    turn_usage_write(json, &turn->usage);
    agent_add_error(json, turn->error_code, turn->error_message);
    agent_add_time(json, "createdAt", turn->created_ms);
    agent_add_time(json, "startedAt", turn->started_ms);
    agent_add_time(json, "endedAt", turn->ended_ms);
    json_end_object(json);
}

void agent_fields_ask(struct json_writer *json, const struct ask *ask)
{
    json_begin_object(json);
    json_add_text(json, "id", ask->id.text);
    json_add_text(json, "kind", ask->kind == ASK_PERMISSION ? "permission" : "question");
    json_add_text(json, "conversation", ask->conversation.text);
    json_add_text(json, "turn", ask->turn.text);
    json_add_text(json, "state", ask_state_text(ask->state));
    agent_add_raw(json, "detail", ask->detail);
    json_add_text(json, "reply", *ask->reply ? ask->reply : NULL);
    json_add_text(json, "answeredBy", *ask->answered_by ? ask->answered_by : NULL);
    agent_add_time(json, "createdAt", ask->created_ms);
    agent_add_time(json, "answeredAt", ask->answered_ms);
    agent_add_time(json, "expiresAt", ask->expires_ms);
    json_end_object(json);
}

void agent_fields_task(struct json_writer *json, const struct task *task)
{
    json_begin_object(json);
    json_add_text(json, "id", task->id.text);
    json_add_text(json, "owner", task->owner.text);
    json_add_text(json, "title", task->title);
    json_add_text(json, "state", task_state_text(task->state));
    json_add_text(json, "text", task->text);
    json_add_text(json, "answer", task->answer);
    agent_add_id(json, "sandboxId", &task->sandbox);
    json_add_text(json, "conversation", task->conversation.text);
    agent_add_id(json, "turn", &task->turn);
    agent_add_id(json, "team", &task->team);
    json_add_text(json, "role", task->role);
    agent_add_id(json, "schedule", &task->schedule);
    agent_add_id(json, "snapshot", &task->snapshot);
    json_add_text(json, "git", task->git_url);
    agent_add_model(json, task->provider, task->model);
    json_add_text(json, "cleanup", task_cleanup_text(task->cleanup));
    json_key(json, "usage");
    turn_usage_write(json, &task->usage);
    agent_add_error(json, task->error_code, task->error_message);
    agent_add_time(json, "createdAt", task->created_ms);
    agent_add_time(json, "startedAt", task->started_ms);
    agent_add_time(json, "endedAt", task->ended_ms);
    agent_add_time(json, "deadlineAt", task->deadline_ms);
    json_end_object(json);
}

void agent_fields_team(struct json_writer *json, const struct team *team)
{
    json_begin_object(json);
    json_add_text(json, "id", team->id.text);
    json_add_text(json, "owner", team->owner.text);
    json_add_text(json, "title", team->title);
    json_add_text(json, "state", team_state_text(team->state));
    json_add_integer(json, "parallel", team->parallel);
    json_add_text(json, "shared", team->is_shared ? "fork" : "none");
    json_add_text(json, "onFailure", team->cancels ? "cancel" : "continue");
    if (team->members) {
        json_key(json, "usage");
        turn_usage_write(json, &team->usage);
        json_begin_array_at(json, "members");
        for (size_t i = 0; i < team->member_count; i++)
            agent_fields_task(json, &team->members[i]);
        json_end_array(json);
    }
    agent_add_time(json, "createdAt", team->created_ms);
    agent_add_time(json, "endedAt", team->ended_ms);
    json_end_object(json);
}

void agent_fields_schedule(struct json_writer *json, const struct task_schedule *schedule)
{
    json_begin_object(json);
    json_add_text(json, "id", schedule->id.text);
    json_add_text(json, "owner", schedule->owner.text);
    json_add_text(json, "name", schedule->name);
    json_add_text(json, "cron", schedule->cron);
    json_add_text(json, "timeZone", schedule->zone);
    json_add_text(json, "overlap", schedule_overlap_text(schedule->overlap));
    json_add_text(json, "missed", schedule_missed_text(schedule->missed));
    json_add_boolean(json, "paused", schedule->is_paused);
    agent_add_time(json, "nextAt", schedule->next_ms);
    agent_add_time(json, "lastAt", schedule->last_ms);
    agent_add_id(json, "lastTask", &schedule->last_task);
    json_add_text(json, "detail", schedule->detail);
    agent_add_time(json, "createdAt", schedule->created_ms);
    agent_add_time(json, "updatedAt", schedule->updated_ms);
    json_end_object(json);
}

int agent_fields_read_model(const struct json_place *body, struct pool *pool,
                            const char **ret_provider, const char **ret_model, struct error *err)
{
    json_t *value = json_object_get(body->value, "model");
    const char *text = json_string_value(value), *slash = text ? strchr(text, '/') : NULL;
    struct json_place model;

    if (!value || json_is_null(value))
        return 0;
    if (text && (!slash || slash == text || !slash[1]))
        return json_refuse_field(body, "model", "as 'provider/model'", err);
    if (text) {
        *ret_provider = pool_copy_bytes(pool, text, (size_t) (slash - text));
        *ret_model = pool_copy_text(pool, slash + 1);
        return 0;
    }
    if (json_field_object(body, "model", JSON_REQUIRED, &model, err) < 0 ||
        json_field_text(&model, "providerID", JSON_REQUIRED, CONVERSATION_NAME_MAX, ret_provider,
                        err) < 0)
        return -1;
    return json_field_text(&model, "modelID", JSON_REQUIRED, CONVERSATION_NAME_MAX, ret_model, err);
}

int agent_fields_read_either(const struct json_place *body, const char *key, struct pool *pool,
                             const char **ret_text, struct error *err)
{
    json_t *value = json_object_get(body->value, key);
    AUTO(free) char *text = NULL;

    if (!value || json_is_null(value))
        return 0;
    if (json_is_string(value)) {
        *ret_text = json_string_value(value);
        return 0;
    }
    if (!json_is_object(value))
        return json_refuse_field(body, key, "a text or an object", err);
    text = json_dumps(value, JSON_COMPACT);
    *ret_text = pool_copy_text(pool, text);
    return 0;
}
