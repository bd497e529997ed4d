#include "domain/webhook/webhook.h"

#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/encoding/encode.h"
#include "base/memory.h"
#include "domain/domain_modules.h"
#include "domain/event/audit.h"
#include "domain/event/event_log.h"
#include "domain/webhook/webhook_internal.h"
#include "json/json_write.h"

#define SECRET_RANDOM_BYTES 32
#define TYPES_TEXT_MAX      ((size_t) WEBHOOK_TYPES_MAX * (WEBHOOK_TYPE_MAX + 3) + 2)
#define SWEEP_NS            (UINT64_C(3600) * 1000 * 1000 * 1000)

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

static int load_one(struct domain *domain, const struct store_value *row, struct error *err)
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
    list_append(&domain->webhooks->all, &webhook->link);
    return 0;
}

/* --- the module ------------------------------------------------------------------------------ */

struct loading {
    struct domain *domain;
    domain_done *done;
    void *context;
};

static void webhooks_loaded(void *context, const struct error *failure)
{
    struct loading loading = *(struct loading *) context;

    free(context);
    if (failure)
        loading.done(loading.context, failure);
    else
        webhook_deliveries_load(loading.domain, loading.done, loading.context);
}

static void load(struct domain *domain, domain_done *done, void *context)
{
    struct loading *loading = mem_alloc(sizeof(*loading));

    *loading = (struct loading){.domain = domain, .done = done, .context = context};
    domain_load(domain, STORE_WEBHOOK, STORE_WEBHOOK_CREATED, load_one, webhooks_loaded, loading);
}

static void begin(struct domain *domain)
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
        .every_ns = SWEEP_NS,
    };
}

/* Also what begins to follow: the log can be followed only once the domain is open. */
static void tick(struct domain *domain)
{
    LIST_EACH (&domain->webhooks->all, at)
        webhook_follow(CONTAINER_OF(at, struct webhook, link));
    if (domain->options.event_retention_ms)
        retention_tick(domain, &domain->webhooks->old);
}

static void end(struct domain *domain)
{
    if (!domain->webhooks)
        return;
    LIST_EACH (&domain->webhooks->all, at)
        webhook_free(CONTAINER_OF(at, struct webhook, link));
    free(TAKE_PTR(domain->webhooks));
}

static void owner_deleting(struct domain *domain, struct store_transaction *change,
                           const struct id *owner)
{
    (void) domain;
    domain_delete_rows(change, STORE_DELIVERY, STORE_DELIVERY_OWNER, owner);
    domain_delete_rows(change, STORE_WEBHOOK, STORE_WEBHOOK_OWNER, owner);
}

static void owner_deleted(struct domain *domain, const struct id *owner)
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
    .begin = begin,
    .load = load,
    .owner_deleting = owner_deleting,
    .owner_deleted = owner_deleted,
    .tick = tick,
    .end = end,
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

static bool is_seen(const struct caller *caller, const struct webhook *webhook)
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
        if (is_seen(caller, webhook))
            return webhook;
        is_hidden = webhook->is_made && !webhook->is_gone;
    }
    (void) error_set(err, ERR_NOT_FOUND, 0, "there is no such webhook");
    if (is_hidden && err)
        audit_add(domain, caller, "webhook.find", id, err);
    return NULL;
}

void webhook_each(const struct domain *domain, const struct caller *caller,
                  void (*each)(void *context, struct webhook *webhook), void *context)
{
    LIST_EACH (&domain->webhooks->all, at) {
        struct webhook *webhook = CONTAINER_OF(at, struct webhook, link);

        if (is_seen(caller, webhook))
            each(context, webhook);
    }
}

/* --- changing -------------------------------------------------------------------------------- */

/* One change on its way to the store. */
struct change {
    struct domain_task task; /* for refusals */
    struct domain *domain;
    struct webhook *webhook;
    struct caller caller;
    const char *action;
    webhook_done *done;
    void *context;
    struct error failure;
    int64_t disabled_before_ms; /* for when it fails */
};

static struct change *change_new(struct domain *domain, const struct caller *caller,
                                 const char *action, webhook_done *done, void *context)
{
    struct change *change = mem_alloc(sizeof(*change));

    *change = (struct change){
        .domain = domain, .caller = *caller, .action = action, .done = done, .context = context};
    return change;
}

static void tell_refusal(struct domain_task *task)
{
    struct change *change = CONTAINER_OF(task, struct change, task);

    change->done(change->context, &change->failure, NULL);
    free(change);
}

static void refuse(struct change *change)
{
    domain_defer(change->domain, &change->task, tell_refusal);
}

static bool is_type(const char *type)
{
    size_t length = strlen(type);
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz._*";

    return length > 0 && length <= WEBHOOK_TYPE_MAX && strspn(type, letters) == length &&
           (!strchr(type, '*') ||
            (type[length - 1] == '*' && strchr(type, '*') == type + length - 1));
}

static bool is_printable(const char *text)
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

    return scheme && authority && strlen(url) <= WEBHOOK_URL_MAX && is_printable(url) &&
           !strchr(url, ' ') && !memchr(url + scheme, '@', authority);
}

static int check_spec(const struct webhook_spec *spec, struct error *err)
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
    if (spec->bearer && (strlen(spec->bearer) > WEBHOOK_BEARER_MAX || !is_printable(spec->bearer)))
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

static size_t count_of(const struct domain *domain, const struct id *owner)
{
    size_t count = 0;

    LIST_EACH (&domain->webhooks->all, at) {
        const struct webhook *webhook = CONTAINER_OF(at, struct webhook, link);

        count += !webhook->is_gone && id_equal(&webhook->owner, owner);
    }
    return count;
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
static void add_event(struct change *change, struct store_transaction *rows, const char *type)
{
    char data[64 + ID_LENGTH];

    (void) snprintf(data, sizeof(data), "{\"webhookId\":\"%s\"}", change->webhook->id.text);
    event_add(change->domain, rows, &change->caller, &change->webhook->owner, "system", type, data);
}

/* What was done is in the audit log already, with its event. */
static void answer(struct change *change, const struct error *failure)
{
    if (failure)
        audit_add(change->domain, &change->caller, change->action, change->webhook->id.text,
                  failure);
    change->done(change->context, failure, failure ? NULL : change->webhook);
}

static void created(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct change *change = context;
    struct webhook *webhook = change->webhook;

    webhook->under_way--;
    if (failure) {
        webhook->is_gone = true;
    } else {
        event_kept(change->domain, receipt);
        /* Its own creation is the last event it is not told of. */
        webhook->cursor = receipt->cursors[0];
        webhook->is_made = true;
        if (!webhook->is_gone)
            webhook_write_row(webhook);
    }
    answer(change, failure);
    webhook_release(webhook);
    free(change);
}

void webhook_create(struct domain *domain, const struct caller *caller,
                    const struct webhook_spec *spec, webhook_done *done, void *context)
{
    struct change *change = change_new(domain, caller, "webhook.create", done, context);
    struct store_value values[STORE_WEBHOOK_COLUMN_COUNT];
    struct store_transaction *rows;
    struct webhook *webhook;

    if (check_caller(domain, caller, &change->failure) < 0 ||
        check_spec(spec, &change->failure) < 0) {
        refuse(change);
        return;
    }
    if (count_of(domain, &caller->owner) >= WEBHOOKS_PER_OWNER) {
        (void) error_set(&change->failure, ERR_QUOTA, 0, "there are %d webhooks already, the most",
                         WEBHOOKS_PER_OWNER);
        refuse(change);
        return;
    }
    webhook = change->webhook = webhook_new(domain);
    webhook->id = id_new();
    webhook->owner = caller->owner;
    webhook->url = mem_copy_text(spec->url);
    webhook->events = types_text(spec);
    webhook->secret = spec->secret ? mem_copy_text(spec->secret) : random_secret();
    webhook->bearer = spec->bearer ? mem_copy_text(spec->bearer) : NULL;
    webhook->created_ms = domain_wall_ms(domain);
    webhook->cursor = domain->events->head; /* until the receipt says from where exactly */
    webhook->under_way++;
    list_append(&domain->webhooks->all, &webhook->link);
    rows = store_begin(domain_store(domain));
    webhook_values(webhook, values);
    store_insert(rows, STORE_WEBHOOK, values);
    add_event(change, rows, "webhook.created");
    domain_commit(domain, rows, created, change);
}

static void enabled(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct change *change = context;
    struct webhook *webhook = change->webhook;

    webhook->under_way--;
    if (!failure) {
        event_kept(change->domain, receipt);
    } else {
        webhook->disabled_ms = change->disabled_before_ms;
        if (!webhook->is_gone)
            webhook_write_row(webhook); /* a batch may have written what was wished for */
    }
    if (webhook->disabled_ms)
        webhook_unfollow(webhook);
    answer(change, failure);
    webhook_release(webhook);
    free(change);
}

void webhook_enable(struct domain *domain, const struct caller *caller, struct webhook *webhook,
                    bool is_enabled, webhook_done *done, void *context)
{
    struct change *change = change_new(
        domain, caller, is_enabled ? "webhook.enable" : "webhook.disable", done, context);
    struct store_value values[STORE_WEBHOOK_COLUMN_COUNT];
    struct store_transaction *rows;

    if (check_caller(domain, caller, &change->failure) < 0) {
        refuse(change);
        return;
    }
    change->webhook = webhook;
    change->disabled_before_ms = webhook->disabled_ms;
    webhook->disabled_ms = is_enabled ? 0 : domain_wall_ms(domain);
    webhook->is_row_behind = webhook->is_keeping;
    webhook->under_way++;
    rows = store_begin(domain_store(domain));
    webhook_values(webhook, values);
    store_update(rows, STORE_WEBHOOK, values);
    add_event(change, rows, "webhook.updated");
    domain_commit(domain, rows, enabled, change);
}

static void deleted(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct change *change = context;
    struct webhook *webhook = change->webhook;

    if (!failure)
        event_kept(change->domain, receipt);
    webhook->under_way--;
    answer(change, failure);
    if (!failure) {
        webhook->is_gone = true;
        webhook_unfollow(webhook);
        webhook_forget_deliveries(webhook);
    }
    webhook_release(webhook);
    free(change);
}

void webhook_delete(struct domain *domain, const struct caller *caller, struct webhook *webhook,
                    webhook_done *done, void *context)
{
    struct change *change = change_new(domain, caller, "webhook.delete", done, context);
    const struct store_condition deliveries = {.column = STORE_DELIVERY_WEBHOOK,
                                               .comparison = STORE_EQUAL,
                                               .value = store_text(webhook->id.text)};
    const struct store_condition row = {.column = STORE_WEBHOOK_ID,
                                        .comparison = STORE_EQUAL,
                                        .value = store_text(webhook->id.text)};
    struct store_transaction *rows;

    if (check_caller(domain, caller, &change->failure) < 0) {
        refuse(change);
        return;
    }
    change->webhook = webhook;
    webhook->under_way++;
    rows = store_begin(domain_store(domain));
    store_delete(rows, STORE_DELIVERY, &deliveries, 1);
    store_delete(rows, STORE_WEBHOOK, &row, 1);
    add_event(change, rows, "webhook.deleted");
    domain_commit(domain, rows, deleted, change);
}
