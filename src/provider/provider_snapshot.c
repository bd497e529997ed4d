/* The calls about snapshots and memory: checked here, done by the provider's operations. */
#include "provider/provider_internal.h"

/* Answers the call when it is none. */
static void check_id(struct provider_call *call, const struct id *id)
{
    struct error err = ERROR_INIT;

    if (id_is_valid(id->text))
        return;
    (void) error_set(&err, ERR_INVALID, 0, "not the id of a snapshot");
    provider_call_answer(call, &err);
}

void provider_snapshot(struct provider *provider, const struct id *sandbox,
                       const struct id *snapshot, bool freeze, provider_snapshot_done *done,
                       void *context)
{
    struct provider_call *call =
        provider_call_new(provider, PROVIDER_CALL_SNAPSHOT, sandbox, context);

    call->answer.snapshot = done;
    call->snapshot = *snapshot;
    check_id(call, snapshot);
    if (provider_call_begin(call))
        provider->operations->snapshot(provider, freeze, call);
    provider_call_leave(call);
}

void provider_delete_snapshot(struct provider *provider, const struct id *snapshot,
                              provider_done *done, void *context)
{
    struct provider_call *call =
        provider_call_new(provider, PROVIDER_CALL_DELETE_SNAPSHOT, NULL, context);

    call->answer.done = done;
    call->snapshot = *snapshot;
    check_id(call, snapshot);
    if (provider_call_begin(call))
        provider->operations->delete_snapshot(provider, call);
    provider_call_leave(call);
}

void provider_list_snapshots(struct provider *provider, provider_ids_done *done, void *context)
{
    struct provider_call *call =
        provider_call_new(provider, PROVIDER_CALL_LIST_SNAPSHOTS, NULL, context);

    call->answer.ids = done;
    if (provider_call_begin(call))
        provider->operations->list_snapshots(provider, call);
    provider_call_leave(call);
}

void provider_roll_back(struct provider *provider, const struct id *sandbox,
                        const struct id *snapshot, uint64_t disk_bytes, provider_done *done,
                        void *context)
{
    struct provider_call *call =
        provider_call_new(provider, PROVIDER_CALL_ROLL_BACK, sandbox, context);

    call->answer.done = done;
    call->snapshot = *snapshot;
    check_id(call, snapshot);
    if (provider_call_begin(call))
        provider->operations->roll_back(provider, disk_bytes, call);
    provider_call_leave(call);
}

void provider_disk_usage(struct provider *provider, const struct disk_ref *disk,
                         provider_bytes_done *done, void *context)
{
    bool is_snapshot = disk->set == DISK_OF_SNAPSHOT;
    struct provider_call *call = provider_call_new(provider, PROVIDER_CALL_DISK_USAGE,
                                                   is_snapshot ? NULL : &disk->id, context);

    call->answer.bytes = done;
    if (is_snapshot) {
        call->snapshot = disk->id;
        check_id(call, &disk->id);
    }
    if (provider_call_begin(call))
        provider->operations->disk_usage(provider, call);
    provider_call_leave(call);
}

void provider_reclaim(struct provider *provider, const struct id *id, provider_bytes_done *done,
                      void *context)
{
    struct provider_call *call = provider_call_new(provider, PROVIDER_CALL_RECLAIM, id, context);

    call->answer.bytes = done;
    if (provider_call_begin(call))
        provider->operations->reclaim(provider, call);
    provider_call_leave(call);
}

static void begin_sync(struct provider *provider, enum provider_call_kind kind, provider_done *done,
                       void *context)
{
    struct provider_call *call = provider_call_new(provider, kind, NULL, context);

    call->answer.done = done;
    if (provider_call_begin(call))
        provider->operations->sync(provider, call);
    provider_call_leave(call);
}

void provider_sync_disks(struct provider *provider, provider_done *done, void *context)
{
    begin_sync(provider, PROVIDER_CALL_SYNC_DISKS, done, context);
}

void provider_sync_contents(struct provider *provider, provider_done *done, void *context)
{
    begin_sync(provider, PROVIDER_CALL_SYNC_CONTENTS, done, context);
}
