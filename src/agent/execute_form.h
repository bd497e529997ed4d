/* The two forms of an answer to an execute request: one JSON document, or a stream of events.
 *
 * Each is told what happens to the command and writes to the client; see agent/execute.h. */
#pragma once

#include "agent/agent.h"
#include "agent/execute_request.h"
#include "agent/output_text.h"

struct execute_form;

/* One request under way. Outlives its request by a moment: the strings of `ask` do not. */
struct execute_call {
    struct agent *agent;
    struct http_request *request;
    const struct execute_form *form;
    const char *operation;
    json_t *body; /* owned: what the strings of `ask` point into */
    struct execute_request ask;
    struct exec *exec; /* NULL: not started, or over */
    uint64_t started_ms;
    struct output_text encoder[EXEC_OUTPUTS];

    /* Of the JSON form. */
    struct text held[EXEC_OUTPUTS]; /* owned: raw output */
    bool truncated[EXEC_OUTPUTS];
    int live; /* the output that is being sent already, or -1 */
};

struct execute_form {
    void (*start)(struct execute_call *call);
    void (*output)(struct execute_call *call, enum exec_output which, const char *bytes,
                   size_t length);
    /* The command has ended: complete the answer, which ends the request. `note` is a last line of
     * stderr of our own, or "". */
    void (*end)(struct execute_call *call, const struct exec_result *result, const char *note);
};

extern const struct execute_form execute_form_json;
extern const struct execute_form execute_form_events;

/* What clients see of the end: the exit status, 128 + signal, 124 for a timeout; -1: unknown. */
int execute_exit_code(const struct exec_result *result);

/* "SIGKILL" and so on when a signal ended the command, else NULL. Written to `ret_text`. */
#define EXECUTE_SIGNAL_SIZE 24
const char *execute_signal_name(const struct exec_result *result,
                                char ret_text[static EXECUTE_SIGNAL_SIZE]);
