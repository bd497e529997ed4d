/* The log of a conversation: what was said and done in it, read from any point and followed live.
 *
 * An item has a sequence, which counts within its conversation, and is kept; text while it is being
 * written is told as deltas, which are not. Kinds, and members of their JSON:
 *
 *     turn.queued    "turn", "text"
 *     turn.started   "turn"
 *     text           "turn", "part", "delta"           (not kept: more of a part)
 *     text           "turn", "part", "text"            (the whole part; what came before is in it)
 *     reasoning      likewise
 *     tool           "turn", "part", "call", "tool", "state", "title", "input", "output", "error",
 *                    "truncated"
 *     step           "turn", "part", "tokens", "cost"
 *     part           "turn", "part", "raw"             (of another type, as the agent has it)
 *     permission, question, answered   "turn", "id", "state", "reply", ...: ask.h
 *     task           "task", "state", "step"           (of a task: what is done before its turn)
 *     truncated      "turn", "reason"                  (nothing more of this turn is kept)
 *     turn.ended     "turn", "state", "answer", "error", "usage"
 *
 * Deltas come at most 20 times a second per part. Whoever is slow, or comes in the middle, gets the
 * whole text so far ("text" without a sequence) instead of what was missed.
 *
 * Bounds: 64 kB of a tool's output ("truncated": true), 10,000 items and 32 MB of a turn. */
#pragma once

#include "domain/conversation/turn.h"

#define TURN_ITEMS_MAX       10000
#define TURN_ITEMS_BYTES_MAX ((size_t) 32 * 1024 * 1024)
#define TURN_OUTPUT_MAX      ((size_t) 64 * 1024)
#define TURN_ITEM_MAX        ((size_t) 256 * 1024)
#define TURN_DELTA_EVERY_MS  50

struct turn_item {
    int64_t sequence; /* 0: not kept; go on from the last that was */
    int64_t time_ms;
    struct id turn;   /* empty: of the task */
    const char *kind; /* as above */
    const char *part; /* the agent's id of the part, "" where there is none */
    const char *json; /* an object */
};

struct turn_filter {
    const struct id *turn; /* NULL: all. One turn ends behind its turn.ended */
    const struct id *task; /* likewise: it ends when the task is over */
    int64_t after;         /* a sequence; 0: from the start; -1: only what comes */
};

struct turn_follower;

/* `each` is called from the loop, never from inside; return false to pause: the item counts as not
 * seen. `ended` once: NULL behind the last item of what was asked for, or ERR_UNAVAILABLE (closing),
 * ERR_GONE (the conversation was deleted); the follower is gone then. How many there may be is
 * their owners' to count: streams are claimed (share.h). NULL with an error: not open. */
struct turn_follower *turn_follow(struct domain *domain, struct conversation *conversation,
                                  const struct turn_filter *filter,
                                  bool (*each)(void *context, const struct turn_item *item),
                                  void (*ended)(void *context, const struct error *reason),
                                  void *context, struct error *err);
void turn_follower_resume(struct turn_follower *follower);
void turn_follower_close(struct turn_follower *follower);

/* A page of what is kept, oldest first; of one turn, or of all (NULL). */
typedef void turn_items_done(void *context, const struct error *failure,
                             const struct turn_item *items, size_t count, bool has_more);
void turn_items(struct domain *domain, const struct conversation *conversation,
                const struct id *turn, int64_t after, size_t limit, turn_items_done *done,
                void *context);

/* For tasks: an item of theirs in the log of their conversation. */
void turn_log_task(struct domain *domain, struct conversation *conversation, const char *json);
