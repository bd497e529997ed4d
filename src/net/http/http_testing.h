/* For tests of HTTP servers, clients and proxies on one loop: a peer that speaks raw bytes, and a
 * server whose handlers write down what happens to them. Included by test programs only. */
#pragma once

#include <arpa/inet.h>
#include <signal.h>

#include "net/http/http_server.h"
#include "net/net_testing.h"
#include "sys/network/sys_socket.h"

#define RAW_MAX ((size_t) 64 * 1024 * 1024)

/* --- a peer of raw bytes -------------------------------------------------------------------- */

struct raw {
    int fd;
    struct text got;
    bool ended;
    int error; /* errno of a read that failed */
};

static inline struct raw raw_take(int fd)
{
    return (struct raw){.fd = fd, .got = TEXT_INIT(RAW_MAX)};
}

static inline struct raw raw_connect(uint16_t port)
{
    struct sys_address address = {.length = sizeof(address.ipv4)};
    int fd;

    address.ipv4 = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    fd = sys_socket_create(&address);
    assert_true(fd >= 0);
    (void) sys_socket_connect(fd, &address);
    (void) sys_socket_set_nodelay(fd, true);
    return raw_take(fd);
}

static inline void raw_close(struct raw *raw)
{
    raw->fd = fd_close(raw->fd);
    text_done(&raw->got);
}

/* Send everything, turning the loop while the socket is full or still connecting. */
static inline void raw_send_bytes(struct raw *raw, struct loop *loop, const char *bytes,
                                  size_t length)
{
    int turns = TESTING_TURNS_MAX;

    while (length) {
        ssize_t sent = send(raw->fd, bytes, length, MSG_NOSIGNAL);

        if (sent < 0 && errno != EAGAIN)
            return; /* the peer is gone: the test sees it when it reads */
        if (sent < 0) {
            assert_true(--turns > 0);
            testing_turn(loop);
            continue;
        }
        bytes += sent;
        length -= (size_t) sent;
    }
}

static inline void raw_send(struct raw *raw, struct loop *loop, const char *text)
{
    raw_send_bytes(raw, loop, text, strlen(text));
}

static inline void raw_read(struct raw *raw)
{
    char buffer[65536];

    while (!raw->ended) {
        ssize_t got = recv(raw->fd, buffer, sizeof(buffer), 0);

        if (got > 0) {
            text_append_bytes(&raw->got, buffer, (size_t) got);
            continue;
        }
        if (got < 0 && errno == EAGAIN)
            return;
        raw->ended = true;
        raw->error = got < 0 ? errno : 0;
    }
}

/* Whether the text came by now. */
static inline bool raw_has(struct raw *raw, const char *text)
{
    raw_read(raw);
    return memmem(text_string(&raw->got), raw->got.length, text, strlen(text)) != NULL;
}

static inline bool raw_is_over(struct raw *raw)
{
    raw_read(raw);
    return raw->ended;
}

/* How often the text came. */
static inline size_t raw_count(struct raw *raw, const char *text)
{
    const char *at, *end;
    size_t count = 0;

    raw_read(raw);
    at = text_string(&raw->got);
    end = at + raw->got.length;
    while ((at = memmem(at, (size_t) (end - at), text, strlen(text)))) {
        at++;
        count++;
    }
    return count;
}

/* --- a server ------------------------------------------------------------------------------- */

struct web {
    struct loop loop;
    struct http_server *server;
    struct http_router *router;
    struct http_server_options options;
    struct text told;             /* what handlers saw */
    struct http_request *waiting; /* a request its handler left open */
    uint16_t port;
    bool drained;
};

static inline struct web *web_of(const struct http_request *request)
{
    return request->context;
}

static inline void web_init(struct web *web)
{
    (void) signal(SIGPIPE, SIG_IGN); /* as every program of ours: OpenSSL writes with write(2) */
    *web = (struct web){.options = HTTP_SERVER_OPTIONS_DEFAULT, .told = TEXT_INIT(RAW_MAX)};
    web->options.clock = clock_system();
    assert_int_equal(loop_init(&web->loop, NULL), 0);
    web->router = http_router_new();
}

/* Serve the table on a free port, with the options set by then. */
static inline void web_serve(struct web *web, struct http_mount *mount)
{
    struct error error = ERROR_INIT;

    mount->context = web;
    assert_int_equal(http_router_mount(web->router, mount, &error), 0);
    web->options.router = web->router;
    web->server = http_server_new(&web->loop, &web->options);
    assert_int_equal(http_server_listen(web->server, "127.0.0.1:0", NULL, &error), 0);
    web->port = http_server_port(web->server, 0);
}

static void web_drained(struct http_server *server, void *data)
{
    (void) server;
    ((struct web *) data)->drained = true;
}

/* End the server; everything still open is cut. */
static inline void web_done(struct web *web)
{
    if (web->server) {
        http_server_drain(web->server, 1, web_drained, web);
        TURN_UNTIL(&web->loop, web->drained);
        http_server_free(web->server);
    }
    loop_run(&web->loop);
    loop_done(&web->loop);
    http_router_free(web->router);
    text_done(&web->told);
}
