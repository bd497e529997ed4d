/* Inside of the provider `local`: what its files share.
 *
 *     provider_local.c          its beginning and its end
 *     provider_local_calls.c    the operations: one table of requests and answers
 *     provider_local_open.c     hello, taking over, subscribing
 *     provider_local_create.c   create and start: from stock or new
 *     provider_local_stock.c    the ready sandboxes
 *     launcher_link.c           the conversation on the loop */
#pragma once

#include "provider/launcher_link.h"
#include "provider/provider_internal.h"
#include "provider/provider_local.h"
#include "wire/wire_plan.h"

/* Ready sandboxes, and the work of having enough of them. */
struct stock {
    size_t wanted;
    struct id ready[PROVIDER_LOCAL_STOCK_MAX]; /* the last one is handed out next */
    size_t count;
    bool working;           /* the launcher serves us: there can be new ones */
    bool drained;           /* nobody wants any */
    bool making;            /* one is being made */
    uint64_t missing_since; /* loop_now() when the stock was first found short; 0: it is not */
    uint64_t not_before;    /* loop_now() after failures; 0: there was none */
    unsigned int failures;  /* in a row, of making one */
    unsigned int exits;     /* of ready ones, since one was used */
    struct limits limits;   /* asked for last: who asks for the same again waits less */
    struct deadline refill;
};

/* Taking over what is there, while the provider is being opened. */
struct opening {
    struct provider_call *call; /* NULL: not opening */
    size_t adoptions;           /* under way */
    bool settled;               /* nothing is on its way down any more: it can be taken over */
    bool stopping;              /* something was, on the pages that came */
    uint64_t patient_until;     /* loop_now(): longer is not waited for it */
    bool listed;                /* all pages came */
    struct id after;            /* last id of the last page */
    struct id *surplus;         /* owned: ready sandboxes that are too many, or of no use */
    size_t surplus_count;
};

struct local {
    struct provider provider;
    struct log *log; /* borrowed, may be NULL */
    char *agents;    /* owned */
    char *program;   /* owned */
    char *image;     /* owned */
    struct launcher_link link;
    struct opening opening;
    struct deadline settle; /* when to look again whether all is down */
    struct stock stock;
    size_t closing; /* handles of the loop that are still open */
};

static inline struct local *local_of(struct provider *provider)
{
    return CONTAINER_OF(provider, struct local, provider);
}

/* --- provider_local.c ------------------------------------------------------------------------ */

/* One handle less is open: the last one lets the closing provider go. */
void local_handle_closed(struct local *local);

/* End a sandbox that nobody was given, without waiting. What fails is logged. */
void local_discard(struct local *local, const struct id *id, enum wire_kill_scope scope);

/* "unix:/.../ID.sock". -1 with ERR_INVALID: too long. */
int local_agent_address(struct provider *provider, const struct id *id,
                        char ret_address[static PROVIDER_ADDRESS_MAX], struct error *err);

/* --- provider_local_calls.c ------------------------------------------------------------------ */

/* Ask the launcher what the call asks us; when that is not possible the call is answered. */
void local_ask(struct provider_call *call, struct wire_message *message, const int *fds,
               size_t count,
               void (*answered)(void *context, struct wire_incoming *reply,
                                const struct error *failure));

/* The operations. Those that are one request and its answer are one table. */
void local_forward(struct provider_call *call);
void local_disk_job(struct provider_call *call);
void local_list_snapshots(struct provider_call *call);

/* --- provider_local_open.c ------------------------------------------------------------------- */

void local_open(struct provider_call *call);

/* For local->settle. */
void local_open_look_again(struct deadline *deadline);

/* The conversation ended before the provider was open. Returns whether it was opening. */
bool local_open_failed(struct local *local, const struct error *reason);

/* --- provider_local_create.c ----------------------------------------------------------------- */

void local_create(struct provider_call *call);
void local_start(struct provider_call *call);

/* --- provider_local_stock.c ------------------------------------------------------------------ */

void stock_init(struct local *local, size_t wanted);

/* One that was found. False: there are enough. */
bool stock_add(struct stock *stock, const struct id *id);

/* Requests can be made from now on, until stock_rest. */
void stock_work(struct local *local);
void stock_rest(struct stock *stock);

/* Take one out. False: none is ready. A successor will be made. */
bool stock_take(struct local *local, struct id *ret_id);

/* One was handed out with these. New ones get them while they are made, unless that would be slow.
 */
void stock_note_limits(struct stock *stock, const struct limits *limits);

/* A sandbox ended. Returns true when it was one of these. */
bool stock_exited(struct local *local, const struct id *id);
