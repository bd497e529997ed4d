/* For tests of workspaces only: a world whose vault only remembers what it was asked for. */
#pragma once

#include "domain/domain_testing.h"
#include "domain/vault.h"
#include "domain/workspace/workspace.h"

/* --- a vault that only remembers -------------------------------------------------------------- */

struct later {
    struct loop_task task;
    struct list link; /* while it is held */
    struct memory *memory;
    vault_sync_done *synced;
    vault_mirror_done *restored;
    vault_done *done;
    void *context;
    enum err_code failure;
};

struct memory {
    struct world *world;
    struct vault vault;
    struct vault_synced answer;
    enum err_code fail_sync, fail_restore, fail_remove;
    bool is_held;     /* syncs are answered when it is let go */
    struct list held; /* of struct later */
    char synced[512], excludes[256], restored[512], removed[512];
    uint64_t bytes_max;
    int syncs, restores, removals;
};

static inline void tell(struct loop_task *task)
{
    AUTO(free) struct later *later = CONTAINER_OF(task, struct later, task);
    struct error err = ERROR_INIT;
    const struct error *failure = later->failure ? &err : NULL;

    (void) error_set(&err, later->failure, 0, "the store is not well");
    if (later->synced)
        later->synced(later->context, failure, failure ? NULL : &later->memory->answer);
    else if (later->restored)
        later->restored(later->context, failure, failure ? 0 : 7, failure ? 0 : 70);
    else
        later->done(later->context, failure);
}

static inline struct later *answer(struct memory *memory, enum err_code failure, void *context)
{
    struct later *later = mem_alloc(sizeof(*later));

    *later = (struct later){.memory = memory, .failure = failure, .context = context};
    list_init(&later->link);
    loop_task_init(&later->task, tell);
    if (memory->is_held)
        list_append(&memory->held, &later->link);
    else
        loop_defer(&memory->world->loop, &later->task);
    return later;
}

static inline void let_go(struct memory *memory)
{
    memory->is_held = false;
    LIST_EACH (&memory->held, at) {
        list_remove(at);
        loop_defer(&memory->world->loop, &CONTAINER_OF(at, struct later, link)->task);
    }
}

static inline void fake_sync(void *self, const struct vault_sync *what,
                             vault_progressed *progressed, vault_sync_done *done, void *context)
{
    struct memory *memory = self;

    (void) progressed;
    assert_int_equal(what->disk.set, DISK_OF_SNAPSHOT);
    memory->syncs++;
    memory->bytes_max = what->bytes_max;
    (void) snprintf(memory->synced, sizeof(memory->synced), "%s %s %s", what->folder, what->prefix,
                    what->manifest);
    memory->excludes[0] = '\0';
    for (size_t i = 0, used = 0; i < what->exclude_count; i++)
        used += (size_t) snprintf(memory->excludes + used, sizeof(memory->excludes) - used, "%s ",
                                  what->excludes[i]);
    answer(memory, memory->fail_sync, context)->synced = done;
}

static inline void fake_restore(void *self, const struct vault_mirror *what,
                                vault_progressed *progressed, vault_mirror_done *done,
                                void *context)
{
    struct memory *memory = self;

    (void) progressed;
    memory->restores++;
    (void) snprintf(memory->restored, sizeof(memory->restored), "%s %s %s", what->folder,
                    what->prefix, what->manifest);
    answer(memory, memory->fail_restore, context)->restored = done;
}

static inline void fake_remove(void *self, const char *prefix, vault_done *done, void *context)
{
    struct memory *memory = self;
    size_t used = strlen(memory->removed);

    memory->removals++;
    (void) snprintf(memory->removed + used, sizeof(memory->removed) - used, "%s ", prefix);
    answer(memory, memory->fail_remove, context)->done = done;
}

/* --- the world -------------------------------------------------------------------------------- */

static inline int setup(void **state)
{
    struct memory *memory = mem_alloc(sizeof(*memory));

    *memory = (struct memory){.world = world_new(NULL),
                              .answer = {.files = 3,
                                         .skipped = 2,
                                         .unchanged = 4,
                                         .removed = 1,
                                         .total_files = 7,
                                         .total_bytes = 70,
                                         .manifest_sum = {0xab}}};
    memory->vault = (struct vault){.self = memory,
                                   .sync = fake_sync,
                                   .restore_mirror = fake_restore,
                                   .remove_prefix = fake_remove};
    list_init(&memory->held);
    memory->world->options.vault = &memory->vault;
    memory->world->options.sync_excludes = "node_modules,,dist,";
    world_open(memory->world);
    *state = memory;
    return 0;
}

static inline int teardown(void **state)
{
    struct memory *memory = *state;

    let_go(memory);
    world_free(memory->world);
    free(memory);
    return 0;
}

struct heard {
    int times;
    bool failed;
    struct error failure;
    struct workspace_synced synced;
    uint64_t files, bytes;
};

static inline void on_synced(void *context, const struct error *failure,
                             const struct workspace_synced *synced)
{
    struct heard *heard = context;

    heard->times++;
    heard->failed = failure != NULL;
    if (failure)
        heard->failure = *failure;
    else
        heard->synced = *synced;
}

static inline void on_restored(void *context, const struct error *failure, uint64_t files,
                               uint64_t bytes)
{
    struct heard *heard = context;

    heard->times++;
    heard->failed = failure != NULL;
    if (failure)
        heard->failure = *failure;
    heard->files = files;
    heard->bytes = bytes;
}

static inline struct heard do_sync(struct memory *memory, struct sandbox *sandbox)
{
    struct world *world = memory->world;
    struct heard heard = {.times = 0};

    workspace_sync(world->domain, &world->caller, sandbox, true, on_synced, &heard);
    assert_int_equal(heard.times, 0);
    TURN_UNTIL(&world->loop, heard.times);
    world_wait(world);
    assert_int_equal(heard.times, 1);
    return heard;
}

static inline struct heard do_restore(struct memory *memory, struct sandbox *sandbox)
{
    struct world *world = memory->world;
    struct heard heard = {.times = 0};

    workspace_restore(world->domain, &world->caller, sandbox, on_restored, &heard);
    assert_int_equal(heard.times, 0);
    TURN_UNTIL(&world->loop, heard.times);
    return heard;
}

static inline void expect(const struct heard *heard, enum err_code code)
{
    if (!heard->failed)
        fail_msg("it succeeded");
    if (heard->failure.code != code)
        fail_msg("%s: %s", error_code_text(heard->failure.code), heard->failure.message);
}

static inline void expect_good(const struct heard *heard)
{
    if (heard->failed)
        fail_msg("%s", heard->failure.message);
}

static inline void on_snapshots(void *context, const struct error *failure, const struct id *ids,
                                size_t count)
{
    (void) ids;
    assert_null(failure);
    *(int *) context = (int) count;
}

static inline int snapshots(struct memory *memory)
{
    int count = -1;

    provider_list_snapshots(memory->world->provider, on_snapshots, &count);
    TURN_UNTIL(&memory->world->loop, count >= 0);
    return count;
}

#define MEMORY_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
