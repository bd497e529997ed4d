#include "api/native/body.h"

#include "api/http/idempotency.h"
#include "base/clock.h"
#include "base/number.h"
#include "domain/sandbox/sandboxes.h"

#define EXPIRY_MAX_MS ((uint64_t) 36500 * 24 * 3600 * 1000)

/* In the request's pool. */
struct taking {
    json_body_read *read;
    const void *argument;
    const char *bytes;
    size_t length;
};

static void body_client_left(struct http_request *request)
{
    (void) request; /* everything is in its pool */
}

static void body_read_body(struct http_request *request, const struct taking *taking)
{
    json_body_read_bytes(request, taking->bytes, taking->length, taking->read);
}

static void checked(struct http_request *request)
{
    body_read_body(request, request->data);
}

static void arrived(struct http_request *request, const char *bytes, size_t length)
{
    struct taking *taking = request->data;

    taking->length = length;
    taking->bytes = bytes;
    if (!http_request_header(request, "idempotency-key")) {
        body_read_body(request, taking);
        return;
    }
    taking->bytes = pool_copy_bytes(&request->pool, bytes, length);
    idempotency_check(api_of(request)->idempotency, request, request_caller(request), taking->bytes,
                      length, checked);
}

const void *native_argument(const struct http_request *request)
{
    const struct taking *taking = request->data;

    return taking->argument;
}

void native_take(struct http_request *request, json_body_read *read)
{
    native_take_with(request, read, NULL);
}

void native_take_with(struct http_request *request, json_body_read *read, const void *argument)
{
    struct taking *taking = pool_alloc(&request->pool, sizeof(*taking));

    taking->read = read;
    taking->argument = argument;
    request->data = taking;
    request->on_gone = body_client_left;
    http_request_collect(request, arrived);
}

struct sandbox *native_find_sandbox(struct http_request *request)
{
    struct error err = ERROR_INIT;
    struct sandbox *sandbox = sandbox_find(api_of(request)->domain, request_caller(request),
                                           http_request_parameter(request, "id"), &err);

    if (!sandbox)
        http_reply_error(request, &err);
    return sandbox;
}

int native_read_expiry(struct http_request *request, const struct json_place *body, const char *key,
                       int64_t *ret_expires_ms, struct error *err)
{
    json_t *value = json_object_get(body->value, key);
    uint64_t length_ms = 0;

    if (!value || json_is_null(value))
        return 0;
    if (json_is_string(value))
        (void) number_parse_duration(json_string_value(value), EXPIRY_MAX_MS, &length_ms);
    else if (json_is_integer(value) && json_integer_value(value) > 0 &&
             (uint64_t) json_integer_value(value) <= EXPIRY_MAX_MS / 1000)
        length_ms = (uint64_t) json_integer_value(value) * 1000;
    if (!length_ms)
        return error_set(err, ERR_INVALID, 0,
                         "field '%s' must be a time such as \"24h\" or \"7d\", or seconds", key);
    *ret_expires_ms = clock_wall_ms(api_of(request)->clock) + (int64_t) length_ms;
    return 0;
}

void native_add_time(struct json_writer *json, const char *key, int64_t wall_ms)
{
    char text[CLOCK_TEXT_SIZE];

    if (!wall_ms)
        return;
    clock_format(wall_ms, text);
    json_add_text(json, key, text);
}

int native_read_limit(struct http_request *request, int64_t max, int64_t *ret_limit,
                      struct error *err)
{
    const char *limit = http_request_query(request, "limit");

    if (limit && number_parse(limit, 1, max, ret_limit) < 0)
        return error_set(err, ERR_INVALID, 0, "'limit' must be a number from 1 to %lld",
                         (long long) max);
    return 0;
}

void native_answer_begin_value(struct native_answer *answer)
{
    answer->body = (struct text) TEXT_INIT(NATIVE_REPLY_MAX);
    json_writer_init_text(&answer->json, &answer->body);
}

void native_answer_begin(struct native_answer *answer)
{
    native_answer_begin_value(answer);
    json_begin_object(&answer->json);
}

void native_answer_begin_list(struct native_answer *answer, const char *key)
{
    native_answer_begin(answer);
    json_begin_array_at(&answer->json, key);
}

bool native_answer_is_full(void *answer)
{
    return ((const struct native_answer *) answer)->body.length >= NATIVE_PAGE_FULL;
}

struct http_request *native_answer_pending(struct native_answer *answer, struct pending *pending,
                                           const struct error *failure)
{
    native_answer_begin(answer);
    return pending_take_good(pending, failure);
}

void native_answer_send(struct native_answer *answer, struct http_request *request, int status)
{
    if (answer->json.depth == 2)
        json_end_array(&answer->json);
    if (answer->json.depth == 1)
        json_end_object(&answer->json);
    if (json_writer_finish(&answer->json) < 0) {
        api_fail(request, ERR_TOO_LARGE, "the answer is too large: ask for fewer at once");
        return;
    }
    http_reply(request, status, "application/json", text_string(&answer->body),
               answer->body.length);
}

void native_answer_done(struct native_answer *answer)
{
    text_done(&answer->body);
}
