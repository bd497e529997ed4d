/* For tests of sleep in tiers: a world with a vault that only remembers, and that makes the disks
 * it is told to fetch with a job of the provider. Included by test programs only. */
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include "domain/domain_testing.h"
#include "domain/stored_disk.h"
#include "domain/vault.h"

#define TIER_LAYER "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

struct tier_answer {
    struct loop_task task;
    struct tiers *tiers;
    vault_layer_done *layer;
    vault_done *done;
    void *context;
    int number; /* of a store: the how manieth */
    int input;
};

struct tiers {
    struct world *world;
    struct vault vault;
    enum err_code store_failure, fetch_failure;
    bool holds; /* answers wait in `held` */
    struct tier_answer *held;
    int stored, fetched;
    int store_failures;           /* that many stores fail, with `store_failure` */
    struct disk_ref disk;         /* that was stored last */
    struct disk_ref base;         /* and what it was told apart from; no id: nothing */
    char layer[VAULT_LAYER_SIZE]; /* the first that was fetched last */
    size_t fetched_layers;        /* how many those were */
    struct disk_ref start;        /* and what they were put onto; no id: nothing */
    int percent;                  /* of memory that is available */
};

static inline void tier_tell(struct loop_task *task)
{
    AUTO(free) struct tier_answer *answer = CONTAINER_OF(task, struct tier_answer, task);
    struct tiers *tiers = answer->tiers;
    enum err_code code = answer->layer ? tiers->store_failure : tiers->fetch_failure;
    struct vault_layer layer = {
        .id = TIER_LAYER, .size = 10, .bytes = 100, .sum = {1, 2, 3}, .is_new = true};
    struct error failure = ERROR_INIT;

    layer.id[1] = (char) ('0' + answer->number); /* the first is TIER_LAYER */
    if (answer->layer && tiers->store_failures && --tiers->store_failures == 0)
        tiers->store_failure = ERR_NONE;
    if (code != ERR_NONE)
        (void) error_set(&failure, code, 0, "the object store is not well");
    if (answer->layer)
        answer->layer(answer->context, code ? &failure : NULL, code ? NULL : &layer);
    else
        answer->done(answer->context, code ? &failure : NULL);
}

static inline struct tier_answer *tier_answer(struct tiers *tiers, void *context)
{
    struct tier_answer *answer = mem_alloc(sizeof(*answer));

    answer->tiers = tiers;
    answer->context = context;
    answer->input = -1;
    loop_task_init(&answer->task, tier_tell);
    return answer;
}

static inline void tier_store(void *self, const struct vault_asker *asker,
                              const struct disk_ref *disk, const struct disk_ref *base,
                              vault_progressed *progressed, vault_layer_done *done, void *context)
{
    struct tiers *tiers = self;
    struct tier_answer *answer = tier_answer(tiers, context);

    (void) asker, (void) progressed;
    answer->number = tiers->stored++;
    tiers->disk = *disk;
    tiers->base = base ? *base : (struct disk_ref){.id.text = ""};
    answer->layer = done;
    if (tiers->holds)
        tiers->held = answer;
    else
        loop_defer(&tiers->world->loop, &answer->task);
}

static inline void tier_unpacked(void *context, const struct error *failure,
                                 const struct ending *ending)
{
    struct tier_answer *answer = context;

    assert_null(failure);
    assert_int_equal(ending->value, 0);
    (void) close(answer->input);
    tier_tell(&answer->task);
}

static inline void tier_fetch(void *self, const struct vault_fetch *what,
                              vault_progressed *progressed, vault_done *done, void *context)
{
    struct tiers *tiers = self;
    struct tier_answer *answer = tier_answer(tiers, context);
    struct provider_disk_job job = {.kind = DISK_JOB_UNPACK, .data = -EBADF};

    (void) progressed;
    tiers->fetched_layers = what->count;
    tiers->start = what->start;
    tiers->fetched++;
    memcpy(tiers->layer, what->layers[0].id, sizeof(tiers->layer));
    answer->done = done;
    if (tiers->fetch_failure != ERR_NONE) {
        loop_defer(&tiers->world->loop, &answer->task);
        return;
    }
    job.target = what->target;
    job.input = answer->input = open("/dev/null", O_RDWR | O_CLOEXEC);
    job.output = answer->input;
    provider_run_disk_job(tiers->world->provider, &job, tier_unpacked, answer);
}

static inline int tier_memory(void *context)
{
    struct world *world = context;

    return ((struct tiers *) world->options.vault->self)->percent;
}

/* An open world whose sandboxes go a tier down each minute; `missing` as of the fake provider. */
static inline struct tiers *tiers_new(unsigned int missing)
{
    struct tiers *tiers = mem_alloc(sizeof(*tiers));
    const struct provider_fake_options fake = {.missing = missing};

    tiers->world = world_new(&fake);
    tiers->percent = 100;
    tiers->vault =
        (struct vault){.self = tiers, .store_disk = tier_store, .fetch_disk = tier_fetch};
    tiers->world->options.vault = &tiers->vault;
    tiers->world->options.reclaim_after_ms = 60000;
    tiers->world->options.hibernate_after_ms = 120000;
    tiers->world->options.offload_after_ms = 60000;
    tiers->world->options.memory_available = tier_memory;
    tiers->world->options.memory_pressure = 10;
    world_open(tiers->world);
    return tiers;
}

static inline void tiers_free(struct tiers *tiers)
{
    world_free(tiers->world);
    free(tiers);
}

/* As long as it takes, in steps of ten seconds of the world. */
static inline void tiers_until(struct tiers *tiers, const struct sandbox *sandbox,
                               enum sandbox_tier tier)
{
    for (int i = 0; i < 100 && (sandbox_tier(sandbox) != tier || sandbox->is_held); i++)
        world_pass(tiers->world, 10);
    if (sandbox_tier(sandbox) != tier)
        fail_msg("it is %s, not %s", sandbox_tier_text(sandbox_tier(sandbox)),
                 sandbox_tier_text(tier));
}

/* A sandbox whose disk is only in the store. */
static inline struct sandbox *tiers_offloaded(struct tiers *tiers)
{
    struct sandbox *sandbox = world_create(tiers->world, "demo");

    do_ask(tiers->world, sandbox_sleep, sandbox);
    tiers_until(tiers, sandbox, SANDBOX_TIER_OFFLOADED);
    assert_int_equal(world_state(tiers->world, &sandbox->id), -1);
    return sandbox;
}
