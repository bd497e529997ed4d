/* An execution as a row, and back. */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/workflow/workflow_internal.h"
#include "json/json_read.h"

static const char *const state_names[WORKFLOW_STATE_COUNT] = {
#define X(name, text) [WORKFLOW_##name] = text,
    WORKFLOW_STATES(X)
#undef X
};

const char *workflow_state_text(enum workflow_state state)
{
    return state_names[state];
}

bool workflow_state_is_over(enum workflow_state state)
{
    return state >= WORKFLOW_COMPLETE;
}

size_t workflow_json_size(json_t *value)
{
    return json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
}

static char *workflow_row_print(const char *a, json_t *first, const char *b, json_t *second)
{
    AUTO(json) json_t *both = json_pack("{s:O?, s:O?}", a, first, b, second);

    return json_dumps(both, JSON_COMPACT);
}

void workflow_put(struct store_transaction *rows, const struct workflow_run *run)
{
    AUTO(free) char *spec = workflow_row_print("graph", run->graph, "trigger", run->trigger);
    AUTO(free) char *steps = workflow_row_print("steps", run->steps, "marks", run->marks);
    const struct store_value values[STORE_WORKFLOW_COLUMN_COUNT] = {
        [STORE_WORKFLOW_ID] = store_text(run->id.text),
        [STORE_WORKFLOW_OWNER] = store_text(run->owner.text),
        [STORE_WORKFLOW_NAME] = store_text(run->name),
        [STORE_WORKFLOW_WORKFLOW] = store_text(run->workflow_id),
        [STORE_WORKFLOW_STATE] = store_text(state_names[run->state]),
        [STORE_WORKFLOW_SPEC] = store_bytes(spec, strlen(spec)),
        [STORE_WORKFLOW_STEPS] = store_bytes(steps, strlen(steps)),
        [STORE_WORKFLOW_ERROR] = store_text(run->error),
        [STORE_WORKFLOW_CREATED] = store_integer(run->created_ms),
        [STORE_WORKFLOW_UPDATED] = store_integer(run->updated_ms),
        [STORE_WORKFLOW_ENDED] = run->ended_ms ? store_integer(run->ended_ms) : store_null(),
    };

    store_put(rows, STORE_WORKFLOW, values);
}

static char *workflow_row_text(const struct store_value *value)
{
    return value->is_null ? NULL : mem_copy_bytes(value->bytes, value->length);
}

static json_t *workflow_row_read(const struct store_value *value)
{
    const struct json_limits limits = {
        .size = value->length, .depth = JSON_DEPTH_MAX, .values = SIZE_MAX};

    return json_read(value->bytes, value->length, &limits, NULL);
}

static json_t *workflow_row_member(json_t *object, const char *key, json_t *otherwise)
{
    json_t *value = json_object_get(object, key);

    if (!value)
        return otherwise;
    json_decref(otherwise);
    return json_incref(value);
}

int workflow_from_row(struct workflow_run *run, const struct store_value *row, struct error *err)
{
    AUTO(json) json_t *spec = workflow_row_read(&row[STORE_WORKFLOW_SPEC]);
    AUTO(json) json_t *steps = workflow_row_read(&row[STORE_WORKFLOW_STEPS]);

    run->id = domain_row_id(&row[STORE_WORKFLOW_ID]);
    run->owner = domain_row_id(&row[STORE_WORKFLOW_OWNER]);
    run->name = workflow_row_text(&row[STORE_WORKFLOW_NAME]);
    run->workflow_id = workflow_row_text(&row[STORE_WORKFLOW_WORKFLOW]);
    run->error = workflow_row_text(&row[STORE_WORKFLOW_ERROR]);
    run->created_ms = row[STORE_WORKFLOW_CREATED].integer;
    run->updated_ms = row[STORE_WORKFLOW_UPDATED].integer;
    run->ended_ms = row[STORE_WORKFLOW_ENDED].integer;
    run->state = WORKFLOW_STATE_COUNT;
    for (unsigned int i = 0; i < WORKFLOW_STATE_COUNT; i++) {
        if (strcmp(state_names[i], row[STORE_WORKFLOW_STATE].bytes) == 0)
            run->state = (enum workflow_state) i;
    }
    if (!spec || !steps || run->state == WORKFLOW_STATE_COUNT)
        return error_set(err, ERR_INTERNAL, 0, "the row of workflow execution %s is not readable",
                         run->id.text);
    run->graph = workflow_row_member(spec, "graph", run->graph);
    run->trigger = workflow_row_member(spec, "trigger", run->trigger);
    run->steps = workflow_row_member(steps, "steps", run->steps);
    run->marks = workflow_row_member(steps, "marks", run->marks);
    return 0;
}
