#include <stdlib.h>

#include "base/auto.h"
#include "base/memory.h"
#include "provider/provider_internal.h"

static void tell_list(struct provider_call *call, const struct error *failure)
{
    const struct provider_table *table = &call->provider->sandboxes;
    AUTO(free)
    struct provider_sandbox *sandboxes = mem_alloc_array(table->count + 1, sizeof(*sandboxes));
    size_t count = 0;

    for (size_t i = 0; i < table->count && !failure; i++) {
        if (provider_entry_is_visible(&table->entries[i]))
            sandboxes[count++] = provider_entry_sandbox(&table->entries[i]);
    }
    call->answer.list(call->context, failure, failure ? NULL : sandboxes, count);
}

static void tell_sockets(struct provider_call *call, const struct error *failure)
{
    call->answer.sockets(call->context, failure, failure ? NULL : call->result.sockets.fds,
                         failure ? 0 : call->result.sockets.count);
}

static void tell_ids(struct provider_call *call, const struct error *failure)
{
    AUTO(free) struct id *ids = TAKE_PTR(call->result.ids.ids);

    call->answer.ids(call->context, failure, failure ? NULL : ids,
                     failure ? 0 : call->result.ids.count);
}

static void tell_caller(struct provider_call *call)
{
    const struct error *failure = call->failed ? &call->failure : NULL;

    switch (call->kind) {
    case PROVIDER_CALL_CREATE:
    case PROVIDER_CALL_START:
        call->answer.sandbox(call->context, failure, failure ? NULL : &call->result.sandbox);
        return;
    case PROVIDER_CALL_STATS:
        call->answer.stats(call->context, failure, failure ? NULL : &call->result.stats);
        return;
    case PROVIDER_CALL_DISK_JOB:
        call->answer.job(call->context, failure, failure ? NULL : &call->result.ending);
        return;
    case PROVIDER_CALL_OPEN_MOUNT:
        call->answer.mount(call->context, failure, failure ? 0 : call->result.mount.number,
                           failure ? -EBADF : call->result.mount.fuse);
        return;
    case PROVIDER_CALL_SNAPSHOT:
        call->answer.snapshot(call->context, failure, failure ? NULL : &call->result.snapshot);
        return;
    case PROVIDER_CALL_LIST_SNAPSHOTS:
        tell_ids(call, failure);
        return;
    case PROVIDER_CALL_DISK_USAGE:
    case PROVIDER_CALL_RECLAIM:
        call->answer.bytes(call->context, failure, failure ? 0 : call->result.bytes);
        return;
    case PROVIDER_CALL_INSPECT:
        call->answer.inspection(call->context, failure, call->result.inspection);
        (void) fd_close(call->result.inspection);
        return;
    case PROVIDER_CALL_LIST:
        tell_list(call, failure);
        return;
    case PROVIDER_CALL_SOCKETS:
        tell_sockets(call, failure);
        return;
    default:
        if (call->answer.done)
            call->answer.done(call->context, failure);
    }
}

/* A sandbox from stock has another id than the place that was kept for it. */
static void follow_id(struct provider_call *call)
{
    struct provider_table *table = &call->provider->sandboxes;
    struct provider_entry *entry;

    if (call->kind != PROVIDER_CALL_CREATE && call->kind != PROVIDER_CALL_START)
        return;
    if (!provider_table_find(table, &call->result.sandbox.id)) {
        provider_table_remove(table, &call->id);
        (void) provider_table_add(table, &call->result.sandbox.id, RUN_STATE_CREATING);
    }
    call->id = call->result.sandbox.id;
    entry = provider_table_find(table, &call->id);
    if (entry)
        entry->unenforced = call->result.sandbox.unenforced;
}

/* Whether a job did what it was to do, as far as the provider knows. */
static bool has_done_it(const struct provider_call *call)
{
    return !call->failed && call->result.ending.kind == ENDED_STATUS &&
           call->result.ending.value == 0;
}

/* The disk that a job has made is a sandbox that never ran; one that failed took it away. */
static void settle_target(struct provider_call *call)
{
    struct provider_table *table = &call->provider->sandboxes;
    struct provider_entry *target = provider_table_find(table, &call->target);

    if (!target)
        return;
    target->state = RUN_STATE_STOPPED;
    target->ended = true;
    if (!has_done_it(call))
        provider_table_remove(table, &call->target);
}

/* Returns whether an exit of the sandbox must be told now. */
static bool settle(struct provider_call *call, struct ending *ret_ending)
{
    struct provider *provider = call->provider;

    if (call->kind == PROVIDER_CALL_OPEN && provider->stage == PROVIDER_STAGE_OPENING) {
        provider->stage = call->failed ? PROVIDER_STAGE_LOST : PROVIDER_STAGE_OPEN;
        provider->loss = call->failure;
    }
    if (!call->began)
        return false;
    if (!call->failed)
        follow_id(call);
    settle_target(call);
    return provider_table_end(&provider->sandboxes, call->kind, &call->id, call->before,
                              !call->failed, ret_ending);
}

static void finish(struct provider_call *call)
{
    struct provider *provider = call->provider;
    struct ending ending = {.kind = ENDED_UNKNOWN};
    bool ended = settle(call, &ending);
    TRACE_AS(&call->trace);

    TRACE_WITH(call->failed ? "provider.failed" : "provider.done", provider_call_name(call->kind));
    list_remove(&call->link);
    list_remove(&call->under_way);
    provider->open_calls--;
    provider->last_call = loop_now(provider->loop);
    tell_caller(call);
    if (ended && provider->watcher.exited)
        provider->watcher.exited(provider->watcher.context, &call->id, &ending);
    free(call);
}

static void finish_late(struct loop_task *task)
{
    finish(CONTAINER_OF(task, struct provider_call, task));
}

/* Those whose answer waits for the end of the turn get it now. */
static void flush_late(struct provider *provider)
{
    struct list *link;

    while ((link = list_first(&provider->late))) {
        struct provider_call *call = CONTAINER_OF(link, struct provider_call, link);

        loop_task_cancel(&call->task);
        call->task.run(&call->task);
    }
}

struct provider_call *provider_call_new(struct provider *provider, enum provider_call_kind kind,
                                        const struct id *id, void *context)
{
    struct provider_call *call = mem_alloc(sizeof(*call));

    call->provider = provider;
    call->kind = kind;
    call->context = context;
    call->inside = true;
    call->trace = trace_context;
    if (id)
        call->id = call->trace.sandbox = *id;
    call->asked_ms = loop_now(provider->loop);
    list_init(&call->link);
    list_append(&provider->calls, &call->under_way);
    loop_task_init(&call->task, finish_late);
    provider->open_calls++;
    provider->last_call = loop_now(provider->loop);
    return call;
}

static int check_stage(const struct provider_call *call, struct error *err)
{
    const struct provider *provider = call->provider;
    bool opens = call->kind == PROVIDER_CALL_OPEN;

    if (provider->stage == (opens ? PROVIDER_STAGE_OPENING : PROVIDER_STAGE_OPEN))
        return 0;
    if (provider->stage == PROVIDER_STAGE_LOST)
        return error_set(err, ERR_UNAVAILABLE, 0, "provider %s is lost: %s",
                         provider->operations->name, provider->loss.message);
    return error_set(err, ERR_UNAVAILABLE, 0, "provider %s is not open",
                     provider->operations->name);
}

static int check_ability(const struct provider_call *call, struct error *err)
{
    unsigned int needed = provider_call_capability(call->kind);

    if ((call->provider->capabilities & needed) == needed)
        return 0;
    return error_set(err, ERR_NOT_IMPLEMENTED, 0, "provider %s cannot %s here",
                     call->provider->operations->name, provider_call_name(call->kind));
}

/* The other disks of a job: one to read, and one that is to be made. */
static int mark_job_disks(struct provider_call *call, struct error *err)
{
    struct provider_table *table = &call->provider->sandboxes;
    struct id target = call->target;
    const struct provider_entry *entry = provider_table_find(table, &target);
    enum run_state before;

    call->target.text[0] = '\0'; /* unless it is ours to make */
    if (call->base.text[0] &&
        provider_table_begin(table, call->kind, &call->base, &before, err) < 0)
        return -1;
    if (!target.text[0])
        return 0;
    if (call->adds_to_target && entry && provider_entry_is_visible(entry))
        return provider_table_begin(table, call->kind, &target, &before, err);
    if (provider_table_begin(table, PROVIDER_CALL_CREATE, &target, &before, err) < 0)
        return -1;
    call->target = target;
    return 0;
}

static bool is_about_all(const struct provider_call *call)
{
    return call->kind == PROVIDER_CALL_OPEN || call->kind == PROVIDER_CALL_LIST ||
           call->kind == PROVIDER_CALL_LIST_SNAPSHOTS || call->kind == PROVIDER_CALL_SYNC_DISKS ||
           call->kind == PROVIDER_CALL_SYNC_CONTENTS || call->kind == PROVIDER_CALL_INSPECT;
}

static int mark_sandbox(struct provider_call *call, struct error *err)
{
    struct provider_table *table = &call->provider->sandboxes;

    if (is_about_all(call) || (call->snapshot.text[0] && !call->id.text[0]))
        return 0;
    /* A job may be about snapshots alone, or about nothing that is there. */
    if ((call->id.text[0] || call->kind != PROVIDER_CALL_DISK_JOB) &&
        provider_table_begin(table, call->kind, &call->id, &call->before, err) < 0)
        return -1;
    if (call->kind == PROVIDER_CALL_DISK_JOB && mark_job_disks(call, err) < 0)
        return -1;
    call->began = true;
    return 0;
}

void provider_call_refuse(struct provider_call *call, const struct error *failure)
{
    if (list_is_empty(&call->link))
        provider_call_answer(call, failure);
}

/* What no capability promises may be missing all the same. */
static int check_operation(const struct provider_call *call, struct error *err)
{
    if (call->provider->operations->calls[call->kind])
        return 0;
    return error_set(err, ERR_NOT_IMPLEMENTED, 0, "provider %s cannot %s",
                     call->provider->operations->name, provider_call_name(call->kind));
}

static void call_operation(struct provider_call *call)
{
    if (call->id.text[0])
        trace_about(&call->id);
    TRACE_WITH("provider.call", provider_call_name(call->kind));
    call->provider->operations->calls[call->kind](call);
}

static void call_start(struct provider_call *call)
{
    struct error err = ERROR_INIT;
    bool is_over;

    if (check_stage(call, &err) < 0 || check_ability(call, &err) < 0 ||
        mark_sandbox(call, &err) < 0) {
        provider_call_answer(call, &err);
        return;
    }
    is_over = call->kind == PROVIDER_CALL_LIST ||
              (call->kind == PROVIDER_CALL_STOP && call->before == RUN_STATE_STOPPED);
    if (!is_over && check_operation(call, &err) == 0)
        call_operation(call);
    else
        provider_call_answer(call, is_over ? NULL : &err);
}

void provider_call_run(struct provider_call *call)
{
    call->inside = true; /* an answer that comes at once is told later, and the call stays */
    if (list_is_empty(&call->link)) /* else it was refused */
        call_start(call);
    call->inside = false;
}

void provider_call_answer(struct provider_call *call, const struct error *failure)
{
    call->failed = failure != NULL;
    if (failure)
        call->failure = *failure;
    if (!call->inside) {
        finish(call);
        return;
    }
    list_append(&call->provider->late, &call->link);
    loop_defer(call->provider->loop, &call->task);
}

void provider_exited(struct provider *provider, const struct id *id, const struct ending *ending)
{
    struct id copy = *id; /* may point into the table */

    if (provider_table_exit(&provider->sandboxes, &copy, ending) && provider->watcher.exited)
        provider->watcher.exited(provider->watcher.context, &copy, ending);
}

void provider_lost(struct provider *provider, const struct error *reason)
{
    if (provider->stage != PROVIDER_STAGE_OPEN)
        return;
    provider->stage = PROVIDER_STAGE_LOST;
    provider->loss = *reason;
    flush_late(provider);
    if (provider->watcher.lost)
        provider->watcher.lost(provider->watcher.context, reason);
}

void provider_closed(struct provider *provider, void (*release)(struct provider *provider))
{
    provider_done *closed = provider->closed;
    void *context = provider->closed_context;

    flush_late(provider);
    provider_table_done(&provider->sandboxes);
    release(provider);
    if (closed)
        closed(context, NULL);
}
