#include <string.h>

#include "api/mount_work.h"
#include "api/native/body.h"
#include "api/native/handlers.h"
#include "base/auto.h"
#include "domain/bucket/bucket_mount.h"

/* --- shown ----------------------------------------------------------------------------------- */

/* Never the secret, nor who it belongs to. */
static void write_mount(struct json_writer *json, const struct bucket_mount *mount)
{
    json_begin_object(json);
    json_add_text(json, "path", mount->place);
    json_add_text(json, "bucket", mount->bucket.bucket);
    json_add_text(json, "prefix", mount->bucket.prefix);
    json_add_boolean(json, "readOnly", mount->bucket.read_only);
    json_add_text(json, "endpoint", mount->bucket.endpoint);
    json_add_text(json, "state", bucket_mount_state_text(mount->state));
    if (mount->state == BUCKET_MOUNT_FAILED)
        json_add_text(json, "error", mount->failure.message);
    native_add_time(json, "createdAt", mount->created_ms);
    json_end_object(json);
}

static void mounts_list_one(void *context, const struct bucket_mount *mount)
{
    write_mount(context, mount);
}

void native_list_mounts(struct http_request *request)
{
    struct sandbox *sandbox = native_find_sandbox(request);
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin_list(&answer, "mounts");
    if (!sandbox)
        return;
    bucket_mount_each(api_of(request)->domain, &sandbox->id, mounts_list_one, &answer.json);
    native_answer_send(&answer, request, 200);
}

/* --- changed --------------------------------------------------------------------------------- */

static void mounts_mounted(struct visit *visit, const struct error *failure,
                           const struct bucket_mount *mount)
{
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin_value(&answer);
    if (failure) {
        http_reply_error(visit->request, failure);
        return;
    }
    write_mount(&answer.json, mount);
    native_answer_send(&answer, visit->request, 201);
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
    mount_work_add(visit, visit->data, mounts_mounted);
}

static void ready_to_unmount(struct visit *visit)
{
    mount_work_remove(visit, visit->data, unmounted);
}

static int mounts_read_text(const struct json_place *body, const char *key, size_t max,
                            struct pool *pool, const char **ret_text, struct error *err)
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
                      struct error *err)
{
    static const char *const known[] = {
        "path",   "bucket", "prefix",      "readOnly",        "endpoint",
        "region", "style",  "accessKeyId", "secretAccessKey", "sessionToken"};
    struct pool *pool = &request->pool;
    struct bucket_mount_spec *spec = pool_alloc(pool, sizeof(*spec));
    struct mounter_bucket *bucket = &spec->bucket;
    const char *path;

    *spec = (struct bucket_mount_spec){.place = NULL};
    if (json_known_fields(body, known, ARRAY_COUNT(known), err) < 0 ||
        json_field_text(body, "path", JSON_REQUIRED, BUCKET_PLACE_MAX, &path, err) < 0 ||
        mounts_read_text(body, "bucket", BUCKET_NAME_MAX, pool, &bucket->bucket, err) < 0 ||
        mounts_read_text(body, "prefix", BUCKET_PREFIX_MAX, pool, &bucket->prefix, err) < 0 ||
        json_field_boolean(body, "readOnly", JSON_OPTIONAL, &bucket->read_only, err) < 0 ||
        mounts_read_text(body, "endpoint", BUCKET_TEXT_MAX, pool, &bucket->endpoint, err) < 0 ||
        mounts_read_text(body, "region", BUCKET_TEXT_MAX, pool, &bucket->region, err) < 0 ||
        read_style(body, &bucket->is_virtual_host, err) < 0 ||
        mounts_read_text(body, "accessKeyId", BUCKET_TEXT_MAX, pool, &bucket->access_key, err) <
            0 ||
        mounts_read_text(body, "secretAccessKey", BUCKET_TEXT_MAX, pool, &bucket->secret_key, err) <
            0 ||
        mounts_read_text(body, "sessionToken", 4 * BUCKET_TEXT_MAX, pool, &bucket->session_token,
                         err) < 0)
        return -1;
    bucket->is_foreign = bucket->endpoint != NULL;
    spec->place = mount_work_place(pool, path);
    if (!spec->place)
        return json_refuse_field(body, "path", "an absolute path, not /", err);
    request->data = spec;
    visit_begin(request, http_request_parameter(request, "id"), 0, ready_to_mount);
    return 0;
}

void native_mount_bucket(struct http_request *request)
{
    native_take(request, read_mount);
}

void native_unmount_bucket(struct http_request *request)
{
    const char *path = http_request_query(request, "path");

    request->data = path ? (char *) mount_work_place(&request->pool, path) : NULL;
    if (!request->data)
        api_fail(request, ERR_INVALID, "the query must have the path of a mount");
    else
        visit_begin(request, http_request_parameter(request, "id"), 0, ready_to_unmount);
}
