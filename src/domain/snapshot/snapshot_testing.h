/* For tests of snapshots: calls that write down what came back, and what the store and the provider
 * have. Included by test programs only. */
#pragma once

#include "domain/domain_testing.h"
#include "domain/snapshot/snapshot.h"
#include "domain/snapshot/snapshot_set.h"

/* Until nothing is under way any more. */
static inline void world_settle(struct world *world)
{
    TURN_UNTIL(&world->loop, world->domain->works == 0 && world->domain->outstanding == 0);
    world_wait(world);
}

/* Time passes, and what it began is over. */
static inline void world_pass_quietly(struct world *world, unsigned int seconds)
{
    for (unsigned int i = 0; i < seconds; i++) {
        world_tick(world);
        if (world->domain->works || world->domain->outstanding || world_store_works(world))
            world_settle(world);
    }
    world_settle(world);
}

/* --- calls ------------------------------------------------------------------------------------ */

struct told_snapshot {
    struct told told; /* its sandbox: of a rollback */
    struct snapshot *snapshot;
    struct snapshot_made how;
    bool has_how;
    struct sandbox *sandboxes[64]; /* of forks */
    size_t count;
};

static inline void on_snapshot_told(void *context, const struct error *failure,
                                    struct snapshot *snapshot, const struct snapshot_made *how)
{
    struct told_snapshot *told = context;

    note_told(&told->told, failure, NULL);
    assert_true((failure == NULL) == (snapshot != NULL));
    told->snapshot = snapshot;
    told->has_how = how != NULL;
    if (how)
        told->how = *how;
}

static inline struct told_snapshot ask_snapshot(struct world *world, struct sandbox *sandbox,
                                                const struct snapshot_options *options)
{
    struct told_snapshot told = {.count = 0};

    snapshot_make(world->domain, &world->caller, sandbox, options, on_snapshot_told, &told);
    assert_int_equal(told.told.times, 0);
    TURN_UNTIL(&world->loop, told.told.times);
    return told;
}

static inline struct snapshot *world_snapshot(struct world *world, struct sandbox *sandbox,
                                              const char *name)
{
    struct told_snapshot told =
        ask_snapshot(world, sandbox, &(struct snapshot_options){.name = name});

    expect_ok(&told.told);
    return told.snapshot;
}

static inline void on_forked(void *context, const struct error *failure,
                             struct sandbox *const *sandboxes, size_t count,
                             const struct snapshot_made *how)
{
    struct told_snapshot *told = context;

    note_told(&told->told, failure, NULL);
    told->count = count;
    told->has_how = how != NULL;
    for (size_t i = 0; i < count && i < ARRAY_COUNT(told->sandboxes); i++)
        told->sandboxes[i] = sandboxes[i];
}

static inline void on_rolled_back(void *context, const struct error *failure,
                                  struct sandbox *sandbox, struct snapshot *saved)
{
    struct told_snapshot *told = context;

    note_told(&told->told, failure, sandbox);
    told->snapshot = saved;
}

static inline struct told_snapshot ask_roll_back(struct world *world, struct sandbox *sandbox,
                                                 struct snapshot *snapshot)
{
    struct told_snapshot told = {.count = 0};

    sandbox_roll_back(world->domain, &world->caller, sandbox, snapshot, on_rolled_back, &told);
    assert_int_equal(told.told.times, 0);
    TURN_UNTIL(&world->loop, told.told.times);
    return told;
}

static inline void on_gone_told(void *context, const struct error *failure)
{
    note_told(context, failure, NULL);
}

static inline struct told ask_delete(struct world *world, struct snapshot *snapshot)
{
    struct told told = {.times = 0};

    snapshot_delete(world->domain, &world->caller, snapshot, on_gone_told, &told);
    assert_int_equal(told.times, 0);
    TURN_UNTIL(&world->loop, told.times);
    return told;
}

/* --- what is there ---------------------------------------------------------------------------- */

struct kept_snapshots {
    int times;
    size_t count;
    char state[16], name[64], inside[256];
    int64_t size;
};

static inline void on_snapshot_rows(void *context, const struct error *failure,
                                    const struct store_rows *rows)
{
    struct kept_snapshots *kept = context;

    assert_null(failure);
    kept->times++;
    kept->count = rows->count;
    if (rows->count == 0)
        return;
    copy_kept(kept->state, sizeof(kept->state), &rows->rows[0][STORE_SNAPSHOT_STATE]);
    copy_kept(kept->name, sizeof(kept->name), &rows->rows[0][STORE_SNAPSHOT_NAME]);
    copy_kept(kept->inside, sizeof(kept->inside), &rows->rows[0][STORE_SNAPSHOT_INSIDE]);
    kept->size = rows->rows[0][STORE_SNAPSHOT_SIZE].integer;
}

/* The rows of a sandbox's snapshots; the texts are the first's. */
static inline struct kept_snapshots world_snapshot_rows(struct world *world,
                                                        const struct id *sandbox)
{
    struct kept_snapshots kept = {.times = 0};
    struct store_condition is_it = {.column = STORE_SNAPSHOT_SANDBOX,
                                    .comparison = STORE_EQUAL,
                                    .value = store_text(sandbox->text)};
    struct store_query query = {.kind = STORE_SNAPSHOT,
                                .conditions = &is_it,
                                .condition_count = 1,
                                .order = STORE_SNAPSHOT_CREATED,
                                .limit = STORE_ROWS_MAX};

    store_find(world->store, &query, on_snapshot_rows, &kept);
    TURN_UNTIL(&world->loop, kept.times);
    return kept;
}

struct provider_snapshots {
    int times;
    size_t count;
    struct id ids[64];
};

static inline void on_provider_snapshots(void *context, const struct error *failure,
                                         const struct id *ids, size_t count)
{
    struct provider_snapshots *view = context;

    assert_null(failure);
    view->times++;
    view->count = count;
    for (size_t i = 0; i < count && i < ARRAY_COUNT(view->ids); i++)
        view->ids[i] = ids[i];
}

static inline struct provider_snapshots world_copies(struct world *world)
{
    struct provider_snapshots view = {.times = 0};

    provider_list_snapshots(world->provider, on_provider_snapshots, &view);
    TURN_UNTIL(&world->loop, view.times);
    return view;
}
