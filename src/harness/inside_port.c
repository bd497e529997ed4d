#include "harness/inside_port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/auto.h"
#include "base/memory.h"

#define SPARE_MAX      8
#define SPARE_LOW      3 /* ask for more below this */
#define SOCKETS_WANTED 6
#define CONNECT_MS     5000

struct inside_port {
    struct loop *loop;
    struct roll *roll;
    const struct reach *reach;
    struct id sandbox;
    uint16_t number;
    struct http_origin *http;
    int spare[SPARE_MAX];
    size_t spare_count;
    struct list waiting; /* of query */
    bool is_asking;      /* for sockets */
    bool is_closed;
    bool is_shut; /* its connections are gone */
};

static void inside_port_release(struct inside_port *port)
{
    struct roll *roll = port->roll;

    if (!port->is_closed || !port->is_shut || port->is_asking)
        return;
    while (port->spare_count)
        (void) fd_close(port->spare[--port->spare_count]);
    free(port);
    roll_leave(roll);
}

static int inside_port_dial(void *data, bool *ret_connecting)
{
    struct inside_port *port = data;
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port->number),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd, failure;

    if (!port->spare_count)
        return -EAGAIN;
    fd = port->spare[--port->spare_count];
    *ret_connecting = false;
    if (connect(fd, (const struct sockaddr *) &address, sizeof(address)) == 0)
        return fd;
    failure = -errno;
    *ret_connecting = failure == -EINPROGRESS;
    if (!*ret_connecting)
        (void) fd_close(fd);
    return *ret_connecting ? fd : failure;
}

/* --- sockets --------------------------------------------------------------------------------- */

static void inside_port_got_sockets(void *context, const struct error *failure, const int *sockets,
                                    size_t count);

static void inside_port_want(struct inside_port *port)
{
    if (port->is_asking || port->is_closed || port->spare_count >= SPARE_LOW)
        return;
    port->is_asking = true;
    port->reach->sockets(port->reach->self, &port->sandbox, SOCKETS_WANTED, inside_port_got_sockets,
                         port);
}

static struct query *inside_port_next(struct inside_port *port)
{
    struct list *first = list_first(&port->waiting);

    if (!first)
        return NULL;
    list_remove(first);
    return CONTAINER_OF(first, struct query, link);
}

static void inside_port_got_sockets(void *context, const struct error *failure, const int *sockets,
                                    size_t count)
{
    struct inside_port *port = context;
    struct query *query;

    port->is_asking = false;
    for (size_t i = 0; i < (failure ? 0 : count); i++) {
        if (port->is_closed || port->spare_count == SPARE_MAX)
            (void) fd_close(sockets[i]);
        else
            port->spare[port->spare_count++] = sockets[i];
    }
    while (failure && (query = inside_port_next(port)))
        query_refuse(query, failure);
    while (port->spare_count && (query = inside_port_next(port)))
        query_send(query, port->http);
    if (!list_is_empty(&port->waiting) && count)
        inside_port_want(port);
    inside_port_release(port);
}

/* --- asking ---------------------------------------------------------------------------------- */

struct query *inside_port_ask(struct inside_port *port, const struct query_request *request,
                              query_done *done, void *context)
{
    struct query *query = query_new(port->loop, port->roll, request, done, context);

    if (port->spare_count)
        query_send(query, port->http);
    else
        list_append(&port->waiting, &query->link);
    inside_port_want(port);
    return query;
}

struct inside_port *inside_port_new(struct loop *loop, struct roll *roll, const struct reach *reach,
                                    const struct id *sandbox, uint16_t number)
{
    struct http_origin_options options = HTTP_ORIGIN_OPTIONS_DEFAULT;
    struct inside_port *port = mem_alloc(sizeof(*port));

    *port = (struct inside_port){
        .loop = loop, .roll = roll, .reach = reach, .sandbox = *sandbox, .number = number};
    options.dial = inside_port_dial;
    options.dial_data = port;
    options.idle_max = 0;
    options.connect_timeout_ms = CONNECT_MS;
    port->http = http_origin_new(loop, NULL, &options, NULL);
    list_init(&port->waiting);
    roll_enter(roll);
    return port;
}

static void inside_port_shut(struct http_origin *origin, void *data)
{
    struct inside_port *port = data;

    (void) origin;
    port->is_shut = true;
    inside_port_release(port);
}

void inside_port_close(struct inside_port *port)
{
    struct query *query;
    struct error closed;

    if (!port || port->is_closed)
        return;
    (void) error_set(&closed, ERR_UNAVAILABLE, 0, "the agent server was forgotten");
    while ((query = inside_port_next(port)))
        query_refuse(query, &closed);
    port->is_closed = true;
    http_origin_close(TAKE_PTR(port->http), inside_port_shut, port);
}
