/* What the domain asks of agents, as HTTP. Each question is an inquiry: one exchange with a time
 * limit and a bounded reply, answered once. */
#include <stdio.h>
#include <string.h>

#include "api/agent/agents_internal.h"
#include "base/auto.h"
#include "base/memory.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define REPLY_MAX ((size_t) 768 * 1024) /* fits a column of the store */

/* An agent that does not answer in this time is not waited for. The times for quiesce are said to
 * it, too: it stops waiting first. */
#define ANSWER_MS       5000
#define BEGIN_MS        15000
#define QUIESCE_MS      7000
#define QUIESCE_REQUEST "{\"timeoutMs\":5000,\"holdMs\":30000}"

struct inquiry;

struct inquiry {
    struct list link;
    struct agents *agents;
    struct http_exchange *exchange; /* NULL: over, or never begun */
    struct deadline deadline;
    struct loop_task refuse; /* when it could not even be asked */
    struct text reply;
    struct error failure;
    /* Reads a good reply and answers; or answers the failure. */
    void (*answer)(struct inquiry *inquiry, const struct error *failure);
    union {
        inside_activity_done *activity;
        inside_text_done *text;
        inside_done *plain;
    } done;
    void *context;
    bool is_answered;
};

/* --- life of an inquiry ---------------------------------------------------------------------- */

static void inquiry_gone(struct deadline *deadline)
{
    struct inquiry *inquiry = CONTAINER_OF(deadline, struct inquiry, deadline);
    struct agents *agents = inquiry->agents;

    text_done(&inquiry->reply);
    free(inquiry);
    agents_part_closed(agents);
}

/* The one answer, and the end. */
static void inside_agent_finish(struct inquiry *inquiry, const struct error *failure)
{
    if (inquiry->is_answered)
        return;
    inquiry->is_answered = true;
    list_remove(&inquiry->link);
    loop_task_cancel(&inquiry->refuse);
    if (inquiry->exchange)
        http_exchange_cancel(TAKE_PTR(inquiry->exchange));
    inquiry->answer(inquiry, failure);
    deadline_close(&inquiry->deadline, inquiry_gone);
}

static void inside_agent_refuse(struct loop_task *task)
{
    struct inquiry *inquiry = CONTAINER_OF(task, struct inquiry, refuse);

    inside_agent_finish(inquiry, &inquiry->failure);
}

static void inside_agent_time_is_up(struct deadline *deadline)
{
    struct inquiry *inquiry = CONTAINER_OF(deadline, struct inquiry, deadline);

    (void) error_set(&inquiry->failure, ERR_UPSTREAM_TIMEOUT, 0, "the agent does not answer");
    inside_agent_finish(inquiry, &inquiry->failure);
}

static void inside_agent_got_head(struct http_exchange *exchange)
{
    (void) exchange; /* the status is looked at in the end */
}

static void inside_agent_got_body(struct http_exchange *exchange, const char *bytes, size_t length)
{
    struct inquiry *inquiry = http_exchange_data(exchange);

    text_append_bytes(&inquiry->reply, bytes, length);
    if (!inquiry->reply.overflowed)
        return;
    (void) error_set(&inquiry->failure, ERR_TOO_LARGE, 0, "the agent's answer is too large");
    inside_agent_finish(inquiry, &inquiry->failure);
}

static void inside_agent_got_end(struct http_exchange *exchange)
{
    struct inquiry *inquiry = http_exchange_data(exchange);
    int status = http_exchange_head(exchange)->status;

    inquiry->exchange = NULL;
    if (status >= 200 && status < 300) {
        inside_agent_finish(inquiry, NULL);
        return;
    }
    (void) error_set(&inquiry->failure, ERR_UPSTREAM, 0, "the agent answered with status %d",
                     status);
    inside_agent_finish(inquiry, &inquiry->failure);
}

static void got_failure(struct http_exchange *exchange, const struct error *error)
{
    struct inquiry *inquiry = http_exchange_data(exchange);

    inquiry->exchange = NULL;
    inquiry->failure = *error;
    inside_agent_finish(inquiry, &inquiry->failure);
}

static const struct http_exchange_events events = {
    .on_head = inside_agent_got_head,
    .on_body = inside_agent_got_body,
    .on_end = inside_agent_got_end,
    .on_failure = got_failure,
};

#define HEADER(key, text)                                                                          \
    {                                                                                              \
        .name = (key), .value = (text), .name_length = sizeof(key) - 1,                            \
        .value_length = sizeof(text) - 1                                                           \
    }

static void send_inquiry(struct inquiry *inquiry, struct http_origin *origin, const char *method,
                         const char *target, const char *body)
{
    static const struct http_header headers[] = {
        HEADER("Host", "agent"),
        HEADER("Content-Type", "application/json"),
    };
    size_t length = body ? strlen(body) : 0;
    struct http_exchange_request request = {.method = method,
                                            .target = target,
                                            .headers = headers,
                                            .header_count = ARRAY_COUNT(headers),
                                            .body_length = (int64_t) length,
                                            .send_length = body != NULL};

    inquiry->exchange = http_exchange_start(origin, &request, &events, inquiry);
    if (length)
        http_exchange_write(inquiry->exchange, body, length);
    http_exchange_end(inquiry->exchange);
}

static struct inquiry *inside_agent_ask(struct agents *agents, const struct id *sandbox,
                                        const char *method, const char *target, const char *body,
                                        uint64_t timeout_ms)
{
    struct inquiry *inquiry = mem_alloc(sizeof(*inquiry));
    struct http_origin *origin = agents_origin(agents, sandbox, &inquiry->failure);

    inquiry->agents = agents;
    inquiry->reply = (struct text) TEXT_INIT(REPLY_MAX);
    agents->open++;
    list_init(&inquiry->link);
    list_append(&agents->inquiries, &inquiry->link);
    loop_task_init(&inquiry->refuse, inside_agent_refuse);
    deadline_init(agents->loop, &inquiry->deadline, inside_agent_time_is_up);
    deadline_set(&inquiry->deadline, timeout_ms);
    if (origin)
        send_inquiry(inquiry, origin, method, target, body);
    else
        loop_defer(agents->loop, &inquiry->refuse);
    return inquiry;
}

/* The reply as JSON; NULL with a failure. Owned. */
static json_t *read_reply(struct inquiry *inquiry, struct json_place *ret_root)
{
    struct error *err = &inquiry->failure;
    AUTO(json)
    json_t *body = json_read(text_string(&inquiry->reply), inquiry->reply.length, NULL, err);

    if (body && json_root_object(body, ret_root, err) == 0)
        return TAKE_PTR(body);
    (void) error_wrap(err, "the agent's answer");
    err->code = ERR_UPSTREAM;
    return NULL;
}

/* --- questions ------------------------------------------------------------------------------- */

static int read_activity(struct inquiry *inquiry, struct inside_activity *ret_activity)
{
    struct json_place root = {.value = NULL};
    AUTO(json) json_t *body = read_reply(inquiry, &root);
    int64_t running = 0, idle_ms = 0;

    if (!body)
        return -1;
    if (json_field_integer(&root, "running", JSON_REQUIRED, 0, INT64_MAX, &running,
                           &inquiry->failure) < 0 ||
        json_field_integer(&root, "idleMs", JSON_REQUIRED, 0, INT64_MAX, &idle_ms,
                           &inquiry->failure) < 0) {
        inquiry->failure.code = ERR_UPSTREAM;
        return -1;
    }
    /* What is attached or running says 0 by itself: terminals, streams, busy processes. */
    ret_activity->is_busy = running > 0 || idle_ms == 0;
    ret_activity->idle_ms = running > 0 ? 0 : (uint64_t) idle_ms;
    return 0;
}

static void answer_activity(struct inquiry *inquiry, const struct error *failure)
{
    struct inside_activity activity = {.is_busy = false};

    if (!failure && read_activity(inquiry, &activity) < 0)
        failure = &inquiry->failure;
    inquiry->done.activity(inquiry->context, failure, failure ? NULL : &activity);
}

static void ask_activity(void *self, const struct id *sandbox, inside_activity_done *done,
                         void *context)
{
    struct inquiry *inquiry =
        inside_agent_ask(self, sandbox, "GET", "/burrow/activity", NULL, ANSWER_MS);

    inquiry->answer = answer_activity;
    inquiry->done.activity = done;
    inquiry->context = context;
}

static void answer_plain(struct inquiry *inquiry, const struct error *failure)
{
    inquiry->done.plain(inquiry->context, failure);
}

static void answer_quiesce(struct inquiry *inquiry, const struct error *failure)
{
    struct json_place root = {.value = NULL};
    AUTO(json) json_t *body = failure ? NULL : read_reply(inquiry, &root);
    bool is_quiet = false;

    if (body &&
        json_field_boolean(&root, "quiet", JSON_REQUIRED, &is_quiet, &inquiry->failure) == 0 &&
        !is_quiet)
        (void) error_set(&inquiry->failure, ERR_CONFLICT, 0, "something is still running");
    if (!failure && !is_quiet)
        failure = &inquiry->failure;
    inquiry->done.plain(inquiry->context, failure);
}

static void ask_plain(void *self, const struct id *sandbox, const char *method, const char *target,
                      const char *body, uint64_t timeout_ms, inside_done *done, void *context)
{
    struct inquiry *inquiry = inside_agent_ask(self, sandbox, method, target, body, timeout_ms);

    inquiry->answer = answer_plain;
    inquiry->done.plain = done;
    inquiry->context = context;
}

static void ask_quiesce(void *self, const struct id *sandbox, inside_done *done, void *context)
{
    struct inquiry *inquiry =
        inside_agent_ask(self, sandbox, "POST", "/burrow/quiesce", QUIESCE_REQUEST, QUIESCE_MS);

    inquiry->answer = answer_quiesce;
    inquiry->done.plain = done;
    inquiry->context = context;
}

static void ask_resume(void *self, const struct id *sandbox, inside_done *done, void *context)
{
    ask_plain(self, sandbox, "POST", "/burrow/resume", "{}", ANSWER_MS, done, context);
}

/* {"sessions": [...]} of the reply, which is what the next agent is given. */
static void answer_save(struct inquiry *inquiry, const struct error *failure)
{
    struct json_place root = {.value = NULL}, sessions;
    AUTO(json) json_t *body = failure ? NULL : read_reply(inquiry, &root);
    AUTO(text) struct text kept = TEXT_INIT(REPLY_MAX);
    struct json_writer json;

    if (!body ||
        json_field_array(&root, "sessions", JSON_REQUIRED, &sessions, &inquiry->failure) < 0) {
        inquiry->done.text(inquiry->context, failure ? failure : &inquiry->failure, NULL);
        return;
    }
    json_document_begin(&json, &kept);
    json_key(&json, "sessions");
    json_put_value(&json, sessions.value);
    if (json_document_end(&json) < 0) {
        (void) error_set(&inquiry->failure, ERR_TOO_LARGE, 0, "the sessions are too large to keep");
        inquiry->done.text(inquiry->context, &inquiry->failure, NULL);
        return;
    }
    inquiry->done.text(inquiry->context, NULL, text_string(&kept));
}

static void ask_save(void *self, const struct id *sandbox, inside_text_done *done, void *context)
{
    struct inquiry *inquiry =
        inside_agent_ask(self, sandbox, "GET", "/burrow/sessions", NULL, ANSWER_MS);

    inquiry->answer = answer_save;
    inquiry->done.text = done;
    inquiry->context = context;
}

static void ask_restore(void *self, const struct id *sandbox, const char *text, inside_done *done,
                        void *context)
{
    ask_plain(self, sandbox, "PUT", "/burrow/sessions", text, BEGIN_MS, done, context);
}

static void ask_environment(void *self, const struct id *sandbox, const char *variables,
                            inside_done *done, void *context)
{
    AUTO(text) struct text body = TEXT_INIT(REPLY_MAX);

    text_append(&body, "{\"replace\":true,\"env\":");
    text_append(&body, variables);
    text_append(&body, "}");
    ask_plain(self, sandbox, "PUT", "/burrow/environment", text_string(&body), BEGIN_MS, done,
              context);
}

/* Kept alive by nobody: it is no work that keeps the sandbox awake unless it says so itself. */
static void ask_start_process(void *self, const struct id *sandbox, const char *command,
                              inside_done *done, void *context)
{
    AUTO(text) struct text body = TEXT_INIT(REPLY_MAX);
    struct json_writer json;

    json_document_begin(&json, &body);
    json_add_text(&json, "command", command);
    (void) json_document_end(&json); /* a command is short: it fits */
    ask_plain(self, sandbox, "POST", "/api/process/start", text_string(&body), ANSWER_MS, done,
              context);
}

/* --- for agents.c ---------------------------------------------------------------------------- */

void inside_agent_init(struct agents *agents)
{
    agents->inside = (struct inside){
        .self = agents,
        .activity = ask_activity,
        .quiesce = ask_quiesce,
        .resume = ask_resume,
        .save = ask_save,
        .restore = ask_restore,
        .set_environment = ask_environment,
        .start_process = ask_start_process,
        .extract = inside_extract,
    };
}

void inside_agent_close(struct agents *agents)
{
    struct error closing;
    struct list *first;

    (void) error_set(&closing, ERR_UNAVAILABLE, 0, "the daemon is shutting down");
    while ((first = list_first(&agents->inquiries)))
        inside_agent_finish(CONTAINER_OF(first, struct inquiry, link), &closing);
}
