/* Something that the broker was let do, from the moment it is let go until it is told how it ended:
 * what it holds of budgets, what it used, the row that it is counted in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "domain/egress/egress_internal.h"

#define NS_PER_S UINT64_C(1000000000)

const char *egress_scope_text(enum egress_scope_kind kind)
{
    static const char *const texts[EGRESS_SCOPE_COUNT] = {
        [EGRESS_SANDBOX] = "sandbox", [EGRESS_TASK] = "task", [EGRESS_OWNER] = "owner"};

    return texts[kind];
}

const struct egress_budget *egress_budget_of(const struct egress_way *way,
                                             enum egress_scope_kind kind)
{
    static const struct egress_budget none = {.tokens_per_day = 0};
    const struct egress_owner *owner;

    if (kind == EGRESS_SANDBOX)
        return &way->policy.budget;
    if (kind == EGRESS_TASK)
        return &way->policy.task_budget;
    owner = egress_owner_of(way->domain, &way->owner);
    return owner ? &owner->budget : &none;
}

enum egress_api egress_api_of(enum broker_format format)
{
    return format == BROKER_ANTHROPIC   ? EGRESS_API_ANTHROPIC
           : format == BROKER_GOOGLE    ? EGRESS_API_GOOGLE
           : format == BROKER_UNMETERED ? EGRESS_API_NONE
                                        : EGRESS_API_OPENAI;
}

/* --- let go ---------------------------------------------------------------------------------- */

static void grant_count(struct egress_grant *grant, const char *model)
{
    grant->total = egress_total_get(grant->way, grant->route, model);
    grant->total->holds++;
    grant->total->requests++;
    grant->total->partial++; /* until it has ended */
    grant->total->is_dirty = true;
}

struct egress_grant *egress_grant_new(struct egress_way *way, const struct egress_verdict *verdict,
                                      const char *credential, uint64_t tokens, uint64_t micros)
{
    struct domain *domain = way->domain;
    struct egress *egress = domain->egress;
    struct egress_grant *grant = mem_alloc(sizeof(*grant));

    grant->way = way;
    grant->number = ++egress->last_grant;
    grant->api = egress_api_of(verdict->format);
    grant->is_metered = verdict->format != BROKER_UNMETERED;
    if (verdict->route)
        (void) snprintf(grant->route, sizeof(grant->route), "%s", verdict->route->name);
    else if (grant->is_metered)
        (void) snprintf(grant->route, sizeof(grant->route), "%s", egress_api_text(grant->api));
    if (credential)
        (void) snprintf(grant->credential, sizeof(grant->credential), "%s", credential);
    for (size_t i = 0; i < EGRESS_SCOPE_COUNT && verdict->verdict != BROKER_INTERCEPT; i++) {
        if (!way->scopes[i])
            continue;
        grant->scopes[i] = way->scopes[i];
        grant->scopes[i]->references++;
        egress_meter_begin(&grant->scopes[i]->meter, egress_day(domain),
                           domain_now_ns(domain) / NS_PER_S, tokens, micros, &grant->holds[i]);
    }
    if (verdict->verdict != BROKER_INTERCEPT)
        grant_count(grant, "");
    grant->by_number.hash = table_hash(domain->seed, &grant->number, sizeof(grant->number));
    table_add(&egress->grants, &grant->by_number);
    list_append(&way->grants, &grant->link);
    list_append(&egress->grant_list, &grant->all);
    way->grant_count++;
    way->counters.requests++;
    egress->counters.requests++;
    return grant;
}

/* --- what it used ---------------------------------------------------------------------------- */

static struct egress_grant *grant_find(const struct domain *domain, uint64_t number)
{
    uint64_t hash = table_hash(domain->seed, &number, sizeof(number));

    for (struct table_link *at = table_find(&domain->egress->grants, hash); at;
         at = table_next(at)) {
        struct egress_grant *grant = CONTAINER_OF(at, struct egress_grant, by_number);

        if (grant->number == number)
            return grant;
    }
    return NULL;
}

static struct egress_tokens tokens_of(const struct broker_usage *usage)
{
    return (struct egress_tokens){usage->input, usage->output, usage->reasoning, usage->cache_read,
                                  usage->cache_write};
}

/* Never less than it was, and never more than anybody could use. */
static uint64_t grown(uint64_t before, uint64_t now)
{
    now = now > EGRESS_TOKENS_MAX ? EGRESS_TOKENS_MAX : now;
    return now > before ? now : before;
}

static void usage_clean(const struct broker_usage *before, const struct broker_usage *told,
                        struct broker_usage *ret_usage)
{
    *ret_usage = (struct broker_usage){
        .input = grown(before->input, told->input),
        .output = grown(before->output, told->output),
        .reasoning = grown(before->reasoning, told->reasoning),
        .cache_read = grown(before->cache_read, told->cache_read),
        .cache_write = grown(before->cache_write, told->cache_write),
        .is_known = before->is_known || told->is_known,
    };
    for (size_t i = 0; i < sizeof(told->model) - 1 && told->model[i]; i++)
        ret_usage->model[i] =
            told->model[i] > ' ' && (unsigned char) told->model[i] < 0x7f ? told->model[i] : '?';
    if (!*ret_usage->model)
        memcpy(ret_usage->model, before->model, sizeof(ret_usage->model));
}

/* Its row is the one of the model that it turns out to be, on the day that it is seen. */
static void grant_move(struct egress_grant *grant, const char *model)
{
    struct egress_total *before = grant->total;
    struct egress_total *now = egress_total_get(grant->way, grant->route, model);

    if (now == before)
        return;
    before->requests--;
    before->partial--;
    before->holds--;
    before->is_dirty = true;
    grant_count(grant, model);
}

static void total_use(struct egress_total *total, const struct egress_tokens *before,
                      const struct egress_tokens *now, uint64_t micros)
{
    total->tokens.input += now->input - before->input;
    total->tokens.output += now->output - before->output;
    total->tokens.reasoning += now->reasoning - before->reasoning;
    total->tokens.cache_read += now->cache_read - before->cache_read;
    total->tokens.cache_write += now->cache_write - before->cache_write;
    total->micros += micros;
    total->is_dirty = true;
}

static bool grant_spend(struct egress_grant *grant, uint64_t tokens, uint64_t counted)
{
    bool is_within = true;

    for (size_t i = 0; i < EGRESS_SCOPE_COUNT; i++) {
        struct egress_way *way = grant->way;
        const struct egress_budget *budget = egress_budget_of(way, (enum egress_scope_kind) i);

        if (!grant->scopes[i] ||
            egress_meter_use(&grant->scopes[i]->meter, budget, egress_day(way->domain), tokens,
                             counted, &grant->holds[i]))
            continue;
        if (is_within)
            egress_tell_budget(way, egress_scope_text((enum egress_scope_kind) i), "used_up");
        is_within = false;
    }
    return is_within;
}

/* False: a budget is used up. */
static bool grant_use(struct egress_grant *grant, const struct broker_usage *told)
{
    struct egress_way *way = grant->way;
    struct egress *egress = way->domain->egress;
    struct egress_tokens before = tokens_of(&grant->usage), now;
    struct egress_cost cost;
    struct broker_usage usage;
    uint64_t tokens, counted, micros;

    if (!grant->is_metered || !grant->total || !told->is_known)
        return true;
    usage_clean(&grant->usage, told, &usage);
    now = tokens_of(&usage);
    cost = egress_cost_of(&egress->prices, usage.model, &now);
    tokens = egress_tokens_sum(&now) - egress_tokens_sum(&before);
    counted = cost.counted > grant->cost.counted ? cost.counted - grant->cost.counted : 0;
    micros = cost.micros > grant->cost.micros ? cost.micros - grant->cost.micros : 0;
    grant_move(grant, usage.model);
    total_use(grant->total, &before, &now, micros);
    grant->usage = usage;
    grant->cost = cost;
    (void) snprintf(way->models[grant->api], sizeof(way->models[0]), "%s", usage.model);
    way->counters.tokens += tokens;
    way->counters.micros += micros;
    egress->counters.tokens += tokens;
    egress->counters.micros += micros;
    return grant_spend(grant, tokens, counted);
}

bool egress_used(void *self, uint64_t number, enum broker_format format,
                 const struct broker_usage *usage)
{
    struct domain *domain = self;
    struct egress_grant *grant = grant_find(domain, number);

    (void) format; /* as it was granted */
    if (!grant || grant_use(grant, usage))
        return true;
    grant->way->counters.cut++;
    domain->egress->counters.cut++;
    return false;
}

/* --- its end --------------------------------------------------------------------------------- */

static void grant_free(struct egress_grant *grant)
{
    struct egress_way *way = grant->way;
    struct domain *domain = way->domain;

    for (size_t i = 0; i < EGRESS_SCOPE_COUNT; i++) {
        if (!grant->scopes[i])
            continue;
        egress_meter_end(&grant->scopes[i]->meter, &grant->holds[i]);
        egress_scope_release(domain, grant->scopes[i]);
    }
    if (grant->total)
        grant->total->holds--;
    table_remove(&domain->egress->grants, &grant->by_number);
    list_remove(&grant->link);
    list_remove(&grant->all);
    way->grant_count--;
    free(grant);
    egress_way_release(way);
}

static bool is_unpriced(const struct egress_grant *grant, const struct broker_record *record)
{
    if (!grant->is_metered)
        return false;
    return grant->usage.is_known ? !grant->cost.is_known
                                 : record->status >= 200 && record->status < 300;
}

void egress_ended(void *self, const struct broker_record *record)
{
    struct domain *domain = self;
    struct egress_grant *grant = grant_find(domain, record->grant);
    struct egress_way *way;

    if (!grant)
        return;
    way = grant->way;
    (void) grant_use(grant, &record->usage);
    way->counters.sent += record->sent;
    way->counters.received += record->received;
    domain->egress->counters.sent += record->sent;
    domain->egress->counters.received += record->received;
    if (grant->total) {
        if (!record->is_partial)
            grant->total->partial--;
        if (is_unpriced(grant, record)) {
            grant->total->unpriced++;
            way->counters.unpriced++;
            domain->egress->counters.unpriced++;
        }
        grant->total->is_dirty = true;
        egress_tell_request(way, grant, record);
    }
    grant_free(grant);
}

void egress_violated(void *self, const struct id *sandbox, const char *reason, const char *host,
                     uint16_t port)
{
    struct domain *domain = self;
    struct egress_way *way = egress_way_of(domain, sandbox);

    if (!way)
        return;
    way->counters.violations++;
    domain->egress->counters.violations++;
    egress_tell_denial(way, "egress.violation", "connection", host, port, reason);
}

void egress_grants_end(struct domain *domain)
{
    LIST_EACH (&domain->egress->grant_list, at)
        grant_free(CONTAINER_OF(at, struct egress_grant, all));
    table_done(&domain->egress->grants);
}
