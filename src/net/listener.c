#include "net/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/memory.h"
#include "sys/file/sys_file.h"

/* Connections accepted per turn, so that a storm of them does not starve the ones we have. */
#define ACCEPTS_PER_TURN 64
#define UNIX_SOCKET_MODE 0660

struct listener {
    struct loop *loop;
    const struct listener_events *events;
    void *owner;
    struct sys_address address; /* as it really is: the port was chosen */
    uv_poll_t poll;
    struct deadline rest;
    int fd; /* owned */
    int handles;
    bool paused;
    bool closing;
    bool adopted; /* the socket was made by somebody else */
};

static void connection_waits(uv_poll_t *poll, int status, int events);

static void watch(struct listener *listener)
{
    if (listener->paused || listener->closing || listener->rest.due)
        (void) uv_poll_stop(&listener->poll);
    else
        (void) uv_poll_start(&listener->poll, UV_READABLE, connection_waits);
}

static void rest_is_over(struct deadline *deadline)
{
    watch(CONTAINER_OF(deadline, struct listener, rest));
}

static void hand_over(struct listener *listener, int fd, const struct sys_address *peer)
{
    char text[SYS_ADDRESS_TEXT_SIZE];

    if (!listener_is_unix(listener))
        (void) sys_socket_set_nodelay(fd, true); /* only costs latency when it fails */
    sys_address_format(peer, text);
    listener->events->on_accept(listener, fd, text);
}

static void connection_waits(uv_poll_t *poll, int status, int events)
{
    struct listener *listener = poll->data;

    (void) status; /* an error on a listening socket shows in accept, too */
    (void) events;
    for (int i = 0; i < ACCEPTS_PER_TURN && !listener->paused && !listener->closing; i++) {
        struct sys_address peer;
        int fd = sys_socket_accept(listener->fd, &peer);

        if (fd == -EAGAIN)
            return;
        if (fd < 0) {
            LOG_WARNING(listener->loop->log, "accept failed, resting",
                        log_text("reason", strerrorname_np(-fd)));
            deadline_set(&listener->rest, LISTENER_REST_MS);
            watch(listener);
            return;
        }
        hand_over(listener, fd, &peer);
    }
}

static int watch_socket(struct listener *listener)
{
    int r = uv_poll_init(&listener->loop->uv, &listener->poll, listener->fd);

    if (r == 0)
        listener->poll.data = listener;
    return r;
}

static int adopt_socket(struct listener *listener, struct error *err)
{
    int r = sys_socket_local_address(listener->fd, &listener->address);

    if (r == 0)
        r = sys_file_set_nonblocking(listener->fd, true);
    if (r == 0)
        r = watch_socket(listener);
    if (r < 0)
        return error_set(err, ERR_INVALID, r, "listen on descriptor %d", listener->fd);
    return 0;
}

static int open_socket(struct listener *listener, const char *text, struct error *err)
{
    int r = sys_address_parse(text, &listener->address);

    if (r < 0)
        return error_set(err, ERR_INVALID, 0,
                         "'%s' is not an address to listen on: use ADDRESS:PORT, [ADDRESS]:PORT or "
                         "unix:PATH",
                         text);
    r = sys_socket_listen(&listener->address, LISTENER_BACKLOG, UNIX_SOCKET_MODE);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "listen on %s", text);
    listener->fd = r;
    r = listener_is_unix(listener) ? 0 : sys_socket_local_address(listener->fd, &listener->address);
    if (r == 0)
        r = watch_socket(listener);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "listen on %s", text);
    return 0;
}

static struct listener *make(struct loop *loop, int fd, const struct listener_events *events,
                             void *owner)
{
    struct listener *listener = mem_alloc(sizeof(*listener));

    listener->loop = loop;
    listener->events = events;
    listener->owner = owner;
    listener->fd = fd;
    listener->adopted = fd >= 0;
    return listener;
}

/* Start it when its socket is there, or throw it away. */
static struct listener *start(struct listener *listener, int result)
{
    if (result < 0) {
        (void) fd_close(listener->fd);
        free(listener);
        return NULL;
    }
    listener->handles = 2;
    deadline_init(listener->loop, &listener->rest, rest_is_over);
    watch(listener);
    return listener;
}

struct listener *listener_new(struct loop *loop, const char *address,
                              const struct listener_events *events, void *owner, struct error *err)
{
    struct listener *listener = make(loop, -EBADF, events, owner);

    return start(listener, open_socket(listener, address, err));
}

struct listener *listener_new_on(struct loop *loop, int fd, const struct listener_events *events,
                                 void *owner, struct error *err)
{
    struct listener *listener = make(loop, fd, events, owner);

    return start(listener, adopt_socket(listener, err));
}

void listener_pause(struct listener *listener)
{
    listener->paused = true;
    watch(listener);
}

void listener_resume(struct listener *listener)
{
    listener->paused = false;
    watch(listener);
}

static void handle_gone(struct listener *listener)
{
    if (--listener->handles)
        return;
    listener->events->on_closed(listener);
    free(listener);
}

static void poll_gone(uv_handle_t *handle)
{
    handle_gone(handle->data);
}

static void rest_gone(struct deadline *deadline)
{
    handle_gone(CONTAINER_OF(deadline, struct listener, rest));
}

void listener_close(struct listener *listener)
{
    if (listener->closing)
        return;
    listener->closing = true;
    watch(listener);
    uv_close((uv_handle_t *) &listener->poll, poll_gone);
    deadline_close(&listener->rest, rest_gone);
    if (listener_is_unix(listener) && !listener->adopted)
        (void) unlink(listener->address.local.sun_path); /* a left-over is replaced later */
    listener->fd = fd_close(listener->fd);
}

void *listener_owner(const struct listener *listener)
{
    return listener->owner;
}

bool listener_is_unix(const struct listener *listener)
{
    return listener->address.any.sa_family == AF_UNIX;
}

uint16_t listener_port(const struct listener *listener)
{
    switch (listener->address.any.sa_family) {
    case AF_INET:
        return ntohs(listener->address.ipv4.sin_port);
    case AF_INET6:
        return ntohs(listener->address.ipv6.sin6_port);
    default:
        return 0;
    }
}
