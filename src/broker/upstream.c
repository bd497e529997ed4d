#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/encoding/sha256.h"
#include "base/memory.h"
#include "broker/broker_internal.h"

#define UPSTREAMS_MAX      64 /* hosts of one sandbox with kept connections */
#define UPSTREAM_IDLE_MAX  8
#define UPSTREAM_IDLE_MS   20000 /* less than servers keep theirs, so that few are found dead */
#define UPSTREAM_STALL_MS  60000
#define UPSTREAM_NO_SOCKET (-ENOTCONN)

/* Connections are shared by requests of one sandbox, to one address, with one proof: a reply that an
 * attacker managed to shift goes to himself. */
struct upstream {
    struct list link; /* of the outlet, used last at its end */
    struct broker_outlet *outlet;
    struct http_origin *origin; /* owned */
    struct upstream_address address;
    uint8_t proof[SHA256_SIZE];
    int fd;      /* owned: for the exchange that is being started */
    size_t held; /* requests that are using it */
};

static void proof_add(struct sha256 *sha, const char *text)
{
    sha256_add(sha, text ? text : "\n", text ? strlen(text) + 1 : 1);
}

static void upstream_proof(const struct broker_grant *grant, uint8_t ret[static SHA256_SIZE])
{
    struct sha256 sha;

    sha256_init(&sha);
    for (size_t i = 0; i < grant->header_count; i++) {
        proof_add(&sha, grant->headers[i].name);
        proof_add(&sha, grant->headers[i].value);
    }
    proof_add(&sha, grant->query_key);
    proof_add(&sha, grant->may_be_local ? "local" : "public");
    sha256_finish(&sha, ret);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void upstream_gone(struct http_origin *origin, void *data)
{
    struct upstream *upstream = data;
    struct broker_outlet *outlet = upstream->outlet;

    (void) origin;
    upstream->fd = fd_close(upstream->fd);
    free(upstream);
    outlet_release(outlet);
}

static void upstream_close(struct upstream *upstream)
{
    list_remove(&upstream->link);
    upstream->outlet->upstream_count--;
    http_origin_close(upstream->origin, upstream_gone, upstream);
}

void upstreams_close(struct broker_outlet *outlet)
{
    struct list *first;

    while ((first = list_first(&outlet->upstreams)))
        upstream_close(CONTAINER_OF(first, struct upstream, link));
}

static void upstreams_make_room(struct broker_outlet *outlet)
{
    LIST_EACH (&outlet->upstreams, at) {
        struct upstream *upstream = CONTAINER_OF(at, struct upstream, link);

        if (outlet->upstream_count < UPSTREAMS_MAX)
            return;
        if (!upstream->held)
            upstream_close(upstream);
    }
}

/* --- finding and making ----------------------------------------------------------------------- */

static int upstream_socket(void *data, bool *ret_connecting)
{
    struct upstream *upstream = data;

    *ret_connecting = false;
    return upstream->fd >= 0 ? TAKE_FD(upstream->fd) : UPSTREAM_NO_SOCKET;
}

static struct upstream *upstream_new(struct broker_outlet *outlet,
                                     const struct upstream_address *address)
{
    const struct broker_engine_options *engine = &outlet->engine->options;
    struct http_origin_options options = HTTP_ORIGIN_OPTIONS_DEFAULT;
    struct upstream *upstream = mem_alloc(sizeof(*upstream));

    upstream->outlet = outlet;
    upstream->address = *address;
    upstream->fd = -EBADF;
    options.dial = upstream_socket;
    options.dial_data = upstream;
    options.tls = address->is_tls ? engine->tls : NULL;
    options.tls_host = upstream->address.host;
    options.connections_max = SIZE_MAX; /* as many as the outlet has connections */
    options.idle_max = UPSTREAM_IDLE_MAX;
    options.connect_timeout_ms = engine->dial_ms;
    options.head_timeout_ms = engine->answer_ms;
    options.body_timeout_ms = engine->pause_ms;
    options.stall_timeout_ms = UPSTREAM_STALL_MS;
    options.idle_timeout_ms = UPSTREAM_IDLE_MS;
    upstream->origin = http_origin_new(engine->loop, NULL, &options, NULL);
    list_append(&outlet->upstreams, &upstream->link);
    outlet->upstream_count++;
    outlet->handles++;
    return upstream;
}

static bool upstream_fits(const struct upstream *upstream, const struct upstream_address *address,
                          const uint8_t proof[static SHA256_SIZE])
{
    return upstream->address.port == address->port && upstream->address.is_tls == address->is_tls &&
           strcmp(upstream->address.host, address->host) == 0 &&
           memcmp(upstream->proof, proof, SHA256_SIZE) == 0;
}

struct upstream *upstream_get(struct broker_outlet *outlet, const struct upstream_address *address,
                              const struct broker_grant *grant)
{
    struct upstream *upstream;
    uint8_t proof[SHA256_SIZE];

    upstream_proof(grant, proof);
    LIST_EACH (&outlet->upstreams, at) {
        upstream = CONTAINER_OF(at, struct upstream, link);
        if (upstream_fits(upstream, address, proof)) {
            list_remove(&upstream->link);
            list_append(&outlet->upstreams, &upstream->link);
            return upstream;
        }
    }
    upstreams_make_room(outlet);
    upstream = upstream_new(outlet, address);
    memcpy(upstream->proof, proof, sizeof(proof));
    return upstream;
}

bool upstream_has_idle(const struct upstream *upstream)
{
    return http_origin_has_idle(upstream->origin);
}

struct http_exchange *upstream_start(struct upstream *upstream, int fd,
                                     const struct http_exchange_request *request,
                                     const struct http_exchange_events *events, void *data)
{
    struct http_exchange *exchange;

    upstream->fd = fd;
    exchange = http_exchange_start(upstream->origin, request, events, data);
    upstream->fd = fd_close(upstream->fd); /* a connection came free meanwhile */
    return exchange;
}

void upstream_hold(struct upstream *upstream)
{
    upstream->held++;
}

void upstream_leave(struct upstream *upstream)
{
    upstream->held--;
}

bool upstream_was_stale(const struct error *error)
{
    return error->system == UPSTREAM_NO_SOCKET || error->system == -UPSTREAM_NO_SOCKET;
}

struct dial *outlet_dial(struct broker_outlet *outlet, const char *host, uint16_t port,
                         const struct broker_grant *grant,
                         void (*done)(void *context, int fd, const struct error *err),
                         void *context)
{
    const struct broker_engine_options *options = &outlet->engine->options;
    const struct dial_request request = {
        .host = host,
        .port = port,
        .rules = grant->may_be_local ? NULL : &options->rules,
        .asker = outlet,
        .total_ms = options->dial_ms,
        .done = done,
        .context = context,
    };

    return dial_start(options->loop, outlet->engine->resolver, &request);
}
