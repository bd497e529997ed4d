#include "agent/terminal/terminal.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/call.h"
#include "agent/control/quiesce.h"
#include "agent/environment.h"
#include "agent/exec/program.h"
#include "agent/terminal/terminal_control.h"
#include "agent/terminal/terminal_internal.h"
#include "base/memory.h"
#include "json/json_write.h"

#define MESSAGE_MAX      ((size_t) 4096)
#define TICK_MS          250
#define TERMINAL_NAME    "xterm-256color"
#define EXIT_SIGNAL_BASE 128

static struct terminal_viewer *viewer_at(struct list *link)
{
    return CONTAINER_OF(link, struct terminal_viewer, link);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void tick_closed(struct deadline *tick)
{
    struct terminal *terminal = CONTAINER_OF(tick, struct terminal, tick);

    terminal_ring_done(&terminal->ring);
    free(terminal->session);
    free(terminal->shell);
    free(terminal);
}

/* Tell everybody and be gone. */
static void terminal_finish(struct terminal *terminal, const struct text *message,
                            unsigned int code, const char *reason)
{
    LIST_EACH (&terminal->viewers, at)
        terminal_viewer_end(viewer_at(at), message, code, reason);
    if (terminal->asking)
        session_forget(&terminal->query);
    list_remove(&terminal->link);
    terminal->agent->terminals->count--;
    deadline_close(&terminal->tick, tick_closed);
}

static void terminal_begin(struct json_writer *json, struct text *message, const char *type)
{
    json_document_begin(json, message);
    json_add_text(json, "type", type);
}

static void finish_with_error(struct terminal *terminal, const char *text)
{
    AUTO(text) struct text message = TEXT_INIT(MESSAGE_MAX);
    struct json_writer json;

    terminal_begin(&json, &message, "error");
    json_add_text(&json, "message", text);
    (void) json_document_end(&json); /* it is short */
    terminal_finish(terminal, &message, WEBSOCKET_CODE_INTERNAL, text);
}

static void finish_with_exit(struct terminal *terminal, const struct sys_exit *exit)
{
    AUTO(text) struct text message = TEXT_INIT(MESSAGE_MAX);
    const char *name = exit->kind == SYS_EXIT_SIGNAL ? sigabbrev_np(exit->value) : NULL;
    char signal[32];
    struct json_writer json;

    terminal_begin(&json, &message, "exit");
    if (exit->kind == SYS_EXIT_STATUS)
        json_add_integer(&json, "code", exit->value);
    else if (exit->kind == SYS_EXIT_SIGNAL)
        json_add_integer(&json, "code", EXIT_SIGNAL_BASE + exit->value);
    else
        json_add_null(&json, "code"); /* killed with its supervisor: nobody knows */
    if (name) {
        (void) snprintf(signal, sizeof(signal), "SIG%s", name);
        json_add_text(&json, "signal", signal);
    }
    (void) json_document_end(&json); /* it is short */
    terminal_finish(terminal, &message, WEBSOCKET_CODE_NORMAL, "The shell has ended");
}

/* --- flow ------------------------------------------------------------------------------------- */

static void tick_soon(struct terminal *terminal)
{
    if (!terminal->tick.due)
        deadline_set(&terminal->tick, TICK_MS);
}

void terminal_check_output(struct terminal *terminal)
{
    bool wait = false;

    if (!terminal->exec)
        return;
    LIST_EACH (&terminal->viewers, at)
        wait = wait || terminal_viewer_lags(viewer_at(at));
    if (wait)
        tick_soon(terminal);
    if (wait == terminal->output_paused)
        return;
    terminal->output_paused = wait;
    if (wait)
        exec_pause(terminal->exec);
    else
        exec_resume(terminal->exec);
}

void terminal_type(struct terminal *terminal, struct terminal_viewer *viewer, const char *bytes,
                   size_t length)
{
    if (!terminal->exec)
        return; /* there is no shell yet that could be meant */
    if (!terminal->input_waiting)
        terminal->input_taken_at = loop_now(&terminal->agent->loop);
    terminal->input_waiting += length;
    agent_note_work(terminal->agent);
    exec_write(terminal->exec, bytes, length);
    if (terminal->input_waiting <= TERMINAL_INPUT_MAX)
        return;
    viewer->input_paused = true;
    websocket_pause(viewer->ws);
    tick_soon(terminal);
}

static void resume_typing(struct terminal *terminal)
{
    LIST_EACH (&terminal->viewers, at) {
        struct terminal_viewer *viewer = viewer_at(at);

        if (!viewer->input_paused)
            continue;
        viewer->input_paused = false;
        websocket_resume(viewer->ws);
    }
}

/* The connection of a paused viewer is not read: that it has left would never be noticed. */
static bool close_stuck(struct terminal *terminal)
{
    uint64_t now = loop_now(&terminal->agent->loop);
    bool is_late = now - terminal->input_taken_at > TERMINAL_INPUT_STUCK_MS, waits = false;

    LIST_EACH (&terminal->viewers, at) {
        struct terminal_viewer *viewer = viewer_at(at);

        waits = waits || viewer->input_paused;
        if (viewer->input_paused && is_late)
            (void) websocket_close(viewer->ws, WEBSOCKET_CODE_POLICY,
                                   "the terminal does not take input");
    }
    return waits && !is_late;
}

/* --- the shell -------------------------------------------------------------------------------- */

static void shell_started(struct exec *exec, void *owner)
{
    struct terminal *terminal = owner;

    exec_resize(exec, &terminal->size); /* it may have changed meanwhile */
    terminal->started = true;
    LIST_EACH (&terminal->viewers, at)
        terminal_viewer_greet(viewer_at(at));
}

static void shell_wrote(struct exec *exec, void *owner, enum exec_output which, const char *bytes,
                        size_t length)
{
    struct terminal *terminal = owner;

    (void) exec;
    (void) which;
    agent_note_work(terminal->agent);
    terminal_ring_append(&terminal->ring, bytes, length);
    LIST_EACH (&terminal->viewers, at)
        terminal_viewer_pump(viewer_at(at));
    terminal_check_output(terminal);
}

static void shell_took(struct exec *exec, void *owner, size_t length)
{
    struct terminal *terminal = owner;

    (void) exec;
    terminal->input_taken_at = loop_now(&terminal->agent->loop);
    terminal->input_waiting -= length < terminal->input_waiting ? length : terminal->input_waiting;
    if (terminal->input_waiting <= TERMINAL_INPUT_MAX / 2)
        resume_typing(terminal);
}

static void shell_ended(struct exec *exec, void *owner, const struct exec_result *result)
{
    struct terminal *terminal = owner;
    char text[256];

    (void) exec;
    terminal->exec = NULL;
    agent_note_work(terminal->agent);
    if (!result->error) {
        finish_with_exit(terminal, &result->exit);
        return;
    }
    (void) snprintf(text, sizeof(text), "The terminal's shell cannot be started: %s",
                    strerrordesc_np(-result->error));
    finish_with_error(terminal, text);
}

static const struct exec_events shell_events = {
    .on_start = shell_started,
    .on_output = shell_wrote,
    .on_input = shell_took,
    .on_end = shell_ended,
};

static const char *usual_shell(const char *const *environment)
{
    const char *path = environment_get(environment, "PATH");
    char file[PATH_MAX];

    return program_find("bash", path ? path : "", file, sizeof(file)) == 0 ? "bash" : "sh";
}

static void terminal_start(struct terminal *terminal, const struct session_context *context)
{
    const struct environment_change change = {.name = "TERM", .text = TERMINAL_NAME};
    const char **environment = environment_merge(context->environment, &change, 1);
    const char *shell = terminal->shell ? terminal->shell : usual_shell(environment);
    const struct exec_options options = {
        .launch =
            {
                .arguments = (const char *const[]){shell, NULL},
                .environment = environment,
                .directory = context->directory,
                .any_directory = true,
            },
        .terminal = &terminal->size,
    };
    struct exec_result failure = {.error = 0};

    agent_note_work(terminal->agent);
    terminal->exec =
        exec_start(&terminal->agent->execs, &options, &shell_events, terminal, &failure.error);
    environment_free(environment);
    if (!terminal->exec)
        shell_ended(NULL, terminal, &failure);
}

static void context_known(struct session_query *query, const struct session_context *context,
                          struct api_error *failure)
{
    struct terminal *terminal = CONTAINER_OF(query, struct terminal, query);

    terminal->asking = false;
    if (failure)
        finish_with_error(terminal, failure->message);
    else
        terminal_start(terminal, context);
}

static void start_without_context(struct terminal *terminal)
{
    char directory[PATH_MAX];
    const struct session_context context = {.directory = directory,
                                            .environment = terminal->agent->environment};

    session_forget(&terminal->query);
    terminal->asking = false;
    session_directory(terminal->agent, terminal->session, directory);
    terminal_start(terminal, &context);
}

/* --- life ------------------------------------------------------------------------------------- */

static void ticked(struct deadline *tick)
{
    struct terminal *terminal = CONTAINER_OF(tick, struct terminal, tick);
    uint64_t now = loop_now(&terminal->agent->loop);

    if (terminal->asking && now - terminal->asked_at >= TERMINAL_CONTEXT_MS) {
        start_without_context(terminal);
        return;
    }
    LIST_EACH (&terminal->viewers, at)
        terminal_viewer_tick(viewer_at(at), TICK_MS);
    terminal_check_output(terminal);
    if (close_stuck(terminal) || terminal->asking || terminal->output_paused)
        tick_soon(terminal);
}

void terminal_left(struct terminal *terminal)
{
    agent_note_work(terminal->agent); /* it was looked at until now */
    if (terminal->asking && list_is_empty(&terminal->viewers))
        terminal_finish(terminal, NULL, 0, NULL); /* nobody waits for it any more */
    else
        terminal_check_output(terminal);
}

static struct terminal_set *get_set(struct agent *agent)
{
    if (!agent->terminals) {
        agent->terminals = mem_alloc(sizeof(*agent->terminals));
        list_init(&agent->terminals->terminals);
    }
    return agent->terminals;
}

static struct terminal *terminal_find(struct agent *agent, const char *session)
{
    LIST_EACH (&get_set(agent)->terminals, at) {
        struct terminal *terminal = CONTAINER_OF(at, struct terminal, link);

        if (!terminal->ending && strcmp(terminal->session, session) == 0)
            return terminal;
    }
    return NULL;
}

static struct terminal *terminal_new(struct agent *agent, const char *session, const char *shell,
                                     const struct exec_terminal *size)
{
    struct terminal *terminal = mem_alloc(sizeof(*terminal));

    terminal->agent = agent;
    terminal->session = mem_copy_text(session);
    terminal->shell = shell ? mem_copy_text(shell) : NULL;
    terminal->size = *size;
    list_init(&terminal->viewers);
    list_append(&agent->terminals->terminals, &terminal->link);
    agent->terminals->count++;
    deadline_init(&agent->loop, &terminal->tick, ticked);
    return terminal;
}

static void terminal_ask(struct terminal *terminal)
{
    terminal->asking = true;
    terminal->asked_at = loop_now(&terminal->agent->loop);
    terminal->query.on_context = context_known;
    session_ask(terminal->agent, terminal->session, &terminal->query);
    tick_soon(terminal);
}

void terminal_session_deleted(struct agent *agent, const char *session)
{
    struct terminal *terminal = agent->terminals ? terminal_find(agent, session) : NULL;

    if (!terminal)
        return;
    terminal->ending = true;
    if (terminal->exec)
        exec_kill(terminal->exec);
    else
        finish_with_error(terminal, "The session was deleted");
}

size_t terminal_idle_count(const struct agent *agent)
{
    size_t count = 0;

    if (!agent->terminals)
        return 0;
    LIST_EACH (&agent->terminals->terminals, at) {
        const struct terminal *terminal = CONTAINER_OF(at, struct terminal, link);

        count += terminal->exec && list_is_empty(&terminal->viewers) &&
                 exec_has_foreground(terminal->exec);
    }
    return count;
}

/* --- requests --------------------------------------------------------------------------------- */

struct terminal_request {
    const char *session;
    const char *shell; /* NULL: the usual one */
    struct exec_terminal size;
};

static int read_wish(struct http_request *request, struct terminal_request *ret, struct error *err)
{
    *ret = (struct terminal_request){
        .session = http_request_query(request, "sessionId"),
        .shell = http_request_query(request, "shell"),
        .size = {.columns = TERMINAL_COLUMNS, .rows = TERMINAL_ROWS},
    };
    if (!ret->session || !call_session_is_valid(ret->session))
        return error_set(err, ERR_INVALID, 0, "sessionId is required: /ws/pty?sessionId=...");
    if (ret->shell && !ret->shell[0])
        ret->shell = NULL;
    if (ret->shell && strlen(ret->shell) > TERMINAL_SHELL_MAX)
        return error_set(err, ERR_INVALID, 0, "shell is too long");
    if (terminal_count_read("cols", http_request_query(request, "cols"), &ret->size.columns, err) <
            0 ||
        terminal_count_read("rows", http_request_query(request, "rows"), &ret->size.rows, err) < 0)
        return -1;
    return 0;
}

/* Whether a new terminal cannot be had. Then the request was answered. */
static bool terminal_refuse(struct http_request *request)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    struct agent *agent = request->context;

    if (quiesce_refuses_request(request))
        return true;
    if (get_set(agent)->count < TERMINAL_MAX)
        return false;
    api_error_fill(&error, API_RESOURCE_BUSY,
                   "%d terminals are open, which is the most there may be: end one of their shells "
                   "or delete a session",
                   TERMINAL_MAX);
    error.operation = "terminal.open";
    api_error_reply(request, &error);
    return true;
}

void terminal_handle(struct http_request *request)
{
    struct agent *agent = request->context;
    AUTO(pool) struct pool pool = POOL_INIT;
    struct error err = ERROR_INIT;
    struct terminal_viewer *viewer;
    struct terminal *terminal;
    struct terminal_request wish;

    if (read_wish(request, &wish, &err) < 0) {
        http_reply_text(request, 400, "text/plain; charset=utf-8", err.message);
        return;
    }
    terminal = terminal_find(agent, wish.session);
    if (!terminal && terminal_refuse(request))
        return;
    /* The request's memory goes with the upgrade. */
    wish.session = pool_copy_text(&pool, wish.session);
    wish.shell = wish.shell ? pool_copy_text(&pool, wish.shell) : NULL;
    viewer = terminal_viewer_new(request);
    if (!viewer)
        return;
    if (!terminal) {
        terminal = terminal_new(agent, wish.session, wish.shell, &wish.size);
        terminal_viewer_join(viewer, terminal);
        terminal_ask(terminal);
    } else {
        terminal_viewer_join(viewer, terminal);
    }
}
