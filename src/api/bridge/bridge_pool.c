#include "api/bridge/bridge_pool.h"

#include "api/bridge/bridge_internal.h"
#include "base/auto.h"
#include "domain/identity/owner.h"
#include "domain/sandbox/sandboxes.h"
#include "json/json_write.h"

#define ANSWER_MAX ((size_t) 1024)

/* Those with processes, or about to have some. */
static const enum sandbox_status assigned_statuses[] = {
    SANDBOX_CREATING, SANDBOX_STARTING, SANDBOX_RUNNING,
    SANDBOX_FROZEN,   SANDBOX_WAKING,   SANDBOX_STOPPING,
};

/* The caller's own: how many others have is not to be known here. */
static size_t count_assigned(struct http_request *request)
{
    size_t counts[SANDBOX_STATUS_COUNT] = {0}, sum = 0;

    sandbox_count(api_of(request)->domain, &request_caller(request)->owner, counts);
    for (size_t i = 0; i < ARRAY_COUNT(assigned_statuses); i++)
        sum += counts[assigned_statuses[i]];
    return sum;
}

static void add_count(struct json_writer *json, const char *name, uint64_t count)
{
    json_add_integer(json, name, (int64_t) count);
}

static void write_figures(struct json_writer *json, const struct bridge_pool_figures *pool,
                          size_t assigned, uint32_t limit)
{
    json_begin_object(json);
    add_count(json, "warm", pool->warm);
    add_count(json, "assigned", assigned);
    add_count(json, "total", pool->warm + assigned);
    json_begin_object_at(json, "config");
    add_count(json, "warmTarget", pool->target);
    add_count(json, "refreshInterval", pool->refresh_ms);
    add_count(json, "maxInstances", limit);
    add_count(json, "scaleBatchSize", pool->batch);
    json_end_object(json);
    if (limit)
        add_count(json, "maxInstances", limit);
    else
        json_add_null(json, "maxInstances");
    json_end_object(json);
}

void bridge_pool_read(struct http_request *request)
{
    const struct bridge_pool_ops *ops = api_of(request)->bridge_pool;
    const struct owner *owner =
        owner_find(api_of(request)->domain, &request_caller(request)->owner);
    struct bridge_pool_figures pool = {.warm = 0};
    AUTO(text) struct text body = TEXT_INIT(ANSWER_MAX);
    struct json_writer json;

    if (ops)
        ops->figures(ops->self, &pool);
    json_writer_init_text(&json, &body);
    write_figures(&json, &pool, count_assigned(request), owner ? owner->quota.running : 0);
    (void) json_writer_finish(&json); /* a few numbers have room */
    http_reply(request, 200, BRIDGE_JSON, text_string(&body), body.length);
}

/* A server without a warm pool has nothing to prepare or to give up, which is as it was asked. */
void bridge_pool_prime(struct http_request *request)
{
    const struct bridge_pool_ops *ops = api_of(request)->bridge_pool;

    if (ops)
        ops->prime(ops->self);
    http_reply_text(request, 200, BRIDGE_JSON, BRIDGE_OK);
}

void bridge_pool_drain(struct http_request *request)
{
    const struct bridge_pool_ops *ops = api_of(request)->bridge_pool;

    if (ops)
        ops->drain(ops->self);
    http_reply_text(request, 200, BRIDGE_JSON, BRIDGE_OK);
}
