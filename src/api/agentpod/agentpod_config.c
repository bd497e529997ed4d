#include "api/agentpod/agentpod_config.h"

#include <string.h>

#define INDENT         2
#define CREDENTIAL_MAX ((size_t) 16 * 1024)
#define OWN_FILES      2 /* AGENTS.md and opencode.json */
#define NAME_LETTERS   "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

static const char *const file_types[] = {"agent", "command", "tool", "plugin"};
static const char *const file_extensions[] = {"md", "ts", "js"};

static void add_file(struct agentpod_config *config, const char *path, const char *content)
{
    config->files[config->count++] = (struct agentpod_file){.path = path, .content = content};
}

static bool is_among(const char *const words[], size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], word) == 0)
            return true;
    }
    return false;
}

/* --- files ----------------------------------------------------------------------------------- */

static int agentpod_config_read_file(const struct json_place *place, struct pool *pool,
                                     struct agentpod_config *config, struct error *err)
{
    const char *type, *name, *extension, *content;

    if (json_field_text(place, "type", JSON_REQUIRED, 16, &type, err) < 0 ||
        json_field_text(place, "name", JSON_REQUIRED, AGENTPOD_NAME_MAX, &name, err) < 0 ||
        json_field_text(place, "extension", JSON_REQUIRED, 8, &extension, err) < 0 ||
        json_field_text(place, "content", JSON_REQUIRED, AGENTPOD_CONTENT_MAX, &content, err) < 0)
        return -1;
    if (!is_among(file_types, ARRAY_COUNT(file_types), type))
        return error_set(err, ERR_INVALID, 0,
                         "config.files[%zu].type must be agent, command, tool or plugin",
                         place->index);
    if (!name[0] || name[0] == '.' || name[strspn(name, NAME_LETTERS)])
        return error_set(
            err, ERR_INVALID, 0,
            "config.files[%zu].name must be letters, digits, '.', '_' and '-', and not "
            "begin with a dot",
            place->index);
    if (!is_among(file_extensions, ARRAY_COUNT(file_extensions), extension))
        return error_set(err, ERR_INVALID, 0, "config.files[%zu].extension must be md, ts or js",
                         place->index);
    add_file(config, pool_format(pool, ".opencode/%s/%s.%s", type, name, extension),
             pool_copy_text(pool, content));
    return 0;
}

static int read_files(const struct json_place *list, struct pool *pool,
                      struct agentpod_config *config, struct error *err)
{
    size_t count = list->value ? json_array_size(list->value) : 0;

    if (count > AGENTPOD_FILES_MAX)
        return error_set(err, ERR_INVALID, 0, "config.files are %zu; at most %zu are taken", count,
                         AGENTPOD_FILES_MAX);
    config->files = pool_alloc(pool, (count + OWN_FILES) * sizeof(*config->files));
    for (size_t i = 0; i < count; i++) {
        struct json_place place;

        if (json_item_object(list, i, &place, err) < 0 ||
            agentpod_config_read_file(&place, pool, config, err) < 0)
            return -1;
    }
    return 0;
}

/* --- credentials ----------------------------------------------------------------------------- */

static json_t *api_credential(const char *key)
{
    json_t *credential = json_object();

    (void) json_object_set_new(credential, "type", json_string("api"));
    (void) json_object_set_new(credential, "key", json_string(key));
    return credential;
}

static int read_login(const struct json_place *place, json_t **ret_credential, struct error *err)
{
    const char *refresh = "", *access = "";
    int64_t expires = 0;

    if (json_field_text(place, "refresh", JSON_OPTIONAL, CREDENTIAL_MAX, &refresh, err) < 0 ||
        json_field_text(place, "access", JSON_OPTIONAL, CREDENTIAL_MAX, &access, err) < 0 ||
        json_field_integer(place, "expires", JSON_OPTIONAL, 0, INT64_MAX, &expires, err) < 0)
        return -1;
    if (!refresh[0] && !access[0])
        return error_set(err, ERR_INVALID, 0, "config.auth: oauth needs refresh or access");
    *ret_credential = json_object();
    (void) json_object_set_new(*ret_credential, "type", json_string("oauth"));
    (void) json_object_set_new(*ret_credential, "refresh", json_string(refresh));
    (void) json_object_set_new(*ret_credential, "access", json_string(access));
    (void) json_object_set_new(*ret_credential, "expires", json_integer(expires));
    return 0;
}

static int read_credential(const struct json_place *place, json_t **ret_credential,
                           struct error *err)
{
    const char *type, *key = "";

    if (json_field_text(place, "type", JSON_REQUIRED, 16, &type, err) < 0)
        return -1;
    if (strcmp(type, "oauth") == 0)
        return read_login(place, ret_credential, err);
    if (strcmp(type, "api") != 0)
        return error_set(err, ERR_INVALID, 0, "config.auth: type must be api or oauth");
    if (json_field_text(place, "key", JSON_REQUIRED, CREDENTIAL_MAX, &key, err) < 0)
        return -1;
    if (!key[0])
        return error_set(err, ERR_INVALID, 0, "config.auth: api needs a key");
    *ret_credential = api_credential(key);
    return 0;
}

static int read_auth(const struct json_place *auth, json_t *credentials, struct error *err)
{
    const char *provider;
    json_t *value;

    if (auth->value && json_object_size(auth->value) > AGENTPOD_PROVIDERS_MAX)
        return error_set(err, ERR_INVALID, 0, "config.auth has more than %zu providers",
                         AGENTPOD_PROVIDERS_MAX);
    json_object_foreach (auth->value, provider, value) {
        struct json_place place;
        json_t *credential = NULL;

        if (json_field_object(auth, provider, JSON_OPTIONAL, &place, err) < 0)
            return -1;
        if (!place.value)
            continue;
        if (read_credential(&place, &credential, err) < 0)
            return -1;
        (void) json_object_set_new(credentials, provider, credential);
    }
    return 0;
}

/* Keys that stand in the configuration itself move to the credentials. */
static void take_keys(json_t *rest, json_t *credentials)
{
    json_t *providers = json_object_get(rest, "provider"), *value;
    const char *provider;

    json_object_foreach (providers, provider, value) {
        json_t *options = json_object_get(value, "options");
        const char *key = json_string_value(json_object_get(options, "apiKey"));

        if (key && key[0] && !json_object_get(credentials, provider))
            (void) json_object_set_new(credentials, provider, api_credential(key));
        (void) json_object_del(options, "apiKey");
    }
}

/* --- all of it ------------------------------------------------------------------------------- */

static const char *agentpod_config_print(json_t *value, size_t flags, struct pool *pool)
{
    char *text = json_dumps(value, flags);
    const char *copy = pool_copy_text(pool, text ? text : "{}");

    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
    return copy;
}

static int read_all(const struct json_place *place, json_t *rest, json_t *credentials,
                    struct pool *pool, struct agentpod_config *config, struct error *err)
{
    struct json_place files, auth;
    const char *instructions = NULL;

    if (json_field_array(place, "files", JSON_OPTIONAL, &files, err) < 0 ||
        json_field_object(place, "auth", JSON_OPTIONAL, &auth, err) < 0 ||
        json_field_text(place, "agents_md", JSON_OPTIONAL, AGENTPOD_CONTENT_MAX, &instructions,
                        err) < 0 ||
        read_files(&files, pool, config, err) < 0 || read_auth(&auth, credentials, err) < 0)
        return -1;
    take_keys(rest, credentials);
    if (instructions)
        add_file(config, "AGENTS.md", pool_copy_text(pool, instructions));
    if (json_object_size(rest)) {
        config->opencode = agentpod_config_print(rest, JSON_INDENT(INDENT), pool);
        add_file(config, ".opencode/opencode.json", config->opencode);
    }
    if (json_object_size(credentials))
        config->credentials = agentpod_config_print(credentials, JSON_INDENT(INDENT), pool);
    return 0;
}

int agentpod_config_read(const struct json_place *body, struct pool *pool,
                         struct agentpod_config *ret_config, struct error *err)
{
    static const char *const own_keys[] = {"files", "agents_md", "auth"};
    AUTO(json) json_t *rest = NULL;
    AUTO(json) json_t *credentials = json_object();
    struct json_place place;

    *ret_config = (struct agentpod_config){.count = 0};
    if (json_field_object(body, "config", JSON_OPTIONAL, &place, err) < 0)
        return -1;
    if (!place.value)
        return 0;
    rest = json_deep_copy(place.value);
    for (size_t i = 0; i < ARRAY_COUNT(own_keys); i++)
        (void) json_object_del(rest, own_keys[i]);
    return read_all(&place, rest, credentials, pool, ret_config, err);
}
