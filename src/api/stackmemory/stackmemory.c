#include "api/stackmemory/stackmemory.h"

#include <ctype.h>
#include <string.h>

#include "api/access/access.h"
#include "api/agent/agent_call.h"
#include "api/http/long_json.h"
#include "api/http/pending.h"
#include "api/stackmemory/stackmemory_internal.h"
#include "base/encoding/utf8.h"
#include "base/memory.h"
#include "domain/sandbox/sandboxes.h"

#define CONTENT_TYPE "application/json; charset=utf-8"
#define INDENT       2
#define BODY_LIMIT   ((uint64_t) 8 * 1024 * 1024)

/* --- names ----------------------------------------------------------------------------------- */

static bool stackmemory_is_name(const char *name, size_t length)
{
    if (length < STACKMEMORY_NAME_MIN || length > STACKMEMORY_NAME_MAX || name[0] == '-' ||
        name[0] == '_')
        return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == length;
}

const char *stackmemory_name(const char *text, struct pool *pool)
{
    size_t length;
    char *name;

    while (isspace((unsigned char) *text))
        text++;
    length = strlen(text);
    while (length && isspace((unsigned char) text[length - 1]))
        length--;
    name = pool_copy_bytes(pool, text, length);
    for (size_t i = 0; i < length; i++)
        name[i] = (char) tolower((unsigned char) name[i]);
    return stackmemory_is_name(name, length) ? name : NULL;
}

const char *stackmemory_request_name(struct http_request *request)
{
    return stackmemory_name(http_request_parameter(request, "id"), &request->pool);
}

/* --- answers --------------------------------------------------------------------------------- */

static json_t *error_document(const char *code, const char *details)
{
    json_t *text = details ? json_string(details) : NULL;
    json_t *document = json_object();

    (void) json_object_set_new(document, "ok", json_false());
    (void) json_object_set_new(document, "error", json_string(code));
    (void) json_object_set_new(document, "details", text ? text : json_null());
    return document;
}

/* What this dialect calls an error, where it has a word of its own. */
static const char *code_text(enum err_code code)
{
    return code == ERR_INTERNAL ? "sandbox_spike_error" : error_code_text(code);
}

static void encode_error(const struct http_request *request, const struct error *error,
                         struct text *body, const char **ret_content_type)
{
    AUTO(json) json_t *document = error_document(code_text(error->code), error->message);
    AUTO(free) char *text = json_dumps(document, JSON_INDENT(INDENT));

    (void) request;
    text_append(body, text ? text : "{}");
    *ret_content_type = CONTENT_TYPE;
}

void stackmemory_refuse(struct http_request *request, const char *code, const char *details)
{
    AUTO(json) json_t *document = error_document(code, details);
    AUTO(free) char *text = json_dumps(document, JSON_INDENT(INDENT));

    http_reply_text(request, error_http_status(ERR_INVALID), CONTENT_TYPE, text ? text : "{}");
}

json_t *stackmemory_answer(struct http_request *request)
{
    json_t *answer = json_object();

    (void) json_object_set_new(answer, "ok", json_true());
    (void) json_object_set_new(answer, "sandboxId", json_string(stackmemory_request_name(request)));
    return answer;
}

void stackmemory_reply(struct http_request *request, json_t *answer)
{
    AUTO(free) char *text = NULL;

    if (long_json_is_long(answer)) {
        long_json_reply(request, answer, JSON_INDENT(INDENT), CONTENT_TYPE);
        return;
    }
    text = json_dumps(answer, JSON_INDENT(INDENT));
    json_decref(answer);
    if (text)
        http_reply_text(request, 200, CONTENT_TYPE, text);
    else
        api_fail(request, ERR_INTERNAL, "the answer cannot be written as JSON");
}

bool stackmemory_is_good(struct visit *visit, const struct agent_reply *reply,
                         const struct error *failure)
{
    struct error err = ERROR_INIT;

    if (failure)
        err = *failure;
    else if (agent_reply_error(reply, &err) == 0 && !reply->json)
        (void) error_set(&err, ERR_UPSTREAM, 0, "the sandbox's agent did not answer with JSON");
    if (err.code)
        http_reply_error(visit->request, &err);
    return !err.code;
}

/* --- requests -------------------------------------------------------------------------------- */

static bool refuse_name(struct http_request *request)
{
    if (stackmemory_request_name(request))
        return false;
    stackmemory_refuse(request, "invalid_sandbox_id",
                       "sandbox id must be 2-64 chars of lowercase letters, numbers, dashes, or "
                       "underscores");
    return true;
}

const char *stackmemory_path(struct http_request *request, const char *usual)
{
    const char *path = http_request_query(request, "path");

    if (!path || !path[0])
        path = usual;
    if (!path)
        stackmemory_refuse(request, "missing_path", "say ?path=/workspace/...");
    else if (strlen(path) > STACKMEMORY_PATH_MAX || !utf8_is_valid(path, strlen(path)))
        api_fail(request, ERR_INVALID, "path must be UTF-8 of at most %zu bytes",
                 STACKMEMORY_PATH_MAX);
    else
        return path;
    return NULL;
}

void stackmemory_visit(struct http_request *request, void *data, void (*ready)(struct visit *visit))
{
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    const char *name = stackmemory_request_name(request);

    if (refuse_name(request))
        return;
    spec.name = mem_copy_text(name);
    spec.kind = mem_copy_text("stackmemory");
    request->data = data;
    visit_begin_new(request, name, &spec, VISIT_CREATE, ready);
}

void stackmemory_take_body(struct http_request *request, json_body_read *read)
{
    if (!refuse_name(request))
        json_body_take(request, read);
}

/* --- destroying ------------------------------------------------------- */

static void reply_destroyed(struct http_request *request)
{
    json_t *answer = stackmemory_answer(request);

    (void) json_object_set_new(answer, "destroyed", json_true());
    stackmemory_reply(request, answer);
}

static void stackmemory_destroyed(void *context, const struct error *failure,
                                  struct sandbox *sandbox)
{
    bool is_gone = failure && failure->code == ERR_NOT_FOUND; /* somebody else was faster */
    struct http_request *request = pending_take_good(context, is_gone ? NULL : failure);

    (void) sandbox;
    if (request)
        reply_destroyed(request);
}

static void stackmemory_destroy(struct http_request *request)
{
    struct api *api = api_of(request);
    const char *name = stackmemory_request_name(request);
    struct error err = ERROR_INIT;
    struct sandbox *sandbox;

    if (refuse_name(request))
        return;
    sandbox = sandbox_find(api->domain, request_caller(request), name, &err);
    if (!sandbox && err.code == ERR_NOT_FOUND) {
        reply_destroyed(request); /* so it is: a sandbox of this dialect is there by its use only */
        return;
    }
    if (!sandbox)
        http_reply_error(request, &err);
    else
        sandbox_destroy(api->domain, request_caller(request), sandbox, stackmemory_destroyed,
                        pending_new(request));
}

static void stackmemory_not_found(struct http_request *request)
{
    struct error err;

    (void) error_set(&err, ERR_NOT_FOUND, 0, "no such route");
    http_reply_error(request, &err);
}

/* --- the table ------------------------------------------------------------------------------- */

#define ID "/v1/sandboxes/{id}"

static const struct http_route routes[] = {
    {"POST", ID "/bootstrap", stackmemory_bootstrap, "Make a sandbox with a repository in it",
     .access = ACCESS_ENTER, .body_limit = BODY_LIMIT},
    {"POST", ID "/exec", stackmemory_exec, "Run a command", .access = ACCESS_ENTER,
     .body_limit = BODY_LIMIT},
    {"GET", ID "/files", stackmemory_read_file, "Read a file", .access = ACCESS_ENTER},
    {"PUT", ID "/files", stackmemory_write_file, "Write a file", .access = ACCESS_ENTER,
     .body_limit = HTTP_BODY_UNLIMITED},
    {"GET", ID "/ls", stackmemory_list, "List a folder", .access = ACCESS_ENTER},
    {"GET", ID "/terminal", stackmemory_terminal, "A terminal, as a WebSocket",
     .access = ACCESS_ENTER},
    {"POST", ID "/destroy", stackmemory_destroy, "Remove the sandbox and its disk",
     .access = ACCESS_WRITE},
    {"POST", ID "/mount", stackmemory_mount_bucket, "Show the project's stored files as a folder",
     .access = ACCESS_WRITE, .body_limit = BODY_LIMIT},
    {"POST", ID "/backup", stackmemory_backup, "Keep a folder of it in the object store",
     .access = ACCESS_ENTER, .body_limit = BODY_LIMIT},
    {"POST", ID "/restore", stackmemory_restore, "Make a folder what a backup holds",
     .access = ACCESS_ENTER, .body_limit = BODY_LIMIT},
    {"GET", ID, stackmemory_not_found, "Unknown routes", .access = ACCESS_SIGNED_IN},
    {"POST", ID, stackmemory_not_found, "Unknown routes", .access = ACCESS_SIGNED_IN},
    {"DELETE", ID, stackmemory_not_found, "Unknown routes", .access = ACCESS_SIGNED_IN},
    {"GET", ID "/{rest...}", stackmemory_not_found, "Unknown routes", .access = ACCESS_SIGNED_IN},
    {"POST", ID "/{rest...}", stackmemory_not_found, "Unknown routes", .access = ACCESS_SIGNED_IN},
    {"PUT", ID "/{rest...}", stackmemory_not_found, "Unknown routes", .access = ACCESS_SIGNED_IN},
    {"DELETE", ID "/{rest...}", stackmemory_not_found, "Unknown routes",
     .access = ACCESS_SIGNED_IN},
};

struct http_mount stackmemory_mount(struct api *api)
{
    return (struct http_mount){
        .name = "stackmemory",
        .routes = routes,
        .route_count = ARRAY_COUNT(routes),
        .context = api,
        .encode_error = encode_error,
    };
}
