#include "api/agent/agents.h"

#include <string.h>

#include "api/agent/agents_internal.h"
#include "api/agent/inquiry.h"
#include "base/auto.h"
#include "base/memory.h"
#include "domain/caller.h"
#include "domain/sandbox/sandboxes.h"

/* What nobody asked for this long is let go; its connections were closed before. */
#define UNUSED_MS ((uint64_t) 60 * 1000)
#define SWEEP_MS  ((uint64_t) 15 * 1000)

struct agent_peer {
    struct table_link by_id;
    struct list link;
    struct id id;
    struct http_origin *origin; /* owned */
    uint64_t used_ms;
};

/* --- the table of peers ---------------------------------------------------------------------- */

static uint64_t hash_id(const struct agents *agents, const struct id *id)
{
    return table_hash(agents->seed, id->text, ID_LENGTH);
}

static struct agent_peer *agents_find(const struct agents *agents, const struct id *id)
{
    for (struct table_link *at = table_find(&agents->by_id, hash_id(agents, id)); at;
         at = table_next(at)) {
        struct agent_peer *peer = CONTAINER_OF(at, struct agent_peer, by_id);

        if (memcmp(peer->id.text, id->text, ID_LENGTH) == 0)
            return peer;
    }
    return NULL;
}

void agents_part_closed(struct agents *agents)
{
    if (--agents->open || !agents->is_closing)
        return;
    table_done(&agents->by_id);
    if (agents->done)
        agents->done(agents->context);
    free(agents);
}

static void origin_closed(struct http_origin *origin, void *data)
{
    (void) origin;
    agents_part_closed(data);
}

static void let_go(struct agents *agents, struct agent_peer *peer)
{
    table_remove(&agents->by_id, &peer->by_id);
    list_remove(&peer->link);
    http_origin_close(peer->origin, origin_closed, agents);
    free(peer);
}

/* Room for one more: the least recently used one that is not talked to goes. */
static int agents_make_room(struct agents *agents, struct error *err)
{
    if (agents->by_id.count < AGENTS_MAX)
        return 0;
    LIST_EACH (&agents->peers, at) {
        struct agent_peer *peer = CONTAINER_OF(at, struct agent_peer, link);

        if (!http_origin_is_busy(peer->origin)) {
            let_go(agents, peer);
            return 0;
        }
    }
    return error_set(err, ERR_UNAVAILABLE, 0, "more than %d sandboxes are busy", AGENTS_MAX);
}

static struct http_origin *connect_to(struct agents *agents, const struct id *id, struct error *err)
{
    struct http_origin_options options = HTTP_ORIGIN_OPTIONS_DEFAULT;
    struct caller system = caller_system();
    char address[PROVIDER_ADDRESS_MAX];
    struct sandbox *sandbox = sandbox_find(agents->domain, &system, id->text, err);

    if (!sandbox || sandbox_agent_address(agents->domain, sandbox, address, err) < 0)
        return NULL;
    options.is_agent = true;
    return http_origin_new(agents->loop, address, &options, err);
}

static struct agent_peer *agents_add(struct agents *agents, const struct id *id, struct error *err)
{
    struct http_origin *origin;
    struct agent_peer *peer;

    if (agents_make_room(agents, err) < 0)
        return NULL;
    origin = connect_to(agents, id, err);
    if (!origin)
        return NULL;
    peer = mem_alloc(sizeof(*peer));
    peer->id = *id;
    peer->origin = origin;
    peer->by_id.hash = hash_id(agents, id);
    table_add(&agents->by_id, &peer->by_id);
    list_init(&peer->link);
    agents->open++;
    if (!agents->sweep.due)
        deadline_set(&agents->sweep, SWEEP_MS);
    return peer;
}

struct http_origin *agents_origin(struct agents *agents, const struct id *sandbox,
                                  struct error *err)
{
    struct agent_peer *peer = agents_find(agents, sandbox);

    if (agents->is_closing || !agents->domain) {
        (void) error_set(err, ERR_UNAVAILABLE, 0, "the daemon is starting or shutting down");
        return NULL;
    }
    if (!peer && !(peer = agents_add(agents, sandbox, err)))
        return NULL;
    peer->used_ms = loop_now(agents->loop);
    list_remove(&peer->link);
    list_append(&agents->peers, &peer->link);
    return peer->origin;
}

static void agents_sweep(struct deadline *deadline)
{
    struct agents *agents = CONTAINER_OF(deadline, struct agents, sweep);
    uint64_t now = loop_now(agents->loop);

    LIST_EACH (&agents->peers, at) {
        struct agent_peer *peer = CONTAINER_OF(at, struct agent_peer, link);

        if (now - peer->used_ms < UNUSED_MS)
            break;
        if (!http_origin_is_busy(peer->origin))
            let_go(agents, peer);
    }
    if (!list_is_empty(&agents->peers))
        deadline_set(&agents->sweep, SWEEP_MS);
}

/* --- life ------------------------------------------------------------------------------------ */

static void agents_forget(void *self, const struct id *sandbox)
{
    struct agents *agents = self;
    struct agent_peer *peer = agents_find(agents, sandbox);

    if (peer)
        let_go(agents, peer);
}

struct agents *agents_new(struct loop *loop, struct log *log)
{
    struct agents *agents = mem_alloc(sizeof(*agents));

    agents->loop = loop;
    agents->log = log;
    agents->open = 1; /* the sweep's timer */
    list_init(&agents->peers);
    list_init(&agents->inquiries);
    random_bytes(&agents->seed, sizeof(agents->seed));
    deadline_init(loop, &agents->sweep, agents_sweep);
    inside_agent_init(agents);
    agents->inside.forget = agents_forget;
    return agents;
}

void agents_set_domain(struct agents *agents, struct domain *domain)
{
    agents->domain = domain;
}

const struct inside *agents_inside(struct agents *agents)
{
    return &agents->inside;
}

void agents_count(const struct agents *agents, struct agents_counts *ret_counts)
{
    *ret_counts = (struct agents_counts){.peers = agents->by_id.count};
    LIST_EACH (&agents->peers, at)
        ret_counts->connections +=
            http_origin_connections(CONTAINER_OF(at, struct agent_peer, link)->origin);
}

static void sweep_closed(struct deadline *deadline)
{
    agents_part_closed(CONTAINER_OF(deadline, struct agents, sweep));
}

void agents_close(struct agents *agents, void (*done)(void *context), void *context)
{
    struct list *first;

    agents->is_closing = true;
    agents->done = done;
    agents->context = context;
    inquiries_close(agents);
    while ((first = list_first(&agents->peers)))
        let_go(agents, CONTAINER_OF(first, struct agent_peer, link));
    deadline_close(&agents->sweep, sweep_closed);
}
