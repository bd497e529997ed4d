/* websocket-load: echo messages on many WebSocket connections, one under way on each. Prints
 * {"messages":N,"bytes":N,"seconds":S,"p50_us":…,"p99_us":…}.
 *
 *     websocket-load --target 127.0.0.1:8080 --path /echo --connections 32 --bytes 64
 *
 * A client of its own and no more than the bench needs: it sends whole masked binary frames and
 * takes the echo in one or many frames. Each message carries its number, which must come back;
 * the first of each connection is compared byte by byte. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/memory.h"
#include "load/echo_reader.h"
#include "load/fail.h"
#include "load/histogram.h"
#include "load/options.h"

#define NANOSECONDS     1000000000ull
#define WAIT_MAX_MS     30000
#define EVENTS_MAX      64
#define RECEIVE_SIZE    (128u << 10)
#define MESSAGE_MIN     8 /* room for the number */
#define MESSAGE_MAX     (16u << 20)
#define FRAME_HEAD_MAX  14
#define FRAME_FIN       0x80
#define FRAME_MASKED    0x80
#define FRAME_BINARY    0x02
#define HANDSHAKE_MAX   1024
#define HANDSHAKE_REPLY 4096

static const unsigned char mask_key[4] = {0x3a, 0xc5, 0x5c, 0xa3};

struct connection {
    int fd;               /* owned */
    unsigned char *frame; /* owned: masked and ready to send */
    size_t sent;
    uint64_t number; /* of the message under way */
    uint64_t start_ns;
    struct echo_reader reader;
};

struct run {
    const struct load_options *options; /* borrowed: outlives us */
    int poll_fd;                        /* owned */
    uint64_t deadline_ns;
    unsigned active;
    uint64_t messages;
    size_t head_length; /* of the frame, mask key included */
    size_t frame_length;
    unsigned char *payload; /* owned: the message as it must come back, number aside */
    unsigned char *buffer;  /* owned: RECEIVE_SIZE bytes */
    struct histogram latency;
};

static uint64_t now_ns(void)
{
    return clock_monotonic_ns(clock_system());
}

/* Frame head of RFC 6455 section 5.2. Returns its length with the mask key. */
static size_t write_head(unsigned char *head, uint64_t length)
{
    size_t used = 2;

    head[0] = FRAME_FIN | FRAME_BINARY;
    if (length < 126) {
        head[1] = (unsigned char) (FRAME_MASKED | length);
    } else {
        size_t width = length <= UINT16_MAX ? 2 : 8;

        head[1] = (unsigned char) (FRAME_MASKED | (width == 2 ? 126 : 127));
        for (size_t i = 0; i < width; i++)
            head[used++] = (unsigned char) (length >> (8 * (width - 1 - i)));
    }
    memcpy(head + used, mask_key, sizeof(mask_key));
    return used + sizeof(mask_key);
}

/* Put the next number into the first bytes of the message, masked like the rest. */
static void number_message(const struct run *run, struct connection *connection)
{
    unsigned char bytes[MESSAGE_MIN];

    connection->number++;
    memcpy(bytes, &connection->number, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++)
        connection->frame[run->head_length + i] = bytes[i] ^ mask_key[i % 4];
}

static void watch(const struct run *run, struct connection *connection, int operation, bool sending)
{
    struct epoll_event event = {
        .events = EPOLLIN | (sending ? EPOLLOUT : 0),
        .data.ptr = connection,
    };

    if (epoll_ctl(run->poll_fd, operation, connection->fd, &event) < 0)
        fail("watch a connection: %s", strerror(errno));
}

/* Send what fits. Returns true when the whole frame is out. */
static bool push(const struct run *run, struct connection *connection)
{
    while (connection->sent < run->frame_length) {
        ssize_t sent = send(connection->fd, connection->frame + connection->sent,
                            run->frame_length - connection->sent, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN)
            return false;
        if (sent < 0)
            fail("send: %s", strerror(errno));
        connection->sent += (size_t) sent;
    }
    return true;
}

static void begin(const struct run *run, struct connection *connection)
{
    number_message(run, connection);
    echo_reader_begin(&connection->reader, connection->number == 1 ? run->payload : NULL,
                      run->options->bytes);
    connection->sent = 0;
    connection->start_ns = now_ns();
    if (!push(run, connection))
        watch(run, connection, EPOLL_CTL_MOD, true);
}

static void finish(struct run *run, struct connection *connection)
{
    const struct echo_reader *reader = &connection->reader;
    uint64_t now = now_ns();

    if (reader->number != connection->number || reader->differs)
        fail("the echo differs from what was sent");
    histogram_add(&run->latency, now - connection->start_ns);
    run->messages++;
    if (now < run->deadline_ns)
        begin(run, connection);
    else
        run->active--;
}

static void on_readable(struct run *run, struct connection *connection)
{
    ssize_t received = recv(connection->fd, run->buffer, RECEIVE_SIZE, 0);
    ssize_t used;

    if (received < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (received <= 0)
        fail("receive: %s", received == 0 ? "connection closed" : strerror(errno));
    used = echo_reader_feed(&connection->reader, run->buffer, (size_t) received);
    if (used != received)
        fail("unexpected frame from the server");
    if (connection->reader.done)
        finish(run, connection);
}

static void on_event(struct run *run, const struct epoll_event *event)
{
    struct connection *connection = event->data.ptr;

    if ((event->events & EPOLLOUT) && push(run, connection))
        watch(run, connection, EPOLL_CTL_MOD, false);
    if (event->events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        on_readable(run, connection);
}

/* The answer must be a 101; its accept key is the business of the product's own tests. Read byte
 * by byte, because frames may follow at once. */
static void read_handshake(int fd)
{
    char reply[HANDSHAKE_REPLY] = "";
    size_t length = 0;

    while (!strstr(reply, "\r\n\r\n")) { /* the last byte stays NUL */
        if (length == sizeof(reply) - 1 || recv(fd, reply + length, 1, 0) != 1)
            fail("no answer to the WebSocket handshake");
        length++;
    }
    if (strncmp(reply, "HTTP/1.1 101 ", 13) != 0)
        fail("WebSocket handshake refused: %.*s", (int) strcspn(reply, "\r"), reply);
}

static void shake_hands(const struct load_options *options, int fd)
{
    char request[HANDSHAKE_MAX];
    int length = snprintf(request, sizeof(request),
                          "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
                          "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
                          options->path);

    if (length < 0 || (size_t) length >= sizeof(request))
        fail("the path is too long");
    if (send(fd, request, (size_t) length, MSG_NOSIGNAL) != length)
        fail("send the handshake: %s", strerror(errno));
    read_handshake(fd);
}

static void open_connection(struct run *run, struct connection *connection, unsigned turn)
{
    unsigned char *masked;
    int r;

    connection->fd = target_connect(&run->options->target, turn);
    if (connection->fd < 0)
        fail("connect to %s: %s", run->options->target.text, strerror(-connection->fd));
    shake_hands(run->options, connection->fd);
    r = target_unblock(connection->fd);
    if (r < 0)
        fail("connection %u: %s", turn, strerror(-r));
    connection->frame = mem_alloc(run->frame_length);
    masked = connection->frame + write_head(connection->frame, run->options->bytes);
    for (size_t i = 0; i < run->options->bytes; i++)
        masked[i] = run->payload[i] ^ mask_key[i % 4];
    watch(run, connection, EPOLL_CTL_ADD, false);
    run->active++;
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

static void run_init(struct run *run, const struct load_options *options)
{
    unsigned char head[FRAME_HEAD_MAX];

    run->options = options;
    run->poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (run->poll_fd < 0)
        fail("epoll: %s", strerror(errno));
    run->buffer = mem_alloc(RECEIVE_SIZE);
    run->payload = mem_alloc(options->bytes);
    for (size_t i = 0; i < options->bytes; i++)
        run->payload[i] = (unsigned char) (i * 7 + i / 251);
    run->head_length = write_head(head, options->bytes);
    run->frame_length = run->head_length + options->bytes;
}

static void run_done(struct run *run)
{
    (void) fd_close(run->poll_fd);
    free(run->buffer);
    free(run->payload);
    free(run);
}

static void websocket_run(const struct load_options *options)
{
    struct run *run = mem_alloc(sizeof(*run));
    AUTO(free)
    struct connection *connections = mem_alloc_array(options->connections, sizeof(*connections));
    uint64_t start;
    double seconds;

    run_init(run, options);
    for (unsigned i = 0; i < options->connections; i++)
        open_connection(run, &connections[i], i);
    start = now_ns();
    run->deadline_ns = start + options->milliseconds * 1000000;
    for (unsigned i = 0; i < options->connections; i++)
        begin(run, &connections[i]);
    serve_all(run);
    seconds = (double) (now_ns() - start) / (double) NANOSECONDS;
    printf("{\"messages\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"seconds\":%.6f,"
           "\"p50_us\":%.1f,\"p99_us\":%.1f}\n",
           run->messages, run->messages * options->bytes, seconds,
           (double) histogram_percentile(&run->latency, 50) / 1e3,
           (double) histogram_percentile(&run->latency, 99) / 1e3);
    for (unsigned i = 0; i < options->connections; i++) {
        target_reset(connections[i].fd);
        free(connections[i].frame);
    }
    run_done(run);
}

int main(int argc, char **argv)
{
    struct load_options options = {
        .path = "/", .connections = 32, .bytes = 64, .milliseconds = 2000};

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        printf("usage: websocket-load --target ADDR:PORT [options]\n\noptions:\n");
        load_options_help();
        return EXIT_SUCCESS;
    }
    load_options_parse(&options, argc - 1, argv + 1);
    if (options.bytes < MESSAGE_MIN || options.bytes > MESSAGE_MAX)
        fail("--bytes wants %d to %u", MESSAGE_MIN, MESSAGE_MAX);
    websocket_run(&options);
    return EXIT_SUCCESS;
}
