/* For tests of webhooks only: make them, make events, take what is due and read the log. */
#pragma once

#include "domain/domain_testing.h"
#include "domain/webhook/webhook.h"
#include "domain/webhook/webhook_internal.h"

/* --- calls ----------------------------------------------------------------------------------- */

struct told_webhook {
    int times;
    bool failed;
    struct error failure;
    struct webhook *webhook;
};

static inline void on_webhook(void *context, const struct error *failure, struct webhook *webhook)
{
    struct told_webhook *told = context;

    told->times++;
    told->failed = failure != NULL;
    told->webhook = webhook;
    if (failure)
        told->failure = *failure;
}

static inline struct told_webhook ask_webhook(struct world *world, const struct webhook_spec *spec)
{
    struct told_webhook told = {.times = 0};

    webhook_create(world->domain, &world->caller, spec, on_webhook, &told);
    assert_int_equal(told.times, 0);
    TURN_UNTIL(&world->loop, told.times);
    return told;
}

/* One that follows the log already. `type` NULL: it wants all. */
static inline struct webhook *make(struct world *world, const char *type)
{
    struct webhook_spec spec = {
        .url = "http://there.example/hook", .types = &type, .type_count = type != NULL};
    struct told_webhook told = ask_webhook(world, &spec);

    if (told.failed)
        fail_msg("%s", told.failure.message);
    world_pass(world, 1);
    return told.webhook;
}

static inline struct told_webhook ask_enable(struct world *world, struct webhook *webhook,
                                             bool is_enabled)
{
    struct told_webhook told = {.times = 0};

    webhook_enable(world->domain, &world->caller, webhook, is_enabled, on_webhook, &told);
    TURN_UNTIL(&world->loop, told.times);
    return told;
}

static inline void remove_webhook(struct world *world, struct webhook *webhook)
{
    struct told_webhook told = {.times = 0};

    webhook_delete(world->domain, &world->caller, webhook, on_webhook, &told);
    TURN_UNTIL(&world->loop, told.times);
    assert_false(told.failed);
}

/* Events of the owner's, whose names are numbers. */
static inline void make_events(struct world *world, int first, int count)
{
    for (int i = first; i < first + count; i++) {
        struct store_transaction *change = store_begin(world->store);
        char data[64];

        (void) snprintf(data, sizeof(data), "{\"number\":%d}", i);
        event_add(world->domain, change, &world->caller, &world->caller.owner, "system", "test.one",
                  data);
        store_commit(change, NULL, NULL);
    }
}

static inline void tell_one(void *context, const struct error *failure,
                            const struct store_receipt *receipt)
{
    struct world *world = context;

    assert_null(failure);
    event_kept(world->domain, receipt);
}

/* The same, and followers are told. */
static inline void make_event(struct world *world, int number)
{
    struct store_transaction *change = store_begin(world->store);
    char data[64];

    (void) snprintf(data, sizeof(data), "{\"number\":%d}", number);
    event_add(world->domain, change, &world->caller, &world->caller.owner, "system", "test.one",
              data);
    store_commit(change, tell_one, world);
    world_wait(world);
}

static inline int number_of(const struct webhook_delivery *delivery)
{
    const char *at = strstr(delivery->body, "\"number\":");

    assert_non_null(at);
    return (int) strtol(at + 9, NULL, 10);
}

/* Take the next one, which must be this, and say how it went. */
static inline void expect_next(struct world *world, int number, int status)
{
    struct webhook_delivery *delivery = webhook_take(world->domain);

    if (!delivery)
        fail_msg("nothing is due where %d should be", number);
    assert_int_equal(number_of(delivery), number);
    webhook_sent(world->domain, delivery, status, "as a test said");
    world_wait(world);
}

/* --- the log of deliveries ------------------------------------------------------------------- */

struct told_log {
    int times;
    size_t count;
    int64_t next_before_ms;
    struct {
        char state[16], detail[WEBHOOK_DETAIL_MAX + 1];
        int64_t attempts, status;
    } entries[8];
};

static inline void on_log(void *context, const struct error *failure,
                          const struct webhook_log_entry *entries, size_t count,
                          int64_t next_before_ms)
{
    struct told_log *log = context;

    assert_null(failure);
    log->times++;
    log->count = count;
    log->next_before_ms = next_before_ms;
    for (size_t i = 0; i < count && i < ARRAY_COUNT(log->entries); i++) {
        (void) snprintf(log->entries[i].state, sizeof(log->entries[i].state), "%s",
                        entries[i].state);
        (void) snprintf(log->entries[i].detail, sizeof(log->entries[i].detail), "%s",
                        entries[i].detail);
        log->entries[i].attempts = entries[i].attempts;
        log->entries[i].status = entries[i].status;
    }
}

static inline struct told_log read_log_page(struct world *world, struct webhook *webhook,
                                            int64_t before_ms, size_t limit)
{
    struct told_log log = {.times = 0};

    webhook_log(world->domain, webhook, before_ms, limit, on_log, &log);
    TURN_UNTIL(&world->loop, log.times);
    return log;
}

static inline struct told_log read_log(struct world *world, struct webhook *webhook)
{
    return read_log_page(world, webhook, INT64_MAX, 1000);
}
