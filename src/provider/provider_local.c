#include "provider/provider_local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "provider/provider_local_internal.h"

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
    .calls =
        {
            [PROVIDER_CALL_OPEN] = local_open,
            [PROVIDER_CALL_CREATE] = local_create,
            [PROVIDER_CALL_START] = local_start,
            [PROVIDER_CALL_STOP] = local_forward,
            [PROVIDER_CALL_DESTROY] = local_forward,
            [PROVIDER_CALL_FREEZE] = local_forward,
            [PROVIDER_CALL_THAW] = local_forward,
            [PROVIDER_CALL_SET_LIMITS] = local_forward,
            [PROVIDER_CALL_STATS] = local_forward,
            [PROVIDER_CALL_SOCKETS] = local_forward,
            [PROVIDER_CALL_DISK_JOB] = local_disk_job,
            [PROVIDER_CALL_OPEN_MOUNT] = local_forward,
            [PROVIDER_CALL_ATTACH_MOUNT] = local_forward,
            [PROVIDER_CALL_DETACH_MOUNT] = local_forward,
            [PROVIDER_CALL_SNAPSHOT] = local_forward,
            [PROVIDER_CALL_DELETE_SNAPSHOT] = local_forward,
            [PROVIDER_CALL_LIST_SNAPSHOTS] = local_list_snapshots,
            [PROVIDER_CALL_ROLL_BACK] = local_forward,
            [PROVIDER_CALL_DISK_USAGE] = local_forward,
            [PROVIDER_CALL_RECLAIM] = local_forward,
            [PROVIDER_CALL_SYNC_DISKS] = local_forward,
            [PROVIDER_CALL_SYNC_CONTENTS] = local_forward,
            [PROVIDER_CALL_INSPECT] = local_forward,
        },
    .close = local_close,
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
