#include "api/agent/agent_pass.h"

#include <string.h>
#include <strings.h>

#include "base/auto.h"
#include "json/json_read.h"
#include "net/http/http_client.h"

/* Of an error's body; more is not looked at. */
#define REFUSAL_MAX ((size_t) 16 * 1024)

/* What an agent may call its content; everything else is bytes. None of these runs scripts. */
static const char *const types[] = {
    "application/json",
    "text/event-stream",
    "application/x-tar",
};

struct passage {
    int status;
    size_t length; /* of the refusal that came so far */
    char refusal[];
};

static const char *allowed_type(const struct http_head *head)
{
    const char *type = http_head_get(head, "content-type");

    for (size_t i = 0; type && i < ARRAY_COUNT(types); i++) {
        if (strncasecmp(type, types[i], strlen(types[i])) == 0)
            return types[i];
    }
    return "application/octet-stream";
}

static void agent_pass_got_head(struct visit *visit, int status, const struct http_head *head)
{
    struct http_request *request = visit->request;
    const char *type = allowed_type(head);
    struct passage *passage;

    if (status >= 200 && status < 300) {
        if (strcmp(type, "text/event-stream") == 0) {
            (void) http_reply_header(request, "Cache-Control", "no-cache");
            (void) http_reply_header(request, "X-Accel-Buffering", "no");
        }
        (void) http_reply_header(request, "X-Content-Type-Options", "nosniff");
        http_reply_begin(request, status, type, head->content_length);
        return;
    }
    passage = pool_alloc_raw(&request->pool, sizeof(*passage) + REFUSAL_MAX);
    passage->status = status;
    passage->length = 0;
    visit->data = passage;
}

static void agent_pass_begin_file(struct visit *visit, int status, const struct http_head *head)
{
    static const char *const names[] = {"Accept-Ranges", "Content-Range", "ETag", "Last-Modified"};
    const char *type = http_head_get(head, "content-type");

    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        const char *value = http_head_get(head, names[i]);

        if (value)
            (void) http_reply_header(visit->request, names[i], value);
    }
    (void) http_reply_header(visit->request, "Content-Security-Policy", "sandbox");
    (void) http_reply_header(visit->request, "X-Content-Type-Options", "nosniff");
    http_reply_begin(visit->request, status, type ? type : "application/octet-stream",
                     head->content_length);
}

static void got_file_head(struct visit *visit, int status, const struct http_head *head)
{
    if (status >= 200 && status < 300)
        agent_pass_begin_file(visit, status, head);
    else
        agent_pass_got_head(visit, status, head);
}

static void got_bytes(struct visit *visit, const char *bytes, size_t length)
{
    struct passage *passage = visit->data;

    if (!passage) {
        http_reply_write(visit->request, bytes, length);
        return;
    }
    if (length > REFUSAL_MAX - passage->length)
        length = REFUSAL_MAX - passage->length;
    memcpy(passage->refusal + passage->length, bytes, length);
    passage->length += length;
}

static void agent_pass_refuse(struct visit *visit, const struct passage *passage)
{
    AUTO(json) json_t *json = json_read(passage->refusal, passage->length, NULL, NULL);
    const char *code = json_string_value(json_object_get(json, "code"));
    const char *message = json_string_value(json_object_get(json, "message"));
    struct error error = ERROR_INIT;
    struct agent_reply reply = {.status = passage->status};

    if (!message) /* as the interpreter's errors have it */
        message = json_string_value(json_object_get(json, "error"));
    reply.code = code ? code : "";
    reply.message = message ? message : "";
    (void) agent_reply_error(&reply, &error);
    http_reply_error(visit->request, &error);
}

static void agent_pass_got_end(struct visit *visit, const struct error *failure)
{
    if (failure)
        http_reply_error(visit->request, failure);
    else if (visit->data)
        agent_pass_refuse(visit, visit->data);
    else
        http_reply_end(visit->request);
}

/* An answer that is to be kept must be there as a whole. */
static void got_whole(struct visit *visit, const struct agent_reply *reply,
                      const struct error *failure)
{
    struct error error = ERROR_INIT;

    if (failure)
        error = *failure;
    else if (agent_reply_error(reply, &error) == 0) {
        http_reply(visit->request, reply->status,
                   reply->json ? "application/json" : "application/octet-stream", reply->bytes,
                   reply->length);
        return;
    }
    http_reply_error(visit->request, &error);
}

void agent_pass(struct visit *visit, const struct agent_request *request)
{
    static const struct agent_body_events events = {
        .on_head = agent_pass_got_head, .on_bytes = got_bytes, .on_end = agent_pass_got_end};

    visit->data = NULL;
    if (visit->request->watch && !request->is_events)
        agent_call(visit, request, got_whole);
    else
        agent_fetch(visit, request, &events);
}

void agent_pass_file(struct visit *visit, const struct agent_request *request)
{
    static const struct agent_body_events events = {
        .on_head = got_file_head, .on_bytes = got_bytes, .on_end = agent_pass_got_end};

    visit->data = NULL;
    agent_fetch(visit, request, &events);
}

void agent_pass_upload(struct visit *visit, const struct agent_request *request)
{
    agent_send_body(visit, request, got_whole);
}
