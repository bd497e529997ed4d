/* mount and unmount: requests are checked as they will be when buckets can be mounted, and then
 * refused for now. No sandbox is made for that. */
#include <string.h>

#include "api/bridge/bridge_internal.h"
#include "api/bridge/bridge_path.h"
#include "base/auto.h"
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
    return check_bucket(body, options);
}

/* Nothing but slashes, dots and steps back. */
static bool is_root(const char *path)
{
    size_t depth = 0;

    while (*path) {
        size_t length = strcspn(path, "/");

        if (length == 2 && memcmp(path, "..", 2) == 0)
            depth -= depth > 0;
        else if (length && !(length == 1 && path[0] == '.'))
            depth++;
        path += length + (path[length] == '/');
    }
    return depth == 0;
}

static const char *check_unmount(json_t *body)
{
    const char *complaint = check_path(body);

    if (!complaint && is_root(json_string_value(json_object_get(body, "mountPath"))))
        return "mountPath must not resolve to / (filesystem root)";
    return complaint;
}

static void answer(struct http_request *request, const char *bytes, size_t length,
                   const char *(*check)(json_t *body))
{
    AUTO(json) json_t *body = json_read(bytes, length, NULL, NULL);
    const char *complaint = body ? check(body) : "Invalid JSON body";

    if (complaint)
        api_fail(request, ERR_INVALID, "%s", complaint);
    else
        api_fail(request, ERR_NOT_IMPLEMENTED, "mounting buckets is not available yet");
}

static void got_mount(struct http_request *request, const char *bytes, size_t length)
{
    answer(request, bytes, length, check_mount);
}

static void got_unmount(struct http_request *request, const char *bytes, size_t length)
{
    answer(request, bytes, length, check_unmount);
}

static void gone(struct http_request *request)
{
    (void) request; /* nothing was begun */
}

void bridge_mount_bucket(struct http_request *request)
{
    request->on_gone = gone;
    http_request_collect(request, got_mount);
}

void bridge_unmount_bucket(struct http_request *request)
{
    request->on_gone = gone;
    http_request_collect(request, got_unmount);
}
