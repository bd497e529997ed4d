/* For tests of the provider `local`: what the played launcher of launcher_testing.h remembers, and
 * how it answers. Included by that only. */
#pragma once

#include <poll.h>
#include <signal.h>

#include "provider/provider_testing.h"
#include "wire/wire_conversation.h"
#include "wire/wire_plan.h"

#define PLAYED_MAX           1500
#define PLAYED_SNAPSHOTS_MAX 200

struct played_sandbox {
    struct wire_entry entry;
    struct wire_plan made, plan; /* the first one, and the last */
    bool told;                   /* its exit was sent */
};

struct played_launcher {
    struct loop *loop;
    struct wire_conversation conversation;
    uv_poll_t poll;
    bool over, closed;
    struct played_sandbox *sandboxes; /* owned; sorted by id */
    size_t count;
    uint32_t features, enforced;

    enum err_code fail[WIRE_NUMBER_END]; /* the next request of that number */
    int fails[WIRE_NUMBER_END];          /* so many times; 0: once */
    bool hold[WIRE_NUMBER_END];          /* not answered */
    enum wire_number die_on;             /* closes instead of an answer */
    bool refuse_version;
    bool exits_late;            /* the exit of a kill follows its answer */
    int asked[WIRE_NUMBER_END]; /* how often */
    int settles_at;             /* the list at which what is being stopped is; 0: never */
    struct limits limits;       /* of the last request to change them */
    struct wire_message last_kill;
    struct wire_keeper_job last_job;
    struct id snapshots[PLAYED_SNAPSHOTS_MAX]; /* sorted */
    size_t snapshot_count;
    struct wire_snapshot last_snapshot;
    struct wire_roll_back last_roll_back;
    struct wire_open_mount last_mount;
    uint32_t mounts;    /* given out */
    uint8_t job_status; /* what keepers end with */
    char sockets_folder[64];
};

static inline void play_end(struct played_launcher *launcher)
{
    if (launcher->over)
        return;
    launcher->over = true;
    (void) uv_poll_stop(&launcher->poll);
    wire_conversation_end(&launcher->conversation, NULL);
}

/* --- its sandboxes --------------------------------------------------------------------------- */

static inline size_t play_place(const struct played_launcher *launcher, const struct id *id)
{
    size_t place = 0;

    while (place < launcher->count &&
           strcmp(launcher->sandboxes[place].entry.id.text, id->text) < 0)
        place++;
    return place;
}

static inline struct played_sandbox *play_find(const struct played_launcher *launcher,
                                               const struct id *id)
{
    size_t place = play_place(launcher, id);

    if (place < launcher->count && strcmp(launcher->sandboxes[place].entry.id.text, id->text) == 0)
        return &launcher->sandboxes[place];
    return NULL;
}

static inline struct played_sandbox *play_add(struct played_launcher *launcher, const struct id *id,
                                              enum run_state state)
{
    size_t place = play_place(launcher, id);
    struct played_sandbox *sandbox = &launcher->sandboxes[place];
    bool alive = state != RUN_STATE_STOPPED && state != RUN_STATE_BROKEN;

    assert_true(launcher->count < PLAYED_MAX);
    memmove(sandbox + 1, sandbox, (launcher->count - place) * sizeof(*sandbox));
    launcher->count++;
    *sandbox = (struct played_sandbox){
        .entry = {.id = *id, .state = state, .pid = alive ? 1000 : 0, .start_time = alive ? 5 : 0}};
    return sandbox;
}

static inline void play_remove(struct played_launcher *launcher, struct played_sandbox *sandbox)
{
    size_t place = (size_t) (sandbox - launcher->sandboxes);

    launcher->count--;
    memmove(sandbox, sandbox + 1, (launcher->count - place) * sizeof(*sandbox));
}

static inline size_t play_count(const struct played_launcher *launcher, enum run_state state)
{
    size_t count = 0;

    for (size_t i = 0; i < launcher->count; i++)
        count += launcher->sandboxes[i].entry.state == state;
    return count;
}

/* The first one in that state. */
static inline struct id play_first(const struct played_launcher *launcher, enum run_state state)
{
    for (size_t i = 0; i < launcher->count; i++) {
        if (launcher->sandboxes[i].entry.state == state)
            return launcher->sandboxes[i].entry.id;
    }
    fail_msg("no sandbox is in state %d", state);
    return id_new();
}

static inline void play_watch(struct played_launcher *launcher);

static inline void play_tell_exit(struct played_launcher *launcher, const struct id *id,
                                  enum ending_kind kind, uint8_t value)
{
    struct wire_message event = {.number = WIRE_MESSAGE_EXITED,
                                 .exited = {.id = *id, .ending = {.kind = kind, .value = value}}};
    struct error err = ERROR_INIT;

    if (wire_conversation_tell(&launcher->conversation, &event, &err) < 0)
        assert_int_equal(err.code, ERR_GONE);
    play_watch(launcher);
}

/* A sandbox's PID 1 is killed. */
static inline void play_exit(struct played_launcher *launcher, const struct id *id)
{
    struct played_sandbox *sandbox = play_find(launcher, id);

    assert_non_null(sandbox);
    sandbox->entry.state = RUN_STATE_STOPPED;
    sandbox->entry.pid = 0;
    sandbox->entry.start_time = 0;
    play_tell_exit(launcher, id, ENDED_SIGNAL, SIGKILL);
}

/* --- its answers ----------------------------------------------------------------------------- */

/* A provider that is gone is no fault of the launcher. */
static inline void play_sent(struct played_launcher *launcher, int result, const struct error *err)
{
    if (result < 0 && err->code != ERR_GONE)
        fail_msg("the played launcher cannot answer: %s", err->message);
    play_watch(launcher);
}

static inline void play_answer(struct played_launcher *launcher, uint64_t request,
                               struct wire_message *reply, const int *fds, size_t count)
{
    struct error err = ERROR_INIT;

    play_sent(launcher,
              wire_conversation_answer(&launcher->conversation, request, reply, fds, count, &err),
              &err);
}

static inline void play_done(struct played_launcher *launcher, uint64_t request, enum err_code code)
{
    struct error failure = ERROR_INIT, err = ERROR_INIT;

    if (code != ERR_NONE)
        (void) error_set(&failure, code, 0, "played");
    play_sent(launcher,
              wire_conversation_answer_done(&launcher->conversation, request,
                                            code != ERR_NONE ? &failure : NULL, &err),
              &err);
}

static inline void play_sandbox(struct played_launcher *launcher, uint64_t request,
                                const struct played_sandbox *sandbox)
{
    struct wire_message reply = {
        .number = WIRE_MESSAGE_SANDBOX,
        .sandbox = {.entry = sandbox->entry, .uid_first = 100000, .uid_count = 65536}};
    const struct limits *limits = &sandbox->plan.limits;

    if (limits->memory_bytes && !(launcher->enforced & LIMIT_BIT(MEMORY)))
        reply.sandbox.unenforced |= LIMIT_BIT(MEMORY);
    if (limits->pids && !(launcher->enforced & LIMIT_BIT(PIDS)))
        reply.sandbox.unenforced |= LIMIT_BIT(PIDS);
    play_answer(launcher, request, &reply, NULL, 0);
}

static inline void play_list(struct played_launcher *launcher, const struct wire_message *message)
{
    struct wire_message reply = {.number = WIRE_MESSAGE_LISTED};
    struct wire_entry_list *entries = &reply.listed.entries;

    for (size_t i = 0; i < launcher->count; i++) {
        if (launcher->settles_at && launcher->asked[WIRE_MESSAGE_LIST] >= launcher->settles_at &&
            launcher->sandboxes[i].entry.state == RUN_STATE_STOPPING)
            launcher->sandboxes[i].entry.state = RUN_STATE_STOPPED;
        if (strcmp(launcher->sandboxes[i].entry.id.text, message->list.after.text) <= 0)
            continue;
        if (entries->count == WIRE_LIST_PAGE) {
            reply.listed.more = true;
            break;
        }
        entries->items[entries->count++] = launcher->sandboxes[i].entry;
    }
    play_answer(launcher, message->request, &reply, NULL, 0);
}
