/* A task as AgentPod's clients see it, and a wish for one as they say it. */
#include <string.h>

#include "api/agent/repository.h"
#include "api/agentpod/agentpod_task.h"
#include "base/clock.h"
#include "domain/conversation/conversation.h"
#include "domain/sandbox/sandboxes.h"

#define KEY_PREFIX "agentpod/"

/* --- names ----------------------------------------------------------------------------------- */

void agentpod_label_new(char ret_label[static AGENTPOD_LABEL_SIZE])
{
    const struct id id = id_new();

    memcpy(ret_label, id.text, AGENTPOD_LABEL_LENGTH);
    ret_label[AGENTPOD_LABEL_LENGTH] = '\0';
}

const char *agentpod_task_key(struct pool *pool, const char *label)
{
    return pool_format(pool, KEY_PREFIX "%s", label);
}

const char *agentpod_task_label(const struct task *task)
{
    if (task->key && strncmp(task->key, KEY_PREFIX, strlen(KEY_PREFIX)) == 0)
        return task->key + strlen(KEY_PREFIX);
    return task->id.text;
}

/* --- wishes ---------------------------------------------------------------------------------- */

static const char *agentpod_wish_keep(struct pool *pool, const char *text)
{
    return text && text[0] ? pool_copy_text(pool, text) : NULL;
}

static int agentpod_wish_read_texts(const struct json_place *body, struct pool *pool,
                                    struct agentpod_wish *wish, struct error *err)
{
    const char *message = NULL, *sandbox = NULL, *url = NULL, *branch = NULL;

    if (json_field_text(body, "message", JSON_REQUIRED, TURN_INPUT_MAX, &message, err) < 0 ||
        json_field_text(body, "sandboxId", JSON_OPTIONAL, SANDBOX_NAME_MAX, &sandbox, err) < 0 ||
        json_field_text(body, "gitUrl", JSON_OPTIONAL, REPOSITORY_URL_MAX, &url, err) < 0 ||
        json_field_text(body, "gitBranch", JSON_OPTIONAL, REPOSITORY_BRANCH_MAX, &branch, err) < 0)
        return -1;
    if (!message[0])
        return error_set(err, ERR_INVALID, 0, "message must not be empty");
    wish->spec.text = agentpod_wish_keep(pool, message);
    wish->spec.sandbox = agentpod_wish_keep(pool, sandbox);
    wish->spec.git_url = agentpod_wish_keep(pool, url);
    wish->spec.git_branch = agentpod_wish_keep(pool, branch);
    return 0;
}

static int agentpod_wish_read_provider(const struct api *api, const struct json_place *body,
                                       struct agentpod_wish *wish, struct error *err)
{
    const char *name = NULL, *use_case = NULL;

    if (json_field_text(body, "provider", JSON_OPTIONAL, 64, &name, err) < 0 ||
        json_field_text(body, "useCase", JSON_OPTIONAL, 64, &use_case, err) < 0 ||
        agentpod_provider_select(api->providers, name, use_case, &wish->provider, err) < 0)
        return -1;
    wish->spec.backend = agentpod_provider_text(wish->provider);
    wish->spec.cleanup = agentpod_provider_cleanup(wish->provider);
    return 0;
}

int agentpod_wish_read(struct http_request *request, const struct json_place *body,
                       struct agentpod_wish *ret_wish, struct error *err)
{
    struct pool *pool = &request->pool;

    *ret_wish = (struct agentpod_wish){.spec = TASK_SPEC_INIT};
    if (agentpod_wish_read_texts(body, pool, ret_wish, err) < 0 ||
        agentpod_wish_read_provider(api_of(request), body, ret_wish, err) < 0 ||
        agentpod_read_model(body, pool, &ret_wish->spec.provider, &ret_wish->spec.model, err) < 0)
        return -1;
    agentpod_label_new(ret_wish->label);
    ret_wish->spec.key = agentpod_task_key(pool, ret_wish->label);
    ret_wish->spec.title = pool_format(pool, "Task %s", ret_wish->label);
    if (!ret_wish->spec.sandbox) {
        ret_wish->spec.image = api_of(request)->providers->image;
        ret_wish->spec.sandbox_name = pool_format(pool, "task-%s", ret_wish->label);
    }
    return 0;
}

/* --- rows ------------------------------------------------------------------------------------ */

const char *agentpod_task_session(const struct api *api, const struct caller *caller,
                                  const struct task *task)
{
    const struct conversation *conversation =
        conversation_find(api->domain, caller, NULL, task->conversation.text, NULL);

    return conversation && conversation->agent_session ? conversation->agent_session : "";
}

const char *agentpod_task_sandbox(const struct api *api, const struct caller *caller,
                                  const struct task *task)
{
    const struct sandbox *sandbox =
        task->sandbox.text[0] ? sandbox_find(api->domain, caller, task->sandbox.text, NULL) : NULL;

    if (!sandbox)
        return task->sandbox.text;
    return sandbox->spec.name ? sandbox->spec.name : sandbox->id.text;
}

/* Their words for ours. */
static const char *agentpod_task_status(enum task_state state)
{
    switch (state) {
    case TASK_QUEUED:
        return "pending";
    case TASK_DONE:
        return "completed";
    case TASK_FAILED:
        return "failed";
    case TASK_CANCELLED:
        return "cancelled";
    default:
        return "running";
    }
}

static const char *agentpod_task_or_null(const char *text)
{
    return text && text[0] ? text : NULL;
}

static void agentpod_task_write_time(struct json_writer *json, const char *key, int64_t time_ms)
{
    char text[CLOCK_TEXT_SIZE];

    if (time_ms)
        clock_format(time_ms, text);
    json_add_text(json, key, time_ms ? text : NULL);
}

static void agentpod_task_write_metadata(struct json_writer *json, const struct task *task)
{
    json_begin_object_at(json, "metadata");
    json_add_text(json, "task", task->id.text);
    json_add_text(json, "team", agentpod_task_or_null(task->team.text));
    json_add_text(json, "role", agentpod_task_or_null(task->role));
    json_add_text(json, "state", task_state_text(task->state));
    json_begin_object_at(json, "usage");
    json_add_integer(json, "input", (int64_t) task->usage.input);
    json_add_integer(json, "output", (int64_t) task->usage.output);
    json_add_integer(json, "reasoning", (int64_t) task->usage.reasoning);
    json_add_integer(json, "cacheRead", (int64_t) task->usage.cache_read);
    json_add_integer(json, "cacheWrite", (int64_t) task->usage.cache_write);
    json_end_object(json);
    json_end_object(json);
}

void agentpod_task_write(struct json_writer *json, const struct api *api,
                         const struct caller *caller, const struct task *task)
{
    const bool is_over = task_state_is_over(task->state);

    json_begin_object(json);
    json_add_text(json, "id", agentpod_task_label(task));
    json_add_text(json, "userId", task->owner.text);
    json_add_text(json, "sandboxId", agentpod_task_sandbox(api, caller, task));
    json_add_text(json, "provider", agentpod_provider_text(agentpod_provider_of(task->cleanup)));
    json_add_text(json, "status", agentpod_task_status(task->state));
    json_add_text(json, "message", task->text);
    json_add_text(json, "response",
                  is_over && task->state == TASK_DONE ? task->answer
                                                      : agentpod_task_or_null(task->answer));
    json_add_text(json, "gitUrl", agentpod_task_or_null(task->git_url));
    json_add_text(json, "modelProvider", agentpod_task_or_null(task->provider));
    json_add_text(json, "modelId", agentpod_task_or_null(task->model));
    json_add_text(json, "sessionId",
                  agentpod_task_or_null(agentpod_task_session(api, caller, task)));
    agentpod_task_write_time(json, "createdAt", task->created_ms);
    agentpod_task_write_time(json, "completedAt", task->ended_ms);
    json_add_text(json, "error", agentpod_task_or_null(task->error_message));
    agentpod_task_write_metadata(json, task);
    json_end_object(json);
}
