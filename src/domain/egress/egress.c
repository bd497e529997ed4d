/* The module: what it begins with, its rows, its settings, and what is shown of a way out. */
#include "domain/egress/egress.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/domain_modules.h"
#include "domain/egress/egress_internal.h"
#include "domain/egress/egress_place.h"
#include "domain/identity/owner.h"

#define DAY_MS    INT64_C(86400000)
#define SWEEP_NS  (UINT64_C(3600) * 1000 * 1000 * 1000)
#define LOCAL_MAX 32

/* --- settings -------------------------------------------------------------------------------- */

/* "openai=http://127.0.0.1:9000/v1,mine=https://llm.example.org" */
static int upstreams_read(const char *text, struct sandbox_pairs *upstreams, struct error *err)
{
    AUTO(free) char *copy = mem_copy_text(text ? text : "");
    char *rest = copy, *part;

    while ((part = strsep(&rest, ","))) {
        char *url = strchr(part, '=');

        if (!*part)
            continue;
        if (url)
            *url++ = '\0';
        if (!url || !egress_name_is_valid(part) || strlen(url) > EGRESS_BASE_MAX ||
            (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) ||
            strpbrk(url, "?#@ \\"))
            return error_set(
                err, ERR_INVALID, 0,
                "model-upstreams: '%.64s' must be ROUTE=URL, with commas between, such "
                "as openai=http://127.0.0.1:9000/v1",
                part);
        sandbox_pairs_set(upstreams, part, url);
    }
    return 0;
}

/* "127.0.0.1:8787": what it is compared with is written so. */
static int local_read(const char *text, struct sandbox_texts *local, struct error *err)
{
    AUTO(free) char *copy = mem_copy_text(text ? text : "");
    char *rest = copy, *part;

    while ((part = strsep(&rest, ","))) {
        size_t host = strcspn(part, ":");

        if (!*part)
            continue;
        if (local->count == LOCAL_MAX || strncmp(part, "127.", 4) != 0 ||
            strspn(part, "0123456789.") != host || part[host] != ':' ||
            strspn(part + host + 1, "0123456789") != strlen(part + host + 1) || !part[host + 1])
            return error_set(err, ERR_INVALID, 0,
                             "broker-local: '%.64s' must be a loopback address with its port, such "
                             "as 127.0.0.1:8787; at most %d of them, with commas between",
                             part, LOCAL_MAX);
        sandbox_texts_add(local, part);
    }
    return 0;
}

int domain_check_egress(const struct domain_options *options, struct error *err)
{
    AUTO(sandbox_pairs) struct sandbox_pairs upstreams = {.items = NULL};
    AUTO(sandbox_texts) struct sandbox_texts local = {.items = NULL};
    struct egress_prices prices = {.own = NULL};

    if (upstreams_read(options->model_upstreams, &upstreams, err) < 0 ||
        local_read(options->broker_local, &local, err) < 0 ||
        egress_prices_read(options->prices, &prices, err) < 0)
        return -1;
    egress_prices_done(&prices);
    return 0;
}

struct broker_host domain_broker_host(struct domain *domain)
{
    return (struct broker_host){.self = domain,
                                .ask = egress_ask,
                                .used = egress_used,
                                .ended = egress_ended,
                                .violated = egress_violated,
                                .made_authority = egress_made_authority};
}

/* --- life ------------------------------------------------------------------------------------ */

static void egress_begin(struct domain *domain)
{
    struct egress *egress = mem_alloc(sizeof(*egress));
    const struct domain_options *options = &domain->options;
    struct error err = ERROR_INIT;

    domain->egress = egress;
    list_init(&egress->credential_list);
    list_init(&egress->way_list);
    list_init(&egress->grant_list);
    list_init(&egress->total_list);
    list_init(&egress->owner_list);
    /* Whoever made the options has had them checked. */
    if (upstreams_read(options->model_upstreams, &egress->upstreams, &err) < 0 ||
        local_read(options->broker_local, &egress->local, &err) < 0 ||
        egress_prices_read(options->prices, &egress->prices, &err) < 0)
        LOG_ERROR(options->log, "a setting of the egress broker is not used",
                  log_text("error", err.message));
    egress->old = (struct retention){.kind = STORE_EGRESS_TOTAL,
                                     .time = STORE_EGRESS_TOTAL_DAY,
                                     .kept_ms = EGRESS_KEPT_DAYS * DAY_MS,
                                     .every_ns = SWEEP_NS};
}

static void scopes_sweep(struct domain *domain, bool is_end)
{
    struct egress *egress = domain->egress;

    for (size_t i = 0; i < egress->scopes.bucket_count; i++) {
        struct table_link **at = &egress->scopes.buckets[i];

        while (*at) {
            struct egress_scope *scope = CONTAINER_OF(*at, struct egress_scope, by_key);

            if (!is_end && (scope->references || scope->meter.day_ms == egress_day(domain))) {
                at = &(*at)->next;
                continue;
            }
            *at = scope->by_key.next;
            egress->scopes.count--;
            free(scope->key);
            free(scope);
        }
    }
}

static void egress_end(struct domain *domain)
{
    struct egress *egress = domain->egress;

    if (!egress)
        return;
    egress_grants_end(domain);
    LIST_EACH (&egress->way_list, at)
        egress_way_free(CONTAINER_OF(at, struct egress_way, link));
    table_done(&egress->ways);
    scopes_sweep(domain, true);
    table_done(&egress->scopes);
    egress_totals_end(domain);
    egress_owners_end(domain);
    egress_credentials_end(domain);
    egress_prices_done(&egress->prices);
    sandbox_pairs_done(&egress->upstreams);
    sandbox_texts_done(&egress->local);
    free(egress);
    domain->egress = NULL;
}

/* Its kinds of rows, one after the other. */
struct egress_loading {
    struct domain *domain;
    domain_done *done;
    void *context;
    size_t step;
};

static void egress_load_next(void *context, const struct error *failure)
{
    static void (*const steps[])(struct domain *, domain_done *, void *) = {
        egress_credentials_load, egress_owners_load, egress_totals_load};
    struct egress_loading *loading = context;
    struct egress_loading ended = *loading;

    if (!failure && loading->step < ARRAY_COUNT(steps)) {
        steps[loading->step++](loading->domain, egress_load_next, loading);
        return;
    }
    free(loading);
    ended.done(ended.context, failure);
}

static void egress_load(struct domain *domain, domain_done *done, void *context)
{
    struct egress_loading *loading = mem_alloc(sizeof(*loading));

    *loading = (struct egress_loading){.domain = domain, .done = done, .context = context};
    egress_load_next(loading, NULL);
}

static void egress_tick(struct domain *domain)
{
    LIST_EACH (&domain->egress->way_list, at) {
        struct egress_way *way = CONTAINER_OF(at, struct egress_way, link);

        egress_tell_tick(way);
        egress_way_tick(way);
    }
    egress_credentials_tick(domain);
    egress_totals_tick(domain);
    scopes_sweep(domain, false);
    retention_tick(domain, &domain->egress->old);
}

void domain_close_broker(struct domain *domain)
{
    egress_ways_close(domain);
}

static void egress_closing(struct domain *domain)
{
    egress_ways_close(domain);
    egress_totals_tick(domain);
}

/* --- with others ----------------------------------------------------------------------------- */

static void egress_destroying(struct domain *domain, struct store_transaction *change,
                              const struct sandbox *sandbox)
{
    (void) domain;
    domain_delete_rows(change, STORE_EGRESS_AUTHORITY, STORE_EGRESS_AUTHORITY_SANDBOX,
                       &sandbox->id);
}

static void egress_owner_deleting(struct domain *domain, struct store_transaction *change,
                                  const struct id *owner)
{
    (void) domain;
    domain_delete_rows(change, STORE_CREDENTIAL, STORE_CREDENTIAL_OWNER, owner);
    domain_delete_rows(change, STORE_EGRESS_TOTAL, STORE_EGRESS_TOTAL_OWNER, owner);
    domain_delete_rows(change, STORE_EGRESS_AUTHORITY, STORE_EGRESS_AUTHORITY_OWNER, owner);
    domain_delete_rows(change, STORE_EGRESS_OWNER, STORE_EGRESS_OWNER_OWNER, owner);
}

/* Rows that were still to be kept would bring back somebody who is gone. */
static void egress_owner_deleted(struct domain *domain, const struct id *owner)
{
    egress_credentials_forget(domain, owner);
    egress_owner_forget(domain, owner);
    LIST_EACH (&domain->egress->total_list, at) {
        struct egress_total *total = CONTAINER_OF(at, struct egress_total, link);

        if (id_equal(&total->owner, owner))
            total->is_dirty = false;
    }
}

static void egress_standing_changed(struct domain *domain)
{
    LIST_EACH (&domain->egress->way_list, at) {
        struct egress_way *way = CONTAINER_OF(at, struct egress_way, link);
        const struct owner *owner = owner_find(domain, &way->owner);

        if (owner && owner->is_disabled && way->outlet)
            egress_ways_cut(domain, &way->owner, NULL);
    }
}

const struct domain_module domain_egress = {
    .name = "egress",
    .begin = egress_begin,
    .load = egress_load,
    .destroying = egress_destroying,
    .fill = egress_fill,
    .open_way = egress_open_way,
    .variables = egress_variables,
    .forgotten = egress_forgotten,
    .recovered = egress_recovered,
    .closing = egress_closing,
    .standing_changed = egress_standing_changed,
    .owner_deleting = egress_owner_deleting,
    .owner_deleted = egress_owner_deleted,
    .tick = egress_tick,
    .end = egress_end,
};

/* --- shown ----------------------------------------------------------------------------------- */

void egress_counters(const struct domain *domain, struct egress_counters *ret_counters)
{
    *ret_counters = domain->egress->counters;
}

void egress_gauges(const struct domain *domain, size_t *ret_open, size_t *ret_under_way)
{
    *ret_open = *ret_under_way = 0;
    LIST_EACH (&domain->egress->way_list, at) {
        const struct egress_way *way = CONTAINER_OF(at, struct egress_way, link);

        *ret_open += way->outlet != NULL;
        *ret_under_way += way->grant_count;
    }
}

static void write_request(struct json_writer *json, const struct egress_request *request)
{
    char time[CLOCK_TEXT_SIZE];

    clock_format(request->time_ms, time);
    json_begin_object(json);
    json_add_text(json, "time", time);
    json_add_text(json, "way", request->way);
    if (*request->route)
        json_add_text(json, "route", request->route);
    if (*request->host)
        json_add_text(json, "host", request->host);
    if (request->port)
        json_add_integer(json, "port", request->port);
    if (*request->method)
        json_add_text(json, "method", request->method);
    if (*request->path)
        json_add_text(json, "path", request->path);
    json_add_integer(json, "status", request->status);
    json_add_integer(json, "ms", (int64_t) request->ms);
    json_add_integer(json, "sent", (int64_t) request->sent);
    json_add_integer(json, "received", (int64_t) request->received);
    if (*request->model) {
        json_add_text(json, "model", request->model);
        json_add_integer(json, "tokens", (int64_t) request->tokens);
        if (request->has_cost)
            json_add_integer(json, "costMicros", (int64_t) request->micros);
        else
            json_add_null(json, "costMicros");
    }
    if (request->is_partial)
        json_add_boolean(json, "partial", true);
    json_end_object(json);
}

static void write_recent(struct json_writer *json, const struct egress_way *way)
{
    json_begin_array_at(json, "recent");
    for (size_t i = 0; way && i < EGRESS_RECENT_MAX; i++) {
        const struct egress_request *request =
            &way->recent[(way->recent_next + EGRESS_RECENT_MAX - 1 - i) % EGRESS_RECENT_MAX];

        if (request->way)
            write_request(json, request);
    }
    json_end_array(json);
}

static void write_counters(struct json_writer *json, const struct egress_way *way)
{
    static const struct egress_counters none = {.requests = 0};
    const struct egress_counters *counters = way ? &way->counters : &none;

    json_begin_object_at(json, "counters");
    json_add_integer(json, "requests", (int64_t) counters->requests);
    json_add_integer(json, "underWay", way ? (int64_t) way->grant_count : 0);
    json_add_integer(json, "denied", (int64_t) counters->denied);
    json_add_integer(json, "violations", (int64_t) counters->violations);
    json_add_integer(json, "cut", (int64_t) counters->cut);
    json_add_integer(json, "sent", (int64_t) counters->sent);
    json_add_integer(json, "received", (int64_t) counters->received);
    json_add_integer(json, "tokens", (int64_t) counters->tokens);
    json_add_integer(json, "costMicros", (int64_t) counters->micros);
    json_add_integer(json, "unpriced", (int64_t) counters->unpriced);
    json_end_object(json);
}

/* What budgets count of today. */
static void write_today(struct json_writer *json, const struct egress_way *way)
{
    static const char *const names[EGRESS_SCOPE_COUNT] = {
        [EGRESS_SANDBOX] = "sandbox", [EGRESS_TASK] = "task", [EGRESS_OWNER] = "owner"};

    json_begin_object_at(json, "today");
    for (size_t i = 0; i < EGRESS_SCOPE_COUNT; i++) {
        const struct egress_meter *meter = way->scopes[i] ? &way->scopes[i]->meter : NULL;
        bool is_today = meter && meter->day_ms == egress_day(way->domain);

        if (!meter)
            continue;
        json_begin_object_at(json, names[i]);
        json_add_integer(json, "tokens", is_today ? (int64_t) meter->tokens : 0);
        json_add_integer(json, "costMicros", is_today ? (int64_t) meter->micros : 0);
        json_end_object(json);
    }
    json_end_object(json);
}

void egress_write(const struct domain *domain, const struct sandbox *sandbox,
                  struct json_writer *json)
{
    const struct egress_way *way = egress_way_of(domain, &sandbox->id);

    json_key(json, "policy");
    if (sandbox->spec.egress)
        json_put_raw(json, sandbox->spec.egress, strlen(sandbox->spec.egress));
    else
        json_put_null(json);
    json_add_boolean(json, "open", way && way->outlet);
    json_begin_array_at(json, "listening");
    for (size_t i = 0; way && i < way->forwards.count; i++)
        json_put_text(json, way->forwards.items[i]);
    json_end_array(json);
    write_counters(json, way);
    if (way && way->text)
        write_today(json, way);
    write_recent(json, way);
}
