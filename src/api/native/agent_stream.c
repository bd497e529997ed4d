#include "api/native/agent_stream.h"

#include <stdlib.h>
#include <string.h>

#include "api/http/api.h"
#include "base/memory.h"
#include "base/number.h"
#include "domain/conversation/turn_follow.h"
#include "domain/domain_share.h"
#include "json/json_write.h"
#include "net/http/sse.h"

#define REASON_MAX ((size_t) 2048)
/* Proxies close what is silent for a minute. */
#define KEEP_ALIVE_MS 20000

struct agent_stream {
    struct http_request *request; /* NULL: gone, only the timer is left */
    struct turn_follower *follower;
    struct share_claim claim;
    struct deadline keep_alive;
};

static void agent_stream_gone(struct deadline *deadline)
{
    free(CONTAINER_OF(deadline, struct agent_stream, keep_alive));
}

static void agent_stream_leave(struct agent_stream *stream)
{
    if (stream->follower)
        turn_follower_close(TAKE_PTR(stream->follower));
    stream->request = NULL;
    share_release(&stream->claim);
    deadline_close(&stream->keep_alive, agent_stream_gone);
}

static void agent_stream_client_left(struct http_request *request)
{
    agent_stream_leave(request->data);
}

static void agent_stream_drained(struct http_request *request)
{
    struct agent_stream *stream = request->data;

    if (stream->follower)
        turn_follower_resume(stream->follower);
}

static void agent_stream_still_here(struct deadline *deadline)
{
    struct agent_stream *stream = CONTAINER_OF(deadline, struct agent_stream, keep_alive);

    if (!stream->request)
        return;
    if (!http_reply_is_full(stream->request))
        sse_keep_alive(stream->request);
    deadline_set(deadline, KEEP_ALIVE_MS);
}

static bool agent_stream_send(void *context, const struct turn_item *item)
{
    struct agent_stream *stream = context;
    char sequence[NUMBER_TEXT_SIZE];

    if (http_reply_is_full(stream->request))
        return false; /* on_drain goes on */
    (void) number_format(item->sequence, sequence);
    sse_send(stream->request, item->sequence ? sequence : NULL, item->kind, item->json,
             strlen(item->json));
    return true;
}

static void agent_stream_ended(void *context, const struct error *reason)
{
    struct agent_stream *stream = context;
    struct http_request *request = stream->request;
    AUTO(text) struct text data = TEXT_INIT(REASON_MAX);
    struct json_writer json;

    stream->follower = NULL;
    agent_stream_leave(stream);
    if (reason) {
        json_document_begin(&json, &data);
        json_add_text(&json, "code", error_code_text(reason->code));
        json_add_text(&json, "message", reason->message);
        (void) json_document_end(&json); /* a message is short */
        sse_send(request, NULL, "error", text_string(&data), data.length);
    }
    http_reply_end(request);
}

static int agent_stream_read_after(struct http_request *request, int64_t *ret_after,
                                   struct error *err)
{
    const char *text = sse_last_event_id(request);

    if (!text)
        text = http_request_query(request, "after");
    if (text && number_parse(text, -1, INT64_MAX, ret_after) < 0)
        return error_set(err, ERR_INVALID, 0,
                         "'after' must be the id of an event of this conversation, 0 or -1");
    return 0;
}

void agent_stream_begin(struct http_request *request, struct conversation *conversation,
                        const struct id *turn, const struct id *task)
{
    struct api *api = api_of(request);
    struct agent_stream *stream = mem_alloc(sizeof(*stream));
    const struct share_asker asker = domain_asker(api->domain, request_caller(request));
    struct turn_filter filter = {.turn = turn, .task = task};
    struct error error = ERROR_INIT;

    if (agent_stream_read_after(request, &filter.after, &error) == 0 &&
        share_claim(api->shares, &asker, SHARE_EVENT_STREAMS, 1, &stream->claim, &error) == 0)
        stream->follower = turn_follow(api->domain, conversation, &filter, agent_stream_send,
                                       agent_stream_ended, stream, &error);
    if (!stream->follower) {
        share_release(&stream->claim);
        free(stream);
        http_reply_error(request, &error);
        return;
    }
    stream->request = request;
    request->data = stream;
    request->on_gone = agent_stream_client_left;
    request->on_drain = agent_stream_drained;
    deadline_init(api->loop, &stream->keep_alive, agent_stream_still_here);
    deadline_set(&stream->keep_alive, KEEP_ALIVE_MS);
    sse_begin(request);
}
