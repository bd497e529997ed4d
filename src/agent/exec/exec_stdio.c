/* The pipes of an exec: how its input goes in and its output comes out. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "agent/exec/exec_internal.h"
#include "sys/file/sys_file.h"

/* What a pipe holds: one read empties it. */
#define READ_SIZE ((size_t) 64 * 1024)
/* Reads per event: enough to keep a fast pipe busy, few enough to be fair to others. */
#define READS_PER_EVENT 4
/* More than a pipe holds, at 16 KiB each. */
#define PARTS_PER_WRITE 8

static void pipe_gone(struct watch *watch)
{
    exec_handle_gone(CONTAINER_OF(watch, struct exec_pipe, watch)->exec);
}

/* Watch `*fd`, which becomes the pipe's. */
int exec_pipe_open(struct exec *exec, struct exec_pipe *pipe, int *fd,
                   void (*on_ready)(struct watch *watch), void (*on_gone)(struct watch *watch))
{
    int r = watch_init(&pipe->watch, exec->set->loop, *fd, on_ready, on_gone);

    if (r < 0)
        return r;
    (void) TAKE_FD(*fd);
    pipe->done = false;
    exec->handles++;
    return 0;
}

void exec_pipe_over(struct exec_pipe *pipe)
{
    pipe->done = true;
    watch_close(&pipe->watch);
    exec_settle_soon(pipe->exec);
}

/* Output after the command's end extends the grace, up to a point. */
static void extend_grace(struct exec *exec)
{
    uint64_t now = loop_now(exec->set->loop);

    if (exec->grace_end && exec->timer == TIMER_GRACE && now + EXEC_GRACE_MS < exec->grace_end)
        deadline_set(&exec->deadline, EXEC_GRACE_MS);
}

static void output_ready(struct watch *watch)
{
    struct exec_pipe *pipe = CONTAINER_OF(watch, struct exec_pipe, watch);
    struct exec *exec = pipe->exec;
    enum exec_output which = (enum exec_output)(pipe - exec->output);
    char *buffer = exec->set->loop->scratch;

    for (int i = 0; i < READS_PER_EVENT && watch->open && !exec->paused; i++) {
        ssize_t got = read(watch->fd, buffer, READ_SIZE);

        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            exec_pipe_over(pipe);
            return;
        }
        extend_grace(exec);
        exec->events->on_output(exec, exec->owner, which, buffer, (size_t) got);
        if ((size_t) got < READ_SIZE)
            return; /* empty now, or a writer is at it: poll knows */
    }
}

/* --- input ---------------------------------------------------------------------------------- */

/* Nobody reads (EPIPE, or EIO at a terminal): what waits is for nobody. */
static void input_refused(struct exec *exec)
{
    exec_pipe_over(&exec->input);
    byte_queue_done(&exec->input_bytes);
    if (exec->input_streamed && exec->events->on_input_closed)
        exec->events->on_input_closed(exec, exec->owner);
}

static void input_ready(struct watch *watch)
{
    struct exec *exec = CONTAINER_OF(watch, struct exec_pipe, watch)->exec;
    struct iovec parts[PARTS_PER_WRITE];
    int count = byte_queue_peek(&exec->input_bytes, parts, PARTS_PER_WRITE);
    ssize_t sent = writev(watch->fd, parts, count);

    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (sent < 0) {
        input_refused(exec);
        return;
    }
    byte_queue_consume(&exec->input_bytes, (size_t) sent);
    if (exec->input_streamed && exec->events->on_input)
        exec->events->on_input(exec, exec->owner, (size_t) sent);
    exec_watch_input(exec);
}

void exec_watch_input(struct exec *exec)
{
    bool waiting = byte_queue_length(&exec->input_bytes) > 0;

    if (exec->input_ended && !waiting)
        exec_pipe_over(&exec->input);
    else
        watch_for(&exec->input.watch, waiting ? UV_WRITABLE : 0);
}

void exec_write(struct exec *exec, const void *bytes, size_t length)
{
    if (!length || exec->input_ended || !exec->input.watch.open)
        return;
    byte_queue_append(&exec->input_bytes, bytes, length);
    exec->line_open = ((const char *) bytes)[length - 1] != '\n';
    if (exec->pid)
        exec_watch_input(exec);
}

void exec_end_input(struct exec *exec)
{
    if (exec->terminal_control >= 0)
        exec_end_line(exec);
    else
        exec->input_ended = true;
    if (exec->pid)
        exec_watch_input(exec);
}

/* --- output --------------------------------------------------------------------------------- */

void exec_close_output(struct exec *exec, enum exec_output which)
{
    if (exec->terminal_control < 0)
        exec_pipe_over(&exec->output[which]);
}

void exec_watch_outputs(struct exec *exec)
{
    for (size_t i = 0; i < EXEC_OUTPUTS; i++)
        watch_for(&exec->output[i].watch, exec->paused ? 0 : UV_READABLE);
}

/* --- opening -------------------------------------------------------------------------------- */

static int make_pipe(int *ret_ours, int *ret_theirs, bool we_read)
{
    int ends[2];
    int r;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    *ret_ours = ends[we_read ? 0 : 1];
    *ret_theirs = ends[we_read ? 1 : 0];
    r = sys_file_set_nonblocking(*ret_ours, true);
    if (r < 0) {
        (void) fd_close(*ret_ours);
        return r; /* the other end is closed with all that is given */
    }
    return 0;
}

int exec_duplicate(int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

    return copy < 0 ? -errno : copy;
}

int exec_open_both(struct exec *exec, int *output, int *input)
{
    int r = exec_pipe_open(exec, &exec->output[EXEC_STDOUT], output, output_ready, pipe_gone);

    exec->input_streamed = true;
    return r < 0 ? r : exec_pipe_open(exec, &exec->input, input, input_ready, pipe_gone);
}

static int open_output(struct exec *exec, enum exec_output which)
{
    AUTO(close) int ours = -EBADF;
    int r = make_pipe(&ours, &exec->given[LAUNCH_STDOUT + which], true);

    return r < 0 ? r : exec_pipe_open(exec, &exec->output[which], &ours, output_ready, pipe_gone);
}

static int open_input(struct exec *exec, const struct exec_options *options)
{
    AUTO(close) int ours = -EBADF;
    int r;

    if (!options->input && !options->stream_input) {
        exec->given[LAUNCH_STDIN] = exec_duplicate(exec->set->null);
        return exec->given[LAUNCH_STDIN] < 0 ? exec->given[LAUNCH_STDIN] : 0;
    }
    r = make_pipe(&ours, &exec->given[LAUNCH_STDIN], false);
    if (r < 0 || (!options->input_length && !options->stream_input))
        return r; /* empty: an end without a writer */
    byte_queue_append(&exec->input_bytes, options->input, options->input_length);
    exec->input_streamed = options->stream_input;
    exec->input_ended = !options->stream_input;
    return exec_pipe_open(exec, &exec->input, &ours, input_ready, pipe_gone);
}

int exec_open_stdio(struct exec *exec, const struct exec_options *options)
{
    int r;

    if (options->channel) {
        exec->given[LAUNCH_CHANNEL] = exec_duplicate(options->channel);
        if (exec->given[LAUNCH_CHANNEL] < 0)
            return exec->given[LAUNCH_CHANNEL];
    }
    for (int i = 0; options->descriptors && i < 3; i++) {
        exec->given[LAUNCH_STDIN + i] = exec_duplicate(options->descriptors[i]);
        if (exec->given[LAUNCH_STDIN + i] < 0)
            return exec->given[LAUNCH_STDIN + i];
    }
    if (options->descriptors)
        return 0;
    if (options->terminal)
        return exec_open_terminal(exec, options->terminal);
    r = open_input(exec, options);
    if (r == 0)
        r = open_output(exec, EXEC_STDOUT);
    return r < 0 ? r : open_output(exec, EXEC_STDERR);
}
