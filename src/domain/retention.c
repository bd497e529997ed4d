#include "domain/retention.h"

#define ROOM_EVERY_NS ((uint64_t) 10 * 1000 * 1000 * 1000)
#define HALVINGS_MAX  32

static void find_old(struct retention *retention);

/* Conditions for what is older than `before`; how many. */
static size_t conditions_of(const struct retention *retention, int64_t before,
                            struct store_condition ret_conditions[static 2])
{
    ret_conditions[0] = (struct store_condition){
        .column = retention->time, .comparison = STORE_LESS, .value = store_integer(before)};
    ret_conditions[1] = retention->condition;
    return retention->has_condition ? 2 : 1;
}

static void end(struct retention *retention, const struct error *failure)
{
    retention->is_busy = false;
    if (failure)
        LOG_WARNING(retention->domain->options.log, "old rows are still there",
                    log_text("table", store_table(retention->kind)->name),
                    log_text("error", failure->message));
}

static void on_deleted(void *context, const struct error *failure,
                       const struct store_receipt *receipt)
{
    struct retention *retention = context;

    (void) receipt;
    if (!failure && retention->deleted && retention->domain->stage == DOMAIN_OPEN)
        retention->deleted(retention->domain);
    if (!failure && retention->has_more && retention->domain->stage == DOMAIN_OPEN)
        find_old(retention);
    else
        end(retention, failure);
}

/* The next slice ends with the last of these. */
static void on_found(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct retention *retention = context;
    struct domain *domain = retention->domain;
    struct store_condition conditions[2];
    struct store_transaction *change;
    size_t count;

    if (failure || rows->count == 0 || domain->stage != DOMAIN_OPEN) {
        end(retention, failure);
        return;
    }
    retention->has_more = rows->count == RETENTION_SLICE;
    count = conditions_of(retention, rows->rows[rows->count - 1][retention->time].integer + 1,
                          conditions);
    change = store_begin(domain->options.store);
    store_delete(change, retention->kind, conditions, count);
    domain_commit(domain, change, on_deleted, retention);
}

static int64_t retention_kept_ms(const struct retention *retention)
{
    int64_t kept = retention->kept_ms >> retention->halvings;

    if (kept < retention->least_ms && retention->halvings)
        kept = retention->least_ms < retention->kept_ms ? retention->least_ms : retention->kept_ms;
    return kept;
}

static void find_old(struct retention *retention)
{
    struct domain *domain = retention->domain;
    struct store_condition conditions[2];
    struct store_query query = {.kind = retention->kind,
                                .conditions = conditions,
                                .order = retention->time,
                                .limit = RETENTION_SLICE};

    query.condition_count =
        conditions_of(retention, domain_wall_ms(domain) - retention_kept_ms(retention), conditions);
    domain_find(domain, &query, on_found, retention);
}

/* Whether rows must go now that would have stayed. */
static bool retention_is_pressed(const struct domain *domain, struct retention *retention,
                                 uint64_t now)
{
    const struct domain_options *options = &domain->options;

    if (!options->disk_has_room || now < retention->room_ns)
        return false;
    retention->room_ns = now + ROOM_EVERY_NS;
    if (options->disk_has_room(options->context)) {
        retention->halvings = 0;
        return false;
    }
    if (retention->halvings == 0)
        LOG_WARNING(options->log, "the disk is full but for its floor: old rows go earlier",
                    log_text("table", store_table(retention->kind)->name));
    retention->halvings += retention->halvings < HALVINGS_MAX;
    return true;
}

void retention_tick(struct domain *domain, struct retention *retention)
{
    uint64_t now = domain_now_ns(domain);

    if (retention->is_busy)
        return;
    if (!retention_is_pressed(domain, retention, now) && now < retention->due_ns)
        return;
    retention->domain = domain;
    retention->is_busy = true;
    retention->due_ns = now + retention->every_ns;
    find_old(retention);
}
