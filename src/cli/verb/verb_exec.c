/* burrow exec: a command in a sandbox that is there, joined to our own stdin, stdout and stderr. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/client/client_sandbox.h"
#include "cli/run/run_session.h"
#include "cli/run/run_signals.h"
#include "cli/run/run_terminal.h"
#include "cli/verb/verb_client.h"
#include "cli/verb/verbs.h"
#include "json/json_read.h"

#define TIMEOUT_MAX_MS (UINT64_C(30) * 24 * 3600 * 1000)
#define STATUS_SIGNAL  128

static const struct verb_option options[] = {
    {"detach", 'd', NULL, "start it in the background and print its id, for logs and kill", false},
    {"tty", 't', NULL, "run it at a terminal; ours, when stdin is one, becomes raw", false},
    {"env", 'e', "NAME=TEXT", "a variable for the command; NAME alone takes ours", true},
    {"cwd", 'w', "FOLDER", "where it runs (/workspace)", false},
    {"timeout", 0, "TIME", "kill it after this long: 30s, 5m (never)", false},
    {NULL, 0, NULL, NULL, false},
};

/* Lives in the client's pool: its handles outlive the work. */
struct exec_call {
    struct client *client;
    struct run_session *session;
    struct run_signals signals;
    struct run_terminal terminal;
    struct run_outcome outcome;
    bool has_ended;
};

/* --- what the command gets ------------------------------------------------------------------- */

static int read_variables(const struct verb_call *call, struct pool *pool,
                          struct run_message_request *request, struct error *err)
{
    const char *const *values = verb_values(call, "env", &request->variable_count);
    struct run_variable *variables =
        pool_alloc(pool, (request->variable_count + 1) * sizeof(*variables));

    for (size_t i = 0; i < request->variable_count; i++) {
        const char *equals = strchr(values[i], '=');

        variables[i].name =
            equals ? pool_copy_bytes(pool, values[i], (size_t) (equals - values[i])) : values[i];
        variables[i].value = equals ? equals + 1 : getenv(values[i]);
        if (!variables[i].value || !*variables[i].name)
            return error_set(err, ERR_INVALID, 0, "--env %s: write NAME=TEXT", values[i]);
    }
    request->variables = variables;
    return 0;
}

static int exec_read_request(const struct verb_call *call, struct pool *pool,
                             struct run_message_request *ret_request, struct error *err)
{
    const char *timeout = verb_value(call, "timeout");

    *ret_request = (struct run_message_request){.command = call->command,
                                                .directory = verb_value(call, "cwd")};
    if (!call->command_count)
        return error_set(err, ERR_INVALID, 0,
                         "say what to run: burrow exec NAME COMMAND; or burrow shell NAME");
    if (timeout && number_parse_duration(timeout, TIMEOUT_MAX_MS, &ret_request->timeout_ms) < 0)
        return error_set(err, ERR_INVALID, 0, "--timeout %s: a time such as 30s or 5m", timeout);
    return read_variables(call, pool, ret_request, err);
}

/* --- events ---------------------------------------------------------------------------------- */

static void exec_finish(struct exec_call *execution)
{
    run_terminal_leave(&execution->terminal);
    if (execution->session)
        run_session_close(TAKE_PTR(execution->session));
    loop_stop(&execution->client->loop); /* closing the client waits for the rest */
}

static void session_ended(void *context, const struct run_outcome *outcome)
{
    struct exec_call *execution = context;

    execution->outcome = *outcome;
    execution->has_ended = true;
    exec_finish(execution);
}

static void exec_session_closed(void *context)
{
    (void) context;
}

static void exec_signal_arrived(void *context, int number)
{
    struct exec_call *execution = context;

    if (number == SIGCONT) {
        if (execution->terminal.raw)
            (void) run_terminal_enter(&execution->terminal, execution->terminal.fd);
        number = SIGWINCH;
    }
    if (execution->session)
        run_session_signal(execution->session, number);
}

/* --- running --------------------------------------------------------------------------------- */

static int find_terminal(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (isatty(fd))
            return fd;
    }
    return -EBADF;
}

static int exec_begin(struct exec_call *execution, const struct verb_call *call,
                      struct run_message_request *request, struct error *err)
{
    struct client *client = execution->client;
    struct http_header headers[CLIENT_HEADERS];
    struct run_session_options session = {
        .loop = &client->loop,
        .origin = client->origin,
        .target = client_sandbox_path(client, call->words[0], "/exec/ws"),
        .headers = headers,
        .header_count = client_headers(client, headers),
        .request = request,
        .input = STDIN_FILENO,
        .output = STDOUT_FILENO,
        .errors = STDERR_FILENO,
        .terminal = -EBADF,
        .events = {.on_end = session_ended, .on_closed = exec_session_closed, .context = execution},
    };

    if (verb_flag(call, "tty")) {
        session.terminal = find_terminal();
        run_terminal_size(session.terminal, &request->columns, &request->rows);
        request->terminal_name = getenv("TERM");
        (void) run_terminal_enter(&execution->terminal, STDIN_FILENO); /* a pipe will do, too */
    }
    execution->session = run_session_new(&session, err);
    if (!execution->session)
        run_terminal_leave(&execution->terminal);
    return execution->session ? 0 : -1;
}

static int tell_outcome(const struct verb_call *call, const struct run_outcome *outcome)
{
    struct error err = ERROR_INIT;

    if (outcome->ending == RUN_ENDED_TIME)
        (void) error_set(&err, ERR_REQUEST_TIMEOUT, 0, "killed: not done after %s",
                         verb_value(call, "timeout"));
    else if (outcome->ending == RUN_ENDED_FAILURE)
        (void) error_set(&err, ERR_UPSTREAM, 0, "%s", outcome->text);
    else if (outcome->ending != RUN_ENDED_STATUS && outcome->ending != RUN_ENDED_SIGNAL)
        (void) error_set(&err, ERR_UPSTREAM, 0, "%s: %s", call->command[0], outcome->text);
    if (err.code)
        (void) verb_complain(0, &err);
    return run_outcome_status(outcome);
}

static int exec_follow(struct verb_call *call, struct client *client,
                       struct run_message_request *request, struct error *err)
{
    struct exec_call *execution = pool_alloc(&client->pool, sizeof(*execution));
    int r;

    *execution = (struct exec_call){.client = client, .terminal = RUN_TERMINAL_INIT};
    r = run_signals_open(&execution->signals, &client->loop, exec_signal_arrived, execution);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "listen for signals");
    r = exec_begin(execution, call, request, err);
    while (r == 0 && !execution->has_ended)
        loop_run(&client->loop);
    run_signals_close(&execution->signals);
    return r < 0 ? -1 : tell_outcome(call, &execution->outcome);
}

/* --- for programs ---------------------------------------------------------------------------- */

/* All but the command itself. */
static json_t *make_body(const struct run_message_request *request)
{
    json_t *body = json_object(), *env = json_object();

    for (size_t i = 0; i < request->variable_count; i++)
        (void) json_object_set_new(env, request->variables[i].name,
                                   json_string(request->variables[i].value));
    (void) json_object_set_new(body, "env", env);
    if (request->directory)
        (void) json_object_set_new(body, "cwd", json_string(request->directory));
    if (request->timeout_ms)
        (void) json_object_set_new(body, "timeout", json_real((double) request->timeout_ms / 1000));
    return body;
}

/* What no shell takes for anything but itself. */
static bool is_plain(const char *word)
{
    return *word && word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789_-+=./:,@%")] == '\0';
}

/* The words as a line for a shell. In the pool. */
static const char *quote(const char *const *command, struct pool *pool)
{
    AUTO(text) struct text line = TEXT_INIT(RUN_MESSAGE_REQUEST_MAX);

    for (; *command; command++) {
        if (line.length)
            text_append_char(&line, ' ');
        if (is_plain(*command)) {
            text_append(&line, *command);
            continue;
        }
        text_append_char(&line, '\'');
        for (const char *at = *command; *at; at++) {
            if (*at == '\'')
                text_append(&line, "'\\''");
            else
                text_append_char(&line, *at);
        }
        text_append_char(&line, '\'');
    }
    return pool_copy_text(pool, text_string(&line));
}

static int detach(struct verb_call *call, struct client *client,
                  const struct run_message_request *request, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *body = make_body(request);

    /* A single word may be a whole line, as with ssh. */
    verb_set_text(body, "command",
                  request->command[1] ? quote(request->command, &client->pool)
                                      : request->command[0]);
    if (client_sandbox_call(client, "POST", call->words[0], "/processes", body, &reply, err) < 0)
        return -1;
    return verb_print_field(call, reply.json, "processId");
}

/* One answer with everything in it; stdin is not passed on. */
static int wait_for_all(struct verb_call *call, struct client *client,
                        const struct run_message_request *request, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *body = make_body(request);
    json_t *argv = json_array(), *code;

    for (size_t i = 0; request->command[i]; i++) {
        if (json_array_append_new(argv, json_string(request->command[i])) < 0) {
            json_decref(argv);
            return error_set(err, ERR_INVALID, 0, "the command is not UTF-8");
        }
    }
    (void) json_object_set_new(body, "argv", argv);
    if (client_sandbox_call(client, "POST", call->words[0], "/exec", body, &reply, err) < 0)
        return -1;
    verb_print_json(reply.json);
    code = json_object_get(reply.json, "exitCode");
    return json_is_integer(code) ? (int) json_integer_value(code) : STATUS_SIGNAL + SIGKILL;
}

static int execute(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    struct run_message_request request;

    if (exec_read_request(call, &client->pool, &request, err) < 0)
        return -1;
    if (verb_flag(call, "detach"))
        return detach(call, client, &request, err);
    if (verb_flag(call, "json"))
        return wait_for_all(call, client, &request, err);
    /* Whatever is wrong is said better here than by a WebSocket that does not open. */
    if (client_sandbox_call(client, "GET", call->words[0], "", NULL, &reply, err) < 0)
        return -1;
    return exec_follow(call, client, &request, err);
}

static int exec_run(struct verb_call *call)
{
    return verb_with_client(call, execute, VERB_STATUS_OURS);
}

const struct verb verb_exec = {
    .name = "exec",
    .summary = "Run a command in a sandbox",
    .arguments = "NAME COMMAND [ARGUMENT...]",
    .options = options,
    .details =
        "The command gets our stdin and our signals, and its exit status becomes ours (128 + N "
        "for\nsignal N, 124 when its time was over, 125 when it could not be run at all, 126 and "
        "127 when\nthe program cannot be started or does not exist). A sleeping sandbox is woken. "
        "With --json\nthe whole result is one object, and stdin is not passed on.",
    .examples = "  burrow exec demo ls -l\n"
                "  burrow exec demo -- sh -c 'make 2>&1 | tail'\n"
                "  tar c . | burrow exec demo tar x\n"
                "  burrow exec -t demo top",
    .words_min = 1,
    .words_max = 1,
    .stops_at_word = 1,
    .takes_sandboxes = true,
    .run = exec_run,
};
