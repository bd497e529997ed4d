#include "agent/session_shell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/watch.h"
#include "base/memory.h"
#include "base/number.h"
#include "sys/sys_file.h"

#define EXIT_STATUS_MAX 255
#define READ_SIZE       ((size_t) 64 * 1024)
/* Reads per event: fair to others, as in exec_stdio.c. */
#define READS_PER_EVENT 4
/* Longest report: two numbers. */
#define REPORT_MAX 64
/* How soon it is looked whether a shell still is at what it was given; then ever more rarely. */
#define DOUBT_MIN_MS 500
#define DOUBT_MAX_MS 8000

struct candidate {
    const char *arguments[4];
    enum session_dialect dialect;
};

static const struct candidate candidates[] = {
    {{"/bin/bash", "--norc", "--noprofile"}, SESSION_BASH},
    {{"/usr/bin/bash", "--norc", "--noprofile"}, SESSION_BASH},
    {{"/bin/sh"}, SESSION_SH},
    {{"/usr/bin/sh"}, SESSION_SH},
};

/* Pipes between us and the shell: what it gets is closed here once it has it. */
enum line { LINE_INPUT, LINE_STDOUT, LINE_STDERR, LINE_CHANNEL, LINES };

struct shell_line {
    struct watch watch;
    struct session_shell *shell;
};

/* Facts are noted where they are met; `settle` alone decides what follows from them. */
struct session_shell {
    struct agent *agent;
    const struct session_shell_events *events;
    void *owner;
    struct exec *exec;        /* NULL once it has ended */
    const char **environment; /* owned, until it has started */
    char *directory;          /* owned, until it has started */
    size_t candidate;
    int theirs[LINES]; /* owned, until it has started */
    struct shell_line lines[LINES];
    struct deadline doubt; /* whether a script that runs will ever report */
    uint64_t doubt_ms;
    int handles; /* lines and the deadline, open or closing */

    struct text script;      /* what is not written yet, from `sent` on */
    size_t sent;             /* of the script */
    uint64_t written;        /* to the pipe, since the start */
    uint64_t written_before; /* when the last script began */
    uint64_t serial;
    struct text answer;    /* what came through the channel since the script began */
    unsigned int sections; /* still to come before the report */
    int status;
    size_t left[EXEC_OUTPUTS]; /* to be read before the report or the end is told */
    struct exec_result result;
    struct loop_task settle;
    pid_t pid;
    bool busy : 1;     /* a script runs */
    bool reported : 1; /* it is done, its output perhaps not read */
    bool spoiled : 1;  /* the answer was too long */
    bool paused : 1;
    bool ended : 1;
    bool untouched : 1;
    bool killed : 1;
    bool over : 1; /* the owner was told */
};

static int launch(struct session_shell *shell);

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

static void close_all(struct session_shell *shell)
{
    close_theirs(shell);
    shell->over = true;
    for (size_t i = 0; i < LINES; i++)
        watch_close(&shell->lines[i].watch);
    deadline_close(&shell->doubt, doubt_closed);
}

/* --- output --------------------------------------------------------------------------------- */

static void settle_soon(struct session_shell *shell)
{
    if (!shell->over)
        loop_defer(&shell->agent->loop, &shell->settle);
}

/* Output that belongs before a report or the end is counted then: a background job that never stops
 * writing keeps nobody. */
static bool is_counting(const struct session_shell *shell)
{
    return shell->reported || shell->ended;
}

static struct watch *output_watch(struct session_shell *shell, size_t which)
{
    return &shell->lines[LINE_STDOUT + which].watch;
}

static void watch_outputs(struct session_shell *shell)
{
    for (size_t i = 0; i < EXEC_OUTPUTS; i++) {
        bool wanted = !shell->paused && (!is_counting(shell) || shell->left[i]);

        watch_for(output_watch(shell, i), wanted ? UV_READABLE : 0);
    }
}

static void count_output(struct session_shell *shell)
{
    for (size_t i = 0; i < EXEC_OUTPUTS; i++) {
        int waiting = 0;

        if (output_watch(shell, i)->open &&
            ioctl(output_watch(shell, i)->fd, FIONREAD, &waiting) < 0)
            waiting = 0;
        shell->left[i] = (size_t) waiting;
    }
}

/* Returns whether there may be more to read right now. */
static bool read_some(struct session_shell *shell, size_t which)
{
    struct watch *watch = output_watch(shell, which);
    char *buffer = shell->agent->loop.scratch;
    bool counting = is_counting(shell);
    size_t wanted = counting && shell->left[which] < READ_SIZE ? shell->left[which] : READ_SIZE;
    ssize_t got = wanted ? read(watch->fd, buffer, wanted) : 0;

    if (got < 0 && errno == EAGAIN)
        shell->left[which] = 0; /* what was counted, somebody else has read */
    if (!wanted || (got < 0 && (errno == EAGAIN || errno == EINTR)))
        return false;
    if (got <= 0) {
        shell->left[which] = 0;
        watch_close(watch); /* nobody has it open any more */
        settle_soon(shell);
        return false;
    }
    if (counting)
        shell->left[which] -= (size_t) got;
    shell->events->on_output(shell, shell->owner, (enum exec_output) which, buffer, (size_t) got);
    return (size_t) got == READ_SIZE || (counting && shell->left[which]);
}

static void read_output(struct session_shell *shell, size_t which)
{
    for (int i = 0; i < READS_PER_EVENT; i++) {
        if (!output_watch(shell, which)->open || shell->paused || !read_some(shell, which))
            break;
    }
    if (is_counting(shell) && !shell->left[which]) {
        watch_outputs(shell);
        settle_soon(shell);
    }
}

static void output_ready(struct watch *watch)
{
    struct shell_line *line = CONTAINER_OF(watch, struct shell_line, watch);

    read_output(line->shell, (size_t) (line - line->shell->lines) - LINE_STDOUT);
}

/* Most output is short: then it is all there already, and no further turn is needed. */
static void read_what_is_left(struct session_shell *shell)
{
    for (size_t i = 0; i < EXEC_OUTPUTS; i++) {
        if (shell->left[i])
            read_output(shell, i);
    }
    watch_outputs(shell);
}

void session_shell_pause(struct session_shell *shell)
{
    shell->paused = true;
    watch_outputs(shell);
}

void session_shell_resume(struct session_shell *shell)
{
    shell->paused = false;
    watch_outputs(shell);
    settle_soon(shell);
}

/* --- reports -------------------------------------------------------------------------------- */

/* "<serial> <status>\n". Returns whether it is that of what runs. */
static bool read_report(struct session_shell *shell, const char *line)
{
    size_t digits = strspn(line, "0123456789");
    uint64_t serial;
    int64_t status;

    if (number_parse_digits(line, digits, UINT64_MAX, &serial) < 0 || line[digits] != ' ' ||
        number_parse(line + digits + 1, SESSION_NO_DIRECTORY, EXIT_STATUS_MAX, &status) < 0 ||
        serial != shell->serial)
        return false;
    shell->status = (int) status;
    return true;
}

/* Behind the sections a line is a report. Others are of nobody: what runs in a session can write
 * there if it tries hard. */
static void take_line(struct session_shell *shell, size_t start, size_t end)
{
    char line[REPORT_MAX];
    size_t length = end - start;

    if (length >= sizeof(line) || !shell->busy || shell->reported)
        return;
    memcpy(line, shell->answer.data + start, length);
    line[length] = '\0';
    if (!read_report(shell, line))
        return;
    shell->answer.length = start; /* the sections alone */
    shell->reported = true;
    count_output(shell);
    read_what_is_left(shell);
    settle_soon(shell);
}

/* New bytes begin at `from`. */
static void take_answer(struct session_shell *shell, size_t from)
{
    struct text *answer = &shell->answer;

    while (!shell->reported && from < answer->length) {
        size_t start = from;
        char mark = shell->sections ? '\0' : '\n';
        const char *end = memchr(answer->data + from, mark, answer->length - from);

        if (!end)
            break;
        from = (size_t) (end + 1 - answer->data);
        if (shell->sections) {
            shell->sections--;
            continue;
        }
        while (start && answer->data[start - 1] != '\0' && answer->data[start - 1] != '\n')
            start--;
        take_line(shell, start, from - 1);
    }
}

/* Too much: what was asked for is lost, but its report is still waited for. */
static void add_answer(struct session_shell *shell, const char *bytes, size_t length)
{
    size_t before = shell->answer.length;

    if (before + length > SESSION_ANSWER_MAX) {
        shell->spoiled = true;
        text_clear(&shell->answer);
        before = 0;
    }
    text_append_bytes(&shell->answer, bytes, length);
    take_answer(shell, before);
}

static void read_channel(struct session_shell *shell)
{
    struct watch *watch = &shell->lines[LINE_CHANNEL].watch;

    for (int i = 0; i < READS_PER_EVENT && watch->open; i++) {
        ssize_t got = read(watch->fd, shell->agent->loop.scratch, READ_SIZE);

        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            watch_close(watch);
            return;
        }
        if (shell->busy && !shell->reported)
            add_answer(shell, shell->agent->loop.scratch, (size_t) got);
    }
}

static void channel_ready(struct watch *watch)
{
    read_channel(CONTAINER_OF(watch, struct shell_line, watch)->shell);
}

/* --- scripts -------------------------------------------------------------------------------- */

static void write_script(struct session_shell *shell)
{
    struct watch *watch = &shell->lines[LINE_INPUT].watch;
    ssize_t sent;

    while (watch->open && shell->sent < shell->script.length) {
        sent =
            write(watch->fd, shell->script.data + shell->sent, shell->script.length - shell->sent);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (sent < 0)
            return; /* it is gone: its end will be told */
        shell->sent += (size_t) sent;
        shell->written += (size_t) sent;
    }
    if (shell->sent < shell->script.length) {
        watch_for(watch, UV_WRITABLE);
        return;
    }
    watch_for(watch, 0);
    text_done(&shell->script);
    shell->sent = 0;
}

static void input_ready(struct watch *watch)
{
    write_script(CONTAINER_OF(watch, struct shell_line, watch)->shell);
}

void session_shell_run(struct session_shell *shell, struct text *script, uint64_t serial,
                       unsigned int sections)
{
    shell->busy = true;
    shell->spoiled = false;
    shell->serial = serial;
    shell->sections = sections;
    shell->written_before = shell->written;
    text_append_bytes(&shell->script, text_string(script), script->length);
    text_done(script);
    write_script(shell);
    shell->doubt_ms = DOUBT_MIN_MS;
    deadline_set(&shell->doubt, shell->doubt_ms);
}

static int unread_input(const struct session_shell *shell)
{
    int unread = 0;

    return ioctl(shell->lines[LINE_INPUT].watch.fd, FIONREAD, &unread) < 0 ? -errno : unread;
}

/* `set -n`, `set -r`, a function `command`, a trap that skips everything: the shell has passed by
 * what it was given, and would be waited for for ever. Only of bash it can be known: it reads byte
 * by byte, and the line behind a script (session_script.h) not before that is done. */
static bool is_lost(struct session_shell *shell)
{
    if (session_shell_dialect(shell) != SESSION_BASH || shell->script.length ||
        unread_input(shell) != 0)
        return false;
    read_channel(shell); /* the report came first */
    return !shell->reported;
}

static void doubt_due(struct deadline *deadline)
{
    struct session_shell *shell = CONTAINER_OF(deadline, struct session_shell, doubt);

    if (!shell->busy || shell->reported || shell->ended || shell->killed)
        return;
    if (is_lost(shell)) {
        session_shell_kill(shell);
        return;
    }
    if (shell->doubt_ms < DOUBT_MAX_MS)
        shell->doubt_ms *= 2;
    deadline_set(&shell->doubt, shell->doubt_ms);
}

/* --- what follows --------------------------------------------------------------------------- */

static bool has_output_left(const struct session_shell *shell)
{
    return shell->left[EXEC_STDOUT] || shell->left[EXEC_STDERR];
}

static void tell_report(struct session_shell *shell)
{
    shell->busy = shell->reported = false;
    deadline_clear(&shell->doubt);
    if (shell->ended)
        count_output(shell); /* background jobs may have written more: none of it matters much */
    watch_outputs(shell);
    shell->events->on_report(shell, shell->owner, shell->status,
                             shell->spoiled ? NULL : &shell->answer);
    text_done(&shell->answer); /* idle shells hold nothing */
    if (shell->ended)
        settle_soon(shell);
}

static void settle(struct loop_task *task)
{
    struct session_shell *shell = CONTAINER_OF(task, struct session_shell, settle);

    if (shell->over)
        return;
    if (has_output_left(shell) && !shell->paused)
        read_what_is_left(shell); /* no event tells of what somebody else has read meanwhile */
    if (has_output_left(shell))
        return;
    if (shell->reported) {
        tell_report(shell);
    } else if (shell->ended) {
        shell->over = true;
        shell->events->on_end(shell, shell->owner, &shell->result, shell->untouched);
        close_all(shell);
    }
}

/* --- the process ---------------------------------------------------------------------------- */

static void started(struct exec *exec, void *owner)
{
    struct session_shell *shell = owner;

    shell->pid = exec_pid(exec);
    close_theirs(shell);
    session_script_begin(candidates[shell->candidate].dialect, &shell->script);
    write_script(shell);
    watch_for(&shell->lines[LINE_CHANNEL].watch, UV_READABLE);
    watch_outputs(shell);
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
    int unread = unread_input(shell);

    return shell->busy && !shell->reported && unread >= 0 &&
           shell->written - (uint64_t) unread <= shell->written_before;
}

static void ended(struct exec *exec, void *owner, const struct exec_result *result)
{
    struct session_shell *shell = owner;

    shell->exec = NULL;
    if (result->error == -ENOENT && result->stage == LAUNCH_STAGE_PROGRAM && !shell->pid &&
        !shell->killed && shell->candidate + 1 < ARRAY_COUNT(candidates)) {
        shell->candidate++;
        if (launch(shell) == 0)
            return;
    }
    exec_cancel(exec);   /* what it left behind ends with the shell */
    read_channel(shell); /* its last report may still be there */
    shell->untouched = is_untouched(shell);
    shell->ended = true;
    shell->result = *result;
    if (!shell->reported)
        count_output(shell);
    read_what_is_left(shell);
    settle_soon(shell);
}

static const struct exec_events exec_events = {
    .on_start = started,
    .on_output = wrote,
    .on_end = ended,
};

static int launch(struct session_shell *shell)
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
        [LINE_INPUT] = input_ready,
        [LINE_STDOUT] = output_ready,
        [LINE_STDERR] = output_ready,
        [LINE_CHANNEL] = channel_ready,
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
    loop_task_init(&shell->settle, settle);
    deadline_init(&agent->loop, &shell->doubt, doubt_due);
    shell->handles = 1;
    for (size_t i = 0; i < LINES; i++) {
        shell->theirs[i] = -EBADF;
        shell->lines[i].shell = shell;
    }
    for (size_t i = 0; i < LINES && r == 0; i++)
        r = open_line(shell, (enum line) i);
    if (r == 0)
        r = launch(shell);
    if (r == 0)
        return shell;
    close_all(shell);
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
