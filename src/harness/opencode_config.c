#include "harness/opencode_config.h"

#include <jansson.h>
#include <string.h>

#include "base/auto.h"
#include "json/json_read.h"
#include "json/json_write.h"

/* How OpenCode's providers expect a base URL to end. Others take it as OpenAI does. */
static const struct {
    const char *provider, *suffix;
} suffixes[] = {{"anthropic", "/v1"}, {"openai", "/v1"}, {"google", "/v1beta"}};

#define SUFFIX_DEFAULT "/v1"

static const struct {
    const char *word, *action;
} policies[] = {{"allow", "allow"}, {"ask", "ask"}, {"reject", "deny"}};

/* The object of a text; an empty one for NULL. Owned. */
static json_t *opencode_config_read(const char *text, const char *what, struct error *err)
{
    struct json_place root;
    AUTO(json) json_t *value = NULL;

    if (!text || !*text)
        return json_object();
    value = json_read(text, strlen(text), NULL, err);
    if (value && json_root_object(value, &root, err) == 0)
        return TAKE_PTR(value);
    (void) error_wrap(err, "%s", what);
    return NULL;
}

/* The member that is an object, made unless it is one. Borrowed. */
static json_t *opencode_config_object(json_t *object, const char *key)
{
    json_t *member = json_object_get(object, key);

    if (!json_is_object(member)) {
        member = json_object();
        (void) json_object_set_new(object, key, member);
    }
    return member;
}

static void opencode_config_add_route(json_t *config, const char *provider, const char *route)
{
    json_t *options = opencode_config_object(
        opencode_config_object(opencode_config_object(config, "provider"), provider), "options");
    const char *suffix = SUFFIX_DEFAULT;

    for (size_t i = 0; i < ARRAY_COUNT(suffixes); i++) {
        if (strcmp(suffixes[i].provider, provider) == 0)
            suffix = suffixes[i].suffix;
    }
    (void) json_object_set_new(options, "baseURL",
                               json_sprintf(HARNESS_BROKER_BASE "%s%s", route, suffix));
    (void) json_object_set_new(options, "apiKey", json_sprintf("burrow-%s", route));
}

/* Otherwise OpenCode offers hosted models of its own, which are not to be reached from here. */
static void opencode_config_enable(json_t *config)
{
    json_t *enabled = json_array();
    const char *name;
    json_t *provider;

    json_object_foreach (json_object_get(config, "provider"), name, provider) {
        (void) json_array_append_new(enabled, json_string(name));
    }
    (void) json_object_set_new(config, "enabled_providers", enabled);
}

static int opencode_config_models(json_t *config, const char *text, struct error *err)
{
    AUTO(json) json_t *models = opencode_config_read(text, "models", err);
    const char *provider;
    json_t *route;

    if (!models)
        return -1;
    json_object_foreach (models, provider, route) {
        if (json_is_true(route))
            opencode_config_add_route(config, provider, provider);
        else if (json_is_string(route))
            opencode_config_add_route(config, provider, json_string_value(route));
    }
    opencode_config_enable(config);
    return 0;
}

static int opencode_config_permission(json_t *config, const char *policy, struct error *err)
{
    json_t *map;

    for (size_t i = 0; i < ARRAY_COUNT(policies); i++) {
        if (strcmp(policies[i].word, policy) != 0)
            continue;
        (void) json_object_set_new(config, "permission",
                                   json_pack("{s:s}", "*", policies[i].action));
        return 0;
    }
    if (*policy != '{')
        return error_set(err, ERR_INVALID, 0,
                         "permission must be allow, ask, reject or an object of OpenCode's");
    map = opencode_config_read(policy, "permission", err);
    if (!map)
        return -1;
    (void) json_object_set_new(config, "permission", map);
    return 0;
}

int opencode_config_write(const struct harness_place *place, struct text *config, struct error *err)
{
    AUTO(json) json_t *merged = opencode_config_read(place->config, "the agent's config", err);
    AUTO(text) struct text out = TEXT_INIT(OPENCODE_CONFIG_MAX);
    struct json_writer json;

    if (!merged || (place->models && opencode_config_models(merged, place->models, err) < 0) ||
        (place->permission && opencode_config_permission(merged, place->permission, err) < 0))
        return -1;
    (void) json_object_set_new(merged, "autoupdate", json_false());
    (void) json_object_set_new(merged, "share", json_string("disabled"));
    json_writer_init_text(&json, &out);
    json_put_value(&json, merged);
    if (json_writer_finish(&json) < 0)
        return error_set(err, ERR_TOO_LARGE, 0, "the agent's config is larger than %zu kB",
                         OPENCODE_CONFIG_MAX / 1024);
    text_append_bytes(config, text_string(&out), out.length);
    return 0;
}
