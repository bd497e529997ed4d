#include "agent/code/code_process.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/exec/process_tree.h"
#include "agent/watch.h"
#include "base/memory.h"
#include "json/json_write.h"
#include "net/stream.h"
#include "sys/file/sys_file.h"
#include "sys/network/sys_socket.h"
#include "sys/process/sys_process.h"

#define READ_SIZE ((size_t) 64 * 1024)
/* Environment and directory, should every byte need six. */
#define SETUP_MAX ((size_t) 8 * 1024 * 1024)

struct code_pipe {
    struct watch watch;
    struct code_process *process;
};

struct code_process {
    struct agent *agent;
    struct code_server *server; /* borrowed; NULL: the process is an exec of its own */
    const struct code_process_events *events;
    void *owner;
    struct exec *exec; /* NULL: it has ended, or is a child of the server's */
    struct stream *channel;
    struct code_pipe output[EXEC_OUTPUTS];
    struct watch death; /* of its pidfd: readable when it has ended */
    struct text line;   /* what came of a frame, and perhaps of others behind it */
    size_t scanned;     /* bytes of it without a newline */
    struct loop_task go_on;
    pid_t pid; /* 0: not known */
    int handles;
    bool is_ready : 1;
    bool paused : 1;
    bool ended : 1;   /* the channel's other end was closed */
    bool closing : 1; /* the owner knows no more of it */
};

/* --- memory ---------------------------------------------------------------------------------- */

static void handle_gone(struct code_process *process)
{
    if (--process->handles)
        return;
    text_done(&process->line);
    free(process);
}

static void pipe_gone(struct watch *watch)
{
    handle_gone(CONTAINER_OF(watch, struct code_pipe, watch)->process);
}

static void death_gone(struct watch *watch)
{
    handle_gone(CONTAINER_OF(watch, struct code_process, death));
}

static void channel_gone(struct stream *stream)
{
    struct code_process *process = stream->owner;

    stream_free(stream);
    handle_gone(process);
}

/* Handles close in a later turn and keep it until then, so whoever is in the middle of it may go
 * on. */
static void close_all(struct code_process *process)
{
    process->closing = true;
    if (process->exec)
        exec_cancel(process->exec);
    process->exec = NULL;
    if (process->server)
        code_server_let_go(process->server);
    loop_task_cancel(&process->go_on);
    for (size_t i = 0; i < EXEC_OUTPUTS; i++)
        watch_close(&process->output[i].watch);
    watch_close(&process->death);
    if (process->channel)
        stream_close(process->channel, channel_gone);
}

/* --- signals --------------------------------------------------------------------------------- */

/* The pid is its own until it was reaped, and then so is its group's number while one is left. */
static bool is_alive(const struct code_process *process)
{
    return process->pid && process->death.open && sys_process_kill(process->death.fd, 0) == 0;
}

void code_process_interrupt(struct code_process *process)
{
    if (process->exec)
        exec_signal(process->exec, SIGINT);
    else if (is_alive(process))
        (void) kill(-process->pid, SIGINT); /* it may end meanwhile */
}

bool code_process_has_exec(const struct code_process *process)
{
    return process->exec != NULL;
}

/* What the server's child leaves in other sessions dies with the sandbox. */
static void kill_forked(struct code_process *process)
{
    if (!is_alive(process))
        return;
    (void) process_tree_signal(process->pid, SIGKILL); /* without /proc its group is all we know */
    (void) kill(-process->pid, SIGKILL);
}

void code_process_kill(struct code_process *process)
{
    if (process->closing)
        return;
    if (!process->exec)
        kill_forked(process);
    close_all(process);
}

static void end(struct code_process *process, int error)
{
    if (process->closing)
        return;
    process->events->on_end(process, process->owner, process->is_ready ? 0 : error);
    code_process_kill(process); /* it may have closed its channel and live on */
}

/* --- output ---------------------------------------------------------------------------------- */

static void read_output(struct code_process *process, size_t which, size_t most)
{
    struct watch *watch = &process->output[which].watch;
    char *buffer = process->agent->loop.scratch;
    ssize_t got = read(watch->fd, buffer, most < READ_SIZE ? most : READ_SIZE);

    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        watch_close(watch);
    else if (got > 0)
        process->events->on_output(process, process->owner, (enum exec_output) which, buffer,
                                   (size_t) got);
}

static void output_ready(struct watch *watch)
{
    struct code_pipe *pipe = CONTAINER_OF(watch, struct code_pipe, watch);

    read_output(pipe->process, (size_t) (pipe - pipe->process->output), READ_SIZE);
}

/* All that was written until now, and no more: somebody may be writing for ever. */
static void drain_output(struct code_process *process)
{
    for (size_t i = 0; i < EXEC_OUTPUTS; i++) {
        struct watch *watch = &process->output[i].watch;
        int waiting = 0;

        if (!watch->open || ioctl(watch->fd, FIONREAD, &waiting) < 0)
            continue;
        for (size_t left = (size_t) waiting; left && watch->open; left -= MIN(left, READ_SIZE))
            read_output(process, i, left);
    }
}

static void watch_outputs(struct code_process *process)
{
    for (size_t i = 0; i < EXEC_OUTPUTS; i++) {
        if (process->output[i].watch.open)
            watch_for(&process->output[i].watch, process->paused ? 0 : UV_READABLE);
    }
}

/* --- frames ---------------------------------------------------------------------------------- */

static void death_ready(struct watch *watch)
{
    struct code_process *process = CONTAINER_OF(watch, struct code_process, death);

    watch_for(watch, 0);
    process->ended = true;
    loop_defer(&process->agent->loop, &process->go_on);
}

/* The pid is what the process says of itself: it could as well send the signals it would make us
 * send. */
static void become_ready(struct code_process *process, pid_t pid)
{
    int fd;

    if (process->is_ready)
        return;
    process->is_ready = true;
    if (!process->exec && pid != getpid()) {
        fd = sys_process_open(pid);
        if (fd >= 0 &&
            watch_init(&process->death, &process->agent->loop, fd, death_ready, death_gone) == 0) {
            process->handles++;
            process->pid = pid;
            watch_for(&process->death, UV_READABLE);
        } else if (fd >= 0) {
            (void) fd_close(fd);
        }
    }
    process->events->on_ready(process, process->owner);
}

static void take_frame(struct code_process *process, const char *line, size_t length)
{
    AUTO(code_frame) struct code_frame frame = {.type = CODE_FRAME_END};

    if (code_frame_read(line, length, &frame) < 0) {
        end(process, -EPROTO);
        return;
    }
    if (frame.type == CODE_FRAME_READY) {
        become_ready(process, frame.pid);
    } else if (frame.type == CODE_FRAME_FAILED) {
        end(process, frame.error);
    } else if (process->is_ready) {
        drain_output(process);
        if (!process->closing)
            process->events->on_frame(process, process->owner, &frame);
    } else {
        end(process, -EPROTO);
    }
}

/* Take what is complete, until somebody has to wait. */
static void take_frames(struct code_process *process)
{
    struct text *line = &process->line;
    size_t from = 0;

    while (!process->paused && !process->closing) {
        const char *start = text_string(line) + from;
        const char *newline =
            memchr(start + process->scanned, '\n', line->length - from - process->scanned);

        if (!newline) {
            process->scanned = line->length - from;
            break;
        }
        from += (size_t) (newline - start) + 1;
        process->scanned = 0;
        take_frame(process, start, (size_t) (newline - start));
    }
    text_consume(line, from);
    if (!line->length)
        text_done(line); /* a large result is not kept for ever */
    if (!process->closing && (line->overflowed || process->scanned > CODE_FRAME_MAX))
        end(process, -EMSGSIZE);
    if (!process->closing && !process->paused && process->ended) {
        drain_output(process);
        end(process, 0);
    }
}

static void go_on(struct loop_task *task)
{
    struct code_process *process = CONTAINER_OF(task, struct code_process, go_on);

    take_frames(process);
}

static void channel_data(struct stream *stream, const char *bytes, size_t length)
{
    struct code_process *process = stream->owner;

    text_append_bytes(&process->line, bytes, length);
    take_frames(process);
}

static void channel_end(struct stream *stream)
{
    struct code_process *process = stream->owner;

    process->ended = true;
    loop_defer(&process->agent->loop, &process->go_on);
}

static void channel_failure(struct stream *stream, int error)
{
    (void) error;
    channel_end(stream);
}

static const struct stream_events channel_events = {
    .on_data = channel_data,
    .on_end = channel_end,
    .on_failure = channel_failure,
};

void code_process_send(struct code_process *process, const char *line, size_t length)
{
    stream_write(process->channel, line, length);
    stream_write(process->channel, "\n", 1);
}

void code_process_pause(struct code_process *process)
{
    process->paused = true;
    watch_outputs(process);
    stream_pause(process->channel);
}

void code_process_resume(struct code_process *process)
{
    if (!process->paused)
        return;
    process->paused = false;
    watch_outputs(process);
    stream_resume(process->channel);
    loop_defer(&process->agent->loop, &process->go_on);
}

/* --- an exec of its own ---------------------------------------------------------------------- */

static void exec_started(struct exec *exec, void *owner)
{
    (void) exec; /* it says so itself */
    (void) owner;
}

static void exec_wrote(struct exec *exec, void *owner, enum exec_output which, const char *bytes,
                       size_t length)
{
    (void) exec; /* the pipes are ours */
    (void) owner;
    (void) which;
    (void) bytes;
    (void) length;
}

static void exec_ended(struct exec *exec, void *owner, const struct exec_result *result)
{
    struct code_process *process = owner;

    (void) exec;
    process->exec = NULL;
    process->ended = true;
    if (result->error && !process->is_ready)
        end(process, result->error);
    else
        loop_defer(&process->agent->loop, &process->go_on);
}

static const struct exec_events exec_events = {
    .on_start = exec_started,
    .on_output = exec_wrote,
    .on_end = exec_ended,
};

/* --- starting -------------------------------------------------------------------------------- */

struct ends {
    int ours[CODE_DESCRIPTORS];
    int theirs[CODE_DESCRIPTORS];
};

static void ends_done(struct ends *ends)
{
    for (size_t i = 0; i < CODE_DESCRIPTORS; i++) {
        ends->ours[i] = fd_close(ends->ours[i]);
        ends->theirs[i] = fd_close(ends->theirs[i]);
    }
}

AUTO_DEFINE(ends, struct ends, ends_done);

static int make_ends(struct ends *ends)
{
    int pair[2];
    int r = sys_socket_pair(SOCK_STREAM, pair);

    for (size_t i = 0; i < CODE_DESCRIPTORS; i++)
        ends->ours[i] = ends->theirs[i] = -EBADF;
    for (size_t i = 0; r == 0 && i < CODE_DESCRIPTORS; i++) {
        if (i != CODE_CHANNEL && pipe2(pair, O_CLOEXEC) < 0)
            return -errno;
        ends->ours[i] = pair[0];
        ends->theirs[i] = pair[1];
        r = sys_file_set_nonblocking(ends->ours[i], true);
    }
    return r;
}

static int open_channel(struct code_process *process, struct ends *ends)
{
    AUTO(free) struct stream *channel = mem_alloc(sizeof(*channel));
    int r = stream_init(channel, &process->agent->loop, ends->ours[CODE_CHANNEL], NULL, false,
                        &channel_events);

    if (r < 0)
        return r;
    (void) TAKE_FD(ends->ours[CODE_CHANNEL]);
    process->channel = TAKE_PTR(channel);
    process->channel->owner = process;
    process->handles++;
    return 0;
}

static int open_ends(struct code_process *process, struct ends *ends)
{
    int r = open_channel(process, ends);

    for (size_t i = 0; r == 0 && i < EXEC_OUTPUTS; i++) {
        struct code_pipe *pipe = &process->output[i];

        pipe->process = process;
        r = watch_init(&pipe->watch, &process->agent->loop, ends->ours[CODE_STDOUT + i],
                       output_ready, pipe_gone);
        if (r == 0) {
            (void) TAKE_FD(ends->ours[CODE_STDOUT + i]);
            process->handles++;
        }
    }
    return r;
}

/* Where and with what a child of the server's runs. */
static int send_place(struct code_process *process, const struct code_place *place)
{
    AUTO(text) struct text line = TEXT_INIT(SETUP_MAX);
    struct json_writer json;
    int r;

    json_document_begin(&json, &line);
    json_add_text(&json, "directory", place->directory);
    json_add_boolean(&json, "anyDirectory", place->any_directory);
    json_begin_array_at(&json, "environment");
    for (const char *const *variable = place->environment; *variable; variable++)
        json_put_text(&json, *variable);
    json_end_array(&json);
    json_end_object(&json);
    r = json_writer_finish(&json);
    if (r == 0)
        code_process_send(process, text_string(&line), line.length);
    return r;
}

static int start(struct code_process *process, enum code_interpreter interpreter,
                 const struct code_place *place, const int *theirs)
{
    int r = 0;

    if (process->server) {
        r = code_server_fork(process->server, theirs);
        return r < 0 ? r : send_place(process, place);
    }
    process->exec = code_launch(process->agent, code_program_of(interpreter), place, theirs,
                                &exec_events, process, &r);
    return process->exec ? 0 : r;
}

struct code_process *code_process_start(struct agent *agent, struct code_server *server,
                                        enum code_interpreter interpreter,
                                        const struct code_place *place,
                                        const struct code_process_events *events, void *owner,
                                        int *ret_error)
{
    AUTO(ends) struct ends ends;
    struct code_process *process = mem_alloc(sizeof(*process));
    int r = make_ends(&ends);

    process->agent = agent;
    process->server = interpreter == CODE_PYTHON ? server : NULL;
    process->events = events;
    process->owner = owner;
    process->line = (struct text) TEXT_INIT(CODE_FRAME_MAX + LOOP_SCRATCH_SIZE + 1);
    loop_task_init(&process->go_on, go_on);
    if (process->server)
        code_server_hold(process->server);
    if (r == 0)
        r = open_ends(process, &ends);
    if (r == 0)
        r = start(process, interpreter, place, ends.theirs);
    if (r < 0) {
        process->handles++; /* nothing else may be open */
        close_all(process);
        handle_gone(process);
        *ret_error = r;
        return NULL;
    }
    watch_outputs(process);
    return process;
}
