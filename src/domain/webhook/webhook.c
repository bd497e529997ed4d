#include "domain/webhook/webhook.h"

#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/encoding/encode.h"
#include "base/memory.h"
#include "domain/domain_change.h"
#include "domain/domain_modules.h"
#include "domain/domain_share.h"
#include "domain/event/audit.h"
#include "domain/event/event_log.h"
#include "domain/webhook/webhook_internal.h"
#include "json/json_write.h"

#define SECRET_RANDOM_BYTES 32
#define TYPES_TEXT_MAX      ((size_t) WEBHOOK_TYPES_MAX * (WEBHOOK_TYPE_MAX + 3) + 2)
#define SWEEP_NS            (UINT64_C(3600) * 1000 * 1000 * 1000)
#define DELIVERIES_LEAST_MS ((int64_t) 3600 * 1000) /* that they stay on a full disk, too */

/* --- rows ------------------------------------------------------------------------------------ */

void webhook_values(const struct webhook *webhook,
                    struct store_value ret_values[static STORE_WEBHOOK_COLUMN_COUNT])
{
    ret_values[STORE_WEBHOOK_ID] = store_text(webhook->id.text);
    ret_values[STORE_WEBHOOK_OWNER] = store_text(webhook->owner.text);
    ret_values[STORE_WEBHOOK_URL] = store_text(webhook->url);
    ret_values[STORE_WEBHOOK_EVENTS] = store_text(webhook->events);
    ret_values[STORE_WEBHOOK_SECRET] = store_bytes(webhook->secret, strlen(webhook->secret));
    ret_values[STORE_WEBHOOK_BEARER] =
        webhook->bearer ? store_bytes(webhook->bearer, strlen(webhook->bearer)) : store_null();
    ret_values[STORE_WEBHOOK_DISABLED] =
        webhook->disabled_ms ? store_integer(webhook->disabled_ms) : store_null();
    ret_values[STORE_WEBHOOK_CREATED] = store_integer(webhook->created_ms);
    ret_values[STORE_WEBHOOK_CURSOR] = store_integer(webhook->cursor);
}

void webhook_write_row(struct webhook *webhook)
{
    struct store_value values[STORE_WEBHOOK_COLUMN_COUNT];
    struct store_transaction *rows = store_begin(domain_store(webhook->domain));

    webhook_values(webhook, values);
    store_update(rows, STORE_WEBHOOK, values);
    domain_commit(webhook->domain, rows, NULL, NULL);
}

static char *copy_value(const struct store_value *value)
{
    return value->is_null ? NULL : mem_copy_bytes(value->bytes, value->length);
}

static struct webhook *webhook_new(struct domain *domain)
{
    struct webhook *webhook = mem_alloc(sizeof(*webhook));

    webhook->domain = domain;
    list_init(&webhook->link);
    list_init(&webhook->waiting);
    return webhook;
}

static void webhook_free(struct webhook *webhook)
{
    webhook_unfollow(webhook);
    LIST_EACH (&webhook->waiting, at)
        webhook_delivery_free(CONTAINER_OF(at, struct webhook_delivery, link));
    share_release(&webhook->claim);
    list_remove(&webhook->link);
    free(webhook->url);
    free(webhook->events);
    if (webhook->secret)
        explicit_bzero(webhook->secret, strlen(webhook->secret));
    if (webhook->bearer)
        explicit_bzero(webhook->bearer, strlen(webhook->bearer));
    free(webhook->secret);
    free(webhook->bearer);
    free(webhook);
}

void webhook_release(struct webhook *webhook)
{
    if (webhook->is_gone && !webhook->under_way)
        webhook_free(webhook);
}

static int webhook_load_one(struct domain *domain, const struct store_value *row, struct error *err)
{
    struct webhook *webhook = webhook_new(domain);

    (void) err;
    webhook->id = domain_row_id(&row[STORE_WEBHOOK_ID]);
    webhook->owner = domain_row_id(&row[STORE_WEBHOOK_OWNER]);
    webhook->url = copy_value(&row[STORE_WEBHOOK_URL]);
    webhook->events = copy_value(&row[STORE_WEBHOOK_EVENTS]);
    webhook->secret = copy_value(&row[STORE_WEBHOOK_SECRET]);
    webhook->bearer = copy_value(&row[STORE_WEBHOOK_BEARER]);
    webhook->created_ms = row[STORE_WEBHOOK_CREATED].integer;
    webhook->disabled_ms = row[STORE_WEBHOOK_DISABLED].integer;
    webhook->cursor = row[STORE_WEBHOOK_CURSOR].integer;
    webhook->is_made = true;
    domain_claim_anyway(domain, &webhook->owner, SHARE_WEBHOOKS, 1, &webhook->claim);
    list_append(&domain->webhooks->all, &webhook->link);
    return 0;
}

/* --- the module ------------------------------------------------------------------------------ */

struct webhook_loading {
    struct domain *domain;
    domain_done *done;
    void *context;
};

static void webhooks_loaded(void *context, const struct error *failure)
{
    struct webhook_loading loading = *(struct webhook_loading *) context;

    free(context);
    if (failure)
        loading.done(loading.context, failure);
    else
        webhook_deliveries_load(loading.domain, loading.done, loading.context);
}

static void webhooks_load(struct domain *domain, domain_done *done, void *context)
{
    struct webhook_loading *loading = mem_alloc(sizeof(*loading));

    *loading = (struct webhook_loading){.domain = domain, .done = done, .context = context};
    domain_load(domain, STORE_WEBHOOK, STORE_WEBHOOK_CREATED, webhook_load_one, webhooks_loaded,
                loading);
}

static void webhooks_begin(struct domain *domain)
{
    domain->webhooks = mem_alloc(sizeof(*domain->webhooks));
    list_init(&domain->webhooks->all);
    /* Those that wait have a time at which they are tried next. */
    domain->webhooks->old = (struct retention){
        .kind = STORE_DELIVERY,
        .time = STORE_DELIVERY_CREATED,
        .has_condition = true,
        .condition = {.column = STORE_DELIVERY_NEXT, .comparison = STORE_IS_NULL},
        .kept_ms = (int64_t) domain->options.event_retention_ms,
        .least_ms = DELIVERIES_LEAST_MS,
        .every_ns = SWEEP_NS,
    };
}

/* Also what begins to follow: the log can be followed only once the domain is open. */
static void webhooks_tick(struct domain *domain)
{
    LIST_EACH (&domain->webhooks->all, at) {
        webhook_follow(CONTAINER_OF(at, struct webhook, link));
        webhook_follow_if_room(CONTAINER_OF(at, struct webhook, link));
    }
    if (domain->options.event_retention_ms)
        retention_tick(domain, &domain->webhooks->old);
}

static void webhooks_end(struct domain *domain)
{
    if (!domain->webhooks)
        return;
    LIST_EACH (&domain->webhooks->all, at)
        webhook_free(CONTAINER_OF(at, struct webhook, link));
    free(TAKE_PTR(domain->webhooks));
}

static void webhooks_owner_deleting(struct domain *domain, struct store_transaction *change,
                                    const struct id *owner)
{
    (void) domain;
    domain_delete_rows(change, STORE_DELIVERY, STORE_DELIVERY_OWNER, owner);
    domain_delete_rows(change, STORE_WEBHOOK, STORE_WEBHOOK_OWNER, owner);
}

static void webhooks_owner_deleted(struct domain *domain, const struct id *owner)
{
    LIST_EACH (&domain->webhooks->all, at) {
        struct webhook *webhook = CONTAINER_OF(at, struct webhook, link);

        if (webhook->is_gone || !id_equal(&webhook->owner, owner))
            continue;
        webhook->is_gone = true;
        webhook_unfollow(webhook);
        webhook_forget_deliveries(webhook);
        webhook_release(webhook);
    }
}

const struct domain_module domain_webhooks = {
    .name = "webhooks",
    .begin = webhooks_begin,
    .load = webhooks_load,
    .owner_deleting = webhooks_owner_deleting,
    .owner_deleted = webhooks_owner_deleted,
    .tick = webhooks_tick,
    .end = webhooks_end,
};

/* --- finding --------------------------------------------------------------------------------- */

struct webhook *webhook_by_id(const struct domain *domain, const struct id *id)
{
    LIST_EACH (&domain->webhooks->all, at) {
        struct webhook *webhook = CONTAINER_OF(at, struct webhook, link);

        if (!webhook->is_gone && id_equal(&webhook->id, id))
            return webhook;
    }
    return NULL;
}

static bool webhook_is_seen(const struct caller *caller, const struct webhook *webhook)
{
    return webhook->is_made && !webhook->is_gone && caller->scope >= CALLER_READ &&
           caller->scope != CALLER_SANDBOX && caller_sees_owner(caller, &webhook->owner);
}

struct webhook *webhook_find(struct domain *domain, const struct caller *caller, const char *id,
                             struct error *err)
{
    bool is_hidden = false;

    LIST_EACH (&domain->webhooks->all, at) {
        struct webhook *webhook = CONTAINER_OF(at, struct webhook, link);

        if (strcmp(webhook->id.text, id) != 0)
            continue;
        if (webhook_is_seen(caller, webhook))
            return webhook;
        is_hidden = webhook->is_made && !webhook->is_gone;
    }
    (void) error_set(err, ERR_NOT_FOUND, 0, "no such webhook");
    if (is_hidden && err)
        audit_add(domain, caller, "webhook.find", id, err);
    return NULL;
}

void webhook_each(const struct domain *domain, const struct caller *caller,
                  void (*each)(void *context, struct webhook *webhook), void *context)
{
    LIST_EACH (&domain->webhooks->all, at) {
        struct webhook *webhook = CONTAINER_OF(at, struct webhook, link);

        if (webhook_is_seen(caller, webhook))
            each(context, webhook);
    }
}

/* --- changing -------------------------------------------------------------------------------- */

struct webhook_change {
    struct domain_change base;
    struct webhook *webhook; /* NULL when it is refused */
    const char *action;
    webhook_done *done;
    void *context;
    int64_t disabled_before_ms; /* for when it fails */
};

static struct webhook_change *webhook_change_new(struct domain *domain, const struct caller *caller,
                                                 domain_change_end *end, const char *action,
                                                 webhook_done *done, void *context)
{
    struct webhook_change *change = domain_change_new(sizeof(*change), domain, caller, end);

    change->action = action;
    change->done = done;
    change->context = context;
    return change;
}

/* What was done is in the audit log already, with its event. */
static void webhook_change_end(struct webhook_change *change, const struct error *failure)
{
    struct webhook *webhook = change->webhook;

    if (failure && webhook)
        audit_add(change->base.domain, &change->base.caller, change->action, webhook->id.text,
                  failure);
    change->done(change->context, failure, failure ? NULL : webhook);
    if (webhook)
        webhook_release(webhook);
    free(change);
}

/* The change gets to the store; the webhook stays until its answer. */
static struct store_transaction *change_begin(struct webhook_change *change,
                                              struct webhook *webhook)
{
    change->webhook = webhook;
    webhook->under_way++;
    return store_begin(domain_store(change->base.domain));
}

static bool is_type(const char *type)
{
    size_t length = strlen(type);
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz._*";

    return length > 0 && length <= WEBHOOK_TYPE_MAX && strspn(type, letters) == length &&
           (!strchr(type, '*') ||
            (type[length - 1] == '*' && strchr(type, '*') == type + length - 1));
}

static bool webhook_is_printable(const char *text)
{
    for (; *text; text++) {
        if (*text < ' ' || *text >= 0x7f)
            return false;
    }
    return true;
}

/* Whoever sends it knows more of URLs; what no URL can have is refused here. A name and password in
 * it would be shown to whoever lists webhooks: `bearer` is there for that. */
static bool is_url(const char *url)
{
    size_t scheme = strncmp(url, "https://", 8) == 0 ? 8 : strncmp(url, "http://", 7) == 0 ? 7 : 0;
    size_t authority = strcspn(url + scheme, "/?#\\");

    return scheme && authority && strlen(url) <= WEBHOOK_URL_MAX && webhook_is_printable(url) &&
           !strchr(url, ' ') && !memchr(url + scheme, '@', authority);
}

static int webhook_check_spec(const struct webhook_spec *spec, struct error *err)
{
    if (!spec->url || !is_url(spec->url))
        return error_set(err, ERR_INVALID, 0,
                         "field 'url' must be an http:// or https:// URL of at most %d bytes, "
                         "without a user and password",
                         WEBHOOK_URL_MAX);
    if (spec->type_count > WEBHOOK_TYPES_MAX)
        return error_set(err, ERR_INVALID, 0, "field 'events' has more than %d types",
                         WEBHOOK_TYPES_MAX);
    for (size_t i = 0; i < spec->type_count; i++) {
        if (!is_type(spec->types[i]))
            return error_set(err, ERR_INVALID, 0,
                             "field 'events[%zu]' must be a type such as sandbox.created or "
                             "sandbox.*",
                             i);
    }
    if (spec->secret &&
        (strlen(spec->secret) < WEBHOOK_SECRET_MIN || strlen(spec->secret) > WEBHOOK_SECRET_MAX))
        return error_set(err, ERR_INVALID, 0, "field 'secret' must have %d to %d bytes",
                         WEBHOOK_SECRET_MIN, WEBHOOK_SECRET_MAX);
    if (spec->bearer &&
        (strlen(spec->bearer) > WEBHOOK_BEARER_MAX || !webhook_is_printable(spec->bearer)))
        return error_set(err, ERR_INVALID, 0,
                         "field 'bearer' must have at most %d printable characters of ASCII",
                         WEBHOOK_BEARER_MAX);
    return 0;
}

static char *types_text(const struct webhook_spec *spec)
{
    AUTO(text) struct text text = TEXT_INIT(TYPES_TEXT_MAX);
    struct json_writer json;

    json_writer_init_text(&json, &text);
    json_begin_array(&json);
    for (size_t i = 0; i < spec->type_count; i++)
        json_put_text(&json, spec->types[i]);
    json_end_array(&json);
    (void) json_writer_finish(&json); /* fits: check_spec counted */
    return text_take(&text);
}

static char *random_secret(void)
{
    uint8_t bytes[SECRET_RANDOM_BYTES];
    char text[2 * SECRET_RANDOM_BYTES + 1];

    random_bytes(bytes, sizeof(bytes));
    (void) hex_encode(bytes, sizeof(bytes), text);
    explicit_bzero(bytes, sizeof(bytes));
    return mem_copy_text(text);
}

static int check_caller(const struct domain *domain, const struct caller *caller, struct error *err)
{
    if (!domain_is_open(domain, err))
        return -1;
    if (!caller_may_write(caller))
        return error_set(err, ERR_FORBIDDEN, 0, "this key may not change webhooks");
    return 0;
}

/* An event of the owner's own, so that a webhook's coming and going can be followed, too. */
static void webhook_add_event(struct webhook_change *change, struct store_transaction *rows,
                              const char *type)
{
    char data[64 + ID_LENGTH];

    (void) snprintf(data, sizeof(data), "{\"webhookId\":\"%s\"}", change->webhook->id.text);
    event_add(change->base.domain, rows, &change->base.caller, &change->webhook->owner, "system",
              type, data);
}

static void webhook_created(struct domain_change *base, const struct error *failure,
                            const struct store_receipt *receipt)
{
    struct webhook_change *change = CONTAINER_OF(base, struct webhook_change, base);
    struct webhook *webhook = change->webhook;

    if (!webhook) { /* it was refused before there was one */
        webhook_change_end(change, failure);
        return;
    }
    webhook->under_way--;
    if (receipt) {
        /* Its own creation is the last event it is not told of. */
        webhook->cursor = receipt->cursors[0];
        webhook->is_made = true;
        if (!webhook->is_gone)
            webhook_write_row(webhook);
    } else {
        webhook->is_gone = true;
    }
    webhook_change_end(change, failure);
}

void webhook_create(struct domain *domain, const struct caller *caller,
                    const struct webhook_spec *spec, webhook_done *done, void *context)
{
    struct webhook_change *change =
        webhook_change_new(domain, caller, webhook_created, "webhook.create", done, context);
    struct error *failure = &change->base.failure;
    struct store_value values[STORE_WEBHOOK_COLUMN_COUNT];
    struct store_transaction *rows;
    struct share_claim claim = SHARE_CLAIM_NONE;
    struct webhook *webhook;

    if (check_caller(domain, caller, failure) < 0 || webhook_check_spec(spec, failure) < 0 ||
        domain_claim(domain, &caller->owner, SHARE_WEBHOOKS, 1, &claim, failure) < 0) {
        domain_change_refuse(&change->base);
        return;
    }
    webhook = webhook_new(domain);
    webhook->claim = claim;
    webhook->id = id_new();
    webhook->owner = caller->owner;
    webhook->url = mem_copy_text(spec->url);
    webhook->events = types_text(spec);
    webhook->secret = spec->secret ? mem_copy_text(spec->secret) : random_secret();
    webhook->bearer = spec->bearer ? mem_copy_text(spec->bearer) : NULL;
    webhook->created_ms = domain_wall_ms(domain);
    webhook->cursor = domain->events->head; /* until the receipt says from where exactly */
    list_append(&domain->webhooks->all, &webhook->link);
    rows = change_begin(change, webhook);
    webhook_values(webhook, values);
    store_insert(rows, STORE_WEBHOOK, values);
    webhook_add_event(change, rows, "webhook.created");
    domain_change_commit(&change->base, rows);
}

static void webhook_enabled(struct domain_change *base, const struct error *failure,
                            const struct store_receipt *receipt)
{
    struct webhook_change *change = CONTAINER_OF(base, struct webhook_change, base);
    struct webhook *webhook = change->webhook;

    (void) receipt;
    if (webhook) {
        webhook->under_way--;
        if (failure)
            webhook->disabled_ms = change->disabled_before_ms;
        if (failure && !webhook->is_gone)
            webhook_write_row(webhook); /* a batch may have written what was wished for */
        if (webhook->disabled_ms)
            webhook_unfollow(webhook);
    }
    webhook_change_end(change, failure);
}

void webhook_enable(struct domain *domain, const struct caller *caller, struct webhook *webhook,
                    bool is_enabled, webhook_done *done, void *context)
{
    struct webhook_change *change =
        webhook_change_new(domain, caller, webhook_enabled,
                           is_enabled ? "webhook.enable" : "webhook.disable", done, context);
    struct store_value values[STORE_WEBHOOK_COLUMN_COUNT];
    struct store_transaction *rows;

    if (check_caller(domain, caller, &change->base.failure) < 0) {
        domain_change_refuse(&change->base);
        return;
    }
    change->disabled_before_ms = webhook->disabled_ms;
    webhook->disabled_ms = is_enabled ? 0 : domain_wall_ms(domain);
    webhook->is_row_behind = webhook->is_keeping;
    rows = change_begin(change, webhook);
    webhook_values(webhook, values);
    store_update(rows, STORE_WEBHOOK, values);
    webhook_add_event(change, rows, "webhook.updated");
    domain_change_commit(&change->base, rows);
}

static void webhook_deleted(struct domain_change *base, const struct error *failure,
                            const struct store_receipt *receipt)
{
    struct webhook_change *change = CONTAINER_OF(base, struct webhook_change, base);
    struct webhook *webhook = change->webhook;

    if (webhook)
        webhook->under_way--;
    if (webhook && receipt) {
        webhook->is_gone = true;
        webhook_unfollow(webhook);
        webhook_forget_deliveries(webhook);
    }
    webhook_change_end(change, failure);
}

void webhook_delete(struct domain *domain, const struct caller *caller, struct webhook *webhook,
                    webhook_done *done, void *context)
{
    struct webhook_change *change =
        webhook_change_new(domain, caller, webhook_deleted, "webhook.delete", done, context);
    struct store_transaction *rows;

    if (check_caller(domain, caller, &change->base.failure) < 0) {
        domain_change_refuse(&change->base);
        return;
    }
    rows = change_begin(change, webhook);
    domain_delete_rows(rows, STORE_DELIVERY, STORE_DELIVERY_WEBHOOK, &webhook->id);
    domain_delete_rows(rows, STORE_WEBHOOK, STORE_WEBHOOK_ID, &webhook->id);
    webhook_add_event(change, rows, "webhook.deleted");
    domain_change_commit(&change->base, rows);
}
