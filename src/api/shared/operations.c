#include "api/shared/operations.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "api/access/access.h"
#include "api/http/api.h"
#include "api/shared/metrics.h"
#include "base/auto.h"
#include "json/json_write.h"

#define HEALTH_MAX  256
#define READY_MAX   4096 /* an error's message, every byte of it escaped */
#define METRICS_MAX ((size_t) 64 * 1024)

/* A superset of what the dialects' clients look for: ok (bridge), status and timestamp (AgentPod),
 * ok and bindings (StackMemory). */
static void get_health(struct http_request *request)
{
    const struct operations *operations = request->context;
    /* With sandboxes there is a place for their data, too: what is wrong with it says /ready. */
    const char *bound = operations->has_sandboxes ? "true" : "false";
    char body[HEALTH_MAX], time[CLOCK_TEXT_SIZE];

    clock_format(clock_wall_ms(operations->clock), time);
    (void) snprintf(body, sizeof(body),
                    "{\"ok\":true,\"status\":\"ok\",\"service\":\"burrow\",\"version\":\"%s\","
                    "\"timestamp\":\"%s\",\"bindings\":{\"sandbox\":%s,\"projectData\":%s,"
                    "\"backupBucket\":%s}}",
                    BURROW_VERSION, time, bound, bound, bound);
    http_reply_text(request, 200, "application/json", body);
}

/* The store of objects may be away for a while: sandboxes do without. */
static void reply_ready(struct http_request *request)
{
    const struct operations *operations = request->context;
    const char *problem = operations->objects_problem ? *operations->objects_problem : NULL;
    AUTO(text) struct text body = TEXT_INIT(READY_MAX);
    struct json_writer json;

    json_document_begin(&json, &body);
    json_add_boolean(&json, "ready", true);
    json_add_boolean(&json, "sandboxes", operations->has_sandboxes);
    json_add_boolean(&json, "objects", !problem);
    if (problem)
        json_add_text(&json, "problem", problem);
    (void) json_document_end(&json); /* the body fits: an error's message has a limit */
    http_reply_text(request, 200, "application/json", text_string(&body));
}

static void get_ready(struct http_request *request)
{
    const struct operations *operations = request->context;
    const char *wait = operations->sandboxes_wait ? *operations->sandboxes_wait : NULL;
    struct error error;

    if (operations->ready && !wait) {
        reply_ready(request);
        return;
    }
    (void) error_set(&error, ERR_UNAVAILABLE, 0, "%s",
                     operations->ready ? wait : "the daemon is starting or shutting down");
    http_reply_error(request, &error);
}

/* --- metrics -------------------------------------------------------------------------------- */

static void add_replies(struct text *out, const struct http_server_counters *counters)
{
    text_append(out, "# HELP burrow_http_replies_total Replies by first digit of their status.\n"
                     "# TYPE burrow_http_replies_total counter\n");
    for (int class = 1; class < 6; class ++)
        text_format(out, "burrow_http_replies_total{class=\"%dxx\"} %llu\n", class,
                    (unsigned long long) counters->replies[class]);
}

static double cpu_seconds(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) < 0)
        return 0;
    return (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void add_http(struct text *out, const struct http_server *server)
{
    const struct http_server_counters *counters = http_server_counters(server);
    const struct {
        const char *name, *help;
        uint64_t value;
    } rows[] = {
        {"burrow_http_connections_total", "Connections accepted.", counters->connections},
        {"burrow_http_requests_total", "Requests answered.", counters->requests},
        {"burrow_http_refused_total", "Malformed or oversized requests.", counters->refused_heads},
        {"burrow_http_timeouts_total", "Clients that were too slow.", counters->timeouts},
        {"burrow_http_received_bytes_total", "Bytes of request bodies.", counters->bytes_received},
        {"burrow_http_sent_bytes_total", "Bytes of reply bodies.", counters->bytes_sent},
    };

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        metrics_add(out, rows[i].name, "counter", rows[i].help, (double) rows[i].value);
    add_replies(out, counters);
    metrics_add(out, "burrow_http_connections", "gauge", "Connections open now.",
                (double) http_server_connections(server));
}

static void get_metrics(struct http_request *request)
{
    const struct operations *operations = request->context;
    uint64_t now = clock_monotonic_ns(operations->clock);
    AUTO(text) struct text out = TEXT_INIT(METRICS_MAX);

    text_format(&out,
                "# HELP burrow_info Version of this daemon.\n# TYPE burrow_info gauge\n"
                "burrow_info{version=\"%s\"} 1\n",
                BURROW_VERSION);
    metrics_add(&out, "burrow_uptime_seconds", "gauge", "Since the daemon started.",
                (double) (now - operations->started_ns) / 1e9);
    metrics_add(&out, "process_cpu_seconds_total", "counter", "CPU time of the daemon.",
                cpu_seconds());
    metrics_add(&out, "burrow_heap_bytes", "gauge", "Heap memory in use.",
                (double) mallinfo2().uordblks);
    metrics_add(&out, "burrow_log_dropped_lines_total", "counter",
                "Log lines lost because their reader stalled.",
                (double) log_dropped(operations->log));
    add_http(&out, operations->server);
    if (operations->meter)
        metrics_add_turns(&out, operations->meter);
    metrics_add_domain(&out, operations->api);
    http_reply(request, 200, "text/plain; version=0.0.4; charset=utf-8", text_string(&out),
               out.length);
}

static const struct http_route routes[] = {
    {"GET", "/health", get_health, "Whether the daemon answers", .access = ACCESS_PUBLIC,
     .reply_schema = "{\"type\":\"object\",\"properties\":{\"ok\":{\"type\":\"boolean\"},"
                     "\"status\":{\"type\":\"string\"},\"service\":{\"type\":\"string\"},"
                     "\"version\":{\"type\":\"string\"},"
                     "\"timestamp\":{\"type\":\"string\"},\"bindings\":{\"type\":\"object\"}}}"},
    {"GET", "/ready", get_ready, "Whether the daemon takes work", .access = ACCESS_PUBLIC,
     .reply_schema = "{\"type\":\"object\",\"properties\":{\"ready\":{\"type\":\"boolean\"},"
                     "\"sandboxes\":{\"type\":\"boolean\"},"
                     "\"objects\":{\"type\":\"boolean\"},"
                     "\"problem\":{\"type\":\"string\"}}}"},
    {"GET", "/metrics", get_metrics, "Figures for Prometheus", .reply_type = "text/plain"},
};

struct http_mount operations_mount(struct operations *operations)
{
    return (struct http_mount){
        .name = "operations",
        .routes = routes,
        .route_count = ARRAY_COUNT(routes),
        .context = operations,
        .encode_error = error_body_write,
    };
}
