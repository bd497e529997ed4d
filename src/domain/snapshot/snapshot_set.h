/* The snapshots in memory, and as rows. Included by src/domain and its tests only. */
#pragma once

#include "domain/domain_internal.h"
#include "domain/snapshot/snapshot.h"
#include "store/store.h"

/* What one owner has. */
struct snapshot_usage {
    struct table_link by_owner;
    struct id owner;
    uint64_t count, bytes;
    uint64_t bases; /* of `count`: those that nobody asked for, snapshot_base.c */
};

struct snapshots {
    struct table by_id, by_name, by_sandbox, usages;
    struct list all;        /* sorted by time, then id */
    struct list orphans;    /* of those the provider has still to delete: snapshot_delete.c */
    int64_t next_expiry_ms; /* no row expires before; INT64_MAX: none does */
};

/* A new one, not kept yet, counted, its name taken; the set has a reference. The texts are copied.
 */
struct snapshot *snapshot_set_add(struct domain *domain, const struct snapshot *like);

/* It is kept: others see it. */
void snapshot_set_list(struct domain *domain, struct snapshot *snapshot);

/* Leave memory, also when it never was kept. */
void snapshot_set_remove(struct domain *domain, struct snapshot *snapshot);

void snapshot_set_size(struct domain *domain, struct snapshot *snapshot, uint64_t size);

struct snapshot *snapshot_set_by_id(const struct domain *domain, const char *id);
/* Also one that is on its way to the store. */
struct snapshot *snapshot_set_by_name(const struct domain *domain, const struct id *owner,
                                      const char *name);

/* All of a sandbox that are kept; `each` may remove the one it is given. */
void snapshot_set_each_of(struct domain *domain, const struct id *sandbox,
                          void (*each)(struct domain *domain, struct snapshot *snapshot,
                                       void *context),
                          void *context);

/* NULL: the owner has none. */
const struct snapshot_usage *snapshot_set_usage(const struct domain *domain,
                                                const struct id *owner);

struct snapshot *snapshot_ref(struct snapshot *snapshot);
void snapshot_unref(struct snapshot *snapshot);

/* --- rows ------------------------------------------------------------------------------------- */

/* The values of a row; they borrow from the snapshot. */
void snapshot_row(const struct snapshot *snapshot,
                  struct store_value ret_values[static STORE_SNAPSHOT_COLUMN_COUNT]);

/* Into the set, at the end of the list: sort it when all are there. -1 with ERR_INTERNAL that names
 * the row. */
int snapshot_load_row(struct domain *domain, const struct store_value *row, struct error *err);
void snapshot_set_sort(struct domain *domain);
