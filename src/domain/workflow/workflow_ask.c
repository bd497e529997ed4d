/* A node that an agent does: a task, found again by its key after a restart, and tried again when it
 * fails and the node says so. */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/workflow/workflow_internal.h"

#define TIMEOUT_MS  ((json_int_t) 300 * 1000)
#define RETRIES_MAX 10
#define KEY_SIZE    TASK_KEY_MAX

struct workflow_ask {
    struct list link;         /* of run->asks */
    struct workflow_run *run; /* NULL: nobody wants to know */
    struct domain *domain;
    struct caller caller;
    struct id task; /* empty: not made yet */
    struct task_wait *wait;
    char *node; /* owned */
    json_int_t retries;
};

static void workflow_ask_free(struct workflow_ask *ask)
{
    if (ask->run)
        list_remove(&ask->link);
    free(ask->node);
    free(ask);
}

static void workflow_ask_cancelled(void *context, const struct error *failure,
                                   const struct task *task)
{
    (void) context;
    (void) failure;
    (void) task;
}

static void workflow_ask_fail(struct workflow_ask *ask, const char *message)
{
    struct workflow_run *run = ask->run;
    AUTO(free) char *node = mem_copy_text(ask->node);
    json_t *mark = json_object_get(run->marks, node);
    json_int_t attempt = json_integer_value(json_object_get(mark, "attempt"));
    const bool again = attempt < ask->retries;

    workflow_ask_free(ask);
    if (again) { /* the next is another task: the mark says which */
        (void) json_object_set_new(run->marks, node,
                                   json_pack("{s:I, s:b}", "attempt", attempt + 1, "due", 1));
        run->is_dirty = true;
        workflow_keep(run);
        return;
    }
    workflow_record(run, node, NULL, message);
    workflow_advance(run);
}

static json_t *workflow_ask_result(const struct task *task)
{
    return json_pack("{s:s, s:s, s:s, s:s?, s:s?, s:{s:I, s:I}}", "response", task->answer,
                     "taskId", task->id.text, "conversationId", task->conversation.text, "provider",
                     task->provider, "model", task->model, "usage", "input",
                     (json_int_t) task->usage.input, "output", (json_int_t) task->usage.output);
}

static void workflow_ask_ended(void *context, const struct error *failure, const struct task *task)
{
    struct workflow_ask *ask = context;
    struct workflow_run *run = ask->run;

    ask->wait = NULL;
    if (!run || (failure && failure->code == ERR_UNAVAILABLE)) {
        workflow_ask_free(ask); /* the daemon ends: the task is found again */
    } else if (failure) {
        workflow_ask_fail(ask, failure->message);
    } else if (task->state != TASK_DONE) {
        workflow_ask_fail(ask, task->error_message[0] ? task->error_message
                                                      : task_state_text(task->state));
    } else {
        workflow_record(run, ask->node, workflow_ask_result(task), NULL);
        workflow_ask_free(ask);
        workflow_advance(run);
    }
}

static void workflow_ask_created(void *context, const struct error *failure,
                                 const struct task *task, bool is_new)
{
    struct workflow_ask *ask = context;

    (void) is_new;
    if (!ask->run && !failure && ask->domain->stage == DOMAIN_OPEN)
        task_cancel(ask->domain, &ask->caller, task->id.text, workflow_ask_cancelled, NULL);
    if (!ask->run || (failure && failure->code == ERR_UNAVAILABLE)) {
        workflow_ask_free(ask);
    } else if (failure) {
        workflow_ask_fail(ask, failure->message);
    } else {
        ask->task = task->id;
        ask->wait =
            task_wait_begin(ask->domain, &ask->caller, task->id.text, workflow_ask_ended, ask);
    }
}

/* --- the beginning --------------------------------------------------------------------------- */

static json_int_t workflow_ask_number(json_t *node, const char *key, json_int_t otherwise,
                                      json_int_t most)
{
    json_int_t number = json_integer_value(json_object_get(node, key));

    if (number <= 0)
        return otherwise;
    return number > most ? most : number;
}

static struct workflow_ask *workflow_ask_new(struct workflow_run *run, json_t *node)
{
    struct workflow_ask *ask = mem_alloc(sizeof(*ask));

    ask->run = run;
    ask->domain = run->domain;
    ask->caller = (struct caller){.scope = CALLER_WRITE, .owner = run->owner};
    ask->node = mem_copy_text(json_string_value(json_object_get(node, "id")));
    ask->retries = workflow_ask_number(node, "maxRetries", 0, RETRIES_MAX);
    list_append(&run->asks, &ask->link);
    return ask;
}

static char *workflow_ask_prompt(json_t *parameters)
{
    const char *prompt = json_string_value(json_object_get(parameters, "prompt"));
    const char *system = json_string_value(json_object_get(parameters, "systemPrompt"));
    AUTO(text) struct text text = TEXT_INIT(TURN_INPUT_MAX);

    if (!prompt || !*prompt)
        return NULL;
    if (system && *system)
        text_format(&text, "%s\n\n", system);
    text_append(&text, prompt);
    return text.overflowed ? NULL : text_take(&text);
}

void workflow_ask_begin(struct workflow_run *run, json_t *node, json_t *parameters)
{
    const char *id = json_string_value(json_object_get(node, "id"));
    json_t *mark = json_object_get(run->marks, id);
    json_int_t attempt = json_integer_value(json_object_get(mark, "attempt"));
    AUTO(free) char *prompt = workflow_ask_prompt(parameters);
    AUTO(text) struct text key = TEXT_INIT(KEY_SIZE), title = TEXT_INIT(CONVERSATION_TITLE_MAX);
    struct task_spec spec = TASK_SPEC_INIT;

    if (!prompt) {
        workflow_record(run, id, NULL, "Prompt is required, of at most 512 kB");
        return;
    }
    text_format(&key, "workflow/%s/%.100s/%lld", run->id.text, id, (long long) attempt);
    text_format(&title, "Workflow %.100s, %.100s", run->name, id);
    spec.text = prompt;
    spec.key = text_string(&key);
    spec.title = text_string(&title);
    spec.provider = json_string_value(json_object_get(parameters, "provider"));
    spec.model = spec.provider ? json_string_value(json_object_get(parameters, "model")) : NULL;
    if (!spec.model)
        spec.provider = NULL;
    spec.sandbox = json_string_value(json_object_get(parameters, "sandboxId"));
    spec.cleanup = TASK_DESTROY;
    spec.timeout_ms = (uint64_t) workflow_ask_number(node, "timeoutMs", TIMEOUT_MS,
                                                     (json_int_t) TURN_TIMEOUT_MAX_MS);
    (void) json_object_set_new(run->marks, id, json_pack("{s:I}", "attempt", attempt));
    run->is_dirty = true;
    task_create(run->domain, &(struct caller){.scope = CALLER_WRITE, .owner = run->owner}, &spec,
                workflow_ask_created, workflow_ask_new(run, node));
}

/* --- the end --------------------------------------------------------------------------------- */

void workflow_asks_leave(struct workflow_run *run)
{
    LIST_EACH (&run->asks, at) {
        struct workflow_ask *ask = CONTAINER_OF(at, struct workflow_ask, link);

        list_remove(at);
        ask->run = NULL;
        if (!ask->wait)
            continue; /* its answer comes, and finds nobody */
        task_wait_end(TAKE_PTR(ask->wait));
        workflow_ask_free(ask);
    }
}

void workflow_asks_cancel(struct workflow_run *run)
{
    LIST_EACH (&run->asks, at) {
        struct workflow_ask *ask = CONTAINER_OF(at, struct workflow_ask, link);

        if (ask->task.text[0])
            task_cancel(ask->domain, &ask->caller, ask->task.text, workflow_ask_cancelled, NULL);
    }
    workflow_asks_leave(run);
}
