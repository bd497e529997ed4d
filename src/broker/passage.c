#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "broker/broker_internal.h"

#define NS_PER_MS 1000000

static const char *passage_text(struct broker_passage *passage, const char *text)
{
    return text ? pool_copy_text(&passage->pool, text) : NULL;
}

static void passage_free(struct broker_passage *passage)
{
    struct broker_engine *engine = passage->engine;

    pool_done(&passage->pool);
    free(passage);
    engine_release(engine);
}

uint64_t passage_ms(const struct broker_passage *passage)
{
    return (clock_monotonic_ns(passage->engine->options.clock) - passage->started_ns) / NS_PER_MS;
}

static void passage_tell_end(struct broker_passage *passage, const char *failure)
{
    struct broker_engine *engine = passage->engine;
    struct broker_record *record = &passage->record;

    record->ms = passage_ms(passage);
    record->failure = failure;
    engine->counters.sent += record->sent;
    engine->counters.received += record->received;
    engine->options.host.ended(engine->options.host.self, record);
}

void passage_end(struct broker_passage *passage, const char *failure)
{
    if (!passage->is_answered) { /* its memory waits for the answer */
        passage->answered = NULL;
        return;
    }
    if (passage->is_granted)
        passage_tell_end(passage, failure);
    passage_free(passage);
}

/* --- the answer ------------------------------------------------------------------------------- */

static void passage_keep_grant(struct broker_passage *passage, const struct broker_grant *grant)
{
    struct broker_grant *kept = &passage->grant;

    *kept = *grant;
    kept->refusal_type = passage_text(passage, grant->refusal_type);
    kept->base = passage_text(passage, grant->base);
    kept->query_key = passage_text(passage, grant->query_key);
    for (size_t i = 0; i < kept->header_count; i++) {
        kept->headers[i].name = passage_text(passage, grant->headers[i].name);
        kept->headers[i].value = passage_text(passage, grant->headers[i].value);
    }
    passage->record.grant = grant->number;
    passage->record.format = grant->format;
}

static void passage_take_answer(void *context, const struct broker_grant *grant)
{
    struct broker_passage *passage = context;

    passage->is_answered = true;
    passage->is_granted = grant->verdict != BROKER_DENY;
    passage_keep_grant(passage, grant);
    if (!passage->is_granted)
        passage->engine->counters.denied++;
    if (passage->answered)
        passage->answered(passage->owner, passage, &passage->grant);
    else
        passage_end(passage, "the client left before it was answered");
}

struct broker_passage *passage_ask(struct broker_outlet *outlet, const struct broker_ask *ask,
                                   passage_answered *answered, void *owner)
{
    struct broker_engine *engine = outlet->engine;
    struct broker_passage *passage = mem_alloc(sizeof(*passage));

    passage->engine = engine;
    passage->answered = answered;
    passage->owner = owner;
    passage->started_ns = clock_monotonic_ns(engine->options.clock);
    passage->ask = *ask;
    passage->ask.sandbox = outlet->sandbox;
    passage->ask.route = passage_text(passage, ask->route);
    passage->ask.host = passage_text(passage, ask->host);
    passage->ask.method = passage_text(passage, ask->method);
    passage->ask.path = passage_text(passage, ask->path);
    passage->ask.placeholder = passage_text(passage, ask->placeholder);
    passage->record = (struct broker_record){.sandbox = outlet->sandbox,
                                             .way = ask->way,
                                             .route = passage->ask.route,
                                             .host = passage->ask.host,
                                             .method = passage->ask.method,
                                             .path = passage->ask.path,
                                             .port = ask->port};
    engine->remains++;
    engine->counters.asked++;
    engine->options.host.ask(engine->options.host.self, &passage->ask, passage_take_answer,
                             passage);
    return passage;
}
