/* Taking away what nobody names any more. */
#include "api/native/body.h"
#include "api/native/handlers.h"
#include "api/pending.h"
#include "domain/collector.h"
#include "domain/sandbox.h"
#include "json/json_measure.h"

static void collected(void *context, const struct error *failure, const struct collected *collected)
{
    struct http_request *request = pending_take_good(context, failure);
    struct native_answer answer;

    if (!request)
        return;
    native_answer_begin(&answer);
    json_add_integer(&answer.json, "layers", (int64_t) collected->layers);
    json_add_integer(&answer.json, "bytes", (int64_t) collected->bytes);
    json_add_integer(&answer.json, "kept", (int64_t) collected->kept);
    native_answer_send(&answer, request, 200);
    native_answer_done(&answer);
}

static int read_collect(struct http_request *request, const struct json_place *body,
                        const void *argument, struct error *err)
{
    static const char *const names[] = {"grace"};
    uint64_t grace_ms = COLLECTOR_GRACE_MS;

    (void) argument;
    if (json_known_fields(body, names, ARRAY_COUNT(names), err) < 0 ||
        json_field_duration(body, "grace", JSON_OPTIONAL, SANDBOX_DURATION_MAX, &grace_ms, err) < 0)
        return -1;
    collector_run(api_of(request)->domain, grace_ms, collected, pending_new(request));
    return 0;
}

void native_collect(struct http_request *request)
{
    native_take(request, read_collect, NULL);
}
