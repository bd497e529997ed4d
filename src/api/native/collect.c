/* Care of what is stored: taking away what nobody names any more, and looking whether all is there.
 */
#include "api/http/pending.h"
#include "api/native/body.h"
#include "api/native/handlers.h"
#include "base/memory.h"
#include "domain/sandbox/sandbox.h"
#include "domain/tiers/collector.h"
#include "domain/tiers/inspection.h"
#include "json/json_measure.h"

static void collected(void *context, const struct error *failure, const struct collected *collected)
{
    AUTO(native_answer) struct native_answer answer;
    struct http_request *request = native_answer_pending(&answer, context, failure);

    if (!request)
        return;
    json_add_integer(&answer.json, "layers", (int64_t) collected->layers);
    json_add_integer(&answer.json, "objects", (int64_t) collected->objects);
    json_add_integer(&answer.json, "snapshots", (int64_t) collected->snapshots);
    json_add_integer(&answer.json, "buckets", (int64_t) collected->buckets);
    json_add_integer(&answer.json, "bytes", (int64_t) collected->bytes);
    json_add_integer(&answer.json, "kept", (int64_t) collected->kept);
    native_answer_send(&answer, request, 200);
}

static int read_collect(struct http_request *request, const struct json_place *body,
                        struct error *err)
{
    static const char *const names[] = {"grace"};
    uint64_t grace_ms = COLLECTOR_GRACE_MS;

    if (json_known_fields(body, names, ARRAY_COUNT(names), err) < 0 ||
        json_field_duration(body, "grace", JSON_OPTIONAL, SANDBOX_DURATION_MAX, &grace_ms, err) < 0)
        return -1;
    collector_run(api_of(request)->domain, grace_ms, collected, pending_new(request));
    return 0;
}

void native_collect(struct http_request *request)
{
    native_take(request, read_collect);
}

/* --- looking --------------------------------------------------------------------------------- */

#define FINDINGS_MAX 1000 /* listed, of each kind; all are counted */

struct inspecting {
    struct pending *pending;
    struct native_answer answer;
    size_t listed[2]; /* by enum finding_kind */
    bool is_truncated;
};

static void collect_found(void *context, const struct finding *finding)
{
    struct inspecting *inspecting = context;
    struct json_writer *json = &inspecting->answer.json;

    if (inspecting->listed[finding->kind] == FINDINGS_MAX) {
        inspecting->is_truncated = true;
        return;
    }
    inspecting->listed[finding->kind]++;
    json_begin_object(json);
    json_add_text(json, "is", finding->kind == FINDING_LOST ? "lost" : "garbage");
    json_add_text(json, "what", finding->what);
    json_add_text(json, "name", finding->name);
    json_add_text(json, "detail", finding->detail);
    json_end_object(json);
}

static void inspected(void *context, const struct error *failure, const struct inspected *inspected)
{
    AUTO(free) struct inspecting *inspecting = context;
    struct http_request *request = pending_take_good(inspecting->pending, failure);
    struct json_writer *json = &inspecting->answer.json;

    if (request) {
        json_end_array(json);
        json_add_boolean(json, "truncated", inspecting->is_truncated);
        json_add_integer(json, "lost", (int64_t) inspected->lost);
        json_add_integer(json, "garbage", (int64_t) inspected->garbage);
        json_add_integer(json, "sandboxes", (int64_t) inspected->sandboxes);
        json_add_integer(json, "snapshots", (int64_t) inspected->snapshots);
        json_add_integer(json, "layers", (int64_t) inspected->layers);
        json_add_integer(json, "backups", (int64_t) inspected->backups);
        json_add_integer(json, "workspaces", (int64_t) inspected->workspaces);
        json_add_integer(json, "objects", (int64_t) inspected->objects);
        json_add_integer(json, "bytesRead", (int64_t) inspected->bytes);
        native_answer_send(&inspecting->answer, request, 200);
    }
    native_answer_done(&inspecting->answer);
}

static int read_inspect(struct http_request *request, const struct json_place *body,
                        struct error *err)
{
    static const char *const names[] = {"deep"};
    struct inspecting *inspecting;
    bool is_deep = false;

    if (json_known_fields(body, names, ARRAY_COUNT(names), err) < 0 ||
        json_field_boolean(body, "deep", JSON_OPTIONAL, &is_deep, err) < 0)
        return -1;
    inspecting = mem_alloc(sizeof(*inspecting));
    native_answer_begin_list(&inspecting->answer, "findings");
    inspecting->pending = pending_new(request);
    inspection_run(api_of(request)->domain, is_deep, collect_found, inspected, inspecting);
    return 0;
}

void native_inspect(struct http_request *request)
{
    native_take(request, read_inspect);
}
