/* A daemon that was taken over, and a host on which everything fails sooner or later: the service
 * and the residents behind it, real, on a host in memory (service_fuzz_host.h).
 *
 * Whatever comes in whatever order: every request is answered once, every exit told at most once
 * and as what it was, no disk goes that somebody was promised, no name with a path in it gets
 * through, and in the end nothing is left, neither descriptors nor anything of a sandbox.
 *
 *     input: actions, each a byte of enum action and its arguments */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"
#include "launcher/service.h"
#include "launcher/service_fuzz_host.h"
#include "sys/file/sys_file.h"
#include "sys/network/sys_fd_pass.h"
#include "sys/network/sys_socket.h"

#define ACTIONS_MAX      400
#define STEPS_PER_ACTION 6
#define SETTLE_TURNS     40
#define SETTLE_STEP_MS   500
#define RAW_FDS_MAX      40
#define VERSION          WIRE_VERSION_MAX

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum action {
    ACTION_MESSAGE, /* number, box, argument: a valid request */
    ACTION_PLAN,    /* create or assign, box, flags, argument */
    ACTION_RAW,     /* descriptors, u16 length, bytes */
    ACTION_READY,   /* box */
    ACTION_FAIL,    /* box */
    ACTION_DIE,     /* box, status */
    ACTION_WORK,
    ACTION_KEEPERS, /* status */
    ACTION_TIME,    /* milliseconds */
    ACTION_FAULT,   /* in how many calls */
    ACTION_STOPPING,
    ACTION_NEXT_DAEMON,
    ACTION_CARRY,
    ACTION_COUNT
};

struct input {
    const uint8_t *data;
    size_t size;
};

/* A request that has no answer yet. */
struct open_request {
    uint64_t number;
    enum wire_number message;
    bool promises;  /* success makes it somebody's */
    bool destroys;  /* success means that it is gone ... */
    struct id what; /* ... this one */
};

struct fuzz {
    struct clock_manual clock;
    struct event_loop loop;
    struct site site;
    struct instance instance;
    struct residents residents;
    struct service service;
    int daemon; /* owned: the daemon's end; -EBADF when its conversation is over */
    uint64_t last_request;
    uint64_t deadly[HOST_BOXES]; /* the last request to destroy it */
    struct open_request open[WIRE_REQUESTS_MAX];
    size_t open_count;
};

static uint8_t take(struct input *input)
{
    if (!input->size)
        return 0;
    input->size--;
    return *input->data++;
}

static struct host_box *take_box(struct input *input)
{
    return &the_host.boxes[take(input) % HOST_BOXES];
}

/* --- the daemon's end ------------------------------------------------------------------------ */

static size_t index_of(const struct id *id)
{
    const struct host_box *box = host_find(id);

    return box ? (size_t) (box - the_host.boxes) : HOST_BOXES;
}

/* What is promised and what is not follows from what was sent, also when it was sent as raw bytes.
 */
static void note_request(struct fuzz *fuzz, const uint8_t *bytes, size_t length, bool promises)
{
    struct open_request request = {.promises = promises};
    struct wire_message message;

    if (wire_message_decode(bytes, length, VERSION, &message, NULL) < 0)
        return;
    request.number = message.request;
    request.message = message.number;
    if (message.number == WIRE_MESSAGE_KILL && message.kill.scope == WIRE_KILL_EVERYTHING &&
        index_of(&message.kill.id) < HOST_BOXES) {
        host_find(&message.kill.id)->is_promised = false;
        fuzz->deadly[index_of(&message.kill.id)] = message.request;
        request.destroys = true;
        request.what = message.kill.id;
    }
    if (fuzz->open_count < WIRE_REQUESTS_MAX)
        fuzz->open[fuzz->open_count++] = request;
}

static void send_packet(struct fuzz *fuzz, const uint8_t *bytes, size_t length, const int *fds,
                        size_t count, bool promises)
{
    note_request(fuzz, bytes, length, promises);
    (void) sys_fd_pass_send(fuzz->daemon, bytes, length, fds, count);
}

static void forget_answered(struct fuzz *fuzz, const struct wire_message *reply)
{
    for (size_t i = 0; i < fuzz->open_count; i++) {
        const struct open_request request = fuzz->open[i];
        struct host_box *box;

        if (request.number != reply->request)
            continue;
        fuzz->open[i] = fuzz->open[--fuzz->open_count];
        must(wire_message_answers(request.message, reply));
        if (request.destroys && error_code_from_text(reply->done.code) == ERR_NONE)
            host_find(&request.what)->is_doomed = true;
        if (reply->number != WIRE_MESSAGE_SANDBOX || !request.promises)
            return;
        box = host_find(&reply->sandbox.entry.id);
        must(box);
        if (request.number > fuzz->deadly[box - the_host.boxes])
            box->is_promised = true;
        return;
    }
}

static void check_exit(const struct wire_exited *exited)
{
    static const enum ending_kind kinds[] = {
        [SYS_EXIT_UNKNOWN] = ENDED_UNKNOWN,
        [SYS_EXIT_STATUS] = ENDED_STATUS,
        [SYS_EXIT_SIGNAL] = ENDED_SIGNAL,
    };
    struct host_box *box = host_find(&exited->id);

    must(box && ++box->told <= box->deaths && !box->is_alive);
    must(exited->ending.kind == kinds[box->exit.kind] && exited->ending.value == box->exit.value);
}

/* Read everything that the launcher said. */
static void drink(struct fuzz *fuzz)
{
    uint8_t bytes[WIRE_PACKET_MAX];
    int fds[WIRE_FDS_MAX];
    size_t count = 0;
    ssize_t got;

    while (fuzz->daemon >= 0 && (got = sys_fd_pass_receive(fuzz->daemon, bytes, sizeof(bytes), fds,
                                                           WIRE_FDS_MAX, &count)) > 0) {
        struct wire_message message;

        must(wire_message_decode(bytes, (size_t) got, VERSION, &message, NULL) == 0);
        must(wire_message_fds(&message) == count);
        for (size_t i = 0; i < count; i++)
            (void) fd_close(fds[i]);
        if (message.number == WIRE_MESSAGE_EXITED)
            check_exit(&message.exited);
        else if (message.request)
            forget_answered(fuzz, &message);
    }
}

/* --- what it says ---------------------------------------------------------------------------- */

static struct limits make_limits(uint8_t argument)
{
    return (struct limits){.memory_bytes = (uint64_t) argument << 18,
                           .disk_bytes = argument & 1 ? DISK_LIMIT_MIN : 0,
                           .pids = argument};
}

/* What the job speaks of, and now and then something that it does not. */
static void fill_job(struct wire_keeper_job *job, const struct id *id, uint8_t argument)
{
    static const struct id none = {""};
    const struct id *other = &the_host.boxes[argument / 16 % HOST_BOXES].id;

    *job = (struct wire_keeper_job){.job = argument % wire_keeper_job_kind_count};
    if (job->job != DISK_JOB_UNPACK && job->job != DISK_JOB_UNARCHIVE)
        job->on = (struct disk_ref){.id = *id};
    if (job->job == DISK_JOB_DIFF || (job->job == DISK_JOB_PACK && argument & 16))
        job->base = (struct disk_ref){.set = DISK_OF_SANDBOX, .id = *other};
    job->target = job->job == DISK_JOB_COPY ? *other : job->job == DISK_JOB_UNPACK ? *id : none;
    if (job->job == DISK_JOB_ARCHIVE || job->job == DISK_JOB_SCAN || job->job == DISK_JOB_READ) {
        (void) snprintf(job->image, sizeof(job->image), "host");
        job->on.set = argument & 128 ? DISK_OF_SNAPSHOT : DISK_OF_SANDBOX;
    }
}

static void fill_request(struct wire_message *message, const struct id *id, uint8_t argument)
{
    static const struct id none = {""};
    const struct id *other = &the_host.boxes[argument / 2 % HOST_BOXES].id;

    switch ((int) message->number) {
    case WIRE_MESSAGE_HELLO:
        message->hello = (struct wire_hello){argument % 4, 1 + argument % 3, "fuzz"};
        break;
    case WIRE_MESSAGE_LIST:
        message->list.after = argument & 1 ? *id : none;
        break;
    case WIRE_MESSAGE_ADOPT:
        message->adopt = (struct wire_adopt){.id = *id, .pid = argument % 8};
        break;
    case WIRE_MESSAGE_SOCKETS:
        message->sockets = (struct wire_sockets){
            *id, argument & 1 ? WIRE_SOCKET_IPV4 : WIRE_SOCKET_IPV6, 1 + argument % 32};
        break;
    case WIRE_MESSAGE_KILL:
        message->kill =
            (struct wire_kill){*id, argument & 1 ? WIRE_KILL_EVERYTHING : WIRE_KILL_PROCESSES};
        break;
    case WIRE_MESSAGE_LIMITS:
        message->limits = (struct wire_set_limits){*id, make_limits(argument)};
        break;
    case WIRE_MESSAGE_OPEN_MOUNT:
        message->open_mount = (struct wire_open_mount){.id = *id, .place = "/mnt"};
        if (argument & 1)
            message->open_mount.place[4] = (char) ('a' + argument % 8);
        break;
    case WIRE_MESSAGE_ATTACH_MOUNT:
    case WIRE_MESSAGE_DETACH_MOUNT:
        message->attach_mount = (struct wire_mount){*id, 1 + argument % 4};
        break;
    case WIRE_MESSAGE_SNAPSHOT:
        message->snapshot = (struct wire_snapshot){*id, *other, argument & 1};
        break;
    case WIRE_MESSAGE_ROLL_BACK:
        message->roll_back = (struct wire_roll_back){*id, *other, 0};
        break;
    case WIRE_MESSAGE_LIST_SNAPSHOTS:
        message->list_snapshots.after = argument & 1 ? *id : none;
        break;
    case WIRE_MESSAGE_DISK_USAGE:
        message->disk_usage.disk =
            (struct disk_ref){argument & 1 ? DISK_OF_SNAPSHOT : DISK_OF_SANDBOX, *id};
        break;
    case WIRE_MESSAGE_SYNC:
        message->sync.contents = argument & 1;
        break;
    case WIRE_MESSAGE_KEEPER_JOB:
        fill_job(&message->keeper_job, id, argument);
        break;
    default:
        message->freeze.id = *id; /* freeze, thaw, stats: the id comes first */
        break;
    }
}

static void say(struct fuzz *fuzz, struct wire_message *message, const int *fds, size_t count,
                bool promises)
{
    struct wire_packet packet;

    message->request = ++fuzz->last_request;
    if (wire_message_encode(message, VERSION, &packet, NULL) == 0)
        send_packet(fuzz, packet.bytes, packet.length, fds, count, promises);
}

static void say_message(struct fuzz *fuzz, struct input *input)
{
    struct wire_message message = {.number = WIRE_MESSAGE_HELLO + take(input) % WIRE_MESSAGE_SYNC};
    const struct host_box *box = take_box(input);
    uint8_t argument = take(input);
    AUTO(close) int file = eventfd(0, EFD_CLOEXEC);
    int fds[] = {file, file, file};

    fill_request(&message, &box->id, argument);
    say(fuzz, &message, fds, wire_message_row(message.number)->fds, false);
}

/* A descriptor that should be a sealed plan, and often is. */
static int make_plan_file(const struct wire_plan *plan, uint8_t argument)
{
    struct wire_plan_bytes bytes;
    int fd = -EBADF;

    switch (argument >> 5) {
    case 6: /* not sealed */
        if (wire_plan_encode(plan, &bytes, NULL) < 0)
            return eventfd(0, EFD_CLOEXEC);
        fd = memfd_create("plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        must(write(fd, bytes.bytes, bytes.length) == (ssize_t) bytes.length);
        return fd;
    case 7:
        return eventfd(0, EFD_CLOEXEC);
    default:
        return wire_plan_seal(plan, &fd, NULL) < 0 ? eventfd(0, EFD_CLOEXEC) : fd;
    }
}

static void say_plan(struct fuzz *fuzz, struct input *input)
{
    uint8_t kind = take(input);
    const struct host_box *box = take_box(input);
    uint8_t flags = take(input), argument = take(input);
    struct wire_message message = {.number = kind & 1 ? WIRE_MESSAGE_ASSIGN : WIRE_MESSAGE_CREATE};
    struct wire_plan plan = {
        .id = box->id,
        .hostname = "box",
        .image = "host",
        .flags = flags & 3,
        .network = flags & 4 ? NETWORK_NAT : NETWORK_NONE,
        .owner = argument & 64 ? the_host.boxes[0].id : (struct id){""},
        .limits = make_limits(argument & 31 ? (argument & 31) << 3 : 0),
    };
    AUTO(close) int fd = -EBADF;

    if (flags & 8)
        plan.binds = (struct wire_bind_list){.count = 1,
                                             .items = {{.source = "folder", .place = "/folder"}}};
    if (flags & 4 && flags & 16)
        plan.rules = (struct wire_rule_list){.count = 1, .items = {{.ports = {0, UINT16_MAX}}}};
    if (flags & 32)
        plan.origin = (struct disk_ref){flags & 64 ? DISK_OF_SNAPSHOT : DISK_OF_SANDBOX,
                                        the_host.boxes[(argument & 31) % HOST_BOXES].id};
    fd = make_plan_file(&plan, argument);
    say(fuzz, &message, &fd, 1, kind & 1 || !(flags & 1));
}

static void say_bytes(struct fuzz *fuzz, struct input *input)
{
    size_t count = take(input) % (RAW_FDS_MAX + 1);
    size_t length = take(input);
    AUTO(close) int file = eventfd(0, EFD_CLOEXEC);
    int fds[RAW_FDS_MAX];

    length |= (size_t) take(input) << 8;
    length = length < input->size ? length : input->size;
    for (size_t i = 0; i < count; i++)
        fds[i] = file;
    send_packet(fuzz, input->data, length, fds, count, true);
    input->data += length;
    input->size -= length;
}

/* --- the launcher's end ---------------------------------------------------------------------- */

struct stopper {
    struct event_timer timer;
    struct event_loop *loop;
};

static void stop(struct event_timer *timer)
{
    event_loop_stop(CONTAINER_OF(timer, struct stopper, timer)->loop);
}

/* Several times: one event, whatever is due, and back. */
static void turn(struct fuzz *fuzz)
{
    for (int i = 0; i < STEPS_PER_ACTION; i++) {
        struct stopper stopper = {.timer.fire = stop, .loop = &fuzz->loop};

        event_timer_set(&fuzz->loop, &stopper.timer, 0);
        must(event_loop_run(&fuzz->loop) == 0);
    }
    drink(fuzz);
    for (size_t i = 0; i < HOST_BOXES; i++)
        must(!the_host.boxes[i].is_promised || the_host.boxes[i].has_disk);
}

static void conversation_ended(void *context)
{
    struct fuzz *fuzz = context;

    fuzz->daemon = fd_close(fuzz->daemon);
}

static void hello(struct fuzz *fuzz)
{
    struct wire_message message = {.number = WIRE_MESSAGE_HELLO,
                                   .hello = {VERSION, VERSION, "fuzz"}};
    struct wire_message subscribe = {.number = WIRE_MESSAGE_SUBSCRIBE_EXIT};

    say(fuzz, &message, NULL, 0, false);
    turn(fuzz);
    say(fuzz, &subscribe, NULL, 0, false);
    turn(fuzz);
}

static void open_conversation(struct fuzz *fuzz, bool greet)
{
    int ends[2];

    must(sys_socket_pair(SOCK_SEQPACKET, ends) == 0);
    must(sys_file_set_nonblocking(ends[1], true) == 0);
    fuzz->daemon = ends[1];
    fuzz->last_request = fuzz->open_count = 0;
    memset(fuzz->deadly, 0, sizeof(fuzz->deadly));
    must(service_open(&fuzz->service, ends[0], NULL) == 0);
    if (greet)
        hello(fuzz);
}

static void close_conversation(struct fuzz *fuzz)
{
    /* The launcher sees what was sent, then the end. */
    turn(fuzz);
    (void) shutdown(fuzz->daemon, SHUT_WR);
    for (int i = 0; i < SETTLE_TURNS && fuzz->daemon >= 0; i++)
        turn(fuzz);
    must(fuzz->daemon < 0 && !fuzz->service.is_open);
}

static void is_empty(void *context)
{
    (void) context;
}

static void open_launcher(struct fuzz *fuzz)
{
    host_init();
    clock_manual_init(&fuzz->clock, 0);
    must(event_loop_init(&fuzz->loop, &fuzz->clock.clock) == 0);
    fuzz->residents = (struct residents){.loop = &fuzz->loop,
                                         .site = &fuzz->site,
                                         .instance = &fuzz->instance,
                                         .hooks = service_hooks(&fuzz->service, is_empty),
                                         .run = "run",
                                         .name = "fuzz"};
    must(residents_init(&fuzz->residents, NULL) == 0);
    must(service_init(&fuzz->service, &fuzz->loop, &fuzz->residents, NULL, conversation_ended, fuzz,
                      NULL) == 0);
    must(residents_adopt(&fuzz->residents, NULL) == 0);
}

/* Nothing fails any more and nothing takes long: whatever is under way comes to its end. */
static void settle(struct fuzz *fuzz)
{
    for (int i = 0; i < SETTLE_TURNS; i++) {
        the_host.fail_next = 0;
        for (size_t j = 0; j < HOST_BOXES; j++) {
            struct host_box *box = &the_host.boxes[j];

            if (box->is_killed)
                host_die(box, &box->exit);
            host_become_ready(box);
        }
        turn(fuzz);
        while (host_carry())
            ;
        while (host_work())
            ;
        host_end_keepers(0);
        clock_manual_advance(&fuzz->clock, SETTLE_STEP_MS);
    }
    if (fuzz->service.is_open)
        must(fuzz->service.conversation.requests.count == 0);
    for (size_t i = 0; i < HOST_BOXES; i++)
        must(!the_host.boxes[i].is_doomed || !the_host.boxes[i].has_disk);
}

static void close_launcher(struct fuzz *fuzz)
{
    settle(fuzz);
    if (fuzz->daemon >= 0)
        close_conversation(fuzz);
    for (size_t i = 0; i < HOST_BOXES; i++)
        the_host.boxes[i].is_promised = false;
    residents_kill_all(&fuzz->residents);
    settle(fuzz);
    must(fuzz->residents.count == 0 && list_is_empty(&the_host.copies));
    for (size_t i = 0; i < HOST_BOXES; i++) {
        const struct host_box *box = &the_host.boxes[i];

        must(!box->is_alive && !box->has_groups && !box->has_range && !box->has_socket);
        must(!box->has_network && !box->has_record && box->process < 0 && box->status_end < 0);
    }
    service_done(&fuzz->service);
    residents_done(&fuzz->residents);
    event_loop_done(&fuzz->loop);
}

/* --- actions --------------------------------------------------------------------------------- */

static void act(struct fuzz *fuzz, struct input *input)
{
    struct host_box *box;
    uint8_t argument;

    switch ((enum action)(take(input) % ACTION_COUNT)) {
    case ACTION_MESSAGE:
        say_message(fuzz, input);
        break;
    case ACTION_PLAN:
        say_plan(fuzz, input);
        break;
    case ACTION_RAW:
        say_bytes(fuzz, input);
        break;
    case ACTION_READY:
        host_become_ready(take_box(input));
        break;
    case ACTION_FAIL:
        host_fail_start(take_box(input));
        break;
    case ACTION_DIE:
        box = take_box(input);
        argument = take(input);
        host_die(box, &(struct sys_exit){.kind = argument & 1 ? SYS_EXIT_STATUS : SYS_EXIT_SIGNAL,
                                         .value = argument / 2 % 64 + !(argument & 1)});
        break;
    case ACTION_WORK:
        (void) host_work();
        break;
    case ACTION_KEEPERS:
        host_end_keepers(take(input) % 2);
        break;
    case ACTION_TIME:
        clock_manual_advance(&fuzz->clock, (uint64_t) take(input) * 16);
        break;
    case ACTION_FAULT:
        the_host.fail_next = take(input) % 16;
        break;
    case ACTION_STOPPING:
        service_stopping(&fuzz->service, "the fuzzer says so");
        break;
    case ACTION_NEXT_DAEMON:
        close_conversation(fuzz);
        break;
    case ACTION_CARRY:
        (void) host_carry();
        break;
    case ACTION_COUNT:
        break;
    }
    turn(fuzz);
    if (fuzz->daemon < 0)
        open_conversation(fuzz, true);
}

static int count_descriptors(void)
{
    int count = 0;

    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    struct fuzz fuzz = {.daemon = -EBADF};
    int before = count_descriptors();
    uint8_t how;

    open_launcher(&fuzz);
    /* Whether the first conversation begins as it should is the input's business. */
    how = take(&input);
    the_host.is_plain = how & 2;
    open_conversation(&fuzz, how & 1);
    for (int i = 0; i < ACTIONS_MAX && input.size; i++)
        act(&fuzz, &input);
    close_launcher(&fuzz);
    must(count_descriptors() == before);
    return 0;
}
