/* All sandboxes of this node, and what is done with them.
 *
 * Held in memory, kept in the store: a change is committed, with its event, before it is
 * acknowledged. Answers come exactly once, from the loop, never from inside a call.
 *
 * One thing at a time per sandbox: what cannot be done while something else is under way waits its
 * turn (model/state.h), at most SANDBOX_WISHES_MAX of them.
 *
 * Nothing acknowledged is lost: create makes the sandbox first and keeps the row before it answers;
 * destroy removes the row first and the sandbox then. So what recovery finds alive without a row
 * was never acknowledged, or was destroyed: it is taken down. */
#pragma once

#include "base/error.h"
#include "base/pool.h"
#include "domain/caller.h"
#include "domain/domain.h"
#include "domain/sandbox/sandbox.h"

#define SANDBOX_WISHES_MAX 256

/* `sandbox` is NULL on failure (and after destroy); borrowed for the call. */
typedef void sandbox_done(void *context, const struct error *failure, struct sandbox *sandbox);

/* `is_new` is false when one of that name was there already: create is idempotent by name, and the
 * spec of a second one is ignored. Concurrent creates of one name share the one. ERR_FORBIDDEN for
 * callers that may not write; ERR_QUOTA; ERR_INVALID; what provider_create says. */
typedef void sandbox_created(void *context, const struct error *failure, struct sandbox *sandbox,
                             bool is_new);
void sandbox_create(struct domain *domain, const struct caller *caller,
                    const struct sandbox_spec *spec, sandbox_created *done, void *context);

/* What a sandbox begins with instead of an empty disk. Everything is borrowed for the call. */
struct sandbox_origin {
    struct disk_ref disk;
    bool hold;            /* a sandbox that runs stands still meanwhile */
    uint64_t *pause_us;   /* gets how long it did; may be NULL, outlives the creation */
    const char *sandbox;  /* id of the one it was copied from; told in the event */
    const char *snapshot; /* likewise, or NULL */
    const char *base;     /* a snapshot that the disk is like, or nearly; NULL: none is known */
    const char *inside;   /* sessions to bring back, as JSON; NULL: none */
};

/* The same with an origin (NULL: none). A name that is taken is ERR_CONFLICT: this is a new one, or
 * nothing. */
void sandbox_create_from(struct domain *domain, const struct caller *caller,
                         const struct sandbox_spec *spec, const struct sandbox_origin *origin,
                         sandbox_created *done, void *context);

/* By id, or by name among the caller's own. NULL: there is none for this caller, with ERR_NOT_FOUND
 * and a message that may say which name was meant. */
struct sandbox *sandbox_find(struct domain *domain, const struct caller *caller,
                             const char *name_or_id, struct error *err);

struct sandbox_filter {
    const struct id *owner;         /* administrators may ask for one; NULL: all that are seen */
    enum sandbox_status status;     /* SANDBOX_STATUS_COUNT: any */
    bool is_asleep;                 /* frozen or hibernated, instead of `status` */
    const char *label, *value;      /* NULL: any; value NULL: the label is there */
    const char *name_prefix;        /* NULL: any */
    const char *after;              /* cursor of the last page, NULL: from the start */
    size_t limit;                   /* 1 to SANDBOX_LIST_MAX */
    bool (*is_full)(void *context); /* asked behind each: end the page here. May be NULL */
    void *full_context;
};

#define SANDBOX_LIST_MAX 1000

/* Newest first. Calls `each` for up to `limit` sandboxes the caller sees; returns a cursor for the
 * next page in `pool`, or NULL when this was the last. -1 cursors are ERR_INVALID. */
int sandbox_list(struct domain *domain, const struct caller *caller,
                 const struct sandbox_filter *filter, struct pool *pool,
                 void (*each)(void *context, struct sandbox *sandbox), void *context,
                 const char **ret_next, struct error *err);

/* How many, by status, for metrics; of one owner, or NULL for all. */
void sandbox_count(const struct domain *domain, const struct id *owner,
                   size_t ret_counts[static SANDBOX_STATUS_COUNT]);

/* Limits hold at once for running ones; variables for what is started from then on, startup commands
 * from its next start on. */
void sandbox_update(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                    const struct sandbox_change *change, sandbox_done *done, void *context);

/* All of them, as lines for people. */
void sandboxes_describe(const struct domain *domain, struct text *out);

/* What is so already succeeds. sleep freezes where the kernel can, else ends the processes and says
 * so in `reason`; the disk is always kept. */
void sandbox_start(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                   sandbox_done *done, void *context);
void sandbox_stop(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                  sandbox_done *done, void *context);
void sandbox_sleep(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                   sandbox_done *done, void *context);
void sandbox_wake(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                  sandbox_done *done, void *context);
void sandbox_destroy(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                     sandbox_done *done, void *context);

/* It was used just now: its idle time begins again. */
void sandbox_touch(struct domain *domain, struct sandbox *sandbox);

/* Figures and sockets of a running one; the provider's answers. */
void sandbox_stats(struct domain *domain, struct sandbox *sandbox, provider_stats_done *done,
                   void *context);
void sandbox_sockets(struct domain *domain, struct sandbox *sandbox, size_t count,
                     provider_sockets_done *done, void *context);
int sandbox_agent_address(struct domain *domain, struct sandbox *sandbox,
                          char ret_address[static PROVIDER_ADDRESS_MAX], struct error *err);
