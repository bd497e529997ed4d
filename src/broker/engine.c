#include "broker/engine.h"

#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "broker/broker_internal.h"

static void engine_gone(void *context)
{
    struct broker_engine *engine = context;
    void (*on_closed)(void *) = engine->on_closed;
    void *closed_context = engine->closed_context;

    http_router_free(engine->router);
    free(engine);
    if (on_closed)
        on_closed(closed_context);
}

void engine_release(struct broker_engine *engine)
{
    if (--engine->remains)
        return;
    resolver_close(engine->resolver, engine_gone, engine);
}

struct broker_engine *broker_engine_new(const struct broker_engine_options *options)
{
    struct broker_engine *engine = mem_alloc(sizeof(*engine));

    engine->options = *options;
    engine->resolver = resolver_new(options->loop);
    engine->router = http_router_new();
    engine->remains = 1; /* until it is closed */
    list_init(&engine->outlets);
    return engine;
}

void broker_engine_close(struct broker_engine *engine, void (*on_closed)(void *context),
                         void *context)
{
    struct list *first;

    engine->is_closing = true;
    engine->on_closed = on_closed;
    engine->closed_context = context;
    while ((first = list_first(&engine->outlets)))
        outlet_close(CONTAINER_OF(first, struct broker_outlet, link));
    engine_release(engine);
}

/* --- the interface ---------------------------------------------------------------------------- */

static struct broker_outlet *engine_open(void *self, const struct broker_place *place,
                                         const int *sockets, struct error *err)
{
    return outlet_open(self, place, sockets, err);
}

static int engine_change(void *self, struct broker_outlet *outlet, const struct broker_place *place,
                         struct error *err)
{
    (void) self;
    return outlet_change(outlet, place, err);
}

static const char *engine_authority(void *self, struct broker_outlet *outlet)
{
    (void) self;
    return outlet->authority ? authority_certificate(outlet->authority) : NULL;
}

static void engine_cut(void *self, struct broker_outlet *outlet)
{
    (void) self;
    outlet_cut(outlet);
}

static void engine_close(void *self, struct broker_outlet *outlet)
{
    (void) self;
    outlet_close(outlet);
}

struct broker broker_engine_interface(struct broker_engine *engine)
{
    return (struct broker){
        .self = engine,
        .open = engine_open,
        .change = engine_change,
        .authority = engine_authority,
        .cut = engine_cut,
        .close = engine_close,
    };
}

/* --- numbers ---------------------------------------------------------------------------------- */

const struct broker_counters *broker_engine_counters(const struct broker_engine *engine)
{
    return &engine->counters;
}

void broker_engine_write_metrics(const struct broker_engine *engine, struct text *out)
{
    static const struct {
        const char *name, *help, *type;
        size_t offset;
    } rows[] = {
#define ROW(name, help, type, member) {name, help, type, offsetof(struct broker_counters, member)}
        ROW("connections_total", "Connections from sandboxes", "counter", connections),
        ROW("asked_total", "What sandboxes asked for", "counter", asked),
        ROW("denied_total", "What was refused", "counter", denied),
        ROW("requests_total", "Requests passed on", "counter", requests),
        ROW("tunnels_total", "Tunnels begun", "counter", tunnels),
        ROW("intercepted_total", "TLS connections ended", "counter", intercepted),
        ROW("failures_total", "Upstreams that failed", "counter", failures),
        ROW("violations_total", "Things no well-meaning program does", "counter", violations),
        ROW("cut_total", "Streams cut because a budget was used up", "counter", cut),
        ROW("held_back_total", "Times a sandbox had all its connections", "counter", held_back),
        ROW("sent_bytes_total", "Bytes to upstreams", "counter", sent),
        ROW("received_bytes_total", "Bytes from upstreams", "counter", received),
        ROW("outlets", "Sandboxes with an outlet", "gauge", outlets),
#undef ROW
    };

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        uint64_t number;

        memcpy(&number, (const char *) &engine->counters + rows[i].offset, sizeof(number));
        text_format(out, "# HELP burrow_broker_%s %s.\n# TYPE burrow_broker_%s %s\n", rows[i].name,
                    rows[i].help, rows[i].name, rows[i].type);
        text_format(out, "burrow_broker_%s %llu\n", rows[i].name, (unsigned long long) number);
    }
}
