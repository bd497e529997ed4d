#include <string.h>

#include "base/auto.h"
#include "provider/provider_local_internal.h"

/* Making a sandbox keeps the launcher and a CPU busy for a few milliseconds, so it waits until no
 * call was made for a moment; but not for ever, or a busy day would use up the stock. */
#define REFILL_QUIET_MS 5
#define REFILL_WAIT_MS  50

/* After a failure: doubled each time, up to the most. */
#define REFILL_RETRY_MS     100
#define REFILL_RETRY_MAX_MS 30000

/* With less, in thousandths of a CPU, the next one would take long to start. */
#define STOCK_CPU_MIN 100

/* Nobody sees this name: the one of the spec comes with the assignment. */
#define STOCK_HOSTNAME "burrow"

static void consider(struct local *local);

/* The next one not before a while that grows with the failures in a row. */
static void back_off(struct local *local, unsigned int failures)
{
    uint64_t delay = REFILL_RETRY_MS;

    for (unsigned int i = 1; i < failures && delay < REFILL_RETRY_MAX_MS; i++)
        delay *= 2;
    if (delay > REFILL_RETRY_MAX_MS)
        delay = REFILL_RETRY_MAX_MS;
    local->stock.not_before = loop_now(local->provider.loop) + delay;
    consider(local);
}

static void note_failure(struct local *local, const struct error *failure)
{
    struct stock *stock = &local->stock;

    stock->making = false;
    stock->limits = (struct limits){0}; /* perhaps it was these: an agent has to start in them */
    if (stock->failures++ == 0 && !local->link.over)
        LOG_WARNING(local->log, "no new sandbox for the stock",
                    log_text("error", failure->message));
    back_off(local, stock->failures);
}

static void on_made(void *context, struct wire_incoming *reply, const struct error *failure)
{
    struct local *local = context;
    struct stock *stock = &local->stock;

    if (failure) {
        note_failure(local, failure);
        return;
    }
    stock->making = false;
    stock->failures = 0;
    if (!stock_add(stock, &reply->message.sandbox.entry.id))
        local_discard(local, &reply->message.sandbox.entry.id, WIRE_KILL_EVERYTHING);
    consider(local);
}

static void make_one(struct local *local)
{
    struct wire_plan plan = {.id = id_new(),
                             .hostname = STOCK_HOSTNAME,
                             .flags = WIRE_BIT(WIRE_PLAN_POOLED),
                             .network = NETWORK_NONE,
                             .limits = local->stock.limits};
    struct wire_message message = {.number = WIRE_MESSAGE_CREATE};
    struct wire_answer answer = {.call = on_made, .context = local};
    struct error err = ERROR_INIT;
    AUTO(close) int fd = -EBADF;

    local->stock.making = true;
    wire_text_set(plan.image, sizeof(plan.image), local->image);
    if (wire_plan_seal(&plan, &fd, &err) < 0 ||
        launcher_link_ask(&local->link, &message, &fd, 1, answer, &err) < 0)
        note_failure(local, &err);
}

/* How long to wait before the next one is made. */
static uint64_t refill_delay(struct local *local)
{
    const struct provider *provider = &local->provider;
    const struct stock *stock = &local->stock;
    uint64_t now = loop_now(provider->loop);
    uint64_t quiet = now - provider->last_call;

    if (stock->not_before > now)
        return stock->not_before - now;
    if (now - stock->missing_since >= REFILL_WAIT_MS)
        return 0;
    if (provider->open_calls)
        return 1;
    return quiet >= REFILL_QUIET_MS ? 0 : REFILL_QUIET_MS - quiet;
}

static bool is_short(const struct stock *stock)
{
    return stock->working && !stock->drained && !stock->making && stock->count < stock->wanted;
}

/* Whether one is missing, and when to make it. */
static void consider(struct local *local)
{
    struct stock *stock = &local->stock;

    if (!is_short(stock))
        return;
    if (stock->missing_since == 0)
        stock->missing_since = loop_now(local->provider.loop);
    deadline_set(&stock->refill, refill_delay(local));
}

static void on_refill(struct deadline *deadline)
{
    struct local *local = CONTAINER_OF(deadline, struct local, stock.refill);
    struct stock *stock = &local->stock;
    uint64_t delay = refill_delay(local);

    if (!is_short(stock))
        return;
    if (delay) {
        deadline_set(deadline, delay);
        return;
    }
    stock->missing_since = 0;
    make_one(local);
}

void stock_init(struct local *local, size_t wanted)
{
    local->stock.wanted = wanted;
    deadline_init(local->provider.loop, &local->stock.refill, on_refill);
}

bool stock_add(struct stock *stock, const struct id *id)
{
    if (stock->drained || stock->count >= stock->wanted)
        return false;
    stock->ready[stock->count++] = *id;
    return true;
}

void stock_work(struct local *local)
{
    local->stock.working = true;
    consider(local);
}

void stock_rest(struct stock *stock)
{
    stock->working = false;
    deadline_clear(&stock->refill);
}

bool stock_take(struct local *local, struct id *ret_id)
{
    struct stock *stock = &local->stock;

    if (stock->count == 0)
        return false;
    *ret_id = stock->ready[--stock->count];
    stock->exits = 0;
    consider(local);
    return true;
}

void stock_note_limits(struct stock *stock, const struct limits *limits)
{
    if (limits->cpu_millis == 0 || limits->cpu_millis >= STOCK_CPU_MIN)
        stock->limits = *limits;
}

bool stock_exited(struct local *local, const struct id *id)
{
    struct stock *stock = &local->stock;
    size_t place = 0;

    while (place < stock->count && strcmp(stock->ready[place].text, id->text) != 0)
        place++;
    if (place == stock->count)
        return false;
    stock->ready[place] = stock->ready[--stock->count];
    stock->limits = (struct limits){0};
    if (stock->exits++ == 0)
        LOG_WARNING(local->log, "a sandbox in stock ended", log_text("sandbox", id->text));
    local_discard(local, id, WIRE_KILL_EVERYTHING);
    back_off(local, stock->exits);
    return true;
}

void provider_local_drain(struct provider *provider)
{
    struct local *local = local_of(provider);
    struct stock *stock = &local->stock;

    stock->drained = true;
    deadline_clear(&stock->refill);
    while (stock->working && stock->count)
        local_discard(local, &stock->ready[--stock->count], WIRE_KILL_EVERYTHING);
}

void provider_local_fill(struct provider *provider)
{
    struct local *local = local_of(provider);

    local->stock.drained = false;
    local->stock.failures = 0;
    local->stock.not_before = 0;
    consider(local);
}
