#include "domain/event/event.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/domain_internal.h"
#include "domain/domain_modules.h"
#include "domain/event/audit.h"
#include "domain/event/event_log.h"

#define EVENT_VERSION   1
#define TRIM_EVERY_NS   (UINT64_C(60) * 1000 * 1000 * 1000)
#define EVENTS_LEAST_MS ((int64_t) 3600 * 1000) /* that they stay on a full disk, too */

/* --- adding ---------------------------------------------------------------------------------- */

void event_add(struct domain *domain, struct store_transaction *change, const struct caller *caller,
               const struct id *owner, const char *stream, const char *type, const char *data)
{
    const struct store_event event = {
        .stream = stream,
        .owner = owner->text,
        .time_ms = domain_wall_ms(domain),
        .actor = *caller->owner.text ? caller->owner.text : "system",
        .request_id = caller->request.text,
        .type = type,
        .version = EVENT_VERSION,
        .data = data,
    };

    store_add_event(change, &event);
    /* Every change has an event: here none of them misses the audit log. */
    audit_add_change(domain, change, caller, type,
                     strcmp(stream, "system") == 0 ? owner->text : stream, data);
}

void event_kept(struct domain *domain, const struct store_receipt *receipt)
{
    struct event_log *log = domain->events;

    if (!receipt || receipt->event_count == 0)
        return;
    domain->counters.events += receipt->event_count;
    if (receipt->cursors[receipt->event_count - 1] > log->head)
        log->head = receipt->cursors[receipt->event_count - 1];
    event_followers_read(domain);
}

/* --- rows ------------------------------------------------------------------------------------ */

struct event event_from_row(const struct store_value *row)
{
    return (struct event){
        .cursor = row[STORE_EVENT_CURSOR].integer,
        .sequence = row[STORE_EVENT_SEQUENCE].integer,
        .time_ms = row[STORE_EVENT_TIME].integer,
        .version = (int) row[STORE_EVENT_VERSION].integer,
        .owner = domain_row_id(&row[STORE_EVENT_OWNER]),
        .stream = row[STORE_EVENT_STREAM].bytes,
        .actor = row[STORE_EVENT_ACTOR].bytes,
        .request = row[STORE_EVENT_REQUEST].bytes,
        .type = row[STORE_EVENT_TYPE].bytes,
        .data = row[STORE_EVENT_DATA].bytes,
    };
}

bool event_type_matches(const char *filter, const char *type)
{
    size_t length = filter ? strlen(filter) : 0;

    if (length == 0)
        return true;
    if (filter[length - 1] == '.')
        return strncmp(filter, type, length) == 0;
    return strcmp(filter, type) == 0;
}

static bool is_narrow(const struct caller *caller)
{
    return caller->scope == CALLER_SANDBOX || caller->scope == CALLER_PORT;
}

bool event_is_seen(const struct caller *caller, const struct event *event)
{
    return caller_sees_owner(caller, &event->owner) &&
           (!is_narrow(caller) || strcmp(caller->sandbox.text, event->stream) == 0);
}

/* For narrow keys whose own stream is not the one asked for, rows are dropped by event_is_seen. */
size_t event_conditions(const struct caller *caller, const char *stream, int64_t after,
                        struct store_condition ret_conditions[static STORE_CONDITIONS_MAX])
{
    size_t count = 0;

    if (!stream && is_narrow(caller))
        stream = caller->sandbox.text;
    ret_conditions[count++] = (struct store_condition){
        .column = STORE_EVENT_CURSOR, .comparison = STORE_GREATER, .value = store_integer(after)};
    if (caller->scope < CALLER_ADMIN)
        ret_conditions[count++] = (struct store_condition){.column = STORE_EVENT_OWNER,
                                                           .comparison = STORE_EQUAL,
                                                           .value = store_text(caller->owner.text)};
    if (stream)
        ret_conditions[count++] = (struct store_condition){
            .column = STORE_EVENT_STREAM, .comparison = STORE_EQUAL, .value = store_text(stream)};
    return count;
}

bool event_is_gone(const struct domain *domain, int64_t after, struct error *err)
{
    if (after <= 0 || after >= domain->events->trimmed)
        return false;
    (void) error_set(err, ERR_GONE, 0,
                     "some events behind this cursor are not kept any more; begin again from the "
                     "start");
    return true;
}

/* --- pages ----------------------------------------------------------------------------------- */

struct event_page_call {
    struct domain_task task;
    struct domain *domain;
    struct caller caller;
    char *type; /* owned, may be NULL */
    int64_t after;
    struct error failure; /* known at once */
    event_page_done *done;
    void *context;
};

static void page_end(struct event_page_call *page, const struct error *failure,
                     const struct event *events, size_t count, int64_t next)
{
    struct domain *domain = page->domain;

    page->done(page->context, failure, events, count, next);
    free(page->type);
    free(page);
    domain->works--;
    domain_check_gone(domain);
}

static void refuse_page(struct domain_task *task)
{
    struct event_page_call *page = CONTAINER_OF(task, struct event_page_call, task);

    page_end(page, &page->failure, NULL, 0, page->after);
}

static void event_on_page(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct event_page_call *page = context;
    AUTO(free) struct event *events = NULL;
    size_t count = 0;
    int64_t next = page->after;

    events = mem_alloc_array(failure ? 1 : rows->count + 1, sizeof(*events));
    for (size_t i = 0; !failure && i < rows->count; i++) {
        struct event event = event_from_row(rows->rows[i]);

        if (!event_is_seen(&page->caller, &event))
            continue; /* nor is it told by the cursor: that there is something is news, too */
        next = event.cursor;
        if (event_type_matches(page->type, event.type))
            events[count++] = event;
    }
    page_end(page, failure, events, count, next);
}

static int check_page(const struct event_page_call *page, size_t limit, struct error *err)
{
    if (!domain_is_open(page->domain, err))
        return -1;
    if (page->caller.scope == CALLER_NOBODY)
        return error_set(err, ERR_UNAUTHENTICATED, 0, "events are for those who have a key");
    if (limit < 1 || limit > STORE_ROWS_MAX)
        return error_set(err, ERR_INVALID, 0, "a page has 1 to %d events", STORE_ROWS_MAX);
    return event_is_gone(page->domain, page->after, err) ? -1 : 0;
}

void event_page(struct domain *domain, const struct caller *caller,
                const struct event_filter *filter, size_t limit, event_page_done *done,
                void *context)
{
    struct event_page_call *page = mem_alloc(sizeof(*page));
    struct store_condition conditions[STORE_CONDITIONS_MAX];
    struct store_query query = {
        .kind = STORE_EVENT, .conditions = conditions, .order = STORE_EVENT_CURSOR, .limit = limit};

    page->domain = domain;
    page->caller = *caller;
    page->type = filter->type ? mem_copy_text(filter->type) : NULL;
    page->after = filter->after > 0 ? filter->after : 0;
    page->done = done;
    page->context = context;
    domain->works++;
    if (check_page(page, limit, &page->failure) < 0) {
        domain_defer(domain, &page->task, refuse_page);
        return;
    }
    query.condition_count = event_conditions(caller, filter->stream, page->after, conditions);
    domain_find(domain, &query, event_on_page, page);
}

/* --- retention ------------------------------------------------------------------------------- */

struct event_look {
    struct domain *domain;
    domain_done *done; /* may be NULL */
    void *context;
};

static void look_end(struct event_look *look, const struct error *failure)
{
    domain_done *done = look->done;
    void *context = look->context;

    free(look);
    if (done)
        done(context, failure);
}

static void on_oldest(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct event_look *look = context;
    struct event_log *log = look->domain->events;

    if (!failure)
        log->trimmed = rows->count ? rows->rows[0][STORE_EVENT_CURSOR].integer - 1 : log->head;
    look_end(look, failure);
}

static void find_end(struct domain *domain, bool is_descending, store_rows_done *done,
                     struct event_look *look)
{
    const struct store_query query = {.kind = STORE_EVENT,
                                      .order = STORE_EVENT_CURSOR,
                                      .is_descending = is_descending,
                                      .limit = 1};

    domain_find(domain, &query, done, look);
}

static void on_newest(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct event_look *look = context;
    struct event_log *log = look->domain->events;

    if (failure) {
        look_end(look, failure);
        return;
    }
    log->head = log->tail = rows->count ? rows->rows[0][STORE_EVENT_CURSOR].integer : 0;
    find_end(look->domain, false, on_oldest, look);
}

static struct event_look *look_new(struct domain *domain, domain_done *done, void *context)
{
    struct event_look *look = mem_alloc(sizeof(*look));

    *look = (struct event_look){.domain = domain, .done = done, .context = context};
    return look;
}

static void trimmed(struct domain *domain)
{
    find_end(domain, false, on_oldest, look_new(domain, NULL, NULL));
}

/* --- the module ------------------------------------------------------------------------------ */

static void event_begin(struct domain *domain)
{
    domain->events = mem_alloc(sizeof(*domain->events));
    list_init(&domain->events->followers);
    domain->events->old =
        (struct retention){.kind = STORE_EVENT,
                           .time = STORE_EVENT_TIME,
                           .kept_ms = (int64_t) domain->options.event_retention_ms,
                           .least_ms = EVENTS_LEAST_MS,
                           .every_ns = TRIM_EVERY_NS,
                           .deleted = trimmed};
}

static void event_load(struct domain *domain, domain_done *done, void *context)
{
    find_end(domain, true, on_newest, look_new(domain, done, context));
}

static void event_tick(struct domain *domain)
{
    if (domain->options.event_retention_ms)
        retention_tick(domain, &domain->events->old);
    event_followers_tick(domain);
}

static void event_end(struct domain *domain)
{
    free(domain->events);
    domain->events = NULL;
}

const struct domain_module domain_events = {
    .name = "events",
    .begin = event_begin,
    .load = event_load,
    .tick = event_tick,
    .end = event_end,
};
