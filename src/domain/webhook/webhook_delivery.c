/* Deliveries: what waits to be sent, and what became of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/domain_share.h"
#include "domain/event/event.h"
#include "domain/identity/owner.h"
#include "domain/webhook/webhook_internal.h"
#include "json/json_read.h"

#define BACKOFF_FIRST_MS ((int64_t) 10 * 1000)
#define BACKOFF_FACTOR   3
#define BACKOFF_MAX_MS   ((int64_t) 6 * 3600 * 1000)

int64_t webhook_backoff_ms(unsigned int attempts)
{
    int64_t wait = BACKOFF_FIRST_MS;

    while (attempts-- > 1 && wait < BACKOFF_MAX_MS)
        wait *= BACKOFF_FACTOR;
    return wait < BACKOFF_MAX_MS ? wait : BACKOFF_MAX_MS;
}

/* --- one delivery ---------------------------------------------------------------------------- */

/* Into its place: after a restart they come in no order. */
static void put_in_order(struct webhook_delivery *delivery)
{
    struct list *waiting = &delivery->webhook->waiting, *at = waiting;

    while (at->previous != waiting &&
           CONTAINER_OF(at->previous, struct webhook_delivery, link)->cursor > delivery->cursor)
        at = at->previous;
    list_append(at, &delivery->link);
    delivery->webhook->waiting_count++;
}

struct webhook_delivery *webhook_delivery_new(struct webhook *webhook, int64_t cursor,
                                              const char *type, char *body)
{
    struct share_claim claim = SHARE_CLAIM_NONE;
    struct webhook_delivery *delivery;

    if (domain_claim(webhook->domain, &webhook->owner, SHARE_DELIVERIES, 1, &claim, NULL) < 0) {
        free(body);
        return NULL;
    }
    delivery = mem_alloc(sizeof(*delivery));
    *delivery = (struct webhook_delivery){
        .webhook = webhook,
        .claim = claim,
        .id = id_new(),
        .cursor = cursor,
        .type = mem_copy_text(type),
        .body = body,
        .created_ms = domain_wall_ms(webhook->domain),
        .next_ms = domain_wall_ms(webhook->domain),
    };
    put_in_order(delivery);
    return delivery;
}

void webhook_delivery_free(struct webhook_delivery *delivery)
{
    delivery->webhook->waiting_count--;
    list_remove(&delivery->link);
    share_release(&delivery->claim);
    free(delivery->type);
    free(delivery->body);
    free(delivery);
}

void webhook_forget_deliveries(struct webhook *webhook)
{
    LIST_EACH (&webhook->waiting, at) {
        struct webhook_delivery *delivery = CONTAINER_OF(at, struct webhook_delivery, link);

        if (!delivery->is_taken)
            webhook_delivery_free(delivery);
    }
}

void webhook_delivery_values(const struct webhook_delivery *delivery, const char *state, int status,
                             const char *detail,
                             struct store_value ret_values[static STORE_DELIVERY_COLUMN_COUNT])
{
    const struct webhook *webhook = delivery->webhook;

    ret_values[STORE_DELIVERY_ID] = store_text(delivery->id.text);
    ret_values[STORE_DELIVERY_OWNER] = store_text(webhook->owner.text);
    ret_values[STORE_DELIVERY_WEBHOOK] = store_text(webhook->id.text);
    ret_values[STORE_DELIVERY_CURSOR] = store_integer(delivery->cursor);
    ret_values[STORE_DELIVERY_BODY] = store_text(delivery->body);
    ret_values[STORE_DELIVERY_STATE] = store_text(state);
    ret_values[STORE_DELIVERY_ATTEMPTS] = store_integer(delivery->attempts);
    ret_values[STORE_DELIVERY_NEXT] =
        delivery->next_ms ? store_integer(delivery->next_ms) : store_null();
    ret_values[STORE_DELIVERY_STATUS] = status ? store_integer(status) : store_null();
    ret_values[STORE_DELIVERY_DETAIL] = store_text(detail);
    ret_values[STORE_DELIVERY_CREATED] = store_integer(delivery->created_ms);
    ret_values[STORE_DELIVERY_UPDATED] = store_integer(domain_wall_ms(webhook->domain));
}

/* --- what waited ----------------------------------------------------------------------------- */

struct webhook_delivery_loading {
    struct domain *domain;
    struct id last; /* of the page before; empty: none */
    domain_done *done;
    void *context;
};

static char *type_in(const char *body)
{
    AUTO(json) json_t *json = json_read(body, strlen(body), NULL, NULL);
    const char *type = json ? json_string_value(json_object_get(json, "event")) : NULL;

    return mem_copy_text(type ? type : "unknown");
}

static void webhook_delivery_load_one(struct domain *domain, const struct store_value *row)
{
    struct id owner = domain_row_id(&row[STORE_DELIVERY_WEBHOOK]);
    struct webhook *webhook = webhook_by_id(domain, &owner);
    struct webhook_delivery *delivery;

    if (!webhook)
        return;
    delivery = mem_alloc(sizeof(*delivery));
    *delivery = (struct webhook_delivery){
        .webhook = webhook,
        .id = domain_row_id(&row[STORE_DELIVERY_ID]),
        .cursor = row[STORE_DELIVERY_CURSOR].integer,
        .type = type_in(row[STORE_DELIVERY_BODY].bytes),
        .body = mem_copy_text(row[STORE_DELIVERY_BODY].bytes),
        .attempts = (unsigned int) row[STORE_DELIVERY_ATTEMPTS].integer,
        .created_ms = row[STORE_DELIVERY_CREATED].integer,
        .next_ms = row[STORE_DELIVERY_NEXT].integer,
        .is_kept = true,
    };
    domain_claim_anyway(domain, &webhook->owner, SHARE_DELIVERIES, 1, &delivery->claim);
    put_in_order(delivery);
}

static void load_page(struct webhook_delivery_loading *loading);

static void page_loaded(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct webhook_delivery_loading *loading = context, over = *loading;

    for (size_t i = 0; !failure && i < rows->count; i++)
        webhook_delivery_load_one(loading->domain, rows->rows[i]);
    if (!failure && rows->count == STORE_ROWS_MAX) {
        loading->last = domain_row_id(&rows->rows[rows->count - 1][STORE_DELIVERY_ID]);
        load_page(loading);
        return;
    }
    free(loading);
    over.done(over.context, failure);
}

/* Only those that wait: of the others there are as many as the log of deliveries is long. */
static void load_page(struct webhook_delivery_loading *loading)
{
    const struct store_condition conditions[] = {
        {STORE_DELIVERY_STATE, STORE_EQUAL, store_text("waiting")},
        {STORE_DELIVERY_ID, STORE_GREATER, store_text(loading->last.text)},
    };
    const struct store_query query = {.kind = STORE_DELIVERY,
                                      .conditions = conditions,
                                      .condition_count = ARRAY_COUNT(conditions),
                                      .order = STORE_DELIVERY_ID,
                                      .limit = STORE_ROWS_MAX};

    domain_find(loading->domain, &query, page_loaded, loading);
}

void webhook_deliveries_load(struct domain *domain, domain_done *done, void *context)
{
    struct webhook_delivery_loading *loading = mem_alloc(sizeof(*loading));

    *loading =
        (struct webhook_delivery_loading){.domain = domain, .done = done, .context = context};
    load_page(loading);
}

/* --- sending --------------------------------------------------------------------------------- */

/* Further off than any wait of ours: the clock was wrong when it was set. */
static bool is_due(const struct webhook_delivery *delivery, int64_t now)
{
    return delivery->next_ms <= now || delivery->next_ms - now > BACKOFF_MAX_MS;
}

/* Whoever finds none remembers when there may be one: this is asked four times a second of all
 * webhooks of everybody. */
static struct webhook_delivery *due_of(struct webhook *webhook, int64_t now)
{
    int64_t quiet = now + BACKOFF_MAX_MS;

    if (now < webhook->quiet_ms && webhook->quiet_ms - now <= BACKOFF_MAX_MS)
        return NULL;
    LIST_EACH (&webhook->waiting, at) {
        struct webhook_delivery *delivery = CONTAINER_OF(at, struct webhook_delivery, link);

        if (delivery->is_kept && is_due(delivery, now))
            return delivery;
        if (delivery->is_kept && delivery->next_ms < quiet)
            quiet = delivery->next_ms;
    }
    webhook->quiet_ms = quiet;
    return NULL;
}

static bool may_send(const struct webhook *webhook)
{
    const struct owner *owner = owner_find(webhook->domain, &webhook->owner);
    size_t sending = 0;

    LIST_EACH (&webhook->domain->webhooks->all, at) {
        const struct webhook *other = CONTAINER_OF(at, struct webhook, link);

        sending += other->is_sending && id_equal(&other->owner, &webhook->owner);
    }
    return sending < WEBHOOK_SENDING_PER_OWNER && !(owner && owner->is_disabled);
}

struct webhook_delivery *webhook_take(struct domain *domain)
{
    int64_t now = domain_wall_ms(domain);
    struct id full = {.text = ""}; /* an owner who has enough under way, and often many webhooks */

    if (domain->stage != DOMAIN_OPEN)
        return NULL;
    LIST_EACH (&domain->webhooks->all, at) {
        struct webhook *webhook = CONTAINER_OF(at, struct webhook, link);
        bool is_ready = !webhook->is_gone && !webhook->disabled_ms && !webhook->is_sending &&
                        !id_equal(&webhook->owner, &full);
        struct webhook_delivery *delivery = is_ready ? due_of(webhook, now) : NULL;

        if (!delivery)
            continue;
        if (!may_send(webhook)) {
            full = webhook->owner;
            continue;
        }
        delivery->is_taken = webhook->is_sending = true;
        webhook->under_way++;
        /* Others' turn first next time. */
        list_remove(&webhook->link);
        list_append(&domain->webhooks->all, &webhook->link);
        return delivery;
    }
    return NULL;
}

static const char *next_state(struct webhook_delivery *delivery, int status, int64_t now)
{
    delivery->attempts++;
    if (status >= 200 && status < 300) {
        delivery->next_ms = 0;
        return "delivered";
    }
    if (delivery->attempts >= WEBHOOK_ATTEMPTS_MAX) {
        delivery->next_ms = 0;
        return "failed";
    }
    delivery->next_ms = now + webhook_backoff_ms(delivery->attempts);
    return "waiting";
}

/* The store takes no text that is no UTF-8, such as one that was cut. */
static void copy_detail(const char *detail, char ret_detail[static WEBHOOK_DETAIL_MAX + 1])
{
    size_t i = 0;

    for (; i < WEBHOOK_DETAIL_MAX && detail[i]; i++)
        ret_detail[i] = detail[i] >= ' ' && detail[i] < 0x7f ? detail[i] : '?';
    ret_detail[i] = '\0';
}

static void keep_outcome(struct webhook_delivery *delivery, const char *state, int status,
                         const char *detail)
{
    struct domain *domain = delivery->webhook->domain;
    struct store_transaction *rows = store_begin(domain_store(domain));
    struct store_value values[STORE_DELIVERY_COLUMN_COUNT];
    char short_detail[WEBHOOK_DETAIL_MAX + 1];

    copy_detail(detail, short_detail);
    webhook_delivery_values(delivery, state, status, short_detail, values);
    store_update(rows, STORE_DELIVERY, values);
    /* If that fails it is sent once more after a restart: never too few times. */
    domain_commit(domain, rows, NULL, NULL);
}

/* Nobody sends it any more. */
static void put_back(struct webhook_delivery *delivery, bool is_over)
{
    struct webhook *webhook = delivery->webhook;

    webhook->under_way--;
    delivery->is_taken = webhook->is_sending = false;
    webhook->quiet_ms = 0;
    if (is_over || webhook->is_gone)
        webhook_delivery_free(delivery);
    if (webhook->is_full && webhook->follower) {
        webhook->is_full = false;
        event_follower_resume(webhook->follower);
    }
    webhook_release(webhook);
}

void webhook_sent(struct domain *domain, struct webhook_delivery *delivery, int status,
                  const char *detail)
{
    const char *state = next_state(delivery, status, domain_wall_ms(domain));

    if (!delivery->webhook->is_gone)
        keep_outcome(delivery, state, status, detail);
    put_back(delivery, !delivery->next_ms);
}

void webhook_give_back(struct webhook_delivery *delivery)
{
    put_back(delivery, false);
}

/* --- the log --------------------------------------------------------------------------------- */

struct webhook_delivery_asking {
    size_t limit;
    webhook_log_done *done;
    void *context;
};

/* Many are made in the same millisecond: the log's own order tells them apart. */
static int webhook_delivery_compare_entries(const void *a, const void *b)
{
    int64_t one = ((const struct webhook_log_entry *) a)->cursor;
    int64_t other = ((const struct webhook_log_entry *) b)->cursor;

    return (one < other) - (one > other);
}

/* Where a full page ends, so that the next one has the rest: those of its last millisecond may not
 * be all there are, and are left to it. Returns how many belong to the page. */
static size_t end_of_page(const struct store_rows *rows, size_t limit, int64_t *ret_next_before_ms)
{
    size_t count = rows->count;
    int64_t last_ms;

    *ret_next_before_ms = 0;
    if (count < limit || count == 0)
        return count;
    last_ms = rows->rows[count - 1][STORE_DELIVERY_CREATED].integer;
    *ret_next_before_ms = last_ms + 1;
    while (count && rows->rows[count - 1][STORE_DELIVERY_CREATED].integer == last_ms)
        count--;
    if (count)
        return count;
    *ret_next_before_ms = last_ms; /* a page of one millisecond: it could never end otherwise */
    return rows->count;
}

static void webhook_delivery_found(void *context, const struct error *failure,
                                   const struct store_rows *rows)
{
    struct webhook_delivery_asking asking = *(struct webhook_delivery_asking *) context;
    AUTO(free) struct webhook_log_entry *entries = NULL;
    int64_t next_before_ms;
    size_t count;

    free(context);
    if (failure) {
        asking.done(asking.context, failure, NULL, 0, 0);
        return;
    }
    count = end_of_page(rows, asking.limit, &next_before_ms);
    entries = mem_alloc_array(count + 1, sizeof(*entries));
    for (size_t i = 0; i < count; i++) {
        const struct store_value *row = rows->rows[i];

        entries[i] = (struct webhook_log_entry){
            .id = row[STORE_DELIVERY_ID].bytes,
            .state = row[STORE_DELIVERY_STATE].bytes,
            .detail = row[STORE_DELIVERY_DETAIL].bytes,
            .body = row[STORE_DELIVERY_BODY].bytes,
            .cursor = row[STORE_DELIVERY_CURSOR].integer,
            .attempts = row[STORE_DELIVERY_ATTEMPTS].integer,
            .status = row[STORE_DELIVERY_STATUS].integer,
            .created_ms = row[STORE_DELIVERY_CREATED].integer,
            .updated_ms = row[STORE_DELIVERY_UPDATED].integer,
            .next_ms = row[STORE_DELIVERY_NEXT].integer,
        };
    }
    qsort(entries, count, sizeof(*entries), webhook_delivery_compare_entries);
    asking.done(asking.context, NULL, entries, count, next_before_ms);
}

void webhook_log(struct domain *domain, struct webhook *webhook, int64_t before_ms, size_t limit,
                 webhook_log_done *done, void *context)
{
    const struct store_condition conditions[] = {
        {STORE_DELIVERY_WEBHOOK, STORE_EQUAL, store_text(webhook->id.text)},
        {STORE_DELIVERY_CREATED, STORE_LESS, store_integer(before_ms)},
    };
    const struct store_query query = {
        .kind = STORE_DELIVERY,
        .conditions = conditions,
        .condition_count = ARRAY_COUNT(conditions),
        .order = STORE_DELIVERY_CREATED,
        .is_descending = true,
        .limit = limit,
    };
    struct webhook_delivery_asking *asking = mem_alloc(sizeof(*asking));

    *asking = (struct webhook_delivery_asking){.limit = limit, .done = done, .context = context};
    domain_find(domain, &query, webhook_delivery_found, asking);
}
