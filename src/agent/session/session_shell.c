#include "agent/session/session_shell.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/session/session_shell_internal.h"
#include "base/memory.h"
#include "sys/file/sys_file.h"

struct session_shell_candidate {
    const char *arguments[4];
    enum session_dialect dialect;
};

static const struct session_shell_candidate candidates[] = {
    {{"/bin/bash", "--norc", "--noprofile"}, SESSION_BASH},
    {{"/usr/bin/bash", "--norc", "--noprofile"}, SESSION_BASH},
    {{"/bin/sh"}, SESSION_SH},
    {{"/usr/bin/sh"}, SESSION_SH},
};

static int session_shell_launch(struct session_shell *shell);

/* --- memory --------------------------------------------------------------------------------- */

static void close_theirs(struct session_shell *shell)
{
    for (size_t i = 0; i < LINES; i++)
        shell->theirs[i] = fd_close(shell->theirs[i]);
    environment_free(TAKE_PTR(shell->environment));
    free(TAKE_PTR(shell->directory));
}

static void free_when_closed(struct session_shell *shell)
{
    if (!shell->over || shell->handles)
        return;
    loop_task_cancel(&shell->settle);
    text_done(&shell->script);
    text_done(&shell->answer);
    free(shell);
}

static void line_closed(struct watch *watch)
{
    struct session_shell *shell = CONTAINER_OF(watch, struct shell_line, watch)->shell;

    shell->handles--;
    free_when_closed(shell);
}

static void doubt_closed(struct deadline *deadline)
{
    struct session_shell *shell = CONTAINER_OF(deadline, struct session_shell, doubt);

    shell->handles--;
    free_when_closed(shell);
}

static void session_shell_close_all(struct session_shell *shell)
{
    close_theirs(shell);
    shell->over = true;
    for (size_t i = 0; i < LINES; i++)
        watch_close(&shell->lines[i].watch);
    deadline_close(&shell->doubt, doubt_closed);
}

/* --- what follows --------------------------------------------------------------------------- */

void session_shell_settle_soon(struct session_shell *shell)
{
    if (!shell->over)
        loop_defer(&shell->agent->loop, &shell->settle);
}

static void tell_report(struct session_shell *shell)
{
    shell->busy = shell->reported = false;
    deadline_clear(&shell->doubt);
    if (shell->ended)
        session_shell_count_output(
            shell); /* background jobs may have written more: none of it matters much */
    session_shell_watch_outputs(shell);
    shell->events->on_report(shell, shell->owner, shell->status,
                             shell->spoiled ? NULL : &shell->answer);
    text_done(&shell->answer); /* idle shells hold nothing */
    if (shell->ended)
        session_shell_settle_soon(shell);
}

static void session_shell_settle(struct loop_task *task)
{
    struct session_shell *shell = CONTAINER_OF(task, struct session_shell, settle);

    if (shell->over)
        return;
    if (session_shell_has_output_left(shell) && !shell->paused)
        session_shell_read_left(
            shell); /* no event tells of what somebody else has read meanwhile */
    if (session_shell_has_output_left(shell))
        return;
    if (shell->reported) {
        tell_report(shell);
    } else if (shell->ended) {
        shell->over = true;
        shell->events->on_end(shell, shell->owner, &shell->result, shell->untouched);
        session_shell_close_all(shell);
    }
}

/* --- the process ---------------------------------------------------------------------------- */

static void started(struct exec *exec, void *owner)
{
    struct session_shell *shell = owner;

    shell->pid = exec_pid(exec);
    close_theirs(shell);
    session_script_begin(candidates[shell->candidate].dialect, &shell->script);
    session_shell_write(shell);
    watch_for(&shell->lines[LINE_CHANNEL].watch, UV_READABLE);
    session_shell_watch_outputs(shell);
    shell->events->on_start(shell, shell->owner);
}

static void wrote(struct exec *exec, void *owner, enum exec_output which, const char *bytes,
                  size_t length)
{
    (void) exec; /* the pipes are ours */
    (void) owner;
    (void) which;
    (void) bytes;
    (void) length;
}

/* Whether anything of the last script was read. */
static bool is_untouched(struct session_shell *shell)
{
    int unread = session_shell_unread_input(shell);

    return shell->busy && !shell->reported && unread >= 0 &&
           shell->written - (uint64_t) unread <= shell->written_before;
}

static void session_shell_ended(struct exec *exec, void *owner, const struct exec_result *result)
{
    struct session_shell *shell = owner;

    shell->exec = NULL;
    if (result->error == -ENOENT && result->stage == LAUNCH_STAGE_PROGRAM && !shell->pid &&
        !shell->killed && shell->candidate + 1 < ARRAY_COUNT(candidates)) {
        shell->candidate++;
        if (session_shell_launch(shell) == 0)
            return;
    }
    exec_cancel(exec);                 /* what it left behind ends with the shell */
    session_shell_read_channel(shell); /* its last report may still be there */
    shell->untouched = is_untouched(shell);
    shell->ended = true;
    shell->result = *result;
    if (!shell->reported)
        session_shell_count_output(shell);
    session_shell_read_left(shell);
    session_shell_settle_soon(shell);
}

static const struct exec_events exec_events = {
    .on_start = started,
    .on_output = wrote,
    .on_end = session_shell_ended,
};

static int session_shell_launch(struct session_shell *shell)
{
    const struct exec_options options = {
        .launch = {.arguments = candidates[shell->candidate].arguments,
                   .environment = shell->environment,
                   .directory = shell->directory,
                   .any_directory = true},
        .descriptors = shell->theirs,
        .channel = shell->theirs[LINE_CHANNEL],
    };
    int r = 0;

    shell->exec = exec_start(&shell->agent->execs, &options, &exec_events, shell, &r);
    return shell->exec ? 0 : r;
}

static int open_line(struct session_shell *shell, enum line which)
{
    static void (*const ready[LINES])(struct watch *) = {
        [LINE_INPUT] = session_shell_input_ready,
        [LINE_STDOUT] = session_shell_output_ready,
        [LINE_STDERR] = session_shell_output_ready,
        [LINE_CHANNEL] = session_shell_channel_ready,
    };
    AUTO(close) int ours = -EBADF;
    bool we_read = which != LINE_INPUT;
    int ends[2];
    int r;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    ours = ends[we_read ? 0 : 1];
    shell->theirs[which] = ends[we_read ? 1 : 0];
    r = sys_file_set_nonblocking(ours, true);
    if (r == 0)
        r = watch_init(&shell->lines[which].watch, &shell->agent->loop, ours, ready[which],
                       line_closed);
    if (r < 0)
        return r;
    (void) TAKE_FD(ours);
    shell->handles++;
    return 0;
}

struct session_shell *session_shell_start(struct agent *agent,
                                          const struct session_shell_options *options,
                                          const struct session_shell_events *events, void *owner,
                                          int *ret_error)
{
    struct session_shell *shell = mem_alloc(sizeof(*shell));
    int r = 0;

    shell->agent = agent;
    shell->events = events;
    shell->owner = owner;
    shell->environment = environment_merge(options->environment, NULL, 0);
    shell->directory = mem_copy_text(options->directory);
    shell->script = (struct text) TEXT_INIT(SESSION_SCRIPT_MAX);
    shell->answer = (struct text) TEXT_INIT(SESSION_ANSWER_MAX);
    loop_task_init(&shell->settle, session_shell_settle);
    deadline_init(&agent->loop, &shell->doubt, session_shell_doubt_due);
    shell->handles = 1;
    for (size_t i = 0; i < LINES; i++) {
        shell->theirs[i] = -EBADF;
        shell->lines[i].shell = shell;
    }
    for (size_t i = 0; i < LINES && r == 0; i++)
        r = open_line(shell, (enum line) i);
    if (r == 0)
        r = session_shell_launch(shell);
    if (r == 0)
        return shell;
    session_shell_close_all(shell);
    *ret_error = r;
    return NULL;
}

/* While the agent stops its execs are everybody's and nobody's. */
void session_shell_kill(struct session_shell *shell)
{
    shell->killed = true;
    if (shell->exec && !shell->agent->stopping)
        exec_kill(shell->exec);
}

enum session_dialect session_shell_dialect(const struct session_shell *shell)
{
    return candidates[shell->candidate].dialect;
}

pid_t session_shell_pid(const struct session_shell *shell)
{
    return shell->pid;
}
