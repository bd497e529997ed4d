#include "agent/variables.h"

#include <string.h>

#include "agent/agent.h"
#include "json/json_write.h"

#define BODY_MAX ((size_t) 256)

static int read_one(const char *name, json_t *value, bool null_removes,
                    struct environment_change *ret_change, struct api_error *error)
{
    *ret_change = (struct environment_change){.name = name};
    if (json_is_null(value) && !null_removes)
        return 0;
    if (!environment_is_name(name))
        return api_error_field(error, "env", "names must be letters, digits and '_'");
    if (json_is_null(value))
        return 0;
    if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
        return api_error_field(error, "env", "values must be strings");
    ret_change->text = json_string_value(value);
    return 0;
}

int variables_read(const struct json_place *root, bool null_removes, struct pool *pool,
                   struct variables *ret_variables, struct api_error *error)
{
    json_t *object = json_object_get(root->value, "env"), *value;
    struct environment_change *changes;
    const char *name;
    size_t count = 0;

    if (!object || json_is_null(object))
        return 0;
    if (!json_is_object(object))
        return api_error_field(error, "env", "must be an object of strings");
    if (json_object_size(object) > VARIABLES_MAX)
        return api_error_field(error, "env", "has too many variables");
    changes = pool_alloc(pool, (json_object_size(object) + 1) * sizeof(*changes));
    json_object_foreach (object, name, value) {
        if (read_one(name, value, null_removes, &changes[count], error) < 0)
            return -1;
        if (changes[count].text || null_removes)
            count++;
    }
    *ret_variables = (struct variables){.changes = changes, .count = count};
    return 0;
}

bool variables_fit(const char *const *environment)
{
    size_t count = 0, size = 0;

    for (; *environment; environment++) {
        count++;
        size += strlen(*environment) + 1;
    }
    return count <= VARIABLES_MAX && size <= VARIABLES_SIZE_MAX;
}

/* --- the request ---------------------------------------------------------------------------- */

static int change_environment(struct agent *agent, const struct variables *variables, bool replaces,
                              struct api_error *error)
{
    const char **changed =
        environment_merge(replaces ? agent->first_environment : agent->environment,
                          variables->changes, variables->count);

    if (!variables_fit(changed)) {
        environment_free(changed);
        return api_error_field(error, "env", "would be more than 4096 variables, or 1 MiB in all");
    }
    environment_free(agent->environment);
    agent->environment = changed;
    return 0;
}

int variables_change(struct agent *agent, const struct json_place *root, struct pool *pool,
                     struct api_error *error)
{
    struct variables variables = {.count = 0};
    struct error err = ERROR_INIT;
    bool replaces = false;

    if (json_field_boolean(root, "replace", JSON_OPTIONAL, &replaces, &err) < 0)
        return api_error_field(error, "replace", err.message);
    if (variables_read(root, true, pool, &variables, error) < 0)
        return -1;
    return change_environment(agent, &variables, replaces, error);
}

static int read_body(struct http_request *request, const char *body, size_t length,
                     struct api_error *error)
{
    static const struct json_limits limits = {
        .size = VARIABLES_BODY_MAX, .depth = 4, .values = JSON_VALUES_MAX};
    static const char *const fields[] = {"env", "replace"};
    struct error err = ERROR_INIT;
    AUTO(json) json_t *document = json_read(body, length, &limits, &err);
    struct json_place root;

    if (!document || json_root_object(document, &root, &err) < 0 ||
        json_known_fields(&root, fields, ARRAY_COUNT(fields), &err) < 0)
        return api_error_field(error, "body", err.message);
    return variables_change(request->context, &root, &request->pool, error);
}

static void body_arrived(struct http_request *request, const char *body, size_t length)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    AUTO(text) struct text reply = TEXT_INIT(BODY_MAX);
    struct json_writer json;

    error.operation = "environment.set";
    if (read_body(request, body, length, &error) < 0) {
        api_error_reply(request, &error);
        return;
    }
    json_document_begin(&json, &reply);
    json_add_boolean(&json, "success", true);
    (void) json_document_end(&json); /* it is short */
    agent_reply_json(request, &reply);
}

static void client_left(struct http_request *request)
{
    (void) request; /* nothing was begun */
}

void variables_handle(struct http_request *request)
{
    request->on_gone = client_left;
    http_request_collect(request, body_arrived);
}
