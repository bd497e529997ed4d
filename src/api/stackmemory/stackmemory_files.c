/* files, ls and the terminal. */
#include <string.h>

#include "api/agent/agent_body.h"
#include "api/agent/visit_walk.h"
#include "api/stackmemory/stackmemory_internal.h"

#define READ_TIMEOUT_MS ((uint64_t) 60 * 1000)
#define USUAL_FOLDER    "/workspace"
#define USUAL_SESSION   "default"
#define TARGET_MAX      ((size_t) 32 * 1024)

/* Add a query parameter to a target, escaped. */
static void add_parameter(struct text *target, char mark, const char *name, const char *value)
{
    if (!value)
        return;
    text_append_char(target, mark);
    text_append(target, name);
    text_append_char(target, '=');
    url_encode(target, value, strlen(value));
}

/* --- reading --------------------------------------------------------------------------------- */

static void file_answered(struct visit *visit, const struct agent_reply *reply,
                          const struct error *failure)
{
    json_t *answer;

    if (!stackmemory_is_good(visit, reply, failure))
        return;
    answer = stackmemory_answer(visit->request);
    (void) json_object_set_new(answer, "path", json_string(visit->data));
    (void) json_object_set(answer, "file", reply->json);
    stackmemory_reply(visit->request, answer);
}

static void ready_to_read(struct visit *visit)
{
    struct agent_request question = {.timeout_ms = READ_TIMEOUT_MS};
    struct agent_body body;

    agent_body_begin(&body);
    json_add_text(&body.json, "path", visit->data);
    agent_body_end(&body, &visit->request->pool, "/api/read", &question);
    agent_call(visit, &question, file_answered);
}

void stackmemory_read_file(struct http_request *request)
{
    const char *path = stackmemory_path(request, NULL);

    if (path)
        stackmemory_visit(request, (void *) (uintptr_t) path, ready_to_read);
}

/* --- writing --------------------------------------------------------------------------------- */

static void written(struct visit *visit, const struct agent_reply *reply,
                    const struct error *failure)
{
    json_t *answer, *bytes;

    if (!stackmemory_is_good(visit, reply, failure))
        return;
    bytes = json_object_get(reply->json, "bytesWritten");
    answer = stackmemory_answer(visit->request);
    (void) json_object_set_new(answer, "path", json_string(visit->data));
    (void) json_object_set_new(answer, "bytes", json_integer(json_integer_value(bytes)));
    stackmemory_reply(visit->request, answer);
}

static void ready_to_write(struct visit *visit)
{
    struct agent_request upload = {.method = "PUT", .content_type = "application/octet-stream"};
    AUTO(text) struct text target = TEXT_INIT(TARGET_MAX);

    text_append(&target, "/burrow/file");
    add_parameter(&target, '?', "path", visit->data);
    upload.path = pool_copy_text(&visit->request->pool, text_string(&target));
    agent_send_body(visit, &upload, written);
}

void stackmemory_write_file(struct http_request *request)
{
    const char *path = stackmemory_path(request, NULL);

    if (path)
        stackmemory_visit(request, (void *) (uintptr_t) path, ready_to_write);
}

/* --- listing --------------------------------------------------------------------------------- */

/* In the request's pool, but for what is JSON. */
struct stackmemory_files_listing {
    struct visit_walk walk;
    const char *path;
    json_t *result;  /* owned: what ls said */
    json_t *entries; /* owned */
};

static void stackmemory_files_forget(struct visit_walk *walk)
{
    struct stackmemory_files_listing *listing =
        CONTAINER_OF(walk, struct stackmemory_files_listing, walk);

    json_decref(TAKE_PTR(listing->result));
    json_decref(TAKE_PTR(listing->entries));
}

static bool ask_ls(struct visit_walk *walk, struct agent_request *request)
{
    const struct stackmemory_files_listing *listing =
        CONTAINER_OF(walk, struct stackmemory_files_listing, walk);
    struct agent_body body;

    agent_body_begin(&body);
    json_begin_array_at(&body.json, "argv");
    json_put_text(&body.json, "/bin/ls");
    json_put_text(&body.json, "-la");
    json_put_text(&body.json, "--");
    json_put_text(&body.json, listing->path);
    json_end_array(&body.json);
    agent_body_end(&body, &walk->visit->request->pool, "/api/execute", request);
    request->timeout_ms = READ_TIMEOUT_MS;
    return true;
}

static int take_ls(struct visit_walk *walk, const struct agent_reply *reply, struct error *err)
{
    struct stackmemory_files_listing *listing =
        CONTAINER_OF(walk, struct stackmemory_files_listing, walk);

    if (agent_reply_error(reply, err) < 0)
        return -1;
    listing->result = json_incref(reply->json);
    return 0;
}

static bool ask_entries(struct visit_walk *walk, struct agent_request *request)
{
    const struct stackmemory_files_listing *listing =
        CONTAINER_OF(walk, struct stackmemory_files_listing, walk);
    struct agent_body body;

    if (!json_is_true(json_object_get(listing->result, "success")))
        return false;
    agent_body_begin(&body);
    json_add_text(&body.json, "path", listing->path);
    json_begin_object_at(&body.json, "options");
    json_add_boolean(&body.json, "includeHidden", true);
    json_end_object(&body.json);
    agent_body_end(&body, &walk->visit->request->pool, "/api/list-files", request);
    request->timeout_ms = READ_TIMEOUT_MS;
    return true;
}

/* What ls can show and is no folder has no entries: that is no failure. */
static int take_entries(struct visit_walk *walk, const struct agent_reply *reply, struct error *err)
{
    struct stackmemory_files_listing *listing =
        CONTAINER_OF(walk, struct stackmemory_files_listing, walk);
    json_t *files = json_object_get(reply->json, "files");

    (void) err;
    if (json_is_array(files))
        listing->entries = json_incref(files);
    return 0;
}

static const struct visit_step list_steps[] = {
    {"run ls", .ask = ask_ls, .take = take_ls},
    {"list the entries", .ask = ask_entries, .take = take_entries},
};

static void listed(struct visit_walk *walk)
{
    struct stackmemory_files_listing *listing =
        CONTAINER_OF(walk, struct stackmemory_files_listing, walk);
    json_t *answer = stackmemory_answer(walk->visit->request);

    (void) json_object_set_new(answer, "path", json_string(listing->path));
    (void) json_object_set(answer, "result", listing->result);
    (void) json_object_set_new(answer, "entries",
                               listing->entries ? json_incref(listing->entries) : json_array());
    stackmemory_files_forget(walk);
    stackmemory_reply(walk->visit->request, answer);
}

static const struct visit_plan list_plan = {list_steps, ARRAY_COUNT(list_steps), listed,
                                            stackmemory_files_forget};

static void ready_to_list(struct visit *visit)
{
    struct stackmemory_files_listing *listing = pool_alloc(&visit->request->pool, sizeof(*listing));

    listing->path = visit->data;
    visit_walk_begin(&listing->walk, visit, &list_plan);
}

void stackmemory_list(struct http_request *request)
{
    const char *path = stackmemory_path(request, USUAL_FOLDER);

    if (path)
        stackmemory_visit(request, (void *) (uintptr_t) path, ready_to_list);
}

/* --- the terminal ---------------------------------------------------------------------------- */

static void ready_for_terminal(struct visit *visit)
{
    static const char *const passed[] = {"cols", "rows", "shell"};
    struct http_request *request = visit->request;
    AUTO(text) struct text target = TEXT_INIT(TARGET_MAX);
    const char *session = http_request_query(request, "session");

    if (!session || !session[0])
        session = USUAL_SESSION;
    text_append(&target, "/ws/pty");
    add_parameter(&target, '?', "sessionId", session);
    for (size_t i = 0; i < ARRAY_COUNT(passed); i++)
        add_parameter(&target, '&', passed[i], http_request_query(request, passed[i]));
    visit_proxy_socket(visit, pool_copy_text(&request->pool, text_string(&target)));
}

void stackmemory_terminal(struct http_request *request)
{
    if (request->is_upgrade)
        stackmemory_visit(request, NULL, ready_for_terminal);
    else
        api_fail(request, ERR_NOT_FOUND, "the terminal is a WebSocket");
}
