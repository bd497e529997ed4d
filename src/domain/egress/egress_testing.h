/* For tests of what leaves sandboxes: a world (domain_testing.h) with a broker that only remembers, a
 * source of tokens that says what it is told to, and questions as the broker asks them. Included by
 * test programs only. */
#pragma once

#include <unistd.h>

#include "domain/domain_testing.h"
#include "domain/egress/egress_internal.h"
#include "json/json_read.h"

struct fake_outlet {
    bool is_open;
    struct id sandbox;
    size_t forwards, intercepted;
    bool had_authority;
};

#define FAKE_OUTLETS_MAX 16

struct fake_broker {
    struct broker broker;
    struct world *world;
    struct fake_outlet outlets[FAKE_OUTLETS_MAX];
    size_t opened, closed, cuts, changes;
    bool refuses;
    bool makes_authority;

    struct token_source tokens;
    int token_asked, token_status;
    char token_body[512], token_form[1024];
    token_done *token_done;
    void *token_context;
};

/* --- the broker ------------------------------------------------------------------------------- */

static inline struct broker_outlet *fake_open(void *self, const struct broker_place *place,
                                              const int *sockets, struct error *err)
{
    struct fake_broker *fake = self;
    struct fake_outlet *outlet = &fake->outlets[fake->opened % FAKE_OUTLETS_MAX];

    for (size_t i = 0; i < BROKER_SOCKETS + place->forward_count; i++)
        (void) close(sockets[i]);
    if (fake->refuses) {
        (void) error_set(err, ERR_INTERNAL, 0, "the broker is not well");
        return NULL;
    }
    fake->opened++;
    *outlet = (struct fake_outlet){.is_open = true,
                                   .sandbox = place->sandbox,
                                   .forwards = place->forward_count,
                                   .intercepted = place->intercepted_count,
                                   .had_authority = place->ca_key != NULL};
    if (place->intercepted_count && !place->ca_key)
        egress_made_authority(fake->world->domain, &place->sandbox, "CERTIFICATE", "KEY");
    return (struct broker_outlet *) outlet;
}

static inline int fake_change(void *self, struct broker_outlet *outlet,
                              const struct broker_place *place, struct error *err)
{
    struct fake_broker *fake = self;

    (void) err;
    fake->changes++;
    ((struct fake_outlet *) outlet)->intercepted = place->intercepted_count;
    return 0;
}

static inline const char *fake_authority(void *self, struct broker_outlet *outlet)
{
    (void) self;
    return ((struct fake_outlet *) outlet)->intercepted ? "CERTIFICATE" : NULL;
}

static inline void fake_cut(void *self, struct broker_outlet *outlet)
{
    (void) outlet;
    ((struct fake_broker *) self)->cuts++;
}

static inline void fake_close(void *self, struct broker_outlet *outlet)
{
    ((struct fake_outlet *) outlet)->is_open = false;
    ((struct fake_broker *) self)->closed++;
}

/* --- the source of tokens --------------------------------------------------------------------- */

static inline void fake_token_ask(void *self, const struct token_order *order, token_done *done,
                                  void *context)
{
    struct fake_broker *fake = self;

    fake->token_asked++;
    (void) snprintf(fake->token_form, sizeof(fake->token_form), "%s", order->body);
    fake->token_done = done;
    fake->token_context = context;
}

static inline void fake_token_answer(struct fake_broker *fake, int status, const char *body)
{
    token_done *done = TAKE_PTR(fake->token_done);

    assert_non_null(done);
    done(fake->token_context, NULL, status, body);
}

static inline char *fake_token_sign(void *self, const struct token_claim *claim, struct error *err)
{
    (void) self, (void) claim, (void) err;
    return mem_copy_text("signed");
}

static inline void fake_broker_init(struct fake_broker *fake, struct world *world)
{
    *fake = (struct fake_broker){.world = world};
    fake->broker = (struct broker){.self = fake,
                                   .open = fake_open,
                                   .change = fake_change,
                                   .authority = fake_authority,
                                   .cut = fake_cut,
                                   .close = fake_close};
    fake->tokens =
        (struct token_source){.self = fake, .ask = fake_token_ask, .sign = fake_token_sign};
    world->options.broker = &fake->broker;
    world->options.tokens = &fake->tokens;
    world->options.prices = "model=1/2/0.5/1,dear=1000/1000";
}

/* --- questions -------------------------------------------------------------------------------- */

struct egress_asked {
    int times;
    enum broker_verdict verdict;
    uint64_t number;
    enum err_code code;
    char type[64], message[ERROR_MESSAGE_MAX], header[128], base[256];
    enum broker_format format;
    bool may_be_local;
};

static inline void asked_answer(void *context, const struct broker_grant *grant)
{
    struct egress_asked *asked = context;

    asked->times++;
    asked->verdict = grant->verdict;
    asked->number = grant->number;
    asked->format = grant->format;
    asked->may_be_local = grant->may_be_local;
    assert_int_not_equal(grant->number, 0);
    if (grant->refusal) {
        asked->code = grant->refusal->code;
        (void) snprintf(asked->message, sizeof(asked->message), "%s", grant->refusal->message);
        (void) snprintf(asked->type, sizeof(asked->type), "%s", grant->refusal_type);
    }
    if (grant->header_count)
        (void) snprintf(asked->header, sizeof(asked->header), "%s: %s", grant->headers[0].name,
                        grant->headers[0].value);
    if (grant->base)
        (void) snprintf(asked->base, sizeof(asked->base), "%s", grant->base);
}

static inline struct egress_asked ask_anything(struct world *world, const struct broker_ask *ask)
{
    struct egress_asked asked = {.times = 0};

    egress_ask(world->domain, ask, asked_answer, &asked);
    assert_int_equal(asked.times, 0); /* never from inside */
    TURN_UNTIL(&world->loop, asked.times);
    return asked;
}

/* A message to a model. */
static inline struct broker_ask model_ask(const struct sandbox *sandbox)
{
    return (struct broker_ask){.sandbox = sandbox->id,
                               .way = BROKER_ROUTE,
                               .route = "anthropic",
                               .method = "POST",
                               .path = "/v1/messages",
                               .placeholder = "burrow-anthropic",
                               .body_bytes = 30};
}

static inline struct egress_asked ask_model(struct world *world, const struct sandbox *sandbox)
{
    const struct broker_ask ask = model_ask(sandbox);

    return ask_anything(world, &ask);
}

static inline struct broker_usage usage_of(uint64_t input, uint64_t output, const char *model)
{
    struct broker_usage usage = {.input = input, .output = output, .is_known = true};

    (void) snprintf(usage.model, sizeof(usage.model), "%s", model);
    return usage;
}

static inline void end_model(struct world *world, const struct sandbox *sandbox,
                             const struct egress_asked *asked, const struct broker_usage *usage)
{
    struct broker_record record = {.sandbox = sandbox->id,
                                   .grant = asked->number,
                                   .way = BROKER_ROUTE,
                                   .route = "anthropic",
                                   .method = "POST",
                                   .path = "/v1/messages",
                                   .status = 200,
                                   .sent = 30,
                                   .received = 100,
                                   .format = BROKER_ANTHROPIC};

    if (usage)
        record.usage = *usage;
    egress_ended(world->domain, &record);
}

/* --- what is kept ------------------------------------------------------------------------------ */

static inline void note_credential(void *context, const struct error *failure,
                                   const struct egress_credential *credential)
{
    struct egress_asked *asked = context;

    (void) credential;
    asked->times++;
    asked->code = failure ? failure->code : ERR_NONE;
    if (failure)
        (void) snprintf(asked->message, sizeof(asked->message), "%s", failure->message);
}

static inline struct egress_asked put_credential(struct world *world, const char *name,
                                                 const char *json)
{
    AUTO(json) json_t *read = json_read(json, strlen(json), NULL, NULL);
    struct json_place root = {.value = read};
    struct egress_asked asked = {.times = 0};
    struct error err = ERROR_INIT;
    struct egress_credential *credential;

    assert_non_null(read);
    credential = egress_credential_read(&root, name, &err);
    if (!credential)
        fail_msg("%s", err.message);
    egress_credential_put(world->domain, &world->caller, credential, note_credential, &asked);
    TURN_UNTIL(&world->loop, asked.times);
    return asked;
}

struct usage_told {
    int times;
    bool failed;
    size_t count;
    struct egress_usage first;
    char key[128];
};

static inline void note_usage(void *context, const struct error *failure,
                              const struct egress_usage *usage, size_t count, const char *next)
{
    struct usage_told *told = context;

    (void) next;
    told->times++;
    told->failed = failure != NULL;
    told->count = count;
    if (count) {
        told->first = usage[0];
        (void) snprintf(told->key, sizeof(told->key), "%s", usage[0].key);
    }
}

static inline struct usage_told look_at_usage(struct world *world, enum egress_group by)
{
    int64_t day_ms = egress_day(world->domain);
    const struct egress_usage_filter filter = {
        .by = by, .from_ms = day_ms, .to_ms = day_ms + 86400000, .limit = 100};
    struct usage_told told = {.times = 0};

    egress_usage(world->domain, &world->caller, &filter, note_usage, &told);
    TURN_UNTIL(&world->loop, told.times);
    assert_false(told.failed);
    return told;
}
