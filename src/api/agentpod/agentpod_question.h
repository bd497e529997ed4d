/* One question to the OpenCode server of a running sandbox, over a connection of the previews' kind.
 * The server is not trusted: its answer has a time and a size. Answered once, from the loop, never
 * from inside the call; after agentpod_question_drop not at all. */
#pragma once

#include <jansson.h>

#include "api/http/api.h"
#include "domain/sandbox/sandbox.h"

#define AGENTPOD_ANSWER_MAX ((size_t) 32 * 1024 * 1024)

struct agentpod_question;

struct agentpod_ask {
    const char *method;
    const char *target;  /* path and query */
    const char *body;    /* JSON; NULL: none */
    uint64_t timeout_ms; /* until all of the answer is there */
};

struct agentpod_answer {
    int status;
    const char *bytes; /* borrowed for the call, as `json` */
    size_t length;
    json_t *json; /* NULL: no JSON object */
};

/* `failure`: it was not answered; then `answer` is NULL. */
typedef void agentpod_answered(void *context, const struct error *failure,
                               const struct agentpod_answer *answer);

/* What `ask` points to is copied. */
struct agentpod_question *agentpod_question_new(struct api *api, struct sandbox *sandbox,
                                                const struct agentpod_ask *ask,
                                                agentpod_answered *answered, void *context);

/* Nobody wants to know any more. Accepts NULL. */
void agentpod_question_drop(struct agentpod_question *question);
