#include "provider/provider.h"

#include "base/auto.h"
#include "provider/provider_internal.h"
#include "wire/wire_text.h"

void provider_init(struct provider *provider, const struct provider_operations *operations,
                   struct loop *loop)
{
    *provider = (struct provider){.operations = operations, .loop = loop};
    list_init(&provider->late);
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
    if (provider_call_begin(call))
        provider->operations->open(provider, call);
    provider_call_leave(call);
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
    enum provider_phase before;

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
        provider_call_answer(call, &err);
}

void provider_create(struct provider *provider, const struct provider_spec *spec,
                     provider_sandbox_done *done, void *context)
{
    struct provider_call *call =
        provider_call_new(provider, PROVIDER_CALL_CREATE, &spec->id, context);

    call->answer.sandbox = done;
    check_spec(call, spec);
    if (provider_call_begin(call))
        provider->operations->create(provider, spec, call);
    provider_call_leave(call);
}

void provider_start(struct provider *provider, const struct provider_spec *spec,
                    provider_sandbox_done *done, void *context)
{
    struct provider_call *call =
        provider_call_new(provider, PROVIDER_CALL_START, &spec->id, context);

    call->answer.sandbox = done;
    check_spec(call, spec);
    if (provider_call_begin(call))
        provider->operations->start(provider, spec, call);
    provider_call_leave(call);
}

/* A call that has only a sandbox and a yes or no. */
static void call_plain(struct provider *provider, enum provider_call_kind kind, const struct id *id,
                       void (*operation)(struct provider *provider, struct provider_call *call),
                       provider_done *done, void *context)
{
    struct provider_call *call = provider_call_new(provider, kind, id, context);

    call->answer.done = done;
    if (provider_call_begin(call))
        operation(provider, call);
    provider_call_leave(call);
}

void provider_stop(struct provider *provider, const struct id *id, provider_done *done,
                   void *context)
{
    struct provider_call *call = provider_call_new(provider, PROVIDER_CALL_STOP, id, context);

    call->answer.done = done;
    if (provider_call_begin(call)) {
        if (call->before == PROVIDER_PHASE_STOPPED)
            provider_call_answer(call, NULL);
        else
            provider->operations->stop(provider, call);
    }
    provider_call_leave(call);
}

void provider_destroy(struct provider *provider, const struct id *id, provider_done *done,
                      void *context)
{
    call_plain(provider, PROVIDER_CALL_DESTROY, id, provider->operations->destroy, done, context);
}

void provider_freeze(struct provider *provider, const struct id *id, provider_done *done,
                     void *context)
{
    call_plain(provider, PROVIDER_CALL_FREEZE, id, provider->operations->freeze, done, context);
}

void provider_thaw(struct provider *provider, const struct id *id, provider_done *done,
                   void *context)
{
    call_plain(provider, PROVIDER_CALL_THAW, id, provider->operations->thaw, done, context);
}

void provider_set_limits(struct provider *provider, const struct id *id,
                         const struct limits *limits, provider_done *done, void *context)
{
    struct provider_call *call = provider_call_new(provider, PROVIDER_CALL_SET_LIMITS, id, context);

    call->answer.done = done;
    if (provider_call_begin(call))
        provider->operations->set_limits(provider, limits, call);
    provider_call_leave(call);
}

void provider_stats(struct provider *provider, const struct id *id, provider_stats_done *done,
                    void *context)
{
    struct provider_call *call = provider_call_new(provider, PROVIDER_CALL_STATS, id, context);

    call->answer.stats = done;
    if (provider_call_begin(call))
        provider->operations->stats(provider, call);
    provider_call_leave(call);
}

void provider_list(struct provider *provider, provider_list_done *done, void *context)
{
    struct provider_call *call = provider_call_new(provider, PROVIDER_CALL_LIST, NULL, context);

    call->answer.list = done;
    if (provider_call_begin(call))
        provider_call_answer(call, NULL);
    provider_call_leave(call);
}

void provider_sockets(struct provider *provider, const struct id *id, size_t count,
                      provider_sockets_done *done, void *context)
{
    struct provider_call *call = provider_call_new(provider, PROVIDER_CALL_SOCKETS, id, context);
    struct error err = ERROR_INIT;

    call->answer.sockets = done;
    if (count < 1 || count > PROVIDER_SOCKETS_MAX) {
        (void) error_set(&err, ERR_INVALID, 0, "1 to %d sockets at once", PROVIDER_SOCKETS_MAX);
        provider_call_answer(call, &err);
    }
    if (provider_call_begin(call))
        provider->operations->sockets(provider, count, call);
    provider_call_leave(call);
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
