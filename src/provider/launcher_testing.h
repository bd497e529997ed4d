/* For tests of the provider `local`: the other end of the conversation, played in the same loop.
 *
 * Sandboxes are only remembered; switches make a request fail, wait, or be the launcher's last.
 * Included by test programs only. */
#pragma once

#include "provider/launcher_testing_snapshot.h"
#include "provider/launcher_testing_state.h"
#include "provider/provider_local.h"
#include "sys/network/sys_socket.h"

/* --- what it is asked ------------------------------------------------------------------------ */

static inline void play_create(struct played_launcher *launcher, struct wire_incoming *incoming)
{
    uint64_t request = incoming->message.request;
    struct wire_plan plan;
    struct played_sandbox *sandbox;

    if (wire_plan_read(incoming->fds[0], &plan, NULL) < 0) {
        play_done(launcher, request, ERR_INVALID);
        return;
    }
    sandbox = play_find(launcher, &plan.id);
    if ((sandbox != NULL) != !!(plan.flags & WIRE_BIT(WIRE_PLAN_EXISTING_DISK))) {
        play_done(launcher, request, sandbox ? ERR_CONFLICT : ERR_NOT_FOUND);
        return;
    }
    if (!play_has_disk(launcher, &plan.origin)) {
        play_done(launcher, request, ERR_NOT_FOUND);
        return;
    }
    if (!sandbox)
        sandbox = play_add(launcher, &plan.id, RUN_STATE_RUNNING);
    sandbox->entry.state =
        plan.flags & WIRE_BIT(WIRE_PLAN_POOLED) ? RUN_STATE_POOLED : RUN_STATE_RUNNING;
    sandbox->entry.pid = 1000;
    sandbox->made = sandbox->plan = plan;
    play_sandbox(launcher, request, sandbox);
}

static inline void play_assign(struct played_launcher *launcher, struct wire_incoming *incoming)
{
    struct wire_plan plan;
    struct played_sandbox *sandbox;

    assert_int_equal(wire_plan_read(incoming->fds[0], &plan, NULL), 0);
    sandbox = play_find(launcher, &plan.id);
    if (!sandbox || sandbox->entry.state != RUN_STATE_POOLED || plan.flags ||
        strcmp(plan.image, sandbox->plan.image) != 0 || plan.binds.count) {
        play_done(launcher, incoming->message.request, ERR_CONFLICT);
        return;
    }
    sandbox->plan = plan;
    sandbox->entry.state = RUN_STATE_RUNNING;
    play_sandbox(launcher, incoming->message.request, sandbox);
}

static inline void play_kill(struct played_launcher *launcher, const struct wire_message *message)
{
    struct played_sandbox *sandbox = play_find(launcher, &message->kill.id);
    bool was_alive;

    launcher->last_kill = *message;
    if (!sandbox) {
        play_done(launcher, message->request, ERR_NOT_FOUND);
        return;
    }
    was_alive = sandbox->entry.pid != 0;
    sandbox->entry.state = RUN_STATE_STOPPED;
    sandbox->entry.pid = 0;
    sandbox->entry.start_time = 0;
    if (message->kill.scope == WIRE_KILL_EVERYTHING)
        play_remove(launcher, sandbox);
    if (was_alive && !launcher->exits_late)
        play_tell_exit(launcher, &message->kill.id, ENDED_SIGNAL, SIGKILL);
    play_done(launcher, message->request, ERR_NONE);
    if (was_alive && launcher->exits_late)
        play_tell_exit(launcher, &message->kill.id, ENDED_SIGNAL, SIGKILL);
}

static inline void play_sockets(struct played_launcher *launcher,
                                const struct wire_message *message)
{
    struct wire_message reply = {.number = WIRE_MESSAGE_SOCKETS_MADE,
                                 .sockets_made = {.count = message->sockets.count}};
    int fds[WIRE_SOCKETS_MAX];

    for (size_t i = 0; i < message->sockets.count; i++)
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    play_answer(launcher, message->request, &reply, fds, message->sockets.count);
    for (size_t i = 0; i < message->sockets.count; i++)
        (void) fd_close(fds[i]);
}

static inline void play_open_mount(struct played_launcher *launcher,
                                   const struct wire_message *message)
{
    struct wire_message reply = {.number = WIRE_MESSAGE_MOUNT_OPENED,
                                 .mount_opened = {.mount = launcher->mounts + 1}};
    int fuse = open("/dev/null", O_RDWR | O_CLOEXEC);

    launcher->last_mount = message->open_mount;
    launcher->mounts++;
    play_answer(launcher, message->request, &reply, &fuse, 1);
    (void) fd_close(fuse);
}

static inline void play_change_mount(struct played_launcher *launcher,
                                     const struct wire_message *message)
{
    bool is_known = message->attach_mount.mount && message->attach_mount.mount <= launcher->mounts;

    play_done(launcher, message->request, is_known ? ERR_NONE : ERR_NOT_FOUND);
}

static inline void play_job(struct played_launcher *launcher, const struct wire_message *message)
{
    struct wire_message reply = {.number = WIRE_MESSAGE_JOB_ENDED,
                                 .job_ended = {.ending = {.kind = ENDED_STATUS}}};

    launcher->last_job = message->keeper_job;
    if (!play_has_disk(launcher, &message->keeper_job.on) ||
        !play_has_disk(launcher, &message->keeper_job.base)) {
        play_done(launcher, message->request, ERR_NOT_FOUND);
        return;
    }
    reply.job_ended.ending.value = launcher->job_status;
    if (message->keeper_job.target.text[0] && launcher->job_status == 0 &&
        !play_find(launcher, &message->keeper_job.target))
        (void) play_add(launcher, &message->keeper_job.target, RUN_STATE_STOPPED);
    play_answer(launcher, message->request, &reply, NULL, 0);
}

static inline void play_state(struct played_launcher *launcher, const struct wire_message *message,
                              enum run_state state)
{
    struct played_sandbox *sandbox = play_find(launcher, &message->freeze.id);

    if (sandbox)
        sandbox->entry.state = state;
    play_done(launcher, message->request, sandbox ? ERR_NONE : ERR_NOT_FOUND);
}

static inline void play_greet(struct played_launcher *launcher, struct wire_message *message)
{
    struct wire_welcome welcome = {
        .program = "played", .features = launcher->features, .enforced = launcher->enforced};

    if (launcher->refuse_version)
        message->hello.version_min = message->hello.version_max = 99;
    if (wire_conversation_welcome(&launcher->conversation, message, &welcome, NULL) < 0)
        play_end(launcher);
}

static inline void play_rest(struct played_launcher *launcher, const struct wire_message *message)
{
    struct wire_message subscribed = {.number = WIRE_MESSAGE_SUBSCRIBED};
    struct wire_message stats = {
        .number = WIRE_MESSAGE_STATS_READ,
        .stats_read = {.known = STATS_BIT(PIDS) | STATS_BIT(DISK), .pids = 3, .disk_bytes = 4096}};
    struct wire_message bytes = {.number = WIRE_MESSAGE_BYTES_COUNTED, .bytes_counted = {8192}};

    switch (message->number) {
    case WIRE_MESSAGE_SNAPSHOT:
        play_snapshot(launcher, message);
        return;
    case WIRE_MESSAGE_DELETE_SNAPSHOT:
        play_delete_snapshot(launcher, message);
        return;
    case WIRE_MESSAGE_LIST_SNAPSHOTS:
        play_list_snapshots(launcher, message);
        return;
    case WIRE_MESSAGE_ROLL_BACK:
        play_roll_back(launcher, message);
        return;
    case WIRE_MESSAGE_DISK_USAGE:
        play_usage(launcher, message);
        return;
    case WIRE_MESSAGE_OPEN_MOUNT:
        play_open_mount(launcher, message);
        return;
    case WIRE_MESSAGE_ATTACH_MOUNT:
    case WIRE_MESSAGE_DETACH_MOUNT:
        play_change_mount(launcher, message);
        return;
    case WIRE_MESSAGE_RECLAIM:
        play_answer(launcher, message->request, &bytes, NULL, 0);
        return;
    case WIRE_MESSAGE_SYNC:
        play_done(launcher, message->request, ERR_NONE);
        return;
    case WIRE_MESSAGE_SUBSCRIBE_EXIT:
        play_answer(launcher, message->request, &subscribed, NULL, 0);
        return;
    case WIRE_MESSAGE_FREEZE:
        play_state(launcher, message, RUN_STATE_FROZEN);
        return;
    case WIRE_MESSAGE_THAW:
        play_state(launcher, message, RUN_STATE_RUNNING);
        return;
    case WIRE_MESSAGE_LIMITS:
        launcher->limits = message->limits.limits;
        play_done(launcher, message->request, ERR_NONE);
        return;
    case WIRE_MESSAGE_STATS:
        play_answer(launcher, message->request, &stats, NULL, 0);
        return;
    default:
        play_done(launcher, message->request, ERR_NOT_IMPLEMENTED);
    }
}

static inline void play_adopt(struct played_launcher *launcher, const struct wire_message *message)
{
    const struct played_sandbox *sandbox = play_find(launcher, &message->adopt.id);

    if (sandbox)
        play_sandbox(launcher, message->request, sandbox);
    else
        play_done(launcher, message->request, ERR_NOT_FOUND);
}

/* Answer a request as if no switch was set. */
static inline void play_request(struct played_launcher *launcher, struct wire_incoming *incoming)
{
    struct wire_message *message = &incoming->message;

    switch (message->number) {
    case WIRE_MESSAGE_HELLO:
        play_greet(launcher, message);
        return;
    case WIRE_MESSAGE_LIST:
        play_list(launcher, message);
        return;
    case WIRE_MESSAGE_ADOPT:
        play_adopt(launcher, message);
        return;
    case WIRE_MESSAGE_CREATE:
        play_create(launcher, incoming);
        return;
    case WIRE_MESSAGE_ASSIGN:
        play_assign(launcher, incoming);
        return;
    case WIRE_MESSAGE_KILL:
        play_kill(launcher, message);
        return;
    case WIRE_MESSAGE_SOCKETS:
        play_sockets(launcher, message);
        return;
    case WIRE_MESSAGE_KEEPER_JOB:
        play_job(launcher, message);
        return;
    default:
        play_rest(launcher, message);
    }
}

static inline void play_take(struct played_launcher *launcher, struct wire_incoming *incoming)
{
    enum wire_number number = incoming->message.number;
    enum err_code code = launcher->fail[number];

    launcher->asked[number]++;
    if (launcher->die_on == number) {
        play_end(launcher);
        return;
    }
    if (launcher->hold[number])
        return;
    if (code == ERR_NONE) {
        play_request(launcher, incoming);
        return;
    }
    if (launcher->fails[number] > 0)
        launcher->fails[number]--;
    if (launcher->fails[number] == 0)
        launcher->fail[number] = ERR_NONE;
    play_done(launcher, incoming->message.request, code);
}

static inline void on_played(uv_poll_t *poll, int status, int events)
{
    struct played_launcher *launcher = poll->data;
    struct wire_incoming incoming;
    enum wire_received received = WIRE_NOTHING;
    struct error err = ERROR_INIT;

    (void) status, (void) events;
    if (wire_conversation_flush(&launcher->conversation, &err) < 0)
        play_end(launcher);
    while (!launcher->over && (received = wire_conversation_receive(
                                   &launcher->conversation, &incoming, &err)) > WIRE_NOTHING) {
        if (received == WIRE_MESSAGE)
            play_take(launcher, &incoming);
        wire_incoming_done(&incoming);
    }
    if (received == WIRE_FAILED && err.code != ERR_GONE)
        fail_msg("the provider broke a rule: %s", err.message);
    if (received == WIRE_FAILED)
        play_end(launcher);
    play_watch(launcher);
}

static inline void play_watch(struct played_launcher *launcher)
{
    short events;

    if (launcher->over)
        return;
    events = wire_conversation_events(&launcher->conversation);
    (void) uv_poll_start(&launcher->poll,
                         (events & POLLIN ? UV_READABLE : 0) | (events & POLLOUT ? UV_WRITABLE : 0),
                         on_played);
}

/* --- its life -------------------------------------------------------------------------------- */

/* Returns the provider's end. */
static inline int play_start(struct played_launcher *launcher, struct loop *loop)
{
    struct error err = ERROR_INIT;
    int ends[2];

    *launcher = (struct played_launcher){
        .loop = loop,
        .features = WIRE_BIT(WIRE_FEATURE_FREEZE) | WIRE_BIT(WIRE_FEATURE_NAT) |
                    WIRE_BIT(WIRE_FEATURE_SNAPSHOTS) | WIRE_BIT(WIRE_FEATURE_RECLAIM) |
                    WIRE_BIT(WIRE_FEATURE_MOUNTS),
        .enforced = LIMIT_BIT(PIDS)};
    launcher->sandboxes = mem_alloc_array(PLAYED_MAX + 1, sizeof(*launcher->sandboxes));
    assert_int_equal(sys_socket_pair(SOCK_SEQPACKET, ends), 0);
    assert_int_equal(wire_conversation_init(&launcher->conversation, WIRE_LAUNCHER, ends[0], &err),
                     0);
    assert_int_equal(uv_poll_init(&loop->uv, &launcher->poll, ends[0]), 0);
    launcher->poll.data = launcher;
    play_watch(launcher);
    return ends[1];
}

static inline void on_play_closed(uv_handle_t *handle)
{
    ((struct played_launcher *) handle->data)->closed = true;
}

static inline void play_stop(struct played_launcher *launcher)
{
    play_end(launcher);
    uv_close((uv_handle_t *) &launcher->poll, on_play_closed);
    TURN_UNTIL(launcher->loop, launcher->closed);
    free(launcher->sandboxes);
}

/* --- as a backend of the contract ------------------------------------------------------------ */

static inline struct played_launcher *played(const struct contract *contract)
{
    return contract->more;
}

static inline struct provider *make_played(struct contract *contract, size_t stock)
{
    struct played_launcher *launcher = mem_alloc(sizeof(*launcher));
    struct provider_local_options options = {
        .loop = &contract->loop, .agents = "/run/agents", .stock = stock};
    struct error err = ERROR_INIT;

    contract->more = launcher;
    options.conversation = play_start(launcher, &contract->loop);
    return provider_local_new(&options, &err);
}

static inline struct provider *make_without_stock(struct contract *contract)
{
    return make_played(contract, 0);
}

static inline void kill_played(struct contract *contract, const struct id *id)
{
    play_exit(contract->more, id);
}

static inline void done_played(struct contract *contract)
{
    play_stop(contract->more);
    free(contract->more);
}

/* A provider without stock on a played launcher. */
static const struct contract_backend played_backend = {
    .make = make_without_stock, .kill = kill_played, .done = done_played};
