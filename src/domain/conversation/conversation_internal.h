/* What the files of domain/conversation share. Included by them, by domain/task and by tests. */
#pragma once

#include "base/text.h"
#include "domain/conversation/ask.h"
#include "domain/conversation/conversation.h"
#include "domain/conversation/turn.h"
#include "domain/conversation/turn_follow.h"
#include "domain/domain_internal.h"
#include "domain/sandbox/sandbox_use.h"
#include "share/share.h"

/* A turn that was told to end and has not is ended without its agent. */
#define TURN_CANCEL_PATIENCE_MS 15000
#define TURN_EVENT_DATA_MAX     1024

/* --- memory ----------------------------------------------------------------------------------- */

struct conversation_work {
    struct domain *domain;
    struct conversation *conversation; /* whose it is */
    struct list turns;     /* of struct live_turn, in their order: the first is at work */
    struct list followers; /* of struct turn_follower */
    struct share_claim claim;
    struct list link;    /* of conversations.going, while it goes */
    int64_t sequence;    /* the last that was given to an item */
    int64_t kept;        /* the last that is known to be kept */
    struct list pending; /* of struct log_item: not on their way to the store yet */
    size_t pending_count, pending_bytes;
    bool is_flushing;        /* a batch is on its way */
    bool has_sequence;       /* it was asked of the store */
    bool is_asking;          /* that is under way */
    bool is_kept;            /* its row is: others may see it */
    bool is_going;           /* deleted, or its sandbox is gone: what is left goes in slices */
    bool is_sweeping;        /* a slice is under way */
    int64_t swept;           /* up to here its log is gone */
    int64_t created_ms;      /* of its last turn */
    bool is_task_over;       /* nothing more is told of its task */
    unsigned int telling;    /* followers are being called: none is freed */
    unsigned int references; /* calls under way that come back to it */
};

struct conversations {
    struct table by_id;
    struct list all;   /* of conversation.link */
    struct list going; /* of conversation_work.link */
    struct table live; /* of live_turn.by_id */
    struct turn_counters counters;
    struct list live_all; /* of live_turn.all */
    bool is_recovered;    /* turns of before a restart were looked for */
    bool is_later;        /* domain_later was asked for */
};

/* How far a turn has got that is not over. */
enum turn_stage {
    TURN_STAGE_WAITS,   /* its row is being kept, or others are before it */
    TURN_STAGE_WAKING,  /* a use of the sandbox was begun */
    TURN_STAGE_MARKING, /* its row is about to say that it is sent */
    TURN_STAGE_SENT,    /* the agent has it, or may have it */
    TURN_STAGE_ENDED    /* its end is being kept */
};

/* Text that is being written. */
struct open_part {
    struct list link;
    char *part, *field; /* owned */
    struct text text;   /* so far */
    size_t told;        /* bytes of it */
    uint64_t told_ns;
};

struct live_turn {
    struct table_link by_id;
    struct list all;  /* of conversations.live_all */
    struct list link; /* of conversation_work.turns */
    struct domain *domain;
    struct conversation *conversation;
    struct turn turn; /* its texts are owned here */
    char *key;        /* owned, may be NULL */
    struct caller caller;
    enum turn_stage stage;
    bool is_kept;
    bool is_found;     /* it was sent before a restart: looked for, never prompted */
    bool is_cancelled; /* it shall end; then */
    const char *cancel_code, *cancel_message; /* static: why; a code of "cancelled": by wish */
    uint64_t cancel_ns;                       /* when that was told its agent; 0: not yet */
    struct sandbox_use use;
    bool is_using;
    struct harness_turn *handle;
    struct list asks; /* of struct live_ask */
    size_t ask_count;
    struct list waits; /* of struct turn_wait */
    struct list parts; /* of struct open_part */
    size_t part_count;
    size_t items, item_bytes;
    bool is_truncated;
    uint64_t end_ns;     /* monotonic: when keeping its end is tried again; 0: not waiting */
    enum turn_event end; /* from the moment it is TURN_STAGE_ENDED */
    struct share_claim claim;
    unsigned int references;
    struct domain_task task;
};

struct live_ask {
    struct list link;
    struct live_turn *turn;
    struct ask ask; /* its texts are owned here */
    uint64_t expires_ns;
    bool is_answering; /* the agent is being told */
    bool is_over;
};

struct conversation *conversation_by_id(const struct domain *domain, const struct id *id);
struct live_turn *turn_live(const struct domain *domain, const char *id);

/* For tasks: one that has no sandbox yet is made with the transaction of its task. In memory at once
 * and seen by nobody; conversation_kept or conversation_dropped says how it went. NULL: refused. */
struct conversation *conversation_prepare(struct domain *domain, const struct id *owner,
                                          const struct id *sandbox, const struct id *task,
                                          const struct conversation_spec *spec, struct error *err);
void conversation_put_row(struct store_transaction *rows, const struct conversation *conversation);
void conversation_kept(struct conversation *conversation);
void conversation_dropped(struct domain *domain, struct conversation *conversation);
/* Its sandbox is made: in a transaction of the task's, then in memory. */
void conversation_set_sandbox(struct domain *domain, struct conversation *conversation,
                              struct store_transaction *rows, const struct id *sandbox);
/* Whatever keeps it there: it goes now, in slices. */
void conversation_leave(struct domain *domain, struct conversation *conversation,
                        struct store_transaction *rows);
void conversation_sweep(struct domain *domain, struct conversation *conversation);

void conversation_ref(struct conversation *conversation);
void conversation_unref(struct domain *domain, struct conversation *conversation);

/* Set an owned text. */
void conversation_set_text(char **text, const char *value);

/* The stream of the event log that speaks of it: its sandbox's, or the system's. */
const char *conversation_stream(const struct conversation *conversation);

/* --- turns ------------------------------------------------------------------------------------ */

void turn_put_row(struct store_transaction *rows, const struct turn *turn, const char *key,
                  bool is_new);
/* Borrows from the row. */
void turn_from_row(const struct store_value *row, struct turn *ret_turn);
/* Texts of `turn` become copies; and their end. */
void turn_own(struct turn *turn);
void turn_disown(struct turn *turn);
void turn_set(const char **text, const char *value);

struct live_turn *live_turn_new(struct domain *domain, struct conversation *conversation,
                                const struct caller *caller);
void live_turn_ref(struct live_turn *live);
void live_turn_unref(struct live_turn *live);
/* It is over, or never came to be: out of memory when nobody needs it. */
void live_turn_gone(struct live_turn *live);

/* The first of a conversation may go on, if it can. */
void turn_go_on(struct conversation *conversation);
/* End it, whatever it does. `code` and `message` static; "cancelled": by wish. */
void turn_stop(struct live_turn *live, const char *code, const char *message);
/* Its row as it is now, with what else is in `rows`; nobody waits for it. */
void turn_note(struct live_turn *live, struct store_transaction *rows);
/* It is over in this way: keep that. */
void turn_finish(struct live_turn *live, enum turn_event event, const char *code,
                 const char *message, const struct harness_result *result);
/* With a failure: the domain closes. */
void turn_tell_waits(struct live_turn *live, const struct error *failure);
void turn_run_tick(struct domain *domain);
void turn_add_event(struct live_turn *live, struct store_transaction *rows, const char *type);
/* Follow, or end, what was sent before a restart; once, when sandboxes are known. */
void turns_recover(struct domain *domain);
void turns_load(struct domain *domain, domain_done *done, void *context);

/* --- the log ---------------------------------------------------------------------------------- */

struct log_item {
    struct list link;
    struct turn_item item; /* its texts are owned here */
    bool is_last;          /* of its turn */
};

/* An item of a turn (NULL: of the task), to be kept soon. `json` is copied. */
void turn_log_add(struct conversation *conversation, struct live_turn *live, const char *kind,
                  const char *part, const char *json);
/* Into a transaction, with all that waits; then what came of it. */
struct log_batch;
struct log_batch *turn_log_take(struct conversation *conversation, struct store_transaction *rows);
void turn_log_kept(struct log_batch *batch, const struct error *failure);
/* As soon as something waits. */
void turn_log_flush(struct conversation *conversation);
void turn_log_done(struct conversation *conversation);
/* The sequence must be known before the first item is kept. */
void turn_log_begin(struct conversation *conversation);

void turn_followers_tell(struct conversation *conversation, const struct turn_item *item);
void turn_followers_check(struct conversation *conversation);
void turn_followers_end(struct conversation *conversation, const struct error *reason);
bool turn_has_live_followers(const struct conversation *conversation);

/* --- what is being written (turn_part.c) ------------------------------------------------------- */

void turn_part_delta(struct live_turn *live, const char *part, const char *field, const char *text,
                     size_t length);
void turn_part_whole(struct live_turn *live, const char *part, const char *text);
/* Tell what has not been told, where it is time. */
void turn_parts_flush(struct live_turn *live, bool is_all);
void turn_parts_done(struct live_turn *live);
/* What is being written now, whole, as items that are not kept. */
void turn_parts_each(struct conversation *conversation,
                     bool (*each)(void *context, const struct turn_item *item), void *context);

/* --- what is asked (ask.c) --------------------------------------------------------------------- */

void ask_begin(struct live_turn *live, enum ask_kind kind, const char *request, const char *json);
void ask_resolve(struct live_turn *live, const char *request, const char *reply);
void asks_end(struct live_turn *live, struct store_transaction *rows);
void asks_tick(struct live_turn *live);
void asks_done(struct live_turn *live);
