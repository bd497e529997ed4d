#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "harness/drivers_internal.h"
#include "harness/opencode_server.h"

#define QUIESCE_MS 15000

/* --- kinds ------------------------------------------------------------------------------------- */

typedef struct harness_turn *turn_beginner(struct drivers *drivers,
                                           const struct harness_prompt *prompt, bool is_find,
                                           const struct harness_listener *listener, void *context);

static const struct driver_kind {
    const char *name;
    bool is_server; /* started once, and asked; the others are one program a turn */
    turn_beginner *begin;
} kinds[] = {
    {"opencode", true, opencode_turn_begin},
    {"claude", false, command_turn_begin},
    {"codex", false, command_turn_begin},
    {"command", false, command_turn_begin},
};

static const struct driver_kind *driver_kind_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        if (name && strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    }
    return NULL;
}

/* --- answers that come later ------------------------------------------------------------------- */

struct later_answer {
    struct loop_task task;
    struct roll *roll;
    struct error failure;
    bool has_failed;
    harness_done *done;
    harness_ready_done *ready; /* of those who wait for a server that needs no start */
    void *context;
};

static void later_answer_run(struct loop_task *task)
{
    struct later_answer *answer = CONTAINER_OF(task, struct later_answer, task);
    const struct error *failure = answer->has_failed ? &answer->failure : NULL;
    const struct harness_status status = {
        .state = failure ? HARNESS_FAILED : HARNESS_READY, .version = "", .last_words = ""};
    struct roll *roll = answer->roll;

    if (answer->done)
        answer->done(answer->context, failure);
    else
        answer->ready(answer->context, failure, &status);
    free(answer);
    roll_leave(roll);
}

static struct later_answer *later_answer_new(struct drivers *drivers, const struct error *failure,
                                             void *context)
{
    struct later_answer *answer = mem_alloc(sizeof(*answer));

    *answer = (struct later_answer){
        .roll = &drivers->roll, .has_failed = failure != NULL, .context = context};
    if (failure)
        answer->failure = *failure;
    loop_task_init(&answer->task, later_answer_run);
    roll_enter(&drivers->roll);
    loop_defer(drivers->options.loop, &answer->task);
    return answer;
}

void drivers_answer_later(struct drivers *drivers, harness_done *done, void *context,
                          const struct error *failure)
{
    later_answer_new(drivers, failure, context)->done = done;
}

/* --- asking the sandbox's agent ---------------------------------------------------------------- */

struct query *drivers_ask_agent(struct drivers *drivers, const struct id *sandbox,
                                const struct query_request *request, query_done *done,
                                void *context)
{
    struct query *query = query_new(drivers->options.loop, &drivers->roll, request, done, context);
    struct error err = ERROR_INIT;
    struct http_origin *origin =
        drivers->options.reach.agent(drivers->options.reach.self, sandbox, &err);

    if (origin)
        query_send(query, origin);
    else
        query_refuse(query, &err);
    return query;
}

/* --- ensure ------------------------------------------------------------------------------------ */

struct ensure {
    struct server_waiter waiter;
    struct drivers *drivers;
    struct id sandbox;
    harness_ready_done *done;
    void *context;
};

static void ensure_ready(struct server_waiter *waiter, const struct error *failure)
{
    struct ensure *ensure = CONTAINER_OF(waiter, struct ensure, waiter);
    const struct opencode_server *server = opencode_server_find(ensure->drivers, &ensure->sandbox);
    struct harness_status status = {.state = HARNESS_ABSENT, .version = "", .last_words = ""};

    if (server)
        opencode_server_look(server, &status);
    ensure->done(ensure->context, failure, &status);
    free(ensure);
}

static void ensure_opencode(struct drivers *drivers, const struct harness_place *place,
                            harness_ready_done *done, void *context)
{
    struct opencode_server *server = opencode_server_find(drivers, &place->sandbox);
    struct ensure *ensure;
    struct error err;

    if (!server)
        server = opencode_server_new(drivers, &place->sandbox);
    if (opencode_server_place(server, place, &err) < 0) {
        later_answer_new(drivers, &err, context)->ready = done;
        return;
    }
    ensure = mem_alloc(sizeof(*ensure));
    *ensure = (struct ensure){.waiter.ready = ensure_ready,
                              .drivers = drivers,
                              .sandbox = place->sandbox,
                              .done = done,
                              .context = context};
    opencode_server_want(server, &ensure->waiter);
}

static void drivers_ensure(void *self, const struct harness_place *place, harness_ready_done *done,
                           void *context)
{
    struct drivers *drivers = self;
    const struct driver_kind *kind = driver_kind_find(place->kind);
    struct error err;

    if (kind && kind->is_server) {
        ensure_opencode(drivers, place, done, context);
        return;
    }
    (void) error_set(&err, ERR_INVALID, 0, "there is no kind of agent called '%.64s'",
                     place->kind ? place->kind : "");
    later_answer_new(drivers, kind ? NULL : &err, context)->ready = done;
}

static void drivers_look(void *self, const struct id *sandbox, const char *name,
                         struct harness_status *ret_status)
{
    const struct driver_kind *kind = driver_kind_find(name);
    const struct opencode_server *server = opencode_server_find(self, sandbox);

    *ret_status = (struct harness_status){
        .state = kind && !kind->is_server ? HARNESS_READY : HARNESS_ABSENT,
        .version = "",
        .last_words = "",
    };
    if (server && kind && kind->is_server)
        opencode_server_look(server, ret_status);
}

/* --- turns ------------------------------------------------------------------------------------- */

/* What nobody knows is a shell command, which says so when it has none. */
static struct harness_turn *drivers_begin(struct drivers *drivers,
                                          const struct harness_prompt *prompt, bool is_find,
                                          const struct harness_listener *listener, void *context)
{
    const struct driver_kind *kind = driver_kind_find(prompt->place.kind);

    return (kind ? kind->begin : command_turn_begin)(drivers, prompt, is_find, listener, context);
}

static struct harness_turn *drivers_prompt(void *self, const struct harness_prompt *prompt,
                                           const struct harness_listener *listener, void *context)
{
    return drivers_begin(self, prompt, false, listener, context);
}

static struct harness_turn *drivers_find(void *self, const struct harness_prompt *prompt,
                                         const struct harness_listener *listener, void *context)
{
    return drivers_begin(self, prompt, true, listener, context);
}

static void drivers_cancel(void *self, struct harness_turn *turn)
{
    (void) self;
    turn->driver->cancel(turn);
}

static void drivers_leave(void *self, struct harness_turn *turn)
{
    (void) self;
    turn->driver->leave(turn);
}

static void drivers_answer_permission(void *self, struct harness_turn *turn, const char *request,
                                      const char *reply, const char *message, harness_done *done,
                                      void *context)
{
    (void) self;
    turn->driver->answer(turn, false, request, reply, message, done, context);
}

static void drivers_answer_question(void *self, struct harness_turn *turn, const char *request,
                                    const char *answers, harness_done *done, void *context)
{
    (void) self;
    turn->driver->answer(turn, true, request, answers, NULL, done, context);
}

/* --- the end of a sandbox ---------------------------------------------------------------------- */

static struct harness_turn *drivers_turn_in(const struct drivers *drivers, const struct id *sandbox)
{
    LIST_EACH (&drivers->turns, at) {
        struct harness_turn *turn = CONTAINER_OF(at, struct harness_turn, link);

        if (strcmp(turn->sandbox.text, sandbox->text) == 0)
            return turn;
    }
    return NULL;
}

static void drivers_forget(void *self, const struct id *sandbox)
{
    struct drivers *drivers = self;
    struct opencode_server *server = opencode_server_find(drivers, sandbox);
    struct harness_turn *turn;
    struct error stopped;

    (void) error_set(&stopped, ERR_UPSTREAM, 0, "agent_lost: the sandbox stopped");
    if (server)
        opencode_server_forget(server, &stopped);
    while ((turn = drivers_turn_in(drivers, sandbox)))
        turn->driver->lose(turn);
}

/* It is asked to end, which makes it put its log of changes into its database. What it did not, its
 * next start does. */
struct quiesce_query {
    harness_done *done;
    void *context;
};

static void quiesced(void *context, const struct error *failure, const struct query_reply *reply)
{
    struct quiesce_query *quiesce = context;

    (void) reply; /* 404: it does not run */
    quiesce->done(quiesce->context, failure);
    free(quiesce);
}

static void drivers_quiesce(void *self, const struct id *sandbox, harness_done *done, void *context)
{
    struct drivers *drivers = self;
    const struct query_request request = {
        .method = "DELETE", .target = "/api/process/" OPENCODE_PROCESS, .timeout_ms = QUIESCE_MS};
    struct opencode_server *server = opencode_server_find(drivers, sandbox);
    struct quiesce_query *quiesce;
    struct error asleep;

    if (!server) {
        drivers_answer_later(drivers, done, context, NULL);
        return;
    }
    (void) error_set(&asleep, ERR_UPSTREAM, 0, "agent_lost: the sandbox falls asleep");
    opencode_server_forget(server, &asleep);
    quiesce = mem_alloc(sizeof(*quiesce));
    *quiesce = (struct quiesce_query){.done = done, .context = context};
    (void) drivers_ask_agent(drivers, sandbox, &request, quiesced, quiesce);
}

/* --- life -------------------------------------------------------------------------------------- */

struct drivers *drivers_new(const struct drivers_options *options)
{
    struct drivers *drivers = mem_alloc(sizeof(*drivers));

    *drivers = (struct drivers){
        .options = *options,
        .harness = {.self = drivers,
                    .ensure = drivers_ensure,
                    .look = drivers_look,
                    .prompt = drivers_prompt,
                    .find = drivers_find,
                    .cancel = drivers_cancel,
                    .leave = drivers_leave,
                    .answer_permission = drivers_answer_permission,
                    .answer_question = drivers_answer_question,
                    .quiesce = drivers_quiesce,
                    .forget = drivers_forget},
    };
    if (!drivers->options.start_ms)
        drivers->options.start_ms = HARNESS_START_MS;
    list_init(&drivers->servers);
    list_init(&drivers->turns);
    return drivers;
}

const struct harness *drivers_harness(struct drivers *drivers)
{
    return &drivers->harness;
}

static void drivers_empty(struct roll *roll)
{
    struct drivers *drivers = CONTAINER_OF(roll, struct drivers, roll);
    void (*done)(void *context) = drivers->done;
    void *context = drivers->context;

    free(drivers);
    if (done)
        done(context);
}

void drivers_close(struct drivers *drivers, void (*done)(void *context), void *context)
{
    struct error closing;
    struct list *at;

    (void) error_set(&closing, ERR_UNAVAILABLE, 0, "the daemon is shutting down");
    drivers->done = done;
    drivers->context = context;
    roll_enter(&drivers->roll); /* until all are asked to go */
    drivers->roll.on_empty = drivers_empty;
    while ((at = list_first(&drivers->turns))) {
        struct harness_turn *turn = CONTAINER_OF(at, struct harness_turn, link);

        turn->driver->leave(turn);
    }
    while (!list_is_empty(&drivers->servers))
        opencode_server_forget(opencode_server_find(drivers, NULL), &closing);
    roll_leave(&drivers->roll);
}
