#include "api/native/forward.h"

#include <string.h>

#include "api/agent/agent_pass.h"
#include "api/native/body.h"
#include "base/auto.h"
#include "json/json_measure.h"

#define DURATION_MAX    ((uint64_t) 365 * 24 * 3600 * 1000)
#define PATH_MAX_LENGTH ((size_t) 16 * 1024)

/* In the request's pool; request->data until the visit is ready. */
struct forwarding {
    const struct forward *row;
    const char *body; /* NULL: none */
    size_t length;
    bool streams;
};

/* --- the path -------------------------------------------------------------------------------- */

/* Every {name} replaced by what the route has for it. */
static const char *forward_expand(struct http_request *request, const char *pattern)
{
    AUTO(text) struct text path = TEXT_INIT(PATH_MAX_LENGTH);

    while (*pattern) {
        const char *open = strchr(pattern, '{');
        const char *close = open ? strchr(open, '}') : NULL;
        const char *name, *value;

        if (!close)
            break;
        text_append_bytes(&path, pattern, (size_t) (open - pattern));
        name = pool_copy_bytes(&request->pool, open + 1, (size_t) (close - open) - 1);
        value = http_request_parameter(request, name);
        url_encode(&path, value, strlen(value));
        pattern = close + 1;
    }
    text_append(&path, pattern);
    return pool_copy_bytes(&request->pool, text_string(&path), path.length);
}

static void forward_ready(struct visit *visit)
{
    struct http_request *request = visit->request;
    const struct forwarding *forwarding = request->data;
    const struct forward *row = forwarding->row;
    bool streams = forwarding->streams && row->stream_path;
    const char *path = forward_expand(request, streams ? row->stream_path : row->path);
    struct agent_request ask = {
        .method = row->method,
        .path = row->has_query ? visit_target(visit, path) : path,
        .body = forwarding->body,
        .length = forwarding->length,
        .is_events = streams || row->is_events,
    };

    agent_pass(visit, &ask);
}

/* --- the body -------------------------------------------------------------------------------- */

static const struct forward_field *find_field(const struct forward *row, const char *name)
{
    for (size_t i = 0; i < row->field_count; i++) {
        if (strcmp(row->fields[i].name, name) == 0)
            return &row->fields[i];
    }
    return NULL;
}

static int translate_field(struct json_writer *json, const struct json_place *body,
                           const struct forward_field *field, json_t *value, struct error *err)
{
    const char *name = field->agent_name ? field->agent_name : field->name;
    uint64_t milliseconds = 0;

    if (field->kind == FORWARD_OMIT || json_is_null(value))
        return 0;
    if (field->kind == FORWARD_AS_IS) {
        json_key(json, name);
        json_put_value(json, value);
        return 0;
    }
    if (json_field_duration(body, field->name, JSON_REQUIRED, DURATION_MAX, &milliseconds, err) < 0)
        return -1;
    json_add_integer(json, name, (int64_t) milliseconds);
    return 0;
}

/* The agent's body of ours, into the pool. */
static int translate(struct http_request *request, const struct forward *row,
                     const struct json_place *body, struct forwarding *forwarding,
                     struct error *err)
{
    AUTO(text) struct text out = TEXT_INIT(request->body_limit * 6 + 1024);
    struct json_writer json;
    const char *name;
    json_t *value;

    json_document_begin(&json, &out);
    json_object_foreach (body->value, name, value) {
        const struct forward_field *field = find_field(row, name);

        if (!field)
            return error_set(err, ERR_INVALID, 0, "unknown field '%.64s'", name);
        if (translate_field(&json, body, field, value, err) < 0)
            return -1;
    }
    if (row->session && !json_is_string(json_object_get(body->value, "sessionId")))
        json_add_text(&json, "sessionId", row->session);
    if (row->is_plain)
        json_add_boolean(&json, "plain", true);
    if (json_document_end(&json) < 0)
        return error_set(err, ERR_TOO_LARGE, 0, "the body is too large");
    forwarding->body = pool_copy_bytes(&request->pool, text_string(&out), out.length);
    forwarding->length = out.length;
    return 0;
}

/* "Accept: text/event-stream" and nothing else. */
static bool accepts_events_only(const struct http_request *request)
{
    const char *accept = http_request_header(request, "accept");

    return accept && strncasecmp(accept, "text/event-stream", 17) == 0;
}

static void forward_begin(struct http_request *request, struct forwarding *forwarding)
{
    request->data = forwarding;
    visit_begin(request, http_request_parameter(request, "id"), forwarding->row->visit,
                forward_ready);
}

static int body_read(struct http_request *request, const struct json_place *body, struct error *err)
{
    const struct forward *row = native_argument(request);
    struct forwarding *forwarding = pool_alloc(&request->pool, sizeof(*forwarding));

    forwarding->row = row;
    forwarding->streams = accepts_events_only(request);
    if (json_field_boolean(body, "stream", JSON_OPTIONAL, &forwarding->streams, err) < 0 ||
        translate(request, row, body, forwarding, err) < 0)
        return -1;
    forward_begin(request, forwarding);
    return 0;
}

static void write_parameter(struct http_request *request, const struct forward *row,
                            struct forwarding *forwarding)
{
    AUTO(text) struct text out = TEXT_INIT(PATH_MAX_LENGTH * 6);
    struct json_writer json;

    json_document_begin(&json, &out);
    json_add_text(&json, row->parameter_name, http_request_parameter(request, row->parameter));
    (void) json_document_end(&json); /* part of a target, which is bounded */
    forwarding->body = pool_copy_bytes(&request->pool, text_string(&out), out.length);
    forwarding->length = out.length;
}

void forward(struct http_request *request, const struct forward *row)
{
    struct forwarding *forwarding;

    if (row->fields) {
        native_take_with(request, body_read, row);
        return;
    }
    forwarding = pool_alloc(&request->pool, sizeof(*forwarding));
    forwarding->row = row;
    if (row->parameter)
        write_parameter(request, row, forwarding);
    forward_begin(request, forwarding);
}
