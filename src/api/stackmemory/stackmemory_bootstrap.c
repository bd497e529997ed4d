/* bootstrap: a sandbox with a repository in it, and a marker that says when. Can be asked for
 * again: a clone of the same repository is left alone, and the answer says so. */
#include <string.h>

#include "api/agent/agent_body.h"
#include "api/agent/repository.h"
#include "api/stackmemory/stackmemory_internal.h"
#include "base/clock.h"

#define WORKSPACE        "/workspace"
#define USUAL_FOLDER     "/workspace/repo"
#define MARKER_PATH      "/workspace/.stackmemory-cloudflare-spike.json"
#define MARKER_MAX       ((size_t) 64 * 1024)
#define WRITE_TIMEOUT_MS ((uint64_t) 60 * 1000)

/* In the request's pool. */
struct bootstrap {
    struct repository_walk base;
    bool has_mount;
    struct stackmemory_mount mount;
};

static struct bootstrap *stackmemory_bootstrap_of(struct visit_walk *walk)
{
    return CONTAINER_OF(walk, struct bootstrap, base.walk);
}

static struct pool *pool_of(struct visit_walk *walk)
{
    return &walk->visit->request->pool;
}

/* --- the steps ------------------------------------------------------------------------------- */

static void write_marker(struct visit_walk *walk, struct text *marker)
{
    struct visit *visit = walk->visit;
    char now[CLOCK_TEXT_SIZE];
    struct json_writer json;

    clock_format(clock_wall_ms(visit->api->clock), now);
    json_document_begin(&json, marker);
    json_add_text(&json, "sandboxId", stackmemory_request_name(visit->request));
    json_add_text(&json, "bootstrappedAt", now);
    json_add_boolean(&json, "mounted", stackmemory_bootstrap_of(walk)->has_mount);
    json_add_text(&json, "repoUrl", stackmemory_bootstrap_of(walk)->base.repository.shown);
    (void) json_document_end(&json); /* it has room for the longest URL */
}

static bool ask_marker(struct visit_walk *walk, struct agent_request *request)
{
    AUTO(text) struct text marker = TEXT_INIT(MARKER_MAX);
    struct agent_body body;

    write_marker(walk, &marker);
    agent_body_begin(&body);
    json_add_text(&body.json, "path", MARKER_PATH);
    json_add_text(&body.json, "content", text_string(&marker));
    agent_body_end(&body, pool_of(walk), "/api/write", request);
    request->timeout_ms = WRITE_TIMEOUT_MS;
    return true;
}

static const struct visit_step steps[] = {
    REPOSITORY_STEPS,
    {"write the marker", .ask = ask_marker},
};

/* --- the answer ------------------------------------------------------------------------------ */

static json_t *describe_clone(const struct repository *repository)
{
    json_t *step = json_object();

    (void) json_object_set_new(step, "type", json_string("gitCheckout"));
    (void) json_object_set_new(step, "repoUrl", json_string(repository->shown));
    (void) json_object_set_new(step, "targetDir", json_string(repository->folder));
    (void) json_object_set_new(step, "branch",
                               json_string(repository->branch ? repository->branch : "default"));
    (void) json_object_set_new(step, "depth",
                               repository->depth ? json_integer(repository->depth) : json_null());
    (void) json_object_set_new(step, "alreadyThere", json_boolean(repository->is_there));
    return step;
}

static void finished(struct visit_walk *walk)
{
    const struct repository *repository = &stackmemory_bootstrap_of(walk)->base.repository;
    struct http_request *request = walk->visit->request;
    json_t *answer = stackmemory_answer(request), *list = json_array(), *marker = json_object();

    if (stackmemory_bootstrap_of(walk)->has_mount) {
        json_t *mount = stackmemory_describe_mount(&stackmemory_bootstrap_of(walk)->mount);

        (void) json_object_set_new(mount, "type", json_string("mountBucket"));
        (void) json_array_append_new(list, mount);
    }
    if (repository->url)
        (void) json_array_append_new(list, describe_clone(repository));
    (void) json_object_set_new(marker, "type", json_string("writeFile"));
    (void) json_object_set_new(marker, "path", json_string(MARKER_PATH));
    (void) json_array_append_new(list, marker);
    (void) json_object_set_new(answer, "steps", list);
    stackmemory_reply(request, answer);
}

static const struct visit_plan plan = {steps, ARRAY_COUNT(steps), finished, NULL};

static void stackmemory_bootstrap_mounted(struct visit *visit, const struct error *failure,
                                          const struct bucket_mount *mount)
{
    struct bootstrap *bootstrap = visit->data;

    (void) mount;
    if (failure)
        http_reply_error(visit->request, failure);
    else
        visit_walk_begin(&bootstrap->base.walk, visit, &plan);
}

static void stackmemory_bootstrap_ready(struct visit *visit)
{
    struct bootstrap *bootstrap = visit->data;

    if (bootstrap->has_mount)
        mount_work_add(visit, &bootstrap->mount.spec, stackmemory_bootstrap_mounted);
    else
        visit_walk_begin(&bootstrap->base.walk, visit, &plan);
}

/* --- the request ----------------------------------------------------------------------------- */

static int read_repository(struct pool *pool, const struct json_place *body,
                           struct repository *repository, struct error *err)
{
    static const struct repository_fields fields = {"repoUrl", "branch", "targetDir", "depth"};

    if (repository_read(repository, body, &fields, pool, err) < 0)
        return -1;
    if (!repository->folder)
        repository->folder = USUAL_FOLDER;
    else if (repository->folder[0] != '/')
        repository->folder = pool_format(pool, WORKSPACE "/%s", repository->folder);
    return 0;
}

static int stackmemory_bootstrap_read_body(struct http_request *request,
                                           const struct json_place *body, struct error *err)
{
    struct bootstrap *bootstrap = pool_alloc(&request->pool, sizeof(*bootstrap));

    *bootstrap = (struct bootstrap){.has_mount = false};
    if (json_field_boolean(body, "mountProjectData", JSON_OPTIONAL, &bootstrap->has_mount, err) <
            0 ||
        read_repository(&request->pool, body, &bootstrap->base.repository, err) < 0 ||
        (bootstrap->has_mount && stackmemory_read_mount(request, body, &bootstrap->mount, err) < 0))
        return -1;
    stackmemory_visit(request, bootstrap, stackmemory_bootstrap_ready);
    return 0;
}

void stackmemory_bootstrap(struct http_request *request)
{
    stackmemory_take_body(request, stackmemory_bootstrap_read_body);
}
