/* For tests of the domain: a loop, a store in memory, the provider that only remembers, an agent
 * that does as it is told, a clock that stands still, and calls that write down what came back.
 * Included by test programs only.
 *
 *     struct world *world = world_new(NULL);      store and loop, no domain yet
 *     world_open(world);                          ... now with an open domain
 *     struct sandbox *sandbox = world_create(world, "demo");
 *     world_close(world); ... world_open(world);  as after a restart, on the same store
 *     world_free(world); */
#pragma once

#include "base/clock.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/text.h"
#include "domain/domain.h"
#include "domain/domain_internal.h"
#include "domain/event/event.h"
#include "domain/sandbox/sandbox_use.h"
#include "domain/sandbox/sandboxes.h"
#include "net/net_testing.h"
#include "provider/provider_fake.h"
#include "store/keyring.h"
#include "store/store_engine.h"
#include "store/store_sqlite.h"

#define WORLD_DESCRIPTORS 20000
#define WORLD_START_MS    INT64_C(1800000000000)

/* What an agent does when it is asked. */
enum agent_mood { AGENT_ANSWERS, AGENT_FAILS, AGENT_IS_SILENT };

struct world {
    struct loop loop;
    struct clock_manual clock;
    struct keyring *keyring;
    struct store *store;
    const struct store_engine *engine; /* the real one */
    int refuse_commit;                 /* the nth from now on fails; 0: none */
    bool refuse_all;
    int commits; /* asked for so far */

    struct provider *provider;
    struct provider_fake_options fake;
    struct domain *domain;
    struct domain_options options;
    struct shares *shares; /* of one daemon's life, as the domain is */
    struct inside inside;
    struct loop_task turn;
    int opened, closed, lost;
    bool open_failed;
    struct error failure;

    /* The agent. */
    enum agent_mood mood;
    struct inside_activity activity;
    const char *saved; /* what save answers */
    char *restored;    /* owned: what restore was given */
    char *environment; /* owned: what set_environment was given */
    int asked_activity, asked_quiesce, asked_resume, asked_save, asked_restore, asked_environment,
        forgotten;
    struct text commands; /* "one;two;": that were to be started */
    struct list silent;   /* of agent_answer: never given, freed at the end */

    struct caller caller; /* an owner who may write */
};

/* --- the agent -------------------------------------------------------------------------------- */

struct agent_answer {
    struct list link;
    struct loop_task task;
    struct world *world;
    inside_activity_done *activity;
    inside_text_done *text;
    inside_done *done;
    void *context;
    enum agent_mood mood;
};

static inline void agent_tell(struct loop_task *task)
{
    AUTO(free) struct agent_answer *answer = CONTAINER_OF(task, struct agent_answer, task);
    struct error failure = ERROR_INIT;
    const struct error *err = answer->mood == AGENT_FAILS ? &failure : NULL;

    (void) error_set(&failure, ERR_UPSTREAM, 0, "the agent is not well");
    if (answer->activity)
        answer->activity(answer->context, err, err ? NULL : &answer->world->activity);
    else if (answer->text)
        answer->text(answer->context, err, err ? NULL : answer->world->saved);
    else
        answer->done(answer->context, err);
}

static inline struct agent_answer *agent_ask(struct world *world, void *context)
{
    struct agent_answer *answer = mem_alloc(sizeof(*answer));

    answer->world = world;
    answer->context = context;
    answer->mood = world->mood;
    loop_task_init(&answer->task, agent_tell);
    if (world->mood == AGENT_IS_SILENT)
        list_append(&world->silent, &answer->link);
    else
        loop_defer(&world->loop, &answer->task);
    return answer;
}

static inline void agent_activity(void *self, const struct id *sandbox, inside_activity_done *done,
                                  void *context)
{
    struct world *world = self;

    (void) sandbox;
    world->asked_activity++;
    agent_ask(world, context)->activity = done;
}

static inline void agent_quiesce(void *self, const struct id *sandbox, inside_done *done,
                                 void *context)
{
    struct world *world = self;

    (void) sandbox;
    world->asked_quiesce++;
    agent_ask(world, context)->done = done;
}

static inline void agent_resume(void *self, const struct id *sandbox, inside_done *done,
                                void *context)
{
    struct world *world = self;

    (void) sandbox;
    world->asked_resume++;
    agent_ask(world, context)->done = done;
}

static inline void agent_save(void *self, const struct id *sandbox, inside_text_done *done,
                              void *context)
{
    struct world *world = self;

    (void) sandbox;
    world->asked_save++;
    agent_ask(world, context)->text = done;
}

static inline void agent_restore(void *self, const struct id *sandbox, const char *text,
                                 inside_done *done, void *context)
{
    struct world *world = self;

    (void) sandbox;
    world->asked_restore++;
    free(world->restored);
    world->restored = mem_copy_text(text);
    agent_ask(world, context)->done = done;
}

static inline void agent_set_environment(void *self, const struct id *sandbox, const char *json,
                                         inside_done *done, void *context)
{
    struct world *world = self;

    (void) sandbox;
    world->asked_environment++;
    free(world->environment);
    world->environment = mem_copy_text(json);
    agent_ask(world, context)->done = done;
}

static inline void agent_start_process(void *self, const struct id *sandbox, const char *command,
                                       inside_done *done, void *context)
{
    struct world *world = self;

    (void) sandbox;
    text_format(&world->commands, "%s;", command);
    agent_ask(world, context)->done = done;
}

static inline void agent_forget(void *self, const struct id *sandbox)
{
    (void) sandbox;
    ((struct world *) self)->forgotten++;
}

/* --- the store that refuses --------------------------------------------------------------------
 */

/* One world per test program: the engine's functions are given no more than the store. */
static struct world *refusing_world;

static inline void refusing_ask(struct store *store, struct list *jobs)
{
    struct world *world = refusing_world;

    LIST_EACH (jobs, at) {
        struct store_job *job = CONTAINER_OF(at, struct store_job, link);

        if (job->type != STORE_JOB_COMMIT)
            continue;
        world->commits++;
        if (world->refuse_all || (world->refuse_commit > 0 && --world->refuse_commit == 0))
            (void) error_set(&job->failure, ERR_NO_SPACE, 0, "the disk is full, as a test said");
    }
    world->engine->ask(store, jobs);
}

/* For tests that kill a process: a file that outlives it, and the keys it is sealed with. */
static const char *world_store_path = ":memory:";
static struct keyring *world_keyring;

static inline struct store *world_open_store(struct world *world)
{
    static struct store_engine refusing;
    struct store_sqlite_options options = {
        .loop = &world->loop, .path = world_store_path, .keyring = world->keyring};
    struct error err = ERROR_INIT;
    struct store *store = store_sqlite_new(&options, &err);

    if (!store)
        fail_msg("%s", err.message);
    world->engine = store->engine;
    refusing = *store->engine;
    refusing.ask = refusing_ask;
    store->engine = &refusing;
    refusing_world = world;
    return store;
}

/* --- the world -------------------------------------------------------------------------------- */

static inline void world_turn(struct loop_task *task)
{
    domain_turn(CONTAINER_OF(task, struct world, turn)->domain);
}

static inline void world_defer(void *context)
{
    struct world *world = context;

    loop_defer(&world->loop, &world->turn);
}

static inline void world_lost(void *context, const struct error *reason)
{
    assert_non_null(reason);
    ((struct world *) context)->lost++;
}

/* `fake` may be NULL: it can do everything. */
static inline struct world *world_new(const struct provider_fake_options *fake)
{
    struct world *world = mem_alloc(sizeof(*world));

    assert_int_equal(loop_init(&world->loop, NULL), 0);
    clock_manual_init(&world->clock, WORLD_START_MS);
    world->clock.monotonic_ns = UINT64_C(1000) * 1000 * 1000 * 1000;
    world->keyring = world_keyring ? world_keyring : keyring_new();
    world->store = world_open_store(world);
    if (fake)
        world->fake = *fake;
    world->fake.loop = &world->loop;
    if (!world->fake.agents)
        world->fake.agents = "/run/agents";
    world->inside = (struct inside){.self = world,
                                    .activity = agent_activity,
                                    .quiesce = agent_quiesce,
                                    .resume = agent_resume,
                                    .save = agent_save,
                                    .restore = agent_restore,
                                    .set_environment = agent_set_environment,
                                    .start_process = agent_start_process,
                                    .forget = agent_forget};
    world->commands = (struct text) TEXT_INIT(64 * 1024);
    world->saved = "{\"sessions\":[]}";
    world->activity.idle_ms = UINT32_MAX;
    list_init(&world->silent);
    loop_task_init(&world->turn, world_turn);
    world->caller = (struct caller){.scope = CALLER_WRITE, .owner = id_new()};
    world->options = (struct domain_options){.inside = &world->inside,
                                             .clock = &world->clock.clock,
                                             .node = "here",
                                             .lost = world_lost,
                                             .defer = world_defer,
                                             .context = world};
    return world;
}

static inline void world_on_open(void *context, const struct error *failure)
{
    struct world *world = context;

    world->opened++;
    world->open_failed = failure != NULL;
    if (failure)
        world->failure = *failure;
}

/* A provider, for world_begin; sandboxes of earlier times may be added to it before. */
static inline void world_make_provider(struct world *world)
{
    world->provider = provider_fake_new(&world->fake);
}

/* Open the domain on world->provider; NULL: with nowhere to run sandboxes. */
static inline void world_open_as_is(struct world *world)
{
    world->options.store = world->store;
    world->options.provider = world->provider;
    world->options.shares = world->shares = shares_new(WORLD_DESCRIPTORS);
    world->opened = world->closed = 0;
    world->domain = domain_new(&world->options);
    domain_open(world->domain, world_on_open, world);
    assert_int_equal(world->opened, 0);
    TURN_UNTIL(&world->loop, world->opened);
    if (world->open_failed)
        fail_msg("%s", world->failure.message);
}

/* On the provider that is there, or a new one. */
static inline void world_open(struct world *world)
{
    if (!world->provider)
        world_make_provider(world);
    world_open_as_is(world);
}

static inline void world_on_closed(void *context, const struct error *failure)
{
    struct world *world = context;

    assert_null(failure);
    world->closed++;
    world->domain = NULL;
    world->provider = NULL;
}

static inline void world_close(struct world *world)
{
    domain_close(world->domain, world_on_closed, world);
    assert_int_equal(world->closed, 0);
    TURN_UNTIL(&world->loop, world->closed);
    assert_int_equal(world->closed, 1);
    shares_free(TAKE_PTR(world->shares));
}

static inline void world_store_closed(void *context, const struct error *failure,
                                      const struct store_receipt *receipt)
{
    (void) failure, (void) receipt;
    *(bool *) context = true;
}

static inline void world_free(struct world *world)
{
    bool is_closed = false;
    struct list *link;

    if (world->domain)
        world_close(world);
    shares_free(TAKE_PTR(world->shares)); /* of a test that closed the domain by itself */
    store_close(world->store, world_store_closed, &is_closed);
    TURN_UNTIL(&world->loop, is_closed);
    while ((link = list_first(&world->silent))) {
        struct agent_answer *answer = CONTAINER_OF(link, struct agent_answer, link);

        /* An agent that speaks up after everything is over is not listened to. */
        list_remove(link);
        answer->mood = AGENT_FAILS;
        agent_tell(&answer->task);
    }
    for (int i = 0; i < 3; i++)
        testing_turn(&world->loop);
    loop_done(&world->loop);
    keyring_free(world->keyring);
    text_done(&world->commands);
    free(world->restored);
    free(world->environment);
    free(world);
}

static inline bool world_store_works(const struct world *world)
{
    struct store_counters counters;

    store_counters(world->store, &counters);
    return counters.queued > 0;
}

/* Something is under way outside the loop: with the store's thread, in the thread pool, on a
 * socket. */
static inline bool world_works(const struct world *world)
{
    return (world->store && world_store_works(world)) || world->loop.uv.active_reqs.count > 0;
}

/* Until what was asked for has been answered, on a busy machine, too. */
static inline void world_wait(struct world *world)
{
    for (int i = 0; i < 5; i++) {
        int turns = TESTING_TURNS_MAX;

        /* What only the loop does is done without sleeping. */
        (void) uv_run(&world->loop.uv, UV_RUN_NOWAIT);
        while (world_works(world) && --turns > 0)
            testing_turn(&world->loop);
    }
}

/* A second passes. */
static inline void world_tick(struct world *world)
{
    clock_manual_advance(&world->clock, 1000);
    domain_tick(world->domain);
    (void) uv_run(&world->loop.uv, UV_RUN_NOWAIT);
}

/* Time passes, in steps of a second as in the daemon. */
static inline void world_pass(struct world *world, unsigned int seconds)
{
    for (unsigned int i = 0; i < seconds; i++)
        world_tick(world);
    world_wait(world);
}

/* --- calls ------------------------------------------------------------------------------------ */

struct told {
    int times;
    bool failed;
    struct error failure;
    struct sandbox *sandbox;
    enum sandbox_status status; /* when it was told */
    bool is_new;
};

static inline void note_told(struct told *told, const struct error *failure,
                             struct sandbox *sandbox)
{
    told->times++;
    told->failed = failure != NULL;
    told->sandbox = sandbox;
    if (failure) {
        assert_null(sandbox);
        assert_int_not_equal(failure->code, ERR_NONE);
        assert_true(failure->message[0] != '\0');
        told->failure = *failure;
    } else if (sandbox) {
        told->status = sandbox->status;
    }
}

static inline void on_told(void *context, const struct error *failure, struct sandbox *sandbox)
{
    note_told(context, failure, sandbox);
}

static inline void on_created(void *context, const struct error *failure, struct sandbox *sandbox,
                              bool is_new)
{
    struct told *told = context;

    note_told(told, failure, sandbox);
    told->is_new = is_new;
}

static inline void expect_ok(const struct told *told)
{
    if (told->failed)
        fail_msg("%s: %s", error_code_text(told->failure.code), told->failure.message);
    assert_int_equal(told->times, 1);
}

static inline void expect_code(const struct told *told, enum err_code code)
{
    assert_int_equal(told->times, 1);
    assert_true(told->failed);
    if (told->failure.code != code)
        fail_msg("%s: %s", error_code_text(told->failure.code), told->failure.message);
}

static inline struct told ask_create(struct world *world, const struct caller *caller,
                                     const struct sandbox_spec *spec)
{
    struct told told = {.times = 0};

    sandbox_create(world->domain, caller, spec, on_created, &told);
    assert_int_equal(told.times, 0);
    TURN_UNTIL(&world->loop, told.times);
    return told;
}

static inline struct sandbox *world_create(struct world *world, const char *name)
{
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct told told;

    spec.name = (char *) name;
    told = ask_create(world, &world->caller, &spec);
    expect_ok(&told);
    assert_true(told.is_new);
    return told.sandbox;
}

typedef void sandbox_call(struct domain *domain, const struct caller *caller,
                          struct sandbox *sandbox, sandbox_done *done, void *context);

static inline struct told ask(struct world *world, sandbox_call *call, struct sandbox *sandbox)
{
    struct told told = {.times = 0};

    call(world->domain, &world->caller, sandbox, on_told, &told);
    assert_int_equal(told.times, 0);
    TURN_UNTIL(&world->loop, told.times);
    return told;
}

static inline void do_ask(struct world *world, sandbox_call *call, struct sandbox *sandbox)
{
    struct told told = ask(world, call, sandbox);

    expect_ok(&told);
}

static inline struct told ask_update(struct world *world, struct sandbox *sandbox,
                                     const struct sandbox_change *update)
{
    struct told told = {.times = 0};

    sandbox_update(world->domain, &world->caller, sandbox, update, on_told, &told);
    TURN_UNTIL(&world->loop, told.times);
    return told;
}

/* A use, and what became of it. */
struct told_use {
    struct sandbox_use use;
    int times;
    bool failed;
    struct error failure;
};

static inline void on_use(struct sandbox_use *use, const struct error *failure)
{
    struct told_use *told = CONTAINER_OF(use, struct told_use, use);

    told->times++;
    told->failed = failure != NULL;
    if (failure)
        told->failure = *failure;
}

static inline void use_begin(struct world *world, struct sandbox *sandbox, struct told_use *told,
                             unsigned int flags)
{
    *told = (struct told_use){.times = 0};
    sandbox_use_begin(world->domain, sandbox, &told->use, flags, on_use);
}

/* Begin and end one. */
static inline void use_once(struct world *world, struct sandbox *sandbox)
{
    struct told_use told;

    use_begin(world, sandbox, &told, 0);
    TURN_UNTIL(&world->loop, told.times);
    if (told.failed)
        fail_msg("%s", told.failure.message);
    sandbox_use_end(&told.use);
}

#include "domain/domain_testing_look.h"

static inline int world_setup(void **state)
{
    struct world *world = world_new(NULL);

    world_open(world);
    *state = world;
    return 0;
}

static inline int world_teardown(void **state)
{
    world_free(*state);
    return 0;
}

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
