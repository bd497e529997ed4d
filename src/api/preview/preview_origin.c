#include "api/preview/preview_origin.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/table.h"
#include "domain/sandbox/sandboxes.h"

#define SPARE_MAX      16
#define STOCK_LOW      4 /* ask for more below this */
#define IDLE_MAX       64
#define CONNECT_MS     5000
#define KEEP_ALIVE_MS  30000
#define SWEEP_MS       30000
#define SOCKETS_WANTED 8

struct preview_origin {
    struct table_link by_key;
    struct list link; /* least recently used first */
    struct preview_origins *origins;
    struct id sandbox;
    uint16_t number;
    int64_t run; /* started_ms of the run of the sandbox that the sockets belong to */
    struct http_origin *http;
    int spare[SPARE_MAX]; /* unconnected sockets inside */
    size_t spare_count;
    struct list waiting; /* of preview_lease */
    size_t waiting_count;
    unsigned int leases; /* that hold it */
    bool is_asking;      /* for sockets */
    struct list holders; /* of preview_lease: those that were granted */
    bool is_stale;       /* in no table: goes with the last that holds it */
    bool is_closed;      /* its connections are */
};

struct preview_origins {
    struct loop *loop;
    struct domain *domain;
    struct table by_key;
    struct list all;
    size_t count;
    size_t closing;
    uint64_t seed;
    uv_timer_t sweep;
    void (*closed)(void *context);
    void *context;
    bool is_closing;
};

/* --- sockets --------------------------------------------------------------------------------- */

static void drop_spare(struct preview_origin *origin)
{
    while (origin->spare_count)
        (void) fd_close(origin->spare[--origin->spare_count]);
}

static int preview_origin_dial(void *data, bool *ret_connecting)
{
    struct preview_origin *origin = data;
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(origin->number),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd;

    if (!origin->spare_count)
        return -EAGAIN;
    fd = origin->spare[--origin->spare_count];
    *ret_connecting = false;
    if (connect(fd, (const struct sockaddr *) &address, sizeof(address)) == 0)
        return fd;
    if (errno == EINPROGRESS) {
        *ret_connecting = true;
        return fd;
    }
    (void) fd_close(fd);
    return -errno;
}

static void preview_origin_release(struct preview_origin *origin);
static void close_http(struct preview_origin *origin);
static void serve_waiting(struct preview_origin *origin, const struct error *failure);

static void take_sockets(struct preview_origin *origin, const int *sockets, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (origin->is_stale || origin->spare_count == SPARE_MAX)
            (void) fd_close(sockets[i]);
        else
            origin->spare[origin->spare_count++] = sockets[i];
    }
}

static void got_sockets(void *context, const struct error *failure, const int *sockets,
                        size_t count)
{
    struct preview_origin *origin = context;

    origin->is_asking = false;
    take_sockets(origin, sockets, failure ? 0 : count);
    serve_waiting(origin, failure);
    preview_origin_release(origin);
}

static void preview_origin_ask(struct preview_origin *origin, struct sandbox *sandbox)
{
    if (origin->is_asking || origin->is_stale)
        return;
    origin->is_asking = true; /* holds it */
    sandbox_sockets(origin->origins->domain, sandbox, SOCKETS_WANTED, got_sockets, origin);
}

/* --- origins --------------------------------------------------------------------------------- */

static uint64_t key_hash(const struct preview_origins *origins, const struct id *sandbox,
                         uint16_t number)
{
    return table_hash(origins->seed ^ number, sandbox->text, ID_LENGTH);
}

static struct preview_origin *preview_origin_find(const struct preview_origins *origins,
                                                  const struct id *sandbox, uint16_t number)
{
    uint64_t hash = key_hash(origins, sandbox, number);

    for (struct table_link *at = table_find(&origins->by_key, hash); at; at = table_next(at)) {
        struct preview_origin *origin = CONTAINER_OF(at, struct preview_origin, by_key);

        if (origin->number == number && strcmp(origin->sandbox.text, sandbox->text) == 0)
            return origin;
    }
    return NULL;
}

static void sweep_closed(uv_handle_t *handle)
{
    struct preview_origins *origins = handle->data;

    table_done(&origins->by_key);
    if (origins->closed)
        origins->closed(origins->context);
    free(origins);
}

static void check_closed(struct preview_origins *origins)
{
    if (!origins->is_closing || origins->count || origins->closing ||
        uv_is_closing((uv_handle_t *) &origins->sweep))
        return;
    uv_close((uv_handle_t *) &origins->sweep, sweep_closed);
}

/* Gone when it is of no use any more, nobody holds it, and its connections are closed. */
static void preview_origin_release(struct preview_origin *origin)
{
    struct preview_origins *origins = origin->origins;

    if (!origin->is_stale || origin->leases || origin->is_asking)
        return;
    if (!origin->is_closed) {
        close_http(origin);
        return;
    }
    drop_spare(origin);
    free(origin);
    origins->closing--;
    check_closed(origins);
}

static void http_closed(struct http_origin *http, void *data)
{
    struct preview_origin *origin = data;

    (void) http;
    origin->is_closed = true;
    preview_origin_release(origin);
}

/* Fails what is under way. */
static void close_http(struct preview_origin *origin)
{
    if (origin->http)
        http_origin_close(TAKE_PTR(origin->http), http_closed, origin);
}

/* Nobody finds it any more; it is for the caller to release. */
static void unlist_origin(struct preview_origin *origin)
{
    struct preview_origins *origins = origin->origins;

    origin->is_stale = true;
    table_remove(&origins->by_key, &origin->by_key);
    list_remove(&origin->link);
    origins->count--;
    origins->closing++;
    drop_spare(origin);
}

/* The same; it goes with the last that holds it. */
static void make_stale(struct preview_origin *origin)
{
    if (origin->is_stale)
        return;
    unlist_origin(origin);
    preview_origin_release(origin);
}

static struct preview_origin *preview_origin_make(struct preview_origins *origins,
                                                  struct sandbox *sandbox, uint16_t number)
{
    struct http_origin_options options = HTTP_ORIGIN_OPTIONS_DEFAULT;
    struct preview_origin *origin = mem_alloc(sizeof(*origin));

    *origin = (struct preview_origin){
        .origins = origins,
        .sandbox = sandbox->id,
        .number = number,
        .run = sandbox->started_ms,
        .by_key.hash = key_hash(origins, &sandbox->id, number),
    };
    options.dial = preview_origin_dial;
    options.dial_data = origin;
    options.connections_max = PREVIEW_CONNECTIONS_MAX;
    options.idle_max = IDLE_MAX;
    options.connect_timeout_ms = CONNECT_MS;
    options.idle_timeout_ms = KEEP_ALIVE_MS;
    origin->http = http_origin_new(origins->loop, NULL, &options, NULL);
    list_init(&origin->waiting);
    list_init(&origin->holders);
    list_append(&origins->all, &origin->link);
    table_add(&origins->by_key, &origin->by_key);
    origins->count++;
    return origin;
}

static void preview_origin_make_room(struct preview_origins *origins)
{
    if (origins->count < PREVIEW_ORIGINS_MAX)
        return;
    LIST_EACH (&origins->all, at) {
        struct preview_origin *origin = CONTAINER_OF(at, struct preview_origin, link);

        if (origin->leases || origin->waiting_count)
            continue;
        make_stale(origin);
        return;
    }
}

static struct preview_origin *preview_origin_get(struct preview_origins *origins,
                                                 struct sandbox *sandbox, uint16_t number)
{
    struct preview_origin *origin = preview_origin_find(origins, &sandbox->id, number);

    if (origin && origin->run != sandbox->started_ms) {
        make_stale(origin); /* of an earlier run: its sockets lead nowhere */
        origin = NULL;
    }
    if (!origin) {
        preview_origin_make_room(origins);
        return preview_origin_make(origins, sandbox, number);
    }
    list_remove(&origin->link);
    list_append(&origins->all, &origin->link);
    return origin;
}

/* --- leases ---------------------------------------------------------------------------------- */

/* A kept connection that nobody uses, or a socket to make one with. Connections in use are at most
 * as many as leases: the rest is idle. */
static bool has_way(const struct preview_origin *origin)
{
    return origin->spare_count || http_origin_connections(origin->http) > origin->leases;
}

static void grant(struct preview_origin *origin, struct preview_lease *lease)
{
    origin->leases++;
    lease->origin = origin;
    lease->is_granted = true;
    list_append(&origin->holders, &lease->link);
    lease->ready(lease, NULL);
}

static void refuse_waiting(struct preview_origin *origin, const struct error *failure)
{
    for (struct list *at; (at = list_first(&origin->waiting));) {
        struct preview_lease *lease = CONTAINER_OF(at, struct preview_lease, link);

        list_remove(at);
        origin->waiting_count--;
        lease->origin = NULL;
        lease->ready(lease, failure);
    }
}

static void ask_again(struct preview_origin *origin)
{
    struct caller system = caller_system();
    struct error err;
    struct sandbox *sandbox =
        sandbox_find(origin->origins->domain, &system, origin->sandbox.text, &err);

    if (sandbox)
        preview_origin_ask(origin, sandbox);
    else
        refuse_waiting(origin, &err);
}

static void serve_waiting(struct preview_origin *origin, const struct error *failure)
{
    struct error gone;

    (void) error_set(&gone, ERR_UNAVAILABLE, 0, "the preview was closed");
    origin->leases++; /* stays while its leases are served */
    if (failure || origin->is_stale)
        refuse_waiting(origin, failure ? failure : &gone);
    while (origin->spare_count && origin->waiting_count) {
        struct list *at = list_first(&origin->waiting);

        list_remove(at);
        origin->waiting_count--;
        grant(origin, CONTAINER_OF(at, struct preview_lease, link));
    }
    if (origin->waiting_count)
        ask_again(origin);
    origin->leases--;
}

void preview_lease_begin(struct preview_origins *origins, struct sandbox *sandbox, uint16_t number,
                         struct preview_lease *lease,
                         void (*ready)(struct preview_lease *lease, const struct error *failure))
{
    struct preview_origin *origin = preview_origin_get(origins, sandbox, number);
    struct error error;

    *lease = (struct preview_lease){.ready = ready};
    list_init(&lease->link);
    if (has_way(origin)) {
        if (origin->spare_count < STOCK_LOW)
            preview_origin_ask(origin, sandbox);
        grant(origin, lease);
        return;
    }
    if (origin->waiting_count >= PREVIEW_WAITING_MAX) {
        (void) error_set(&error, ERR_UNAVAILABLE, 0, "more than %d requests wait for this port",
                         PREVIEW_WAITING_MAX);
        ready(lease, &error);
        return;
    }
    list_append(&origin->waiting, &lease->link);
    origin->waiting_count++;
    lease->origin = origin;
    preview_origin_ask(origin, sandbox);
}

void preview_lease_join(struct preview_lease *lease, struct preview_lease *granted)
{
    *lease = (struct preview_lease){.origin = granted->origin, .is_granted = true};
    list_init(&lease->link);
    list_append(&granted->origin->holders, &lease->link);
    granted->origin->leases++;
}

void preview_lease_end(struct preview_lease *lease)
{
    struct preview_origin *origin = TAKE_PTR(lease->origin);

    if (!origin)
        return;
    list_remove(&lease->link);
    if (lease->is_granted)
        origin->leases--;
    else
        origin->waiting_count--;
    preview_origin_release(origin);
}

struct http_origin *preview_lease_origin(struct preview_lease *lease)
{
    return lease->origin->http;
}

/* --- life ------------------------------------------------------------------------------------ */

static void swept(uv_timer_t *timer)
{
    struct preview_origins *origins = timer->data;

    LIST_EACH (&origins->all, at) {
        struct preview_origin *origin = CONTAINER_OF(at, struct preview_origin, link);

        if (!origin->leases && !origin->waiting_count && !http_origin_connections(origin->http))
            make_stale(origin);
    }
}

struct preview_origins *preview_origins_new(struct loop *loop, struct domain *domain)
{
    struct preview_origins *origins = mem_alloc(sizeof(*origins));

    origins->loop = loop;
    origins->domain = domain;
    list_init(&origins->all);
    random_bytes(&origins->seed, sizeof(origins->seed));
    (void) uv_timer_init(&loop->uv, &origins->sweep);
    origins->sweep.data = origins;
    (void) uv_timer_start(&origins->sweep, swept, SWEEP_MS, SWEEP_MS);
    return origins;
}

void preview_origins_forget(struct preview_origins *origins, const struct id *sandbox,
                            uint16_t number)
{
    struct preview_origin *origin = preview_origin_find(origins, sandbox, number);

    if (!origin)
        return;
    origin->leases++; /* stays until all are cut */
    unlist_origin(origin);
    close_http(origin);
    LIST_EACH (&origin->holders, at) {
        struct preview_lease *lease = CONTAINER_OF(at, struct preview_lease, link);

        if (lease->cut)
            lease->cut(lease);
    }
    origin->leases--;
    preview_origin_release(origin);
}

void preview_origins_close(struct preview_origins *origins, void (*done)(void *context),
                           void *context)
{
    origins->is_closing = true;
    origins->closed = done;
    origins->context = context;
    LIST_EACH (&origins->all, at)
        make_stale(CONTAINER_OF(at, struct preview_origin, link));
    check_closed(origins);
}
