#include "harness/opencode_server.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "harness/inside_port.h"
#include "harness/opencode_config.h"
#include "harness/opencode_start.h"
#include "json/json_read.h"
#include "net/http/sse.h"

#define AGENT_MS        10000 /* for what the sandbox's agent is asked */
#define PROBE_MS        1000
#define PROBE_PAUSE_MS  100
#define PROBES_PER_LOOK 10 /* unanswered ones, before its process is looked at */
#define LOAD_MS         120000
#define CONNECT_MS      10000
#define KILL_MS         15000
#define STEADY_MS       60000 /* ready for so long: earlier ends are forgiven */
#define LOG_MAX         ((size_t) 12 * 1024 * 1024)
#define LAST_WORDS_MAX  ((size_t) 4096)
#define VERSION_SIZE    32
#define PROCESS_TARGET  "/api/process/" OPENCODE_PROCESS

struct opencode_server {
    struct list link;
    struct drivers *drivers;
    struct id sandbox;
    struct life life;
    struct inside_port *port;
    struct text start; /* the body that starts its process */
    uint64_t start_ms, start_due, ready_since;
    struct list waiters;   /* of server_waiter */
    struct list followers; /* of server_follower */
    struct query *question, *stream;
    struct sse_reader reader;
    struct deadline timer;
    struct loop_task tell; /* those who came when it was ready */
    uint64_t wants;
    unsigned int starts, probes;
    int exit_code; /* of its last run; -1: not known */
    char version[VERSION_SIZE];
    struct error failure;
    char *last_words; /* owned; NULL */
    bool has_begun;   /* its stream told that it is connected */
    bool was_ready, is_old, is_forgotten;
};

static void server_event(struct opencode_server *server, enum life_event event);

/* --- telling --------------------------------------------------------------------------------- */

/* The first who waits since before that number; or the first of those who only look. */
static struct server_waiter *server_next_waiter(struct opencode_server *server, uint64_t before,
                                                bool only_lookers)
{
    LIST_EACH (&server->waiters, at) {
        struct server_waiter *waiter = CONTAINER_OF(at, struct server_waiter, link);

        if (waiter->number < before && (!only_lookers || waiter->only_if_there))
            return waiter;
    }
    return NULL;
}

/* Whoever is told may do anything: forget the server, or want it again, which is another question. */
static void server_tell_waiters(struct opencode_server *server, const struct error *failure,
                                bool only_lookers)
{
    uint64_t before = server->wants;
    struct server_waiter *waiter;

    while ((waiter = server_next_waiter(server, before, only_lookers))) {
        list_remove(&waiter->link);
        waiter->ready(waiter, failure);
    }
}

static void server_tell_lost(struct opencode_server *server, const struct error *why)
{
    struct list *at;

    while ((at = list_first(&server->followers))) {
        struct server_follower *follower = CONTAINER_OF(at, struct server_follower, link);

        list_remove(at);
        follower->lost(follower, why);
    }
}

static void server_lose(struct opencode_server *server, const char *how)
{
    struct error lost;

    (void) error_set(&lost, ERR_UPSTREAM, 0, "agent_lost: the agent server %s", how);
    server_tell_lost(server, &lost);
    server_tell_waiters(server, &lost, true);
}

/* Followers alone do not want it: they are told that it is lost. */
static bool server_is_wanted(const struct opencode_server *server)
{
    return !list_is_empty(&server->waiters);
}

/* --- asking ---------------------------------------------------------------------------------- */

static void server_ask_agent(struct opencode_server *server, const char *method, const char *target,
                             const char *body, uint64_t timeout_ms, size_t reply_max,
                             query_done *done)
{
    const struct query_request request = {.method = method,
                                          .target = target,
                                          .body = body,
                                          .timeout_ms = timeout_ms,
                                          .reply_max = reply_max};

    query_cancel(server->question);
    server->question = drivers_ask_agent(server->drivers, &server->sandbox, &request, done, server);
}

static void server_ask_port(struct opencode_server *server, const char *target, uint64_t timeout_ms,
                            query_done *done)
{
    const struct query_request request = {
        .method = "GET", .target = target, .timeout_ms = timeout_ms};

    query_cancel(server->question);
    server->question = inside_port_ask(server->port, &request, done, server);
}

/* Keep the failure and say that the sandbox's agent refused. */
static void server_refused(struct opencode_server *server, const struct error *failure,
                           const struct query_reply *reply, const char *what)
{
    if (failure)
        server->failure = *failure;
    else
        (void) error_set(&server->failure, ERR_UPSTREAM, 0, "status %d: %.200s", reply->status,
                         reply->bytes);
    (void) error_wrap(&server->failure, "%s the agent server", what);
    server_event(server, LIFE_REFUSED);
}

/* --- its process ----------------------------------------------------------------------------- */

static void server_looked(void *context, const struct error *failure,
                          const struct query_reply *reply)
{
    struct opencode_server *server = context;
    struct opencode_process process;

    server->question = NULL;
    if (failure || (reply->status != 200 && reply->status != 404)) {
        server_refused(server, failure, reply, "look for");
        return;
    }
    server->exit_code = -1;
    if (reply->status == 404 || opencode_process_read(reply->bytes, reply->length, &process) < 0) {
        server_event(server, LIFE_RUNS_NOT);
        return;
    }
    server->exit_code = process.exit_code;
    if (process.is_alive)
        server_event(server, LIFE_RUNS);
    else
        server_event(server, opencode_process_is_missing(&process) ? LIFE_MISSING : LIFE_RUNS_NOT);
}

static void server_look(struct opencode_server *server)
{
    if (server->life.state == LIFE_LOOKING)
        server->start_due = loop_now(server->drivers->options.loop) + server->start_ms;
    server_ask_agent(server, "GET", PROCESS_TARGET, NULL, AGENT_MS, 0, server_looked);
}

static void server_spawned(void *context, const struct error *failure,
                           const struct query_reply *reply)
{
    struct opencode_server *server = context;

    server->question = NULL;
    /* 409: it runs, and somebody was quicker. */
    if (failure || (reply->status != 200 && reply->status != 409))
        server_refused(server, failure, reply, "start");
    else
        server_event(server, LIFE_RUNS);
}

static void server_spawn(struct opencode_server *server)
{
    server_lose(server, "is not running");
    if (!server_is_wanted(server) || !server->start.length) {
        server_event(server, LIFE_UNWANTED);
        return;
    }
    server->starts++;
    server->probes = 0;
    server->start_due = loop_now(server->drivers->options.loop) + server->start_ms;
    server_ask_agent(server, "POST", "/api/process/start", text_string(&server->start), AGENT_MS,
                     256 * 1024, server_spawned);
}

static void server_killed(void *context, const struct error *failure,
                          const struct query_reply *reply)
{
    struct opencode_server *server = context;

    (void) failure; /* it is silent, and now perhaps forever */
    (void) reply;
    server->question = NULL;
    server_event(server, LIFE_KILLED);
}

static void server_kill(struct opencode_server *server)
{
    (void) error_set(&server->failure, ERR_UPSTREAM_TIMEOUT, 0,
                     "the agent server was not ready after %llu s",
                     (unsigned long long) (server->start_ms / 1000));
    server_lose(server, "does not answer any more");
    server_ask_agent(server, "DELETE", PROCESS_TARGET, NULL, KILL_MS, 0, server_killed);
}

static void server_got_log(void *context, const struct error *failure,
                           const struct query_reply *reply)
{
    struct opencode_server *server = context;

    server->question = NULL;
    free(server->last_words);
    server->last_words = NULL;
    if (!failure && reply->status == 200)
        server->last_words = opencode_log_end(reply->bytes, reply->length, LAST_WORDS_MAX);
    server_event(server, LIFE_LOGGED);
}

static void server_read_log(struct opencode_server *server)
{
    server_ask_agent(server, "GET", PROCESS_TARGET "/logs", NULL, AGENT_MS, LOG_MAX,
                     server_got_log);
}

/* --- probes ---------------------------------------------------------------------------------- */

static void server_probed(void *context, const struct error *failure,
                          const struct query_reply *reply)
{
    struct opencode_server *server = context;

    server->question = NULL;
    if (failure) {
        server_event(server, LIFE_UNWELL);
        return;
    }
    /* 1.0 has no such path, and says so with one status or another. */
    server->is_old = reply->status != 200;
    opencode_health_version(reply->bytes, reply->length, server->version, sizeof(server->version));
    server_event(server, LIFE_HEALTHY);
}

static void server_probe(struct opencode_server *server)
{
    server_ask_port(server, "/global/health", PROBE_MS, server_probed);
}

static void server_loaded(void *context, const struct error *failure,
                          const struct query_reply *reply)
{
    struct opencode_server *server = context;

    server->question = NULL;
    (void) reply; /* whatever it says, it has tried */
    if (failure && failure->code == ERR_UPSTREAM_TIMEOUT)
        server_event(server, LIFE_LATE);
    else
        server_event(server, failure ? LIFE_UNWELL : LIFE_LOADED);
}

static void server_load(struct opencode_server *server)
{
    server_ask_port(server, "/path", LOAD_MS, server_loaded);
}

static void server_probe_later(struct opencode_server *server)
{
    if (loop_now(server->drivers->options.loop) >= server->start_due)
        server_event(server, LIFE_LATE);
    else if (++server->probes % PROBES_PER_LOOK == 0)
        server_look(server);
    else
        deadline_set(&server->timer, PROBE_PAUSE_MS);
}

/* --- its events ------------------------------------------------------------------------------ */

static void server_got_event(struct sse_reader *reader, const struct sse_event *raw)
{
    struct opencode_server *server = CONTAINER_OF(reader, struct opencode_server, reader);
    AUTO(opencode_event) struct opencode_event event = {.kind = OPENCODE_OTHER};

    if (opencode_event_read(raw->data, raw->length, &event, NULL) < 0)
        return;
    if (!server->has_begun) {
        server->has_begun = true;
        server_event(server, LIFE_CONNECTED);
    }
    if (event.kind == OPENCODE_OTHER || event.kind == OPENCODE_CONNECTED)
        return;
    LIST_EACH (&server->followers, at) {
        struct server_follower *follower = CONTAINER_OF(at, struct server_follower, link);

        follower->event(follower, &event);
        if (server->is_forgotten)
            return; /* and with it the list */
    }
}

static void server_broke_off(struct opencode_server *server)
{
    query_cancel(TAKE_PTR(server->stream));
    deadline_clear(&server->timer);
    server_event(server, LIFE_BROKE_OFF);
}

static void server_got_bytes(void *context, const char *bytes, size_t length)
{
    struct opencode_server *server = context;

    if (sse_reader_feed(&server->reader, bytes, length) < 0 && server->stream)
        server_broke_off(server); /* an event without an end */
}

static void server_stream_over(void *context, const struct error *failure,
                               const struct query_reply *reply)
{
    struct opencode_server *server = context;

    (void) failure;
    (void) reply;
    server->stream = NULL;
    server_broke_off(server);
}

static void server_watch(struct opencode_server *server)
{
    const struct query_request request = {.method = "GET",
                                          .target = "/event",
                                          .timeout_ms = CONNECT_MS,
                                          .on_bytes = server_got_bytes};

    sse_reader_done(&server->reader);
    sse_reader_init(&server->reader, server_got_event);
    server->has_begun = false;
    query_cancel(server->stream);
    server->stream = inside_port_ask(server->port, &request, server_stream_over, server);
    deadline_set(&server->timer, CONNECT_MS);
}

/* --- states ---------------------------------------------------------------------------------- */

static void server_tell_ready(struct opencode_server *server)
{
    bool is_again = server->was_ready;

    deadline_clear(&server->timer);
    if (!server->ready_since)
        server->ready_since = loop_now(server->drivers->options.loop);
    server->was_ready = true;
    if (is_again && server->has_begun) {
        LIST_EACH (&server->followers, at) {
            struct server_follower *follower = CONTAINER_OF(at, struct server_follower, link);

            follower->resumed(follower);
            if (server->is_forgotten)
                return;
        }
    }
    server_tell_waiters(server, NULL, false);
}

static void server_tell_now(struct loop_task *task)
{
    struct opencode_server *server = CONTAINER_OF(task, struct opencode_server, tell);

    if (server->life.state == LIFE_READY)
        server_tell_waiters(server, NULL, false);
}

static void server_tell_later(struct opencode_server *server)
{
    loop_defer(server->drivers->options.loop, &server->tell);
}

static void server_forgive(struct opencode_server *server)
{
    uint64_t now = loop_now(server->drivers->options.loop);

    if (server->ready_since && now - server->ready_since >= STEADY_MS)
        life_forgive(&server->life);
    server->ready_since = 0;
}

static void server_look_later(struct opencode_server *server)
{
    server->start_due = loop_now(server->drivers->options.loop) + server->start_ms;
    deadline_set(&server->timer, life_look_ms(&server->life));
}

static void server_rest(struct opencode_server *server)
{
    LOG_WARNING(server->drivers->options.log, "an agent server ended, and rests before its restart",
                log_text("sandbox", server->sandbox.text), log_number("exit", server->exit_code),
                log_number("restart", server->life.restarts));
    server->was_ready = false;
    server_lose(server, "ended");
    deadline_set(&server->timer, life_rest_ms(&server->life));
}

static void server_say_why(struct opencode_server *server)
{
    const char *words = server->last_words ? server->last_words : "";
    const char *line = opencode_last_line(words);

    if (server->failure.code != ERR_NONE)
        (void) 0; /* known already */
    else if (server->exit_code == 127)
        (void) error_set(&server->failure, ERR_UPSTREAM, 0,
                         "this sandbox has no program 'opencode'; make it of the agent image");
    else
        (void) error_set(&server->failure, ERR_UPSTREAM, 0,
                         "the agent server ends again and again, with exit code %d: %.250s",
                         server->exit_code, *line ? line : "it wrote nothing to stderr");
}

static void server_tell_failed(struct opencode_server *server)
{
    server_say_why(server);
    server->was_ready = false;
    LOG_WARNING(server->drivers->options.log, "an agent server failed",
                log_text("sandbox", server->sandbox.text),
                log_text("reason", server->failure.message),
                log_text("stderr", server->last_words));
    server_lose(server, "failed");
    server_tell_waiters(server, &server->failure, false);
}

static void (*const actions[])(struct opencode_server *server) = {
    [LIFE_LOOK] = server_look,
    [LIFE_SPAWN] = server_spawn,
    [LIFE_PROBE] = server_probe,
    [LIFE_PROBE_LATER] = server_probe_later,
    [LIFE_LOAD] = server_load,
    [LIFE_WATCH] = server_watch,
    [LIFE_TELL_READY] = server_tell_ready,
    [LIFE_TELL_LATER] = server_tell_later,
    [LIFE_LOOK_LATER] = server_look_later,
    [LIFE_REST] = server_rest,
    [LIFE_KILL] = server_kill,
    [LIFE_READ_LOG] = server_read_log,
    [LIFE_TELL_FAILED] = server_tell_failed,
};

static void server_event(struct opencode_server *server, enum life_event event)
{
    enum life_action action;

    if (server->is_forgotten)
        return;
    if (server->life.state == LIFE_READY && event == LIFE_BROKE_OFF)
        server_forgive(server);
    action = life_next(&server->life, event);
    TRACE("harness.server.step");
    if (action != LIFE_NOTHING)
        actions[action](server);
}

static void server_timer(struct deadline *deadline)
{
    struct opencode_server *server = CONTAINER_OF(deadline, struct opencode_server, timer);

    if (server->life.state == LIFE_WATCHING)
        server_broke_off(server); /* its head came, but no event */
    else if (server->life.state == LIFE_RESTING && !server_is_wanted(server))
        server_event(server, LIFE_UNWANTED);
    else
        server_event(server, LIFE_TIMER);
}

/* --- for others ------------------------------------------------------------------------------ */

struct opencode_server *opencode_server_new(struct drivers *drivers, const struct id *sandbox)
{
    struct opencode_server *server = mem_alloc(sizeof(*server));

    *server = (struct opencode_server){
        .drivers = drivers,
        .sandbox = *sandbox,
        .start = TEXT_INIT(OPENCODE_START_MAX),
        .start_ms = drivers->options.start_ms,
        .exit_code = -1,
    };
    server->port = inside_port_new(drivers->options.loop, &drivers->roll, &drivers->options.reach,
                                   sandbox, OPENCODE_PORT);
    list_init(&server->waiters);
    list_init(&server->followers);
    sse_reader_init(&server->reader, server_got_event);
    deadline_init(drivers->options.loop, &server->timer, server_timer);
    loop_task_init(&server->tell, server_tell_now);
    list_append(&drivers->servers, &server->link);
    roll_enter(&drivers->roll);
    return server;
}

/* Whether something of it runs that was started with its present place. */
static bool server_is_under_way(const struct opencode_server *server)
{
    return server->life.state != LIFE_ABSENT && server->life.state != LIFE_FAILED;
}

int opencode_server_place(struct opencode_server *server, const struct harness_place *place,
                          struct error *err)
{
    AUTO(text) struct text start = TEXT_INIT(OPENCODE_START_MAX);

    if (opencode_start_write(place, &start, err) < 0)
        return -1;
    if (server->start.length && server_is_under_way(server))
        return 0;
    text_clear(&server->start);
    text_append_bytes(&server->start, text_string(&start), start.length);
    if (place->start_ms)
        server->start_ms = place->start_ms;
    return 0;
}

void opencode_server_want(struct opencode_server *server, struct server_waiter *waiter)
{
    waiter->number = server->wants++;
    list_append(&server->waiters, &waiter->link);
    if (server->life.state == LIFE_FAILED) {
        free(TAKE_PTR(server->last_words));
        error_clear(&server->failure);
    }
    server_event(server, LIFE_WANTED);
}

void opencode_server_follow(struct opencode_server *server, struct server_follower *follower)
{
    list_append(&server->followers, &follower->link);
}

struct query *opencode_server_ask(struct opencode_server *server,
                                  const struct query_request *request, query_done *done,
                                  void *context)
{
    return inside_port_ask(server->port, request, done, context);
}

void opencode_server_look(const struct opencode_server *server, struct harness_status *ret_status)
{
    static const enum harness_state told[LIFE_STATES] = {
        [LIFE_ABSENT] = HARNESS_ABSENT,     [LIFE_LOOKING] = HARNESS_STARTING,
        [LIFE_SPAWNING] = HARNESS_STARTING, [LIFE_PROBING] = HARNESS_STARTING,
        [LIFE_LOADING] = HARNESS_STARTING,  [LIFE_WATCHING] = HARNESS_STARTING,
        [LIFE_READY] = HARNESS_READY,       [LIFE_CUT] = HARNESS_STARTING,
        [LIFE_RESTING] = HARNESS_STARTING,  [LIFE_KILLING] = HARNESS_STARTING,
        [LIFE_FAILING] = HARNESS_STARTING,  [LIFE_FAILED] = HARNESS_FAILED,
    };

    *ret_status = (struct harness_status){
        .state = told[server->life.state],
        .port = OPENCODE_PORT,
        .version = server->version,
        .starts = server->starts,
        .last_words = server->last_words ? server->last_words : "",
    };
}

bool opencode_server_is_old(const struct opencode_server *server)
{
    return server->is_old;
}

struct opencode_server *opencode_server_find(struct drivers *drivers, const struct id *sandbox)
{
    LIST_EACH (&drivers->servers, at) {
        struct opencode_server *server = CONTAINER_OF(at, struct opencode_server, link);

        if (!sandbox || strcmp(server->sandbox.text, sandbox->text) == 0)
            return server;
    }
    return NULL;
}

static void server_gone(struct deadline *deadline)
{
    struct opencode_server *server = CONTAINER_OF(deadline, struct opencode_server, timer);
    struct roll *roll = &server->drivers->roll;

    sse_reader_done(&server->reader);
    text_done(&server->start);
    free(server->last_words);
    free(server);
    roll_leave(roll);
}

void opencode_server_forget(struct opencode_server *server, const struct error *why)
{
    server->is_forgotten = true;
    list_remove(&server->link);
    query_cancel(TAKE_PTR(server->question));
    query_cancel(TAKE_PTR(server->stream));
    loop_task_cancel(&server->tell);
    server_tell_lost(server, why);
    server_tell_waiters(server, why, false);
    inside_port_close(TAKE_PTR(server->port));
    deadline_close(&server->timer, server_gone);
}
