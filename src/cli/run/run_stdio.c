#include "cli/run/run_stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/auto.h"
#include "sys/file/sys_file.h"

#define PARTS_PER_WRITE 16
/* "/proc/self/fd/2147483647" and its NUL */
#define PATH_SIZE 32

/* --- both ----------------------------------------------------------------------------------- */

static void poll_ready(uv_poll_t *poll, int status, int events)
{
    struct run_stdio *stdio = poll->data;

    (void) events;
    if (status < 0)
        stdio->wanted = 0; /* libuv has stopped: an error, which the next read or write tells */
    stdio->on_ready(stdio);
}

static void task_ready(struct loop_task *task)
{
    struct run_stdio *stdio = CONTAINER_OF(task, struct run_stdio, task);

    if (stdio->wanted && stdio->fd >= 0)
        stdio->on_ready(stdio);
    if (stdio->wanted && stdio->fd >= 0)
        loop_defer(stdio->loop, &stdio->task);
}

static void want(struct run_stdio *stdio, int events)
{
    if (stdio->fd < 0 || stdio->wanted == events)
        return;
    stdio->wanted = events;
    if (stdio->always_ready && events)
        loop_defer(stdio->loop, &stdio->task);
    else if (!stdio->always_ready && events)
        (void) uv_poll_start(&stdio->poll, events, poll_ready); /* fails on closing handles only */
    else if (!stdio->always_ready)
        (void) uv_poll_stop(&stdio->poll);
}

/* A descriptor of its own for the same thing, or at least a number of its own. */
static int open_again(struct run_stdio *stdio, int access)
{
    char path[PATH_SIZE];
    struct stat status;
    int copy;

    if (fstat(stdio->original, &status) < 0)
        return -errno;
    stdio->flags = -EINVAL;
    if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) {
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", stdio->original);
        copy = sys_file_open(AT_FDCWD, path, access | O_NONBLOCK | O_NOCTTY, 0);
        if (copy >= 0)
            return copy;
    }
    if (!S_ISREG(status.st_mode))
        stdio->flags = fcntl(stdio->original, F_GETFL);
    copy = fcntl(stdio->original, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return copy < 0 ? -errno : copy;
}

static int stdio_init(struct run_stdio *stdio, struct loop *loop, int fd, int access)
{
    int r;

    stdio->loop = loop;
    stdio->original = fd;
    loop_task_init(&stdio->task, task_ready);
    stdio->fd = open_again(stdio, access);
    if (stdio->fd < 0)
        return stdio->fd;
    r = uv_poll_init(&loop->uv, &stdio->poll, stdio->fd);
    stdio->always_ready = r == -EPERM; /* epoll does not take files */
    stdio->has_poll = r == 0;
    if (r < 0 && r != -EPERM) {
        stdio->fd = fd_close(stdio->fd);
        return r;
    }
    stdio->poll.data = stdio;
    return 0;
}

static void let_go(struct run_stdio *stdio)
{
    want(stdio, 0);
    loop_task_cancel(&stdio->task);
    if (stdio->fd >= 0 && stdio->flags >= 0)
        (void) fcntl(stdio->fd, F_SETFL, stdio->flags);
}

static void run_stdio_handle_closed(uv_handle_t *handle)
{
    struct run_stdio *stdio = handle->data;

    stdio->on_closed(stdio);
}

static void closed_at_once(struct loop_task *task)
{
    struct run_stdio *stdio = CONTAINER_OF(task, struct run_stdio, task);

    stdio->on_closed(stdio);
}

static void stdio_close(struct run_stdio *stdio)
{
    let_go(stdio);
    if (stdio->has_poll) {
        uv_close((uv_handle_t *) &stdio->poll, run_stdio_handle_closed);
    } else {
        loop_task_init(&stdio->task, closed_at_once);
        loop_defer(stdio->loop, &stdio->task);
    }
    stdio->fd = fd_close(stdio->fd);
}

/* --- sources -------------------------------------------------------------------------------- */

static void source_ready(struct run_stdio *stdio)
{
    struct run_source *source = CONTAINER_OF(stdio, struct run_source, stdio);

    source->on_ready(source);
}

int run_source_init(struct run_source *source, struct loop *loop, int fd,
                    void (*on_ready)(struct run_source *source))
{
    *source = (struct run_source){.stdio = {.on_ready = source_ready}, .on_ready = on_ready};
    return stdio_init(&source->stdio, loop, fd, O_RDONLY);
}

void run_source_want(struct run_source *source, bool wanted)
{
    want(&source->stdio, wanted ? UV_READABLE : 0);
}

ssize_t run_source_read(struct run_source *source, void *buffer, size_t size)
{
    ssize_t got;

    if (source->stdio.fd < 0)
        return -EBADF;
    do
        got = read(source->stdio.fd, buffer, size);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

void run_source_shut(struct run_source *source)
{
    struct run_stdio *stdio = &source->stdio;
    AUTO(close) int nothing = sys_file_open(AT_FDCWD, "/dev/null", O_RDONLY, 0);

    let_go(stdio);
    if (nothing >= 0)
        (void) dup2(nothing, stdio->original);
    /* The poll's number must stay taken until the handle is closed. */
    if (nothing >= 0 && stdio->fd >= 0)
        (void) dup3(nothing, stdio->fd, O_CLOEXEC);
    stdio->flags = -EINVAL;
}

static void source_closed(struct run_stdio *stdio)
{
    struct run_source *source = CONTAINER_OF(stdio, struct run_source, stdio);

    source->on_closed(source);
}

void run_source_close(struct run_source *source, void (*on_closed)(struct run_source *source))
{
    source->on_closed = on_closed;
    source->stdio.on_closed = source_closed;
    stdio_close(&source->stdio);
}

/* --- sinks ---------------------------------------------------------------------------------- */

static void run_stdio_tell_failure(struct loop_task *task)
{
    struct run_sink *sink = CONTAINER_OF(task, struct run_sink, tell);

    sink->on_failure(sink);
}

static void run_stdio_fail(struct run_sink *sink, int error)
{
    sink->error = error;
    sink->full = false;
    byte_queue_done(&sink->queue);
    want(&sink->stdio, 0);
    loop_defer(sink->stdio.loop, &sink->tell);
}

/* As much as goes; then wait for room. Returns whether anything left. */
static bool send_queue(struct run_sink *sink)
{
    bool moved = false;

    while (!sink->error && byte_queue_length(&sink->queue)) {
        struct iovec parts[PARTS_PER_WRITE];
        int count = byte_queue_peek(&sink->queue, parts, PARTS_PER_WRITE);
        ssize_t sent = writev(sink->stdio.fd, parts, count);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN)
            break;
        if (sent < 0) {
            run_stdio_fail(sink, -errno);
            return moved;
        }
        byte_queue_consume(&sink->queue, (size_t) sent);
        moved = true;
    }
    want(&sink->stdio, byte_queue_length(&sink->queue) ? UV_WRITABLE : 0);
    return moved;
}

static void sink_ready(struct run_stdio *stdio)
{
    struct run_sink *sink = CONTAINER_OF(stdio, struct run_sink, stdio);

    if (!send_queue(sink) || sink->error)
        return;
    if (sink->full && byte_queue_length(&sink->queue) <= RUN_SINK_LOW) {
        sink->full = false;
        sink->on_drain(sink);
    }
    if (run_sink_is_empty(sink))
        sink->on_empty(sink);
}

int run_sink_init(struct run_sink *sink, struct loop *loop, int fd)
{
    *sink = (struct run_sink){.stdio = {.on_ready = sink_ready}};
    byte_queue_init(&sink->queue, loop->blocks);
    loop_task_init(&sink->tell, run_stdio_tell_failure);
    return stdio_init(&sink->stdio, loop, fd, O_WRONLY);
}

void run_sink_write(struct run_sink *sink, const void *bytes, size_t length)
{
    if (sink->error || sink->stdio.fd < 0)
        return;
    byte_queue_append(&sink->queue, bytes, length);
    if (!sink->stdio.wanted) /* else there is no room yet */
        (void) send_queue(sink);
    if (byte_queue_length(&sink->queue) >= RUN_SINK_HIGH)
        sink->full = true;
}

static void sink_closed(struct run_stdio *stdio)
{
    struct run_sink *sink = CONTAINER_OF(stdio, struct run_sink, stdio);

    byte_queue_done(&sink->queue);
    sink->on_closed(sink);
}

void run_sink_close(struct run_sink *sink, void (*on_closed)(struct run_sink *sink))
{
    loop_task_cancel(&sink->tell);
    sink->on_closed = on_closed;
    sink->stdio.on_closed = sink_closed;
    stdio_close(&sink->stdio);
}
