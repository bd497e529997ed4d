#include "provider/provider_fake.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "provider/provider_fake_job.h"
#include "provider/provider_fake_snapshot.h"
#include "provider/provider_internal.h"
#include "sys/file/sys_file.h"
#include "sys/network/sys_socket.h"

#define EVERYTHING                                                                                 \
    (PROVIDER_FREEZE | PROVIDER_RESTART | PROVIDER_PORTS | PROVIDER_NAT | PROVIDER_OOM |           \
     PROVIDER_STATS | PROVIDER_AGENT | PROVIDER_LIMITS | PROVIDER_DISK_JOBS | PROVIDER_SNAPSHOTS | \
     PROVIDER_RECLAIM | PROVIDER_MOUNTS)

#define EVERY_LIMIT                                                                                \
    (LIMIT_BIT(MEMORY) | LIMIT_BIT(SWAP) | LIMIT_BIT(PIDS) | LIMIT_BIT(CPU) | LIMIT_BIT(DISK) |    \
     LIMIT_BIT(FILES))

struct held {
    struct list link;
    struct provider_call *call;
};

struct fake_limits {
    struct list link;
    struct id id;
    struct limits limits;
};

struct fake {
    struct provider provider;
    unsigned int capabilities;
    unsigned int unenforced;
    char *agents; /* owned, may be NULL */
    bool chooses_ids;
    enum err_code fail_next[PROVIDER_CALL_COUNT];
    uint32_t mounts; /* numbers given out */
    bool hold[PROVIDER_CALL_COUNT];
    struct list held;   /* of held; oldest first */
    struct list exits;  /* of fake_exit, to be told */
    struct list limits; /* of fake_limits: what was asked for, per sandbox */
    struct stats stats;
    struct fake_jobs jobs;
    struct fake_snapshots snapshots;
    bool is_copying;
    struct loop_task tell; /* exits and the loss, from the loop */
    bool lose;
    struct error loss;
};

struct fake_exit {
    struct list link;
    struct id id;
    struct ending ending;
};

static struct fake *fake_of(struct provider *provider)
{
    return CONTAINER_OF(provider, struct fake, provider);
}

/* --- answers --------------------------------------------------------------------------------- */

/* Answer as the switches say; `failure` is NULL where the call would succeed. */
static void answer(struct provider_call *call, const struct error *failure)
{
    struct fake *fake = fake_of(call->provider);
    enum err_code code = fake->fail_next[call->kind];
    struct error wanted = ERROR_INIT;

    fake->fail_next[call->kind] = ERR_NONE;
    if (code != ERR_NONE) {
        (void) error_set(&wanted, code, 0, "%s fails, as it was told to",
                         provider_call_name(call->kind));
        failure = &wanted;
    }
    provider_call_answer(call, failure);
}

static void answer_or_hold(struct provider_call *call)
{
    struct fake *fake = fake_of(call->provider);
    struct held *held;

    if (!fake->hold[call->kind]) {
        answer(call, NULL);
        return;
    }
    held = mem_alloc(sizeof(*held));
    held->call = call;
    list_append(&fake->held, &held->link);
}

/* Those of a kind, or all; `failure` for each, or what the switches say. */
static void answer_held(struct fake *fake, enum provider_call_kind kind,
                        const struct error *failure)
{
    struct list mine;
    struct list *link;

    list_init(&mine);
    LIST_EACH (&fake->held, at) {
        struct held *held = CONTAINER_OF(at, struct held, link);

        if (kind != PROVIDER_CALL_COUNT && held->call->kind != kind)
            continue;
        list_remove(at);
        list_append(&mine, at);
    }
    while ((link = list_first(&mine))) {
        struct held *held = CONTAINER_OF(link, struct held, link);
        struct provider_call *call = held->call;

        list_remove(link);
        free(held);
        answer(call, failure);
    }
}

/* --- the operations -------------------------------------------------------------------------- */

static struct fake_limits *limits_of(const struct fake *fake, const struct id *id)
{
    LIST_EACH (&fake->limits, at) {
        struct fake_limits *limits = CONTAINER_OF(at, struct fake_limits, link);

        if (strcmp(limits->id.text, id->text) == 0)
            return limits;
    }
    return NULL;
}

static void remember_limits(struct fake *fake, const struct id *id, const struct limits *limits)
{
    struct fake_limits *known = limits_of(fake, id);

    if (!known) {
        known = mem_alloc(sizeof(*known));
        known->id = *id;
        list_append(&fake->limits, &known->link);
    }
    known->limits = *limits;
}

static void fake_open(struct provider_call *call)
{
    struct provider *provider = call->provider;
    struct fake *fake = fake_of(provider);

    provider->capabilities = fake->capabilities;
    provider->enforced = EVERY_LIMIT & ~fake->unenforced;
    if (!list_is_empty(&fake->exits))
        loop_defer(provider->loop, &fake->tell);
    answer_or_hold(call);
}

static unsigned int asked_limits(const struct limits *limits)
{
    return (limits->memory_bytes ? LIMIT_BIT(MEMORY) : 0) |
           (limits->swap_bytes != UINT64_MAX ? LIMIT_BIT(SWAP) : 0) |
           (limits->pids ? LIMIT_BIT(PIDS) : 0) | (limits->cpu_millis ? LIMIT_BIT(CPU) : 0) |
           (limits->disk_bytes ? LIMIT_BIT(DISK) : 0) | (limits->files ? LIMIT_BIT(FILES) : 0);
}

static void run(const struct id *id, struct provider_call *call)
{
    const struct provider_spec *spec = call->asked.spec;
    struct fake *fake = fake_of(call->provider);

    call->result.sandbox =
        (struct provider_sandbox){.id = *id,
                                  .state = RUN_STATE_RUNNING,
                                  .unenforced = asked_limits(&spec->limits) & fake->unenforced,
                                  .pause_us = spec->hold_origin ? 1 : 0};
    remember_limits(fake, id, &spec->limits);
    answer_or_hold(call);
}

static void fake_create(struct provider_call *call)
{
    const struct provider_spec *spec = call->asked.spec;
    struct fake *fake = fake_of(call->provider);
    struct id own = id_new();
    struct error err = ERROR_INIT;

    if (spec->origin.id.text[0]) {
        if (spec->origin.set == DISK_OF_SNAPSHOT &&
            !fake_snapshots_has(&fake->snapshots, &spec->origin.id)) {
            (void) error_set(&err, ERR_NOT_FOUND, 0, "there is no snapshot %s",
                             spec->origin.id.text);
            answer(call, &err);
            return;
        }
        fake_snapshots_set_origin(&fake->snapshots, &spec->id, &spec->origin);
        run(&spec->id, call);
        return;
    }
    run(fake->chooses_ids && !spec->keep_id ? &own : &spec->id, call);
}

static void fake_start(struct provider_call *call)
{
    run(&call->asked.spec->id, call);
}

/* What changes nothing but the state, which is kept for us. */
static void fake_plain(struct provider_call *call)
{
    answer_or_hold(call);
}

static void fake_set_limits(struct provider_call *call)
{
    struct fake *fake = fake_of(call->provider);

    if (fake->fail_next[PROVIDER_CALL_SET_LIMITS] == ERR_NONE)
        remember_limits(fake, &call->id, call->asked.limits);
    answer_or_hold(call);
}

static void fake_stats(struct provider_call *call)
{
    call->result.stats = fake_of(call->provider)->stats;
    answer_or_hold(call);
}

/* Real sockets, in our own network: they behave as sockets of a sandbox where nobody listens. */
static void fake_sockets(struct provider_call *call)
{
    struct sys_address address = {.length = sizeof(address.ipv4), .ipv4.sin_family = AF_INET};
    enum err_code *fail_next = &fake_of(call->provider)->fail_next[PROVIDER_CALL_SOCKETS];

    for (size_t i = 0; i < call->asked.count && *fail_next == ERR_NONE; i++) {
        int fd = sys_socket_create(&address);

        if (fd < 0)
            *fail_next = ERR_UNAVAILABLE;
        else
            call->result.sockets.fds[call->result.sockets.count++] = fd;
    }
    for (size_t i = 0; i < call->result.sockets.count && *fail_next != ERR_NONE; i++)
        (void) fd_close(call->result.sockets.fds[i]);
    answer(call, NULL);
}

/* A descriptor that nobody asks anything on, which is what an idle mount is. */
static void fake_open_mount(struct provider_call *call)
{
    struct fake *fake = fake_of(call->provider);

    if (fake->fail_next[PROVIDER_CALL_OPEN_MOUNT] == ERR_NONE) {
        call->result.mount.number = ++fake->mounts;
        call->result.mount.fuse = sys_file_open(AT_FDCWD, "/dev/null", O_RDWR, 0);
    }
    answer(call, NULL);
}

static void fake_disk_job(struct provider_call *call)
{
    const struct provider_disk_job *job = call->asked.job;
    const struct disk_ref *disks[] = {&job->on, &job->base};
    struct fake *fake = fake_of(call->provider);
    struct error err = ERROR_INIT;

    for (size_t i = 0; i < ARRAY_COUNT(disks); i++) {
        if (!disks[i]->id.text[0] || disks[i]->set != DISK_OF_SNAPSHOT ||
            fake_snapshots_has(&fake->snapshots, &disks[i]->id))
            continue;
        (void) error_set(&err, ERR_NOT_FOUND, 0, "there is no snapshot %s", disks[i]->id.text);
        answer(call, &err);
        return;
    }
    if (fake->fail_next[PROVIDER_CALL_DISK_JOB] == ERR_NONE)
        call->result.ending = fake_jobs_run(&fake->jobs, job);
    answer_or_hold(call);
}

static bool will_fail(struct provider_call *call)
{
    return fake_of(call->provider)->fail_next[call->kind] != ERR_NONE;
}

/* -1 with the call answered, unless it has the snapshot. */
static int find_snapshot(struct provider_call *call)
{
    struct error err = ERROR_INIT;

    if (will_fail(call) || fake_snapshots_has(&fake_of(call->provider)->snapshots, &call->snapshot))
        return 0;
    (void) error_set(&err, ERR_NOT_FOUND, 0, "there is no snapshot %s", call->snapshot.text);
    answer(call, &err);
    return -1;
}

static void fake_snapshot(struct provider_call *call)
{
    struct fake *fake = fake_of(call->provider);
    struct error err = ERROR_INIT;

    if (fake_snapshots_has(&fake->snapshots, &call->snapshot)) {
        (void) error_set(&err, ERR_CONFLICT, 0, "there is a snapshot %s already",
                         call->snapshot.text);
        answer(call, &err);
        return;
    }
    if (!will_fail(call))
        fake_snapshots_add(&fake->snapshots, &call->snapshot);
    call->result.snapshot = (struct snapshot_made){
        .pause_us = call->asked.freeze && call->before == RUN_STATE_RUNNING ? 1 : 0,
        .took_us = 2,
        .is_copied = fake->is_copying};
    answer_or_hold(call);
}

static void fake_delete_snapshot(struct provider_call *call)
{
    if (!will_fail(call))
        fake_snapshots_remove(&fake_of(call->provider)->snapshots, &call->snapshot);
    answer_or_hold(call);
}

static void fake_list_snapshots(struct provider_call *call)
{
    fake_snapshots_list(&fake_of(call->provider)->snapshots, call);
    answer_or_hold(call);
}

static void fake_roll_back(struct provider_call *call)
{
    const struct disk_ref origin = {DISK_OF_SNAPSHOT, call->snapshot};

    if (find_snapshot(call) < 0)
        return;
    if (!will_fail(call))
        fake_snapshots_set_origin(&fake_of(call->provider)->snapshots, &call->id, &origin);
    answer_or_hold(call);
}

static void fake_disk_usage(struct provider_call *call)
{
    if (call->snapshot.text[0] && find_snapshot(call) < 0)
        return;
    call->result.bytes = fake_of(call->provider)->stats.disk_bytes;
    answer_or_hold(call);
}

static void fake_reclaim(struct provider_call *call)
{
    call->result.bytes = fake_of(call->provider)->stats.memory_bytes;
    answer_or_hold(call);
}

static int fake_agent_address(struct provider *provider, const struct id *id,
                              char ret_address[static PROVIDER_ADDRESS_MAX], struct error *err)
{
    const char *agents = fake_of(provider)->agents;
    int length = snprintf(ret_address, PROVIDER_ADDRESS_MAX, "unix:%s/%s.sock", agents, id->text);

    if (length >= PROVIDER_ADDRESS_MAX)
        return error_set(err, ERR_INVALID, 0, "the folder of the agents is too deep: %s", agents);
    return 0;
}

static void fake_release(struct provider *provider)
{
    struct fake *fake = fake_of(provider);

    LIST_EACH (&fake->exits, at)
        free(CONTAINER_OF(at, struct fake_exit, link));
    LIST_EACH (&fake->limits, at)
        free(CONTAINER_OF(at, struct fake_limits, link));
    fake_jobs_done(&fake->jobs);
    fake_snapshots_done(&fake->snapshots);
    free(fake->agents);
    free(fake);
}

static void fake_close(struct provider *provider)
{
    struct fake *fake = fake_of(provider);
    struct error reason = ERROR_INIT;

    (void) error_set(&reason, ERR_UNAVAILABLE, 0, "the provider was closed");
    answer_held(fake, PROVIDER_CALL_COUNT, &reason);
    loop_task_cancel(&fake->tell);
    provider_closed(provider, fake_release);
}

static const struct provider_operations fake_operations = {
    .name = "fake",
    .calls =
        {
            [PROVIDER_CALL_OPEN] = fake_open,
            [PROVIDER_CALL_CREATE] = fake_create,
            [PROVIDER_CALL_START] = fake_start,
            [PROVIDER_CALL_STOP] = fake_plain,
            [PROVIDER_CALL_DESTROY] = fake_plain,
            [PROVIDER_CALL_FREEZE] = fake_plain,
            [PROVIDER_CALL_THAW] = fake_plain,
            [PROVIDER_CALL_SET_LIMITS] = fake_set_limits,
            [PROVIDER_CALL_STATS] = fake_stats,
            [PROVIDER_CALL_SOCKETS] = fake_sockets,
            [PROVIDER_CALL_DISK_JOB] = fake_disk_job,
            [PROVIDER_CALL_OPEN_MOUNT] = fake_open_mount,
            [PROVIDER_CALL_ATTACH_MOUNT] = fake_plain,
            [PROVIDER_CALL_DETACH_MOUNT] = fake_plain,
            [PROVIDER_CALL_SNAPSHOT] = fake_snapshot,
            [PROVIDER_CALL_DELETE_SNAPSHOT] = fake_delete_snapshot,
            [PROVIDER_CALL_LIST_SNAPSHOTS] = fake_list_snapshots,
            [PROVIDER_CALL_ROLL_BACK] = fake_roll_back,
            [PROVIDER_CALL_DISK_USAGE] = fake_disk_usage,
            [PROVIDER_CALL_RECLAIM] = fake_reclaim,
            [PROVIDER_CALL_SYNC_DISKS] = fake_plain,
            [PROVIDER_CALL_SYNC_CONTENTS] = fake_plain,
        },
    .close = fake_close,
    .agent_address = fake_agent_address,
};

/* --- what tests say -------------------------------------------------------------------------- */

/* Exits, then the loss, from the loop and after open was answered. */
static void tell(struct loop_task *task)
{
    struct fake *fake = CONTAINER_OF(task, struct fake, tell);
    struct list *link;

    if (fake->provider.stage == PROVIDER_STAGE_OPENING) {
        loop_defer(fake->provider.loop, task);
        return;
    }
    while ((link = list_first(&fake->exits))) {
        AUTO(free) struct fake_exit *exit = CONTAINER_OF(link, struct fake_exit, link);

        list_remove(link);
        provider_exited(&fake->provider, &exit->id, &exit->ending);
    }
    if (!fake->lose)
        return;
    fake->lose = false;
    answer_held(fake, PROVIDER_CALL_COUNT, &fake->loss);
    provider_lost(&fake->provider, &fake->loss);
}

struct provider *provider_fake_new(const struct provider_fake_options *options)
{
    struct fake *fake = mem_alloc(sizeof(*fake));
    unsigned int capabilities = options->agents ? EVERYTHING : EVERYTHING & ~PROVIDER_AGENT;

    provider_init(&fake->provider, &fake_operations, options->loop);
    fake->capabilities = capabilities & ~options->missing;
    fake->unenforced = options->unenforced;
    fake->agents = options->agents ? mem_copy_text(options->agents) : NULL;
    fake->chooses_ids = options->chooses_ids;
    fake->stats.known = STATS_BIT(CPU) | STATS_BIT(MEMORY) | STATS_BIT(PIDS);
    fake->stats.pids = 1;
    list_init(&fake->held);
    list_init(&fake->exits);
    list_init(&fake->limits);
    fake_snapshots_init(&fake->snapshots);
    loop_task_init(&fake->tell, tell);
    return &fake->provider;
}

static void add_exit(struct fake *fake, const struct id *id, const struct ending *ending)
{
    struct fake_exit *exit = mem_alloc(sizeof(*exit));

    exit->id = *id;
    exit->ending = *ending;
    list_append(&fake->exits, &exit->link);
}

void provider_fake_add(struct provider *provider, const struct id *id, enum run_state state,
                       const struct ending *ending)
{
    static const enum run_state found[] = {
        [RUN_STATE_RUNNING] = RUN_STATE_RUNNING, [RUN_STATE_FROZEN] = RUN_STATE_FROZEN,
        [RUN_STATE_STOPPING] = RUN_STATE_BROKEN, [RUN_STATE_STOPPED] = RUN_STATE_STOPPED,
        [RUN_STATE_BROKEN] = RUN_STATE_BROKEN,
    };

    (void) provider_table_add(&provider->sandboxes, id, found[state]);
    if (ending)
        add_exit(fake_of(provider), id, ending);
}

void provider_fake_fail_next(struct provider *provider, enum provider_call_kind kind,
                             enum err_code code)
{
    fake_of(provider)->fail_next[kind] = code;
}

void provider_fake_hold(struct provider *provider, enum provider_call_kind kind, bool hold)
{
    struct fake *fake = fake_of(provider);

    fake->hold[kind] = hold;
    if (!hold)
        answer_held(fake, kind, NULL);
}

void provider_fake_exit(struct provider *provider, const struct id *id, const struct ending *ending)
{
    struct fake *fake = fake_of(provider);

    add_exit(fake, id, ending);
    loop_defer(provider->loop, &fake->tell);
}

void provider_fake_lose(struct provider *provider, const char *why)
{
    struct fake *fake = fake_of(provider);

    fake->lose = true;
    (void) error_set(&fake->loss, ERR_UNAVAILABLE, 0, "%s", why);
    loop_defer(provider->loop, &fake->tell);
}

void provider_fake_set_stats(struct provider *provider, const struct stats *stats)
{
    fake_of(provider)->stats = *stats;
}

void provider_fake_set_job(struct provider *provider, enum disk_job_kind kind,
                           const struct provider_fake_job *job)
{
    fake_jobs_set(&fake_of(provider)->jobs, kind, job);
}

const struct limits *provider_fake_limits(const struct provider *provider, const struct id *id)
{
    const struct fake *fake = CONTAINER_OF(provider, struct fake, provider);
    const struct fake_limits *limits = limits_of(fake, id);

    return provider_table_find(&provider->sandboxes, id) && limits ? &limits->limits : NULL;
}

void provider_fake_add_snapshot(struct provider *provider, const struct id *id)
{
    fake_snapshots_add(&fake_of(provider)->snapshots, id);
}

void provider_fake_set_copying(struct provider *provider, bool is_copying)
{
    fake_of(provider)->is_copying = is_copying;
}

bool provider_fake_has_snapshot(const struct provider *provider, const struct id *id)
{
    return fake_snapshots_has(&CONTAINER_OF(provider, struct fake, provider)->snapshots, id);
}

const struct disk_ref *provider_fake_origin(const struct provider *provider, const struct id *id)
{
    return fake_snapshots_origin(&CONTAINER_OF(provider, struct fake, provider)->snapshots, id);
}
