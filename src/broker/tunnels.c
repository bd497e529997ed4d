/* Tunnels of an outlet: bytes that go through unread, and the passage that says so. */
#include "base/auto.h"
#include "base/memory.h"
#include "broker/broker_internal.h"

struct passing {
    struct tunnel_watch watch;
    struct list link; /* of the outlet */
    struct broker_passage *passage;
};

static void passing_end(struct passing *passing, const char *failure)
{
    struct broker_passage *passage = passing->passage;

    passage->record.sent += passing->watch.from_client;
    passage->record.received += passing->watch.from_upstream;
    list_remove(&passing->link);
    free(passing);
    passage_end(passage, failure);
}

static void passing_ended(struct tunnel_watch *watch)
{
    passing_end(CONTAINER_OF(watch, struct passing, watch), NULL);
}

void tunnel_begin(struct broker_outlet *outlet, struct broker_passage *passage,
                  struct stream *client, const char *client_pending, size_t client_length,
                  struct stream *upstream, const char *upstream_pending, size_t upstream_length,
                  bool is_websocket)
{
    struct passing *passing = mem_alloc(sizeof(*passing));
    const struct tunnel_options options = {
        .server = outlet->server, .watch = &passing->watch, .is_websocket = is_websocket};

    passing->watch.ended = passing_ended;
    passing->passage = passage;
    passage->record.first_byte_ms = passage_ms(passage);
    list_append(&outlet->tunnels, &passing->link);
    outlet->engine->counters.tunnels++;
    tunnel_start(client, client_pending, client_length, upstream, upstream_pending, upstream_length,
                 &options);
}

void tunnels_cut(struct broker_outlet *outlet)
{
    struct list *first;

    while ((first = list_first(&outlet->tunnels))) {
        struct passing *passing = CONTAINER_OF(first, struct passing, link);
        struct tunnel *tunnel = passing->watch.tunnel;

        tunnel_forget(tunnel);
        passing_end(passing, "it was cut");
        tunnel_cut(tunnel);
    }
}
