/* The calls: what is wrong with one whatever the provider is said here, the rest is one operation of
 * the provider's each (provider_call.c). */
#include "provider/provider.h"

#include "base/memory.h"
#include "provider/provider_internal.h"
#include "wire/wire_text.h"

void provider_init(struct provider *provider, const struct provider_operations *operations,
                   struct loop *loop)
{
    *provider = (struct provider){.operations = operations, .loop = loop};
    list_init(&provider->late);
    list_init(&provider->calls);
}

void provider_open(struct provider *provider, const struct provider_watcher *watcher,
                   provider_done *done, void *context)
{
    struct provider_call *call = provider_call_new(provider, PROVIDER_CALL_OPEN, NULL, context);

    call->answer.done = done;
    if (provider->stage == PROVIDER_STAGE_NEW) {
        provider->stage = PROVIDER_STAGE_OPENING;
        provider->watcher = *watcher;
    }
    provider_call_run(call);
}

static void close_from_loop(struct loop_task *task)
{
    struct provider *provider = CONTAINER_OF(task, struct provider, bye);

    provider->operations->close(provider);
}

void provider_close(struct provider *provider, provider_done *done, void *context)
{
    provider->stage = PROVIDER_STAGE_CLOSING;
    provider->closed = done;
    provider->closed_context = context;
    loop_task_init(&provider->bye, close_from_loop);
    loop_defer(provider->loop, &provider->bye);
}

unsigned int provider_capabilities(const struct provider *provider)
{
    return provider->capabilities;
}

unsigned int provider_enforced(const struct provider *provider)
{
    return provider->enforced;
}

static bool has_origin(const struct provider_spec *spec)
{
    return spec->origin.id.text[0];
}

/* A disk that is there can be copied whenever a snapshot can be made of it. */
static int check_origin(const struct provider_call *call, const struct provider_spec *spec,
                        struct error *err)
{
    struct provider *provider = call->provider;
    enum run_state before;

    if (call->kind != PROVIDER_CALL_CREATE)
        return error_set(err, ERR_INVALID, 0, "one that has a disk cannot have an origin");
    if (!id_is_valid(spec->origin.id.text))
        return error_set(err, ERR_INVALID, 0, "the origin is not an id");
    if (provider->stage != PROVIDER_STAGE_OPEN)
        return 0;
    if (!(provider->capabilities & PROVIDER_SNAPSHOTS))
        return error_set(err, ERR_NOT_IMPLEMENTED, 0, "provider %s copies no disks here",
                         provider->operations->name);
    if (spec->origin.set == DISK_OF_SNAPSHOT)
        return 0;
    return provider_table_begin(&provider->sandboxes, PROVIDER_CALL_SNAPSHOT, &spec->origin.id,
                                &before, err);
}

/* What is wrong with a spec for every provider alike. */
static void check_spec(struct provider_call *call, const struct provider_spec *spec)
{
    struct error err = ERROR_INIT;

    if (!id_is_valid(spec->id.text))
        (void) error_set(&err, ERR_INVALID, 0, "not an id");
    else if (!spec->hostname || !wire_text_is_name(spec->hostname))
        (void) error_set(&err, ERR_INVALID, 0, "not a host name: '%s'", spec->hostname ?: "");
    else if (spec->image && !wire_text_is_name(spec->image))
        (void) error_set(&err, ERR_INVALID, 0, "not the name of an image: '%s'", spec->image);
    else if (spec->network == NETWORK_NAT && call->provider->stage == PROVIDER_STAGE_OPEN &&
             !(call->provider->capabilities & PROVIDER_NAT))
        (void) error_set(&err, ERR_NOT_IMPLEMENTED, 0, "provider %s has no network 'nat' here",
                         call->provider->operations->name);
    else if (has_origin(spec))
        (void) check_origin(call, spec, &err);
    if (err.code != ERR_NONE)
        provider_call_refuse(call, &err);
}

/* --- sandboxes -------------------------------------------------------------------------------- */

static void run_spec(struct provider *provider, enum provider_call_kind kind,
                     const struct provider_spec *spec, provider_sandbox_done *done, void *context)
{
    struct provider_call *call = provider_call_new(provider, kind, &spec->id, context);

    call->answer.sandbox = done;
    call->asked.spec = spec;
    check_spec(call, spec);
    provider_call_run(call);
}

void provider_create(struct provider *provider, const struct provider_spec *spec,
                     provider_sandbox_done *done, void *context)
{
    run_spec(provider, PROVIDER_CALL_CREATE, spec, done, context);
}

void provider_start(struct provider *provider, const struct provider_spec *spec,
                    provider_sandbox_done *done, void *context)
{
    run_spec(provider, PROVIDER_CALL_START, spec, done, context);
}

/* A call that has only a sandbox, or none, and a yes or no. */
static void run_plain(struct provider *provider, enum provider_call_kind kind, const struct id *id,
                      provider_done *done, void *context)
{
    struct provider_call *call = provider_call_new(provider, kind, id, context);

    call->answer.done = done;
    provider_call_run(call);
}

void provider_stop(struct provider *provider, const struct id *id, provider_done *done,
                   void *context)
{
    run_plain(provider, PROVIDER_CALL_STOP, id, done, context);
}

void provider_destroy(struct provider *provider, const struct id *id, provider_done *done,
                      void *context)
{
    run_plain(provider, PROVIDER_CALL_DESTROY, id, done, context);
}

void provider_freeze(struct provider *provider, const struct id *id, provider_done *done,
                     void *context)
{
    run_plain(provider, PROVIDER_CALL_FREEZE, id, done, context);
}

void provider_thaw(struct provider *provider, const struct id *id, provider_done *done,
                   void *context)
{
    run_plain(provider, PROVIDER_CALL_THAW, id, done, context);
}

void provider_set_limits(struct provider *provider, const struct id *id,
                         const struct limits *limits, provider_done *done, void *context)
{
    struct provider_call *call = provider_call_new(provider, PROVIDER_CALL_SET_LIMITS, id, context);

    call->answer.done = done;
    call->asked.limits = limits;
    provider_call_run(call);
}

void provider_stats(struct provider *provider, const struct id *id, provider_stats_done *done,
                    void *context)
{
    struct provider_call *call = provider_call_new(provider, PROVIDER_CALL_STATS, id, context);

    call->answer.stats = done;
    provider_call_run(call);
}

void provider_list(struct provider *provider, provider_list_done *done, void *context)
{
    struct provider_call *call = provider_call_new(provider, PROVIDER_CALL_LIST, NULL, context);

    call->answer.list = done;
    provider_call_run(call);
}

void provider_sockets(struct provider *provider, const struct id *id, size_t count,
                      provider_sockets_done *done, void *context)
{
    struct provider_call *call = provider_call_new(provider, PROVIDER_CALL_SOCKETS, id, context);
    struct error err = ERROR_INIT;

    call->answer.sockets = done;
    call->asked.count = count;
    if (count < 1 || count > PROVIDER_SOCKETS_MAX) {
        (void) error_set(&err, ERR_INVALID, 0, "1 to %d sockets at once", PROVIDER_SOCKETS_MAX);
        provider_call_refuse(call, &err);
    }
    provider_call_run(call);
}

void provider_reclaim(struct provider *provider, const struct id *id, provider_bytes_done *done,
                      void *context)
{
    struct provider_call *call = provider_call_new(provider, PROVIDER_CALL_RECLAIM, id, context);

    call->answer.bytes = done;
    provider_call_run(call);
}

int provider_agent_address(struct provider *provider, const struct id *id,
                           char ret_address[static PROVIDER_ADDRESS_MAX], struct error *err)
{
    const struct provider_entry *entry = provider_table_find(&provider->sandboxes, id);

    if (!(provider->capabilities & PROVIDER_AGENT))
        return error_set(err, ERR_NOT_IMPLEMENTED, 0, "provider %s has no agents",
                         provider->operations->name);
    if (!entry || !provider_entry_is_visible(entry))
        return error_set(err, ERR_NOT_FOUND, 0, "there is no sandbox '%.*s'", ID_LENGTH, id->text);
    return provider->operations->agent_address(provider, id, ret_address, err);
}

/* --- snapshots and disks ---------------------------------------------------------------------- */

/* A call about a snapshot, and perhaps a sandbox. */
static struct provider_call *snapshot_call_new(struct provider *provider,
                                               enum provider_call_kind kind,
                                               const struct id *sandbox, const struct id *snapshot,
                                               void *context)
{
    struct provider_call *call = provider_call_new(provider, kind, sandbox, context);
    struct error err = ERROR_INIT;

    call->snapshot = *snapshot;
    if (!id_is_valid(snapshot->text)) {
        (void) error_set(&err, ERR_INVALID, 0, "not the id of a snapshot");
        provider_call_refuse(call, &err);
    }
    return call;
}

void provider_snapshot(struct provider *provider, const struct id *sandbox,
                       const struct id *snapshot, bool freeze, provider_snapshot_done *done,
                       void *context)
{
    struct provider_call *call =
        snapshot_call_new(provider, PROVIDER_CALL_SNAPSHOT, sandbox, snapshot, context);

    call->answer.snapshot = done;
    call->asked.freeze = freeze;
    provider_call_run(call);
}

void provider_delete_snapshot(struct provider *provider, const struct id *snapshot,
                              provider_done *done, void *context)
{
    struct provider_call *call =
        snapshot_call_new(provider, PROVIDER_CALL_DELETE_SNAPSHOT, NULL, snapshot, context);

    call->answer.done = done;
    provider_call_run(call);
}

void provider_list_snapshots(struct provider *provider, provider_ids_done *done, void *context)
{
    struct provider_call *call =
        provider_call_new(provider, PROVIDER_CALL_LIST_SNAPSHOTS, NULL, context);

    call->answer.ids = done;
    provider_call_run(call);
}

void provider_roll_back(struct provider *provider, const struct id *sandbox,
                        const struct id *snapshot, uint64_t disk_bytes, provider_done *done,
                        void *context)
{
    struct provider_call *call =
        snapshot_call_new(provider, PROVIDER_CALL_ROLL_BACK, sandbox, snapshot, context);

    call->answer.done = done;
    call->asked.disk_bytes = disk_bytes;
    provider_call_run(call);
}

void provider_disk_usage(struct provider *provider, const struct disk_ref *disk,
                         provider_bytes_done *done, void *context)
{
    struct provider_call *call =
        disk->set == DISK_OF_SNAPSHOT
            ? snapshot_call_new(provider, PROVIDER_CALL_DISK_USAGE, NULL, &disk->id, context)
            : provider_call_new(provider, PROVIDER_CALL_DISK_USAGE, &disk->id, context);

    call->answer.bytes = done;
    provider_call_run(call);
}

void provider_sync_disks(struct provider *provider, provider_done *done, void *context)
{
    run_plain(provider, PROVIDER_CALL_SYNC_DISKS, NULL, done, context);
}

void provider_sync_contents(struct provider *provider, provider_done *done, void *context)
{
    run_plain(provider, PROVIDER_CALL_SYNC_CONTENTS, NULL, done, context);
}

static int check_job_id(const struct id *id, struct error *err)
{
    return !id->text[0] || id_is_valid(id->text) ? 0 : error_set(err, ERR_INVALID, 0, "not an id");
}

static int check_job(const struct provider_disk_job *job, struct error *err)
{
    unsigned int given = (job->on.id.text[0] ? 1U << DISK_JOB_ON : 0) |
                         (job->base.id.text[0] ? 1U << DISK_JOB_BASE : 0) |
                         (job->target.text[0] ? 1U << DISK_JOB_TARGET : 0) |
                         (job->image || disk_job_is_view(job->kind) ? 1U << DISK_JOB_IMAGE : 0) |
                         (job->input >= 0 ? 1U << DISK_JOB_INPUT : 0) |
                         (job->data >= 0 ? 1U << DISK_JOB_DATA : 0);

    if (check_job_id(&job->on.id, err) < 0 || check_job_id(&job->base.id, err) < 0 ||
        check_job_id(&job->target, err) < 0 || disk_job_check(job->kind, given, ~0U, err) < 0)
        return -1;
    if (job->image && !wire_text_is_name(job->image))
        return error_set(err, ERR_INVALID, 0, "not the name of an image: '%s'", job->image);
    return 0;
}

/* The id of a sandbox's disk; snapshots are not in the table. */
static struct id sandbox_of(const struct disk_ref *disk)
{
    return disk->set == DISK_OF_SANDBOX ? disk->id : (struct id){.text = ""};
}

void provider_run_disk_job(struct provider *provider, const struct provider_disk_job *job,
                           provider_job_done *done, void *context)
{
    struct id on = sandbox_of(&job->on);
    struct provider_call *call = provider_call_new(provider, PROVIDER_CALL_DISK_JOB, &on, context);
    struct error err = ERROR_INIT;

    call->answer.job = done;
    call->base = sandbox_of(&job->base);
    call->target = job->target;
    call->adds_to_target = job->kind == DISK_JOB_UNPACK;
    call->asked.job = job;
    if (check_job(job, &err) < 0)
        provider_call_refuse(call, &err);
    provider_call_run(call);
}

/* --- mounts ----------------------------------------------------------------------------------- */

void provider_open_mount(struct provider *provider, const struct id *sandbox, const char *place,
                         bool read_only, provider_mount_done *done, void *context)
{
    struct provider_call *call =
        provider_call_new(provider, PROVIDER_CALL_OPEN_MOUNT, sandbox, context);
    struct error err = ERROR_INIT;

    call->answer.mount = done;
    call->asked.open_mount.place = place;
    call->asked.open_mount.read_only = read_only;
    call->result.mount.fuse = -EBADF;
    if (!wire_text_is_path(place)) {
        (void) error_set(&err, ERR_INVALID, 0,
                         "not a place for a mount: an absolute path of printable ASCII without "
                         "'.', '..' and double slashes, at most %d bytes",
                         WIRE_PATH_MAX);
        provider_call_refuse(call, &err);
    }
    provider_call_run(call);
}

static void run_mount(struct provider *provider, enum provider_call_kind kind,
                      const struct id *sandbox, uint32_t mount, provider_done *done, void *context)
{
    struct provider_call *call = provider_call_new(provider, kind, sandbox, context);

    call->answer.done = done;
    call->asked.mount = mount;
    provider_call_run(call);
}

void provider_attach_mount(struct provider *provider, const struct id *sandbox, uint32_t mount,
                           provider_done *done, void *context)
{
    run_mount(provider, PROVIDER_CALL_ATTACH_MOUNT, sandbox, mount, done, context);
}

void provider_detach_mount(struct provider *provider, const struct id *sandbox, uint32_t mount,
                           provider_done *done, void *context)
{
    run_mount(provider, PROVIDER_CALL_DETACH_MOUNT, sandbox, mount, done, context);
}
