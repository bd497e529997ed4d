/* /v1/sandbox/{id}/session: shells that go on. */
#include <stdio.h>
#include <string.h>

#include "api/agent/agent_body.h"
#include "api/bridge/bridge_internal.h"
#include "base/auto.h"
#include "json/json_read.h"

#define SESSION_ID_MAX ((size_t) 256)
#define FAILED         "session_error"

static void reply_object(struct http_request *request, struct json_writer *json, struct text *body)
{
    (void) json_document_end(json); /* three short fields have room */
    http_reply(request, 200, BRIDGE_JSON, text_string(body), body->length);
}

/* --- making one ------------------------------------------------------------------------------ */

/* One of that name that is there already is as good, as it is for Cloudflare's SDK. */
static void bridge_session_made(struct visit *visit, const struct agent_reply *reply,
                                const struct error *failure)
{
    AUTO(text) struct text body = TEXT_INIT(SESSION_ID_MAX * 6 + 64);
    struct error storage = ERROR_INIT;
    const char *reason = bridge_reason(reply, failure, &storage);
    struct json_writer json;

    if (reason && (failure || strcmp(reply->code, "SESSION_ALREADY_EXISTS") != 0)) {
        bridge_error_reply(visit->request, ERR_UPSTREAM, FAILED, "session create failed: %s",
                           reason);
        return;
    }
    json_document_begin(&json, &body);
    json_add_text(&json, "id", visit->data);
    reply_object(visit->request, &json, &body);
}

static void add_field(struct json_writer *json, json_t *body, const char *name)
{
    json_t *value = json_object_get(body, name);

    if (!value || json_is_null(value))
        return;
    json_key(json, name);
    json_put_value(json, value);
}

/* NULL: that was answered. */
static const char *session_id(struct http_request *request, json_t *body)
{
    json_t *id = json_object_get(body, "id");

    if (!id || json_is_null(id))
        return pool_format(&request->pool, "session-%lld",
                           (long long) clock_wall_ms(api_of(request)->clock));
    if (json_is_string(id) && json_string_length(id) <= SESSION_ID_MAX)
        return pool_copy_text(&request->pool, json_string_value(id));
    api_fail(request, ERR_INVALID, "id must be a string of at most %zu bytes", SESSION_ID_MAX);
    return NULL;
}

/* A body that is no JSON object counts as none, as it does there. */
static void bridge_session_got_body(struct http_request *request, const char *bytes, size_t length)
{
    AUTO(json) json_t *body = length ? json_read(bytes, length, NULL, NULL) : NULL;
    const char *id = session_id(request, body);
    struct visit *visit = visit_of(request);
    struct agent_request question = {.method = NULL};
    struct agent_body asked;

    if (!id)
        return;
    visit->data = (void *) id;
    agent_body_begin(&asked);
    json_add_text(&asked.json, "id", id);
    add_field(&asked.json, body, "cwd");
    add_field(&asked.json, body, "env");
    agent_body_end(&asked, &request->pool, "/api/session/create", &question);
    agent_call(visit, &question, bridge_session_made);
}

static void ready_to_make(struct visit *visit)
{
    http_request_collect(visit->request, bridge_session_got_body);
}

void bridge_make_session(struct http_request *request)
{
    bridge_visit(request, 0, ready_to_make);
}

/* --- deleting one ---------------------------------------------------------------------------- */

static void deleted(struct visit *visit, const struct agent_reply *reply,
                    const struct error *failure)
{
    AUTO(text) struct text body = TEXT_INIT(SESSION_ID_MAX * 6 + 256);
    struct error storage = ERROR_INIT;
    const char *reason = bridge_reason(reply, failure, &storage);
    char time[CLOCK_TEXT_SIZE];
    struct json_writer json;

    if (reason) {
        bridge_error_reply(visit->request, ERR_UPSTREAM, FAILED, "session delete failed: %s",
                           reason);
        return;
    }
    clock_format(clock_wall_ms(visit->api->clock), time);
    json_document_begin(&json, &body);
    json_add_boolean(&json, "success", true);
    json_add_text(&json, "sessionId", http_request_parameter(visit->request, "session"));
    json_add_text(&json, "timestamp", time);
    reply_object(visit->request, &json, &body);
}

static void ready_to_delete(struct visit *visit)
{
    struct http_request *request = visit->request;
    const char *id = http_request_parameter(request, "session");
    struct agent_request question = {.method = NULL};
    struct agent_body asked;

    if (strlen(id) > SESSION_ID_MAX) {
        api_fail(request, ERR_INVALID, "session ID must be at most %zu bytes", SESSION_ID_MAX);
        return;
    }
    agent_body_begin(&asked);
    json_add_text(&asked.json, "sessionId", id);
    agent_body_end(&asked, &request->pool, "/api/session/delete", &question);
    agent_call(visit, &question, deleted);
}

void bridge_delete_session(struct http_request *request)
{
    bridge_visit(request, 0, ready_to_delete);
}
