#include "agent/code/code_service.h"

#include <limits.h>
#include <string.h>

#include "agent/call.h"
#include "agent/code/code_context.h"
#include "agent/environment.h"
#include "agent/output_text.h"
#include "agent/variables.h"
#include "base/memory.h"
#include "base/number.h"
#include "json/json_read.h"
#include "json/json_write.h"

/* The list of all contexts, should every byte of their directories need six. */
#define BODY_MAX ((size_t) 4 * 1024 * 1024)
/* Code, should every byte need six, and the rest of a request. */
#define REQUEST_MAX    (CODE_SIZE_MAX * 6 + 64 * 1024)
#define TIMEOUT_MAX_MS ((int64_t) 24 * 3600 * 1000)
#define ID_MAX         ((size_t) 256)
#define LANGUAGE_MAX   ((size_t) 64)

/* --- what is asked --------------------------------------------------------------------------- */

static int read_language(const struct json_place *root, const struct code_language **ret_language,
                         struct api_error *error)
{
    struct error err = ERROR_INIT;
    const char *name = NULL;

    if (json_field_text(root, "language", JSON_OPTIONAL, LANGUAGE_MAX, &name, &err) < 0)
        return api_error_field(error, "language", err.message);
    *ret_language = code_language_find(name);
    if (!*ret_language)
        return api_error_field(error, "language",
                               "must be python, javascript or typescript (or python3, js, node, "
                               "ts)");
    return 0;
}

/* {"NAME": "text"}; what is null is passed over, as everywhere in this API. */
static int read_variables(json_t *object, struct pool *pool, struct variables *ret_variables,
                          struct api_error *error)
{
    struct environment_change *changes;
    const char *name;
    json_t *value;

    if (!object || json_is_null(object))
        return 0;
    if (!json_is_object(object) || json_object_size(object) > VARIABLES_MAX)
        return api_error_field(error, "env_vars", "must be an object with at most 4096 strings");
    changes = pool_alloc(pool, (json_object_size(object) + 1) * sizeof(*changes));
    json_object_foreach (object, name, value) {
        if (json_is_null(value))
            continue;
        if (!json_is_string(value) || !environment_is_name(name) ||
            strlen(json_string_value(value)) != json_string_length(value))
            return api_error_field(error, "env_vars",
                                   "must have names like [A-Za-z_][A-Za-z0-9_]* and strings");
        changes[ret_variables->count++] =
            (struct environment_change){.name = name, .text = json_string_value(value)};
    }
    ret_variables->changes = changes;
    return 0;
}

static int read_place(struct call *call, const struct json_place *root,
                      struct code_place *ret_place, struct api_error *error)
{
    struct variables variables = {.count = 0};
    struct error err = ERROR_INIT;
    const char *directory = NULL;
    json_t *object = json_object_get(call->arguments, "env_vars");

    if (!object)
        object = json_object_get(call->arguments, "envVars");
    if (json_field_text(root, "cwd", JSON_OPTIONAL, PATH_MAX - 1, &directory, &err) < 0)
        return api_error_field(error, "cwd", err.message);
    if (read_variables(object, call->pool, &variables, error) < 0)
        return -1;
    /* Cloudflare's client names the usual directory even when its user named none. */
    ret_place->any_directory = !directory || !*directory || strcmp(directory, AGENT_DIRECTORY) == 0;
    ret_place->directory = ret_place->any_directory ? AGENT_DIRECTORY : directory;
    ret_place->environment = environment_merge((const char *const *) call->agent->environment,
                                               variables.changes, variables.count);
    if (variables_fit(ret_place->environment))
        return 0;
    environment_free((const char **) (uintptr_t) ret_place->environment);
    return api_error_field(error, "env_vars", "the environment becomes too large");
}

/* --- contexts -------------------------------------------------------------------------------- */

static void add_times(const struct code_context *context, struct json_writer *json)
{
    char time[CLOCK_TEXT_SIZE];

    clock_format(context->created_ms, time);
    json_add_text(json, "createdAt", time);
    clock_format(context->used_ms, time);
    json_add_text(json, "lastUsed", time);
}

static void reply_context(struct call *call, const struct code_context *context)
{
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct json_writer json;

    call_begin_success(&json, &body);
    json_add_text(&json, "contextId", context->id);
    json_add_text(&json, "language", context->language->name);
    json_add_text(&json, "cwd", context->place.directory);
    add_times(context, &json);
    call_finish_success(call, &json, &body);
}

static void context_made(struct code_context *context, void *owner, enum api_code code,
                         const char *failure)
{
    struct call *call = owner;

    if (failure)
        call_fail_text(call, code, "%s", failure);
    else
        reply_context(call, context);
}

/* Who made it will never know its id. */
static void creator_left(struct call *call)
{
    struct code_context *context = call->data;

    context->on_made = NULL;
    code_context_delete(context);
}

static void create(struct call *call)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    const struct code_language *language = NULL;
    struct code_context *context = NULL;
    struct code_place place = {.environment = NULL};
    struct error err = ERROR_INIT;
    struct json_place root;

    (void) json_root_object(call->arguments, &root, &err); /* it is one */
    if (read_language(&root, &language, &error) == 0 &&
        read_place(call, &root, &place, &error) == 0) {
        context = code_context_new(code_set_of(call->agent), language, &place, &error);
        environment_free((const char **) (uintptr_t) place.environment);
    }
    if (!context) {
        call_fail(call, &error);
        return;
    }
    context->on_made = context_made;
    context->owner = call;
    call->data = context;
    call->on_gone = creator_left;
}

static json_t *raw_date(json_t *text)
{
    int64_t ms = 0;

    if (clock_parse(json_string_value(text), &ms) < 0)
        return json_null();
    return json_pack("{s:[s,I]}", OPERATION_RAW, "date", (json_int_t) ms);
}

static json_t *rpc_context(json_t *context, const char *id_key)
{
    return json_pack("{s:O,s:O,s:O,s:o,s:o}", "id", json_object_get(context, id_key), "language",
                     json_object_get(context, "language"), "cwd", json_object_get(context, "cwd"),
                     "createdAt", raw_date(json_object_get(context, "createdAt")), "lastUsed",
                     raw_date(json_object_get(context, "lastUsed")));
}

static json_t *create_result(json_t *reply)
{
    return rpc_context(reply, "contextId");
}

static void list_contexts(struct call *call)
{
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct code_set *set = code_set_of(call->agent);
    struct json_writer json;

    call_begin_success(&json, &body);
    json_begin_array_at(&json, "contexts");
    LIST_EACH (&set->contexts, at) {
        const struct code_context *context = CONTAINER_OF(at, struct code_context, link);

        json_begin_object(&json);
        json_add_text(&json, "id", context->id);
        json_add_text(&json, "language", context->language->name);
        json_add_text(&json, "cwd", context->place.directory);
        add_times(context, &json);
        json_end_object(&json);
    }
    json_end_array(&json);
    call_finish_success(call, &json, &body);
}

static json_t *list_result(json_t *reply)
{
    json_t *list = json_array(), *context;
    size_t index;

    json_array_foreach (json_object_get(reply, "contexts"), index, context)
        (void) json_array_append_new(list, rpc_context(context, "id"));
    return list;
}

static void fill_not_found(struct api_error *error, const char *id)
{
    struct json_writer json;

    api_error_fill(error, API_CONTEXT_NOT_FOUND, "Context %s not found", id);
    json_document_begin(&json, &error->context);
    json_add_text(&json, "contextId", id);
    (void) json_document_end(&json); /* an id is short */
}

static void delete_context(struct call *call)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct error err = ERROR_INIT;
    struct code_context *context;
    struct json_place root;
    struct json_writer json;
    const char *id;

    (void) json_root_object(call->arguments, &root, &err); /* it is one */
    if (json_field_text(&root, "contextId", JSON_REQUIRED, ID_MAX, &id, &err) < 0) {
        call_fail_field(call, "contextId", err.message);
        return;
    }
    context = code_context_find(code_set_of(call->agent), id);
    if (!context) {
        fill_not_found(&error, id);
        call_fail(call, &error);
        return;
    }
    call_begin_success(&json, &body);
    json_add_text(&json, "contextId", id);
    code_context_delete(context);
    call_finish_success(call, &json, &body);
}

static json_t *no_result(json_t *reply)
{
    (void) reply;
    return json_pack("{s:[s]}", OPERATION_RAW, "undefined");
}

static void health(struct call *call)
{
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct json_writer json;

    call_begin_success(&json, &body);
    json_add_text(&json, "status", "healthy");
    call_finish_success(call, &json, &body);
}

/* --- runs ------------------------------------------------------------------------------------ */

/* One run and its listener. Lives until the run is gone, which may be after the call. */
struct execution {
    struct code_run run;
    struct output_text encoder[EXEC_OUTPUTS];
    bool has_error; /* was told */
};

static struct call *call_of(const struct execution *execution)
{
    return execution->run.owner;
}

/* Before the run this interpreter answers in a shape of its own. */
static void fail_plainly(struct call *call, struct api_error *error)
{
    error->plain = true;
    call_fail(call, error);
}

static void send_event(struct execution *execution, const char *type, const struct text *event)
{
    struct call *call = call_of(execution);

    call_event(call, type, text_string(event), event->length);
    if (call_is_full(call))
        code_run_pause(&execution->run);
}

static void run_started(struct code_run *run)
{
    call_begin_events(run->owner);
}

/* A client that takes nothing while the code is being interrupted loses some of it. */
static bool is_lost(const struct execution *execution)
{
    return execution->run.interrupted && call_is_full(call_of(execution));
}

static void send_output(struct execution *execution, enum exec_output which, const char *bytes,
                        size_t length, bool last)
{
    static const char *const types[EXEC_OUTPUTS] = {"stdout", "stderr"};
    struct call *call = call_of(execution);
    struct text *event = &call->agent->scratch;
    size_t before;

    if (is_lost(execution))
        return;
    text_clear(event);
    text_format(event, "{\"type\":\"%s\",\"text\":\"", types[which]);
    before = event->length;
    output_text_feed(&execution->encoder[which], event, bytes, length);
    if (last)
        output_text_flush(&execution->encoder[which], event);
    if (event->length == before)
        return; /* nothing but the beginning of a character */
    text_format(event, "\",\"timestamp\":%lld}", (long long) clock_wall_ms(call->agent->clock));
    send_event(execution, types[which], event);
}

static void run_wrote(struct code_run *run, enum exec_output which, const char *bytes,
                      size_t length)
{
    send_output(CONTAINER_OF(run, struct execution, run), which, bytes, length, false);
}

static void run_said(struct code_run *run, const struct code_frame *frame)
{
    AUTO(text) struct text event = TEXT_INIT(CODE_EVENT_MAX);
    struct execution *execution = CONTAINER_OF(run, struct execution, run);
    bool is_error = frame->type == CODE_FRAME_ERROR;
    const char *ename = is_error && run->interrupted ? "TimeoutError" : NULL;

    if (is_error ? execution->has_error : is_lost(execution))
        return;
    execution->has_error = execution->has_error || is_error;
    if (code_frame_write_event(frame, ename, ename ? run->reason : NULL, &event) == 0)
        send_event(execution, is_error ? "error" : "result", &event);
}

static void send_end(struct execution *execution, const char *ename, const char *evalue)
{
    AUTO(text) struct text event = TEXT_INIT(BODY_MAX);

    for (size_t i = 0; i < EXEC_OUTPUTS; i++)
        send_output(execution, (enum exec_output) i, "", 0, true);
    if (ename && !execution->has_error) {
        (void) code_frame_write_error(ename, evalue, &event); /* the texts are short */
        send_event(execution, "error", &event);
    } else if (!execution->has_error) {
        text_append(&event, "{\"type\":\"execution_complete\",\"execution_count\":1}");
        send_event(execution, "execution_complete", &event);
    }
}

static void run_ended(struct code_run *run, const char *ename, const char *evalue)
{
    struct execution *execution = CONTAINER_OF(run, struct execution, run);
    struct call *call = run->owner;

    if (call) {
        send_end(execution, ename, evalue);
        call_end(call);
    }
    free(execution);
}

static void run_refused(struct code_run *run, enum api_code code, const char *message)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    struct call *call = run->owner;

    free(CONTAINER_OF(run, struct execution, run));
    api_error_fill(&error, code, "%s", message);
    fail_plainly(call, &error);
}

static const struct code_run_events run_events = {
    .on_start = run_started,
    .on_output = run_wrote,
    .on_frame = run_said,
    .on_end = run_ended,
    .on_refused = run_refused,
};

static void client_left(struct call *call)
{
    struct execution *execution = call->data;

    if (code_run_leave(&execution->run))
        free(execution);
}

static void client_took(struct call *call)
{
    struct execution *execution = call->data;

    code_run_resume(&execution->run);
}

/* A number, or a string from a query; what is no time counts as none. */
static int read_timeout(const struct json_place *root, uint64_t *ret_ms, struct api_error *error)
{
    json_t *value = json_object_get(root->value, "timeout_ms");
    int64_t ms = 0;

    if (!value || json_is_null(value))
        return 0;
    if (json_is_integer(value))
        ms = json_integer_value(value);
    else if (json_is_real(value))
        ms = json_real_value(value) >= 1 && json_real_value(value) <= (double) TIMEOUT_MAX_MS
                 ? (int64_t) json_real_value(value)
                 : -1;
    else if (!json_is_string(value) ||
             number_parse(json_string_value(value), 1, TIMEOUT_MAX_MS, &ms) < 0)
        ms = -1;
    if (ms < 1 || ms > TIMEOUT_MAX_MS)
        return api_error_field(error, "timeout_ms", "must be from 1 to 86400000");
    *ret_ms = (uint64_t) ms;
    return 0;
}

struct code_request {
    const char *context; /* NULL: the default one */
    const char *code;
    const struct code_language *language;
    bool names_language;
    uint64_t timeout_ms;
};

static int read_request(struct call *call, struct code_request *ret_request,
                        struct api_error *error)
{
    struct error err = ERROR_INIT;
    struct json_place root;

    (void) json_root_object(call->arguments, &root, &err); /* it is one */
    if (json_field_text(&root, "context_id", JSON_OPTIONAL, ID_MAX, &ret_request->context, &err) <
        0)
        return api_error_field(error, "context_id", err.message);
    if (json_field_text(&root, "code", JSON_REQUIRED, CODE_SIZE_MAX, &ret_request->code, &err) < 0)
        return api_error_field(error, "code", err.message);
    ret_request->names_language = json_is_string(json_object_get(call->arguments, "language"));
    if (read_language(&root, &ret_request->language, error) < 0)
        return -1;
    return read_timeout(&root, &ret_request->timeout_ms, error);
}

static struct code_context *find_context(struct call *call, const struct code_request *request,
                                         struct api_error *error)
{
    struct code_set *set = code_set_of(call->agent);
    struct code_context *context;

    if (!request->context || !*request->context)
        return code_context_default(set, request->language, error);
    context = code_context_find(set, request->context);
    if (!context) {
        fill_not_found(error, request->context);
    } else if (request->names_language &&
               request->language->interpreter != context->language->interpreter) {
        (void) api_error_field(error, "language", "the context is for another language");
        return NULL;
    }
    return context;
}

static void execute(struct call *call)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    struct code_request request = {.context = NULL};
    struct code_context *context = NULL;
    struct execution *execution;

    if (read_request(call, &request, &error) == 0)
        context = find_context(call, &request, &error);
    if (!context) {
        fail_plainly(call, &error);
        return;
    }
    execution = mem_alloc(sizeof(*execution));
    execution->run = (struct code_run){
        .events = &run_events,
        .owner = call,
        .code = request.code,
        .language = request.names_language ? request.language : context->language,
        .timeout_ms = request.timeout_ms,
    };
    call->data = execution;
    call->on_gone = client_left;
    call->on_drain = client_took;
    if (code_context_run(context, &execution->run) < 0) {
        free(execution);
        (void) api_error_set(&error, API_RESOURCE_BUSY, "Too many runs wait for this context");
        fail_plainly(call, &error);
    }
}

static const struct operation rows[] = {
    {.method = "GET",
     .path = "/api/interpreter/health",
     .run = health,
     .name = "code.health",
     .summary = "Whether code can be run"},
    {.method = "POST",
     .path = "/api/contexts",
     .rpc = "interpreter.createCodeContext",
     .parameters = {OPERATION_FIELDS},
     .run = create,
     .rpc_result = create_result,
     .name = "code.createContext",
     .summary = "Make a context for code that keeps its variables",
     .body_limit = VARIABLES_BODY_MAX,
     .starts_work = true},
    {.method = "GET",
     .path = "/api/contexts",
     .rpc = "interpreter.listCodeContexts",
     .run = list_contexts,
     .rpc_result = list_result,
     .name = "code.listContexts",
     .summary = "All contexts"},
    {.method = "DELETE",
     .path = "/api/contexts/{contextId}",
     .rpc = "interpreter.deleteCodeContext",
     .parameters = {"contextId"},
     .run = delete_context,
     .rpc_result = no_result,
     .name = "code.deleteContext",
     .summary = "Delete a context and kill what it runs"},
    {.method = "POST",
     .path = "/api/execute/code",
     .rpc = "interpreter.streamCode",
     .parameters = {"context_id", "code", "language"},
     .run = execute,
     .name = "code.execute",
     .summary = "Run code in a context, as events",
     .body_limit = REQUEST_MAX,
     .has_events = true,
     .starts_work = true},
    {.rpc = "interpreter.runCodeStream",
     .parameters = {"context_id", "code", "language", OPERATION_CALLBACKS, "timeout_ms"},
     .run = execute,
     .rpc_result = no_result,
     .name = "code.execute",
     .summary = "The same with callbacks",
     .has_events = true,
     .starts_work = true},
};

const struct operation_table code_operations = {rows, ARRAY_COUNT(rows)};
