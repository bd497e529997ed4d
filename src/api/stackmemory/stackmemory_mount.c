/* mount: the project's part of the bucket `project-data`, of which each owner has its own. Where
 * the bucket is (a folder, an S3 server) is the daemon's setting, so that `localBucket` changes
 * nothing but the word in the answer. */
#include <string.h>

#include "api/mount_work.h"
#include "api/stackmemory/stackmemory_internal.h"

#define BUCKET      "project-data"
#define USUAL_PLACE "/persist"

/* Leading and trailing slash, as the original has it. */
static const char *shown_prefix(struct http_request *request, const char *prefix)
{
    struct pool *pool = &request->pool;
    size_t length = prefix ? strlen(prefix) : 0;

    if (!length)
        return pool_format(pool, "/projects/%s/", stackmemory_request_name(request));
    return pool_format(pool, "%s%s%s", prefix[0] == '/' ? "" : "/", prefix,
                       prefix[length - 1] == '/' ? "" : "/");
}

int stackmemory_read_mount(struct http_request *request, const struct json_place *body,
                           struct stackmemory_mount *ret_mount, struct error *err)
{
    const char *place = USUAL_PLACE, *prefix = NULL;
    bool is_local = false;

    if (json_field_boolean(body, "localBucket", JSON_OPTIONAL, &is_local, err) < 0 ||
        json_field_text(body, "mountPath", JSON_OPTIONAL, BUCKET_PLACE_MAX, &place, err) < 0 ||
        json_field_text(body, "prefix", JSON_OPTIONAL, BUCKET_PREFIX_MAX, &prefix, err) < 0)
        return -1;
    *ret_mount = (struct stackmemory_mount){
        .prefix = shown_prefix(request, prefix),
        .mode = is_local ? "localBucket" : "remoteR2",
    };
    ret_mount->spec = (struct bucket_mount_spec){
        .place = mount_work_place(&request->pool, place),
        .bucket = {.bucket = BUCKET, .prefix = ret_mount->prefix},
    };
    if (!ret_mount->spec.place)
        return json_refuse_field(body, "mountPath", "an absolute path, not /", err);
    return 0;
}

json_t *stackmemory_describe_mount(const struct stackmemory_mount *mount)
{
    return json_pack("{s:s, s:s, s:s}", "mountPath", mount->spec.place, "prefix", mount->prefix,
                     "mode", mount->mode);
}

static void stackmemory_mount_mounted(struct visit *visit, const struct error *failure,
                                      const struct bucket_mount *mount)
{
    struct http_request *request = visit->request;
    json_t *answer;

    (void) mount;
    if (failure) {
        http_reply_error(request, failure);
        return;
    }
    answer = stackmemory_answer(request);
    (void) json_object_set_new(answer, "mount", stackmemory_describe_mount(visit->data));
    stackmemory_reply(request, answer);
}

static void stackmemory_mount_ready(struct visit *visit)
{
    const struct stackmemory_mount *mount = visit->data;

    mount_work_add(visit, &mount->spec, stackmemory_mount_mounted);
}

static int stackmemory_mount_read_body(struct http_request *request, const struct json_place *body,
                                       struct error *err)
{
    struct stackmemory_mount *mount = pool_alloc(&request->pool, sizeof(*mount));

    if (stackmemory_read_mount(request, body, mount, err) < 0)
        return -1;
    stackmemory_visit(request, mount, stackmemory_mount_ready);
    return 0;
}

void stackmemory_mount_bucket(struct http_request *request)
{
    stackmemory_take_body(request, stackmemory_mount_read_body);
}
