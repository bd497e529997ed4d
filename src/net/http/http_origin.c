#include <errno.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "net/http/http_link.h"
#include "sys/network/sys_socket.h"

static void check_closed(struct http_origin *origin)
{
    if (origin->closing && !origin->remains)
        loop_defer(origin->loop, &origin->closed_task);
}

void http_origin_link_gone(struct http_origin *origin)
{
    origin->remains--;
    check_closed(origin);
}

static int dial(struct http_origin *origin, bool *ret_connecting)
{
    AUTO(close) int fd = -EBADF;
    int r;

    *ret_connecting = false;
    if (origin->options.dial)
        return origin->options.dial(origin->options.dial_data, ret_connecting);
    fd = sys_socket_create(&origin->address);
    if (fd < 0)
        return TAKE_FD(fd);
    r = sys_socket_connect(fd, &origin->address);
    if (r < 0 && r != -EINPROGRESS)
        return r;
    *ret_connecting = r == -EINPROGRESS;
    if (origin->address.any.sa_family != AF_UNIX)
        (void) sys_socket_set_nodelay(fd, true); /* only costs latency when it fails */
    return TAKE_FD(fd);
}

static int attach_fresh(struct http_exchange *exchange)
{
    AUTO(close) int fd = -EBADF;
    struct http_link *link;
    bool connecting;
    int r;

    fd = dial(exchange->origin, &connecting);
    if (fd < 0)
        return fd;
    r = http_link_new(exchange->origin, fd, connecting, &link);
    if (r < 0)
        return r;
    (void) TAKE_FD(fd);
    http_link_attach(link, exchange);
    return 0;
}

void http_origin_place(struct http_exchange *exchange)
{
    struct http_origin *origin = exchange->origin;
    int r;

    if (origin->idle_count) {
        struct http_link *link = CONTAINER_OF(origin->idle.previous, struct http_link, link);

        http_link_attach(link, exchange);
        return;
    }
    if (origin->open < origin->options.connections_max) {
        r = attach_fresh(exchange);
        if (r < 0)
            http_exchange_fail_later(exchange, ERR_UPSTREAM, r, "connect to the peer");
        return;
    }
    if (origin->waiting_count >= origin->options.waiting_max) {
        http_exchange_fail_later(exchange, ERR_UNAVAILABLE, 0,
                                 "too many requests wait for this peer");
        return;
    }
    list_append(&origin->waiting, &exchange->link);
    origin->waiting_count++;
}

void http_origin_requeue(struct http_exchange *exchange)
{
    struct http_origin *origin = exchange->origin;

    list_append(origin->waiting.next, &exchange->link); /* before the first one */
    origin->waiting_count++;
}

void http_origin_advance(struct http_origin *origin)
{
    struct list *first;

    while (!origin->closing && (first = list_first(&origin->waiting)) &&
           (origin->idle_count || origin->open < origin->options.connections_max)) {
        list_remove(first);
        origin->waiting_count--;
        http_origin_place(CONTAINER_OF(first, struct http_exchange, link));
    }
}

static void tell_closed(struct loop_task *task)
{
    struct http_origin *origin = CONTAINER_OF(task, struct http_origin, closed_task);

    if (origin->on_closed)
        origin->on_closed(origin, origin->closed_data);
    free(origin);
}

struct http_origin *http_origin_new(struct loop *loop, const char *address,
                                    const struct http_origin_options *options, struct error *err)
{
    static const struct http_origin_options defaults = HTTP_ORIGIN_OPTIONS_DEFAULT;
    struct http_origin *origin = mem_alloc(sizeof(*origin));

    origin->loop = loop;
    origin->options = options ? *options : defaults;
    if (address && sys_address_parse(address, &origin->address) < 0) {
        (void) error_set(err, ERR_INVALID, 0, "'%s' is not an address", address);
        free(origin);
        return NULL;
    }
    list_init(&origin->busy);
    list_init(&origin->idle);
    list_init(&origin->waiting);
    loop_task_init(&origin->closed_task, tell_closed);
    return origin;
}

void http_origin_close(struct http_origin *origin,
                       void (*on_closed)(struct http_origin *origin, void *data), void *data)
{
    struct list *first;
    struct error error;

    (void) error_set(&error, ERR_CANCELLED, 0, "the peer is being taken away");
    origin->closing = true;
    origin->on_closed = on_closed;
    origin->closed_data = data;
    while ((first = list_first(&origin->waiting)))
        http_exchange_fail(CONTAINER_OF(first, struct http_exchange, link), &error);
    while ((first = list_first(&origin->busy)))
        http_exchange_fail(CONTAINER_OF(first, struct http_link, link)->exchange, &error);
    while ((first = list_first(&origin->idle)))
        http_link_leave(CONTAINER_OF(first, struct http_link, link));
    check_closed(origin);
}

size_t http_origin_connections(const struct http_origin *origin)
{
    return origin->open;
}

bool http_origin_is_busy(const struct http_origin *origin)
{
    return !list_is_empty(&origin->busy) || !list_is_empty(&origin->waiting);
}

bool http_origin_has_idle(const struct http_origin *origin)
{
    return origin->idle_count > 0;
}
