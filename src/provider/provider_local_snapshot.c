/* Snapshots and memory: requests to the launcher, and its answers. */
#include <string.h>

#include "base/memory.h"
#include "provider/provider_local_internal.h"

static void on_snapshot(void *context, struct wire_incoming *reply, const struct error *failure)
{
    struct provider_call *call = context;

    if (!failure)
        call->result.snapshot = reply->message.snapshot_made;
    provider_call_answer(call, failure);
}

void local_snapshot(struct provider *provider, bool freeze, struct provider_call *call)
{
    struct wire_message message = {
        .number = WIRE_MESSAGE_SNAPSHOT,
        .snapshot = {.id = call->id, .snapshot = call->snapshot, .freeze = freeze}};

    (void) provider;
    local_ask(call, &message, NULL, 0, on_snapshot);
}

static void on_done(void *context, struct wire_incoming *reply, const struct error *failure)
{
    (void) reply;
    provider_call_answer(context, failure);
}

void local_delete_snapshot(struct provider *provider, struct provider_call *call)
{
    struct wire_message message = {.number = WIRE_MESSAGE_DELETE_SNAPSHOT,
                                   .delete_snapshot = {.id = call->snapshot}};

    (void) provider;
    local_ask(call, &message, NULL, 0, on_done);
}

void local_roll_back(struct provider *provider, uint64_t disk_bytes, struct provider_call *call)
{
    struct wire_message message = {
        .number = WIRE_MESSAGE_ROLL_BACK,
        .roll_back = {.id = call->id, .snapshot = call->snapshot, .disk_bytes = disk_bytes}};

    (void) provider;
    local_ask(call, &message, NULL, 0, on_done);
}

static void ask_page(struct provider_call *call, const struct id *after);

/* The pages are collected in the call's result. */
static void on_page(void *context, struct wire_incoming *reply, const struct error *failure)
{
    const struct wire_snapshots_listed *page = reply ? &reply->message.snapshots_listed : NULL;
    struct provider_call *call = context;
    struct error err = ERROR_INIT;
    struct id *ids = call->result.ids.ids;
    size_t count = call->result.ids.count;

    if (failure) {
        provider_call_answer(call, failure);
        return;
    }
    if (count && page->names.count &&
        strcmp(page->names.items[0].id.text, ids[count - 1].text) <= 0) {
        (void) error_set(&err, ERR_INVALID, 0, "the launcher's list is not sorted");
        provider_call_answer(call, &err);
        return;
    }
    if (page->names.count)
        ids = mem_resize(ids, (count + page->names.count) * sizeof(*ids));
    for (size_t i = 0; i < page->names.count; i++)
        ids[count++] = page->names.items[i].id;
    call->result.ids.ids = ids;
    call->result.ids.count = count;
    if (page->more)
        ask_page(call, &ids[count - 1]);
    else
        provider_call_answer(call, NULL);
}

static void ask_page(struct provider_call *call, const struct id *after)
{
    struct wire_message message = {.number = WIRE_MESSAGE_LIST_SNAPSHOTS};

    if (after)
        message.list_snapshots.after = *after;
    local_ask(call, &message, NULL, 0, on_page);
}

void local_list_snapshots(struct provider *provider, struct provider_call *call)
{
    (void) provider;
    ask_page(call, NULL);
}

static void on_bytes(void *context, struct wire_incoming *reply, const struct error *failure)
{
    struct provider_call *call = context;

    if (!failure)
        call->result.bytes = reply->message.bytes_counted.bytes;
    provider_call_answer(call, failure);
}

void local_disk_usage(struct provider *provider, struct provider_call *call)
{
    bool is_snapshot = call->snapshot.text[0];
    struct wire_message message = {
        .number = WIRE_MESSAGE_DISK_USAGE,
        .disk_usage.disk = {.set = is_snapshot ? DISK_OF_SNAPSHOT : DISK_OF_SANDBOX,
                            .id = is_snapshot ? call->snapshot : call->id}};

    (void) provider;
    local_ask(call, &message, NULL, 0, on_bytes);
}

void local_reclaim(struct provider *provider, struct provider_call *call)
{
    struct wire_message message = {.number = WIRE_MESSAGE_RECLAIM, .reclaim = {.id = call->id}};

    (void) provider;
    local_ask(call, &message, NULL, 0, on_bytes);
}

void local_sync(struct provider *provider, struct provider_call *call)
{
    struct wire_message message = {.number = WIRE_MESSAGE_SYNC,
                                   .sync = {.contents = call->kind == PROVIDER_CALL_SYNC_CONTENTS}};

    (void) provider;
    local_ask(call, &message, NULL, 0, on_done);
}
