/* Files of a sandbox: bytes both ways, folders as lists and as archives, changes as events. */
#include <string.h>

#include "api/agent/agent_body.h"
#include "api/agent/agent_pass.h"
#include "api/native/body.h"
#include "api/native/forward.h"
#include "api/native/handlers.h"
#include "base/auto.h"

#define PATH_LENGTH_MAX ((size_t) 4095)
#define TARGET_MAX      (PATH_LENGTH_MAX * 3 + 64)
#define RM_SECONDS      600

/* "workspace/a b" of the route is /workspace/a b inside. */
static const char *path_of(struct http_request *request)
{
    return pool_format(&request->pool, "/%s", http_request_parameter(request, "path"));
}

/* `target` with ?path= behind it. */
static const char *with_path(struct http_request *request, const char *target, const char *path)
{
    AUTO(text) struct text out = TEXT_INIT(TARGET_MAX);

    text_append(&out, target);
    text_append(&out, "?path=");
    url_encode(&out, path, strlen(path));
    return pool_copy_bytes(&request->pool, text_string(&out), out.length);
}

static bool has_flag(struct http_request *request, const char *name)
{
    const char *value = http_request_query(request, name);

    return value && strcmp(value, "0") != 0 && strcmp(value, "false") != 0;
}

static bool check_path(struct http_request *request)
{
    if (strlen(http_request_parameter(request, "path")) <= PATH_LENGTH_MAX)
        return true;
    api_fail(request, ERR_INVALID, "a path has at most %zu bytes", PATH_LENGTH_MAX);
    return false;
}

static void files_begin(struct http_request *request, unsigned int flags,
                        void (*ready)(struct visit *visit))
{
    if (check_path(request))
        visit_begin(request, http_request_parameter(request, "id"), flags, ready);
}

/* --- reading --------------------------------------------------------------------------------- */

static void list_folder(struct visit *visit)
{
    struct http_request *request = visit->request;
    struct agent_request ask = {.method = NULL};
    struct agent_body body;

    agent_body_begin(&body);
    json_add_text(&body.json, "path", path_of(request));
    json_begin_object_at(&body.json, "options");
    json_add_boolean(&body.json, "recursive", has_flag(request, "recursive"));
    json_add_boolean(&body.json, "includeHidden", true);
    json_end_object(&body.json);
    agent_body_end(&body, &request->pool, "/api/list-files", &ask);
    agent_pass(visit, &ask);
}

static void get_ready(struct visit *visit)
{
    struct http_request *request = visit->request;
    struct agent_request ask = {.method = request->head->method,
                                .path = with_path(request, "/burrow/file", path_of(request)),
                                .range = http_request_header(request, "range"),
                                .if_range = http_request_header(request, "if-range")};

    if (has_flag(request, "list"))
        list_folder(visit);
    else
        agent_pass_file(visit, &ask);
}

void native_get_file(struct http_request *request)
{
    files_begin(request, VISIT_READ, get_ready);
}

/* --- writing --------------------------------------------------------------------------------- */

static void put_ready(struct visit *visit)
{
    struct http_request *request = visit->request;
    struct agent_request ask = {.method = "PUT",
                                .path = with_path(request, "/burrow/file", path_of(request)),
                                .content_type = "application/octet-stream"};

    agent_pass_upload(visit, &ask);
}

void native_put_file(struct http_request *request)
{
    files_begin(request, 0, put_ready);
}

/* --- deleting -------------------------------------------------------------------------------- */

static void files_removed(struct visit *visit, const struct agent_reply *reply,
                          const struct error *failure)
{
    struct error error = ERROR_INIT;
    const char *words;

    if (failure)
        error = *failure;
    else if (agent_reply_error(reply, &error) == 0 &&
             json_integer_value(json_object_get(reply->json, "exitCode")) != 0) {
        words = json_string_value(json_object_get(reply->json, "stderr"));
        (void) error_set(&error, ERR_CONFLICT, 0, "%s", words ? words : "rm failed");
    }
    if (error.code)
        http_reply_error(visit->request, &error);
    else
        http_reply(visit->request, 204, NULL, "", 0);
}

/* A folder with all that is in it: rm's job, which the agent leaves to it, too. */
static void write_rm(struct json_writer *json, const char *path)
{
    json_begin_array_at(json, "argv");
    json_put_text(json, "rm");
    json_put_text(json, "-rf");
    json_put_text(json, "--");
    json_put_text(json, path);
    json_end_array(json);
    json_add_text(json, "sessionId", "__DISABLE_SESSION__");
    json_add_integer(json, "timeoutMs", RM_SECONDS * 1000);
}

static void delete_ready(struct visit *visit)
{
    struct http_request *request = visit->request;
    bool recursive = has_flag(request, "recursive");
    struct agent_request ask = {.method = NULL};
    struct agent_body body;

    agent_body_begin(&body);
    if (recursive)
        write_rm(&body.json, path_of(request));
    else
        json_add_text(&body.json, "path", path_of(request));
    agent_body_end(&body, &request->pool, recursive ? "/api/execute" : "/api/delete", &ask);
    agent_call(visit, &ask, files_removed);
}

void native_delete_file(struct http_request *request)
{
    files_begin(request, 0, delete_ready);
}

/* --- folders and moves ----------------------------------------------------------------------- */

/* In the request's pool. */
struct file_order {
    const char *move_to; /* NULL: make a folder */
    bool recursive;
};

static void order_ready(struct visit *visit)
{
    struct http_request *request = visit->request;
    const struct file_order *order = request->data;
    struct agent_request ask = {.method = NULL};
    struct agent_body body;

    agent_body_begin(&body);
    json_add_text(&body.json, order->move_to ? "sourcePath" : "path", path_of(request));
    if (order->move_to)
        json_add_text(&body.json, "destinationPath", order->move_to);
    else
        json_add_boolean(&body.json, "recursive", order->recursive);
    agent_body_end(&body, &request->pool, order->move_to ? "/api/move" : "/api/mkdir", &ask);
    agent_pass(visit, &ask);
}

static int read_order(struct http_request *request, const struct json_place *body,
                      struct error *err)
{
    static const char *const names[] = {"action", "to", "recursive"};
    struct file_order *order = pool_alloc(&request->pool, sizeof(*order));
    const char *action = NULL, *to = NULL;

    order->recursive = true;
    if (json_known_fields(body, names, ARRAY_COUNT(names), err) < 0 ||
        json_field_text(body, "action", JSON_REQUIRED, 16, &action, err) < 0 ||
        json_field_text(body, "to", JSON_OPTIONAL, PATH_LENGTH_MAX, &to, err) < 0 ||
        json_field_boolean(body, "recursive", JSON_OPTIONAL, &order->recursive, err) < 0)
        return -1;
    if (strcmp(action, "move") != 0 && strcmp(action, "mkdir") != 0)
        return json_refuse_field(body, "action", "move or mkdir", err);
    if ((strcmp(action, "move") == 0) != (to != NULL))
        return error_set(err, ERR_INVALID, 0, "field 'to' is for the action move, which needs it");
    order->move_to = to ? pool_copy_text(&request->pool, to) : NULL;
    request->data = order;
    files_begin(request, 0, order_ready);
    return 0;
}

void native_post_file(struct http_request *request)
{
    native_take(request, read_order);
}

/* --- archives -------------------------------------------------------------------------------- */

static void archive_get_ready(struct visit *visit)
{
    struct agent_request ask = {.method = "GET", .path = visit_target(visit, "/burrow/archive")};

    agent_pass(visit, &ask);
}

void native_get_archive(struct http_request *request)
{
    visit_begin(request, http_request_parameter(request, "id"), VISIT_READ, archive_get_ready);
}

static void archive_put_ready(struct visit *visit)
{
    struct agent_request ask = {.method = "PUT",
                                .path = visit_target(visit, "/burrow/archive"),
                                .content_type = "application/x-tar"};

    agent_pass_upload(visit, &ask);
}

void native_put_archive(struct http_request *request)
{
    visit_begin(request, http_request_parameter(request, "id"), 0, archive_put_ready);
}

/* --- watching -------------------------------------------------------------------------------- */

static const struct forward_field watch_fields[] = {
    {.name = "path"},    {.name = "recursive"}, {.name = "include"},
    {.name = "exclude"}, {.name = "events"},    {.name = "sessionId"},
};
static const struct forward watch = {
    .path = "/api/watch", FORWARD_FIELDS(watch_fields), .is_events = true};

void native_watch(struct http_request *request)
{
    forward(request, &watch);
}
