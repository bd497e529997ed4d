/* What is told: events of requests, denials, violations and budgets. Programs inside decide how many
 * there are, so a flood of them is counted: the same denial within a minute is one event, and when
 * there are too many different ones an event says how many were not told. What was used is in rows,
 * told or not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/egress/egress_internal.h"
#include "domain/event/audit.h"
#include "domain/event/event.h"

#define EVENT_DATA_MAX  ((size_t) 4096)
#define SHOWN_PATH_MAX  512
#define TOKENS_MAX      200 /* events at once */
#define TOKENS_A_SECOND 5   /* and later on */
#define REPEAT_NS       (UINT64_C(60) * 1000 * 1000 * 1000)

const char *egress_way_text(enum broker_way way)
{
    static const char *const texts[] = {[BROKER_ROUTE] = "route",
                                        [BROKER_HTTP] = "http",
                                        [BROKER_CONNECT] = "connect",
                                        [BROKER_REQUEST] = "request",
                                        [BROKER_TCP] = "tcp"};

    return texts[way];
}

/* In the name of the sandbox where a secret went out: then the audit log has it, too. */
static struct caller teller(const struct egress_way *way, bool is_audited)
{
    struct caller caller = caller_system();

    if (!is_audited)
        return caller;
    caller.scope = CALLER_SANDBOX;
    caller.owner = way->owner;
    caller.sandbox = way->sandbox;
    (void) snprintf(caller.address, sizeof(caller.address), "sandbox");
    return caller;
}

static bool tell_take_token(struct egress_way *way)
{
    uint64_t now = domain_now_ns(way->domain);

    way->tokens += (double) (now - way->filled_ns) / 1e9 * TOKENS_A_SECOND;
    way->filled_ns = now;
    if (way->tokens > TOKENS_MAX)
        way->tokens = TOKENS_MAX;
    if (way->tokens < 1) {
        way->untold++;
        return false;
    }
    way->tokens -= 1;
    return true;
}

static void commit_event(struct egress_way *way, const char *type, const struct text *data,
                         struct egress_total *total, bool is_audited)
{
    struct domain *domain = way->domain;
    struct store_transaction *rows = store_begin(domain->options.store);
    struct egress_keeping *keeping = egress_total_add(domain, rows, total);
    struct caller caller = teller(way, is_audited);

    event_add(domain, rows, &caller, &way->owner, way->sandbox.text, type, text_string(data));
    domain_commit(domain, rows, egress_total_kept, keeping);
}

static void data_begin(struct json_writer *json, struct text *data, const struct egress_way *way)
{
    json_document_begin(json, data);
    json_add_text(json, "sandboxId", way->sandbox.text);
}

/* --- a request ------------------------------------------------------------------------------- */

static void tell_copy(char *to, size_t size, const char *from)
{
    (void) snprintf(to, size, "%s", from ? from : "");
}

static void ring_add(struct egress_way *way, const struct egress_grant *grant,
                     const struct broker_record *record)
{
    struct egress_request *request = &way->recent[way->recent_next];
    struct egress_tokens tokens = {grant->usage.input, grant->usage.output, grant->usage.reasoning,
                                   grant->usage.cache_read, grant->usage.cache_write};

    way->recent_next = (way->recent_next + 1) % EGRESS_RECENT_MAX;
    *request = (struct egress_request){
        .time_ms = domain_wall_ms(way->domain),
        .way = egress_way_text(record->way),
        .port = record->port,
        .status = record->status,
        .sent = record->sent,
        .received = record->received,
        .ms = record->ms,
        .tokens = egress_tokens_sum(&tokens),
        .micros = grant->cost.micros,
        .has_cost = grant->is_metered && grant->usage.is_known && grant->cost.is_known,
        .is_partial = record->is_partial,
    };
    tell_copy(request->route, sizeof(request->route), record->route);
    tell_copy(request->host, sizeof(request->host), record->host);
    tell_copy(request->method, sizeof(request->method), record->method);
    tell_copy(request->path, sizeof(request->path), record->path);
    tell_copy(request->model, sizeof(request->model), grant->usage.model);
}

static void write_tokens(struct json_writer *json, const struct broker_usage *usage)
{
    json_begin_object_at(json, "tokens");
    json_add_integer(json, "input", (int64_t) usage->input);
    json_add_integer(json, "output", (int64_t) usage->output);
    json_add_integer(json, "reasoning", (int64_t) usage->reasoning);
    json_add_integer(json, "cacheRead", (int64_t) usage->cache_read);
    json_add_integer(json, "cacheWrite", (int64_t) usage->cache_write);
    json_end_object(json);
}

static void write_metered(struct json_writer *json, const struct egress_grant *grant)
{
    json_add_text(json, "model", *grant->usage.model ? grant->usage.model : NULL);
    if (!grant->usage.is_known) {
        json_add_null(json, "tokens");
        json_add_null(json, "costMicros");
        return;
    }
    write_tokens(json, &grant->usage);
    if (grant->cost.is_known)
        json_add_integer(json, "costMicros", (int64_t) grant->cost.micros);
    else
        json_add_null(json, "costMicros");
}

static void add_some(struct json_writer *json, const char *key, const char *value)
{
    if (value && *value)
        json_add_text(json, key, value);
}

static void write_request(struct json_writer *json, const struct egress_grant *grant,
                          const struct broker_record *record)
{
    char path[SHOWN_PATH_MAX];

    tell_copy(path, sizeof(path), record->path);
    json_add_text(json, "way", egress_way_text(record->way));
    add_some(json, "route", record->route);
    add_some(json, "host", record->host);
    if (record->port)
        json_add_integer(json, "port", record->port);
    add_some(json, "method", record->method);
    add_some(json, "path", path);
    add_some(json, "credential", grant->credential);
    if (record->status)
        json_add_integer(json, "status", record->status);
    json_add_integer(json, "ms", (int64_t) record->ms);
    json_add_integer(json, "firstByteMs", (int64_t) record->first_byte_ms);
    json_add_integer(json, "sent", (int64_t) record->sent);
    json_add_integer(json, "received", (int64_t) record->received);
    if (grant->is_metered)
        write_metered(json, grant);
    if (record->is_partial)
        json_add_boolean(json, "partial", true);
    add_some(json, "failure", record->failure);
}

void egress_tell_request(struct egress_way *way, struct egress_grant *grant,
                         const struct broker_record *record)
{
    AUTO(text) struct text data = TEXT_INIT(EVENT_DATA_MAX);
    struct json_writer json;

    ring_add(way, grant, record);
    if (!tell_take_token(way))
        return;
    data_begin(&json, &data, way);
    write_request(&json, grant, record);
    (void) json_document_end(&json); /* each text was cut: it fits */
    commit_event(way, "egress.request", &data, grant->total, *grant->credential);
}

/* --- denials --------------------------------------------------------------------------------- */

static void tell_repeat(struct egress_way *way, const struct egress_repeat *repeat)
{
    AUTO(text) struct text data = TEXT_INIT(EVENT_DATA_MAX);
    struct json_writer json;

    data_begin(&json, &data, way);
    json_add_text(&json, "way", repeat->way);
    add_some(&json, "host", repeat->host);
    if (repeat->port)
        json_add_integer(&json, "port", repeat->port);
    json_add_text(&json, "reason", repeat->reason);
    if (repeat->times)
        json_add_integer(&json, "times", (int64_t) repeat->times);
    (void) json_document_end(&json); /* as above */
    commit_event(way, repeat->type, &data, NULL, false);
}

/* Its own place, or a free one, or NULL. */
static struct egress_repeat *repeat_of(struct egress_way *way, uint64_t hash)
{
    struct egress_repeat *free_one = NULL;

    for (size_t i = 0; i < EGRESS_REPEATS_MAX; i++) {
        if (way->repeats[i].hash == hash)
            return &way->repeats[i];
        if (!way->repeats[i].hash && !free_one)
            free_one = &way->repeats[i];
    }
    return free_one;
}

static void audit_denial(struct egress_way *way, const struct egress_repeat *repeat)
{
    struct caller caller = teller(way, true);
    struct error err = ERROR_INIT;

    (void) error_set(&err, ERR_FORBIDDEN, 0, "%s %s port %u: %s", repeat->way, repeat->host,
                     (unsigned int) repeat->port, repeat->reason);
    audit_add(way->domain, &caller, repeat->type, way->sandbox.text, &err);
}

void egress_tell_denial(struct egress_way *way, const char *type, const char *way_text,
                        const char *host, uint16_t port, const char *reason)
{
    struct egress_repeat wanted = {.way = way_text, .port = port}, *repeat;

    tell_copy(wanted.type, sizeof(wanted.type), type);
    tell_copy(wanted.reason, sizeof(wanted.reason), reason);
    tell_copy(wanted.host, sizeof(wanted.host), host);
    wanted.hash = table_hash(way->domain->seed + port, wanted.type, strlen(wanted.type));
    wanted.hash = table_hash(wanted.hash, wanted.reason, strlen(wanted.reason));
    wanted.hash = table_hash(wanted.hash, wanted.host, strlen(wanted.host)) | 1;
    wanted.until_ns = domain_now_ns(way->domain) + REPEAT_NS;
    if (way->domain->stage != DOMAIN_OPEN)
        return;
    repeat = repeat_of(way, wanted.hash);
    if (repeat && repeat->hash) {
        repeat->times++;
        return;
    }
    if (!repeat) {
        way->untold++;
        return;
    }
    *repeat = wanted;
    if (!tell_take_token(way))
        return;
    tell_repeat(way, &wanted);
    audit_denial(way, &wanted);
}

/* --- budgets --------------------------------------------------------------------------------- */

void egress_tell_budget(struct egress_way *way, const char *scope, const char *what)
{
    egress_tell_denial(way, "egress.budget", scope, NULL, 0, what);
}

/* --- later ----------------------------------------------------------------------------------- */

static void tell_flood(struct egress_way *way)
{
    AUTO(text) struct text data = TEXT_INIT(EVENT_DATA_MAX);
    struct json_writer json;
    uint64_t untold = way->untold;

    if (!tell_take_token(way))
        return;
    data_begin(&json, &data, way);
    json_add_integer(&json, "untold", (int64_t) untold);
    (void) json_document_end(&json); /* it is short */
    way->untold = 0;
    commit_event(way, "egress.flood", &data, NULL, false);
}

/* Whatever came again within its minute is told now; what did not is free. */
void egress_tell_tick(struct egress_way *way)
{
    uint64_t now = domain_now_ns(way->domain);

    for (size_t i = 0; i < EGRESS_REPEATS_MAX; i++) {
        struct egress_repeat *repeat = &way->repeats[i];

        if (!repeat->hash || now < repeat->until_ns)
            continue;
        if (repeat->times && tell_take_token(way))
            tell_repeat(way, repeat);
        *repeat = (struct egress_repeat){.hash = 0};
    }
    if (way->untold && way->tokens + 1 > TOKENS_A_SECOND)
        tell_flood(way);
}
