#include <string.h>

#include "api/bridge/bridge_internal.h"
#include "base/auto.h"
#include "json/json_read.h"

#define REFUSAL_MAX ((size_t) 16 * 1024)

void bridge_visit(struct http_request *request, unsigned int flags,
                  void (*ready)(struct visit *visit))
{
    const char *name = http_request_parameter(request, "id");
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;

    spec.name = (char *) name; /* borrowed for the call, like all of it */
    spec.kind = (char *) "bridge";
    visit_begin_new(request, name, &spec, flags | VISIT_CREATE | VISIT_START, ready);
}

const char *bridge_session(struct http_request *request)
{
    const char *session = http_request_header(request, "session-id");

    if (!session || !*session)
        return BRIDGE_NO_SESSION;
    if (bridge_name_is_session(session))
        return session;
    api_fail(request, ERR_INVALID, "Invalid session ID format");
    return NULL;
}

const char *bridge_reason(const struct agent_reply *reply, const struct error *failure,
                          struct error *storage)
{
    if (failure)
        return failure->message;
    return agent_reply_error(reply, storage) < 0 ? storage->message : NULL;
}

/* --- bytes ----------------------------------------------------------------------------------- */

/* In the request's pool. */
struct bridge_visit_download {
    bridge_refused *refused;
    bool is_refused;
    char refusal[REFUSAL_MAX]; /* the agent's error, as far as it is worth reading */
    size_t length;
};

static void bridge_visit_got_head(struct visit *visit, int status, const struct http_head *head)
{
    struct bridge_visit_download *download = visit->data;

    download->is_refused = status != 200;
    if (!download->is_refused)
        http_reply_begin(visit->request, 200, "application/octet-stream", head->content_length);
}

static void got_bytes(struct visit *visit, const char *bytes, size_t length)
{
    struct bridge_visit_download *download = visit->data;
    size_t room = REFUSAL_MAX - download->length;

    if (!download->is_refused) {
        http_reply_write(visit->request, bytes, length);
        return;
    }
    length = length < room ? length : room;
    memcpy(download->refusal + download->length, bytes, length);
    download->length += length;
}

static void bridge_visit_refuse(struct visit *visit, const struct bridge_visit_download *download)
{
    AUTO(json) json_t *json = json_read(download->refusal, download->length, NULL, NULL);
    const char *code = json_string_value(json_object_get(json, "code"));
    const char *reason = json_string_value(json_object_get(json, "message"));

    download->refused(visit, code ? code : "", reason ? reason : "the agent did not say why");
}

static void bridge_visit_got_end(struct visit *visit, const struct error *failure)
{
    const struct bridge_visit_download *download = visit->data;

    if (download->is_refused && !failure)
        bridge_visit_refuse(visit, download);
    else if (!failure)
        http_reply_end(visit->request);
    else if (visit->request->state == HTTP_REQUEST_FRESH)
        download->refused(visit, "", failure->message);
    else
        http_reply_cut(visit->request); /* half of it must not look like all of it */
}

static const struct agent_body_events download_events = {bridge_visit_got_head, got_bytes,
                                                         bridge_visit_got_end};

void bridge_download(struct visit *visit, const struct agent_request *request,
                     bridge_refused *refused)
{
    struct bridge_visit_download *download = pool_alloc(&visit->request->pool, sizeof(*download));

    download->refused = refused;
    visit->data = download;
    agent_fetch(visit, request, &download_events);
}
