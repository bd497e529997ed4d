/* persist and hydrate: the workspace as a tar archive, both ways. */
#include <string.h>

#include "api/bridge/bridge_internal.h"
#include "base/auto.h"

#define ARCHIVE "/burrow/archive?path=%2Fworkspace"

/* --- persist --------------------------------------------------------------------------------- */

static void persist_refused(struct visit *visit, const char *code, const char *reason)
{
    (void) code;
    bridge_error_reply(visit->request, ERR_UPSTREAM, "workspace_archive_read_error",
                       "persist failed: %s", reason);
}

/* The client's "a,./b,,c" as a part of the agent's query. Returns -1 when one leads upwards. */
static int write_excludes(struct text *target, const char *excludes)
{
    const char *before = "&excludes=";

    while (*excludes) {
        size_t length = strcspn(excludes, ",");
        const char *path = excludes;

        excludes += length + (excludes[length] == ',');
        if (memmem(path, length, "..", 2))
            return -1;
        if (length >= 2 && memcmp(path, "./", 2) == 0) {
            path += 2;
            length -= 2;
        }
        if (!length)
            continue;
        text_append(target, before);
        url_encode(target, path, length);
        before = ",";
    }
    return 0;
}

static void ready_to_persist(struct visit *visit)
{
    struct http_request *request = visit->request;
    const char *excludes = http_request_query(request, "excludes");
    AUTO(text) struct text target = TEXT_INIT(URL_LENGTH_MAX * 3);
    struct agent_request question = {.method = "GET"};

    text_append(&target, ARCHIVE);
    if (write_excludes(&target, excludes ? excludes : "") < 0) {
        api_fail(request, ERR_INVALID, "exclude paths must not contain \"..\"");
        return;
    }
    question.path = pool_copy_bytes(&request->pool, text_string(&target), target.length);
    bridge_download(visit, &question, persist_refused);
}

void bridge_persist(struct http_request *request)
{
    bridge_visit(request, VISIT_READ, ready_to_persist);
}

/* --- hydrate --------------------------------------------------------------------------------- */

/* A body in chunks says at its end that it was empty. */
static void unpacked(struct visit *visit, const struct agent_reply *reply,
                     const struct error *failure)
{
    struct error storage = ERROR_INIT;
    const char *reason = bridge_reason(reply, failure, &storage);

    if (reason && !visit->request->body_received)
        api_fail(visit->request, ERR_INVALID, "Empty tar payload");
    else if (reason)
        bridge_error_reply(visit->request, ERR_UPSTREAM, "workspace_archive_write_error",
                           "hydrate failed: %s", reason);
    else
        http_reply_text(visit->request, 200, BRIDGE_JSON, BRIDGE_OK);
}

static void ready_to_hydrate(struct visit *visit)
{
    /* As tar does, and not as strictly as the agent would: links may lead anywhere. */
    static const struct agent_request unpack = {
        .method = "PUT", .path = ARCHIVE "&links=any", .content_type = "application/x-tar"};
    const struct http_head *head = visit->request->head;

    if (!head->chunked && head->content_length <= 0)
        api_fail(visit->request, ERR_INVALID, "Empty tar payload");
    else
        agent_send_body(visit, &unpack, unpacked);
}

void bridge_hydrate(struct http_request *request)
{
    bridge_visit(request, 0, ready_to_hydrate);
}
