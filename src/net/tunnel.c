#include "net/tunnel.h"

#include "base/auto.h"
#include "base/memory.h"

struct tunnel {
    struct stream *sides[2]; /* owned */
    struct http_guest guest;
    struct tunnel_watch *watch; /* borrowed, may be NULL */
    int open;                   /* streams whose memory is not gone yet */
    bool closing;
};

static struct stream *other_side(const struct stream *stream)
{
    struct tunnel *tunnel = stream->owner;

    return tunnel->sides[tunnel->sides[0] == stream];
}

static void side_gone(struct stream *stream)
{
    struct tunnel *tunnel = stream->owner;

    stream_free(stream);
    if (--tunnel->open)
        return;
    if (tunnel->watch)
        tunnel->watch->ended(tunnel->watch);
    if (tunnel->guest.server)
        http_guest_leave(&tunnel->guest); /* last: the server may be gone with it */
    free(tunnel);
}

void tunnel_cut(struct tunnel *tunnel)
{
    if (tunnel->closing)
        return;
    tunnel->closing = true;
    stream_close(tunnel->sides[0], side_gone);
    stream_close(tunnel->sides[1], side_gone);
}

static void side_data(struct stream *stream, const char *bytes, size_t length)
{
    struct stream *other = other_side(stream);

    stream_write(other, bytes, length);
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

static void server_shuts_down(struct http_guest *guest, bool now)
{
    (void) now; /* a tunnel knows no polite end */
    tunnel_cut(CONTAINER_OF(guest, struct tunnel, guest));
}

void tunnel_start(struct stream *client, const char *client_pending, size_t client_length,
                  struct stream *upstream, const char *upstream_pending, size_t upstream_length,
                  struct http_server *server, struct tunnel_watch *watch)
{
    struct tunnel *tunnel = mem_alloc(sizeof(*tunnel));

    if (watch)
        watch->tunnel = tunnel;
    tunnel->watch = watch;
    tunnel->sides[0] = client;
    tunnel->sides[1] = upstream;
    tunnel->open = 2;
    stream_set_owner(client, tunnel, &side_events);
    stream_set_owner(upstream, tunnel, &side_events);
    if (server)
        http_guest_enter(&tunnel->guest, server, server_shuts_down);
    stream_resume(client);
    stream_resume(upstream);
    stream_write(upstream, client_pending, client_length);
    stream_write(client, upstream_pending, upstream_length);
    /* What happened before the streams were ours does not happen again. */
    if (client->ended)
        stream_shut_write(upstream);
    if (upstream->ended)
        stream_shut_write(client);
}
