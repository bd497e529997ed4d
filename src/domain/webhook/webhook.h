/* Webhooks: where an owner wants to be told what happens to the things it owns.
 *
 * Every webhook follows the event log from its own cursor. An event it wants becomes a delivery: a
 * row, committed together with the cursor, so that a crash neither loses nor doubles it. Deliveries
 * are taken by whoever can speak HTTP (api/webhook_sender.h), and tried again, later and later,
 * until they arrive or WEBHOOK_ATTEMPTS_MAX is reached. A webhook with WEBHOOK_WAITING_MAX
 * deliveries waiting stops following until some are through; the log keeps what comes meanwhile.
 *
 * A webhook is sent one delivery at a time, in the order of the log. One that failed is tried again
 * later, and those behind it do not wait. An owner has at most WEBHOOK_SENDING_PER_OWNER under way,
 * so that receivers that never answer are slow for their own owner only.
 *
 * What is delivered is the log of deliveries, too: kept as long as events are. */
#pragma once

#include "base/error.h"
#include "base/list.h"
#include "domain/caller.h"
#include "domain/domain.h"

#define WEBHOOK_URL_MAX        2048
#define WEBHOOK_SECRET_MIN     16
#define WEBHOOK_SECRET_MAX     256
#define WEBHOOK_BEARER_MAX     1024
#define WEBHOOK_TYPES_MAX      32
#define WEBHOOK_TYPE_MAX       64
#define WEBHOOK_WAITING_MAX    100
#define WEBHOOK_ATTEMPTS_MAX   10
#define WEBHOOK_DETAIL_MAX     200
#define WEBHOOK_DELIVERIES_MAX 1000                              /* of one page */
#define WEBHOOK_BODY_MAX       (6 * STORE_EVENT_DATA_MAX + 1024) /* if all of it is escaped */

#define WEBHOOK_SENDING_PER_OWNER 4

struct webhook {
    struct list link;
    struct id id, owner;
    char *url;    /* owned, like all texts here */
    char *events; /* JSON array of types: "sandbox.created", "sandbox.*"; "[]": all */
    char *secret; /* for the signature */
    char *bearer; /* for the legacy header; NULL: none */
    int64_t created_ms, disabled_ms; /* disabled 0: it works */
    int64_t cursor; /* of the last event that is kept for it, or that it did not want */

    /* The domain's own. */
    struct domain *domain;
    struct list waiting; /* of webhook_delivery, in the order of the log */
    size_t waiting_count;
    struct event_follower *follower; /* NULL: paused or not begun */
    uint64_t follow_at_ns;           /* when to follow again after a failure; 0: now */
    struct store_transaction *batch; /* deliveries of this turn; NULL: none */
    size_t batch_count;
    int64_t batch_cursor; /* of the last event of the batch */
    bool is_keeping;      /* a batch is on its way to the store */
    bool is_row_behind;   /* its row has a cursor from before that batch */
    bool is_made;         /* its row is there */
    bool is_sending;      /* a delivery is taken */
    bool is_full;         /* its follower waits for deliveries to go */
    int64_t quiet_ms;     /* none of its deliveries is due before; 0: look */
    bool is_gone;         /* deleted, while something of it is under way */
    size_t under_way;
    struct share_claim claim; /* how many an owner may have says share.def */
};

struct webhook_spec {
    const char *url;          /* http:// or https:// */
    const char *const *types; /* NULL: all */
    size_t type_count;
    const char *secret; /* NULL: a random one is made */
    const char *bearer; /* NULL: none */
};

typedef void webhook_done(void *context, const struct error *failure, struct webhook *webhook);

/* ERR_INVALID with the field's name; ERR_QUOTA. The secret can be read from the webhook in the
 * answer and nowhere later. */
void webhook_create(struct domain *domain, const struct caller *caller,
                    const struct webhook_spec *spec, webhook_done *done, void *context);

/* Stop, or go on from where it stopped. */
void webhook_enable(struct domain *domain, const struct caller *caller, struct webhook *webhook,
                    bool is_enabled, webhook_done *done, void *context);

/* Its deliveries go with it. */
void webhook_delete(struct domain *domain, const struct caller *caller, struct webhook *webhook,
                    webhook_done *done, void *context);

/* Among those of the caller's owner (or all, for administrators); NULL with ERR_NOT_FOUND. */
struct webhook *webhook_find(struct domain *domain, const struct caller *caller, const char *id,
                             struct error *err);
void webhook_each(const struct domain *domain, const struct caller *caller,
                  void (*each)(void *context, struct webhook *webhook), void *context);

/* --- deliveries ------------------------------------------------------------------------------ */

struct webhook_delivery {
    struct list link;
    struct webhook *webhook;
    struct id id;
    int64_t cursor;
    char *type; /* owned, like `body` */
    char *body; /* JSON {"event","data","timestamp"} */
    unsigned int attempts;
    int64_t created_ms, next_ms; /* wall time */
    bool is_kept;                /* in the store */
    bool is_taken;
    struct share_claim claim;
};

/* The next delivery that is due, which is then the caller's to send; NULL: none now. */
struct webhook_delivery *webhook_take(struct domain *domain);

/* How it went: `status` of the answer, 0 when there was none; `detail` a sentence for people. Any
 * 2xx is success. The delivery is not the caller's any more. */
void webhook_sent(struct domain *domain, struct webhook_delivery *delivery, int status,
                  const char *detail);

/* It was not sent after all, because the daemon ends: no attempt. Not the caller's any more. */
void webhook_give_back(struct webhook_delivery *delivery);

/* The log, newest first: what was made before `before_ms` (wall time), so many at most. */
struct webhook_log_entry {
    const char *id, *state, *detail, *body; /* state: waiting, delivered, failed */
    int64_t cursor, attempts, status, created_ms, updated_ms, next_ms; /* 0: none */
};
/* A page ends between two milliseconds: many are made in one. `next_before_ms` is for the next page;
 * 0: this was the last. */
typedef void webhook_log_done(void *context, const struct error *failure,
                              const struct webhook_log_entry *entries, size_t count,
                              int64_t next_before_ms);
void webhook_log(struct domain *domain, struct webhook *webhook, int64_t before_ms, size_t limit,
                 webhook_log_done *done, void *context);

/* Pure: how long to wait after this many attempts. 10 s, and three times as long each time, up to
 * six hours. */
int64_t webhook_backoff_ms(unsigned int attempts);
