/* What each call becomes: a request to the launcher, and what its answer brings. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "provider/provider_local_internal.h"
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

/* --- what is asked: all but the sandbox's id --------------------------------------------------- */

static void fill_stop(const struct provider_call *call, struct wire_message *message)
{
    (void) call;
    message->kill.scope = WIRE_KILL_PROCESSES;
}

static void fill_destroy(const struct provider_call *call, struct wire_message *message)
{
    (void) call;
    message->kill.scope = WIRE_KILL_EVERYTHING;
}

static void fill_limits(const struct provider_call *call, struct wire_message *message)
{
    message->limits.limits = *call->asked.limits;
}

_Static_assert(PROVIDER_SOCKETS_MAX == WIRE_SOCKETS_MAX, "what callers may ask can be asked");

static void fill_sockets(const struct provider_call *call, struct wire_message *message)
{
    message->sockets.family = WIRE_SOCKET_IPV4;
    message->sockets.count = (uint8_t) call->asked.count;
}

static void fill_open_mount(const struct provider_call *call, struct wire_message *message)
{
    message->open_mount.read_only = call->asked.open_mount.read_only;
    wire_text_set(message->open_mount.place, sizeof(message->open_mount.place),
                  call->asked.open_mount.place);
}

static void fill_mount(const struct provider_call *call, struct wire_message *message)
{
    message->attach_mount.mount = call->asked.mount;
}

static void fill_snapshot(const struct provider_call *call, struct wire_message *message)
{
    message->snapshot.snapshot = call->snapshot;
    message->snapshot.freeze = call->asked.freeze;
}

static void fill_delete_snapshot(const struct provider_call *call, struct wire_message *message)
{
    message->delete_snapshot.id = call->snapshot;
}

static void fill_roll_back(const struct provider_call *call, struct wire_message *message)
{
    message->roll_back.snapshot = call->snapshot;
    message->roll_back.disk_bytes = call->asked.disk_bytes;
}

static void fill_disk_usage(const struct provider_call *call, struct wire_message *message)
{
    message->disk_usage.disk = call->snapshot.text[0]
                                   ? (struct disk_ref){DISK_OF_SNAPSHOT, call->snapshot}
                                   : (struct disk_ref){DISK_OF_SANDBOX, call->id};
}

static void fill_sync(const struct provider_call *call, struct wire_message *message)
{
    message->sync = (struct wire_sync){.contents = call->kind == PROVIDER_CALL_SYNC_CONTENTS};
}

static void fill_inspect(const struct provider_call *call, struct wire_message *message)
{
    message->inspect = (struct wire_inspect){
        .what = call->asked.inspection.state ? WIRE_INSPECT_STATE : WIRE_INSPECT_TRACE,
        .request = call->asked.inspection.about.request,
        .sandbox = call->asked.inspection.about.sandbox};
}

/* --- what the answer brings -------------------------------------------------------------------- */

static void take_stats(struct provider_call *call, struct wire_incoming *reply)
{
    call->result.stats = reply->message.stats_read;
}

static void take_sockets(struct provider_call *call, struct wire_incoming *reply)
{
    call->result.sockets.count = reply->fd_count;
    for (size_t i = 0; i < reply->fd_count; i++) {
        call->result.sockets.fds[i] = TAKE_FD(reply->fds[i]);
        (void) sys_file_set_nonblocking(call->result.sockets.fds[i], true);
    }
}

static void take_mount(struct provider_call *call, struct wire_incoming *reply)
{
    call->result.mount.number = reply->message.mount_opened.mount;
    call->result.mount.fuse = TAKE_FD(reply->fds[0]);
    (void) sys_file_set_nonblocking(call->result.mount.fuse, true);
}

static void take_snapshot(struct provider_call *call, struct wire_incoming *reply)
{
    call->result.snapshot = reply->message.snapshot_made;
}

static void take_counted_bytes(struct provider_call *call, struct wire_incoming *reply)
{
    call->result.bytes = reply->message.bytes_counted.bytes;
}

static void take_ending(struct provider_call *call, struct wire_incoming *reply)
{
    call->result.ending = reply->message.job_ended.ending;
}

static void take_inspection(struct provider_call *call, struct wire_incoming *reply)
{
    call->result.inspection = TAKE_FD(reply->fds[0]);
}

/* --- the table --------------------------------------------------------------------------------- */

static const struct request {
    enum wire_number number;
    void (*fill)(const struct provider_call *call, struct wire_message *message);
    void (*take)(struct provider_call *call, struct wire_incoming *reply);
} requests[PROVIDER_CALL_COUNT] = {
    [PROVIDER_CALL_STOP] = {WIRE_MESSAGE_KILL, fill_stop, NULL},
    [PROVIDER_CALL_DESTROY] = {WIRE_MESSAGE_KILL, fill_destroy, NULL},
    [PROVIDER_CALL_FREEZE] = {WIRE_MESSAGE_FREEZE, NULL, NULL},
    [PROVIDER_CALL_THAW] = {WIRE_MESSAGE_THAW, NULL, NULL},
    [PROVIDER_CALL_SET_LIMITS] = {WIRE_MESSAGE_LIMITS, fill_limits, NULL},
    [PROVIDER_CALL_STATS] = {WIRE_MESSAGE_STATS, NULL, take_stats},
    [PROVIDER_CALL_SOCKETS] = {WIRE_MESSAGE_SOCKETS, fill_sockets, take_sockets},
    [PROVIDER_CALL_DISK_JOB] = {WIRE_MESSAGE_KEEPER_JOB, NULL, take_ending},
    [PROVIDER_CALL_OPEN_MOUNT] = {WIRE_MESSAGE_OPEN_MOUNT, fill_open_mount, take_mount},
    [PROVIDER_CALL_ATTACH_MOUNT] = {WIRE_MESSAGE_ATTACH_MOUNT, fill_mount, NULL},
    [PROVIDER_CALL_DETACH_MOUNT] = {WIRE_MESSAGE_DETACH_MOUNT, fill_mount, NULL},
    [PROVIDER_CALL_SNAPSHOT] = {WIRE_MESSAGE_SNAPSHOT, fill_snapshot, take_snapshot},
    [PROVIDER_CALL_DELETE_SNAPSHOT] = {WIRE_MESSAGE_DELETE_SNAPSHOT, fill_delete_snapshot, NULL},
    [PROVIDER_CALL_ROLL_BACK] = {WIRE_MESSAGE_ROLL_BACK, fill_roll_back, NULL},
    [PROVIDER_CALL_DISK_USAGE] = {WIRE_MESSAGE_DISK_USAGE, fill_disk_usage, take_counted_bytes},
    [PROVIDER_CALL_RECLAIM] = {WIRE_MESSAGE_RECLAIM, NULL, take_counted_bytes},
    [PROVIDER_CALL_SYNC_DISKS] = {WIRE_MESSAGE_SYNC, fill_sync, NULL},
    [PROVIDER_CALL_SYNC_CONTENTS] = {WIRE_MESSAGE_SYNC, fill_sync, NULL},
    [PROVIDER_CALL_INSPECT] = {WIRE_MESSAGE_INSPECT, fill_inspect, take_inspection},
};

static void on_answered(void *context, struct wire_incoming *reply, const struct error *failure)
{
    struct provider_call *call = context;

    /* Gone is what was asked for. */
    if (failure && call->kind == PROVIDER_CALL_DESTROY && failure->code == ERR_NOT_FOUND)
        failure = NULL;
    else if (!failure && requests[call->kind].take)
        requests[call->kind].take(call, reply);
    provider_call_answer(call, failure);
}

/* Every body that names a sandbox begins with its id. */
#define BEGINS_WITH_ID(body) (offsetof(struct wire_##body, id) == 0)
_Static_assert(BEGINS_WITH_ID(target) && BEGINS_WITH_ID(kill) && BEGINS_WITH_ID(set_limits) &&
                   BEGINS_WITH_ID(sockets) && BEGINS_WITH_ID(open_mount) && BEGINS_WITH_ID(mount) &&
                   BEGINS_WITH_ID(snapshot) && BEGINS_WITH_ID(roll_back),
               "the id can be filled in through any of them");

void local_forward(struct provider_call *call)
{
    const struct request *request = &requests[call->kind];
    struct wire_message message = {.number = request->number, .freeze = {.id = call->id}};

    if (request->fill)
        request->fill(call, &message);
    local_ask(call, &message, NULL, 0, on_answered);
}

/* --- disk jobs --------------------------------------------------------------------------------- */

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
        wire_text_set(ret_job->image, sizeof(ret_job->image), job->image ?: local->image);
}

void local_disk_job(struct provider_call *call)
{
    const struct provider_disk_job *job = call->asked.job;
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
    fill_job(local_of(call->provider), job, &message.keeper_job);
    local_ask(call, &message, fds, ARRAY_COUNT(fds), on_answered);
}

/* --- the list of snapshots --------------------------------------------------------------------- */

static void ask_page(struct provider_call *call, const struct id *after);

/* The pages are collected in the call's result. */
static void on_page(void *context, struct wire_incoming *reply, const struct error *failure)
{
    const struct wire_snapshots_listed *page;
    struct provider_call *call = context;
    struct error err = ERROR_INIT;
    struct id *ids = call->result.ids.ids;
    size_t count = call->result.ids.count;

    if (failure) {
        provider_call_answer(call, failure);
        return;
    }
    page = &reply->message.snapshots_listed;
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

void local_list_snapshots(struct provider_call *call)
{
    ask_page(call, NULL);
}
