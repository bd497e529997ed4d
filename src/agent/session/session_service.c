#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/call.h"
#include "agent/process/process_set.h"
#include "agent/session/session.h"
#include "agent/session/session_set.h"
#include "agent/terminal/terminal.h"
#include "agent/variables.h"
#include "base/id.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define BODY_MAX    ((size_t) 512 * 1024) /* a thousand ids */
#define PATH_LIMIT  ((size_t) PATH_MAX - 1)
#define TIMEOUT_MAX (INT64_C(365) * 24 * 3600 * 1000)
#define ID_PREFIX   "session-"

/* --- create ---------------------------------------------------------------------------------- */

struct session_service_creation {
    struct call *call;
    const char *id;
    struct session_query query;
};

static void shell_known(struct session_query *query, const struct session_context *context,
                        struct api_error *failure)
{
    struct session_service_creation *creation =
        CONTAINER_OF(query, struct session_service_creation, query);
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct json_writer json;

    (void) context;
    if (failure) {
        failure->operation = NULL;
        call_fail(creation->call, failure);
        return;
    }
    call_begin_success(&json, &body);
    json_begin_object_at(&json, "data");
    json_add_text(&json, "id", creation->id);
    json_end_object(&json);
    json_add_null(&json, "containerPlacementId");
    call_finish_success(creation->call, &json, &body);
}

static json_t *create_result(json_t *reply)
{
    json_t *result = json_object();

    (void) json_object_set(result, "success", json_object_get(reply, "success"));
    (void) json_object_set(result, "id", json_object_get(json_object_get(reply, "data"), "id"));
    (void) json_object_set_new(result, "message", json_string("Session created"));
    (void) json_object_set(result, "timestamp", json_object_get(reply, "timestamp"));
    (void) json_object_set(result, "containerPlacementId",
                           json_object_get(reply, "containerPlacementId"));
    return result;
}

static void creator_left(struct call *call)
{
    struct session_service_creation *creation = call->data;

    session_forget(&creation->query);
}

/* A new id for who does not care. */
static const char *make_id(struct call *call)
{
    struct id id = id_new();

    return pool_format(call->pool, ID_PREFIX "%s", id.text);
}

static int read_settings(const struct json_place *root, struct session_settings *settings,
                         struct api_error *error)
{
    struct error err = ERROR_INIT;
    int64_t timeout_ms = 0;

    if (json_field_text(root, "cwd", JSON_OPTIONAL, PATH_LIMIT, &settings->directory, &err) < 0)
        return api_error_field(error, "cwd", err.message);
    if (json_field_integer(root, "commandTimeoutMs", JSON_OPTIONAL, 0, TIMEOUT_MAX, &timeout_ms,
                           &err) < 0)
        return api_error_field(error, "commandTimeoutMs", err.message);
    if (settings->directory && !settings->directory[0])
        settings->directory = NULL;
    settings->timeout_ms = (uint64_t) timeout_ms;
    return 0;
}

static int read_id(const struct json_place *root, const char **id, struct api_error *error)
{
    struct error err = ERROR_INIT;

    if (json_field_text(root, "id", JSON_OPTIONAL, CALL_SESSION_MAX, id, &err) < 0)
        return api_error_field(error, "id", err.message);
    if (*id && (!call_session_is_valid(*id) || strcmp(*id, CALL_NO_SESSION) == 0))
        return api_error_field(error, "id",
                               "a session's id is 1 to 256 characters, not only spaces, and "
                               "not " CALL_NO_SESSION);
    return 0;
}

static int make_session(struct call *call, const char **ret_id, struct api_error *error)
{
    struct session_settings settings = {.directory = NULL};
    struct variables variables = {.count = 0};
    struct error err = ERROR_INIT;
    struct json_place root;
    const char *id = NULL;

    if (json_root_object(call->arguments, &root, &err) < 0)
        return api_error_field(error, "body", err.message);
    if (read_id(&root, &id, error) < 0 || read_settings(&root, &settings, error) < 0 ||
        variables_read(&root, false, call->pool, &variables, error) < 0)
        return -1;
    settings.changes = variables.changes;
    settings.change_count = variables.count;
    *ret_id = id ? id : make_id(call);
    return session_create(call->agent, *ret_id, &settings, error);
}

static void session_service_create(struct call *call)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    struct session_service_creation *creation = pool_alloc(call->pool, sizeof(*creation));

    if (make_session(call, &creation->id, &error) < 0) {
        call_fail(call, &error);
        return;
    }
    creation->call = call;
    creation->query.on_context = shell_known;
    call->data = creation;
    call->on_gone = creator_left;
    session_ask(call->agent, creation->id, &creation->query);
}

/* --- list ------------------------------------------------------------------------------------ */

static void session_service_list(struct call *call)
{
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct json_writer json;

    call_begin_success(&json, &body);
    json_begin_array_at(&json, "data");
    for (const char *id = session_next(call->agent, NULL); id; id = session_next(call->agent, id))
        json_put_text(&json, id);
    json_end_array(&json);
    call_finish_success(call, &json, &body);
}

static json_t *list_result(json_t *reply)
{
    json_t *result = json_object();

    (void) json_object_set(result, "sessions", json_object_get(reply, "data"));
    return result;
}

/* --- delete ---------------------------------------------------------------------------------- */

struct session_service_deletion {
    struct call *call;
    const char *id;
    struct session_farewell farewell;
};

static void session_is_gone(struct session_farewell *farewell)
{
    struct session_service_deletion *deletion =
        CONTAINER_OF(farewell, struct session_service_deletion, farewell);
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct json_writer json;

    call_begin_success(&json, &body);
    json_add_text(&json, "sessionId", deletion->id);
    call_finish_success(deletion->call, &json, &body);
}

static void deleter_left(struct call *call)
{
    struct session_service_deletion *deletion = call->data;

    session_farewell_forget(&deletion->farewell);
}

static void delete (struct call *call)
{
    struct session_service_deletion *deletion = pool_alloc(call->pool, sizeof(*deletion));
    struct error err = ERROR_INIT;
    struct json_place root;

    if (json_root_object(call->arguments, &root, &err) < 0 ||
        json_field_text(&root, "sessionId", JSON_REQUIRED, CALL_SESSION_MAX, &deletion->id, &err) <
            0) {
        call_fail_field(call, "sessionId", err.message);
        return;
    }
    deletion->call = call;
    deletion->farewell.on_gone = session_is_gone;
    call->data = deletion;
    call->on_gone = deleter_left;
    process_session_deleted(call->agent, deletion->id);
    terminal_session_deleted(call->agent, deletion->id);
    if (!session_delete(call->agent, deletion->id, &deletion->farewell))
        call_fail_text(call, API_INTERNAL_ERROR, "Session '%s' not found", deletion->id);
}

/* --- for the next agent ---------------------------------------------------------------------- */

/* Variables that a shell makes for itself. */
static bool is_of_the_shell(const char *item)
{
    static const char *const names[] = {"PWD=", "OLDPWD=", "SHLVL=", "_="};

    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (strncmp(item, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

static const char *name_of(struct pool *pool, const char *item)
{
    return pool_copy_bytes(pool, item, strcspn(item, "="));
}

/* What differs from the environment that every command gets. */
static json_t *differences(struct agent *agent, const char *const *environment)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    json_t *changes = json_object();

    for (const char *const *item = environment; *item; item++) {
        const char *name = name_of(&pool, *item), *text = strchr(*item, '=') + 1;
        const char *usual = environment_get(agent->environment, name);

        /* A value that is no UTF-8 cannot be told in JSON, and is left out. */
        if (!is_of_the_shell(*item) && !(usual && strcmp(usual, text) == 0))
            (void) json_object_set_new(changes, name, json_string(text));
    }
    for (const char *const *item = agent->environment; *item; item++) {
        const char *name = name_of(&pool, *item);

        if (!is_of_the_shell(*item) && !environment_get(environment, name))
            (void) json_object_set_new(changes, name, json_null());
    }
    return changes;
}

static json_t *settings_changes(const struct session_settings *settings)
{
    json_t *changes = json_object();

    for (size_t i = 0; i < settings->change_count; i++)
        (void) json_object_set_new(
            changes, settings->changes[i].name,
            settings->changes[i].text ? json_string(settings->changes[i].text) : json_null());
    return changes;
}

struct export_item {
    struct session_query query;
    struct export *export;
    const char *id;
    bool asked; /* and not answered yet */
};

struct export
{
    struct call *call;
    json_t *sessions; /* owned */
    struct export_item *items;
    size_t count;
    size_t pending;
};

static void add_session(struct export *export, const char *id, const char *directory, json_t *env,
                        bool busy)
{
    const struct session_settings *settings = session_settings(export->call->agent, id);
    json_t *session = json_object();

    (void) json_object_set_new(session, "id", json_string(id));
    (void) json_object_set_new(session, "cwd", json_string(directory));
    (void) json_object_set_new(session, "env", env);
    if (settings && settings->timeout_ms)
        (void) json_object_set_new(session, "commandTimeoutMs",
                                   json_integer((json_int_t) settings->timeout_ms));
    if (busy)
        (void) json_object_set_new(session, "busy", json_true());
    (void) json_array_append_new(export->sessions, session);
}

/* A session whose shell cannot be asked: where it is, and what it began with. */
static void add_unasked(struct export *export, const char *id, bool busy)
{
    struct agent *agent = export->call->agent;
    const struct session_settings *settings = session_settings(agent, id);
    char directory[PATH_MAX];

    if (!settings)
        return; /* it was deleted meanwhile */
    session_directory(agent, id, directory);
    add_session(export, id, directory, settings_changes(settings), busy);
}

static void finish_export(struct export *export)
{
    AUTO(text) struct text body = TEXT_INIT(CALL_REPLY_MAX);
    struct json_writer json;

    call_begin_success(&json, &body);
    json_key(&json, "sessions");
    json_put_value(&json, export->sessions);
    json_decref(TAKE_PTR(export->sessions));
    call_finish_success(export->call, &json, &body);
}

static void item_known(struct session_query *query, const struct session_context *context,
                       struct api_error *failure)
{
    struct export_item *item = CONTAINER_OF(query, struct export_item, query);
    struct export *export = item->export;

    item->asked = false;
    if (failure)
        add_unasked(export, item->id, false);
    else
        add_session(export, item->id, context->directory,
                    differences(export->call->agent, context->environment), false);
    if (!--export->pending)
        finish_export(export);
}

static void exporter_left(struct call *call)
{
    struct export *export = call->data;

    for (size_t i = 0; i < export->count; i++) {
        if (export->items[i].asked)
            session_forget(&export->items[i].query);
    }
    json_decref(export->sessions);
}

static void ask_or_add(struct export *export, const char *id)
{
    struct agent *agent = export->call->agent;
    enum session_state state = session_state(agent, id);
    struct export_item *item = &export->items[export->count++];

    item->export = export;
    item->id = pool_copy_text(export->call->pool, id);
    if (state != SESSION_FREE) {
        add_unasked(export, id, state == SESSION_BUSY);
        return;
    }
    item->asked = true;
    item->query.on_context = item_known;
    export->pending++;
    session_ask(agent, id, &item->query);
}

static void export_sessions(struct call *call)
{
    struct export *export = pool_alloc(call->pool, sizeof(*export));

    export->call = call;
    export->sessions = json_array();
    export->items = pool_alloc(call->pool, SESSIONS_MAX * sizeof(*export->items));
    call->data = export;
    call->on_gone = exporter_left;
    for (const char *id = session_next(call->agent, NULL); id; id = session_next(call->agent, id))
        ask_or_add(export, id);
    if (!export->pending)
        finish_export(export);
}

/* Exported functions of bash have names of their own. */
static bool is_importable(const char *name)
{
    static const char begin[] = "BASH_FUNC_", end[] = "%%";
    size_t length = strlen(name);

    if (environment_is_name(name))
        return true;
    return length > sizeof(begin) + sizeof(end) - 2 && !strchr(name, '=') &&
           strncmp(name, begin, sizeof(begin) - 1) == 0 && strcmp(name + length - 2, end) == 0;
}

static int read_changes(const struct json_place *place, struct pool *pool,
                        struct session_settings *settings, struct api_error *error)
{
    json_t *object = json_object_get(place->value, "env"), *value;
    struct environment_change *changes;
    const char *name;

    if (!object)
        return 0;
    if (!json_is_object(object) || json_object_size(object) > VARIABLES_MAX)
        return api_error_field(error, "env", "must be an object of up to 4096 strings");
    changes = pool_alloc(pool, (json_object_size(object) + 1) * sizeof(*changes));
    json_object_foreach (object, name, value) {
        if (!is_importable(name) || !(json_is_string(value) || json_is_null(value)))
            return api_error_field(error, "env", "must be names with strings, or null");
        changes[settings->change_count++] =
            (struct environment_change){.name = name, .text = json_string_value(value)};
    }
    settings->changes = changes;
    return 0;
}

/* Returns 1 when it was made, 0 when there is one of that name already. */
static int import_one(struct call *call, const struct json_place *place, struct api_error *error)
{
    struct session_settings settings = {.directory = NULL};
    const char *id = NULL;

    if (read_id(place, &id, error) < 0 || read_settings(place, &settings, error) < 0 ||
        read_changes(place, call->pool, &settings, error) < 0)
        return -1;
    if (!id)
        return api_error_field(error, "id", "is required");
    if (session_settings(call->agent, id))
        return 0;
    return session_create(call->agent, id, &settings, error) < 0 ? -1 : 1;
}

static void import_sessions(struct call *call)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct json_place root, sessions, place;
    struct error err = ERROR_INIT;
    struct json_writer json;
    int64_t imported = 0;

    if (json_root_object(call->arguments, &root, &err) < 0 ||
        json_field_array(&root, "sessions", JSON_REQUIRED, &sessions, &err) < 0) {
        call_fail_field(call, "sessions", err.message);
        return;
    }
    if (json_object_get(root.value, "env") &&
        variables_change(call->agent, &root, call->pool, &error) < 0) {
        call_fail(call, &error);
        return;
    }
    for (size_t i = 0; i < json_array_size(sessions.value); i++) {
        int made = json_item_object(&sessions, i, &place, &err) < 0
                       ? api_error_field(&error, "sessions", err.message)
                       : import_one(call, &place, &error);

        if (made < 0) {
            call_fail(call, &error);
            return;
        }
        imported += made;
    }
    call_begin_success(&json, &body);
    json_add_integer(&json, "imported", imported);
    call_finish_success(call, &json, &body);
}

/* --- the table ------------------------------------------------------------------------------- */

static const struct operation rows[] = {
    {.method = "POST",
     .path = "/api/session/create",
     .rpc = "utils.createSession",
     .parameters = {OPERATION_FIELDS},
     .run = session_service_create,
     .rpc_result = create_result,
     .name = "session.create",
     .summary = "Make a session",
     .body_limit = VARIABLES_BODY_MAX,
     .starts_work = true},
    {.method = "GET",
     .path = "/api/session/list",
     .rpc = "utils.listSessions",
     .run = session_service_list,
     .rpc_result = list_result,
     .name = "session.list",
     .summary = "The ids of all sessions"},
    {.method = "POST",
     .path = "/api/session/delete",
     .rpc = "utils.deleteSession",
     .parameters = {"sessionId"},
     .run = delete,
     .name = "session.delete",
     .summary = "End a session and everything that runs in it"},
    {.method = "GET",
     .path = "/burrow/sessions",
     .run = export_sessions,
     .name = "session.export",
     .summary = "Directory and variables of all sessions"},
    {.method = "PUT",
     .path = "/burrow/sessions",
     .run = import_sessions,
     .name = "session.import",
     .summary = "Make sessions that another agent had",
     .body_limit = CALL_REPLY_MAX},
};

const struct operation_table session_operations = {rows, ARRAY_COUNT(rows)};
