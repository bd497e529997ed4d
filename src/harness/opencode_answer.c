#include "harness/opencode_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "json/json_write.h"

#define ANSWER_MS  20000
#define ANSWER_MAX ((size_t) 1024 * 1024)
#define TARGET_MAX 512

struct answer_wait {
    harness_done *done;
    void *context;
};

static void opencode_answer_heard(void *context, const struct error *failure,
                                  const struct query_reply *reply)
{
    struct answer_wait *wait = context;
    struct error err;

    if (!failure && (reply->status < 200 || reply->status >= 300)) {
        (void) error_set(&err, reply->status == 404 ? ERR_NOT_FOUND : ERR_UPSTREAM, 0,
                         "the agent answered with status %d: %.200s", reply->status, reply->bytes);
        failure = &err;
    }
    wait->done(wait->context, failure);
    free(wait);
}

/* 1.0 has another place for it, and other words. */
static void opencode_answer_permission(const struct opencode_answer *answer, const char *session,
                                       bool is_old, char *target, struct json_writer *json)
{
    if (is_old)
        (void) snprintf(target, TARGET_MAX, "/session/%s/permissions/%s", session, answer->request);
    else
        (void) snprintf(target, TARGET_MAX, "/permission/%s/reply", answer->request);
    json_add_text(json, is_old ? "response" : "reply", answer->reply);
    if (answer->message && !is_old)
        json_add_text(json, "message", answer->message);
}

static void opencode_answer_question(const struct opencode_answer *answer, char *target,
                                     struct json_writer *json)
{
    (void) snprintf(target, TARGET_MAX, "/question/%s/%s", answer->request,
                    answer->reply ? "reply" : "reject");
    if (!answer->reply)
        return;
    json_key(json, "answers");
    json_put_raw(json, answer->reply, strlen(answer->reply));
}

void opencode_answer_send(struct drivers *drivers, struct opencode_server *server,
                          const char *session, const struct opencode_answer *answer)
{
    AUTO(text) struct text body = TEXT_INIT(ANSWER_MAX);
    char target[TARGET_MAX];
    struct query_request request = {.method = "POST", .target = target, .timeout_ms = ANSWER_MS};
    struct json_writer json;
    struct answer_wait *wait;
    struct error err;

    json_document_begin(&json, &body);
    if (answer->is_question)
        opencode_answer_question(answer, target, &json);
    else
        opencode_answer_permission(answer, session, opencode_server_is_old(server), target, &json);
    if (json_document_end(&json) < 0) {
        (void) error_set(&err, ERR_TOO_LARGE, 0, "the answer is too large");
        drivers_answer_later(drivers, answer->done, answer->context, &err);
        return;
    }
    wait = mem_alloc(sizeof(*wait));
    *wait = (struct answer_wait){.done = answer->done, .context = answer->context};
    request.body = text_string(&body);
    (void) opencode_server_ask(server, &request, opencode_answer_heard, wait);
}
