#include "api/agentpod/agentpod_question.h"

#include <string.h>

#include "api/preview/preview.h"
#include "api/preview/preview_origin.h"
#include "base/auto.h"
#include "base/memory.h"
#include "json/json_read.h"

#define OPENCODE_PORT 4096
#define AT_ONCE_MS    1

struct agentpod_question {
    struct preview_lease lease;
    struct http_exchange *exchange; /* NULL: not sent yet, or over */
    struct deadline deadline;       /* of the answer; or, with a failure, of telling it */
    struct text reply;
    struct error failure;
    char *method, *target, *body; /* owned; body may be NULL */
    agentpod_answered *answered;
    void *context;
    bool is_over;
};

static void agentpod_question_gone(struct deadline *deadline)
{
    struct agentpod_question *question = CONTAINER_OF(deadline, struct agentpod_question, deadline);

    text_done(&question->reply);
    free(question->method);
    free(question->target);
    free(question->body);
    free(question);
}

static void agentpod_question_end(struct agentpod_question *question)
{
    question->is_over = true;
    if (question->exchange)
        http_exchange_cancel(TAKE_PTR(question->exchange));
    preview_lease_end(&question->lease);
    deadline_close(&question->deadline, agentpod_question_gone);
}

static void agentpod_question_tell(struct agentpod_question *question, const struct error *failure,
                                   const struct agentpod_answer *answer)
{
    agentpod_answered *answered = question->answered;
    void *context = question->context;

    agentpod_question_end(question); /* first: whoever is told may ask the next */
    answered(context, failure, answer);
}

static void agentpod_question_due(struct deadline *deadline)
{
    struct agentpod_question *question = CONTAINER_OF(deadline, struct agentpod_question, deadline);
    struct error failure = question->failure;

    if (question->is_over)
        return;
    if (failure.code == ERR_NONE)
        (void) error_set(&failure, ERR_UPSTREAM_TIMEOUT, 0, "OpenCode did not answer %s %.80s",
                         question->method, question->target);
    agentpod_question_tell(question, &failure, NULL);
}

/* Told from the loop, whoever found it out from inside. */
static void agentpod_question_fail(struct agentpod_question *question, const struct error *failure)
{
    question->failure = *failure;
    (void) error_wrap(&question->failure, "ask OpenCode");
    deadline_set(&question->deadline, AT_ONCE_MS);
}

/* --- the exchange ---------------------------------------------------------------------------- */

static void agentpod_question_nothing(struct http_exchange *exchange)
{
    (void) exchange; /* its head is read at the end */
}

static void agentpod_question_bytes(struct http_exchange *exchange, const char *bytes,
                                    size_t length)
{
    struct agentpod_question *question = http_exchange_data(exchange);
    struct error failure;

    text_append_bytes(&question->reply, bytes, length);
    if (!question->reply.overflowed)
        return;
    (void) error_set(&failure, ERR_TOO_LARGE, 0, "OpenCode's answer is larger than %zu MB",
                     AGENTPOD_ANSWER_MAX >> 20);
    agentpod_question_tell(question, &failure, NULL);
}

static void agentpod_question_ended(struct http_exchange *exchange)
{
    struct agentpod_question *question = http_exchange_data(exchange);
    AUTO(text) struct text kept = question->reply;
    const struct json_limits limits = {
        .size = kept.length, .depth = JSON_DEPTH_MAX, .values = JSON_VALUES_MAX};
    AUTO(json) json_t *json = json_read(text_string(&kept), kept.length, &limits, NULL);
    const struct agentpod_answer answer = {
        .status = http_exchange_head(exchange)->status,
        .bytes = text_string(&kept),
        .length = kept.length,
        .json = json_is_object(json) ? json : NULL,
    };

    question->reply = (struct text) TEXT_INIT(0);
    question->exchange = NULL;
    agentpod_question_tell(question, NULL, &answer);
}

static void agentpod_question_failed(struct http_exchange *exchange, const struct error *error)
{
    struct agentpod_question *question = http_exchange_data(exchange);
    const struct error failure = *error;

    question->exchange = NULL;
    agentpod_question_tell(question, &failure, NULL);
}

static const struct http_exchange_events events = {
    .on_head = agentpod_question_nothing,
    .on_body = agentpod_question_bytes,
    .on_end = agentpod_question_ended,
    .on_failure = agentpod_question_failed,
};

static void agentpod_question_send(struct agentpod_question *question)
{
    static const struct http_header headers[] = {
        HTTP_HEADER("Host", "127.0.0.1"),
        HTTP_HEADER("Accept", "application/json"),
        HTTP_HEADER("Accept-Encoding", "identity"),
        HTTP_HEADER("Content-Type", "application/json"),
    };
    size_t length = question->body ? strlen(question->body) : 0;
    const struct http_exchange_request request = {
        .method = question->method,
        .target = question->target,
        .headers = headers,
        .header_count = ARRAY_COUNT(headers) - (length ? 0 : 1),
        .body_length = (int64_t) length,
        .send_length = strcmp(question->method, "GET") != 0,
    };

    question->exchange =
        http_exchange_start(preview_lease_origin(&question->lease), &request, &events, question);
    if (length)
        http_exchange_write(question->exchange, question->body, length);
    http_exchange_end(question->exchange);
}

static void agentpod_question_granted(struct preview_lease *lease, const struct error *failure)
{
    struct agentpod_question *question = CONTAINER_OF(lease, struct agentpod_question, lease);

    if (failure)
        agentpod_question_fail(question, failure);
    else
        agentpod_question_send(question);
}

struct agentpod_question *agentpod_question_new(struct api *api, struct sandbox *sandbox,
                                                const struct agentpod_ask *ask,
                                                agentpod_answered *answered, void *context)
{
    struct agentpod_question *question = mem_alloc(sizeof(*question));

    question->reply = (struct text) TEXT_INIT(AGENTPOD_ANSWER_MAX);
    question->method = mem_copy_text(ask->method);
    question->target = mem_copy_text(ask->target);
    question->body = ask->body ? mem_copy_text(ask->body) : NULL;
    question->answered = answered;
    question->context = context;
    deadline_init(api->loop, &question->deadline, agentpod_question_due);
    deadline_set(&question->deadline, ask->timeout_ms);
    preview_lease_begin(preview_origins_of(api->preview), sandbox, OPENCODE_PORT, &question->lease,
                        agentpod_question_granted);
    return question;
}

void agentpod_question_drop(struct agentpod_question *question)
{
    if (question && !question->is_over)
        agentpod_question_end(question);
}
