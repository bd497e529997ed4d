/* A table of capnweb's: what the ids of one direction stand for.
 *
 * A hash of the ids that are alive. It grows with them, and an empty table holds no memory. Slots
 * move when others are added or removed: keep the objects, not the slots. Not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rpc_slot {
    int64_t id;
    void *object;  /* the owner's; never NULL in a slot that is taken */
    uint32_t kind; /* the owner's word for what it is */
    size_t size;   /* the owner's */
};

struct rpc_table {
    struct rpc_slot *slots; /* owned; `capacity` of them, a power of two */
    size_t capacity;
    size_t count;
    size_t cursor; /* where rpc_table_any looks first */
};

/* Add a slot; its id must not be there yet. */
void rpc_table_add(struct rpc_table *table, const struct rpc_slot *slot);

/* Copy the slot of `id`. Returns whether there is one; without, `ret_slot` is as it was. */
bool rpc_table_find(const struct rpc_table *table, int64_t id, struct rpc_slot *ret_slot);

/* Forget `id`; does nothing when it is not there. */
void rpc_table_remove(struct rpc_table *table, int64_t id);

/* Any slot of those that are left. Returns whether there is one. */
bool rpc_table_any(struct rpc_table *table, struct rpc_slot *ret_slot);

/* Frees the slots, not the objects. The table is empty and usable again. */
void rpc_table_done(struct rpc_table *table);
