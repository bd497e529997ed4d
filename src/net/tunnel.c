#include "net/tunnel.h"

#include "base/auto.h"
#include "base/memory.h"
#include "net/websocket/websocket.h"
#include "net/websocket/websocket_boundary.h"

/* Of the client of a WebSocket that is told why it has to go. */
struct tunnel_farewell {
    struct websocket ws;
    struct tunnel *tunnel;
};

struct tunnel {
    struct stream *sides[2]; /* owned: client, upstream */
    struct http_guest guest;
    struct tunnel_watch *watch;         /* borrowed, may be NULL */
    struct websocket_boundary boundary; /* of what the client was sent */
    struct tunnel_farewell *farewell;   /* owned; it has the client's stream */
    int open;                           /* streams whose memory is not gone yet */
    bool is_websocket;
    bool closing;
};

static struct stream *other_side(const struct stream *stream)
{
    struct tunnel *tunnel = stream->owner;

    return tunnel->sides[tunnel->sides[0] == stream];
}

static void one_side_less(struct tunnel *tunnel)
{
    if (--tunnel->open)
        return;
    if (tunnel->watch)
        tunnel->watch->ended(tunnel->watch);
    if (tunnel->guest.server)
        http_guest_leave(&tunnel->guest); /* last: the server may be gone with it */
    free(tunnel);
}

static void side_gone(struct stream *stream)
{
    struct tunnel *tunnel = stream->owner;

    stream_free(stream);
    one_side_less(tunnel);
}

void tunnel_cut(struct tunnel *tunnel)
{
    if (tunnel->farewell)
        websocket_abort(&tunnel->farewell->ws);
    if (tunnel->closing)
        return;
    tunnel->closing = true;
    stream_close(tunnel->sides[0], side_gone);
    stream_close(tunnel->sides[1], side_gone);
}

void tunnel_forget(struct tunnel *tunnel)
{
    tunnel->watch = NULL;
}

/* --- expelled ------------------------------------------------------------------------------- */

static void farewell_heard(struct websocket *ws, enum websocket_opcode kind, const char *bytes,
                           size_t length)
{
    (void) ws; /* nothing is delivered behind our close frame */
    (void) kind;
    (void) bytes;
    (void) length;
}

static void farewell_over(struct websocket *ws)
{
    struct tunnel_farewell *farewell = CONTAINER_OF(ws, struct tunnel_farewell, ws);
    struct tunnel *tunnel = farewell->tunnel;

    tunnel->farewell = NULL;
    free(farewell);
    one_side_less(tunnel);
}

void tunnel_expel(struct tunnel *tunnel, const char *reason)
{
    static const struct websocket_options options = {.role = WEBSOCKET_SERVER};
    static const struct websocket_events events = {.on_message = farewell_heard,
                                                   .on_released = farewell_over};

    if (tunnel->closing)
        return;
    if (!tunnel->is_websocket || tunnel->sides[0]->shut_requested || tunnel->sides[0]->failed ||
        !websocket_boundary_is_here(&tunnel->boundary)) {
        tunnel_cut(tunnel);
        return;
    }
    tunnel->closing = true;
    stream_close(tunnel->sides[1], side_gone);
    tunnel->farewell = mem_alloc(sizeof(*tunnel->farewell));
    tunnel->farewell->tunnel = tunnel;
    websocket_init(&tunnel->farewell->ws, tunnel->sides[0], &options, &events, NULL, 0);
    (void) websocket_close(&tunnel->farewell->ws, WEBSOCKET_CODE_POLICY, reason);
}

/* --- bytes ---------------------------------------------------------------------------------- */

static void tunnel_pass(struct tunnel *tunnel, struct stream *to, const char *bytes, size_t length)
{
    if (tunnel->watch && to == tunnel->sides[0])
        tunnel->watch->from_upstream += length;
    else if (tunnel->watch)
        tunnel->watch->from_client += length;
    if (tunnel->is_websocket && to == tunnel->sides[0])
        websocket_boundary_pass(&tunnel->boundary, bytes, length);
    stream_write(to, bytes, length);
}

static void side_data(struct stream *stream, const char *bytes, size_t length)
{
    struct stream *other = other_side(stream);

    tunnel_pass(stream->owner, other, bytes, length);
    if (stream_is_full(other))
        stream_pause(stream);
}

static void side_drained(struct stream *stream)
{
    stream_resume(other_side(stream));
}

static void side_ended(struct stream *stream)
{
    stream_shut_write(other_side(stream));
}

/* Our end was sent, which means that the other side's had come: with both, it is over. */
static void side_shut(struct stream *stream)
{
    struct tunnel *tunnel = stream->owner;

    if (other_side(stream)->shut_done)
        tunnel_cut(tunnel);
}

static void side_failed(struct stream *stream, int error)
{
    (void) error; /* nobody is left to tell: the other side sees its connection end */
    tunnel_cut(stream->owner);
}

static const struct stream_events side_events = {
    .on_data = side_data,
    .on_end = side_ended,
    .on_drain = side_drained,
    .on_shut = side_shut,
    .on_failure = side_failed,
};

static void tunnel_shut_down(struct http_guest *guest, enum http_leave how, const char *reason)
{
    struct tunnel *tunnel = CONTAINER_OF(guest, struct tunnel, guest);

    if (how == HTTP_LEAVE_EXPELLED)
        tunnel_expel(tunnel, reason);
    else
        tunnel_cut(tunnel); /* it knows no polite end */
}

void tunnel_start(struct stream *client, const char *client_pending, size_t client_length,
                  struct stream *upstream, const char *upstream_pending, size_t upstream_length,
                  const struct tunnel_options *options)
{
    struct tunnel *tunnel = mem_alloc(sizeof(*tunnel));

    if (options->watch)
        options->watch->tunnel = tunnel;
    tunnel->watch = options->watch;
    tunnel->is_websocket = options->is_websocket;
    tunnel->sides[0] = client;
    tunnel->sides[1] = upstream;
    tunnel->open = 2;
    stream_set_owner(client, tunnel, &side_events);
    stream_set_owner(upstream, tunnel, &side_events);
    if (options->server)
        http_guest_enter(&tunnel->guest, options->server, options->caller, tunnel_shut_down);
    stream_resume(client);
    stream_resume(upstream);
    tunnel_pass(tunnel, upstream, client_pending, client_length);
    tunnel_pass(tunnel, client, upstream_pending, upstream_length);
    /* What happened before the streams were ours does not happen again. */
    if (client->ended)
        stream_shut_write(upstream);
    if (upstream->ended)
        stream_shut_write(client);
}
