/* Rows of what was used: one for each owner, sandbox, day, route and model. Those of today are in
 * memory, and written when they changed: with the end of a request, and once a second. */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/egress/egress_internal.h"
#include "domain/event/event.h"

#define DAY_MS      INT64_C(86400000)
#define MODELS_MAX  64 /* that one sandbox makes rows of */
#define OTHER_MODEL "other"
#define SLICE       32 /* rows of one transaction */
#define SCOPE_TEXT  (2 * ID_LENGTH + SANDBOX_LABEL_MAX)
#define PAGE        STORE_ROWS_MAX

_Static_assert(SLICE <= STORE_CHANGES_MAX, "a slice is one transaction");

int64_t egress_day(const struct domain *domain)
{
    int64_t now_ms = domain_wall_ms(domain);

    return now_ms - now_ms % DAY_MS;
}

/* --- memory ---------------------------------------------------------------------------------- */

static uint64_t total_hash(const struct domain *domain, const struct id *sandbox, const char *route,
                           const char *model)
{
    uint64_t hash = table_hash(domain_id_hash(domain, sandbox), route, strlen(route));

    return table_hash(hash, model, strlen(model));
}

static struct egress_total *total_find(const struct domain *domain, uint64_t hash,
                                       const struct id *sandbox, int64_t day_ms, const char *route,
                                       const char *model)
{
    for (struct table_link *at = table_find(&domain->egress->totals, hash); at;
         at = table_next(at)) {
        struct egress_total *total = CONTAINER_OF(at, struct egress_total, by_key);

        if (total->day_ms == day_ms && id_equal(&total->sandbox, sandbox) &&
            strcmp(total->route, route) == 0 && strcmp(total->model, model) == 0)
            return total;
    }
    return NULL;
}

static struct egress_total *total_new(struct domain *domain, uint64_t hash,
                                      const struct id *sandbox, int64_t day_ms, const char *route,
                                      const char *model)
{
    struct egress_total *total = mem_alloc(sizeof(*total));

    total->sandbox = *sandbox;
    total->day_ms = day_ms;
    (void) snprintf(total->route, sizeof(total->route), "%s", route);
    (void) snprintf(total->model, sizeof(total->model), "%s", model);
    total->by_key.hash = hash;
    table_add(&domain->egress->totals, &total->by_key);
    list_append(&domain->egress->total_list, &total->link);
    return total;
}

struct egress_total *egress_total_get(struct egress_way *way, const char *route, const char *model)
{
    struct domain *domain = way->domain;
    int64_t day_ms = egress_day(domain);
    uint64_t hash = total_hash(domain, &way->sandbox, route, model);
    struct egress_total *total = total_find(domain, hash, &way->sandbox, day_ms, route, model);

    if (total)
        return total;
    if (way->model_count >= MODELS_MAX && strcmp(model, OTHER_MODEL) != 0 && *model)
        return egress_total_get(way, route, OTHER_MODEL);
    way->model_count++;
    total = total_new(domain, hash, &way->sandbox, day_ms, route, model);
    total->owner = way->owner;
    total->task = mem_copy_text(way->task);
    return total;
}

static void total_free(struct domain *domain, struct egress_total *total)
{
    table_remove(&domain->egress->totals, &total->by_key);
    list_remove(&total->link);
    free(total->task);
    free(total);
}

void egress_totals_end(struct domain *domain)
{
    LIST_EACH (&domain->egress->total_list, at)
        total_free(domain, CONTAINER_OF(at, struct egress_total, link));
    table_done(&domain->egress->totals);
}

/* --- kept ------------------------------------------------------------------------------------ */

struct egress_keeping {
    struct domain *domain;
    struct egress_total *totals[SLICE]; /* held */
    size_t count;
};

static void total_add_row(struct store_transaction *rows, const struct egress_total *total,
                          int64_t now_ms)
{
    const struct store_value values[STORE_EGRESS_TOTAL_COLUMN_COUNT] = {
        [STORE_EGRESS_TOTAL_OWNER] = store_text(total->owner.text),
        [STORE_EGRESS_TOTAL_SANDBOX] = store_text(total->sandbox.text),
        [STORE_EGRESS_TOTAL_DAY] = store_integer(total->day_ms),
        [STORE_EGRESS_TOTAL_ROUTE] = store_text(total->route),
        [STORE_EGRESS_TOTAL_MODEL] = store_text(total->model),
        [STORE_EGRESS_TOTAL_TASK] = store_text(total->task),
        [STORE_EGRESS_TOTAL_REQUESTS] = store_integer((int64_t) total->requests),
        [STORE_EGRESS_TOTAL_PARTIAL] = store_integer((int64_t) total->partial),
        [STORE_EGRESS_TOTAL_UNPRICED] = store_integer((int64_t) total->unpriced),
        [STORE_EGRESS_TOTAL_INPUT] = store_integer((int64_t) total->tokens.input),
        [STORE_EGRESS_TOTAL_OUTPUT] = store_integer((int64_t) total->tokens.output),
        [STORE_EGRESS_TOTAL_REASONING] = store_integer((int64_t) total->tokens.reasoning),
        [STORE_EGRESS_TOTAL_CACHE_READ] = store_integer((int64_t) total->tokens.cache_read),
        [STORE_EGRESS_TOTAL_CACHE_WRITE] = store_integer((int64_t) total->tokens.cache_write),
        [STORE_EGRESS_TOTAL_COST] = store_integer((int64_t) total->micros),
        [STORE_EGRESS_TOTAL_UPDATED] = store_integer(now_ms),
    };

    store_put(rows, STORE_EGRESS_TOTAL, values);
}

static void keeping_add(struct egress_keeping *keeping, struct store_transaction *rows,
                        struct egress_total *total)
{
    total_add_row(rows, total, domain_wall_ms(keeping->domain));
    total->is_dirty = false;
    total->holds++;
    keeping->totals[keeping->count++] = total;
}

struct egress_keeping *egress_total_add(struct domain *domain, struct store_transaction *rows,
                                        struct egress_total *total)
{
    struct egress_keeping *keeping = mem_alloc(sizeof(*keeping));

    keeping->domain = domain;
    if (total)
        keeping_add(keeping, rows, total);
    return keeping;
}

/* What could not be kept is tried again, by what it is then. */
void egress_total_kept(void *context, const struct error *failure,
                       const struct store_receipt *receipt)
{
    AUTO(free) struct egress_keeping *keeping = context;

    for (size_t i = 0; i < keeping->count; i++) {
        keeping->totals[i]->holds--;
        if (failure)
            keeping->totals[i]->is_dirty = true;
    }
    if (!failure)
        event_kept(keeping->domain, receipt);
}

/* Of days that are over nothing stays in memory but what has to be kept. */
static bool total_is_over(const struct domain *domain, const struct egress_total *total)
{
    return total->day_ms != egress_day(domain) && !total->is_dirty && !total->holds;
}

void egress_totals_tick(struct domain *domain)
{
    struct egress_keeping *keeping = NULL;
    struct store_transaction *rows = NULL;

    LIST_EACH (&domain->egress->total_list, at) {
        struct egress_total *total = CONTAINER_OF(at, struct egress_total, link);

        if (total_is_over(domain, total)) {
            total_free(domain, total);
            continue;
        }
        if (!total->is_dirty || (keeping && keeping->count == SLICE))
            continue;
        if (!rows) {
            rows = store_begin(domain->options.store);
            keeping = egress_total_add(domain, rows, NULL);
        }
        keeping_add(keeping, rows, total);
        /* Behind all others, so that each has its turn. */
        list_remove(&total->link);
        list_append(&domain->egress->total_list, &total->link);
    }
    if (rows)
        domain_commit(domain, rows, egress_total_kept, keeping);
}

/* --- what today's rows say, after a restart ---------------------------------------------------- */

struct egress_totals_loading {
    struct domain *domain;
    domain_done *done;
    void *context;
    struct id last; /* of the last sandbox that was read as a whole */
};

static void totals_find(struct egress_totals_loading *loading);

/* Into budgets: what cost an unknown price counts as the dearest there is, as it did then. */
static void total_count(struct domain *domain, const struct egress_total *total)
{
    struct egress_cost cost = egress_cost_of(&domain->egress->prices, total->model, &total->tokens);
    uint64_t micros = cost.is_known ? total->micros : cost.counted;
    uint64_t tokens = egress_tokens_sum(&total->tokens);
    char keys[EGRESS_SCOPE_COUNT][SCOPE_TEXT + 32];

    (void) snprintf(keys[EGRESS_SANDBOX], sizeof(keys[0]), "sandbox/%s", total->sandbox.text);
    (void) snprintf(keys[EGRESS_OWNER], sizeof(keys[0]), "owner/%s", total->owner.text);
    (void) snprintf(keys[EGRESS_TASK], sizeof(keys[0]), "task/%s/%s", total->owner.text,
                    total->task);
    for (size_t i = 0; i < EGRESS_SCOPE_COUNT; i++) {
        struct egress_scope *scope;

        if (i == EGRESS_TASK && !*total->task)
            continue;
        scope = egress_scope_get(domain, keys[i]);
        egress_meter_add(&scope->meter, total->day_ms, tokens, micros);
        egress_scope_release(domain, scope);
    }
}

static uint64_t number_of(const struct store_value *row, unsigned int column)
{
    return row[column].integer > 0 ? (uint64_t) row[column].integer : 0;
}

static void total_from_row(struct domain *domain, const struct store_value *row)
{
    struct id sandbox = domain_row_id(&row[STORE_EGRESS_TOTAL_SANDBOX]);
    const char *route = row[STORE_EGRESS_TOTAL_ROUTE].bytes;
    const char *model = row[STORE_EGRESS_TOTAL_MODEL].bytes;
    struct egress_total *total =
        total_new(domain, total_hash(domain, &sandbox, route, model), &sandbox,
                  row[STORE_EGRESS_TOTAL_DAY].integer, route, model);

    total->owner = domain_row_id(&row[STORE_EGRESS_TOTAL_OWNER]);
    total->task = mem_copy_text(row[STORE_EGRESS_TOTAL_TASK].bytes);
    total->requests = number_of(row, STORE_EGRESS_TOTAL_REQUESTS);
    total->partial = number_of(row, STORE_EGRESS_TOTAL_PARTIAL);
    total->unpriced = number_of(row, STORE_EGRESS_TOTAL_UNPRICED);
    total->tokens = (struct egress_tokens){
        .input = number_of(row, STORE_EGRESS_TOTAL_INPUT),
        .output = number_of(row, STORE_EGRESS_TOTAL_OUTPUT),
        .reasoning = number_of(row, STORE_EGRESS_TOTAL_REASONING),
        .cache_read = number_of(row, STORE_EGRESS_TOTAL_CACHE_READ),
        .cache_write = number_of(row, STORE_EGRESS_TOTAL_CACHE_WRITE),
    };
    total->micros = number_of(row, STORE_EGRESS_TOTAL_COST);
    total_count(domain, total);
}

static void totals_loaded(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct egress_totals_loading *loading = context;
    size_t count = failure ? 0 : rows->count;

    /* The last sandbox of a full page may have more rows: it is left to the next one. */
    if (count == PAGE) {
        const char *last = rows->rows[count - 1][STORE_EGRESS_TOTAL_SANDBOX].bytes;

        while (count && strcmp(rows->rows[count - 1][STORE_EGRESS_TOTAL_SANDBOX].bytes, last) == 0)
            count--;
    }
    for (size_t i = 0; i < count; i++)
        total_from_row(loading->domain, rows->rows[i]);
    if (!failure && rows->count == PAGE && count) {
        loading->last = domain_row_id(&rows->rows[count - 1][STORE_EGRESS_TOTAL_SANDBOX]);
        totals_find(loading);
        return;
    }
    loading->done(loading->context, failure);
    free(loading);
}

static void totals_find(struct egress_totals_loading *loading)
{
    const struct store_condition conditions[] = {
        {STORE_EGRESS_TOTAL_DAY, STORE_EQUAL, store_integer(egress_day(loading->domain))},
        {STORE_EGRESS_TOTAL_SANDBOX, STORE_GREATER, store_text(loading->last.text)},
    };
    const struct store_query query = {.kind = STORE_EGRESS_TOTAL,
                                      .conditions = conditions,
                                      .condition_count = ARRAY_COUNT(conditions),
                                      .order = STORE_EGRESS_TOTAL_SANDBOX,
                                      .limit = PAGE};

    domain_find(loading->domain, &query, totals_loaded, loading);
}

void egress_totals_load(struct domain *domain, domain_done *done, void *context)
{
    struct egress_totals_loading *loading = mem_alloc(sizeof(*loading));

    *loading = (struct egress_totals_loading){.domain = domain, .done = done, .context = context};
    totals_find(loading);
}
