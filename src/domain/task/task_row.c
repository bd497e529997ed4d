/* A task as a row of the store, and back. What is shown of it is a column of its own, so that lists
 * need not read what was wished for, which is sealed. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "domain/conversation/turn_usage.h"
#include "domain/domain_share.h"
#include "domain/task/task_internal.h"

#define ABOUT_MAX      ((size_t) 256 * 1024)
#define ABOUT_TEXT_MAX ((size_t) 16 * 1024)

static const char *const state_names[TASK_STATE_COUNT] = {
#define X(name, text) [TASK_##name] = text,
    TASK_STATES(X)
#undef X
};

const char *task_state_text(enum task_state state)
{
    return state < TASK_STATE_COUNT ? state_names[state] : "";
}

enum task_state task_state_from_text(const char *text)
{
    for (unsigned int i = 0; i < TASK_STATE_COUNT; i++)
        if (strcmp(state_names[i], text) == 0)
            return (enum task_state) i;
    return TASK_STATE_COUNT;
}

bool task_state_is_over(enum task_state state)
{
    return state >= TASK_DONE;
}

/* --- texts ------------------------------------------------------------------------------------- */

static const size_t task_texts[] = {
    offsetof(struct task, role),       offsetof(struct task, title),
    offsetof(struct task, text),       offsetof(struct task, git_url),
    offsetof(struct task, key),        offsetof(struct task, answer),
    offsetof(struct task, provider),   offsetof(struct task, model),
    offsetof(struct task, error_code), offsetof(struct task, error_message),
    offsetof(struct task, changes),
};

static const char **task_owned_at(struct task *task, size_t i)
{
    return (const char **) (void *) ((char *) task + task_texts[i]);
}

void task_own(struct task *task)
{
    for (size_t i = 0; i < ARRAY_COUNT(task_texts); i++) {
        const char **text = task_owned_at(task, i);

        *text = *text ? mem_copy_text(*text) : NULL;
    }
}

void task_disown(struct task *task)
{
    for (size_t i = 0; i < ARRAY_COUNT(task_texts); i++)
        free((char *) *task_owned_at(task, i));
    *task = (struct task){.state = TASK_STATE_COUNT};
}

/* --- written ----------------------------------------------------------------------------------- */

static void task_write_about(struct text *out, const struct task *task)
{
    struct json_writer json;
    size_t length = strlen(task->text);

    while (length > ABOUT_TEXT_MAX || (length && length < strlen(task->text) &&
                                       ((unsigned char) task->text[length] & 0xC0) == 0x80))
        length = length > ABOUT_TEXT_MAX ? ABOUT_TEXT_MAX : length - 1;
    json_document_begin(&json, out);
    json_add_text(&json, "title", task->title);
    json_key(&json, "text");
    json_put_bytes(&json, task->text, length);
    if (task->git_url)
        json_add_text(&json, "git", task->git_url);
    if (task->role)
        json_add_text(&json, "role", task->role);
    if (task->provider)
        json_add_text(&json, "provider", task->provider);
    if (task->model)
        json_add_text(&json, "model", task->model);
    json_add_boolean(&json, "owns", task->owns_sandbox);
    json_add_text(&json, "cleanup", task_cleanup_text(task->cleanup));
    (void) json_document_end(&json); /* it was checked: UTF-8, and short enough */
}

static struct store_value task_time(int64_t time_ms)
{
    return time_ms ? store_integer(time_ms) : store_null();
}

static struct store_value task_id_or_null(const struct id *id)
{
    return *id->text ? store_text(id->text) : store_null();
}

enum task_state task_state_now(const struct live_task *live)
{
    const struct live_turn *turn =
        live->task.state == TASK_RUNNING ? turn_live(live->domain, live->task.turn.text) : NULL;

    return turn && turn->turn.state == TURN_WAITING ? TASK_WAITING : live->task.state;
}

void task_put_row(struct store_transaction *rows, const struct live_task *live, bool is_new)
{
    const struct task *task = &live->task;
    AUTO(text) struct text spec = TEXT_INIT(TASK_SPEC_MAX * 2);
    AUTO(text) struct text about = TEXT_INIT(ABOUT_MAX);
    char usage[TURN_USAGE_MAX];

    (void) task_spec_write(&live->spec, &spec, NULL);
    task_write_about(&about, task);
    turn_usage_text(&task->usage, usage);
    const struct store_value values[STORE_TASK_COLUMN_COUNT] = {
        [STORE_TASK_ID] = store_text(task->id.text),
        [STORE_TASK_OWNER] = store_text(task->owner.text),
        [STORE_TASK_TEAM] = task_id_or_null(&task->team),
        [STORE_TASK_PLACE] = store_integer(live->place),
        [STORE_TASK_SCHEDULE] = task_id_or_null(&task->schedule),
        [STORE_TASK_SANDBOX] = store_text(task->sandbox.text),
        [STORE_TASK_CONVERSATION] = store_text(task->conversation.text),
        [STORE_TASK_TURN] = task_id_or_null(&task->turn),
        [STORE_TASK_SNAPSHOT] = task_id_or_null(&task->snapshot),
        [STORE_TASK_STATE] = store_text(task_state_text(task->state)),
        [STORE_TASK_SPEC] = store_bytes(text_string(&spec), spec.length),
        [STORE_TASK_ABOUT] = store_text(text_string(&about)),
        [STORE_TASK_KEY] = store_text(task->key),
        [STORE_TASK_ANSWER] = store_text(task->answer),
        [STORE_TASK_ERROR_CODE] = store_text(task->error_code),
        [STORE_TASK_ERROR_MESSAGE] = store_text(task->error_message),
        [STORE_TASK_USAGE] = store_text(usage),
        [STORE_TASK_CHANGES] = store_text(task->changes),
        [STORE_TASK_CREATED] = store_integer(task->created_ms),
        [STORE_TASK_STARTED] = task_time(task->started_ms),
        [STORE_TASK_ENDED] = task_time(task->ended_ms),
        [STORE_TASK_DEADLINE] = task_time(task->deadline_ms),
    };

    if (is_new)
        store_insert(rows, STORE_TASK, values);
    else
        store_update(rows, STORE_TASK, values);
}

/* --- read -------------------------------------------------------------------------------------- */

static const char *task_about_text(json_t *about, const char *key, struct pool *pool,
                                   const char *otherwise)
{
    const char *text = json_string_value(json_object_get(about, key));

    return text ? pool_copy_text(pool, text) : otherwise;
}

static enum task_cleanup task_about_cleanup(json_t *about)
{
    const char *text = json_string_value(json_object_get(about, "cleanup"));

    for (unsigned int i = TASK_KEEP; text && i <= TASK_DESTROY; i++)
        if (strcmp(text, task_cleanup_text((enum task_cleanup) i)) == 0)
            return (enum task_cleanup) i;
    return TASK_KEEP;
}

void task_from_row(const struct store_value *row, struct pool *pool, struct task *ret_task)
{
    AUTO(json)
    json_t *about =
        json_read(row[STORE_TASK_ABOUT].bytes, row[STORE_TASK_ABOUT].length, NULL, NULL);

    *ret_task = (struct task){
        .id = domain_row_id(&row[STORE_TASK_ID]),
        .owner = domain_row_id(&row[STORE_TASK_OWNER]),
        .conversation = domain_row_id(&row[STORE_TASK_CONVERSATION]),
        .sandbox = domain_row_id(&row[STORE_TASK_SANDBOX]),
        .turn = domain_row_id(&row[STORE_TASK_TURN]),
        .team = domain_row_id(&row[STORE_TASK_TEAM]),
        .schedule = domain_row_id(&row[STORE_TASK_SCHEDULE]),
        .snapshot = domain_row_id(&row[STORE_TASK_SNAPSHOT]),
        .state = task_state_from_text(row[STORE_TASK_STATE].bytes),
        .cleanup = task_about_cleanup(about),
        .owns_sandbox = json_is_true(json_object_get(about, "owns")),
        .role = task_about_text(about, "role", pool, NULL),
        .title = task_about_text(about, "title", pool, ""),
        .text = task_about_text(about, "text", pool, ""),
        .git_url = task_about_text(about, "git", pool, NULL),
        .provider = task_about_text(about, "provider", pool, NULL),
        .model = task_about_text(about, "model", pool, NULL),
        .key = row[STORE_TASK_KEY].is_null ? NULL : row[STORE_TASK_KEY].bytes,
        .answer = row[STORE_TASK_ANSWER].bytes,
        .error_code = row[STORE_TASK_ERROR_CODE].bytes,
        .error_message = row[STORE_TASK_ERROR_MESSAGE].bytes,
        .changes = row[STORE_TASK_CHANGES].is_null ? NULL : row[STORE_TASK_CHANGES].bytes,
        .created_ms = row[STORE_TASK_CREATED].integer,
        .started_ms = row[STORE_TASK_STARTED].integer,
        .ended_ms = row[STORE_TASK_ENDED].integer,
        .deadline_ms = row[STORE_TASK_DEADLINE].integer,
    };
    turn_usage_read(row[STORE_TASK_USAGE].bytes, &ret_task->usage);
}
