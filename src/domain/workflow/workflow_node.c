#include "domain/workflow/workflow_node.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/workflow/workflow_value.h"
#include "json/json_read.h"

#define BRANCHES_MIN 2
#define BRANCHES_MAX 10
#define PARSE_MAX    ((size_t) 256 * 1024)

static const char *workflow_node_text(const struct workflow_input *input, const char *key,
                                      const char *otherwise)
{
    const char *text = json_string_value(json_object_get(input->parameters, key));

    return text && *text ? text : otherwise;
}

static json_t *workflow_node_fail(struct error *err, const char *message)
{
    (void) error_set(err, ERR_INVALID, 0, "%s", message);
    return NULL;
}

/* A value given in one parameter, or the path of one in another. Borrowed. */
static json_t *workflow_node_value(const struct workflow_input *input, const char *key,
                                   const char *path_key)
{
    json_t *value = json_object_get(input->parameters, key);
    const char *path = workflow_node_text(input, path_key, NULL);

    return value && !json_is_null(value) ? value
           : path                        ? workflow_value_at(input->scope, path)
                                         : NULL;
}

/* --- triggers -------------------------------------------------------------------------------- */

static json_t *workflow_compute_trigger(const struct workflow_input *input, struct error *err)
{
    const char *type = json_string_value(json_object_get(input->node, "type"));
    json_t *data = workflow_value_at(input->scope, "trigger.data"), *result;
    static const char *const parts[] = {"method", "headers", "body", "query"};

    (void) err;
    result = json_pack("{s:b, s:s, s:s, s:O}", "triggered", 1, "timestamp", input->time,
                       "triggerType", type, "data", data);
    (void) json_object_set_new(result, "triggerType", json_stringn(type, strcspn(type, "-")));
    for (size_t i = 0; strcmp(type, "webhook-trigger") == 0 && i < ARRAY_COUNT(parts); i++) {
        json_t *part = json_object_get(data, parts[i]);

        (void) json_object_set(result, parts[i], part ? part : json_null());
    }
    return result;
}

/* --- branches -------------------------------------------------------------------------------- */

static json_t *workflow_compute_condition(const struct workflow_input *input, struct error *err)
{
    json_t *list = json_object_get(input->parameters, "conditions"), *condition;
    const char *otherwise = workflow_node_text(input, "defaultBranch", "default");
    const bool wants_all = strcmp(workflow_node_text(input, "mode", "first"), "all") == 0;
    AUTO(json) json_t *branches = json_array();
    size_t i;

    if (!json_array_size(list))
        return workflow_node_fail(err, "At least one condition is required");
    json_array_foreach (list, i, condition) {
        const char *field = json_string_value(json_object_get(condition, "field"));
        const char *operator= json_string_value(json_object_get(condition, "operator"));
        const char *branch = json_string_value(json_object_get(condition, "outputBranch"));
        int holds = workflow_value_compare(operator ? operator : "",
                                           field ? workflow_value_at(input->scope, field) : NULL,
                                           json_object_get(condition, "value"), err);

        if (holds < 0)
            return NULL;
        if (holds)
            (void) json_array_append_new(branches, json_string(branch ? branch : "true"));
        if (holds && !wants_all)
            return json_pack("{s:s, s:b}", "branch", branch ? branch : "true", "matched", 1);
    }
    if (!json_array_size(branches))
        return json_pack("{s:s, s:b}", "branch", otherwise, "matched", 0);
    return json_pack("{s:O, s:b}", "branches", branches, "matched", 1);
}

static json_t *workflow_compute_switch(const struct workflow_input *input, struct error *err)
{
    const char *field = workflow_node_text(input, "field", NULL);
    json_t *value = field ? workflow_value_at(input->scope, field) : NULL, *at;
    size_t i;

    if (!field)
        return workflow_node_fail(err, "Field is required for switch node");
    json_array_foreach (json_object_get(input->parameters, "cases"), i, at) {
        const char *branch = json_string_value(json_object_get(at, "outputBranch"));

        if (value && branch && json_equal(value, json_object_get(at, "value")))
            return json_pack("{s:s, s:b, s:O}", "branch", branch, "matched", 1, "value", value);
    }
    return json_pack("{s:s, s:b, s:O?}", "branch",
                     workflow_node_text(input, "defaultCase", "default"), "matched", 0, "value",
                     value);
}

static json_t *workflow_compute_split(const struct workflow_input *input, struct error *err)
{
    json_t *wished = json_object_get(input->parameters, "branches"), *names;
    json_int_t count = wished ? json_integer_value(wished) : BRANCHES_MIN;

    if (count < BRANCHES_MIN || count > BRANCHES_MAX)
        return workflow_node_fail(err, "Branches must be a number between 2 and 10");
    names = json_array();
    for (json_int_t i = 1; i <= count; i++)
        (void) json_array_append_new(names, json_sprintf("branch_%d", (int) i));
    return json_pack("{s:o, s:I}", "branches", names, "branchCount", count);
}

static json_t *workflow_compute_merge(const struct workflow_input *input, struct error *err)
{
    json_t *merged = json_object(), *step;
    const char *id;

    (void) err;
    json_object_foreach (json_object_get(input->scope, "steps"), id, step) {
        json_t *data = json_object_get(step, "data");

        if (json_is_true(json_object_get(step, "success")) &&
            !json_is_true(json_object_get(data, "skipped")))
            (void) json_object_set(merged, id, data);
    }
    return json_pack("{s:b, s:I, s:o}", "merged", 1, "inputCount",
                     (json_int_t) json_object_size(merged), "data", merged);
}

/* --- lists ----------------------------------------------------------------------------------- */

static json_t *workflow_compute_loop(const struct workflow_input *input, struct error *err)
{
    json_t *items = workflow_node_value(input, "items", "itemsPath"), *batches, *batch = NULL;
    json_t *wished = json_object_get(input->parameters, "batchSize"), *item;
    json_int_t size = json_is_integer(wished) ? json_integer_value(wished) : 1;
    size_t i;

    if (!json_is_array(items) || size < 1)
        return workflow_node_fail(err, "Items must be an array, and batchSize at least 1");
    batches = json_array();
    json_array_foreach (items, i, item) {
        if (i % (size_t) size == 0) {
            batch = json_array();
            (void) json_array_append_new(batches, batch);
        }
        (void) json_array_append(batch, item);
    }
    return json_pack("{s:I, s:I, s:I, s:o, s:O}", "totalItems", (json_int_t) json_array_size(items),
                     "batchCount", (json_int_t) json_array_size(batches), "batchSize", size,
                     "batches", batches, "items", items);
}

/* 1, 0, or -1 with the failure. */
static int workflow_node_keeps(json_t *conditions, json_t *item, bool wants_all, struct error *err)
{
    json_t *condition;
    size_t i;

    json_array_foreach (conditions, i, condition) {
        const char *field = json_string_value(json_object_get(condition, "field"));
        const char *operator= json_string_value(json_object_get(condition, "operator"));
        int holds = workflow_value_compare(operator ? operator : "",
                                           workflow_value_at(item, field ? field : ""),
                                           json_object_get(condition, "value"), err);

        if (holds < 0 || (bool) holds != wants_all)
            return holds;
    }
    return wants_all || !json_array_size(conditions);
}

static json_t *workflow_compute_filter(const struct workflow_input *input, struct error *err)
{
    json_t *items = workflow_node_value(input, "items", "itemsPath"), *item;
    json_t *conditions = json_object_get(input->parameters, "conditions");
    const bool wants_all = strcmp(workflow_node_text(input, "mode", "all"), "any") != 0;
    AUTO(json) json_t *kept = json_array();
    AUTO(json) json_t *rejected = json_array();
    size_t i;

    if (!json_is_array(items))
        return workflow_node_fail(err, "Items must be an array: give items or itemsPath");
    json_array_foreach (items, i, item) {
        int keeps = workflow_node_keeps(conditions, item, wants_all, err);

        if (keeps < 0)
            return NULL;
        (void) json_array_append(keeps ? kept : rejected, item);
    }
    return json_pack("{s:O, s:O, s:I, s:I, s:I}", "items", kept, "rejected", rejected,
                     "originalCount", (json_int_t) json_array_size(items), "filteredCount",
                     (json_int_t) json_array_size(kept), "rejectedCount",
                     (json_int_t) json_array_size(rejected));
}

struct workflow_sum {
    double total, least, most;
    size_t numbers;
};

static void workflow_node_sum(json_t *items, const char *field, struct workflow_sum *ret_sum)
{
    json_t *item;
    size_t i;

    *ret_sum = (struct workflow_sum){.numbers = 0};
    json_array_foreach (items, i, item) {
        json_t *value = workflow_value_at(item, field);
        double number = json_number_value(value);

        if (!json_is_number(value))
            continue;
        ret_sum->total += number;
        if (!ret_sum->numbers || number < ret_sum->least)
            ret_sum->least = number;
        if (!ret_sum->numbers || number > ret_sum->most)
            ret_sum->most = number;
        ret_sum->numbers++;
    }
}

static json_t *workflow_node_gather(json_t *items, const char *field, bool is_unique)
{
    json_t *list = json_array(), *item, *known;
    size_t i, j;

    json_array_foreach (items, i, item) {
        json_t *value = workflow_value_at(item, field);
        bool is_new = value != NULL;

        json_array_foreach (list, j, known) {
            is_new = is_new && !(is_unique && json_equal(known, value));
        }
        if (is_new && !is_unique && json_is_array(value))
            (void) json_array_extend(list, value);
        else if (is_new)
            (void) json_array_append(list, value);
    }
    return list;
}

static json_t *workflow_node_aggregate(json_t *items, const char *operation, const char *field,
                                       struct error *err)
{
    const size_t count = json_array_size(items);
    const bool is_first = strcmp(operation, "first") == 0;
    struct workflow_sum sum;
    json_t *value;

    workflow_node_sum(items, field, &sum);
    if (strcmp(operation, "count") == 0)
        return json_integer((json_int_t) count);
    if (strcmp(operation, "sum") == 0)
        return json_real(sum.total);
    if (strcmp(operation, "avg") == 0)
        return json_real(sum.numbers ? sum.total / (double) sum.numbers : 0);
    if (strcmp(operation, "min") == 0)
        return sum.numbers ? json_real(sum.least) : json_null();
    if (strcmp(operation, "max") == 0)
        return sum.numbers ? json_real(sum.most) : json_null();
    if (strcmp(operation, "concat") == 0 || strcmp(operation, "unique") == 0)
        return workflow_node_gather(items, field, operation[0] == 'u');
    if (!is_first && strcmp(operation, "last") != 0)
        return workflow_node_fail(err, "operation must be count, sum, avg, min, max, first, last, "
                                       "concat or unique");
    value =
        count ? workflow_value_at(json_array_get(items, is_first ? 0 : count - 1), field) : NULL;
    return value ? json_incref(value) : json_null();
}

static json_t *workflow_compute_aggregate(const struct workflow_input *input, struct error *err)
{
    json_t *items = workflow_node_value(input, "items", "itemsPath"), *at;
    AUTO(json) json_t *results = json_object();
    size_t i;

    if (!json_is_array(items))
        return workflow_node_fail(err, "Items must be an array: give items or itemsPath");
    json_array_foreach (json_object_get(input->parameters, "operations"), i, at) {
        const char *operation = json_string_value(json_object_get(at, "operation"));
        const char *field = json_string_value(json_object_get(at, "field"));
        const char *name = json_string_value(json_object_get(at, "outputName"));
        json_t *value =
            workflow_node_aggregate(items, operation ? operation : "", field ? field : "", err);

        if (!value)
            return NULL;
        (void) json_object_set_new(results, name ? name : "result", value);
    }
    return json_pack("{s:O, s:I}", "results", results, "itemCount",
                     (json_int_t) json_array_size(items));
}

/* --- shapes ---------------------------------------------------------------------------------- */

static void workflow_node_put(json_t *object, const char *path, json_t *value)
{
    AUTO(free) char *copy = mem_copy_text(path);
    char *at = copy, *dot;

    while ((dot = strchr(at, '.'))) {
        json_t *inner;

        *dot = '\0';
        inner = json_object_get(object, at);
        if (!json_is_object(inner)) {
            inner = json_object();
            (void) json_object_set_new(object, at, inner);
        }
        object = inner;
        at = dot + 1;
    }
    (void) json_object_set(object, at, value);
}

static json_t *workflow_node_map(json_t *value, json_t *mapping, bool keeps)
{
    json_t *result = keeps ? json_deep_copy(value) : json_object(), *at;
    size_t i;

    json_array_foreach (mapping, i, at) {
        const char *from = json_string_value(json_object_get(at, "from"));
        const char *to = json_string_value(json_object_get(at, "to"));
        json_t *found = from ? workflow_value_at(value, from) : NULL;

        if (!found || !to)
            continue;
        if (keeps)
            (void) json_object_del(result, from);
        workflow_node_put(result, to, found);
    }
    return result;
}

static json_t *workflow_node_choose(json_t *value, json_t *fields, bool omits)
{
    json_t *result = omits ? json_deep_copy(value) : json_object(), *at;
    size_t i;

    json_array_foreach (fields, i, at) {
        const char *field = json_string_value(at);
        json_t *found = field ? workflow_value_at(value, field) : NULL;

        if (found && omits)
            (void) json_object_del(result, field);
        else if (found)
            workflow_node_put(result, field, found);
    }
    return result;
}

static json_t *workflow_compute_transform(const struct workflow_input *input, struct error *err)
{
    json_t *value = workflow_node_value(input, "input", "inputPath"), *data;
    json_t *mapping = json_object_get(input->parameters, "mapping");
    json_t *fields = json_object_get(input->parameters, "fields");
    const char *mode = workflow_node_text(input, "mode", "map");

    if (!json_is_object(value))
        return workflow_node_fail(err, "The input must be an object: give input or inputPath");
    if (strcmp(mode, "map") == 0 || strcmp(mode, "rename") == 0)
        data = workflow_node_map(value, mapping, mode[0] == 'r');
    else if (strcmp(mode, "pick") == 0 || strcmp(mode, "omit") == 0)
        data = workflow_node_choose(value, fields, mode[0] == 'o');
    else
        return workflow_node_fail(err, "mode must be map, rename, pick or omit");
    return json_pack("{s:o, s:s}", "data", data, "mode", mode);
}

static json_t *workflow_compute_variables(const struct workflow_input *input, struct error *err)
{
    json_t *list = json_object_get(input->parameters, "variables"), *at, *variables;
    size_t i;

    if (!json_is_array(list))
        return workflow_node_fail(err, "Variables must be an array");
    variables = json_object();
    json_array_foreach (list, i, at) {
        const char *name = json_string_value(json_object_get(at, "name"));
        json_t *value = json_object_get(at, "value");

        if (name)
            (void) json_object_set(variables, name, value ? value : json_null());
    }
    return json_pack("{s:o, s:I}", "variables", variables, "count",
                     (json_int_t) json_array_size(list));
}

static json_t *workflow_compute_parse(const struct workflow_input *input, struct error *err)
{
    const struct json_limits limits = {
        .size = PARSE_MAX, .depth = JSON_DEPTH_MAX, .values = JSON_VALUES_MAX};
    json_t *value = workflow_node_value(input, "input", "inputPath"), *parsed;
    json_t *otherwise = json_object_get(input->parameters, "defaultValue");
    const bool forgives =
        strcmp(workflow_node_text(input, "errorHandling", "error"), "default") == 0;

    if (json_is_object(value) || json_is_array(value))
        return json_pack("{s:O, s:b}", "data", value, "parsed", 0);
    parsed = json_is_string(value)
                 ? json_read(json_string_value(value), json_string_length(value), &limits, err)
                 : NULL;
    if (parsed)
        return json_pack("{s:o, s:b}", "data", parsed, "parsed", 1);
    if (forgives)
        return json_pack("{s:O?, s:b}", "data", otherwise, "parsed", 0);
    if (!json_is_string(value))
        return workflow_node_fail(err, "Input is empty or not found");
    (void) error_wrap(err, "Failed to parse JSON");
    return NULL;
}

/* --- failures -------------------------------------------------------------------------------- */

static json_t *workflow_compute_handler(const struct workflow_input *input, struct error *err)
{
    const char *action = workflow_node_text(input, "onError", "continue"), *id;
    json_t *step, *fallback = json_object_get(input->parameters, "fallbackValue");

    json_object_foreach (json_object_get(input->scope, "steps"), id, step) {
        const char *error = json_string_value(json_object_get(step, "error"));

        if (!error)
            continue;
        if (strcmp(action, "stop") == 0) {
            (void) error_set(err, ERR_INVALID, 0, "Workflow stopped due to error: %.200s", error);
            return NULL;
        }
        return json_pack("{s:b, s:s, s:s, s:s, s:O?}", "handled", 1, "action", action, "error",
                         error, "errorNodeId", id, "fallbackValue", fallback);
    }
    return json_pack("{s:b, s:s}", "handled", 0, "action", "pass_through");
}

/* --- all ------------------------------------------------------------------------------------- */

#define NO_NETWORK                                                                                 \
    "this daemon makes no requests of its own for users; let an agent do it (ai-chat)"
#define NO_MESSAGE "this daemon sends no messages; follow its webhooks instead"
#define NO_CODE    "code runs in sandboxes only; let an agent do it (ai-agent-tools)"
#define NO_STORE   "use a sandbox with a bucket mounted"

static const struct workflow_kind kinds[] = {
    {"manual-trigger", WORKFLOW_COMPUTE, workflow_compute_trigger, NULL},
    {"webhook-trigger", WORKFLOW_COMPUTE, workflow_compute_trigger, NULL},
    {"schedule-trigger", WORKFLOW_COMPUTE, workflow_compute_trigger, NULL},
    {"event-trigger", WORKFLOW_COMPUTE, workflow_compute_trigger, NULL},
    {"condition", WORKFLOW_COMPUTE, workflow_compute_condition, NULL},
    {"switch", WORKFLOW_COMPUTE, workflow_compute_switch, NULL},
    {"split", WORKFLOW_COMPUTE, workflow_compute_split, NULL},
    {"merge", WORKFLOW_COMPUTE, workflow_compute_merge, NULL},
    {"loop", WORKFLOW_COMPUTE, workflow_compute_loop, NULL},
    {"filter", WORKFLOW_COMPUTE, workflow_compute_filter, NULL},
    {"aggregate", WORKFLOW_COMPUTE, workflow_compute_aggregate, NULL},
    {"transform", WORKFLOW_COMPUTE, workflow_compute_transform, NULL},
    {"set-variable", WORKFLOW_COMPUTE, workflow_compute_variables, NULL},
    {"parse-json", WORKFLOW_COMPUTE, workflow_compute_parse, NULL},
    {"error-handler", WORKFLOW_COMPUTE, workflow_compute_handler, NULL},
    {"wait", WORKFLOW_WAIT, NULL, NULL},
    {"approval", WORKFLOW_APPROVE, NULL, NULL},
    {"ai-chat", WORKFLOW_ASK, NULL, NULL},
    {"ai-agent-tools", WORKFLOW_ASK, NULL, NULL},
    {"http-request", WORKFLOW_COMPUTE, NULL, NO_NETWORK},
    {"javascript", WORKFLOW_COMPUTE, NULL, NO_CODE},
    {"email", WORKFLOW_COMPUTE, NULL, NO_MESSAGE},
    {"discord", WORKFLOW_COMPUTE, NULL, NO_MESSAGE},
    {"telegram", WORKFLOW_COMPUTE, NULL, NO_MESSAGE},
    {"d1-query", WORKFLOW_COMPUTE, NULL, NO_STORE},
    {"r2-storage", WORKFLOW_COMPUTE, NULL, NO_STORE},
};

const struct workflow_kind *workflow_kind_find(const char *type)
{
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        if (strcmp(kinds[i].type, type) == 0)
            return &kinds[i];
    }
    return NULL;
}
