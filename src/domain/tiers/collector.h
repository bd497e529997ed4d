/* The collector: takes away layers of disks that nobody names any more, objects of backups that
 * have no row, and snapshots on this machine that have none.
 *
 *     marks: what sandboxes (`stored`) and snapshots (`layers`) name
 *       ──► list "layers/", page by page ──► rows go ──► objects go
 *     list "backups/", page by page ──► rows are looked for ──► objects without one go
 *     list snapshots, when nothing is under way ──► those without a row go
 *     buckets that were counted ──► those of users who were deleted go, when somebody asked for a
 *     collection; their backups go always
 *
 * A layer goes when nothing names it and its object is older than the grace time. Nothing counts
 * references, so that no count can be wrong.
 *
 * Why nothing that is needed goes: what is named comes only from an offload (and what it stores
 * first) or a squash, and these begin only while nothing is collected and a collection only while
 * nothing is being stored (domain_internal.h: saves, is_collecting). So what was marked at the
 * start stays all that is named until the end; it can only become less. Restores read layers that
 * are named until their row is kept, and then by the snapshot that is kept with it.
 *
 * Why it may die at any point: the row goes first and the object then. An object without a row is
 * found by the next listing, a row without an object is of no harm and is replaced by the next
 * offload of the same contents.
 *
 * By itself it runs every `gc_every_ms` of the domain's options, the first time after that long. */
#pragma once

#include "domain/caller.h"
#include "domain/domain.h"

#define COLLECTOR_GRACE_MS ((uint64_t) 3600 * 1000)

struct collected {
    uint64_t layers;    /* taken away, as all of these */
    uint64_t objects;   /* of backups */
    uint64_t snapshots; /* begun: they go behind the answer */
    uint64_t buckets;   /* of users who were deleted */
    uint64_t bytes;     /* of layers, objects and buckets */
    uint64_t kept;      /* layers that stay */
};

typedef void collector_done(void *context, const struct error *failure,
                            const struct collected *collected);

/* Answered once, from the loop. ERR_UNAVAILABLE: there is no object store, or something is being
 * stored or collected; try again later. */
void collector_run(struct domain *domain, uint64_t grace_ms, collector_done *done, void *context);
