#include "agent/rpc/rpc_table.h"

#include <stdlib.h>

#include "base/memory.h"

#define CAPACITY_MIN 8

/* Where the slot of `id` is, or the free one where it would be. Ids are counted up, so a
 * multiplication spreads them well enough; nobody gains by choosing them badly but their own
 * session. */
static size_t rpc_table_place_of(const struct rpc_table *table, int64_t id)
{
    size_t mask = table->capacity - 1;
    size_t at = (size_t) (((uint64_t) id * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & mask;

    while (table->slots[at].object && table->slots[at].id != id)
        at = (at + 1) & mask;
    return at;
}

static void resize(struct rpc_table *table, size_t capacity)
{
    struct rpc_table larger = {.capacity = capacity, .count = table->count};

    larger.slots = mem_alloc_array(capacity, sizeof(*larger.slots));
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->slots[i].object)
            larger.slots[rpc_table_place_of(&larger, table->slots[i].id)] = table->slots[i];
    }
    free(table->slots);
    *table = larger;
}

void rpc_table_add(struct rpc_table *table, const struct rpc_slot *slot)
{
    if ((table->count + 1) * 4 > table->capacity * 3)
        resize(table, table->capacity ? table->capacity * 2 : CAPACITY_MIN);
    table->slots[rpc_table_place_of(table, slot->id)] = *slot;
    table->count++;
}

bool rpc_table_find(const struct rpc_table *table, int64_t id, struct rpc_slot *ret_slot)
{
    const struct rpc_slot *slot;

    if (!table->count)
        return false;
    slot = &table->slots[rpc_table_place_of(table, id)];
    if (!slot->object)
        return false;
    *ret_slot = *slot;
    return true;
}

/* Those behind a freed slot move up, so that no search stops early at it. */
static void close_gap(struct rpc_table *table, size_t gap)
{
    size_t mask = table->capacity - 1;

    for (size_t at = (gap + 1) & mask; table->slots[at].object; at = (at + 1) & mask) {
        struct rpc_slot slot = table->slots[at];

        table->slots[at].object = NULL;
        table->slots[rpc_table_place_of(table, slot.id)] = slot;
    }
}

void rpc_table_remove(struct rpc_table *table, int64_t id)
{
    size_t at;

    if (!table->count)
        return;
    at = rpc_table_place_of(table, id);
    if (!table->slots[at].object)
        return;
    table->slots[at].object = NULL;
    if (--table->count == 0)
        rpc_table_done(table);
    else
        close_gap(table, at);
}

bool rpc_table_any(struct rpc_table *table, struct rpc_slot *ret_slot)
{
    if (!table->count)
        return false;
    while (!table->slots[table->cursor & (table->capacity - 1)].object)
        table->cursor++;
    *ret_slot = table->slots[table->cursor & (table->capacity - 1)];
    return true;
}

void rpc_table_done(struct rpc_table *table)
{
    free(table->slots);
    *table = (struct rpc_table){.slots = NULL};
}
