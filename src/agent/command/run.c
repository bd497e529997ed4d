#include "agent/command/run.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/command/run_request.h"
#include "agent/exec/shell_command.h"
#include "base/memory.h"
#include "json/json_read.h"
#include "json/json_write.h"
#include "net/websocket/websocket_http.h"

#define MESSAGE_MAX ((size_t) 8 * 1024)
/* Input taken by the command is told in portions of at least this. */
#define WINDOW_STEP (RUN_WINDOW / 4)
#define SIGNAL_SIZE 16

/* Freed when the WebSocket is released, which outlives the exec as far as we know it. */
struct command_run {
    struct agent *agent;
    struct websocket *ws;
    struct exec *exec; /* NULL: not started, or over */
    size_t window;     /* bytes of input the client may still send */
    size_t taken;      /* bytes the command took that the client was not told of */
    bool asked;        /* the first message came */
};

/* --- what the client is told ---------------------------------------------------------------- */

static void run_command_begin(struct json_writer *json, struct text *message, const char *type)
{
    json_document_begin(json, message);
    json_add_text(json, "type", type);
}

/* A connection that is closing drops it: nobody is there to be told. */
static void run_tell(struct command_run *run, struct json_writer *json, const struct text *message)
{
    if (json_document_end(json) == 0)
        (void) websocket_send(run->ws, WEBSOCKET_TEXT, message->data, message->length);
}

static void tell_error(struct command_run *run, const char *stage, int error, const char *text)
{
    AUTO(text) struct text message = TEXT_INIT(MESSAGE_MAX);
    struct json_writer json;

    run_command_begin(&json, &message, "error");
    json_add_text(&json, "stage", stage);
    if (error)
        json_add_text(&json, "errno", strerrorname_np(-error));
    json_add_text(&json, "message", text);
    run_tell(run, &json, &message);
}

/* A client that breaks the rules. */
static void run_refuse(struct command_run *run, const char *reason)
{
    tell_error(run, "request", 0, reason);
    (void) websocket_close(run->ws, WEBSOCKET_CODE_POLICY, reason);
}

static void tell_window(struct command_run *run)
{
    AUTO(text) struct text message = TEXT_INIT(MESSAGE_MAX);
    struct json_writer json;

    run_command_begin(&json, &message, "window");
    json_add_integer(&json, "bytes", (int64_t) run->taken);
    run_tell(run, &json, &message);
    run->window += run->taken;
    run->taken = 0;
}

static const char *signal_name(int number, char ret_text[static SIGNAL_SIZE])
{
    const char *name = sigabbrev_np(number);

    (void) snprintf(ret_text, SIGNAL_SIZE, "%d", number); /* real-time signals have none */
    return name ? name : ret_text;
}

static void tell_exit(struct command_run *run, const struct exec_result *result)
{
    AUTO(text) struct text message = TEXT_INIT(MESSAGE_MAX);
    char name[SIGNAL_SIZE];
    struct json_writer json;

    run_command_begin(&json, &message, "exit");
    if (result->exit.kind == SYS_EXIT_STATUS)
        json_add_integer(&json, "code", result->exit.value);
    else if (result->exit.kind == SYS_EXIT_SIGNAL)
        json_add_text(&json, "signal", signal_name(result->exit.value, name));
    if (result->out_of_memory)
        json_add_boolean(&json, "outOfMemory", true);
    if (result->timed_out)
        json_add_boolean(&json, "timedOut", true);
    run_tell(run, &json, &message);
}

/* --- the command ---------------------------------------------------------------------------- */

static void command_started(struct exec *exec, void *owner)
{
    AUTO(text) struct text message = TEXT_INIT(MESSAGE_MAX);
    struct json_writer json;

    run_command_begin(&json, &message, "started");
    json_add_integer(&json, "pid", exec_pid(exec));
    run_tell(owner, &json, &message);
}

static void command_wrote(struct exec *exec, void *owner, enum exec_output which, const char *bytes,
                          size_t length)
{
    struct command_run *run = owner;
    struct text *message = &run->agent->scratch;

    text_clear(message);
    text_append_char(message, which == EXEC_STDOUT ? RUN_CHANNEL_STDOUT : RUN_CHANNEL_STDERR);
    text_append_bytes(message, bytes, length);
    (void) websocket_send(run->ws, WEBSOCKET_BINARY, message->data, message->length);
    if (websocket_is_full(run->ws))
        exec_pause(exec);
}

static void command_took(struct exec *exec, void *owner, size_t length)
{
    struct command_run *run = owner;

    (void) exec;
    run->taken += length;
    if (run->taken >= WINDOW_STEP)
        tell_window(run);
}

static void command_closed_input(struct exec *exec, void *owner)
{
    AUTO(text) struct text message = TEXT_INIT(MESSAGE_MAX);
    struct json_writer json;

    (void) exec;
    run_command_begin(&json, &message, "closed");
    json_add_integer(&json, "channel", RUN_CHANNEL_STDIN);
    run_tell(owner, &json, &message);
}

/* Indexed by enum launch_stage. */
static const struct {
    const char *stage;
    const char *text;
} failures[] = {
    [LAUNCH_STAGE_FORK] = {"process", "the sandbox has no room for another process"},
    [LAUNCH_STAGE_MESSAGE] = {"process", "the command could not be handed to the worker"},
    [LAUNCH_STAGE_DIRECTORY] = {"directory", "the working directory cannot be entered"},
    [LAUNCH_STAGE_PROGRAM] = {"program", "the program cannot be run"},
    [LAUNCH_STAGE_USER] = {"user", "there is no such user"},
};

static void run_tell_failure(struct command_run *run, enum launch_stage stage, int error)
{
    char text[256];

    (void) snprintf(text, sizeof(text), "%s: %s", failures[stage].text, strerrordesc_np(-error));
    tell_error(run, failures[stage].stage, error, text);
}

static void command_ended(struct exec *exec, void *owner, const struct exec_result *result)
{
    struct command_run *run = owner;

    (void) exec;
    run->exec = NULL;
    agent_note_work(run->agent);
    if (result->error)
        run_tell_failure(run, result->stage, result->error);
    else if (result->exit.kind == SYS_EXIT_UNKNOWN && !result->timed_out)
        tell_error(run, "exit", 0,
                   "the exit status is unknown: the command's supervisor was killed");
    else
        tell_exit(run, result);
}

static const struct exec_events command_events = {
    .on_start = command_started,
    .on_output = command_wrote,
    .on_input = command_took,
    .on_input_closed = command_closed_input,
    .on_end = command_ended,
};

/* TERM says what the terminal understands; the client's own variables come behind it and win. */
static const char **run_make_environment(struct command_run *run, const struct run_request *ask)
{
    struct environment_change change = {.name = "TERM", .text = ask->terminal_name};
    const char **own = environment_merge(run->agent->environment, &change, ask->has_terminal);
    const char **all = environment_merge(own, ask->variables.changes, ask->variables.count);

    environment_free(own);
    return all;
}

static void run_start(struct command_run *run, const struct run_request *ask, struct pool *pool)
{
    const char **environment = run_make_environment(run, ask);
    struct exec_options options = {
        .launch =
            {
                .arguments = ask->arguments,
                .shell_command = ask->command,
                .environment = environment,
                .directory = ask->directory ? ask->directory : run->agent->directory,
                .any_directory = !ask->directory,
                .user = ask->user,
            },
        .stream_input = true,
        .terminal = ask->has_terminal ? &ask->terminal : NULL,
        .timeout_ms = ask->timeout_ms,
    };
    int error = 0;

    if (ask->command)
        options.launch.arguments = shell_command_split(ask->command, environment, pool);
    agent_note_work(run->agent);
    run->exec = exec_start(&run->agent->execs, &options, &command_events, run, &error);
    environment_free(environment);
    if (!run->exec)
        run_tell_failure(run, LAUNCH_STAGE_FORK, error);
}

/* --- the client ----------------------------------------------------------------------------- */

static void run_take_request(struct command_run *run, json_t *message)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    AUTO(pool) struct pool pool = POOL_INIT;
    struct run_request ask;

    run->asked = true;
    if (run_request_read(message, &pool, &ask, &error) < 0)
        run_refuse(run, error.message);
    else
        run_start(run, &ask, &pool);
}

static void take_order(struct command_run *run, json_t *message)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    struct run_order order;

    if (run_order_read(message, &order, &error) < 0) {
        run_refuse(run, error.message);
        return;
    }
    if (!run->exec)
        return; /* it has ended while the order was under way */
    switch (order.type) {
    case RUN_ORDER_RESIZE:
        exec_resize(run->exec, &order.size);
        break;
    case RUN_ORDER_SIGNAL:
        exec_signal(run->exec, order.signal);
        break;
    case RUN_ORDER_EOF:
        exec_end_input(run->exec);
        break;
    case RUN_ORDER_CLOSE:
        exec_close_output(run->exec, order.output);
        break;
    }
}

static void take_text(struct command_run *run, const char *bytes, size_t length)
{
    static const struct json_limits limits = {
        .size = RUN_MESSAGE_MAX, .depth = 8, .values = JSON_VALUES_MAX};
    struct error err = ERROR_INIT;
    AUTO(json) json_t *message = json_read(bytes, length, &limits, &err);

    if (!message)
        run_refuse(run, err.message);
    else if (run->asked)
        take_order(run, message);
    else
        run_take_request(run, message);
}

static void take_input(struct command_run *run, const char *bytes, size_t length)
{
    if (!run->asked || !length || bytes[0] != RUN_CHANNEL_STDIN) {
        run_refuse(run,
                   "binary messages are input: a byte 0, then the bytes, after the first message");
        return;
    }
    if (length - 1 > run->window) {
        run_refuse(run, "more input than the window allows");
        return;
    }
    run->window -= length - 1;
    if (run->exec)
        exec_write(run->exec, bytes + 1, length - 1);
}

static void run_message_arrived(struct websocket *ws, enum websocket_opcode kind, const char *bytes,
                                size_t length)
{
    struct command_run *run = websocket_http_data(ws);

    if (kind == WEBSOCKET_TEXT)
        take_text(run, bytes, length);
    else
        take_input(run, bytes, length);
}

static void run_client_took(struct websocket *ws)
{
    struct command_run *run = websocket_http_data(ws);

    if (run->exec)
        exec_resume(run->exec);
}

static void run_cancel(struct command_run *run)
{
    if (run->exec)
        exec_cancel(TAKE_PTR(run->exec));
}

static void run_client_left(struct websocket *ws, unsigned int code, const char *reason, bool clean)
{
    (void) code;
    (void) reason;
    (void) clean;
    run_cancel(websocket_http_data(ws));
}

static void run_connection_gone(struct websocket *ws)
{
    struct command_run *run = websocket_http_data(ws);

    run_cancel(run); /* an abort tells nobody else */
    free(run);
}

static const struct websocket_events client_events = {
    .on_message = run_message_arrived,
    .on_drain = run_client_took,
    .on_close = run_client_left,
    .on_released = run_connection_gone,
};

void run_handle(struct http_request *request)
{
    static const struct websocket_options options = {.role = WEBSOCKET_SERVER,
                                                     .message_max = RUN_MESSAGE_MAX};
    struct command_run *run = mem_alloc(sizeof(*run));
    struct error err = ERROR_INIT;

    run->agent = request->context;
    run->window = RUN_WINDOW;
    run->ws = websocket_accept(request, &options, &client_events, run, &err);
    if (run->ws)
        return;
    http_reply_error(request, &err);
    free(run);
}
