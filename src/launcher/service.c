#include "launcher/service.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/auto.h"
#include "launcher/cgroup/cgroup_reclaim.h"
#include "launcher/service_inspect.h"

/* --- answers --------------------------------------------------------------------------------- */

static void look_for_more(struct service *service);

/* An answer that cannot be sent ends the conversation, because its request would wait for ever. */
static void check_sent(struct service *service, int result, const struct error *err)
{
    if (result == 0)
        return;
    LOG_WARNING(service->log, "an answer cannot be sent", log_text("reason", err->message));
    /* Not from in here: our caller may be in the middle of a message. The peer sees its end. */
    (void) shutdown(service->conversation.channel.fd, SHUT_RDWR);
}

static void answer_done(struct service *service, uint64_t request, const struct error *failure)
{
    struct error err = ERROR_INIT;

    if (!service->is_open || !request)
        return;
    check_sent(service,
               wire_conversation_answer_done(&service->conversation, request, failure, &err), &err);
    look_for_more(service);
}

static void answer_fds(struct service *service, uint64_t request, struct wire_message *reply,
                       const int *fds, size_t count)
{
    struct error err = ERROR_INIT;

    if (!service->is_open || !request)
        return;
    if (wire_conversation_answer(&service->conversation, request, reply, fds, count, &err) < 0) {
        struct error why = err;

        check_sent(service,
                   wire_conversation_answer_done(&service->conversation, request, &why, &err),
                   &err);
    }
    look_for_more(service);
}

static void answer(struct service *service, uint64_t request, struct wire_message *reply)
{
    answer_fds(service, request, reply, NULL, 0);
}

static void answer_sandbox(struct service *service, uint64_t request,
                           const struct resident *resident)
{
    struct wire_message reply = {
        .number = WIRE_MESSAGE_SANDBOX,
        .sandbox = {.entry = resident_entry(resident),
                    .uid_first = resident->sandbox.ids.first,
                    .uid_count = resident->sandbox.ids.count,
                    .unenforced = resident->unenforced,
                    .pause_us = resident->pause_us},
    };

    answer(service, request, &reply);
}

/* --- requests -------------------------------------------------------------------------------- */

/* Each returns 0 when it has answered or will, -1 with the failure to answer. */
typedef int handler(struct service *service, struct wire_incoming *incoming, struct error *err);

static uint32_t features_of(const struct service *service)
{
    const struct cgroup_host *groups = service->residents->site->cgroups;
    uint32_t features = WIRE_BIT(WIRE_FEATURE_NAT) | WIRE_BIT(WIRE_FEATURE_SNAPSHOTS);

    if (!cgroup_host_missing(groups, CGROUP_FREEZER))
        features |= WIRE_BIT(WIRE_FEATURE_FREEZE);
    if (!cgroup_host_missing(groups, CGROUP_MEMORY))
        features |= WIRE_BIT(WIRE_FEATURE_OOM);
    if (service->residents->can_mount)
        features |= WIRE_BIT(WIRE_FEATURE_MOUNTS);
    if (cgroup_can_reclaim(groups))
        features |= WIRE_BIT(WIRE_FEATURE_RECLAIM);
    return features;
}

static int handle_hello(struct service *service, struct wire_incoming *incoming, struct error *err)
{
    struct wire_welcome welcome = {.features = features_of(service),
                                   .enforced = service->residents->enforced};

    (void) snprintf(welcome.program, sizeof(welcome.program), "burrow-launcher %s", BURROW_VERSION);
    if (wire_conversation_welcome(&service->conversation, &incoming->message, &welcome, err) < 0) {
        if (err->code == ERR_UPGRADE_REQUIRED)
            LOG_WARNING(service->log, "no common version with the daemon",
                        log_text("reason", err->message));
        (void) shutdown(service->conversation.channel.fd, SHUT_RDWR);
    }
    return 0;
}

static void tell_exits(struct service *service);

static int handle_subscribe(struct service *service, struct wire_incoming *incoming,
                            struct error *err)
{
    struct wire_message reply = {.number = WIRE_MESSAGE_SUBSCRIBED};

    (void) err;
    answer(service, incoming->message.request, &reply);
    tell_exits(service);
    return 0;
}

static int handle_list(struct service *service, struct wire_incoming *incoming, struct error *err)
{
    struct wire_message reply = {.number = WIRE_MESSAGE_LISTED};

    if (residents_list(service->residents, &incoming->message.list.after, &reply.listed, err) < 0)
        return -1;
    answer(service, incoming->message.request, &reply);
    return 0;
}

static int handle_adopt(struct service *service, struct wire_incoming *incoming, struct error *err)
{
    const struct wire_adopt *asked = &incoming->message.adopt;
    struct resident *resident = residents_find(service->residents, &asked->id, err);

    if (!resident)
        return -1;
    if (resident->state >= RESIDENT_ENDING || resident->state <= RESIDENT_STARTING)
        return error_set(err, ERR_CONFLICT, 0, "sandbox %s does not run", asked->id.text);
    if (asked->pid && (asked->pid != (uint32_t) resident->sandbox.pid ||
                       asked->start_time != resident->sandbox.started))
        return error_set(err, ERR_CONFLICT, 0, "sandbox %s runs as another process by now",
                         asked->id.text);
    answer_sandbox(service, incoming->message.request, resident);
    return 0;
}

/* Of a create or assign; from here on it is known which sandbox that is about. */
static int read_plan(const struct wire_incoming *incoming, struct wire_plan *plan,
                     struct error *err)
{
    if (wire_plan_read(incoming->fds[0], plan, err) < 0)
        return -1;
    trace_about(&plan->id);
    return 0;
}

static int handle_create(struct service *service, struct wire_incoming *incoming, struct error *err)
{
    struct wire_plan plan;

    if (read_plan(incoming, &plan, err) < 0)
        return -1;
    if (service_keeper_uses(&service->keeper, DISK_OF_SANDBOX, &plan.id))
        return error_set(err, ERR_CONFLICT, 0, "a keeper works on the disk of sandbox %s",
                         plan.id.text);
    return residents_create(service->residents, &plan, incoming->message.request, err);
}

static int handle_assign(struct service *service, struct wire_incoming *incoming, struct error *err)
{
    struct resident *resident;
    struct wire_plan plan;

    if (read_plan(incoming, &plan, err) < 0 ||
        residents_assign(service->residents, &plan, &resident, err) < 0)
        return -1;
    answer_sandbox(service, incoming->message.request, resident);
    return 0;
}

static int handle_sockets(struct service *service, struct wire_incoming *incoming,
                          struct error *err)
{
    const struct wire_sockets *asked = &incoming->message.sockets;
    struct wire_message reply = {.number = WIRE_MESSAGE_SOCKETS_MADE,
                                 .sockets_made.count = asked->count};
    struct resident *resident = residents_find_running(service->residents, &asked->id, err);
    int fds[WIRE_SOCKETS_MAX];

    if (!resident || resident_sockets(resident, asked->family, fds, asked->count, err) < 0)
        return -1;
    answer_fds(service, incoming->message.request, &reply, fds, asked->count);
    for (size_t i = 0; i < asked->count; i++)
        (void) fd_close(fds[i]);
    return 0;
}

static int handle_freeze(struct service *service, struct wire_incoming *incoming, struct error *err)
{
    struct resident *resident =
        residents_find_running(service->residents, &incoming->message.freeze.id, err);

    return resident ? resident_freeze(resident, incoming->message.request, err) : -1;
}

static int handle_thaw(struct service *service, struct wire_incoming *incoming, struct error *err)
{
    struct resident *resident =
        residents_find_running(service->residents, &incoming->message.thaw.id, err);

    if (!resident || resident_thaw(resident, err) < 0)
        return -1;
    answer_done(service, incoming->message.request, NULL);
    return 0;
}

static int handle_kill(struct service *service, struct wire_incoming *incoming, struct error *err)
{
    const struct wire_kill *asked = &incoming->message.kill;

    return residents_kill(service->residents, &asked->id, asked->scope, incoming->message.request,
                          err);
}

static int handle_limits(struct service *service, struct wire_incoming *incoming, struct error *err)
{
    const struct wire_set_limits *asked = &incoming->message.limits;
    struct resident *resident = residents_find_running(service->residents, &asked->id, err);

    if (!resident || resident_set_limits(resident, &asked->limits, err) < 0)
        return -1;
    answer_done(service, incoming->message.request, NULL);
    return 0;
}

static int handle_stats(struct service *service, struct wire_incoming *incoming, struct error *err)
{
    struct wire_message reply = {.number = WIRE_MESSAGE_STATS_READ};
    struct resident *resident =
        residents_find_running(service->residents, &incoming->message.stats.id, err);

    if (!resident)
        return -1;
    resident_stats(resident, &reply.stats_read);
    answer(service, incoming->message.request, &reply);
    return 0;
}

static int handle_snapshot(struct service *service, struct wire_incoming *incoming,
                           struct error *err)
{
    return residents_snapshot(service->residents, &incoming->message.snapshot,
                              incoming->message.request, err);
}

static int handle_delete_snapshot(struct service *service, struct wire_incoming *incoming,
                                  struct error *err)
{
    const struct id *id = &incoming->message.delete_snapshot.id;

    if (service_keeper_uses(&service->keeper, DISK_OF_SNAPSHOT, id))
        return error_set(err, ERR_CONFLICT, 0, "a keeper works on snapshot %s", id->text);
    if (residents_delete_snapshot(service->residents, id, err) < 0)
        return -1;
    answer_done(service, incoming->message.request, NULL);
    return 0;
}

static int handle_list_snapshots(struct service *service, struct wire_incoming *incoming,
                                 struct error *err)
{
    struct wire_message reply = {.number = WIRE_MESSAGE_SNAPSHOTS_LISTED};

    if (residents_list_snapshots(service->residents, &incoming->message.list_snapshots.after,
                                 &reply.snapshots_listed, err) < 0)
        return -1;
    answer(service, incoming->message.request, &reply);
    return 0;
}

static int handle_roll_back(struct service *service, struct wire_incoming *incoming,
                            struct error *err)
{
    const struct wire_roll_back *asked = &incoming->message.roll_back;

    if (service_keeper_uses(&service->keeper, DISK_OF_SANDBOX, &asked->id))
        return error_set(err, ERR_CONFLICT, 0, "a keeper works on the disk of sandbox %s",
                         asked->id.text);
    return residents_roll_back(service->residents, asked, incoming->message.request, err);
}

static int handle_disk_usage(struct service *service, struct wire_incoming *incoming,
                             struct error *err)
{
    struct wire_message reply = {.number = WIRE_MESSAGE_BYTES_COUNTED};

    if (residents_disk_usage(service->residents, &incoming->message.disk_usage.disk,
                             &reply.bytes_counted.bytes, err) < 0)
        return -1;
    answer(service, incoming->message.request, &reply);
    return 0;
}

static int handle_reclaim(struct service *service, struct wire_incoming *incoming,
                          struct error *err)
{
    struct resident *resident =
        residents_find_running(service->residents, &incoming->message.reclaim.id, err);

    return resident ? resident_reclaim(resident, incoming->message.request, err) : -1;
}

static int handle_sync(struct service *service, struct wire_incoming *incoming, struct error *err)
{
    return residents_sync(service->residents, incoming->message.sync.contents,
                          incoming->message.request, err);
}

static int handle_inspect(struct service *service, struct wire_incoming *incoming,
                          struct error *err)
{
    struct wire_message reply = {.number = WIRE_MESSAGE_INSPECTED};
    AUTO(close) int file = -EBADF;

    if (service_inspect(service, &incoming->message.inspect, &file, err) < 0)
        return -1;
    answer_fds(service, incoming->message.request, &reply, &file, 1);
    return 0;
}

static int handle_open_mount(struct service *service, struct wire_incoming *incoming,
                             struct error *err)
{
    const struct wire_open_mount *asked = &incoming->message.open_mount;
    struct wire_message reply = {.number = WIRE_MESSAGE_MOUNT_OPENED};
    struct resident *resident = residents_find_running(service->residents, &asked->id, err);
    int server;

    if (!resident ||
        resident_open_mount(resident, asked, &reply.mount_opened.mount, &server, err) < 0)
        return -1;
    answer_fds(service, incoming->message.request, &reply, &server, 1);
    (void) fd_close(server);
    return 0;
}

static int handle_attach_mount(struct service *service, struct wire_incoming *incoming,
                               struct error *err)
{
    const struct wire_mount *asked = &incoming->message.attach_mount;
    struct resident *resident = residents_find_running(service->residents, &asked->id, err);

    return resident ? resident_attach_mount(resident, asked->mount, incoming->message.request, err)
                    : -1;
}

static int handle_detach_mount(struct service *service, struct wire_incoming *incoming,
                               struct error *err)
{
    const struct wire_mount *asked = &incoming->message.detach_mount;
    struct resident *resident = residents_find_running(service->residents, &asked->id, err);

    return resident ? resident_detach_mount(resident, asked->mount, incoming->message.request, err)
                    : -1;
}

static int handle_keeper_job(struct service *service, struct wire_incoming *incoming,
                             struct error *err)
{
    return service_keeper_start(&service->keeper, &incoming->message.keeper_job, incoming->fds,
                                incoming->message.request, err);
}

static const struct {
    enum wire_number number;
    handler *handle;
} handlers[] = {
    {WIRE_MESSAGE_HELLO, handle_hello},
    {WIRE_MESSAGE_SUBSCRIBE_EXIT, handle_subscribe},
    {WIRE_MESSAGE_LIST, handle_list},
    {WIRE_MESSAGE_ADOPT, handle_adopt},
    {WIRE_MESSAGE_CREATE, handle_create},
    {WIRE_MESSAGE_ASSIGN, handle_assign},
    {WIRE_MESSAGE_SOCKETS, handle_sockets},
    {WIRE_MESSAGE_FREEZE, handle_freeze},
    {WIRE_MESSAGE_THAW, handle_thaw},
    {WIRE_MESSAGE_KILL, handle_kill},
    {WIRE_MESSAGE_LIMITS, handle_limits},
    {WIRE_MESSAGE_STATS, handle_stats},
    {WIRE_MESSAGE_OPEN_MOUNT, handle_open_mount},
    {WIRE_MESSAGE_ATTACH_MOUNT, handle_attach_mount},
    {WIRE_MESSAGE_DETACH_MOUNT, handle_detach_mount},
    {WIRE_MESSAGE_KEEPER_JOB, handle_keeper_job},
    {WIRE_MESSAGE_SNAPSHOT, handle_snapshot},
    {WIRE_MESSAGE_DELETE_SNAPSHOT, handle_delete_snapshot},
    {WIRE_MESSAGE_LIST_SNAPSHOTS, handle_list_snapshots},
    {WIRE_MESSAGE_ROLL_BACK, handle_roll_back},
    {WIRE_MESSAGE_DISK_USAGE, handle_disk_usage},
    {WIRE_MESSAGE_RECLAIM, handle_reclaim},
    {WIRE_MESSAGE_SYNC, handle_sync},
    {WIRE_MESSAGE_INSPECT, handle_inspect},
};

static void handle(struct service *service, struct wire_incoming *incoming)
{
    struct error err = ERROR_INIT;
    TRACE_FOR(&incoming->message.trace, wire_message_subject(&incoming->message));

    for (size_t i = 0; i < ARRAY_COUNT(handlers); i++) {
        if (handlers[i].number != incoming->message.number)
            continue;
        if (handlers[i].handle(service, incoming, &err) < 0)
            answer_done(service, incoming->message.request, &err);
        return;
    }
    (void) error_set(&err, ERR_NOT_IMPLEMENTED, 0, "this launcher does not know how to %s",
                     wire_message_name(incoming->message.number));
    answer_done(service, incoming->message.request, &err);
}

/* --- the conversation ------------------------------------------------------------------------ */

static uint32_t wanted_events(const struct service *service)
{
    short events = wire_conversation_events(&service->conversation);

    return (events & POLLIN ? EPOLLIN : 0) | (events & POLLOUT ? EPOLLOUT : 0);
}

static void look_for_more(struct service *service)
{
    uint32_t events = wanted_events(service);

    if (!service->is_open || events == service->source.events)
        return;
    service->source.events = events;
    (void) event_loop_add(service->loop, &service->source);
}

static void end(struct service *service, const struct error *reason)
{
    if (!service->is_open)
        return;
    service->is_open = false;
    event_loop_remove(service->loop, &service->source);
    wire_conversation_end(&service->conversation, reason);
    residents_forget_requests(service->residents);
    service_keeper_done(&service->keeper);
    if (reason)
        LOG_INFO(service->log, "the conversation with the daemon is over",
                 log_text("reason", reason->message));
    service->ended(service->context);
}

static void tell_exits(struct service *service)
{
    struct resident *resident;
    struct error err = ERROR_INIT;

    if (!service->is_open || (service->conversation.state != WIRE_SERVING &&
                              service->conversation.state != WIRE_DRAINING))
        return;
    while ((resident = residents_next_exit(service->residents))) {
        struct wire_message event = {
            .number = WIRE_MESSAGE_EXITED,
            .exited = {.id = resident->sandbox.id, .ending = resident->record.ending},
        };

        if (wire_conversation_tell(&service->conversation, &event, &err) < 0)
            break; /* told when the daemon reads again, or the next one */
        resident_told(resident);
    }
    look_for_more(service);
}

/* One message at a time, so that exits and starts of other sandboxes get their turn. */
static void ready(struct event_source *source, uint32_t events)
{
    struct service *service = CONTAINER_OF(source, struct service, source);
    struct wire_incoming incoming = {.fd_count = 0};
    struct error err = ERROR_INIT;

    if ((events & EPOLLOUT) && wire_conversation_flush(&service->conversation, &err) < 0) {
        end(service, &err);
        return;
    }
    if (events & EPOLLOUT)
        tell_exits(service);
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        enum wire_received got = wire_conversation_receive(&service->conversation, &incoming, &err);

        if (got == WIRE_FAILED) {
            end(service, &err);
            return;
        }
        if (got == WIRE_MESSAGE) {
            handle(service, &incoming);
            wire_incoming_done(&incoming);
        }
    }
    look_for_more(service);
}

int service_open(struct service *service, int fd, struct error *err)
{
    int r;

    if (wire_conversation_init(&service->conversation, WIRE_LAUNCHER, fd, err) < 0)
        return -1;
    service->source = (struct event_source){
        .fd = service->conversation.channel.fd, .events = wanted_events(service), .ready = ready};
    r = event_loop_add(service->loop, &service->source);
    if (r < 0) {
        wire_conversation_end(&service->conversation, NULL);
        return error_set(err, ERR_INTERNAL, r, "watch the daemon's socket");
    }
    service->is_open = true;
    return 0;
}

void service_stopping(struct service *service, const char *reason)
{
    struct wire_message event = {.number = WIRE_MESSAGE_STOPPING};
    struct error err = ERROR_INIT;

    if (!service->is_open)
        return;
    (void) snprintf(event.stopping.reason, sizeof(event.stopping.reason), "%s", reason);
    /* A daemon that does not read is told by the end of the conversation. */
    (void) wire_conversation_tell(&service->conversation, &event, &err);
    look_for_more(service);
}

/* --- residents ------------------------------------------------------------------------------- */

static void started(void *context, uint64_t request, const struct resident *resident,
                    const struct error *failure)
{
    struct service *service = context;

    if (failure)
        answer_done(service, request, failure);
    else if (service->is_open && request)
        answer_sandbox(service, request, resident);
}

static void work_done(void *context, uint64_t request, const struct error *failure)
{
    answer_done(context, request, failure);
}

static void snapshot_made(void *context, uint64_t request, const struct snapshot_made *made,
                          const struct error *failure)
{
    struct wire_message reply = {.number = WIRE_MESSAGE_SNAPSHOT_MADE, .snapshot_made = *made};

    if (failure)
        answer_done(context, request, failure);
    else
        answer(context, request, &reply);
}

static void counted(void *context, uint64_t request, uint64_t bytes, const struct error *failure)
{
    struct wire_message reply = {.number = WIRE_MESSAGE_BYTES_COUNTED,
                                 .bytes_counted.bytes = bytes};

    if (failure)
        answer_done(context, request, failure);
    else
        answer(context, request, &reply);
}

static void exited(void *context)
{
    tell_exits(context);
}

struct residents_hooks service_hooks(struct service *service, void (*empty)(void *context))
{
    return (struct residents_hooks){.context = service,
                                    .started = started,
                                    .done = work_done,
                                    .snapshot_made = snapshot_made,
                                    .counted = counted,
                                    .exited = exited,
                                    .empty = empty};
}

static void keeper_ended(void *context, uint64_t request, const struct ending *ending,
                         const struct error *failure)
{
    struct wire_message reply = {.number = WIRE_MESSAGE_JOB_ENDED, .job_ended.ending = *ending};

    if (failure)
        answer_done(context, request, failure);
    else
        answer(context, request, &reply);
}

int service_init(struct service *service, struct event_loop *loop, struct residents *residents,
                 struct log *log, void (*ended)(void *context), void *context, struct error *err)
{
    *service = (struct service){
        .loop = loop,
        .residents = residents,
        .log = log,
        .keeper = {.residents = residents, .context = service, .ended = keeper_ended},
        .ended = ended,
        .context = context};
    return service_keeper_init(&service->keeper, err);
}

void service_done(struct service *service)
{
    service->ended = NULL;
    service_keeper_done(&service->keeper);
    if (!service->is_open)
        return;
    service->is_open = false;
    event_loop_remove(service->loop, &service->source);
    wire_conversation_end(&service->conversation, NULL);
}
