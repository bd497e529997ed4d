/* What the domain asks of agents, as HTTP. */
#include <string.h>

#include "api/agent/inquiry.h"
#include "base/auto.h"
#include "json/json_read.h"
#include "json/json_write.h"

/* An agent that does not answer in this time is not waited for. The times for quiesce are said to
 * it, too: it stops waiting first. */
#define ANSWER_MS       5000
#define BEGIN_MS        15000
#define QUIESCE_MS      7000
#define QUIESCE_REQUEST "{\"timeoutMs\":5000,\"holdMs\":30000}"

static const struct http_exchange_events events = {
    .on_head = inquiry_got_head,
    .on_body = inquiry_got_body,
    .on_end = inquiry_got_end,
    .on_failure = inquiry_got_failure,
};

static void send_inquiry(struct inquiry *inquiry, struct http_origin *origin, const char *method,
                         const char *target, const char *body)
{
    static const struct http_header headers[] = {
        HTTP_HEADER("Host", "agent"),
        HTTP_HEADER("Content-Type", "application/json"),
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
    struct http_origin *origin;
    struct inquiry *inquiry = inquiry_new(agents, sandbox, timeout_ms, &origin);

    if (origin)
        send_inquiry(inquiry, origin, method, target, body);
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
    AUTO(text) struct text kept = TEXT_INIT(INQUIRY_REPLY_MAX);
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

static void answer_text(struct inquiry *inquiry, const struct error *failure)
{
    inquiry->done.text(inquiry->context, failure, failure ? NULL : text_string(&inquiry->reply));
}

void agents_ask_trace(struct agents *agents, const struct id *sandbox, const struct id *request,
                      agents_text_done *done, void *context)
{
    char target[64];
    struct inquiry *inquiry;

    (void) snprintf(target, sizeof(target), "/burrow/trace?request=%s", request->text);
    inquiry = inside_agent_ask(agents, sandbox, "GET", target, NULL, ANSWER_MS);
    inquiry->answer = answer_text;
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
    AUTO(text) struct text body = TEXT_INIT(INQUIRY_REPLY_MAX);

    text_append(&body, "{\"replace\":true,\"env\":");
    text_append(&body, variables);
    text_append(&body, "}");
    ask_plain(self, sandbox, "PUT", "/burrow/environment", text_string(&body), BEGIN_MS, done,
              context);
}

static void ask_way_out(void *self, const struct id *sandbox, const char *json, inside_done *done,
                        void *context)
{
    ask_plain(self, sandbox, "PUT", "/burrow/way-out", json, BEGIN_MS, done, context);
}

/* Kept alive by nobody: it is no work that keeps the sandbox awake unless it says so itself. */
static void ask_start_process(void *self, const struct id *sandbox, const char *command,
                              inside_done *done, void *context)
{
    AUTO(text) struct text body = TEXT_INIT(INQUIRY_REPLY_MAX);
    struct json_writer json;

    json_document_begin(&json, &body);
    json_add_text(&json, "command", command);
    (void) json_document_end(&json); /* a command is short: it fits */
    ask_plain(self, sandbox, "POST", "/api/process/start", text_string(&body), ANSWER_MS, done,
              context);
}

/* What went wrong is said in its reply: a message of an agent, which is not trusted. */
static void answer_operation(struct inquiry *inquiry, const struct error *failure)
{
    AUTO(json)
    json_t *body = failure && inquiry->reply.length
                       ? json_read(text_string(&inquiry->reply), inquiry->reply.length, NULL, NULL)
                       : NULL;
    const char *message = json_string_value(json_object_get(body, "message"));
    struct error said = ERROR_INIT;

    if (failure && message) {
        (void) error_set(&said, failure->code, 0, "%.250s", message);
        failure = &said;
    }
    inquiry->done.text(inquiry->context, failure, failure ? NULL : text_string(&inquiry->reply));
}

static void ask_operate(void *self, const struct id *sandbox, enum inside_operation operation,
                        const char *json, uint64_t timeout_ms, inside_text_done *done,
                        void *context)
{
    static const char *const targets[] = {
        [INSIDE_EXECUTE] = "/api/execute",
        [INSIDE_CHECK_OUT] = "/api/git/checkout",
        [INSIDE_WRITE_FILE] = "/api/write",
    };
    struct inquiry *inquiry =
        inside_agent_ask(self, sandbox, "POST", targets[operation], json, timeout_ms);

    inquiry->answer = answer_operation;
    inquiry->done.text = done;
    inquiry->context = context;
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
        .set_way_out = ask_way_out,
        .operate = ask_operate,
        .extract = inside_extract,
    };
}
