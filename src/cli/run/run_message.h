/* The client's half of /burrow/run (docs/agent-protocol.md): what is said to an agent, and what it
 * answers. The agent runs beside the command and is not trusted: whatever it sends becomes one of
 * the messages below or an error. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/* Input that may be sent before the agent says that some was taken. */
#define RUN_MESSAGE_WINDOW ((size_t) 256 * 1024)
/* The most that an agent can raise it to. */
#define RUN_MESSAGE_WINDOW_MAX ((size_t) 4 * 1024 * 1024)
/* Longest request: arguments and environment. */
#define RUN_MESSAGE_REQUEST_MAX ((size_t) 4 * 1024 * 1024)

enum run_message_channel { RUN_MESSAGE_STDIN, RUN_MESSAGE_STDOUT, RUN_MESSAGE_STDERR };

/* --- to the agent --------------------------------------------------------------------------- */

struct run_variable {
    const char *name, *value;
};

struct run_message_request {
    const char *const *command; /* NULL at the end */
    const char *directory;      /* NULL: the usual one */
    const char *user;           /* in the sandbox; NULL: the usual one */
    const struct run_variable *variables;
    size_t variable_count;
    uint64_t timeout_ms; /* 0: none */
    uint16_t columns;    /* 0: no terminal */
    uint16_t rows;
    const char *terminal_name; /* NULL: the agent's choice */
};

/* Each appends one JSON text. Texts must be UTF-8. -1 with ERR_TOO_LARGE. */
int run_message_write_request(const struct run_message_request *request, struct text *text,
                              struct error *err);
void run_message_write_resize(uint16_t columns, uint16_t rows, struct text *text);
/* Signals without a name of their own (real-time ones) are left out: nothing is appended. */
void run_message_write_signal(int number, struct text *text);
void run_message_write_eof(struct text *text);
void run_message_write_close(enum run_message_channel channel, struct text *text);

/* --- from the agent ------------------------------------------------------------------------- */

/* How the command ended, or why there was none. */
enum run_ending {
    RUN_ENDED_STATUS,
    RUN_ENDED_SIGNAL,
    RUN_ENDED_TIME,        /* its time was over */
    RUN_ENDED_NO_PROGRAM,  /* there is no such program */
    RUN_ENDED_NOT_STARTED, /* there is, but it cannot be run */
    RUN_ENDED_FAILURE,     /* something else, or the agent was lost */
};

#define RUN_OUTCOME_TEXT_MAX 256

struct run_outcome {
    enum run_ending ending;
    int value;                       /* status or signal */
    char text[RUN_OUTCOME_TEXT_MAX]; /* for the last three: why, printable */
};

enum run_message_type {
    RUN_MESSAGE_STARTED,
    RUN_MESSAGE_WINDOW_GROWS,
    RUN_MESSAGE_INPUT_CLOSED,
    RUN_MESSAGE_ENDED,
};

struct run_message {
    enum run_message_type type;
    size_t bytes;               /* of the window */
    struct run_outcome outcome; /* of the end */
};

/* -1 with ERR_UPSTREAM: nothing an agent of ours would say. */
int run_message_read(const char *bytes, size_t length, struct run_message *ret_message,
                     struct error *err);

/* The exit status that tells an outcome, as shells do: the status, 128 + signal, 124 for the time,
 * 127, 126, 125. */
int run_outcome_status(const struct run_outcome *outcome);

/* Fill in RUN_ENDED_FAILURE and a sentence. */
void run_outcome_fail(struct run_outcome *outcome, const char *text);
