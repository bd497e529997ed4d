#include "domain/sandbox/new_disks.h"

#include <stdlib.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/domain_internal.h"
#include "domain/domain_modules.h"
#include "domain/sandbox/sandbox_record.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"

/* Each sandbox is in one list at most, by its `new_disk`, and in none when it is destroyed. */
struct new_disks {
    struct list waiting; /* for the next sync */
    struct list synced;  /* or about to be: their rows are to follow */
    struct list kept;    /* or about to be: their rows are on their way */
    unsigned int ticks;  /* that some wait */
    bool is_under_way;
};

static struct sandbox *first_of(const struct list *list)
{
    struct list *link = list_first(list);

    return link ? CONTAINER_OF(link, struct sandbox, new_disk) : NULL;
}

static void put_into(struct list *list, struct sandbox *sandbox)
{
    list_remove(&sandbox->new_disk);
    list_append(list, &sandbox->new_disk);
}

void new_disk_watch(struct domain *domain, struct sandbox *sandbox)
{
    put_into(&domain->new_disks->waiting, sandbox);
}

/* --- rows ------------------------------------------------------------------------------------ */

static void end(struct domain *domain)
{
    struct new_disks *disks = domain->new_disks;
    struct sandbox *sandbox;

    while ((sandbox = first_of(&disks->synced)))
        put_into(&disks->waiting, sandbox);
    disks->is_under_way = false;
    domain->works--;
    domain_check_gone(domain);
}

static void keep_some(struct domain *domain);

static void on_kept(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct domain *domain = context;
    struct new_disks *disks = domain->new_disks;
    struct sandbox *sandbox;

    (void) receipt;
    while ((sandbox = first_of(&disks->kept))) {
        list_remove(&sandbox->new_disk);
        if (!failure)
            continue;
        sandbox->is_disk_new = true; /* as the row says */
        put_into(&disks->waiting, sandbox);
    }
    if (failure)
        LOG_WARNING(domain->options.log, "rows of new disks were not kept, and are tried again",
                    log_text("error", failure->message));
    if (failure || domain->stage != DOMAIN_OPEN || list_is_empty(&disks->synced))
        end(domain);
    else
        keep_some(domain);
}

/* What is being changed has its row written by others, and a status that rows do not have. */
static void keep_some(struct domain *domain)
{
    struct new_disks *disks = domain->new_disks;
    struct store_transaction *change = NULL;
    struct sandbox *sandbox;

    for (size_t count = 0; count < NEW_DISKS_AT_ONCE && (sandbox = first_of(&disks->synced));) {
        AUTO(sandbox_row) struct sandbox_row row = {.values = {{.is_null = true}}};

        if (sandbox_is_busy(sandbox)) {
            put_into(&disks->waiting, sandbox);
            continue;
        }
        if (!change)
            change = store_begin(domain->options.store);
        sandbox->is_disk_new = false;
        sandbox_row_init(&row, sandbox, NULL);
        store_update(change, STORE_SANDBOX, row.values);
        put_into(&disks->kept, sandbox);
        count++;
    }
    if (change)
        domain_commit(domain, change, on_kept, domain);
    else
        end(domain);
}

/* --- disks ----------------------------------------------------------------------------------- */

static void on_synced(void *context, const struct error *failure)
{
    struct domain *domain = context;

    if (failure)
        LOG_WARNING(domain->options.log, "new disks could not be synced, and are tried again",
                    log_text("error", failure->message));
    if (failure || domain->stage != DOMAIN_OPEN) {
        end(domain);
        return;
    }
    keep_some(domain);
}

static void tick(struct domain *domain)
{
    struct new_disks *disks = domain->new_disks;
    struct sandbox *sandbox;

    if (disks->is_under_way || list_is_empty(&disks->waiting) || domain->is_provider_lost ||
        ++disks->ticks < NEW_DISKS_EVERY_S)
        return;
    disks->ticks = 0;
    disks->is_under_way = true;
    domain->works++;
    while ((sandbox = first_of(&disks->waiting)))
        put_into(&disks->synced, sandbox);
    provider_sync_disks(domain->options.provider, on_synced, domain);
}

/* --- the module ------------------------------------------------------------------------------ */

static void begin(struct domain *domain)
{
    struct new_disks *disks = domain->new_disks = mem_alloc(sizeof(*disks));

    list_init(&disks->waiting);
    list_init(&disks->synced);
    list_init(&disks->kept);
}

static void destroyed(struct domain *domain, const struct id *id)
{
    struct sandbox *sandbox = sandbox_set_by_id(domain, id->text);

    if (sandbox)
        list_remove(&sandbox->new_disk);
}

static void free_all(struct domain *domain)
{
    free(domain->new_disks);
    domain->new_disks = NULL;
}

const struct domain_module domain_new_disks = {
    .name = "new_disks", .begin = begin, .destroyed = destroyed, .tick = tick, .end = free_all};
