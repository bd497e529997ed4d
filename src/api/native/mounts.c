#include "api/native/mounts.h"

#include <string.h>

#include "api/access/access.h"
#include "api/http/error_body.h"
#include "api/mount_work.h"
#include "api/native/body.h"
#include "base/auto.h"
#include "base/clock.h"
#include "domain/bucket/bucket_mount.h"
#include "domain/sandbox/sandboxes.h"

/* --- shown ----------------------------------------------------------------------------------- */

/* Never the secret, nor who it belongs to. */
static void write_mount(struct json_writer *json, const struct bucket_mount *mount)
{
    char time[CLOCK_TEXT_SIZE];

    clock_format(mount->created_ms, time);
    json_begin_object(json);
    json_add_text(json, "path", mount->place);
    json_add_text(json, "bucket", mount->bucket.bucket);
    json_add_text(json, "prefix", mount->bucket.prefix);
    json_add_boolean(json, "readOnly", mount->bucket.read_only);
    json_add_text(json, "endpoint", mount->bucket.endpoint);
    json_add_text(json, "state", bucket_mount_state_text(mount->state));
    if (mount->state == BUCKET_MOUNT_FAILED)
        json_add_text(json, "error", mount->failure.message);
    json_add_text(json, "createdAt", time);
    json_end_object(json);
}

static void list_one(void *context, const struct bucket_mount *mount)
{
    write_mount(context, mount);
}

static void list_mounts(struct http_request *request)
{
    struct api *api = api_of(request);
    struct error err = ERROR_INIT;
    struct sandbox *sandbox = sandbox_find(api->domain, request_caller(request),
                                           http_request_parameter(request, "id"), &err);
    struct native_answer answer;

    if (!sandbox) {
        http_reply_error(request, &err);
        return;
    }
    native_answer_begin(&answer);
    json_key(&answer.json, "mounts");
    json_begin_array(&answer.json);
    bucket_mount_each(api->domain, &sandbox->id, list_one, &answer.json);
    json_end_array(&answer.json);
    native_answer_send(&answer, request, 200);
    native_answer_done(&answer);
}

/* --- changed --------------------------------------------------------------------------------- */

static void mounted(struct visit *visit, const struct error *failure,
                    const struct bucket_mount *mount)
{
    AUTO(text) struct text body = TEXT_INIT(NATIVE_REPLY_MAX);
    struct json_writer json;

    if (failure) {
        http_reply_error(visit->request, failure);
        return;
    }
    json_writer_init_text(&json, &body);
    write_mount(&json, mount);
    (void) json_writer_finish(&json);
    http_reply(visit->request, 201, "application/json", text_string(&body), body.length);
}

static void unmounted(struct visit *visit, const struct error *failure,
                      const struct bucket_mount *mount)
{
    (void) mount;
    if (failure)
        http_reply_error(visit->request, failure);
    else
        http_reply(visit->request, 204, NULL, NULL, 0);
}

static void ready_to_mount(struct visit *visit)
{
    mount_work_add(visit, visit->data, mounted);
}

static void ready_to_unmount(struct visit *visit)
{
    mount_work_remove(visit, visit->data, unmounted);
}

static int read_text(const struct json_place *body, const char *key, size_t max, struct pool *pool,
                     const char **ret_text, struct error *err)
{
    const char *text = NULL;

    if (json_field_text(body, key, JSON_OPTIONAL, max, &text, err) < 0)
        return -1;
    *ret_text = text && text[0] ? pool_copy_text(pool, text) : NULL;
    return 0;
}

static int read_style(const struct json_place *body, bool *ret_is_virtual_host, struct error *err)
{
    const char *style = "path";

    if (json_field_text(body, "style", JSON_OPTIONAL, BUCKET_NAME_MAX, &style, err) < 0)
        return -1;
    *ret_is_virtual_host = strcmp(style, "virtual") == 0;
    if (!*ret_is_virtual_host && strcmp(style, "path") != 0)
        return json_refuse_field(body, "style", "\"path\" or \"virtual\"", err);
    return 0;
}

static int read_mount(struct http_request *request, const struct json_place *body,
                      const void *argument, struct error *err)
{
    static const char *const known[] = {
        "path",   "bucket", "prefix",      "readOnly",        "endpoint",
        "region", "style",  "accessKeyId", "secretAccessKey", "sessionToken"};
    struct pool *pool = &request->pool;
    struct bucket_mount_spec *spec = pool_alloc(pool, sizeof(*spec));
    struct mounter_bucket *bucket = &spec->bucket;
    const char *path;

    (void) argument;
    *spec = (struct bucket_mount_spec){.place = NULL};
    if (json_known_fields(body, known, ARRAY_COUNT(known), err) < 0 ||
        json_field_text(body, "path", JSON_REQUIRED, BUCKET_PLACE_MAX, &path, err) < 0 ||
        read_text(body, "bucket", BUCKET_NAME_MAX, pool, &bucket->bucket, err) < 0 ||
        read_text(body, "prefix", BUCKET_PREFIX_MAX, pool, &bucket->prefix, err) < 0 ||
        json_field_boolean(body, "readOnly", JSON_OPTIONAL, &bucket->read_only, err) < 0 ||
        read_text(body, "endpoint", BUCKET_TEXT_MAX, pool, &bucket->endpoint, err) < 0 ||
        read_text(body, "region", BUCKET_TEXT_MAX, pool, &bucket->region, err) < 0 ||
        read_style(body, &bucket->is_virtual_host, err) < 0 ||
        read_text(body, "accessKeyId", BUCKET_TEXT_MAX, pool, &bucket->access_key, err) < 0 ||
        read_text(body, "secretAccessKey", BUCKET_TEXT_MAX, pool, &bucket->secret_key, err) < 0 ||
        read_text(body, "sessionToken", 4 * BUCKET_TEXT_MAX, pool, &bucket->session_token, err) < 0)
        return -1;
    bucket->is_foreign = bucket->endpoint != NULL;
    spec->place = mount_work_place(pool, path);
    if (!spec->place)
        return json_refuse_field(body, "path", "an absolute path, not /", err);
    request->data = spec;
    visit_begin(request, http_request_parameter(request, "id"), 0, ready_to_mount);
    return 0;
}

static void mount_bucket(struct http_request *request)
{
    native_take(request, read_mount, NULL);
}

static void unmount_bucket(struct http_request *request)
{
    const char *path = http_request_query(request, "path");

    request->data = path ? (char *) mount_work_place(&request->pool, path) : NULL;
    if (!request->data)
        api_fail(request, ERR_INVALID, "the query must have the path of a mount");
    else
        visit_begin(request, http_request_parameter(request, "id"), 0, ready_to_unmount);
}

/* --- the table ------------------------------------------------------------------------------- */

#define TEXT_FIELD(name) "\"" name "\":{\"type\":\"string\"}"

#define MOUNT_SCHEMA                                                                                                                                                   \
    "{\"type\":\"object\",\"required\":[\"path\",\"bucket\"],\"properties\":{" TEXT_FIELD("path") "," TEXT_FIELD(                                                      \
        "bucket") "," TEXT_FIELD("prefix") ",\"readOnly\":{\"type\":"                                                                                                  \
                                           "\"boolean\"}," TEXT_FIELD("endpoint") "," TEXT_FIELD("region") ",\"style\":{\"enum\":[\"path\",\"virtual\"]}," TEXT_FIELD( \
                                               "accessKeyId") "," TEXT_FIELD("secretAccessKey") "," TEXT_FIELD("sessionToken") "}}"

#define MOUNTS "/burrow/v1/sandboxes/{id}/mounts"

static const struct http_route routes[] = {
    {"GET", MOUNTS, list_mounts, "Buckets that are mounted in it", .access = ACCESS_READ},
    {"POST", MOUNTS, mount_bucket,
     "Mount a part of a bucket as a folder; of ours, or with an endpoint of somebody else",
     .access = ACCESS_ENTER, .request_schema = MOUNT_SCHEMA},
    {"DELETE", MOUNTS, unmount_bucket, "Unmount the one at ?path=", .access = ACCESS_ENTER},
};

struct http_mount mounts_mount(struct api *api)
{
    return (struct http_mount){
        .name = "native",
        .routes = routes,
        .route_count = ARRAY_COUNT(routes),
        .context = api,
        .encode_error = error_body_write,
    };
}
