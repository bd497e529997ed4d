#include "api/agentpod/agentpod_webhook.h"

#include <string.h>
#include <strings.h>

#include "api/access/access.h"
#include "api/http/json_body.h"
#include "api/http/pending.h"
#include "base/encoding/hash.h"
#include "domain/remote_event.h"
#include "json/json_write.h"

#define TEXT_FIELD_MAX ((size_t) 512)
#define RESULT_MAX     ((size_t) 2048)
#define TIMESTAMP_MAX  ((size_t) 64)
#define NAME_MAX_BYTES ((size_t) 64)

/* Names that are taken, and whether they tell of work. */
static const struct {
    const char *name;
    bool is_activity;
} known_events[] = {
    {"sandbox.created", false},
    {"sandbox.started", false},
    {"sandbox.stopped", false},
    {"sandbox.hibernated", false},
    {"sandbox.woken", true},
    {"sandbox.deleted", false},
    {"sandbox.error", false},
    {"session.created", true},
    {"session.message", true},
    {"workspace.synced", true},
    {"workflow.execution.started", false},
    {"workflow.execution.step_completed", false},
    {"workflow.execution.completed", false},
    {"workflow.execution.failed", false},
};

/* Of `data`; what is not named here is dropped. */
static const char *const text_fields[] = {"sandboxId", "userId",      "provider",   "sessionId",
                                          "error",     "executionId", "workflowId", "stepId",
                                          "stepName",  "status"};

/* --- who ------------------------------------------------------------------------------------- */

int agentpod_webhook_init(struct agentpod_webhook *webhook, struct domain *domain,
                          const char *token, struct error *err)
{
    *webhook = (struct agentpod_webhook){.domain = domain};
    if (!token || !token[0])
        return 0;
    if (strlen(token) < AGENTPOD_TOKEN_MIN)
        return error_set(err, ERR_INVALID, 0, "the service token is shorter than %d characters",
                         AGENTPOD_TOKEN_MIN);
    sha256_bytes(token, strlen(token), webhook->token_hash);
    webhook->has_token = true;
    return 0;
}

/* Hashes are compared, so that time tells nothing about the token. */
static bool is_service(const struct agentpod_webhook *webhook, const struct http_request *request)
{
    static const char scheme[] = "Bearer ";
    const char *value = http_request_header(request, "authorization");
    uint8_t hash[SHA256_SIZE];

    if (!webhook->has_token || !value || strncasecmp(value, scheme, sizeof(scheme) - 1) != 0)
        return false;
    value += sizeof(scheme) - 1;
    sha256_bytes(value, strlen(value), hash);
    return hash_equal(hash, webhook->token_hash, SHA256_SIZE);
}

/* --- answers --------------------------------------------------------------------------------- */

static void write_issue(struct json_writer *json, const char *message)
{
    json_add_boolean(json, "success", false);
    json_begin_object_at(json, "error");
    json_begin_array_at(json, "issues");
    json_begin_object(json);
    json_add_text(json, "code", "custom");
    json_begin_array_at(json, "path");
    json_end_array(json);
    json_add_text(json, "message", message);
    json_end_object(json);
    json_end_array(json);
    json_add_text(json, "name", "ZodError");
    json_end_object(json);
}

static void agentpod_webhook_write_error(struct json_writer *json, const struct error *error)
{
    bool is_ours = error_http_status(error->code) >= 500;

    if (error->code == ERR_INVALID) {
        write_issue(json, error->message);
        return;
    }
    json_add_text(json, "error",
                  error->code == ERR_UNAUTHENTICATED ? "Unauthorized"
                  : is_ours                          ? "Webhook processing failed"
                                                     : error_code_text(error->code));
    json_add_text(json, "message", error->message);
}

static void encode_error(const struct http_request *request, const struct error *error,
                         struct text *body, const char **ret_content_type)
{
    struct json_writer json;

    (void) request;
    json_document_begin(&json, body);
    agentpod_webhook_write_error(&json, error);
    (void) json_document_end(&json); /* a message is far smaller than the body may be */
    *ret_content_type = "application/json";
}

static void agentpod_webhook_kept(void *context, const struct error *failure)
{
    struct http_request *request = pending_take_good(context, failure);

    if (request)
        http_reply_text(request, 200, "application/json", "{\"received\":true}");
}

/* --- what ------------------------------------------------------------------------------------ */

static int find_event(const char *name, struct remote_event *event, struct error *err)
{
    AUTO(text) struct text known = TEXT_INIT(ERROR_MESSAGE_MAX);

    for (size_t i = 0; i < ARRAY_COUNT(known_events); i++) {
        if (strcmp(known_events[i].name, name) == 0) {
            event->name = known_events[i].name;
            event->is_activity = known_events[i].is_activity;
            return 0;
        }
        text_format(&known, "%s%s", i ? ", " : "", known_events[i].name);
    }
    return error_set(err, ERR_INVALID, 0, "field 'event' must be one of %s", text_string(&known));
}

static int copy_texts(const struct json_place *data, struct json_writer *json, struct error *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(text_fields); i++) {
        const char *text = NULL;

        if (json_field_text(data, text_fields[i], JSON_OPTIONAL, TEXT_FIELD_MAX, &text, err) < 0)
            return -1;
        if (text)
            json_add_text(json, text_fields[i], text);
    }
    return 0;
}

static int copy_result(const struct json_place *data, struct json_writer *json, struct error *err)
{
    json_t *duration = json_object_get(data->value, "durationMs");
    AUTO(free) char *text = NULL;
    struct json_place result;

    if (duration && !json_is_number(duration))
        return error_set(err, ERR_INVALID, 0, "field 'data.durationMs' must be a number");
    if (json_field_object(data, "result", JSON_OPTIONAL, &result, err) < 0)
        return -1;
    if (duration) {
        json_key(json, "durationMs");
        json_put_value(json, duration);
    }
    text = result.value ? json_dumps(result.value, JSON_COMPACT) : NULL;
    if (!text)
        return 0;
    if (strlen(text) > RESULT_MAX) /* an event is small; the rest of it still counts */
        json_add_boolean(json, "resultLeftOut", true);
    else
        json_key(json, "result");
    if (strlen(text) <= RESULT_MAX)
        json_put_raw(json, text, strlen(text));
    return 0;
}

static int copy_data(const struct json_place *data, const char *timestamp, struct text *copy,
                     struct error *err)
{
    struct json_writer json;

    json_document_begin(&json, copy);
    if (copy_texts(data, &json, err) < 0 || copy_result(data, &json, err) < 0)
        return -1;
    json_add_text(&json, "timestamp", timestamp);
    if (json_document_end(&json) < 0)
        return error_set(err, ERR_INVALID, 0, "field 'data' is too large for an event");
    return 0;
}

static int agentpod_webhook_read_body(struct http_request *request, const struct json_place *body,
                                      struct error *err)
{
    struct agentpod_webhook *webhook = request->context;
    AUTO(text) struct text copy = TEXT_INIT(STORE_EVENT_DATA_MAX);
    struct remote_event event = {.request = request->id.text};
    const char *name, *timestamp;
    struct json_place data;

    if (json_field_text(body, "event", JSON_REQUIRED, NAME_MAX_BYTES, &name, err) < 0 ||
        find_event(name, &event, err) < 0 ||
        json_field_text(body, "timestamp", JSON_REQUIRED, TIMESTAMP_MAX, &timestamp, err) < 0 ||
        json_field_object(body, "data", JSON_REQUIRED, &data, err) < 0 ||
        copy_data(&data, timestamp, &copy, err) < 0)
        return -1;
    event.sandbox = json_string_value(json_object_get(data.value, "sandboxId"));
    event.owner = json_string_value(json_object_get(data.value, "userId"));
    event.data = text_string(&copy);
    remote_event_keep(webhook->domain, &event, agentpod_webhook_kept, pending_new(request));
    return 0;
}

static void agentpod_webhook_receive(struct http_request *request)
{
    struct error err;

    if (is_service(request->context, request)) {
        json_body_take(request, agentpod_webhook_read_body);
        return;
    }
    (void) error_set(&err, ERR_UNAUTHENTICATED, 0, "only the service token opens this");
    http_reply_error(request, &err);
}

/* Public for admission: the token is none of the keys it knows, and no key must open this. */
static const struct http_route routes[] = {
    {"POST", "/api/v2/cloudflare/webhook", agentpod_webhook_receive,
     "What happens to sandboxes elsewhere", .access = ACCESS_PUBLIC},
};

struct http_mount agentpod_webhook_mount(struct agentpod_webhook *webhook)
{
    return (struct http_mount){
        .name = "agentpod",
        .routes = routes,
        .route_count = ARRAY_COUNT(routes),
        .context = webhook,
        .encode_error = encode_error,
    };
}
