/* persist and hydrate: the workspace as a tar archive, both ways. */
#include <string.h>

#include "api/bridge/bridge_error.h"
#include "api/bridge/bridge_internal.h"
#include "api/bridge/bridge_path.h"
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

static void unpacked(struct visit *visit, const struct agent_reply *reply,
                     const struct error *failure)
{
    struct error storage = ERROR_INIT;
    const char *reason = bridge_reason(reply, failure, &storage);

    if (reason)
        bridge_error_reply(visit->request, ERR_UPSTREAM, "workspace_archive_write_error",
                           "hydrate failed: %s", reason);
    else
        http_reply_text(visit->request, 200, BRIDGE_JSON, BRIDGE_OK);
}

static void refuse_size(struct http_request *request, unsigned long long length)
{
    api_fail(request, ERR_INVALID, "tar payload too large: %llu bytes exceeds the %llu-byte limit",
             length, (unsigned long long) BRIDGE_BODY_MAX);
}

/* As tar does, and not as strictly as the agent would: links may lead anywhere. */
static const struct agent_request unpack = {
    .method = "PUT", .path = ARCHIVE "&links=any", .content_type = "application/x-tar"};

/* A body in chunks says too late how long it is: it is gathered before any of it is unpacked. In
 * the request's pool; its text is freed when the request is over. */
struct gathered {
    struct text archive;
};

static void forget(struct visit *visit)
{
    struct gathered *gathered = visit->data;

    text_done(&gathered->archive);
}

static void gathered_unpacked(struct visit *visit, const struct agent_reply *reply,
                              const struct error *failure)
{
    forget(visit);
    unpacked(visit, reply, failure);
}

static void got_piece(struct http_request *request, const char *bytes, size_t length)
{
    struct visit *visit = visit_of(request);
    struct gathered *gathered = visit->data;

    text_append_bytes(&gathered->archive, bytes, length);
    if (!gathered->archive.overflowed)
        return;
    forget(visit);
    refuse_size(request, (unsigned long long) request->body_received);
}

static void got_all(struct http_request *request)
{
    struct visit *visit = visit_of(request);
    struct gathered *gathered = visit->data;
    struct agent_request question = unpack;

    if (!gathered->archive.length) {
        api_fail(request, ERR_INVALID, "Empty tar payload");
        return;
    }
    question.body = text_string(&gathered->archive);
    question.length = gathered->archive.length;
    agent_call(visit, &question, gathered_unpacked);
}

static void gather(struct visit *visit)
{
    struct gathered *gathered = pool_alloc(&visit->request->pool, sizeof(*gathered));

    gathered->archive = (struct text) TEXT_INIT((size_t) BRIDGE_BODY_MAX);
    visit->data = gathered;
    visit->gone = forget;
    http_request_stream(visit->request, got_piece, got_all);
}

static void ready_to_hydrate(struct visit *visit)
{
    const struct http_head *head = visit->request->head;

    if (head->chunked)
        gather(visit);
    else if (head->content_length <= 0)
        api_fail(visit->request, ERR_INVALID, "Empty tar payload");
    else if ((uint64_t) head->content_length > BRIDGE_BODY_MAX)
        refuse_size(visit->request, (unsigned long long) head->content_length);
    else
        agent_send_body(visit, &unpack, unpacked);
}

void bridge_hydrate(struct http_request *request)
{
    bridge_visit(request, 0, ready_to_hydrate);
}
