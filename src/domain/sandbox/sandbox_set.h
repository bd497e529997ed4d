/* The sandboxes in memory: found by id and by name, counted by owner and status.
 *
 * A sandbox that is being created has its name and its share of the quota, and is seen by nobody
 * until its row is kept. One that was destroyed is in no table, and is freed with its last
 * reference. */
#pragma once

#include "domain/domain_internal.h"
#include "domain/sandbox/sandbox.h"
#include "domain/sandbox/sandbox_record.h"

/* What one owner has. */
struct usage {
    struct table_link by_owner;
    struct id owner;
    size_t counts[SANDBOX_STATUS_COUNT];
    uint64_t sandboxes, running;
    uint64_t memory_bytes, cpu_millis; /* limits of those that run */
    uint64_t held_bytes;               /* of memory, limits of those that run or are frozen */
    uint64_t disk_bytes;               /* limits of all */
};

struct sandbox_set {
    struct table by_id, by_name, usages;
    struct list all;     /* sorted by time of creation, then id */
    struct list unkept;  /* of sandbox.unkept */
    struct list orphans; /* of struct orphan: rows that are gone, sandboxes that are not */
    size_t counts[SANDBOX_STATUS_COUNT];
};

struct sandbox_set *sandbox_set_new(void);

/* Frees the sandboxes, too: nothing refers to them any more. Accepts NULL. */
void sandbox_set_free(struct sandbox_set *set);

/* Count it and take its name, which is free. Its owner, limits and status are set. */
void sandbox_set_reserve(struct domain *domain, struct sandbox *sandbox);
void sandbox_set_unreserve(struct domain *domain, struct sandbox *sandbox);

/* Its id is known: it can be found by it. */
void sandbox_set_identify(struct domain *domain, struct sandbox *sandbox);
void sandbox_set_unidentify(struct domain *domain, struct sandbox *sandbox);

/* Among all that are listed. Sorted in: O(1) for the newest. */
void sandbox_set_list(struct domain *domain, struct sandbox *sandbox);

/* Put the list in order, after many were appended to it as they came. */
void sandbox_set_sort(struct domain *domain);

/* The only way to change a status: everything is counted. */
void sandbox_set_status(struct domain *domain, struct sandbox *sandbox, enum sandbox_status status);

/* Replace its spec, which is taken; the old one is freed. */
void sandbox_set_spec(struct domain *domain, struct sandbox *sandbox, struct sandbox_spec *spec);

/* NULL: there is none. Whoever may see it is the caller's business. */
struct sandbox *sandbox_set_by_id(const struct domain *domain, const char *id);
struct sandbox *sandbox_set_by_name(const struct domain *domain, const struct id *owner,
                                    const char *name);

/* What an owner has; NULL: nothing. */
const struct usage *sandbox_set_usage(const struct domain *domain, const struct id *owner);

/* Whether a status counts as running for quotas. */
bool sandbox_status_counts_as_running(enum sandbox_status status);

struct sandbox *sandbox_ref(struct sandbox *sandbox);
void sandbox_unref(struct sandbox *sandbox);
