#include "agent/execute.h"

#include <signal.h>
#include <stdio.h>

#include "agent/execute_form.h"
#include "agent/shell_command.h"
#include "base/memory.h"
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
    for (size_t i = 0; i < EXEC_OUTPUTS; i++)
        text_done(&call->held[i]);
    json_decref(call->body);
    free(call);
}

static void refuse(struct execute_call *call, struct api_error *error)
{
    error->operation = call->operation;
    api_error_reply(call->request, error);
    call_free(call);
}

static const char *failure_text(const struct exec_result *result)
{
    if (result->stage == LAUNCH_STAGE_FORK)
        return "the sandbox has no room for another process";
    if (result->error == -E2BIG)
        return "the command and its environment are larger than the kernel takes (128 KiB for one "
               "argument)";
    return "the program could not be started";
}

static void refuse_failure(struct execute_call *call, const struct exec_result *result)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    struct json_writer json;

    json_writer_init_text(&json, &error.context);
    json_begin_object(&json);
    json_add_text(&json, "command", call->ask.command);
    json_end_object(&json);
    (void) json_writer_finish(&json); /* a command too long for a context leaves it empty */
    api_error_fill(&error, API_COMMAND_EXECUTION_ERROR, "Command could not be run: %s: %s",
                   failure_text(result), strerrordesc_np(-result->error));
    refuse(call, &error);
}

/* --- the command's life --------------------------------------------------------------------- */

static void pause_when_full(struct execute_call *call)
{
    if (call->request->state == HTTP_REQUEST_REPLYING && http_reply_is_full(call->request))
        exec_pause(call->exec);
}

static void exec_started(struct exec *exec, void *owner)
{
    struct execute_call *call = owner;

    (void) exec;
    call->form->start(call);
}

static void exec_wrote(struct exec *exec, void *owner, enum exec_output which, const char *bytes,
                       size_t length)
{
    struct execute_call *call = owner;

    (void) exec;
    call->form->output(call, which, bytes, length);
    pause_when_full(call);
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
                        call->ask.directory ? call->ask.directory : AGENT_DIRECTORY,
                        strerrordesc_np(-result->error));
}

static void refuse_unknown(struct execute_call *call)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;

    api_error_fill(&error, API_COMMAND_EXECUTION_ERROR,
                   "The command's exit status is unknown: it was killed together with its "
                   "supervisor");
    refuse(call, &error);
}

static void exec_ended(struct exec *exec, void *owner, const struct exec_result *result)
{
    struct execute_call *call = owner;
    struct exec_result seen = *result;
    char note[NOTE_SIZE];

    (void) exec;
    agent_note_work(call->agent);
    if (is_directory_failure(result))
        seen.exit = (struct sys_exit){.kind = SYS_EXIT_STATUS, .value = 1};
    if (result->error && !is_directory_failure(result) && !result->timed_out) {
        refuse_failure(call, result);
    } else if (execute_exit_code(&seen) < 0 && call->request->state == HTTP_REQUEST_FRESH) {
        refuse_unknown(call);
    } else {
        write_note(call, result, note);
        call->form->end(call, &seen, note);
        call_free(call);
    }
}

static const struct exec_events exec_events = {
    .on_start = exec_started,
    .on_output = exec_wrote,
    .on_end = exec_ended,
};

/* --- the request ---------------------------------------------------------------------------- */

static void client_left(struct http_request *request)
{
    struct execute_call *call = request->data;

    if (call->exec)
        exec_cancel(call->exec);
    call_free(call);
}

static void client_took(struct http_request *request)
{
    struct execute_call *call = request->data;

    if (call->exec)
        exec_resume(call->exec);
}

static int start(struct execute_call *call, int *ret_error)
{
    const struct execute_request *ask = &call->ask;
    const char **environment =
        environment_merge(call->agent->environment, ask->variables.changes, ask->variables.count);
    struct exec_options options = {
        .launch =
            {
                .arguments = ask->arguments,
                .environment = environment,
                .directory = ask->directory ? ask->directory : AGENT_DIRECTORY,
                .any_directory = !ask->directory,
            },
        .input = ask->input,
        .input_length = ask->input_length,
        .timeout_ms = ask->timeout_ms,
    };

    if (!ask->arguments) {
        options.launch.shell_command = ask->command;
        options.launch.arguments =
            shell_command_split(ask->command, environment, &call->request->pool);
    }
    call->exec = exec_start(&call->agent->execs, &options, &exec_events, call, ret_error);
    environment_free(environment);
    return call->exec ? 0 : -1;
}

static int check_forms(struct execute_call *call, struct api_error *error)
{
    const char *session =
        execute_request_session(call->request, call->ask.session, call->agent->token != NULL);

    call->ask.session = session;
    if (session && strcmp(session, EXECUTE_NO_SESSION) != 0)
        return api_error_field(error, "sessionId",
                               "this agent runs commands without a session only: leave it out or "
                               "say " EXECUTE_NO_SESSION);
    if (call->ask.background)
        return api_error_field(error, "background", "this agent has no background processes");
    return 0;
}

static int read_body(struct execute_call *call, const char *body, size_t length,
                     struct api_error *error)
{
    static const struct json_limits limits = {
        .size = EXECUTE_BODY_MAX, .depth = 16, .values = JSON_VALUES_MAX};
    struct error err = ERROR_INIT;

    call->body = json_read(body, length, &limits, &err);
    if (!call->body)
        return api_error_set(error, API_INTERNAL_ERROR, "Failed to parse request body: %s",
                             err.message);
    return execute_request_read(call->body, &call->request->pool, &call->ask, error);
}

static void body_arrived(struct http_request *request, const char *body, size_t length)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    struct execute_call *call = request->data;
    int failure = 0;

    if (read_body(call, body, length, &error) < 0 || check_forms(call, &error) < 0) {
        refuse(call, &error);
        return;
    }
    agent_note_work(call->agent);
    call->started_ms = loop_now(&call->agent->loop);
    for (size_t i = 0; i < EXEC_OUTPUTS; i++)
        call->encoder[i].base64 = call->ask.base64;
    if (start(call, &failure) < 0) {
        const struct exec_result result = {.error = failure, .stage = LAUNCH_STAGE_PROGRAM};

        refuse_failure(call, &result);
    }
}

static void handle(struct http_request *request, const struct execute_form *form,
                   const char *operation)
{
    struct execute_call *call = mem_alloc(sizeof(*call));

    call->agent = request->context;
    call->request = request;
    call->form = form;
    call->operation = operation;
    call->live = -1;
    request->data = call;
    request->on_gone = client_left;
    request->on_drain = client_took;
    http_request_collect(request, body_arrived);
}

void execute_handle(struct http_request *request)
{
    handle(request, &execute_form_json, "command.execute");
}

void execute_handle_stream(struct http_request *request)
{
    handle(request, &execute_form_events, "command.stream");
}
