/* What an agent asks in the middle of a turn, and waits for: a permission, or a question.
 *
 * A row while it waits and afterwards: who answered is in it, and in the audit log. Nobody answers in
 * time (conversation.ask_ms): it is rejected with a message that says so. */
#pragma once

#include "domain/conversation/turn.h"

#define ASK_REPLY_MAX  ((size_t) 64 * 1024)
#define ASK_DETAIL_MAX ((size_t) 64 * 1024)
#define ASKS_PER_TURN  32 /* that wait at once; the agent is told no beyond */
#define ASK_LIST_MAX   1000

enum ask_kind { ASK_PERMISSION, ASK_QUESTION };

#define ASK_STATES(X)                                                                              \
    X(PENDING, "pending")                                                                          \
    X(ANSWERED, "answered") /* here */                                                             \
    X(EXPIRED, "expired")   /* nobody did */                                                       \
    X(RESOLVED, "resolved") /* inside, or the turn is over */

enum ask_state {
#define X(name, text) ASK_##name,
    ASK_STATES(X)
#undef X
        ASK_STATE_COUNT
};

const char *ask_state_text(enum ask_state state);
enum ask_state ask_state_from_text(const char *text);

struct ask {
    struct id id, owner, sandbox, conversation, turn;
    enum ask_kind kind;
    enum ask_state state;
    const char *request;     /* the agent's own id */
    const char *detail;      /* JSON object, as the agent asks */
    const char *reply;       /* "once", "always", "reject", JSON of answers; "" while pending */
    const char *answered_by; /* an owner's id, "system", "agent"; "" while pending */
    int64_t created_ms, answered_ms, expires_ms;
};

typedef void ask_done(void *context, const struct error *failure, const struct ask *ask);

/* Of a sandbox, and of one conversation or all (NULL), newest first; ASK_STATE_COUNT: in any state. */
typedef void ask_list_done(void *context, const struct error *failure, const struct ask *asks,
                           size_t count);
void ask_list(struct domain *domain, const struct id *sandbox,
              const struct conversation *conversation, enum ask_state state, size_t limit,
              ask_list_done *done, void *context);

/* "once", "always" or "reject", with a message that may be NULL. ERR_NOT_FOUND; ERR_CONFLICT: it does
 * not wait any more, the message says what it was answered. */
void ask_answer_permission(struct domain *domain, const struct caller *caller,
                           const struct id *sandbox, const char *id, const char *reply,
                           const char *message, ask_done *done, void *context);

/* `answers`: a JSON array, one array of chosen labels or texts per question; NULL refuses. */
void ask_answer_question(struct domain *domain, const struct caller *caller,
                         const struct id *sandbox, const char *id, const char *answers,
                         ask_done *done, void *context);
