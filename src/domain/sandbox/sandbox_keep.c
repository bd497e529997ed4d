/* Rows that follow what is: a change of status has happened, and is then kept with its event. When
 * the store fails, what happened has happened all the same: memory says what is, the caller is told
 * of the failure, and the row is tried again until it is kept. */
#include "base/auto.h"
#include "domain/event/event.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"
#include "json/json_write.h"

#define EVENT_DATA_MAX   4096
#define KEEP_AT_ONCE_MAX 500 /* a store that was away must not be flooded when it is back */

void sandbox_add_event(struct domain *domain, struct store_transaction *change,
                       const struct caller *caller, const struct sandbox *sandbox,
                       const struct sandbox_next *next, const char *type)
{
    const struct sandbox_next now = sandbox_next(sandbox);
    AUTO(text) struct text data = TEXT_INIT(EVENT_DATA_MAX);
    struct json_writer json;

    next = next ? next : &now;
    json_writer_init_text(&json, &data);
    json_begin_object(&json);
    json_add_text(&json, "sandboxId", sandbox->id.text);
    if (next->spec->name)
        json_add_text(&json, "name", next->spec->name);
    json_add_text(&json, "status", sandbox_status_text(next->status));
    if (*sandbox->reason)
        json_add_text(&json, "reason", sandbox->reason);
    if (sandbox_status_is_asleep(next->status))
        json_add_boolean(&json, "memory", next->status == SANDBOX_FROZEN);
    json_end_object(&json);
    (void) json_writer_finish(&json); /* name and reason are short: it fits */
    event_add(domain, change, caller, &sandbox->owner, sandbox->id.text, type, text_string(&data));
}

void sandbox_set_unkept(struct domain *domain, struct sandbox *sandbox, const char *event)
{
    if (sandbox->status == SANDBOX_DESTROYED)
        return;
    sandbox->event = event;
    if (list_is_empty(&sandbox->unkept))
        list_append(&domain->sandboxes->unkept, &sandbox->unkept);
}

static void on_kept(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct sandbox_wish *wish = context;

    if (failure) {
        LOG_ERROR(wish->domain->options.log,
                  "a sandbox's row could not be kept, and will be tried again",
                  log_text("sandbox", wish->sandbox->id.text), log_text("error", failure->message));
        sandbox_set_unkept(wish->domain, wish->sandbox, wish->event);
    } else {
        event_kept(wish->domain, receipt);
    }
    wish_end(wish, failure);
}

void wish_keep(struct sandbox_wish *wish, const char *event)
{
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;
    struct store_transaction *change = store_begin(domain->options.store);
    AUTO(sandbox_row) struct sandbox_row row;

    sandbox->updated_ms = domain_wall_ms(domain);
    sandbox_row_init(&row, sandbox, NULL);
    store_update(change, STORE_SANDBOX, row.values);
    if (event)
        sandbox_add_event(domain, change, &wish->caller, sandbox, NULL, event);
    list_remove(&sandbox->unkept); /* this is newer than what was lost */
    wish->event = event;
    domain_commit(domain, change, on_kept, wish);
}

void sandbox_keep(struct domain *domain, struct sandbox *sandbox, const char *event)
{
    wish_keep(wish_make(domain, NULL, sandbox, SANDBOX_ACTION_UPDATE, NULL, NULL, NULL), event);
}

void sandbox_keep_unkept(struct domain *domain)
{
    struct list *unkept = &domain->sandboxes->unkept;
    struct list mine, *link;
    size_t count = 0;

    list_init(&mine);
    while (count++ < KEEP_AT_ONCE_MAX && (link = list_first(unkept))) {
        list_remove(link);
        list_append(&mine, link);
    }
    while ((link = list_first(&mine))) {
        struct sandbox *sandbox = CONTAINER_OF(link, struct sandbox, unkept);

        list_remove(link);
        if (sandbox_is_busy(sandbox))
            list_append(unkept, link);
        else
            sandbox_keep(domain, sandbox, sandbox->event);
    }
}
