#include <string.h>

#include "api/http/pending.h"
#include "api/native/body.h"
#include "api/native/event_cursor.h"
#include "api/native/handlers.h"
#include "api/native/identity_internal.h"
#include "base/auto.h"
#include "base/number.h"
#include "domain/webhook/webhook.h"

#define LOG_DEFAULT 100

/* --- shown ----------------------------------------------------------------------------------- */

static void write_webhook(struct json_writer *json, const struct webhook *webhook,
                          bool shows_secret)
{
    json_begin_object(json);
    json_add_text(json, "id", webhook->id.text);
    json_add_text(json, "url", webhook->url);
    json_key(json, "events");
    json_put_raw(json, webhook->events, strlen(webhook->events));
    json_add_boolean(json, "enabled", !webhook->disabled_ms);
    json_add_boolean(json, "hasBearer", webhook->bearer != NULL);
    json_add_integer(json, "waiting", (int64_t) webhook->waiting_count);
    native_add_time(json, "createdAt", webhook->created_ms);
    if (shows_secret)
        json_add_text(json, "secret", webhook->secret);
    json_end_object(json);
}

static void answer_webhook(struct http_request *request, int status, const struct webhook *webhook,
                           bool shows_secret)
{
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin_value(&answer);
    write_webhook(&answer.json, webhook, shows_secret);
    if (shows_secret)
        (void) http_reply_header(request, "Cache-Control", "no-store");
    native_answer_send(&answer, request, status);
    explicit_bzero(answer.body.data, answer.body.capacity);
}

static void webhooks_list_one(void *context, struct webhook *webhook)
{
    struct identity_page *page = context;

    if (identity_page_takes(page, &webhook->id))
        write_webhook(&page->answer.json, webhook, false);
}

void native_list_webhooks(struct http_request *request)
{
    struct identity_page page = {.after = NULL};
    struct error err = ERROR_INIT;

    if (identity_page_begin(&page, request, "webhooks", &err) == 0)
        webhook_each(api_of(request)->domain, request_caller(request), webhooks_list_one, &page);
    identity_page_end(&page, request, &err);
}

static struct webhook *webhooks_find(struct http_request *request)
{
    struct error err = ERROR_INIT;
    struct webhook *webhook = webhook_find(api_of(request)->domain, request_caller(request),
                                           http_request_parameter(request, "webhook"), &err);

    if (!webhook)
        http_reply_error(request, &err);
    return webhook;
}

void native_get_webhook(struct http_request *request)
{
    struct webhook *webhook = webhooks_find(request);

    if (webhook)
        answer_webhook(request, 200, webhook, false);
}

/* --- made, changed, gone --------------------------------------------------------------------- */

static void webhooks_made(void *context, const struct error *failure, struct webhook *webhook)
{
    struct http_request *request = pending_take_good(context, failure);

    if (request)
        answer_webhook(request, 201, webhook, true);
}

static int read_webhook(struct http_request *request, const struct json_place *body,
                        struct error *err)
{
    static const char *const known[] = {"url", "events", "secret", "bearer"};
    struct webhook_spec spec = {.url = NULL};
    struct json_texts types = {.count = 0};

    if (json_known_fields(body, known, ARRAY_COUNT(known), err) < 0 ||
        json_field_text(body, "url", JSON_REQUIRED, WEBHOOK_URL_MAX, &spec.url, err) < 0 ||
        json_field_texts(body, "events", JSON_OPTIONAL, WEBHOOK_TYPES_MAX, WEBHOOK_TYPE_MAX,
                         &request->pool, &types, err) < 0 ||
        json_field_text(body, "secret", JSON_OPTIONAL, WEBHOOK_SECRET_MAX, &spec.secret, err) < 0 ||
        json_field_text(body, "bearer", JSON_OPTIONAL, WEBHOOK_BEARER_MAX, &spec.bearer, err) < 0)
        return -1;
    spec.types = types.items;
    spec.type_count = types.count;
    webhook_create(api_of(request)->domain, request_caller(request), &spec, webhooks_made,
                   pending_new(request));
    return 0;
}

void native_create_webhook(struct http_request *request)
{
    native_take(request, read_webhook);
}

static void webhooks_changed(void *context, const struct error *failure, struct webhook *webhook)
{
    struct http_request *request = pending_take_good(context, failure);

    if (request)
        answer_webhook(request, 200, webhook, false);
}

static int webhooks_read_change(struct http_request *request, const struct json_place *body,
                                struct error *err)
{
    static const char *const known[] = {"enabled"};
    struct webhook *webhook;
    bool is_enabled = true;

    if (json_known_fields(body, known, ARRAY_COUNT(known), err) < 0 ||
        json_field_boolean(body, "enabled", JSON_REQUIRED, &is_enabled, err) < 0)
        return -1;
    webhook = webhook_find(api_of(request)->domain, request_caller(request),
                           http_request_parameter(request, "webhook"), err);
    if (!webhook)
        return -1;
    webhook_enable(api_of(request)->domain, request_caller(request), webhook, is_enabled,
                   webhooks_changed, pending_new(request));
    return 0;
}

void native_change_webhook(struct http_request *request)
{
    native_take(request, webhooks_read_change);
}

static void webhooks_gone(void *context, const struct error *failure, struct webhook *webhook)
{
    (void) webhook;
    pending_end(context, failure);
}

void native_delete_webhook(struct http_request *request)
{
    struct webhook *webhook = webhooks_find(request);

    if (webhook)
        webhook_delete(api_of(request)->domain, request_caller(request), webhook, webhooks_gone,
                       pending_new(request));
}

/* --- the log --------------------------------------------------------------------------------- */

static void write_entry(struct json_writer *json, const struct webhook_log_entry *entry,
                        const struct permutation *cursors)
{
    json_begin_object(json);
    json_add_text(json, "id", entry->id);
    json_add_text(json, "state", entry->state);
    json_add_integer(json, "cursor", event_cursor_show(cursors, entry->cursor));
    json_add_integer(json, "attempts", entry->attempts);
    if (entry->status)
        json_add_integer(json, "status", entry->status);
    json_add_text(json, "detail", entry->detail);
    json_key(json, "body");
    json_put_raw(json, entry->body, strlen(entry->body));
    native_add_time(json, "createdAt", entry->created_ms);
    native_add_time(json, "updatedAt", entry->updated_ms);
    native_add_time(json, "nextAt", entry->next_ms);
    json_end_object(json);
}

static void logged(void *context, const struct error *failure,
                   const struct webhook_log_entry *entries, size_t count, int64_t next_before_ms)
{
    AUTO(native_answer) struct native_answer answer;
    struct http_request *request = native_answer_pending(&answer, context, failure);
    struct permutation cursors;

    if (!request)
        return;
    cursors = event_cursor_view(api_of(request), request_caller(request));
    json_begin_array_at(&answer.json, "deliveries");
    for (size_t i = 0; i < count; i++) {
        if (native_answer_is_full(&answer) && entries[i].created_ms != entries[i - 1].created_ms) {
            next_before_ms = entries[i - 1].created_ms;
            break;
        }
        write_entry(&answer.json, &entries[i], &cursors);
    }
    json_end_array(&answer.json);
    json_add_text(&answer.json, "nextCursor",
                  next_before_ms ? pool_format(&request->pool, "%lld", (long long) next_before_ms)
                                 : NULL);
    native_answer_send(&answer, request, 200);
}

void native_get_deliveries(struct http_request *request)
{
    struct webhook *webhook = webhooks_find(request);
    struct error err = ERROR_INIT;
    const char *cursor = http_request_query(request, "cursor");
    int64_t limit = LOG_DEFAULT, before_ms = INT64_MAX;

    if (!webhook)
        return;
    if (cursor && number_parse(cursor, 1, INT64_MAX, &before_ms) < 0)
        api_fail(request, ERR_INVALID, "invalid cursor; use the nextCursor of the page before");
    else if (native_read_limit(request, WEBHOOK_DELIVERIES_MAX, &limit, &err) < 0)
        http_reply_error(request, &err);
    else
        webhook_log(api_of(request)->domain, webhook, before_ms, (size_t) limit, logged,
                    pending_new(request));
}
