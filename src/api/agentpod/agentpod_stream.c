/* task/stream: a task in the user's own sandbox, told as it goes on.
 *
 *     start, status ..., chunk ..., done | error       and keepalive every 5 s
 *
 * The sandbox stays for the next one. A client that leaves ends the stream and not the task. */
#include <string.h>

#include "api/agentpod/agentpod_parts.h"
#include "api/agentpod/agentpod_task.h"
#include "api/http/json_body.h"
#include "base/auto.h"
#include "base/memory.h"
#include "domain/conversation/turn_follow.h"
#include "domain/domain_share.h"
#include "domain/sandbox/sandboxes.h"
#include "net/http/sse.h"

#define KEEP_ALIVE_MS 5000
#define FRAME_MAX     ((size_t) 2 * 1024 * 1024)

struct agentpod_stream {
    struct api *api;
    struct http_request *request; /* NULL: the client left, or all was told */
    struct caller caller;
    char label[AGENTPOD_LABEL_SIZE];
    char *sandbox;      /* owned: what it is called */
    const char *status; /* static: what is said first */
    const char *making; /* owned; NULL: nothing is made */
    struct turn_follower *follower;
    struct share_claim claim;
    struct deadline keep_alive;
    json_t *told; /* of each part: how many bytes of its text */
    struct id task;
    bool has_timer, is_asking, is_new, said_ready, said_thinking;
};

/* --- frames ---------------------------------------------------------------------------------- */

static void agentpod_stream_begin_frame(struct json_writer *json, struct text *text,
                                        const char *type)
{
    json_document_begin(json, text);
    json_add_text(json, "type", type);
}

static void agentpod_stream_send(struct agentpod_stream *stream, struct json_writer *json,
                                 struct text *text)
{
    if (json_document_end(json) == 0 && stream->request)
        sse_send(stream->request, NULL, "message", text_string(text), text->length);
}

static void agentpod_stream_say(struct agentpod_stream *stream, const char *type, const char *key,
                                const char *value)
{
    AUTO(text) struct text text = TEXT_INIT(FRAME_MAX);
    struct json_writer json;

    agentpod_stream_begin_frame(&json, &text, type);
    if (key)
        json_add_text(&json, key, value);
    agentpod_stream_send(stream, &json, &text);
}

/* --- the end --------------------------------------------------------------------------------- */

static void agentpod_stream_free(struct agentpod_stream *stream)
{
    json_decref(stream->told);
    free(stream->sandbox);
    free((void *) stream->making);
    free(stream);
}

static void agentpod_stream_gone(struct deadline *deadline)
{
    agentpod_stream_free(CONTAINER_OF(deadline, struct agentpod_stream, keep_alive));
}

/* Nobody listens any more. What is asked still answers, and finds that out. */
static void agentpod_stream_leave(struct agentpod_stream *stream)
{
    if (stream->follower)
        turn_follower_close(TAKE_PTR(stream->follower));
    share_release(&stream->claim);
    if (stream->request) {
        stream->request->data = NULL;
        stream->request->on_gone = NULL;
        stream->request->on_drain = NULL;
        stream->request = NULL;
    }
    if (stream->is_asking)
        return;
    if (stream->has_timer)
        deadline_close(&stream->keep_alive, agentpod_stream_gone);
    else
        agentpod_stream_free(stream);
}

static void agentpod_stream_client_left(struct http_request *request)
{
    agentpod_stream_leave(request->data);
}

static void agentpod_stream_finish(struct agentpod_stream *stream)
{
    struct http_request *request = stream->request;

    agentpod_stream_leave(stream);
    if (request)
        http_reply_end(request);
}

static void agentpod_stream_fail(struct agentpod_stream *stream, const char *message)
{
    agentpod_stream_say(stream, "error", "message", message);
    agentpod_stream_finish(stream);
}

/* --- what is told ---------------------------------------------------------------------------- */

static void agentpod_stream_tell_text(struct agentpod_stream *stream, const struct turn_item *item,
                                      json_t *value)
{
    const char *delta = json_string_value(json_object_get(value, "delta"));
    const char *text = json_string_value(json_object_get(value, "text"));
    size_t told = (size_t) json_integer_value(json_object_get(stream->told, item->part));
    size_t length = strlen(delta ? delta : text ? text : "");

    if (delta && length) {
        agentpod_stream_say(stream, "chunk", "content", delta);
        told += length;
    } else if (text && length > told) { /* what was missed of it */
        agentpod_stream_say(stream, "chunk", "content", text + told);
        told = length;
    }
    (void) json_object_set_new(stream->told, item->part, json_integer((json_int_t) told));
}

static void agentpod_stream_tell_progress(struct agentpod_stream *stream, const char *kind,
                                          json_t *value)
{
    const char *state = json_string_value(json_object_get(value, "state"));

    if (!stream->said_ready &&
        (strcmp(kind, "turn.queued") == 0 || (state && strcmp(state, "running") == 0))) {
        stream->said_ready = true;
        agentpod_stream_say(stream, "status", "message", "Sandbox ready");
        agentpod_stream_say(stream, "status", "message", "Initializing AI...");
    }
    if (!stream->said_thinking && strcmp(kind, "turn.started") == 0) {
        stream->said_thinking = true;
        agentpod_stream_say(stream, "status", "message", "AI is thinking...");
    }
}

static bool agentpod_stream_item(void *context, const struct turn_item *item)
{
    struct agentpod_stream *stream = context;
    AUTO(json) json_t *value = NULL;

    if (http_reply_is_full(stream->request))
        return false; /* on_drain goes on */
    value = json_read(item->json, strlen(item->json), NULL, NULL);
    if (!value)
        return true;
    if (strcmp(item->kind, "text") == 0)
        agentpod_stream_tell_text(stream, item, value);
    else
        agentpod_stream_tell_progress(stream, item->kind, value);
    return true;
}

static void agentpod_stream_turn(void *context, const struct error *failure,
                                 const struct turn *turn)
{
    struct agentpod_stream *stream = context;
    AUTO(text) struct text text = TEXT_INIT(FRAME_MAX);
    AUTO(free) char *message = agentpod_parts_member(failure ? "{}" : turn->info, "id");
    AUTO(free) char *session = agentpod_parts_member(failure ? "{}" : turn->info, "sessionID");
    struct json_writer json;

    stream->is_asking = false;
    agentpod_stream_begin_frame(&json, &text, "done");
    json_add_text(&json, "taskId", stream->label);
    json_add_text(&json, "sandboxId", stream->sandbox);
    json_add_text(&json, "sessionId", session);
    json_add_text(&json, "messageId", message);
    json_add_boolean(&json, "createdNewSandbox", stream->is_new);
    agentpod_stream_send(stream, &json, &text);
    agentpod_stream_finish(stream);
}

static void agentpod_stream_task(void *context, const struct error *failure,
                                 const struct task *task)
{
    struct agentpod_stream *stream = context;

    stream->is_asking = false;
    if (!stream->request) {
        agentpod_stream_leave(stream);
    } else if (failure) {
        agentpod_stream_fail(stream, failure->message);
    } else if (task->state != TASK_DONE) {
        agentpod_stream_fail(stream, task->error_message[0] ? task->error_message
                                                            : task_state_text(task->state));
    } else {
        stream->is_asking = true;
        turn_read(stream->api->domain, &stream->caller, NULL, task->turn.text, agentpod_stream_turn,
                  stream);
    }
}

static void agentpod_stream_ended(void *context, const struct error *reason)
{
    struct agentpod_stream *stream = context;

    stream->follower = NULL;
    if (reason) {
        agentpod_stream_fail(stream, reason->message);
        return;
    }
    stream->is_asking = true;
    task_read(stream->api->domain, &stream->caller, stream->task.text, false, agentpod_stream_task,
              stream);
}

/* --- the beginning --------------------------------------------------------------------------- */

static void agentpod_stream_drained(struct http_request *request)
{
    struct agentpod_stream *stream = request->data;

    if (stream->follower)
        turn_follower_resume(stream->follower);
}

static void agentpod_stream_still_here(struct deadline *deadline)
{
    struct agentpod_stream *stream = CONTAINER_OF(deadline, struct agentpod_stream, keep_alive);

    if (!stream->request)
        return;
    if (!http_reply_is_full(stream->request))
        agentpod_stream_say(stream, "keepalive", NULL, NULL);
    deadline_set(deadline, KEEP_ALIVE_MS);
}

static int agentpod_stream_follow(struct agentpod_stream *stream, const struct task *task,
                                  struct error *err)
{
    const struct turn_filter filter = {.task = &stream->task};
    struct conversation *conversation =
        conversation_find(stream->api->domain, &stream->caller, NULL, task->conversation.text, err);

    stream->task = task->id;
    if (!conversation)
        return -1;
    stream->follower = turn_follow(stream->api->domain, conversation, &filter, agentpod_stream_item,
                                   agentpod_stream_ended, stream, err);
    return stream->follower ? 0 : -1;
}

static void agentpod_stream_greet(struct agentpod_stream *stream)
{
    stream->request->on_drain = agentpod_stream_drained;
    stream->has_timer = true;
    deadline_init(stream->api->loop, &stream->keep_alive, agentpod_stream_still_here);
    deadline_set(&stream->keep_alive, KEEP_ALIVE_MS);
    sse_begin(stream->request);
    agentpod_stream_say(stream, "start", "taskId", stream->label);
    agentpod_stream_say(stream, "status", "message",
                        stream->making ? stream->making : stream->status);
}

static void agentpod_stream_created(void *context, const struct error *failure,
                                    const struct task *task, bool is_new)
{
    struct agentpod_stream *stream = context;
    struct http_request *request = stream->request;
    struct error error = failure ? *failure : (struct error) ERROR_INIT;

    (void) is_new;
    stream->is_asking = false;
    if (request && !failure && agentpod_stream_follow(stream, task, &error) == 0) {
        agentpod_stream_greet(stream);
        return;
    }
    agentpod_stream_leave(stream);
    if (request)
        http_reply_error(request, &error);
}

static const char *agentpod_stream_status(const struct sandbox *sandbox)
{
    if (sandbox_status_is_asleep(sandbox->status))
        return "Waking up sandbox...";
    return sandbox->status == SANDBOX_RUNNING ? "Using existing sandbox..." : "Starting sandbox...";
}

/* One sandbox for all quick tasks of a user, unless another is named. */
static void agentpod_stream_choose(struct agentpod_stream *stream, struct agentpod_wish *wish)
{
    struct pool *pool = &stream->request->pool;
    const char *name = wish->spec.sandbox
                           ? wish->spec.sandbox
                           : pool_format(pool, "quick-task-%s", stream->caller.owner.text);
    const struct sandbox *sandbox = sandbox_find(stream->api->domain, &stream->caller, name, NULL);
    AUTO(text) struct text making = TEXT_INIT(256);

    stream->sandbox = mem_copy_text(name);
    if (sandbox || wish->spec.sandbox) {
        wish->spec.sandbox = name;
        wish->spec.sandbox_name = wish->spec.image = NULL;
        stream->status = sandbox ? agentpod_stream_status(sandbox) : "Starting sandbox...";
        return;
    }
    wish->spec.sandbox_name = name;
    if (wish->spec.cleanup == TASK_DESTROY)
        wish->spec.cleanup = TASK_SLEEP; /* it is the next one's, too */
    stream->is_new = true;
    text_format(&making, "Creating %s sandbox...", agentpod_provider_text(wish->provider));
    stream->making = text_take(&making);
}

static int agentpod_stream_take(struct http_request *request, const struct json_place *body,
                                struct error *err)
{
    struct api *api = api_of(request);
    const struct share_asker asker = domain_asker(api->domain, request_caller(request));
    struct agentpod_stream *stream;
    struct agentpod_wish wish;
    struct share_claim claim = SHARE_CLAIM_NONE;

    if (agentpod_wish_read(request, body, &wish, err) < 0 ||
        share_claim(api->shares, &asker, SHARE_EVENT_STREAMS, 1, &claim, err) < 0)
        return -1;
    stream = mem_alloc(sizeof(*stream));
    stream->api = api;
    stream->request = request;
    stream->caller = *request_caller(request);
    stream->told = json_object();
    stream->claim = claim;
    stream->is_asking = true;
    memcpy(stream->label, wish.label, sizeof(stream->label));
    agentpod_stream_choose(stream, &wish);
    request->data = stream;
    request->on_gone = agentpod_stream_client_left;
    task_create(api->domain, &stream->caller, &wish.spec, agentpod_stream_created, stream);
    return 0;
}

void agentpod_task_stream(struct http_request *request)
{
    json_body_take(request, agentpod_stream_take);
}
