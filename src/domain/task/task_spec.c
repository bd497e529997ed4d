/* What is wished for of a task, as JSON: read, and written so that it is read again. */
#include <string.h>

#include "base/number.h"
#include "domain/conversation/conversation.h"
#include "domain/task/task.h"
#include "json/json_measure.h"

#define URL_MAX    8192
#define NAME_MAX_  1024
#define FOLDER_MAX 4096

static const char *const cleanups[] = {
    [TASK_KEEP] = "keep", [TASK_SLEEP] = "sleep", [TASK_DESTROY] = "destroy"};

const char *task_cleanup_text(enum task_cleanup cleanup)
{
    return cleanups[cleanup];
}

void task_spec_done(struct task_spec *spec)
{
    json_decref(spec->document);
    for (size_t i = 0; i < ARRAY_COUNT(spec->texts); i++)
        free(spec->texts[i]);
    *spec = (struct task_spec) TASK_SPEC_INIT;
}

/* --- texts ------------------------------------------------------------------------------------- */

static const struct task_text {
    const char *name;
    size_t at, max;
} texts[] = {
#define TEXT(name_, member, max_)                                                                  \
    {                                                                                              \
        name_, offsetof(struct task_spec, member), max_                                            \
    }
    TEXT("text", text, TURN_INPUT_MAX),
    TEXT("agent", agent, CONVERSATION_NAME_MAX),
    TEXT("kind", kind, CONVERSATION_NAME_MAX),
    TEXT("command", command, CONVERSATION_PLACE_MAX),
    TEXT("backend", backend, CONVERSATION_NAME_MAX),
    TEXT("title", title, CONVERSATION_TITLE_MAX),
    TEXT("sandbox", sandbox, CONVERSATION_NAME_MAX),
    TEXT("sandboxName", sandbox_name, SANDBOX_NAME_MAX),
    TEXT("image", image, SANDBOX_WORD_MAX),
    TEXT("template", template, CONVERSATION_NAME_MAX),
    TEXT("folder", folder, FOLDER_MAX),
    TEXT("idempotencyKey", key, TASK_KEY_MAX),
#undef TEXT
};

static const char **task_text_at(struct task_spec *spec, const struct task_text *row)
{
    return (const char **) (void *) ((char *) spec + row->at);
}

static int task_read_texts(const struct json_place *object, struct task_spec *spec,
                           struct error *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        const char **text = task_text_at(spec, &texts[i]);

        if (json_field_text(object, texts[i].name, JSON_OPTIONAL, texts[i].max, text, err) < 0)
            return -1;
        if (*text && !**text)
            return json_refuse_field(object, texts[i].name, "a text that is not empty", err);
    }
    return 0;
}

/* A text as it is, or a value as JSON. */
static int task_read_either(const struct json_place *object, const char *key, char **ret_owned,
                            const char **ret_text, struct error *err)
{
    json_t *value = json_object_get(object->value, key);

    if (!value || json_is_null(value))
        return 0;
    if (json_is_string(value)) {
        *ret_text = json_string_value(value);
        return 0;
    }
    if (!json_is_object(value))
        return json_refuse_field(object, key, "a text or an object", err);
    *ret_text = *ret_owned = json_dumps(value, JSON_COMPACT);
    return 0;
}

/* --- values ------------------------------------------------------------------------------------ */

/* "provider/model", or {"providerID", "modelID"}. */
static int task_read_model(const struct json_place *object, struct task_spec *spec,
                           struct error *err)
{
    json_t *value = json_object_get(object->value, "model");
    const char *text = json_string_value(value), *slash = text ? strchr(text, '/') : NULL;
    struct json_place model;
    json_t *names;

    if (!value || json_is_null(value))
        return 0;
    if (text) {
        if (!slash || slash == text || !slash[1])
            return json_refuse_field(object, "model", "as 'provider/model'", err);
        names = json_pack("[s%s]", text, (size_t) (slash - text), slash + 1);
        json_object_set_new(spec->document, " model", names);
        spec->provider = json_string_value(json_array_get(names, 0));
        spec->model = json_string_value(json_array_get(names, 1));
        return 0;
    }
    if (json_field_object(object, "model", JSON_REQUIRED, &model, err) < 0 ||
        json_field_text(&model, "providerID", JSON_REQUIRED, CONVERSATION_NAME_MAX, &spec->provider,
                        err) < 0)
        return -1;
    return json_field_text(&model, "modelID", JSON_REQUIRED, CONVERSATION_NAME_MAX, &spec->model,
                           err);
}

static int task_read_git(const struct json_place *object, struct task_spec *spec, struct error *err)
{
    static const char *const known[] = {"url", "branch", "depth"};
    struct json_place git;

    if (json_field_object(object, "git", JSON_OPTIONAL, &git, err) < 0)
        return -1;
    if (!git.value)
        return 0;
    if (json_known_fields(&git, known, ARRAY_COUNT(known), err) < 0 ||
        json_field_text(&git, "url", JSON_REQUIRED, URL_MAX, &spec->git_url, err) < 0 ||
        json_field_text(&git, "branch", JSON_OPTIONAL, NAME_MAX_, &spec->git_branch, err) < 0)
        return -1;
    return json_field_integer(&git, "depth", JSON_OPTIONAL, 1, INT32_MAX, &spec->git_depth, err);
}

static int task_read_file(const struct json_place *file, struct error *err)
{
    static const char *const known[] = {"path", "content", "base64"};
    const char *path = NULL, *content = NULL, *base64 = NULL;

    if (json_known_fields(file, known, ARRAY_COUNT(known), err) < 0 ||
        json_field_text(file, "path", JSON_REQUIRED, FOLDER_MAX, &path, err) < 0 ||
        json_field_text(file, "content", JSON_OPTIONAL, TASK_SPEC_MAX, &content, err) < 0 ||
        json_field_text(file, "base64", JSON_OPTIONAL, TASK_SPEC_MAX, &base64, err) < 0)
        return -1;
    if (!*path)
        return json_refuse_field(file, "path", "a path", err);
    return !content == !base64
               ? json_refuse_field(file, "content", "there, or 'base64', and not both", err)
               : 0;
}

static int task_read_files(const struct json_place *object, struct task_spec *spec,
                           struct error *err)
{
    struct json_place files, file;

    if (json_field_array(object, "files", JSON_OPTIONAL, &files, err) < 0)
        return -1;
    if (!files.value)
        return 0;
    if (json_array_size(files.value) > TASK_FILES_MAX)
        return error_set(err, ERR_INVALID, 0, "field 'files' may have %d files at most",
                         TASK_FILES_MAX);
    for (size_t i = 0; i < json_array_size(files.value); i++)
        if (json_item_object(&files, i, &file, err) < 0 || task_read_file(&file, err) < 0)
            return -1;
    spec->files = files.value;
    return 0;
}

static int task_read_values(const struct json_place *object, struct task_spec *spec,
                            struct error *err)
{
    json_t *parts = json_object_get(object->value, "parts");
    const char *cleanup = NULL;
    struct json_place env, egress;

    if (json_field_object(object, "env", JSON_OPTIONAL, &env, err) < 0 ||
        json_field_object(object, "egress", JSON_OPTIONAL, &egress, err) < 0 ||
        json_field_duration(object, "timeout", JSON_OPTIONAL, TURN_TIMEOUT_MAX_MS,
                            &spec->timeout_ms, err) < 0 ||
        json_field_duration(object, "permissionTimeout", JSON_OPTIONAL, CONVERSATION_ASK_MS_MAX,
                            &spec->ask_ms, err) < 0 ||
        json_field_text(object, "cleanup", JSON_OPTIONAL, 16, &cleanup, err) < 0)
        return -1;
    spec->env = env.value;
    spec->egress = egress.value;
    if (parts && !json_is_array(parts))
        return json_refuse_field(object, "parts", "an array of objects", err);
    if (parts)
        spec->parts = spec->texts[0] = json_dumps(parts, JSON_COMPACT);
    for (unsigned int i = 0; cleanup && i < ARRAY_COUNT(cleanups); i++)
        if (strcmp(cleanups[i], cleanup) == 0) {
            spec->cleanup = (enum task_cleanup) i;
            cleanup = NULL;
        }
    return cleanup ? json_refuse_field(object, "cleanup", "keep, sleep or destroy", err) : 0;
}

/* --- all of it --------------------------------------------------------------------------------- */

#define KNOWN_MAX 64

static int task_check_fields(const struct json_place *object, const char *const *more,
                             struct error *err)
{
    static const char *const known[] = {
        "parts", "model",  "config",  "permission",        "git",    "files",
        "env",   "egress", "timeout", "permissionTimeout", "cleanup"};
    const char *names[KNOWN_MAX];
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
        names[count++] = texts[i].name;
    for (size_t i = 0; i < ARRAY_COUNT(known); i++)
        names[count++] = known[i];
    for (; more && *more && count < KNOWN_MAX; more++)
        names[count++] = *more;
    return json_known_fields(object, names, count, err);
}

static int task_check_backend(struct task_spec *spec, struct error *err)
{
    static const char *const names[] = {"local", "docker", "cloudflare", "burrow"};

    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if (!spec->backend || strcmp(spec->backend, names[i]) == 0)
            return 0;
    return error_set(err, ERR_INVALID, 0,
                     "field 'backend' must be local, docker, cloudflare or burrow");
}

int task_spec_read(const struct json_place *object, const char *const *more,
                   struct task_spec *ret_spec, struct error *err)
{
    AUTO(task_spec) struct task_spec spec = TASK_SPEC_INIT;
    struct json_place root;

    if (task_check_fields(object, more, err) < 0)
        return -1;
    spec.document = json_deep_copy(object->value);
    root = *object;
    root.value = spec.document;
    if (task_read_texts(&root, &spec, err) < 0 || task_read_model(&root, &spec, err) < 0 ||
        task_read_git(&root, &spec, err) < 0 || task_read_files(&root, &spec, err) < 0 ||
        task_read_values(&root, &spec, err) < 0 ||
        task_read_either(&root, "config", &spec.texts[1], &spec.config, err) < 0 ||
        task_read_either(&root, "permission", &spec.texts[2], &spec.permission, err) < 0 ||
        task_check_backend(&spec, err) < 0)
        return -1;
    *ret_spec = spec;
    spec = (struct task_spec) TASK_SPEC_INIT;
    return 0;
}

static void task_write_git(struct json_writer *json, const struct task_spec *spec)
{
    json_begin_object_at(json, "git");
    json_add_text(json, "url", spec->git_url);
    if (spec->git_branch)
        json_add_text(json, "branch", spec->git_branch);
    if (spec->git_depth)
        json_add_integer(json, "depth", spec->git_depth);
    json_end_object(json);
}

static void task_write_value(struct json_writer *json, const char *key, json_t *value)
{
    if (!value)
        return;
    json_key(json, key);
    json_put_value(json, value);
}

int task_spec_write(const struct task_spec *spec, struct text *out, struct error *err)
{
    struct json_writer json;

    json_document_begin(&json, out);
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        const char *text = *task_text_at((struct task_spec *) spec, &texts[i]);

        if (text)
            json_add_text(&json, texts[i].name, text);
    }
    if (spec->parts) {
        json_key(&json, "parts");
        json_put_raw(&json, spec->parts, strlen(spec->parts));
    }
    if (spec->provider) {
        json_begin_object_at(&json, "model");
        json_add_text(&json, "providerID", spec->provider);
        json_add_text(&json, "modelID", spec->model);
        json_end_object(&json);
    }
    if (spec->config)
        json_add_text(&json, "config", spec->config);
    if (spec->permission)
        json_add_text(&json, "permission", spec->permission);
    if (spec->git_url)
        task_write_git(&json, spec);
    task_write_value(&json, "files", spec->files);
    task_write_value(&json, "env", spec->env);
    task_write_value(&json, "egress", spec->egress);
    if (spec->timeout_ms)
        json_add_thousandths(&json, "timeout", spec->timeout_ms);
    if (spec->ask_ms)
        json_add_thousandths(&json, "permissionTimeout", spec->ask_ms);
    json_add_text(&json, "cleanup", cleanups[spec->cleanup]);
    if (json_document_end(&json) < 0 || out->overflowed)
        return error_set(err, ERR_INVALID, 0,
                         "a task must be UTF-8, and have at most %zu bytes as JSON", TASK_SPEC_MAX);
    return 0;
}
