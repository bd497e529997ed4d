/* For tests of providers: a loop, a provider on it, and calls that write down what came back.
 * Included by test programs only. */
#pragma once

#include <string.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "net/net_testing.h"
#include "provider/provider.h"

#define CONTRACT_EXITS_MAX 64

struct contract;

struct contract_backend {
    /* Make the provider; the loop is there. */
    struct provider *(*make)(struct contract *contract);
    /* Let a sandbox's PID 1 be killed by SIGKILL. */
    void (*kill)(struct contract *contract, const struct id *id);
    /* The provider is open. May be NULL. */
    void (*opened)(struct contract *contract);
    /* The provider is closed; the loop still turns. */
    void (*done)(struct contract *contract);
    /* What the tests' sandboxes run; NULL: the provider's default. */
    const char *image;
};

struct told_exit {
    struct id id;
    struct ending ending;
};

struct contract {
    const struct contract_backend *backend;
    struct loop loop;
    struct provider *provider; /* NULL once closed */
    void *more;                /* the backend's own */
    struct told_exit exits[CONTRACT_EXITS_MAX];
    size_t exit_count;
    int losses;
    struct error loss;
};

/* What came back from one call. */
struct reply {
    int times;
    bool failed;
    struct error failure;
    struct provider_sandbox sandbox;
    struct stats stats;
    struct ending ending;
    struct snapshot_made snapshot;
    uint64_t bytes;
    uint32_t mount;
    int fuse;
    struct id ids[256];
    int fds[PROVIDER_SOCKETS_MAX];
    size_t count; /* of sockets, sandboxes or ids */
    struct provider_sandbox list[256];
    struct contract *close_from; /* close the provider from inside the answer */
    int closed;
};

static inline void on_closed(void *context, const struct error *failure)
{
    assert_null(failure);
    *(int *) context += 1;
}

static inline void note(struct reply *reply, const struct error *failure)
{
    reply->times++;
    reply->failed = failure != NULL;
    if (failure) {
        assert_int_not_equal(failure->code, ERR_NONE);
        assert_true(failure->message[0] != '\0');
        reply->failure = *failure;
    }
}

static inline void on_done(void *context, const struct error *failure)
{
    note(context, failure);
}

static inline void on_sandbox(void *context, const struct error *failure,
                              const struct provider_sandbox *sandbox)
{
    struct reply *reply = context;

    assert_true((failure == NULL) == (sandbox != NULL));
    note(reply, failure);
    if (sandbox)
        reply->sandbox = *sandbox;
}

static inline void on_list(void *context, const struct error *failure,
                           const struct provider_sandbox *sandboxes, size_t count)
{
    struct reply *reply = context;

    note(reply, failure);
    assert_true(count <= ARRAY_COUNT(reply->list));
    for (size_t i = 0; i < count; i++)
        reply->list[i] = sandboxes[i];
    reply->count = count;
}

static inline void on_stats(void *context, const struct error *failure, const struct stats *stats)
{
    struct reply *reply = context;

    assert_true((failure == NULL) == (stats != NULL));
    note(reply, failure);
    if (stats)
        reply->stats = *stats;
}

static inline void on_sockets(void *context, const struct error *failure, const int *sockets,
                              size_t count)
{
    struct reply *reply = context;

    assert_true((failure == NULL) == (sockets != NULL));
    note(reply, failure);
    reply->count = count;
    for (size_t i = 0; i < count; i++)
        reply->fds[i] = sockets[i];
}

static inline void on_job(void *context, const struct error *failure, const struct ending *ending)
{
    struct reply *reply = context;

    assert_true((failure == NULL) == (ending != NULL));
    note(reply, failure);
    if (ending)
        reply->ending = *ending;
}

static inline void on_snapshot(void *context, const struct error *failure,
                               const struct snapshot_made *snapshot)
{
    struct reply *reply = context;

    assert_true((failure == NULL) == (snapshot != NULL));
    note(reply, failure);
    if (snapshot)
        reply->snapshot = *snapshot;
}

static inline void on_ids(void *context, const struct error *failure, const struct id *ids,
                          size_t count)
{
    struct reply *reply = context;

    note(reply, failure);
    assert_true(count <= ARRAY_COUNT(reply->ids));
    for (size_t i = 0; i < count; i++)
        reply->ids[i] = ids[i];
    reply->count = count;
}

static inline void on_bytes(void *context, const struct error *failure, uint64_t bytes)
{
    struct reply *reply = context;

    note(reply, failure);
    reply->bytes = bytes;
}

static inline void on_exit_told(void *context, const struct id *id, const struct ending *ending)
{
    struct contract *contract = context;

    assert_true(contract->exit_count < CONTRACT_EXITS_MAX);
    contract->exits[contract->exit_count++] = (struct told_exit){.id = *id, .ending = *ending};
}

static inline void on_lost(void *context, const struct error *reason)
{
    struct contract *contract = context;

    contract->losses++;
    contract->loss = *reason;
}

/* --- asking ---------------------------------------------------------------------------------- */

/* Not from inside the call, and then once. */
static inline void await(struct contract *contract, struct reply *reply)
{
    assert_int_equal(reply->times, 0);
    TURN_UNTIL(&contract->loop, reply->times);
    assert_int_equal(reply->times, 1);
}

static inline void expect_ok(const struct reply *reply)
{
    if (reply->failed)
        fail_msg("%s: %s", error_code_text(reply->failure.code), reply->failure.message);
}

static inline void expect_code(const struct reply *reply, enum err_code code)
{
    if (!reply->failed)
        fail_msg("succeeded instead of %s", error_code_text(code));
    if (reply->failure.code != code)
        fail_msg("%s instead of %s: %s", error_code_text(reply->failure.code),
                 error_code_text(code), reply->failure.message);
}

static inline struct provider_spec spec_of(const struct contract *contract, const struct id *id)
{
    return (struct provider_spec){.id = *id,
                                  .hostname = "demo",
                                  .image = contract->backend->image,
                                  .limits = {.swap_bytes = UINT64_MAX},
                                  .keep_id = true};
}

static inline struct reply ask_create(struct contract *contract, const struct provider_spec *spec)
{
    struct reply reply = {.times = 0};

    provider_create(contract->provider, spec, on_sandbox, &reply);
    await(contract, &reply);
    return reply;
}

static inline struct reply ask_start(struct contract *contract, const struct id *id)
{
    struct provider_spec spec = spec_of(contract, id);
    struct reply reply = {.times = 0};

    provider_start(contract->provider, &spec, on_sandbox, &reply);
    await(contract, &reply);
    return reply;
}

typedef void plain_call(struct provider *provider, const struct id *id, provider_done *done,
                        void *context);

static inline struct reply ask_plain(struct contract *contract, plain_call *call,
                                     const struct id *id)
{
    struct reply reply = {.times = 0};

    call(contract->provider, id, on_done, &reply);
    await(contract, &reply);
    return reply;
}

static inline struct reply ask_limits(struct contract *contract, const struct id *id,
                                      const struct limits *limits)
{
    struct reply reply = {.times = 0};

    provider_set_limits(contract->provider, id, limits, on_done, &reply);
    await(contract, &reply);
    return reply;
}

static inline struct reply ask_stats(struct contract *contract, const struct id *id)
{
    struct reply reply = {.times = 0};

    provider_stats(contract->provider, id, on_stats, &reply);
    await(contract, &reply);
    return reply;
}

static inline struct reply ask_list(struct contract *contract)
{
    struct reply reply = {.times = 0};

    provider_list(contract->provider, on_list, &reply);
    await(contract, &reply);
    return reply;
}

static inline struct reply ask_sockets(struct contract *contract, const struct id *id, size_t count)
{
    struct reply reply = {.times = 0};

    provider_sockets(contract->provider, id, count, on_sockets, &reply);
    await(contract, &reply);
    return reply;
}

static inline void on_mount(void *context, const struct error *failure, uint32_t mount, int fuse)
{
    struct reply *reply = context;

    note(reply, failure);
    assert_true((failure == NULL) == (fuse >= 0));
    reply->mount = mount;
    reply->fuse = fuse;
}

static inline struct reply ask_open_mount(struct contract *contract, const struct id *id,
                                          const char *place)
{
    struct reply reply = {.times = 0};

    provider_open_mount(contract->provider, id, place, false, on_mount, &reply);
    await(contract, &reply);
    return reply;
}

static inline struct reply ask_detach_mount(struct contract *contract, const struct id *id,
                                            uint32_t mount)
{
    struct reply reply = {.times = 0};

    provider_detach_mount(contract->provider, id, mount, on_done, &reply);
    await(contract, &reply);
    return reply;
}

static inline struct reply ask_job(struct contract *contract, const struct id *id,
                                   enum disk_job_kind kind, const struct id *target, int output)
{
    struct reply reply = {.times = 0};
    struct provider_disk_job job = {
        .kind = kind, .on.id = *id, .input = -EBADF, .output = output, .data = -EBADF};

    if (target)
        job.target = *target;
    provider_run_disk_job(contract->provider, &job, on_job, &reply);
    await(contract, &reply);
    return reply;
}

static inline struct reply ask_snapshot(struct contract *contract, const struct id *id,
                                        const struct id *snapshot, bool freeze)
{
    struct reply reply = {.times = 0};

    provider_snapshot(contract->provider, id, snapshot, freeze, on_snapshot, &reply);
    await(contract, &reply);
    return reply;
}

static inline struct reply ask_snapshots(struct contract *contract)
{
    struct reply reply = {.times = 0};

    provider_list_snapshots(contract->provider, on_ids, &reply);
    await(contract, &reply);
    return reply;
}

static inline struct reply ask_roll_back(struct contract *contract, const struct id *id,
                                         const struct id *snapshot)
{
    struct reply reply = {.times = 0};

    provider_roll_back(contract->provider, id, snapshot, 0, on_done, &reply);
    await(contract, &reply);
    return reply;
}

static inline struct reply ask_usage(struct contract *contract, enum disk_set set,
                                     const struct id *id)
{
    struct disk_ref disk = {set, *id};
    struct reply reply = {.times = 0};

    provider_disk_usage(contract->provider, &disk, on_bytes, &reply);
    await(contract, &reply);
    return reply;
}

static inline struct reply ask_reclaim(struct contract *contract, const struct id *id)
{
    struct reply reply = {.times = 0};

    provider_reclaim(contract->provider, id, on_bytes, &reply);
    await(contract, &reply);
    return reply;
}

/* A running sandbox with a new id. */
static inline struct id new_sandbox(struct contract *contract)
{
    struct id id = id_new();
    struct provider_spec spec = spec_of(contract, &id);
    struct reply reply = ask_create(contract, &spec);

    expect_ok(&reply);
    assert_string_equal(reply.sandbox.id.text, id.text);
    assert_int_equal(reply.sandbox.state, RUN_STATE_RUNNING);
    return id;
}

/* The sandbox as the list shows it; fails the test when it does not. */
static inline struct provider_sandbox listed(struct contract *contract, const struct id *id)
{
    struct reply reply = ask_list(contract);

    expect_ok(&reply);
    for (size_t i = 0; i < reply.count; i++) {
        if (strcmp(reply.list[i].id.text, id->text) == 0)
            return reply.list[i];
    }
    fail_msg("%s is not in the list", id->text);
    return (struct provider_sandbox){.state = RUN_STATE_BROKEN};
}

static inline void expect_state(struct contract *contract, const struct id *id,
                                enum run_state state)
{
    assert_int_equal(listed(contract, id).state, state);
}

static inline bool can(const struct contract *contract, unsigned int capability)
{
    return provider_capabilities(contract->provider) & capability;
}

/* Leave a test that needs what this provider cannot do here. */
static inline void needs(const struct contract *contract, unsigned int capability, const char *what)
{
    if (can(contract, capability))
        return;
    (void) printf("# skip: %s\n", what);
    (void) fflush(stdout);
    skip();
}

/* Turn the loop for a while, for what must not happen. */
static inline void turn_for(struct contract *contract, int turns)
{
    while (turns--)
        testing_turn(&contract->loop);
}

/* --- before and after ------------------------------------------------------------------------ */

static inline struct contract *contract_new(const struct contract_backend *backend)
{
    struct contract *contract = mem_alloc(sizeof(*contract));

    contract->backend = backend;
    assert_int_equal(loop_init(&contract->loop, NULL), 0);
    contract->provider = backend->make(contract);
    assert_non_null(contract->provider);
    return contract;
}

static inline struct reply contract_open(struct contract *contract)
{
    struct provider_watcher watcher = {
        .exited = on_exit_told, .lost = on_lost, .context = contract};
    struct reply reply = {.times = 0};

    provider_open(contract->provider, &watcher, on_done, &reply);
    await(contract, &reply);
    return reply;
}

static inline void contract_close(struct contract *contract)
{
    int closed = 0;

    provider_close(contract->provider, on_closed, &closed);
    assert_int_equal(closed, 0);
    TURN_UNTIL(&contract->loop, closed);
    contract->provider = NULL;
}

static inline void contract_free(struct contract *contract)
{
    if (contract->provider)
        contract_close(contract);
    contract->backend->done(contract);
    loop_run(&contract->loop);
    loop_done(&contract->loop);
    free(contract);
}

static inline int contract_setup(void **state)
{
    struct contract *contract = contract_new(*state);
    struct reply opened = contract_open(contract);

    expect_ok(&opened);
    if (contract->backend->opened)
        contract->backend->opened(contract);
    *state = contract;
    return 0;
}

static inline int contract_teardown(void **state)
{
    contract_free(*state);
    return 0;
}
