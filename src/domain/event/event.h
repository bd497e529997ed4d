/* Events: the append-only log of what happened, read back and followed live.
 *
 * Types of ours: sandbox.created, .started, .stopped, .hibernated (asleep, with "memory": whether
 * it was kept), .reclaimed ("bytes"), .offloaded ("bytes"), .save_failed, .restored (its disk is
 * here again), .restore_failed, .startup_failed ("command", "error"), .woken, .updated, .deleted,
 * .error, .forked, .rolled_back, .disk_lost, .disk_renewed; snapshot.created, .deleted, .lost,
 * .found; workspace.synced, .restored; template.put, .deleted; port.exposed, .closed; user.*,
 * key.*, webhook.*; credential.put, .deleted, .renewal_failed; egress.request, .denied, .violation,
 * .budget, .flood (so many were not told one by one), .defaults. Data is a small JSON object; it always has "sandboxId" for those of a sandbox,
 * and never a secret.
 *
 * Followers get what the store holds behind their cursor, then what is committed, in order, without
 * a gap or a double. One that is slow pauses itself, and goes on from its cursor. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "domain/caller.h"
#include "domain/domain.h"

struct event {
    int64_t cursor;
    int64_t sequence; /* within its stream */
    int64_t time_ms;
    int version;
    struct id owner;
    const char *stream, *actor, *request, *type, *data; /* borrowed */
};

struct event_filter {
    const char *stream; /* NULL: everything the caller sees; copied */
    const char *type;   /* NULL: all; "sandbox.": all that begin so; copied */
    int64_t after;      /* cursor; -1: only what comes */
};

struct event_follower;

/* `each` is called from the loop, never from inside; return false to pause (the event counts as not
 * seen). `ended` once, when it cannot go on (ERR_UNAVAILABLE: closing; ERR_GONE: the cursor is
 * older than what is kept); the follower is gone then. NULL with ERR_UNAVAILABLE: not open, or
 * ERR_NOT_FOUND: the stream is none the caller sees. How many there may be is their owners' to
 * count: streams and webhooks are claimed (share.h). */
struct event_follower *event_follow(struct domain *domain, const struct caller *caller,
                                    const struct event_filter *filter,
                                    bool (*each)(void *context, const struct event *event),
                                    void (*ended)(void *context, const struct error *reason),
                                    void *context, struct error *err);
void event_follower_resume(struct event_follower *follower);
void event_follower_close(struct event_follower *follower);

/* A page of the log, oldest first: answered once; `next` is the cursor to go on from. */
typedef void event_page_done(void *context, const struct error *failure, const struct event *events,
                             size_t count, int64_t next);
void event_page(struct domain *domain, const struct caller *caller,
                const struct event_filter *filter, size_t limit, event_page_done *done,
                void *context);

/* For the domain's own modules: add an event to a transaction, with the caller as actor, and tell
 * followers once it is committed (event_kept in the commit's answer, with its receipt). */
void event_add(struct domain *domain, struct store_transaction *change, const struct caller *caller,
               const struct id *owner, const char *stream, const char *type, const char *data);
void event_kept(struct domain *domain, const struct store_receipt *receipt);
