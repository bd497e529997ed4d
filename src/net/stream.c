#include "net/stream.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"

/* Reads per readable event: enough to fill a fast pipe, few enough to be fair to others. */
#define STREAM_READS_PER_EVENT 4
/* Writes of at least this size on an empty queue go to the kernel at once, without a copy. */
#define STREAM_DIRECT_WRITE_MIN ((size_t) 8 * 1024)
#define STREAM_PARTS_PER_SEND   32

static void stream_ready(uv_poll_t *poll, int status, int events);

static bool is_dead(const struct stream *stream)
{
    return stream->failed || stream->closing;
}

/* Poll for what we can use now. Changing the set costs two system calls in libuv, so it is left
 * alone when nothing changed. */
static void update_watch(struct stream *stream)
{
    int wanted = 0;

    if (!is_dead(stream)) {
        if (!stream->ended && (!stream->paused || (stream->opening && stream->tls)))
            wanted |= UV_READABLE;
        if (stream->blocked || stream->tls_wants_write)
            wanted |= UV_WRITABLE;
    }
    if (wanted == stream->watched)
        return;
    stream->watched = wanted;
    if (wanted)
        (void) uv_poll_start(&stream->poll, wanted, stream_ready);
    else
        (void) uv_poll_stop(&stream->poll);
}

static void fail(struct stream *stream, int error)
{
    if (is_dead(stream))
        return;
    stream->failed = true;
    loop_task_cancel(&stream->settle);
    update_watch(stream);
    stream->events->on_failure(stream, error);
}

/* Report a failure met in the middle of a caller's stream_write: not now, but this turn. */
static void fail_later(struct stream *stream, int error)
{
    if (!stream->pending_error)
        stream->pending_error = error;
    loop_defer(stream->loop, &stream->settle);
}

/* --- output --------------------------------------------------------------------------------- */

static ssize_t send_parts(struct stream *stream, struct iovec *parts, int count)
{
    ssize_t sent;

    if (stream->tls) {
        sent = tls_write(stream->tls, parts[0].iov_base, parts[0].iov_len);
    } else {
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t) count};

        do
            sent = sendmsg(stream->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (sent < 0 && errno == EINTR);
        if (sent < 0)
            sent = -errno;
    }
    if (sent > 0)
        stream->bytes_sent += (uint64_t) sent;
    stream->blocked = sent == -EAGAIN;
    return sent;
}

static void send_our_end(struct stream *stream)
{
    if (stream->tls && tls_shut(stream->tls) == -EAGAIN) {
        stream->blocked = true; /* without close-notify our end would look like a cut */
        return;
    }
    stream->shut_done = true;
    (void) shutdown(stream->fd, SHUT_WR); /* fails only when the peer is gone already */
    if (stream->events->on_shut)
        stream->events->on_shut(stream);
}

static void tell_drained(struct stream *stream)
{
    if (!stream->full || byte_queue_length(&stream->output) > STREAM_LOW_WATER)
        return;
    stream->full = false;
    if (stream->events->on_drain)
        stream->events->on_drain(stream);
}

static void send_queue(struct stream *stream)
{
    struct iovec parts[STREAM_PARTS_PER_SEND];

    while (byte_queue_length(&stream->output)) {
        int count = byte_queue_peek(&stream->output, parts, STREAM_PARTS_PER_SEND);
        ssize_t sent = send_parts(stream, parts, count);

        if (sent == -EAGAIN)
            break;
        if (sent < 0) {
            fail(stream, (int) sent);
            return;
        }
        byte_queue_consume(&stream->output, (size_t) sent);
    }
    if (!byte_queue_length(&stream->output)) {
        stream->blocked = false;
        if (stream->shut_requested && !stream->shut_done)
            send_our_end(stream);
    }
    if (is_dead(stream))
        return;
    update_watch(stream);
    tell_drained(stream);
}

/* Send what can be sent without queueing; returns how many bytes of the parts left. */
static size_t send_directly(struct stream *stream, const struct iovec *parts, int count)
{
    struct iovec copy[STREAM_PARTS_PER_SEND];
    ssize_t sent;

    if (count > STREAM_PARTS_PER_SEND)
        return 0;
    memcpy(copy, parts, (size_t) count * sizeof(*parts));
    sent = send_parts(stream, copy, count);
    if (sent >= 0)
        return (size_t) sent;
    if (sent != -EAGAIN)
        fail_later(stream, (int) sent);
    return 0;
}

static void queue_rest(struct stream *stream, const struct iovec *parts, int count, size_t skip)
{
    for (int i = 0; i < count; i++) {
        size_t length = parts[i].iov_len;
        size_t skipped = skip < length ? skip : length;

        skip -= skipped;
        if (length > skipped)
            byte_queue_append(&stream->output, (char *) parts[i].iov_base + skipped,
                              length - skipped);
    }
}

void stream_write_parts(struct stream *stream, const struct iovec *parts, int count)
{
    size_t total = 0, sent = 0;

    if (is_dead(stream) || stream->shut_requested || stream->pending_error)
        return;
    for (int i = 0; i < count; i++)
        total += parts[i].iov_len;
    if (!stream->opening && !byte_queue_length(&stream->output) && !stream->tls &&
        total >= STREAM_DIRECT_WRITE_MIN)
        sent = send_directly(stream, parts, count);
    if (sent == total)
        return;
    if (byte_queue_length(&stream->output) + (total - sent) > STREAM_QUEUE_MAX) {
        fail_later(stream, -ENOBUFS);
        return;
    }
    queue_rest(stream, parts, count, sent);
    if (byte_queue_length(&stream->output) >= STREAM_HIGH_WATER)
        stream->full = true;
    if (!stream->opening)
        loop_defer(stream->loop, &stream->settle);
}

void stream_write(struct stream *stream, const void *bytes, size_t length)
{
    struct iovec part = {.iov_base = (void *) (uintptr_t) bytes, .iov_len = length};

    stream_write_parts(stream, &part, 1);
}

void stream_shut_write(struct stream *stream)
{
    if (is_dead(stream) || stream->shut_requested)
        return;
    stream->shut_requested = true;
    if (!stream->opening)
        loop_defer(stream->loop, &stream->settle);
}

/* --- input ---------------------------------------------------------------------------------- */

static ssize_t receive(struct stream *stream)
{
    ssize_t got;

    if (stream->tls) {
        bool wants_write = false;

        got = tls_read(stream->tls, stream->loop->scratch, LOOP_SCRATCH_SIZE, &wants_write);
        stream->tls_wants_write = wants_write;
        return got;
    }
    do
        got = recv(stream->fd, stream->loop->scratch, LOOP_SCRATCH_SIZE, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

static void read_some(struct stream *stream)
{
    for (int i = 0; i < STREAM_READS_PER_EVENT; i++) {
        ssize_t got;

        if (is_dead(stream) || stream->paused || stream->ended)
            return;
        got = receive(stream);
        if (got == -EAGAIN)
            break;
        if (got < 0) {
            fail(stream, (int) got);
            return;
        }
        if (got == 0) {
            stream->ended = true;
            update_watch(stream);
            stream->events->on_end(stream);
            return;
        }
        stream->bytes_received += (uint64_t) got;
        stream->events->on_data(stream, stream->loop->scratch, (size_t) got);
        if (got < LOOP_SCRATCH_SIZE && !stream->tls)
            return; /* a short read means the socket is empty */
    }
    if (is_dead(stream))
        return;
    if (stream->tls && tls_pending(stream->tls))
        loop_defer(stream->loop, &stream->settle); /* poll does not see bytes inside OpenSSL */
    update_watch(stream);
}

void stream_pause(struct stream *stream)
{
    stream->paused = true;
    update_watch(stream);
}

void stream_resume(struct stream *stream)
{
    if (!stream->paused)
        return;
    stream->paused = false;
    update_watch(stream);
    if (stream->tls && !is_dead(stream) && tls_pending(stream->tls))
        loop_defer(stream->loop, &stream->settle);
}

/* --- life ----------------------------------------------------------------------------------- */

static void opened(struct stream *stream)
{
    stream->opening = false;
    stream->blocked = false;
    stream->tls_wants_write = false;
    update_watch(stream);
    if (stream->events->on_open)
        stream->events->on_open(stream);
    if (!is_dead(stream) && (byte_queue_length(&stream->output) || stream->shut_requested))
        loop_defer(stream->loop, &stream->settle);
}

static void shake_hands(struct stream *stream)
{
    bool wants_write = false;
    int r = tls_handshake(stream->tls, &wants_write);

    if (r == -EAGAIN) {
        stream->blocked = wants_write;
        update_watch(stream);
    } else if (r < 0) {
        fail(stream, r);
    } else {
        opened(stream);
    }
}

static int socket_error(const struct stream *stream)
{
    int error = 0;
    socklen_t size = sizeof(error);

    if (getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
        return -errno;
    return -error;
}

/* Connecting ends when the socket becomes writable; then TLS has its turn. */
static void continue_opening(struct stream *stream)
{
    int error = socket_error(stream);

    if (error < 0)
        fail(stream, error);
    else if (stream->tls)
        shake_hands(stream);
    else
        opened(stream);
}

static void stream_ready(uv_poll_t *poll, int status, int events)
{
    struct stream *stream = poll->data;

    if (status < 0) { /* libuv stops the handle on POLLERR and says EBADF; the socket knows more */
        int error = socket_error(stream);

        stream->watched = 0;
        fail(stream, error < 0 ? error : -ECONNRESET);
        return;
    }
    if (stream->opening) {
        continue_opening(stream);
        if (stream->opening || is_dead(stream))
            return;
    }
    if (events & UV_WRITABLE) {
        stream->blocked = false;
        if (stream->tls_wants_write)
            events |= UV_READABLE;
        stream->tls_wants_write = false;
        send_queue(stream);
    }
    if (events & UV_READABLE)
        read_some(stream);
}

static void settle(struct loop_task *task)
{
    struct stream *stream = CONTAINER_OF(task, struct stream, settle);

    if (is_dead(stream))
        return;
    if (stream->pending_error) {
        fail(stream, stream->pending_error);
        return;
    }
    if (stream->blocked)
        update_watch(stream); /* a direct write may have met a full socket */
    else
        send_queue(stream);
    if (stream->tls && !is_dead(stream) && !stream->paused && tls_pending(stream->tls))
        read_some(stream);
}

int stream_init(struct stream *stream, struct loop *loop, int fd, struct tls *tls, bool connecting,
                const struct stream_events *events)
{
    int r;

    *stream = (struct stream){.loop = loop, .events = events, .fd = fd};
    r = tls ? tls_attach(tls, fd) : 0;
    if (r < 0)
        return r;
    r = uv_poll_init(&loop->uv, &stream->poll, fd);
    if (r < 0)
        return r;
    stream->poll.data = stream;
    stream->tls = tls;
    stream->opening = connecting || tls;
    stream->blocked = stream->opening; /* the first writable event carries on, never this call */
    byte_queue_init(&stream->output, loop->blocks);
    loop_task_init(&stream->settle, settle);
    update_watch(stream);
    return 0;
}

int stream_secure(struct stream *stream, struct tls *tls)
{
    int r = tls_attach(tls, stream->fd);

    if (r < 0)
        return r;
    stream->tls = tls;
    stream->opening = true;
    stream->blocked = true; /* as in stream_init */
    stream->paused = false;
    update_watch(stream);
    return 0;
}

void stream_set_owner(struct stream *stream, void *owner, const struct stream_events *events)
{
    stream->owner = owner;
    stream->events = events;
}

void stream_free(struct stream *stream)
{
    free(stream);
}

static void handle_closed(uv_handle_t *handle)
{
    struct stream *stream = handle->data;

    if (stream->on_closed)
        stream->on_closed(stream);
}

void stream_close(struct stream *stream, void (*on_closed)(struct stream *stream))
{
    if (stream->closing)
        return;
    stream->closing = true;
    stream->on_closed = on_closed;
    loop_task_cancel(&stream->settle);
    (void) uv_poll_stop(&stream->poll);
    byte_queue_done(&stream->output);
    if (stream->tls)
        tls_free(TAKE_PTR(stream->tls));
    uv_close((uv_handle_t *) &stream->poll, handle_closed);
    stream->fd = fd_close(stream->fd);
}
