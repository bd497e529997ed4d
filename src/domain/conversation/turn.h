/* Turns: one prompt to an agent, and all that follows until it rests.
 *
 *     queued ──► running ◄──► waiting (a permission or a question)
 *        │          │            │
 *        └──────────┴────────────┴──► done, failed, cancelled
 *
 * One turn of a conversation runs, at most TURN_QUEUE_MAX wait behind it. A turn that is not over
 * holds a use of its sandbox from the moment it is sent, so that it stays awake.
 *
 * Never prompted twice: the row says that it is sent before it is sent. After a restart a turn that
 * was sent is looked for at its agent (harness.find) and followed, or fails as agent_lost; one that
 * was not is still queued.
 *
 * Turns that are not over are in memory; all are rows. What a callback is given is borrowed for the
 * call. Answers come exactly once, from the loop, never from inside a call. */
#pragma once

#include "domain/conversation/conversation.h"

#define TURN_QUEUE_MAX      10
#define TURN_INPUT_MAX      ((size_t) 512 * 1024)
#define TURN_ANSWER_MAX     ((size_t) 512 * 1024) /* that is kept; more is cut */
#define TURN_KEY_MAX        200
#define TURN_LIST_MAX       50 /* of rows that may have a megabyte */
#define TURN_TIMEOUT_MAX_MS ((uint64_t) 24 * 3600 * 1000)

#define TURN_STATES(X)                                                                             \
    X(QUEUED, "queued")                                                                            \
    X(RUNNING, "running")                                                                          \
    X(WAITING, "waiting")                                                                          \
    X(DONE, "done")                                                                                \
    X(FAILED, "failed")                                                                            \
    X(CANCELLED, "cancelled")

enum turn_state {
#define X(name, text) TURN_##name,
    TURN_STATES(X)
#undef X
        TURN_STATE_COUNT
};

const char *turn_state_text(enum turn_state state);
/* TURN_STATE_COUNT: none has that name. */
enum turn_state turn_state_from_text(const char *text);
bool turn_state_is_over(enum turn_state state);

/* What happens to a turn. */
enum turn_event {
    TURN_EVENT_SENT,     /* its prompt is about to be sent */
    TURN_EVENT_ASKED,    /* the agent asks, and waits */
    TURN_EVENT_ANSWERED, /* nothing is asked any more */
    TURN_EVENT_DONE,
    TURN_EVENT_FAILED,
    TURN_EVENT_CANCELLED,
    TURN_EVENT_COUNT
};

/* Where an event leads; TURN_STATE_COUNT: nowhere, it comes too late or too early. */
enum turn_state turn_state_after(enum turn_state state, enum turn_event event);

struct turn {
    struct id id, owner, conversation, sandbox;
    struct id task; /* empty: none */
    enum turn_state state;
    const char *input;            /* JSON array of parts, as they are sent */
    const char *answer;           /* all text of the agent's last message; "" while there is none */
    const char *parts, *info;     /* of that message, as OpenCode has them: "[]", "{}" */
    const char *provider, *model; /* of the answer; before it, as wished. May be NULL */
    const char *agent;            /* may be NULL */
    const char *error_code;       /* "": none; "agent_lost", "turn_timeout", "cancelled", ... */
    const char *error_message;
    struct harness_usage usage;
    int64_t created_ms, started_ms, ended_ms; /* 0: not yet */
    int64_t deadline_ms;                      /* wall time; 0: none */
};

/* The prompt as people read it: text parts of the input. Appended. */
void turn_write_input_text(const struct turn *turn, struct text *out);

struct turn_spec {
    const char *text;             /* the prompt; or */
    const char *parts;            /* a JSON array of OpenCode's parts */
    const char *provider, *model; /* NULL: the conversation's; both or none */
    const char *agent;
    const char *key; /* idempotency: of one conversation and key there is one turn. May be NULL */
    uint64_t timeout_ms; /* of the time from now on; 0: no end */
};

/* `is_new` is false for a turn of the same key, whatever state it is in. */
typedef void turn_created(void *context, const struct error *failure, const struct turn *turn,
                          bool is_new);
typedef void turn_done(void *context, const struct error *failure, const struct turn *turn);

/* Answered when it is kept, queued. ERR_QUEUE_FULL: TURN_QUEUE_MAX wait already. */
void turn_create(struct domain *domain, const struct caller *caller,
                 struct conversation *conversation, const struct turn_spec *spec,
                 turn_created *done, void *context);

/* `conversation` NULL: of any that the caller sees. ERR_NOT_FOUND. */
void turn_read(struct domain *domain, const struct caller *caller,
               const struct conversation *conversation, const char *id, turn_done *done,
               void *context);

/* Newest first; `before` NULL: from the newest. As many as `limit`, borrowed for the call. */
typedef void turn_list_done(void *context, const struct error *failure, const struct turn *turns,
                            size_t count, bool has_more);
void turn_list(struct domain *domain, const struct caller *caller,
               const struct conversation *conversation, const char *before, size_t limit,
               turn_list_done *done, void *context);

/* Works in every state: what is over stays as it is, which is no failure. Answered when it is over:
 * soon, whatever the agent says. */
void turn_cancel(struct domain *domain, const struct caller *caller,
                 const struct conversation *conversation, const char *id, turn_done *done,
                 void *context);

/* Told once when the turn is over (soon, when it is), and gone then. turn_wait_end, before that, and
 * nothing is told: it cancels nothing. */
struct turn_wait;
struct turn_wait *turn_wait_begin(struct domain *domain, const struct caller *caller,
                                  const char *id, turn_done *done, void *context);
void turn_wait_end(struct turn_wait *wait);

/* How many turns are not over: for metrics. */
struct turn_counters {
    size_t live, running, waiting, queued;
    uint64_t done, failed, cancelled;
};
void turn_count(const struct domain *domain, struct turn_counters *ret_counters);
