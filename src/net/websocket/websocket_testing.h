/* For tests of WebSocket connections: a loop, socket pairs, and a side that writes down what it is
 * told. Included by test programs only. */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/text.h"
#include "net/websocket/websocket.h"

#define TESTING_TEXT_MAX   ((size_t) 64 * 1024 * 1024)
#define TESTING_TURNS_MAX  100000
#define TESTING_SMALL_SEND 4096

/* One end. `told` gets T(text) B(binary) [piece] pong(x) drain close(code,reason,clean|lost). */
struct side {
    struct websocket ws;
    struct text told;
    struct side *other; /* borrowed; NULL when the other end is `raw` */
    int raw;            /* the other end, owned; -1 when it is a side too */
    bool released;
    /* What to do inside an event, once each; NULL: nothing. */
    void (*then_on_message)(struct side *side, const char *bytes, size_t length);
    void (*then_on_close)(struct side *side);
    void (*then_on_drain)(struct side *side);
};

static inline struct side *side_of(struct websocket *ws)
{
    return CONTAINER_OF(ws, struct side, ws);
}

static inline void testing_after_message(struct side *side, const char *bytes, size_t length)
{
    void (*then)(struct side *, const char *, size_t) = side->then_on_message;

    side->then_on_message = NULL;
    if (then)
        then(side, bytes, length);
}

static void testing_on_message(struct websocket *ws, enum websocket_opcode kind, const char *bytes,
                               size_t length)
{
    struct side *side = side_of(ws);

    text_append(&side->told, kind == WEBSOCKET_TEXT ? "T(" : "B(");
    text_append_bytes(&side->told, bytes, length);
    text_append(&side->told, ")");
    testing_after_message(side, bytes, length);
}

static void testing_on_piece(struct websocket *ws, const struct websocket_piece *piece)
{
    struct side *side = side_of(ws);

    if (piece->first)
        text_append(&side->told, piece->kind == WEBSOCKET_TEXT ? "T(" : "B(");
    text_append_bytes(&side->told, piece->bytes, piece->length);
    if (piece->last)
        text_append(&side->told, ")");
    testing_after_message(side, piece->bytes, piece->length);
}

static void testing_on_pong(struct websocket *ws, const char *bytes, size_t length)
{
    text_format(&side_of(ws)->told, "pong(%.*s)", (int) length, bytes);
}

static void testing_on_drain(struct websocket *ws)
{
    struct side *side = side_of(ws);

    if (side->then_on_drain)
        side->then_on_drain(side);
}

static void testing_on_close(struct websocket *ws, unsigned int code, const char *reason,
                             bool clean)
{
    struct side *side = side_of(ws);

    text_format(&side->told, "close(%u,%s,%s)", code, reason, clean ? "clean" : "lost");
    if (side->then_on_close)
        side->then_on_close(side);
}

static void testing_on_released(struct websocket *ws)
{
    assert_false(side_of(ws)->released);
    side_of(ws)->released = true;
}

static const struct websocket_events testing_events = {
    .on_message = testing_on_message,
    .on_piece = testing_on_piece,
    .on_pong = testing_on_pong,
    .on_drain = testing_on_drain,
    .on_close = testing_on_close,
    .on_released = testing_on_released,
};

static inline void side_start(struct side *side, struct loop *loop, int fd,
                              const struct websocket_options *options, const char *pending,
                              size_t pending_length)
{
    static const struct stream_events nobody = {0};
    struct stream *stream = mem_alloc(sizeof(*stream));

    *side = (struct side){.told = TEXT_INIT(TESTING_TEXT_MAX), .raw = -1};
    assert_int_equal(stream_init(stream, loop, fd, NULL, false, &nobody), 0);
    websocket_init(&side->ws, stream, options, &testing_events, pending, pending_length);
    assert_int_equal(side->told.length, 0);
}

/* A pair of connected sockets with small buffers when asked. */
static inline void testing_sockets(int fds[2], bool small)
{
    int size = TESTING_SMALL_SEND;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    for (int i = 0; small && i < 2; i++)
        assert_int_equal(setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
}

/* A side whose peer is played by the test with plain reads and writes. */
static inline void side_start_raw(struct side *side, struct loop *loop,
                                  const struct websocket_options *options, bool small)
{
    int fds[2];

    testing_sockets(fds, small);
    side_start(side, loop, fds[0], options, NULL, 0);
    side->raw = fds[1];
}

static inline void side_start_pair(struct side *server, struct side *client, struct loop *loop,
                                   struct websocket_options options, bool small)
{
    int fds[2];

    testing_sockets(fds, small);
    options.role = WEBSOCKET_SERVER;
    side_start(server, loop, fds[0], &options, NULL, 0);
    options.role = WEBSOCKET_CLIENT;
    side_start(client, loop, fds[1], &options, NULL, 0);
    server->other = client;
    client->other = server;
}

/* A few turns of the loop: enough for anything that needs no time to pass. */
static inline void testing_turns(struct loop *loop)
{
    for (int i = 0; i < 10; i++)
        (void) uv_run(&loop->uv, UV_RUN_NOWAIT);
}

/* Turn until `*flag`; the loop must have timers or traffic to wait for. */
static inline void testing_run_until(struct loop *loop, const bool *flag)
{
    for (int i = 0; i < TESTING_TURNS_MAX && !*flag; i++)
        (void) uv_run(&loop->uv, UV_RUN_ONCE);
    assert_true(*flag);
}

static inline void raw_send(struct side *side, const char *bytes, size_t length)
{
    assert_int_equal(send(side->raw, bytes, length, MSG_NOSIGNAL), (ssize_t) length);
    testing_turns(side->ws.deadline.timer.loop->data);
}

/* All that has come to the raw end so far; returns whether the end came too. */
static inline bool raw_receive(struct side *side, struct text *into)
{
    char buffer[65536];
    ssize_t got;

    while ((got = recv(side->raw, buffer, sizeof(buffer), MSG_DONTWAIT)) > 0)
        text_append_bytes(into, buffer, (size_t) got);
    return got == 0;
}

#define BYTES(text) sizeof(text) - 1, text

/* A key of zeros masks nothing, so client frames can be read here. */
#define KEY "\0\0\0\0"

#define SEND(side, text) raw_send((side), (text), sizeof(text) - 1)

static const struct websocket_options as_server = {.role = WEBSOCKET_SERVER};
static const struct websocket_options as_client = {.role = WEBSOCKET_CLIENT};

static inline void assert_received(struct side *side, const char *bytes, size_t length, bool ended)
{
    AUTO(text) struct text got = TEXT_INIT(TESTING_TEXT_MAX);

    testing_turns(side->ws.deadline.timer.loop->data);
    assert_int_equal(raw_receive(side, &got), ended);
    assert_int_equal(got.length, length);
    assert_memory_equal(text_string(&got), bytes, length);
}

#define RECEIVED(side, text, ended) assert_received((side), (text), sizeof(text) - 1, (ended))

/* End the side if it is not over yet, and check that everything is given back. */
static inline void side_finish(struct side *side, struct loop *loop)
{
    if (!side->released)
        websocket_abort(&side->ws);
    testing_turns(loop);
    assert_true(side->released);
    if (side->raw >= 0)
        side->raw = fd_close(side->raw);
    text_done(&side->told);
}

static inline int testing_setup(void **state)
{
    struct loop *loop = mem_alloc(sizeof(*loop));

    if (loop_init(loop, NULL) < 0)
        return -1;
    loop->uv.data = loop;
    *state = loop;
    return 0;
}

/* Aborts when a handle is still open. */
static inline int testing_teardown(void **state)
{
    loop_done(*state);
    free(*state);
    return 0;
}

#define assert_told(side, expected) assert_string_equal(text_string(&(side)->told), (expected))

#define TEST(name) cmocka_unit_test_setup_teardown(name, testing_setup, testing_teardown)
