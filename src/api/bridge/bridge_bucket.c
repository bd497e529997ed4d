/* mount and unmount. `binding` names a bucket of ours, of which each owner has its own; `bucket`
 * with an endpoint is somebody else's, reached with the client's credentials, which stay with us.
 */
#include <stdlib.h>
#include <string.h>

#include "api/bridge/bridge_internal.h"
#include "api/mount_work.h"
#include "base/auto.h"
#include "base/path.h"
#include "json/json_read.h"

static bool is_given(json_t *object, const char *name)
{
    return json_object_get(object, name) != NULL;
}

static bool is_text(json_t *value)
{
    return json_is_string(value) && json_string_length(value) > 0;
}

static bool is_texts(json_t *value)
{
    size_t index;
    json_t *item;

    if (!json_is_array(value))
        return false;
    json_array_foreach (value, index, item) {
        if (!json_is_string(item))
            return false;
    }
    return true;
}

static bool is_boolean(json_t *value)
{
    return json_is_boolean(value);
}

static bool is_string(json_t *value)
{
    return json_is_string(value);
}

static bool is_credentials(json_t *value)
{
    return json_is_string(json_object_get(value, "accessKeyId")) &&
           json_is_string(json_object_get(value, "secretAccessKey"));
}

/* Of `options`, in the order in which they are complained about. */
static const struct {
    const char *name;
    bool (*fits)(json_t *value);
    const char *complaint;
} fields[] = {
    {"s3fsOptions", is_texts, "options.s3fsOptions must be an array of strings when provided"},
    {"readOnly", is_boolean, "options.readOnly must be a boolean when provided"},
    {"prefix", is_string, "options.prefix must be a string when provided"},
    {"credentialProxy", is_boolean, "options.credentialProxy must be a boolean when provided"},
    {"credentials", is_credentials,
     "options.credentials must include string accessKeyId and secretAccessKey"},
};

/* Options of s3fs that clients give, and what they mean here. Everything else is refused: an option
 * that is silently ignored may be the one that mattered. */
enum s3fs_meaning { S3FS_NOTHING, S3FS_PATH_STYLE, S3FS_READ_ONLY, S3FS_REGION };

static const struct {
    const char *name;
    enum s3fs_meaning meaning;
} s3fs_options[] = {
    {"use_path_request_style", S3FS_PATH_STYLE},
    {"ro", S3FS_READ_ONLY},
    {"endpoint=", S3FS_REGION}, /* s3fs calls the region so */
    {"nomixupload", S3FS_NOTHING},
    {"nomultipart", S3FS_NOTHING},
    {"allow_other", S3FS_NOTHING},
    {"multireq_max=", S3FS_NOTHING},
    {"parallel_count=", S3FS_NOTHING},
    {"multipart_size=", S3FS_NOTHING},
    {"max_stat_cache_size=", S3FS_NOTHING},
    {"stat_cache_expire=", S3FS_NOTHING},
    {"enable_noobj_cache", S3FS_NOTHING},
    {"retries=", S3FS_NOTHING},
    {"connect_timeout=", S3FS_NOTHING},
    {"readwrite_timeout=", S3FS_NOTHING},
    {"sigv4", S3FS_NOTHING},
    {"complement_stat", S3FS_NOTHING},
    {"compat_dir", S3FS_NOTHING},
};

/* NULL: it is not among them. */
static const char *find_s3fs_option(const char *option, enum s3fs_meaning *ret_meaning)
{
    for (size_t i = 0; i < ARRAY_COUNT(s3fs_options); i++) {
        size_t length = strlen(s3fs_options[i].name);
        bool has_value = s3fs_options[i].name[length - 1] == '=';

        if (has_value ? strncmp(option, s3fs_options[i].name, length) == 0
                      : strcmp(option, s3fs_options[i].name) == 0) {
            *ret_meaning = s3fs_options[i].meaning;
            return option + length;
        }
    }
    return NULL;
}

static const char *check_s3fs_options(json_t *options)
{
    enum s3fs_meaning meaning;
    size_t index;
    json_t *item;

    json_array_foreach (json_object_get(options, "s3fsOptions"), index, item) {
        if (!find_s3fs_option(json_string_value(item), &meaning))
            return "options.s3fsOptions has an option that is not known here; see "
                   "docs/compatibility.md for those that are";
    }
    return NULL;
}

static const char *check_path(json_t *body)
{
    json_t *path = json_object_get(body, "mountPath");

    if (!is_text(path))
        return "mountPath must be a non-empty string";
    if (json_string_value(path)[0] != '/')
        return "mountPath must be an absolute path (start with /)";
    return NULL;
}

static const char *check_source(json_t *body, json_t *options)
{
    json_t *binding = json_object_get(body, "binding");

    if (is_given(options, "endpoint") && !is_string(json_object_get(options, "endpoint")))
        return "options.endpoint must be a string when provided";
    if (binding && !json_is_string(binding))
        return "binding must be a string when provided";
    if (binding && !is_text(binding))
        return "binding must be a non-empty string when provided";
    if (binding && is_given(options, "endpoint"))
        return "Provide either binding or options.endpoint, not both";
    return NULL;
}

static const char *check_bucket(json_t *body, json_t *options)
{
    if (is_given(options, "endpoint"))
        return is_given(body, "bucket") ? NULL
                                        : "bucket must be a non-empty string for remote mounts";
    return is_given(body, "binding") ? NULL
                                     : "binding must be a non-empty string for R2 binding mounts";
}

/* NULL: all is well. */
static const char *check_mount(json_t *body)
{
    json_t *options = json_object_get(body, "options");
    const char *complaint;

    if (is_given(body, "bucket") && !is_text(json_object_get(body, "bucket")))
        return "bucket must be a non-empty string";
    if ((complaint = check_path(body)))
        return complaint;
    if (!json_is_object(options))
        return "options must be an object";
    if ((complaint = check_source(body, options)))
        return complaint;
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
        if (is_given(options, fields[i].name) &&
            !fields[i].fits(json_object_get(options, fields[i].name)))
            return fields[i].complaint;
    }
    if ((complaint = check_s3fs_options(options)))
        return complaint;
    return check_bucket(body, options);
}

/* Nothing but slashes, dots and steps back. */
static bool is_root(const char *path)
{
    AUTO(pool) struct pool pool = POOL_INIT;

    return strcmp(path_resolve(&pool, "", path), "/") == 0;
}

static const char *check_unmount(json_t *body)
{
    const char *complaint = check_path(body);

    if (!complaint && is_root(json_string_value(json_object_get(body, "mountPath"))))
        return "mountPath must not resolve to / (filesystem root)";
    return complaint;
}

/* --- doing it -------------------------------------------------------------------------------- */

static const char *text_of(json_t *object, const char *name, struct pool *pool)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text && text[0] ? pool_copy_text(pool, text) : NULL;
}

static void apply_s3fs_options(json_t *options, struct pool *pool, struct mounter_bucket *bucket)
{
    size_t index;
    json_t *item;

    json_array_foreach (json_object_get(options, "s3fsOptions"), index, item) {
        enum s3fs_meaning meaning = S3FS_NOTHING;
        const char *value = find_s3fs_option(json_string_value(item), &meaning);

        bucket->read_only |= meaning == S3FS_READ_ONLY;
        if (meaning == S3FS_PATH_STYLE)
            bucket->is_virtual_host = false;
        if (meaning == S3FS_REGION)
            bucket->region = pool_copy_text(pool, value);
    }
}

/* In the pool: it lasts until the sandbox is there. */
static struct bucket_mount_spec *read_spec(json_t *body, struct pool *pool)
{
    struct bucket_mount_spec *spec = pool_alloc(pool, sizeof(*spec));
    json_t *options = json_object_get(body, "options");
    json_t *credentials = json_object_get(options, "credentials");
    const char *binding = text_of(body, "binding", pool);

    *spec = (struct bucket_mount_spec){
        .place = mount_work_place(pool, json_string_value(json_object_get(body, "mountPath"))),
        .bucket = {
            .is_foreign = !binding,
            .bucket = binding ? binding : text_of(body, "bucket", pool),
            .prefix = text_of(options, "prefix", pool),
            .read_only = json_is_true(json_object_get(options, "readOnly")),
            .endpoint = text_of(options, "endpoint", pool),
            .access_key = text_of(credentials, "accessKeyId", pool),
            .secret_key = text_of(credentials, "secretAccessKey", pool),
            .session_token = text_of(credentials, "sessionToken", pool),
        }};
    apply_s3fs_options(options, pool, &spec->bucket);
    return spec;
}

static void bridge_bucket_answer(struct visit *visit, const char *word, const struct error *failure)
{
    if (!failure)
        http_reply_text(visit->request, 200, BRIDGE_JSON, BRIDGE_OK);
    else if (failure->code == ERR_INVALID)
        http_reply_error(visit->request, failure);
    else
        bridge_error_reply(visit->request, ERR_UPSTREAM, word, "%s", failure->message);
}

static void bridge_bucket_mounted(struct visit *visit, const struct error *failure,
                                  const struct bucket_mount *mount)
{
    (void) mount;
    bridge_bucket_answer(visit, "mount_error", failure);
}

static void unmounted(struct visit *visit, const struct error *failure,
                      const struct bucket_mount *mount)
{
    (void) mount;
    bridge_bucket_answer(visit, "unmount_error", failure);
}

static void ready_to_mount(struct visit *visit)
{
    mount_work_add(visit, visit->data, bridge_bucket_mounted);
}

static void ready_to_unmount(struct visit *visit)
{
    mount_work_remove(visit, visit->data, unmounted);
}

/* The body, or NULL: its complaint was answered. */
static json_t *bridge_bucket_read_body(struct http_request *request, const char *bytes,
                                       size_t length, const char *(*check)(json_t *body))
{
    AUTO(json) json_t *body = json_read(bytes, length, NULL, NULL);
    const char *complaint = body ? check(body) : "Invalid JSON body";

    if (complaint) {
        api_fail(request, ERR_INVALID, "%s", complaint);
        return NULL;
    }
    return TAKE_PTR(body);
}

static void got_mount(struct http_request *request, const char *bytes, size_t length)
{
    AUTO(json) json_t *body = bridge_bucket_read_body(request, bytes, length, check_mount);
    struct bucket_mount_spec *spec = body ? read_spec(body, &request->pool) : NULL;

    if (!spec)
        return;
    if (!spec->place) {
        api_fail(request, ERR_INVALID, "mountPath must not resolve to / (filesystem root)");
        return;
    }
    request->data = spec;
    bridge_visit(request, 0, ready_to_mount);
}

static void got_unmount(struct http_request *request, const char *bytes, size_t length)
{
    AUTO(json) json_t *body = bridge_bucket_read_body(request, bytes, length, check_unmount);

    if (!body)
        return;
    request->data = (char *) mount_work_place(
        &request->pool, json_string_value(json_object_get(body, "mountPath")));
    bridge_visit(request, 0, ready_to_unmount);
}

static void bridge_bucket_gone(struct http_request *request)
{
    (void) request; /* nothing was begun */
}

void bridge_mount_bucket(struct http_request *request)
{
    request->on_gone = bridge_bucket_gone;
    http_request_collect(request, got_mount);
}

void bridge_unmount_bucket(struct http_request *request)
{
    request->on_gone = bridge_bucket_gone;
    http_request_collect(request, got_unmount);
}
