/* Events become deliveries.
 *
 *     see ──► batch ──► (end of the turn) ──► commit, with the cursor ──► kept ──► go on
 *
 * One commit at a time: if a later one could be kept after an earlier one failed, its cursor would
 * hide what was lost. What comes meanwhile stays in the log, from where it is read again. */
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/event/event_log.h"
#include "domain/webhook/webhook_internal.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define BATCH_MAX       (STORE_CHANGES_MAX - 1) /* and the cursor */
#define FOLLOW_AGAIN_NS ((uint64_t) 5 * 1000 * 1000 * 1000)
#define PROVIDER_NAME   "burrow" /* what the seeds' receivers know a sandbox's place by */

static bool is_match(const char *pattern, const char *type)
{
    size_t length = strlen(pattern);

    if (length && pattern[length - 1] == '*')
        return strncmp(pattern, type, length - 1) == 0;
    return strcmp(pattern, type) == 0;
}

bool webhook_wants(const char *types, const char *type)
{
    AUTO(json) json_t *list = json_read(types, strlen(types), NULL, NULL);
    size_t index;
    json_t *item;

    if (!list || json_array_size(list) == 0)
        return true;
    json_array_foreach (list, index, item) {
        if (json_is_string(item) && is_match(json_string_value(item), type))
            return true;
    }
    return false;
}

/* {"event","data","timestamp"}: the data of the event, and who it belongs to. */
static char *body_of(const struct event *event)
{
    AUTO(text) struct text body = TEXT_INIT(WEBHOOK_BODY_MAX);
    AUTO(json) json_t *data = json_read(event->data, strlen(event->data), NULL, NULL);
    char time[CLOCK_TEXT_SIZE];
    struct json_writer json;

    if (!data)
        data = json_object();
    (void) json_object_set_new(data, "userId", json_string(event->owner.text));
    (void) json_object_set_new(data, "provider", json_string(PROVIDER_NAME));
    clock_format(event->time_ms, time);
    json_document_begin(&json, &body);
    json_add_text(&json, "event", event->type);
    json_key(&json, "data");
    json_put_value(&json, data);
    json_add_text(&json, "timestamp", time);
    return json_document_end(&json) == 0 ? text_take(&body) : NULL;
}

/* --- batches --------------------------------------------------------------------------------- */

/* The end of a turn in which there was something to keep. */
struct webhook_follow_keeping {
    struct domain_task task;
    struct webhook *webhook; /* counts as under way */
};

static void forget_unkept(struct webhook *webhook)
{
    LIST_EACH (&webhook->waiting, at) {
        struct webhook_delivery *delivery = CONTAINER_OF(at, struct webhook_delivery, link);

        if (!delivery->is_kept)
            webhook_delivery_free(delivery);
    }
}

/* Nothing is lost: the cursor in the row stayed where it was, and the log is read again from there.
 */
static void start_over(struct webhook *webhook)
{
    forget_unkept(webhook);
    webhook_unfollow(webhook);
    webhook->follow_at_ns = domain_now_ns(webhook->domain) + FOLLOW_AGAIN_NS;
}

static void webhook_follow_go_on(struct webhook *webhook)
{
    LIST_EACH (&webhook->waiting, at)
        CONTAINER_OF(at, struct webhook_delivery, link)->is_kept = true;
    webhook->quiet_ms = 0;
    webhook->cursor = webhook->batch_cursor;
    if (webhook->is_row_behind)
        webhook_write_row(webhook);
    if (webhook->follower && !webhook->is_full)
        event_follower_resume(webhook->follower);
}

static void webhook_follow_kept(void *context, const struct error *failure,
                                const struct store_receipt *receipt)
{
    struct webhook *webhook = context;

    (void) receipt;
    webhook->under_way--;
    webhook->is_keeping = false;
    if (failure || webhook->is_gone)
        start_over(webhook);
    else
        webhook_follow_go_on(webhook);
    webhook->is_row_behind = false;
    webhook_release(webhook);
}

static void keep_batch(struct domain_task *task)
{
    AUTO(free)
    struct webhook_follow_keeping *keeping =
        CONTAINER_OF(task, struct webhook_follow_keeping, task);
    struct webhook *webhook = keeping->webhook;
    struct store_transaction *batch = TAKE_PTR(webhook->batch);
    struct store_value row[STORE_WEBHOOK_COLUMN_COUNT];

    webhook->batch_count = 0;
    if (webhook->is_gone || webhook->domain->stage != DOMAIN_OPEN) {
        store_abandon(batch);
        webhook->under_way--;
        start_over(webhook);
        webhook_release(webhook);
        return;
    }
    webhook_values(webhook, row);
    row[STORE_WEBHOOK_CURSOR] = store_integer(webhook->batch_cursor);
    store_update(batch, STORE_WEBHOOK, row);
    webhook->is_keeping = true;
    domain_commit(webhook->domain, batch, webhook_follow_kept, webhook);
}

static void begin_batch(struct webhook *webhook)
{
    struct webhook_follow_keeping *keeping = mem_alloc(sizeof(*keeping));

    keeping->webhook = webhook;
    webhook->under_way++;
    webhook->batch = store_begin(domain_store(webhook->domain));
    domain_defer(webhook->domain, &keeping->task, keep_batch);
}

/* False: there is no room for one more. */
static bool add_to_batch(struct webhook *webhook, const struct event *event, char *body)
{
    struct webhook_delivery *delivery =
        webhook_delivery_new(webhook, event->cursor, event->type, body);
    struct store_value values[STORE_DELIVERY_COLUMN_COUNT];

    if (!delivery)
        return false;
    if (!webhook->batch)
        begin_batch(webhook);
    webhook->batch_count++;
    webhook->batch_cursor = event->cursor;
    webhook_delivery_values(delivery, "waiting", 0, "", values);
    store_insert(webhook->batch, STORE_DELIVERY, values);
    return true;
}

/* --- following ------------------------------------------------------------------------------- */

static bool see(void *context, const struct event *event)
{
    struct webhook *webhook = context;
    char *body;

    if (event->cursor <= webhook->cursor)
        return true;
    body = webhook_wants(webhook->events, event->type) ? body_of(event) : NULL;
    if (!body) {
        if (!webhook->batch && !webhook->is_keeping)
            webhook->cursor = event->cursor;
        return true;
    }
    webhook->is_full = webhook->waiting_count >= WEBHOOK_WAITING_MAX;
    if (webhook->is_full || webhook->is_keeping || webhook->batch_count == BATCH_MAX) {
        free(body);
        return false;
    }
    webhook->is_full = !add_to_batch(webhook, event, body);
    return !webhook->is_full;
}

static void webhook_follow_ended(void *context, const struct error *reason)
{
    struct webhook *webhook = context;

    webhook->follower = NULL;
    webhook->is_full = false;
    webhook->follow_at_ns = domain_now_ns(webhook->domain) + FOLLOW_AGAIN_NS;
    if (reason->code == ERR_GONE)
        LOG_WARNING(webhook->domain->options.log,
                    "a webhook was so far behind that it may have lost events",
                    log_text("webhook", webhook->id.text));
}

/* The owner's own eyes: whatever it may not see, its webhooks are not told. */
static struct caller eyes_of(const struct webhook *webhook)
{
    struct caller caller = caller_system();

    caller.scope = CALLER_READ;
    caller.owner = webhook->owner;
    return caller;
}

void webhook_follow(struct webhook *webhook)
{
    struct caller caller = eyes_of(webhook);
    struct event_filter filter = {.after = webhook->cursor};
    struct error err;

    if (webhook->is_gone || !webhook->is_made || webhook->disabled_ms || webhook->follower ||
        webhook->batch || webhook->is_keeping ||
        webhook->follow_at_ns > domain_now_ns(webhook->domain))
        return;
    /* The cursor stays at the last event it was told of or passed by, which may be old: then from
     * the first that is left. */
    if (event_is_gone(webhook->domain, filter.after, NULL))
        filter.after = 0;
    webhook->follower =
        event_follow(webhook->domain, &caller, &filter, see, webhook_follow_ended, webhook, &err);
    if (!webhook->follower)
        webhook->follow_at_ns = domain_now_ns(webhook->domain) + FOLLOW_AGAIN_NS;
}

void webhook_unfollow(struct webhook *webhook)
{
    if (webhook->follower)
        event_follower_close(TAKE_PTR(webhook->follower));
    webhook->is_full = false;
}

/* Otherwise it goes on when one of its own deliveries goes. */
void webhook_follow_if_room(struct webhook *webhook)
{
    if (!webhook->is_full || !webhook->follower || webhook->is_keeping || webhook->batch ||
        webhook->waiting_count >= WEBHOOK_WAITING_MAX)
        return;
    webhook->is_full = false;
    event_follower_resume(webhook->follower);
}
