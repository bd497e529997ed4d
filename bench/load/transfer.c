#include "load/transfer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/memory.h"
#include "load/exchange.h"
#include "load/fail.h"
#include "load/response.h"

#define PIECE_SIZE  (256u << 10)
#define EVENTS_MAX  64
#define WAIT_MAX_MS 30000
#define NANOSECONDS 1000000000ull

struct transfer {
    int fd; /* owned */
    bool active;
    uint64_t head_left; /* of the request, still to send */
    uint64_t body_left;
    struct response response;
};

struct run {
    const struct load_options *options; /* borrowed: outlives us */
    int poll_fd;                        /* owned */
    bool upload;
    uint64_t deadline_ns;
    unsigned active;
    uint64_t transfers;
    uint64_t bytes;
    size_t head_length;
    char head[EXCHANGE_REQUEST_MAX];
    char *piece; /* owned: PIECE_SIZE bytes to send from or read into */
};

static uint64_t now_ns(void)
{
    return clock_monotonic_ns(clock_system());
}

/* Wait for the response always, for room to send only while something is left. */
static void watch(struct run *run, struct transfer *transfer, int operation)
{
    bool sending = transfer->head_left || transfer->body_left;
    struct epoll_event event = {
        .events = EPOLLIN | (sending ? EPOLLOUT : 0),
        .data.ptr = transfer,
    };

    if (epoll_ctl(run->poll_fd, operation, transfer->fd, &event) < 0)
        fail("watch a connection: %s", strerror(errno));
}

static void begin(struct run *run, struct transfer *transfer)
{
    response_begin(&transfer->response);
    transfer->head_left = run->head_length;
    transfer->body_left = run->upload ? run->options->bytes : 0;
}

static void finish(struct run *run, struct transfer *transfer)
{
    int status = transfer->response.status;

    if (status < 200 || status > 299)
        fail("%s answered %d", run->options->path, status);
    if (transfer->head_left || transfer->body_left)
        fail("%s answered before it had the whole body", run->options->path);
    run->transfers++;
    run->bytes += run->upload ? run->options->bytes : transfer->response.body_bytes;
    if (now_ns() < run->deadline_ns) {
        begin(run, transfer);
        watch(run, transfer, EPOLL_CTL_MOD);
        return;
    }
    transfer->active = false;
    run->active--;
}

static ssize_t send_piece(const struct run *run, struct transfer *transfer)
{
    if (transfer->head_left) {
        size_t done = run->head_length - transfer->head_left;

        return send(transfer->fd, run->head + done, transfer->head_left,
                    MSG_NOSIGNAL | (transfer->body_left ? MSG_MORE : 0));
    }
    return send(transfer->fd, run->piece,
                transfer->body_left < PIECE_SIZE ? transfer->body_left : PIECE_SIZE, MSG_NOSIGNAL);
}

static void on_writable(struct run *run, struct transfer *transfer)
{
    while (transfer->head_left || transfer->body_left) {
        ssize_t sent = send_piece(run, transfer);

        if (sent < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (sent < 0)
            fail("send to %s: %s", run->options->path, strerror(errno));
        if (transfer->head_left)
            transfer->head_left -= (uint64_t) sent;
        else
            transfer->body_left -= (uint64_t) sent;
    }
    watch(run, transfer, EPOLL_CTL_MOD);
}

/* Body bytes are dropped in the kernel (MSG_TRUNC of TCP): copying them would only slow the
 * client. At most a piece at a time, so that the connections take turns. */
static ssize_t receive(struct run *run, struct transfer *transfer)
{
    uint64_t skip = response_skippable(&transfer->response);
    ssize_t received;

    if (skip && run->options->target.address.ss_family == AF_INET) {
        // cppcheck-suppress nullPointer // nothing is stored with MSG_TRUNC
        received = recv(transfer->fd, NULL, skip < PIECE_SIZE ? skip : PIECE_SIZE, MSG_TRUNC);
        if (received > 0)
            response_skip(&transfer->response, (uint64_t) received);
        return received;
    }
    received = recv(transfer->fd, run->piece, PIECE_SIZE, 0);
    if (received > 0 &&
        response_feed(&transfer->response, run->piece, (size_t) received) != received)
        fail("%s answered something that is not one HTTP response", run->options->path);
    return received;
}

static void on_readable(struct run *run, struct transfer *transfer)
{
    ssize_t received = receive(run, transfer);

    if (received < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (received <= 0)
        fail("%s: %s", run->options->path,
             received == 0 ? "connection closed early" : strerror(errno));
    if (response_is_done(&transfer->response))
        finish(run, transfer);
}

static void on_event(struct run *run, const struct epoll_event *event)
{
    struct transfer *transfer = event->data.ptr;

    if (!transfer->active)
        return;
    if (event->events & EPOLLOUT)
        on_writable(run, transfer);
    if (event->events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        on_readable(run, transfer);
}

static void write_head(struct run *run)
{
    int length;

    if (!run->upload) {
        run->head_length = exchange_write_get(run->options, run->head);
        return;
    }
    length = snprintf(run->head, sizeof(run->head),
                      "PUT %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %" PRIu64 "\r\n\r\n",
                      run->options->path, run->options->bytes);
    if (length < 0 || (size_t) length >= sizeof(run->head))
        fail("the path is too long");
    run->head_length = (size_t) length;
}

static void open_all(struct run *run, struct transfer *transfers)
{
    for (unsigned i = 0; i < run->options->connections; i++) {
        struct transfer *transfer = &transfers[i];
        int r;

        transfer->fd = target_connect(&run->options->target, i);
        r = transfer->fd < 0 ? transfer->fd : target_unblock(transfer->fd);
        if (r < 0)
            fail("connect to %s: %s", run->options->target.text, strerror(-r));
        transfer->active = true;
        begin(run, transfer);
        watch(run, transfer, EPOLL_CTL_ADD);
        run->active++;
    }
}

static void serve_all(struct run *run)
{
    struct epoll_event events[EVENTS_MAX];

    while (run->active) {
        int count = epoll_wait(run->poll_fd, events, EVENTS_MAX, WAIT_MAX_MS);

        if (count == 0)
            fail("nothing moved for %d s", WAIT_MAX_MS / 1000);
        if (count < 0 && errno != EINTR)
            fail("wait: %s", strerror(errno));
        for (int i = 0; i < count; i++)
            on_event(run, &events[i]);
    }
}

static void transfer_run(const struct load_options *options, bool upload)
{
    AUTO(free)
    struct transfer *transfers = mem_alloc_array(options->connections, sizeof(*transfers));
    AUTO(free) char *piece = mem_alloc(PIECE_SIZE);
    AUTO(close) int poll_fd = epoll_create1(EPOLL_CLOEXEC);
    uint64_t start = now_ns();
    struct run run = {
        .options = options,
        .poll_fd = poll_fd,
        .upload = upload,
        .deadline_ns = start + options->milliseconds * 1000000,
        .piece = piece,
    };

    if (poll_fd < 0)
        fail("epoll: %s", strerror(errno));
    write_head(&run);
    open_all(&run, transfers);
    serve_all(&run);
    printf("{\"transfers\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"seconds\":%.6f}\n", run.transfers,
           run.bytes, (double) (now_ns() - start) / (double) NANOSECONDS);
    for (unsigned i = 0; i < options->connections; i++)
        target_reset(transfers[i].fd);
}

void transfer_download(const struct load_options *options)
{
    transfer_run(options, false);
}

void transfer_upload(const struct load_options *options)
{
    transfer_run(options, true);
}
