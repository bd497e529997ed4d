/* The two forms of an answer to an execute request: one JSON document, or a stream of events.
 *
 * Each is told what happens to the command and writes to the client; see agent/command/execute.h.
 */
#pragma once

#include "agent/agent.h"
#include "agent/call.h"
#include "agent/command/execute_request.h"
#include "agent/output_text.h"
#include "agent/session/session_output.h"
#include "agent/session/session_set.h"

struct execute_form;

/* One call under way. Outlives it by a moment: the strings of `ask` do not. */
struct execute_call {
    struct agent *agent;
    struct call *call;
    const struct execute_form *form;
    struct execute_request ask;
    struct exec *exec;              /* NULL: not started, over, or in a session */
    struct session_command command; /* when it is in one */
    bool in_session;
    uint64_t started_ms;
    struct output_text encoder[EXEC_OUTPUTS];

    /* Of the JSON form. */
    struct session_trim trim[EXEC_OUTPUTS];
    struct text held[EXEC_OUTPUTS]; /* owned: raw output */
    bool truncated[EXEC_OUTPUTS];
    size_t live_room; /* bytes that may still be sent of the output that is live */
    int live;         /* the output that is being sent already, or -1 */

    /* Of the events. */
    struct session_lines lines[EXEC_OUTPUTS];
};

struct execute_form {
    void (*start)(struct execute_call *call);
    void (*output)(struct execute_call *call, enum exec_output which, const char *bytes,
                   size_t length);
    /* The command has ended: complete the answer, which ends the call. `note` is a last line of
     * stderr of our own, or "". */
    void (*end)(struct execute_call *call, const struct exec_result *result, const char *note);
    /* It did not end well, and the answer was begun: complete it as far as that is possible. */
    void (*fail)(struct execute_call *call, const struct api_error *error);
    bool tells_exit; /* the end of a session's shell is an end like any other */
};

extern const struct execute_form execute_form_json;
extern const struct execute_form execute_form_events;

/* What clients see of the end: the exit status, 128 + signal, 124 for a timeout; -1: unknown. */
int execute_exit_code(const struct exec_result *result);

/* "SIGKILL" and so on when a signal ended the command, else NULL. Written to `ret_text`. */
#define EXECUTE_SIGNAL_SIZE 24
const char *execute_signal_name(const struct exec_result *result,
                                char ret_text[static EXECUTE_SIGNAL_SIZE]);

/* Whether output is to be made as sessions have it: bytes as base64 stay what they are. */
static inline bool execute_is_text_of_session(const struct execute_call *call)
{
    return call->in_session && !call->ask.base64;
}
