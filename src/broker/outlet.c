#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "broker/broker_internal.h"
#include "broker/refusal.h"

#define OUTLET_REST_MS  250   /* when the owner, or all together, have too many connections */
#define OUTLET_TELL_MS  60000 /* too many connections are told at most so often */
#define OUTLET_BACKLOG  256
#define OUTLET_DRAIN_MS 1 /* there is nothing left to wait for */

/* --- certificates ----------------------------------------------------------------------------- */

struct leaf {
    struct list link;
    struct tls_context *context; /* owned */
    int64_t made_s;
    char host[URL_HOST_MAX + 1];
};

static int64_t outlet_now_s(const struct broker_outlet *outlet)
{
    return clock_wall_ms(outlet->engine->options.clock) / 1000;
}

static void leaf_free(struct leaf *leaf)
{
    list_remove(&leaf->link);
    tls_context_free(leaf->context); /* connections keep what they need of it */
    free(leaf);
}

static void leaves_drop(struct broker_outlet *outlet)
{
    struct list *first;

    while ((first = list_first(&outlet->leaves)))
        leaf_free(CONTAINER_OF(first, struct leaf, link));
}

static struct leaf *leaf_find(struct broker_outlet *outlet, const char *host)
{
    LIST_EACH (&outlet->leaves, at) {
        struct leaf *leaf = CONTAINER_OF(at, struct leaf, link);

        if (strcmp(leaf->host, host) == 0)
            return leaf;
    }
    return NULL;
}

struct tls_context *outlet_leaf(struct broker_outlet *outlet, const char *host, struct error *err)
{
    struct leaf *leaf = leaf_find(outlet, host);
    struct tls_context *context;
    int64_t now_s = outlet_now_s(outlet);

    if (leaf && now_s - leaf->made_s < LEAF_RENEW_HOURS * 3600)
        return leaf->context;
    if (leaf)
        leaf_free(leaf);
    if (!outlet->authority) {
        (void) error_set(err, ERR_FORBIDDEN, 0, "TLS is not ended for this sandbox");
        return NULL;
    }
    context = authority_issue(outlet->authority, host, now_s, err);
    if (!context)
        return NULL;
    leaf = mem_alloc(sizeof(*leaf));
    leaf->context = context;
    leaf->made_s = now_s;
    (void) snprintf(leaf->host, sizeof(leaf->host), "%s", host);
    list_append(&outlet->leaves, &leaf->link);
    return context;
}

static bool authority_fits(const struct broker_outlet *outlet,
                           const struct broker_authority *authority,
                           const struct broker_place *place)
{
    return authority && authority_covers(authority, place->intercepted, place->intercepted_count,
                                         outlet_now_s(outlet));
}

/* One that cannot be loaded or does not fit is replaced. */
static int authority_choose(struct broker_outlet *outlet, const struct broker_place *place,
                            struct error *err)
{
    const struct broker_host *host = &outlet->engine->options.host;
    struct broker_authority *authority = NULL;

    if (!place->intercepted_count || authority_fits(outlet, outlet->authority, place))
        return 0;
    if (place->ca_certificate && place->ca_key)
        authority = authority_load(place->ca_certificate, place->ca_key, NULL);
    if (!authority_fits(outlet, authority, place)) {
        authority_free(authority);
        authority =
            authority_new(place->intercepted, place->intercepted_count, outlet_now_s(outlet), err);
        if (!authority)
            return -1;
        host->made_authority(host->self, &outlet->sandbox, authority_certificate(authority),
                             authority_key(authority));
    }
    leaves_drop(outlet);
    authority_free(outlet->authority);
    outlet->authority = authority;
    return 0;
}

int outlet_change(struct broker_outlet *outlet, const struct broker_place *place, struct error *err)
{
    if (place->intercepted_count)
        return authority_choose(outlet, place, err);
    leaves_drop(outlet);
    authority_free(TAKE_PTR(outlet->authority));
    return 0;
}

/* --- how many connections --------------------------------------------------------------------- */

static size_t outlet_connections(const struct broker_outlet *outlet)
{
    return outlet->arriving + (outlet->server ? http_server_connections(outlet->server) : 0);
}

static void outlet_hold_back(struct broker_outlet *outlet)
{
    uint64_t now = loop_now(outlet->engine->options.loop);

    if (outlet->is_resting)
        return;
    outlet->is_resting = true;
    outlet->engine->counters.held_back++;
    for (size_t i = 0; i < outlet->door_count; i++)
        listener_pause(outlet->doors[i].listener);
    if (outlet->told_ms && now - outlet->told_ms < OUTLET_TELL_MS)
        return;
    outlet->told_ms = now;
    outlet_violated(outlet, "too_many_connections", NULL, 0);
}

static void outlet_go_on(struct broker_outlet *outlet)
{
    if (!outlet->is_resting || outlet->is_closing)
        return;
    outlet->is_resting = false;
    for (size_t i = 0; i < outlet->door_count; i++)
        listener_resume(outlet->doors[i].listener);
}

static void outlet_rested(struct deadline *deadline)
{
    struct broker_outlet *outlet = CONTAINER_OF(deadline, struct broker_outlet, rest);

    if (outlet_connections(outlet) < outlet->engine->options.connections_max)
        outlet_go_on(outlet);
}

void outlet_has_room(struct broker_outlet *outlet)
{
    size_t count = outlet_connections(outlet);

    if (count)
        share_claim_set(&outlet->claim, count);
    else
        share_release(&outlet->claim);
    if (count < outlet->engine->options.connections_max && !outlet->rest.due)
        outlet_go_on(outlet);
}

/* Whether the connection that was just accepted is covered. */
static bool outlet_claims(struct broker_outlet *outlet)
{
    const struct share_asker asker = {.owner = outlet->owner, .is_bare = true};
    size_t count = outlet_connections(outlet) + 1;

    if (outlet->claim.account)
        return share_claim_resize(&outlet->claim, count, NULL) == 0;
    return share_claim(outlet->engine->options.shares, &asker, SHARE_EGRESS, count, &outlet->claim,
                       NULL) == 0;
}

/* --- doors ------------------------------------------------------------------------------------ */

/* HTTP from its first byte on. */
static void door_serve(struct door *door, int fd, const char *peer)
{
    static const struct stream_events none = {.on_data = NULL};
    struct broker_outlet *outlet = door->outlet;
    struct stream *stream = mem_alloc(sizeof(*stream));
    struct http_adoption adoption = {.peer = peer, .pending = ""};

    if (stream_init(stream, outlet->engine->options.loop, fd, NULL, false, &none) < 0) {
        (void) fd_close(fd);
        free(stream);
        return;
    }
    if (door->kind == DOOR_PLAIN)
        adoption.session = session_new(outlet, SESSION_MAPPED, NULL, door->port);
    http_server_adopt(outlet->server, stream, &adoption);
}

static void door_accepted(struct listener *listener, int fd, const char *peer)
{
    struct door *door = listener_owner(listener);
    struct broker_outlet *outlet = door->outlet;

    if (!outlet_claims(outlet)) {
        (void) fd_close(fd);
        deadline_set(&outlet->rest, OUTLET_REST_MS);
        outlet_hold_back(outlet);
        return;
    }
    outlet->engine->counters.connections++;
    if (door->kind == DOOR_PROXY || door->kind == DOOR_PLAIN)
        door_serve(door, fd, peer);
    else
        arrival_new(door, fd, peer);
    if (outlet_connections(outlet) >= outlet->engine->options.connections_max)
        outlet_hold_back(outlet);
}

static void door_closed(struct listener *listener)
{
    struct door *door = listener_owner(listener);

    free(door->host);
    outlet_release(door->outlet);
}

static int door_open(struct broker_outlet *outlet, struct door *door, int fd, const char *address,
                     struct error *err)
{
    static const struct listener_events events = {.on_accept = door_accepted,
                                                  .on_closed = door_closed};
    struct sys_address place = {.length = sizeof(place.ipv4)};
    AUTO(close) int owned = fd;
    int r = -EINVAL;

    place.ipv4.sin_family = AF_INET;
    place.ipv4.sin_port = htons(door->port);
    if (inet_pton(AF_INET, address, &place.ipv4.sin_addr) == 1)
        r = sys_socket_listen_on(fd, &place, OUTLET_BACKLOG);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "listen inside the sandbox at %s:%u", address,
                         door->port);
    door->outlet = outlet;
    door->listener =
        listener_new_on(outlet->engine->options.loop, TAKE_FD(owned), &events, door, err);
    if (!door->listener)
        return -1;
    outlet->door_count++;
    outlet->handles++;
    return 0;
}

static const struct {
    uint16_t port;
    enum door_kind kind;
} fixed_doors[BROKER_SOCKETS] = {
    {BROKER_PORT, DOOR_PROXY},
    {443, DOOR_TLS},
    {80, DOOR_PLAIN},
};

/* All sockets are taken, whatever happens. */
static int doors_open(struct broker_outlet *outlet, const struct broker_place *place,
                      const int *sockets, struct error *err)
{
    size_t count = BROKER_SOCKETS + place->forward_count;
    int r = 0;

    for (size_t i = 0; i < count; i++) {
        struct door *door = &outlet->doors[i];
        const char *address = BROKER_ADDRESS;

        if (r < 0) {
            (void) fd_close(sockets[i]);
            continue;
        }
        if (i < BROKER_SOCKETS) {
            *door = (struct door){.kind = fixed_doors[i].kind, .port = fixed_doors[i].port};
        } else {
            const struct broker_forward *forward = &place->forwards[i - BROKER_SOCKETS];

            *door = (struct door){.kind = DOOR_FORWARD, .port = forward->port};
            door->host = mem_copy_text(forward->host);
            address = forward->address;
        }
        r = door_open(outlet, door, sockets[i], address, err);
        if (r < 0)
            free(TAKE_PTR(door->host));
    }
    return r;
}

/* --- its server ------------------------------------------------------------------------------- */

static http_handler *outlet_handler(struct http_request *request, void *data)
{
    request->context = data;
    return gate_handle;
}

/* Refused before anybody looked at it: malformed in a way that matters, or too slow. */
static void outlet_refused(struct http_request *request, const struct error *error, void *data)
{
    if (!request->context && error->code == ERR_INVALID)
        outlet_violated(data, "malformed_request", NULL, 0);
}

static void outlet_encode_error(const struct http_request *request, const struct error *error,
                                struct text *body, const char **ret_content_type)
{
    (void) request;
    refusal_write(body, BROKER_UNMETERED, error, NULL);
    *ret_content_type = "application/json";
}

static void connection_left(void *session, void *data)
{
    struct broker_outlet *outlet = data;

    if (session)
        session_end(session);
    outlet_has_room(outlet);
}

static struct http_server *outlet_serve(struct broker_outlet *outlet)
{
    struct http_server_options options = HTTP_SERVER_OPTIONS_DEFAULT;

    options.router = outlet->engine->router;
    options.clock = outlet->engine->options.clock;
    options.intercept = outlet_handler;
    options.intercept_data = outlet;
    options.on_error = outlet_refused;
    options.admit_data = outlet;
    options.encode_error = outlet_encode_error;
    options.on_left = connection_left;
    options.left_data = outlet;
    options.limits.takes_connect = true;
    options.connections_max = SIZE_MAX; /* the doors are ours */
    return http_server_new(outlet->engine->options.loop, &options);
}

/* --- life ------------------------------------------------------------------------------------- */

void outlet_violated(struct broker_outlet *outlet, const char *reason, const char *host,
                     uint16_t port)
{
    const struct broker_host *told = &outlet->engine->options.host;

    outlet->engine->counters.violations++;
    told->violated(told->self, &outlet->sandbox, reason, host, port);
}

void outlet_release(struct broker_outlet *outlet)
{
    struct broker_engine *engine = outlet->engine;

    if (--outlet->handles)
        return;
    leaves_drop(outlet);
    authority_free(outlet->authority);
    share_release(&outlet->claim);
    engine->counters.outlets--;
    free(outlet);
    engine_release(engine);
}

static void outlet_drained(struct http_server *server, void *data)
{
    struct broker_outlet *outlet = data;

    http_server_free(server);
    outlet->server = NULL;
    outlet_release(outlet);
}

static void outlet_rest_gone(struct deadline *deadline)
{
    outlet_release(CONTAINER_OF(deadline, struct broker_outlet, rest));
}

void outlet_cut(struct broker_outlet *outlet)
{
    arrivals_cut(outlet);
    tunnels_cut(outlet);
    http_server_cut(outlet->server);
    upstreams_close(outlet);
}

void outlet_close(struct broker_outlet *outlet)
{
    if (outlet->is_closing)
        return;
    outlet->is_closing = true;
    list_remove(&outlet->link);
    outlet->handles++; /* until we are through */
    for (size_t i = 0; i < outlet->door_count; i++)
        listener_close(outlet->doors[i].listener);
    outlet_cut(outlet);
    http_server_drain(outlet->server, OUTLET_DRAIN_MS, outlet_drained, outlet);
    deadline_close(&outlet->rest, outlet_rest_gone);
    outlet_release(outlet);
}

static struct broker_outlet *outlet_new(struct broker_engine *engine,
                                        const struct broker_place *place)
{
    struct broker_outlet *outlet = mem_alloc(sizeof(*outlet));

    outlet->engine = engine;
    outlet->sandbox = place->sandbox;
    outlet->owner = place->owner;
    list_init(&outlet->leaves);
    list_init(&outlet->arrivals);
    list_init(&outlet->tunnels);
    list_init(&outlet->upstreams);
    outlet->server = outlet_serve(outlet);
    deadline_init(engine->options.loop, &outlet->rest, outlet_rested);
    outlet->handles = 2; /* the server and the deadline */
    list_append(&engine->outlets, &outlet->link);
    engine->counters.outlets++;
    engine->remains++;
    return outlet;
}

struct broker_outlet *outlet_open(struct broker_engine *engine, const struct broker_place *place,
                                  const int *sockets, struct error *err)
{
    struct broker_outlet *outlet = outlet_new(engine, place);

    if (doors_open(outlet, place, sockets, err) == 0 && authority_choose(outlet, place, err) == 0)
        return outlet;
    outlet_close(outlet);
    return NULL;
}

/* --- sessions --------------------------------------------------------------------------------- */

struct broker_session *session_new(struct broker_outlet *outlet, enum session_kind kind,
                                   const char *host, uint16_t port)
{
    struct broker_session *session = mem_alloc(sizeof(*session));

    session->outlet = outlet;
    session->kind = kind;
    session->port = port;
    (void) snprintf(session->host, sizeof(session->host), "%s", host ? host : "");
    return session;
}

void session_end(struct broker_session *session)
{
    if (session->passage)
        passage_end(session->passage, NULL);
    free(session);
}
