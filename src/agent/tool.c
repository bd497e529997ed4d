#include "agent/tool.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "agent/agent.h"

#define EXIT_SIGNAL_BASE 128

static void tell_failure(struct loop_task *task)
{
    struct tool *tool = CONTAINER_OF(task, struct tool, task);

    tool->on_end(tool, &tool->failure);
}

void tool_init(struct tool *tool, struct agent *agent)
{
    *tool = (struct tool){.agent = agent, .complaint = TEXT_INIT(2 * TOOL_COMPLAINT_MAX)};
    loop_task_init(&tool->task, tell_failure);
}

void tool_done(struct tool *tool)
{
    loop_task_cancel(&tool->task);
    text_done(&tool->output);
    text_done(&tool->complaint);
}

/* --- what it writes -------------------------------------------------------------------------- */

static void keep_output(struct tool *tool, const char *bytes, size_t length)
{
    size_t room = tool->output.maximum - tool->output.length;

    if (length > room) {
        tool->output_cut = true;
        length = room;
    }
    text_append_bytes(&tool->output, bytes, length);
}

static void keep_complaint(struct tool *tool, const char *bytes, size_t length)
{
    struct text *kept = &tool->complaint;

    if (length > TOOL_COMPLAINT_MAX) {
        bytes += length - TOOL_COMPLAINT_MAX;
        length = TOOL_COMPLAINT_MAX;
        tool->complaint_cut = true;
    }
    text_append_bytes(kept, bytes, length);
    if (kept->length > TOOL_COMPLAINT_MAX) {
        text_consume(kept, kept->length - TOOL_COMPLAINT_MAX);
        tool->complaint_cut = true;
    }
}

/* Half a line at the cut could be half a secret, which nobody would recognise any more. */
const char *tool_complaint(const struct tool *tool)
{
    const char *text = text_string(&tool->complaint), *newline;

    if (!tool->complaint_cut)
        return text;
    newline = strchr(text, '\n');
    return newline ? newline + 1 : "";
}

/* --- its life -------------------------------------------------------------------------------- */

static void started(struct exec *exec, void *owner)
{
    (void) exec;
    (void) owner;
}

static void wrote(struct exec *exec, void *owner, enum exec_output which, const char *bytes,
                  size_t length)
{
    (void) exec;
    if (which == EXEC_STDOUT)
        keep_output(owner, bytes, length);
    else
        keep_complaint(owner, bytes, length);
}

static void took(struct exec *exec, void *owner, size_t length)
{
    struct tool *tool = owner;

    (void) exec;
    if (tool->on_input)
        tool->on_input(tool, length);
}

static void ended(struct exec *exec, void *owner, const struct exec_result *result)
{
    struct tool *tool = owner;

    (void) exec;
    tool->exec = NULL;
    agent_note_work(tool->agent);
    tool->on_end(tool, result);
}

static const struct exec_events events = {
    .on_start = started,
    .on_output = wrote,
    .on_input = took,
    .on_end = ended,
};

void tool_start(struct tool *tool, const struct tool_options *options)
{
    const struct exec_options exec = {
        .launch =
            {
                .arguments = options->arguments,
                .environment =
                    options->environment ? options->environment : tool->agent->environment,
                .directory = options->directory ? options->directory : "/",
            },
        .stream_input = options->stream_input,
        .channel = options->channel,
        .timeout_ms = options->timeout_ms,
        .as_agent = true,
    };
    int error = 0;

    text_done(&tool->output);
    tool->output = (struct text) TEXT_INIT(options->output_max);
    text_clear(&tool->complaint);
    tool->output_cut = tool->complaint_cut = false;
    agent_note_work(tool->agent);
    tool->exec = exec_start(&tool->agent->execs, &exec, &events, tool, &error);
    if (!tool->exec) {
        tool->failure = (struct exec_result){.error = error, .stage = LAUNCH_STAGE_FORK};
        loop_defer(&tool->agent->loop, &tool->task);
    }
}

bool tool_is_running(const struct tool *tool)
{
    return tool->exec != NULL;
}

void tool_write(struct tool *tool, const void *bytes, size_t length)
{
    if (tool->exec)
        exec_write(tool->exec, bytes, length);
}

void tool_end_input(struct tool *tool)
{
    if (tool->exec)
        exec_end_input(tool->exec);
}

void tool_terminate(struct tool *tool)
{
    if (tool->exec)
        exec_signal(tool->exec, SIGTERM);
}

void tool_kill(struct tool *tool)
{
    if (tool->exec)
        exec_kill(tool->exec);
}

/* --- how it ended ---------------------------------------------------------------------------- */

bool tool_is_missing(const struct exec_result *result)
{
    return result->error == -ENOENT && result->stage == LAUNCH_STAGE_PROGRAM;
}

int tool_exit_code(const struct exec_result *result)
{
    if (tool_is_missing(result))
        return TOOL_EXIT_MISSING;
    if (result->error || result->exit.kind == SYS_EXIT_UNKNOWN)
        return -1;
    if (result->timed_out)
        return TOOL_EXIT_TIMED_OUT;
    return result->exit.kind == SYS_EXIT_STATUS ? result->exit.value
                                                : EXIT_SIGNAL_BASE + result->exit.value;
}

bool tool_succeeded(const struct exec_result *result)
{
    return !result->error && result->exit.kind == SYS_EXIT_STATUS && result->exit.value == 0;
}
