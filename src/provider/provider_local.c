#include "provider/provider_local.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "provider/provider_local_internal.h"
#include "provider/provider_local_plan.h"
#include "sys/file/sys_file.h"

void local_ask(struct provider_call *call, struct wire_message *message, const int *fds,
               size_t count,
               void (*when_answered)(void *context, struct wire_incoming *reply,
                                     const struct error *failure))
{
    struct wire_answer answer = {.call = when_answered, .context = call};
    struct error err = ERROR_INIT;

    if (launcher_link_ask(&local_of(call->provider)->link, message, fds, count, answer, &err) < 0)
        provider_call_answer(call, &err);
}

static void on_done(void *context, struct wire_incoming *reply, const struct error *failure)
{
    (void) reply;
    provider_call_answer(context, failure);
}

/* --- the operations -------------------------------------------------------------------------- */

static void local_stop(struct provider *provider, struct provider_call *call)
{
    struct wire_message message = {.number = WIRE_MESSAGE_KILL,
                                   .kill = {.id = call->id, .scope = WIRE_KILL_PROCESSES}};

    (void) provider;
    local_ask(call, &message, NULL, 0, on_done);
}

static void on_destroyed(void *context, struct wire_incoming *reply, const struct error *failure)
{
    (void) reply;
    /* Gone is what was asked for. */
    provider_call_answer(context, failure && failure->code != ERR_NOT_FOUND ? failure : NULL);
}

static void local_destroy(struct provider *provider, struct provider_call *call)
{
    struct wire_message message = {.number = WIRE_MESSAGE_KILL,
                                   .kill = {.id = call->id, .scope = WIRE_KILL_EVERYTHING}};

    (void) provider;
    local_ask(call, &message, NULL, 0, on_destroyed);
}

static void local_freeze(struct provider *provider, struct provider_call *call)
{
    struct wire_message message = {.number = WIRE_MESSAGE_FREEZE, .freeze = {.id = call->id}};

    (void) provider;
    local_ask(call, &message, NULL, 0, on_done);
}

static void local_thaw(struct provider *provider, struct provider_call *call)
{
    struct wire_message message = {.number = WIRE_MESSAGE_THAW, .thaw = {.id = call->id}};

    (void) provider;
    local_ask(call, &message, NULL, 0, on_done);
}

static void local_set_limits(struct provider *provider, const struct limits *limits,
                             struct provider_call *call)
{
    struct wire_message message = {.number = WIRE_MESSAGE_LIMITS,
                                   .limits = {.id = call->id, .limits = *limits}};

    (void) provider;
    local_ask(call, &message, NULL, 0, on_done);
}

static void on_stats(void *context, struct wire_incoming *reply, const struct error *failure)
{
    struct provider_call *call = context;

    if (!failure)
        call->result.stats = reply->message.stats_read;
    provider_call_answer(call, failure);
}

static void local_stats(struct provider *provider, struct provider_call *call)
{
    struct wire_message message = {.number = WIRE_MESSAGE_STATS, .stats = {.id = call->id}};

    (void) provider;
    local_ask(call, &message, NULL, 0, on_stats);
}

static void on_sockets(void *context, struct wire_incoming *reply, const struct error *failure)
{
    struct provider_call *call = context;

    if (!failure) {
        call->result.sockets.count = reply->fd_count;
        for (size_t i = 0; i < reply->fd_count; i++) {
            call->result.sockets.fds[i] = TAKE_FD(reply->fds[i]);
            (void) sys_file_set_nonblocking(call->result.sockets.fds[i], true);
        }
    }
    provider_call_answer(call, failure);
}

_Static_assert(PROVIDER_SOCKETS_MAX == WIRE_SOCKETS_MAX, "what callers may ask can be asked");

static void local_sockets(struct provider *provider, size_t count, struct provider_call *call)
{
    struct wire_message message = {
        .number = WIRE_MESSAGE_SOCKETS,
        .sockets = {.id = call->id, .family = WIRE_SOCKET_IPV4, .count = (uint8_t) count}};

    (void) provider;
    local_ask(call, &message, NULL, 0, on_sockets);
}

static void on_job_ended(void *context, struct wire_incoming *reply, const struct error *failure)
{
    struct provider_call *call = context;

    if (!failure)
        call->result.ending = reply->message.job_ended.ending;
    provider_call_answer(call, failure);
}

static void fill_job(const struct local *local, const struct provider_disk_job *job,
                     struct wire_keeper_job *ret_job)
{
    *ret_job = (struct wire_keeper_job){.job = job->kind,
                                        .on = disk_ref_or_none(job->on),
                                        .base = disk_ref_or_none(job->base),
                                        .target = job->target};
    if (job->target.text[0])
        ret_job->disk_bytes = job->disk_bytes;
    if (disk_job_is_view(job->kind))
        (void) snprintf(ret_job->image, sizeof(ret_job->image), "%s", job->image ?: local->image);
}

static void local_disk_job(struct provider *provider, const struct provider_disk_job *job,
                           struct provider_call *call)
{
    struct wire_message message = {.number = WIRE_MESSAGE_KEEPER_JOB};
    AUTO(close) int null = sys_file_open(AT_FDCWD, "/dev/null", O_RDWR, 0);
    const int fds[] = {job->input < 0 ? null : job->input, job->output < 0 ? null : job->output,
                       job->data < 0 ? null : job->data};
    struct error err = ERROR_INIT;

    if (null < 0) {
        (void) error_set(&err, ERR_INTERNAL, null, "open /dev/null");
        provider_call_answer(call, &err);
        return;
    }
    fill_job(local_of(provider), job, &message.keeper_job);
    local_ask(call, &message, fds, ARRAY_COUNT(fds), on_job_ended);
}

int local_agent_address(struct provider *provider, const struct id *id,
                        char ret_address[static PROVIDER_ADDRESS_MAX], struct error *err)
{
    const char *agents = local_of(provider)->agents;
    int length = snprintf(ret_address, PROVIDER_ADDRESS_MAX, "unix:%s/%s.sock", agents, id->text);

    if (length >= PROVIDER_ADDRESS_MAX)
        return error_set(err, ERR_INVALID, 0, "the folder of the agents is too deep: %s", agents);
    return 0;
}

static void on_discarded(void *context, struct wire_incoming *reply, const struct error *failure)
{
    struct local *local = context;

    (void) reply;
    if (failure && failure->code != ERR_NOT_FOUND && !local->link.over)
        LOG_WARNING(local->log, "a sandbox that nobody has cannot be ended",
                    log_text("error", failure->message));
}

void local_discard(struct local *local, const struct id *id, enum wire_kill_scope scope)
{
    struct wire_message message = {.number = WIRE_MESSAGE_KILL,
                                   .kill = {.id = *id, .scope = scope}};
    struct wire_answer answer = {.call = on_discarded, .context = local};
    struct error err = ERROR_INIT;

    if (launcher_link_ask(&local->link, &message, NULL, 0, answer, &err) < 0)
        on_discarded(local, NULL, &err);
}

/* --- what the launcher says by itself -------------------------------------------------------- */

static void on_event(void *context, const struct wire_message *event)
{
    struct local *local = context;

    if (event->number == WIRE_MESSAGE_STOPPING) {
        stock_rest(&local->stock);
        LOG_INFO(local->log, "the launcher is stopping",
                 log_text("reason", event->stopping.reason));
        return;
    }
    if (!stock_exited(local, &event->exited.id))
        provider_exited(&local->provider, &event->exited.id, &event->exited.ending);
}

static void on_over(void *context, const struct error *reason)
{
    struct local *local = context;

    stock_rest(&local->stock);
    if (!local_open_failed(local, reason))
        provider_lost(&local->provider, reason);
}

/* --- its end --------------------------------------------------------------------------------- */

static void release(struct provider *provider)
{
    struct local *local = local_of(provider);

    free(local->agents);
    free(local->program);
    free(local->image);
    free(local->opening.surplus);
    free(local);
}

void local_handle_closed(struct local *local)
{
    if (--local->closing == 0)
        provider_closed(&local->provider, release);
}

static void on_link_closed(struct launcher_link *link)
{
    local_handle_closed(CONTAINER_OF(link, struct local, link));
}

static void on_refill_closed(struct deadline *deadline)
{
    local_handle_closed(CONTAINER_OF(deadline, struct local, stock.refill));
}

static void on_settle_closed(struct deadline *deadline)
{
    local_handle_closed(CONTAINER_OF(deadline, struct local, settle));
}

static void local_close(struct provider *provider)
{
    struct local *local = local_of(provider);
    struct error reason = ERROR_INIT;

    (void) error_set(&reason, ERR_UNAVAILABLE, 0, "the provider was closed");
    stock_rest(&local->stock);
    launcher_link_close(&local->link, on_link_closed);
    (void) local_open_failed(local, &reason);
    deadline_close(&local->stock.refill, on_refill_closed);
    deadline_close(&local->settle, on_settle_closed);
}

static const struct provider_operations local_operations = {
    .name = "local",
    .open = local_open,
    .close = local_close,
    .create = local_create,
    .start = local_start,
    .stop = local_stop,
    .destroy = local_destroy,
    .freeze = local_freeze,
    .thaw = local_thaw,
    .set_limits = local_set_limits,
    .stats = local_stats,
    .sockets = local_sockets,
    .disk_job = local_disk_job,
    .open_mount = local_open_mount,
    .attach_mount = local_attach_mount,
    .detach_mount = local_detach_mount,
    .snapshot = local_snapshot,
    .delete_snapshot = local_delete_snapshot,
    .list_snapshots = local_list_snapshots,
    .roll_back = local_roll_back,
    .disk_usage = local_disk_usage,
    .reclaim = local_reclaim,
    .sync = local_sync,
    .agent_address = local_agent_address,
};

static int check_options(const struct provider_local_options *options, struct error *err)
{
    const char *image = options->image ?: PROVIDER_LOCAL_IMAGE;

    if (options->stock > PROVIDER_LOCAL_STOCK_MAX)
        return error_set(err, ERR_INVALID, 0, "a stock of more than %d sandboxes",
                         PROVIDER_LOCAL_STOCK_MAX);
    if (!wire_text_is_name(image))
        return error_set(err, ERR_INVALID, 0, "not the name of an image: %s", image);
    return 0;
}

struct provider *provider_local_new(const struct provider_local_options *options, struct error *err)
{
    AUTO(close) int conversation = options->conversation;
    AUTO(free) struct local *local = mem_alloc(sizeof(*local));
    struct launcher_link_events events = {
        .on_event = on_event, .on_over = on_over, .context = local};

    provider_init(&local->provider, &local_operations, options->loop);
    if (check_options(options, err) < 0 ||
        launcher_link_init(&local->link, options->loop, TAKE_FD(conversation), &events, err) < 0)
        return NULL;
    local->log = options->log;
    local->agents = mem_copy_text(options->agents);
    local->program = mem_copy_text(options->program ?: BURROW_VERSION);
    local->image = mem_copy_text(options->image ?: PROVIDER_LOCAL_IMAGE);
    stock_init(local, options->stock);
    deadline_init(options->loop, &local->settle, local_open_look_again);
    local->closing = 3; /* the link and the two deadlines */
    return &TAKE_PTR(local)->provider;
}

size_t provider_local_ready(const struct provider *provider)
{
    return CONTAINER_OF(provider, struct local, provider)->stock.count;
}
