#include "agent/command/execute.h"

#include <signal.h>
#include <stdio.h>

#include "agent/command/execute_form.h"
#include "agent/exec/shell_command.h"
#include "agent/process/process_service.h"
#include "base/memory.h"
#include "base/number.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define EXIT_TIMED_OUT   124
#define EXIT_SIGNAL_BASE 128
#define NOTE_SIZE        (EXECUTE_PATH_MAX + 128)

int execute_exit_code(const struct exec_result *result)
{
    if (result->timed_out)
        return EXIT_TIMED_OUT;
    switch (result->exit.kind) {
    case SYS_EXIT_STATUS:
        return result->exit.value;
    case SYS_EXIT_SIGNAL:
        return EXIT_SIGNAL_BASE + result->exit.value;
    case SYS_EXIT_UNKNOWN:
        break;
    }
    return -1;
}

const char *execute_signal_name(const struct exec_result *result,
                                char ret_text[static EXECUTE_SIGNAL_SIZE])
{
    const char *name;

    if (result->exit.kind != SYS_EXIT_SIGNAL || result->timed_out)
        return NULL;
    name = sigabbrev_np(result->exit.value);
    if (name)
        (void) snprintf(ret_text, EXECUTE_SIGNAL_SIZE, "SIG%s", name);
    else
        (void) snprintf(ret_text, EXECUTE_SIGNAL_SIZE, "signal %d", result->exit.value);
    return ret_text;
}

/* --- errors --------------------------------------------------------------------------------- */

static void call_free(struct execute_call *call)
{
    for (size_t i = 0; i < EXEC_OUTPUTS; i++) {
        text_done(&call->held[i]);
        session_lines_done(&call->lines[i]);
    }
    free(call);
}

/* Ends the call, whatever was said before. */
static void execute_fail(struct execute_call *call, struct api_error *error)
{
    if (call->call->state == CALL_FRESH)
        call_fail(call->call, error);
    else
        call->form->fail(call, error);
    call_free(call);
}

static const char *failure_text(const struct exec_result *result)
{
    if (result->stage == LAUNCH_STAGE_USER)
        return "its user cannot be found";
    if (result->stage == LAUNCH_STAGE_FORK)
        return "the sandbox has no room for another process";
    if (result->error == -E2BIG)
        return "the command and its environment are larger than the kernel takes (128 KiB for one "
               "argument)";
    return "the program could not be started";
}

static void add_command(struct execute_call *call, struct api_error *error)
{
    struct json_writer json;

    json_document_begin(&json, &error->context);
    json_add_text(&json, "command", call->ask.command);
    (void) json_document_end(&json); /* a command too long for a context leaves it empty */
}

static void fail_launch(struct execute_call *call, const struct exec_result *result)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;

    if (result->stage == LAUNCH_STAGE_USER && result->error == -ENOENT) {
        (void) api_error_field(&error, "user", "there is no such user in the sandbox");
        execute_fail(call, &error);
        return;
    }
    add_command(call, &error);
    api_error_fill(&error, API_COMMAND_EXECUTION_ERROR, "Command could not be run: %s: %s",
                   failure_text(result), strerrordesc_np(-result->error));
    execute_fail(call, &error);
}

/* --- without a session ---------------------------------------------------------------------- */

static void execute_exec_started(struct exec *exec, void *owner)
{
    struct execute_call *call = owner;

    (void) exec;
    call->form->start(call);
}

static void execute_exec_wrote(struct exec *exec, void *owner, enum exec_output which,
                               const char *bytes, size_t length)
{
    struct execute_call *call = owner;

    call->form->output(call, which, bytes, length);
    if (call->call->state != CALL_FRESH && call_is_full(call->call))
        exec_pause(exec);
}

/* A missing directory is the command's failure, as in a shell; everything else that keeps a
 * program from starting is ours. */
static bool is_directory_failure(const struct exec_result *result)
{
    return result->error && result->stage == LAUNCH_STAGE_DIRECTORY;
}

static void write_note(const struct execute_call *call, const struct exec_result *result,
                       char ret_note[static NOTE_SIZE])
{
    ret_note[0] = '\0';
    if (result->timed_out)
        (void) snprintf(ret_note, NOTE_SIZE, "Command timed out after %llums\n",
                        (unsigned long long) call->ask.timeout_ms);
    else if (is_directory_failure(result))
        (void) snprintf(ret_note, NOTE_SIZE, "Failed to change directory to %s: %s\n",
                        call->ask.directory ? call->ask.directory : call->agent->directory,
                        strerrordesc_np(-result->error));
}

static void fail_unknown(struct execute_call *call)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;

    api_error_fill(&error, API_COMMAND_EXECUTION_ERROR,
                   "The command's exit status is unknown: it was killed together with its "
                   "supervisor");
    execute_fail(call, &error);
}

static void execute_exec_ended(struct exec *exec, void *owner, const struct exec_result *result)
{
    struct execute_call *call = owner;
    struct exec_result seen = *result;
    char note[NOTE_SIZE];

    (void) exec;
    agent_note_work(call->agent);
    if (is_directory_failure(result))
        seen.exit = (struct sys_exit){.kind = SYS_EXIT_STATUS, .value = 1};
    if (result->error && !is_directory_failure(result) && !result->timed_out) {
        fail_launch(call, result);
    } else if (execute_exit_code(&seen) < 0 && call->call->state == CALL_FRESH) {
        fail_unknown(call);
    } else {
        write_note(call, result, note);
        call->form->end(call, &seen, note);
        call_free(call);
    }
}

static const struct exec_events exec_events = {
    .on_start = execute_exec_started,
    .on_output = execute_exec_wrote,
    .on_end = execute_exec_ended,
};

static void start_alone(struct execute_call *call)
{
    const struct execute_request *ask = &call->ask;
    const char **environment =
        environment_merge(call->agent->environment, ask->variables.changes, ask->variables.count);
    struct exec_options options = {
        .launch =
            {
                .arguments = ask->arguments,
                .environment = environment,
                .directory = ask->directory ? ask->directory : call->agent->directory,
                .any_directory = !ask->directory,
                .user = ask->user,
            },
        .input = ask->input,
        .input_length = ask->input_length,
        .timeout_ms = ask->timeout_ms,
    };
    struct exec_result failed = {.stage = LAUNCH_STAGE_PROGRAM};

    if (!ask->arguments) {
        options.launch.shell_command = ask->command;
        options.launch.arguments = shell_command_split(ask->command, environment, call->call->pool);
    }
    agent_note_work(call->agent);
    call->exec = exec_start(&call->agent->execs, &options, &exec_events, call, &failed.error);
    environment_free(environment);
    if (!call->exec)
        fail_launch(call, &failed);
}

/* --- in a session --------------------------------------------------------------------------- */

static void command_started(struct session_command *command)
{
    struct execute_call *call = command->owner;

    call->form->start(call);
}

static void command_wrote(struct session_command *command, enum exec_output which,
                          const char *bytes, size_t length)
{
    struct execute_call *call = command->owner;

    call->form->output(call, which, bytes, length);
    if (call->call->state != CALL_FRESH && call_is_full(call->call))
        session_pause(command);
}

static void add_session(struct execute_call *call, struct api_error *error, int exit_code)
{
    struct json_writer json;

    json_document_begin(&json, &error->context);
    json_add_text(&json, "sessionId", call->call->session);
    if (exit_code >= 0)
        json_add_integer(&json, "exitCode", exit_code);
    (void) json_document_end(&json); /* an id is short */
}

static void format_exit(int code, char ret_text[static NUMBER_TEXT_SIZE])
{
    if (code < 0)
        (void) snprintf(ret_text, NUMBER_TEXT_SIZE, "unknown");
    else
        (void) number_format(code, ret_text);
}

static void fail_in_session(struct execute_call *call, const struct session_result *result)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    char shown[NUMBER_TEXT_SIZE];
    const char *session = call->call->session;
    int code = execute_exit_code(&result->exec);

    switch (result->outcome) {
    case SESSION_TERMINATED:
        add_session(call, &error, code);
        format_exit(code, shown);
        api_error_fill(&error, API_SESSION_TERMINATED, "Session '%s' shell exited (exit code: %s)",
                       session, shown);
        break;
    case SESSION_DESTROYED:
        add_session(call, &error, -1);
        api_error_fill(&error, API_SESSION_DESTROYED, "Session '%s' was destroyed", session);
        break;
    case SESSION_TIMED_OUT:
        add_command(call, &error);
        api_error_fill(&error, API_COMMAND_EXECUTION_ERROR,
                       "Command execution failed: Command timeout after %llums",
                       (unsigned long long) result->timeout_ms);
        break;
    case SESSION_FAILED:
    case SESSION_ENDED:
        fail_launch(call, &result->exec);
        return;
    }
    execute_fail(call, &error);
}

static void command_ended(struct session_command *command, const struct session_result *result)
{
    struct execute_call *call = command->owner;
    struct exec_result seen = {.exit = {.kind = SYS_EXIT_STATUS, .value = result->status}};
    bool shell_ended = result->outcome == SESSION_TERMINATED;

    if (result->outcome != SESSION_ENDED &&
        !(shell_ended && (call->form->tells_exit || call->call->state != CALL_FRESH))) {
        fail_in_session(call, result);
        return;
    }
    if (shell_ended)
        seen = result->exec;
    call->form->end(call, &seen, "");
    call_free(call);
}

static const struct session_command_events command_events = {
    .on_start = command_started,
    .on_output = command_wrote,
    .on_end = command_ended,
};

static void start_in_session(struct execute_call *call)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    const struct execute_request *ask = &call->ask;

    call->in_session = true;
    call->command = (struct session_command){
        .text = ask->command,
        .directory = ask->directory,
        .changes = ask->variables.changes,
        .change_count = ask->variables.count,
        .timeout_ms = ask->timeout_ms,
        .events = &command_events,
        .owner = call,
    };
    if (session_run(call->agent, call->call->session, &call->command, &error) < 0)
        execute_fail(call, &error);
}

/* --- the call ------------------------------------------------------------------------------- */

static void execute_client_left(struct call *call)
{
    struct execute_call *execute = call->data;

    if (execute->exec)
        exec_cancel(execute->exec);
    if (execute->in_session)
        session_abandon(&execute->command);
    call_free(execute);
}

static void execute_client_took(struct call *call)
{
    struct execute_call *execute = call->data;

    if (execute->exec)
        exec_resume(execute->exec);
    if (execute->in_session)
        session_resume(&execute->command);
}

/* What a session's shell cannot do; NULL: nothing of it is asked for. */
static const char *lone_field(const struct execute_request *ask)
{
    return ask->arguments ? "argv" : ask->input ? "stdin" : ask->user ? "user" : NULL;
}

/* Who names no session and uses one of these means none. */
static bool is_alone(const struct execute_call *call)
{
    return call_is_sessionless(call->call) || (!call->call->has_session && lone_field(&call->ask));
}

static void execute_start(struct execute_call *call)
{
    const char *field = lone_field(&call->ask);

    if (is_alone(call)) {
        start_alone(call);
    } else if (field) {
        AUTO(api_error) struct api_error error = API_ERROR_INIT;

        (void) api_error_field(&error, field,
                               "is for commands without a session only: " CALL_NO_SESSION);
        execute_fail(call, &error);
    } else {
        start_in_session(call);
    }
}

static struct execute_call *execute_call_new(struct call *call, const struct execute_form *form)
{
    struct execute_call *execute = mem_alloc(sizeof(*execute));

    *execute = (struct execute_call){
        .agent = call->agent,
        .call = call,
        .form = form,
        .started_ms = loop_now(&call->agent->loop),
        .live = -1,
        .live_room = call->transport->unlimited_json ? SIZE_MAX : EXECUTE_LIVE_MAX,
    };
    for (size_t i = 0; i < EXEC_OUTPUTS; i++)
        execute->lines[i] = (struct session_lines) SESSION_LINES_INIT;
    call->data = execute;
    call->on_gone = execute_client_left;
    call->on_drain = execute_client_took;
    return execute;
}

static void execute_run(struct call *call, const struct execute_form *form)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    struct execute_request ask;
    struct execute_call *execute;

    if (execute_request_read(call->arguments, call->pool, &ask, &error) < 0) {
        call_fail(call, &error);
        return;
    }
    if (ask.background) {
        process_start_background(call);
        return;
    }
    execute = execute_call_new(call, form);
    execute->ask = ask;
    for (size_t i = 0; i < EXEC_OUTPUTS; i++)
        execute->encoder[i].base64 = ask.base64;
    execute_start(execute);
}

static void run_json(struct call *call)
{
    execute_run(call, &execute_form_json);
}

static void run_events(struct call *call)
{
    execute_run(call, &execute_form_events);
}

static const struct operation rows[] = {
    {.method = "POST",
     .path = "/api/execute",
     .rpc = "commands.execute",
     .parameters = {"command", "sessionId", OPERATION_FIELDS},
     .run = run_json,
     .name = "command.execute",
     .summary = "Run a command and wait",
     .body_limit = EXECUTE_BODY_MAX,
     .starts_work = true},
    {.method = "POST",
     .path = "/api/execute/stream",
     .rpc = "commands.executeStream",
     .parameters = {"command", "sessionId", OPERATION_FIELDS},
     .run = run_events,
     .name = "command.stream",
     .summary = "Run a command, as events",
     .body_limit = EXECUTE_BODY_MAX,
     .has_events = true,
     .starts_work = true},
};

const struct operation_table execute_operations = {rows, ARRAY_COUNT(rows)};
