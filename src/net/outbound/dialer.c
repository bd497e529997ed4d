#include "net/outbound/dialer.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "sys/network/sys_socket.h"

struct dial {
    struct loop *loop;
    struct dial_request request;
    char *host;                   /* owned: of the request */
    struct resolver_query *query; /* NULL: not asked, or answered */
    struct sys_address addresses[RESOLVER_ADDRESSES_MAX];
    size_t count, next;
    struct loop_task begin; /* for an address: nothing to look up */
    struct deadline total, one;
    uv_poll_t *poll; /* owned, a memory of its own: another try begins before it is closed */
    int fd;          /* owned */
    int handles;
    struct error error; /* of the last address */
};

static void dial_handle_gone(struct dial *dial)
{
    if (--dial->handles)
        return;
    free(dial->host);
    free(dial);
}

static void dial_total_gone(struct deadline *deadline)
{
    dial_handle_gone(CONTAINER_OF(deadline, struct dial, total));
}

static void dial_one_gone(struct deadline *deadline)
{
    dial_handle_gone(CONTAINER_OF(deadline, struct dial, one));
}

static void dial_poll_gone(uv_handle_t *handle)
{
    free(handle);
}

static void dial_stop_polling(struct dial *dial)
{
    uv_poll_t *poll = TAKE_PTR(dial->poll);

    if (!poll)
        return;
    (void) uv_poll_stop(poll);
    uv_close((uv_handle_t *) poll, dial_poll_gone);
}

static void dial_close(struct dial *dial)
{
    if (dial->query)
        resolver_forget(TAKE_PTR(dial->query));
    loop_task_cancel(&dial->begin);
    dial_stop_polling(dial);
    dial->fd = fd_close(dial->fd);
    deadline_close(&dial->total, dial_total_gone);
    deadline_close(&dial->one, dial_one_gone);
}

static void dial_end(struct dial *dial, int fd, const struct error *err)
{
    struct error copy = err ? *err : (struct error) ERROR_INIT;
    void (*done)(void *, int, const struct error *) = dial->request.done;
    void *context = dial->request.context;

    dial_close(dial);
    done(context, fd, err ? &copy : NULL);
}

static void dial_fail(struct dial *dial)
{
    if (dial->request.rules && (dial->error.code == ERR_NONE || dial->error.code == ERR_FORBIDDEN))
        (void) error_set(&dial->error, ERR_FORBIDDEN, 0, "the host has no public address");
    else if (dial->error.code == ERR_NONE)
        (void) error_set(&dial->error, ERR_UPSTREAM, 0, "the name %.128s was not found",
                         dial->host);
    dial_end(dial, -1, &dial->error);
}

/* --- one address after the other -------------------------------------------------------------- */

static void dial_next(struct dial *dial);

static bool names_exactly(const struct address_rules *rules, const struct sys_address *address)
{
    bool is_v4 = address->any.sa_family == AF_INET;
    const void *bytes =
        is_v4 ? (const void *) &address->ipv4.sin_addr : (const void *) &address->ipv6.sin6_addr;

    for (size_t i = 0; i < rules->count; i++) {
        if (rules->allowed[i].bits == (is_v4 ? 32 : 128) &&
            cidr_contains(&rules->allowed[i], address->any.sa_family, bytes))
            return true;
    }
    return false;
}

/* What the rules allow may still be ourselves, seen from outside. */
static int dial_check(struct dial *dial, const struct sys_address *address)
{
    const struct address_rules *rules = dial->request.rules;

    if (!rules)
        return 0;
    if (address_rules_check(rules, &address->any, address->length, &dial->error) < 0)
        return -1;
    if (sys_socket_is_own(address) && !names_exactly(rules, address))
        return error_set(&dial->error, ERR_FORBIDDEN, 0, "an address of this machine");
    return 0;
}

static void dial_connected(struct dial *dial)
{
    dial_stop_polling(dial);
    (void) sys_socket_set_nodelay(dial->fd, true); /* only costs latency when it fails */
    dial_end(dial, TAKE_FD(dial->fd), NULL);
}

static void dial_lost(struct dial *dial, int system)
{
    dial_stop_polling(dial);
    dial->fd = fd_close(dial->fd);
    (void) error_set(&dial->error, system == -ETIMEDOUT ? ERR_UPSTREAM_TIMEOUT : ERR_UPSTREAM,
                     system, "connect to %.128s", dial->host);
    dial_next(dial);
}

static void dial_ready(uv_poll_t *poll, int status, int events)
{
    struct dial *dial = poll->data;
    int error = sys_socket_error(dial->fd);

    (void) events;
    if (error == 0 && status < 0)
        error = -ECONNRESET;
    if (error < 0)
        dial_lost(dial, error);
    else
        dial_connected(dial);
}

static void dial_one_is_late(struct deadline *deadline)
{
    dial_lost(CONTAINER_OF(deadline, struct dial, one), -ETIMEDOUT);
}

static int dial_poll(struct dial *dial)
{
    uv_poll_t *poll = mem_alloc(sizeof(*poll));
    int r = uv_poll_init(&dial->loop->uv, poll, dial->fd);

    if (r < 0) {
        free(poll);
        return r;
    }
    poll->data = dial;
    dial->poll = poll;
    return uv_poll_start(poll, UV_WRITABLE, dial_ready);
}

/* Returns whether it goes on by itself. */
static bool dial_try(struct dial *dial, const struct sys_address *address)
{
    int r;

    dial->fd = sys_socket_create(address);
    if (dial->fd < 0)
        return false;
    r = sys_socket_connect(dial->fd, address);
    if (r == 0 || r == -EINPROGRESS)
        r = dial_poll(dial);
    if (r == 0) {
        deadline_set(&dial->one, DIALER_TRY_MS);
        return true;
    }
    dial_stop_polling(dial);
    dial->fd = fd_close(dial->fd);
    (void) error_set(&dial->error, ERR_UPSTREAM, r, "connect to %.128s", dial->host);
    return false;
}

static void dial_next(struct dial *dial)
{
    deadline_clear(&dial->one);
    while (dial->next < dial->count) {
        struct sys_address *address = &dial->addresses[dial->next++];

        if (address->any.sa_family == AF_INET)
            address->ipv4.sin_port = htons(dial->request.port);
        else
            address->ipv6.sin6_port = htons(dial->request.port);
        if (dial_check(dial, address) == 0 && dial_try(dial, address))
            return;
    }
    dial_fail(dial);
}

/* --- life ------------------------------------------------------------------------------------- */

static void dial_total_is_late(struct deadline *deadline)
{
    struct dial *dial = CONTAINER_OF(deadline, struct dial, total);
    struct error error;

    (void) error_set(&error, ERR_UPSTREAM_TIMEOUT, 0, "%.128s did not accept a connection in time",
                     dial->host);
    dial_end(dial, -1, &error);
}

static void dial_resolved(void *context, const struct sys_address *addresses, size_t count)
{
    struct dial *dial = context;

    dial->query = NULL;
    memcpy(dial->addresses, addresses, count * sizeof(*addresses));
    dial->count = count;
    dial_next(dial);
}

static void dial_begin(struct loop_task *task)
{
    dial_next(CONTAINER_OF(task, struct dial, begin));
}

static bool is_address(const char *host, struct sys_address *ret_address)
{
    memset(ret_address, 0, sizeof(*ret_address));
    if (inet_pton(AF_INET, host, &ret_address->ipv4.sin_addr) == 1) {
        ret_address->ipv4.sin_family = AF_INET;
        ret_address->length = sizeof(ret_address->ipv4);
        return true;
    }
    if (inet_pton(AF_INET6, host, &ret_address->ipv6.sin6_addr) != 1)
        return false;
    ret_address->ipv6.sin6_family = AF_INET6;
    ret_address->length = sizeof(ret_address->ipv6);
    return true;
}

struct dial *dial_start(struct loop *loop, struct resolver *resolver,
                        const struct dial_request *request)
{
    struct dial *dial = mem_alloc(sizeof(*dial));

    dial->loop = loop;
    dial->request = *request;
    dial->host = mem_copy_text(request->host);
    dial->fd = -EBADF;
    dial->handles = 2;
    loop_task_init(&dial->begin, dial_begin);
    deadline_init(loop, &dial->total, dial_total_is_late);
    deadline_init(loop, &dial->one, dial_one_is_late);
    deadline_set(&dial->total, request->total_ms);
    if (is_address(dial->host, &dial->addresses[0])) {
        dial->count = 1;
        loop_defer(loop, &dial->begin);
    } else {
        dial->query = resolver_ask(resolver, request->asker, dial->host, dial_resolved, dial);
    }
    return dial;
}

void dial_cancel(struct dial *dial)
{
    dial_close(dial);
}
