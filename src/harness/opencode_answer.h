/* An answer to what an OpenCode server asks: a permission, or a question. */
#pragma once

#include "harness/drivers_internal.h"
#include "harness/opencode_server.h"

struct opencode_answer {
    const char *request; /* its id: plain (opencode_id_is_plain) */
    const char *reply;   /* "once", "always", "reject"; or the answers as JSON, NULL to refuse */
    const char *message; /* to a permission; may be NULL */
    bool is_question;
    harness_done *done; /* called once, from the loop */
    void *context;
};

/* What is given is copied. */
void opencode_answer_send(struct drivers *drivers, struct opencode_server *server,
                          const char *session, const struct opencode_answer *answer);
