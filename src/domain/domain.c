#include "domain/domain.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/domain_internal.h"
#include "domain/event/event_log.h"
#include "domain/inside_call.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/recovery.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"
#include "domain/snapshot/snapshot_internal.h"

struct domain *domain_new(const struct domain_options *options)
{
    struct domain *domain = mem_alloc(sizeof(*domain));

    domain->options = *options;
    domain->options.node = mem_copy_text(options->node ? options->node : "");
    random_bytes(&domain->seed, sizeof(domain->seed));
    list_init(&domain->tasks);
    list_init(&domain->asked);
    domain->sandboxes = sandbox_set_new();
    domain->expiry = expiry_new();
    for (size_t i = 0; domain_modules[i]; i++)
        if (domain_modules[i]->begin)
            domain_modules[i]->begin(domain);
    return domain;
}

const struct harness *domain_harness(const struct domain *domain)
{
    return domain->options.harness;
}

struct store *domain_store(struct domain *domain)
{
    return domain->options.store;
}

void domain_counters(const struct domain *domain, struct domain_counters *ret_counters)
{
    *ret_counters = domain->counters;
}

const char *domain_waits_for(const struct domain *domain)
{
    static const char *const texts[] = {
        [DOMAIN_NEW] = "the daemon is starting",
        [DOMAIN_OPENING] = "the rows are being read and compared with the sandboxes that are there",
        [DOMAIN_OPEN] = NULL,
        [DOMAIN_CLOSING] = "the daemon is ending",
    };

    if (domain->is_provider_lost)
        return "what runs the sandboxes is lost";
    return texts[domain->stage];
}

bool domain_is_open(const struct domain *domain, struct error *err)
{
    const char *waits_for = domain_waits_for(domain);

    if (!waits_for)
        return true;
    (void) error_set(err, ERR_UNAVAILABLE, 0, "%s", waits_for);
    return false;
}

/* --- opening --------------------------------------------------------------------------------- */

/* The steps of domain_open; each calls open_next when it is done. */
struct opening {
    struct domain *domain;
    size_t module; /* the next to be loaded */
    domain_done *done;
    void *context;
};

static void open_end(struct opening *opening, const struct error *failure)
{
    domain_done *done = opening->done;
    void *context = opening->context;
    struct domain *domain = opening->domain;

    free(opening);
    done(context, failure);
    domain->works--;
    domain_check_gone(domain);
}

static bool is_cut_short(struct opening *opening, const struct error *failure)
{
    struct error closing = ERROR_INIT;

    if (!failure && opening->domain->stage != DOMAIN_OPENING) {
        (void) error_set(&closing, ERR_UNAVAILABLE, 0, "the daemon is ending");
        failure = &closing;
    }
    if (failure)
        open_end(opening, failure);
    return failure != NULL;
}

static void on_snapshots(void *context)
{
    open_end(context, NULL);
}

static void on_listed(void *context, const struct error *failure,
                      const struct provider_sandbox *sandboxes, size_t count)
{
    struct opening *opening = context;

    if (is_cut_short(opening, failure))
        return;
    opening->domain->stage = DOMAIN_OPEN;
    recovery_run(opening->domain, sandboxes, count);
    for (size_t i = 0; domain_modules[i]; i++)
        if (domain_modules[i]->recovered)
            domain_modules[i]->recovered(opening->domain);
    snapshot_recover(opening->domain, on_snapshots, opening);
}

static void on_provider_open(void *context, const struct error *failure)
{
    struct opening *opening = context;

    if (!is_cut_short(opening, failure))
        provider_list(opening->domain->options.provider, on_listed, opening);
}

static void on_exited(void *context, const struct id *id, const struct ending *ending)
{
    struct domain *domain = context;
    struct sandbox *sandbox = sandbox_set_by_id(domain, id->text);

    if (sandbox && domain->stage != DOMAIN_CLOSING)
        sandbox_ended(domain, sandbox, ending);
}

static void on_lost(void *context, const struct error *reason)
{
    struct domain *domain = context;

    domain->is_provider_lost = true;
    if (domain->options.lost)
        domain->options.lost(domain->options.context, reason);
}

static void open_provider(struct opening *opening)
{
    struct domain *domain = opening->domain;
    const struct provider_watcher watcher = {
        .exited = on_exited, .lost = on_lost, .context = domain};

    if (domain->options.provider) {
        provider_open(domain->options.provider, &watcher, on_provider_open, opening);
        return;
    }
    domain->stage = DOMAIN_OPEN;
    recovery_run_without(domain);
    open_end(opening, NULL);
}

static int load_sandbox(struct domain *domain, const struct store_value *row, struct error *err)
{
    struct sandbox *sandbox = sandbox_from_row(row, err);

    if (!sandbox)
        return -1;
    sandbox_ref(sandbox);
    sandbox_set_reserve(domain, sandbox);
    sandbox_set_identify(domain, sandbox);
    list_append(&domain->sandboxes->all, &sandbox->link);
    return 0;
}

static void on_sandboxes(void *context, const struct error *failure)
{
    struct opening *opening = context;

    if (is_cut_short(opening, failure))
        return;
    sandbox_set_sort(opening->domain);
    open_provider(opening);
}

static void open_next(void *context, const struct error *failure)
{
    struct opening *opening = context;
    struct domain *domain = opening->domain;
    const struct domain_module *module;

    if (is_cut_short(opening, failure))
        return;
    while ((module = domain_modules[opening->module])) {
        opening->module++;
        if (module->load) {
            module->load(domain, open_next, opening);
            return;
        }
    }
    domain_load(domain, STORE_SANDBOX, STORE_SANDBOX_ID, load_sandbox, on_sandboxes, opening);
}

void domain_open(struct domain *domain, domain_done *done, void *context)
{
    struct opening *opening = mem_alloc(sizeof(*opening));

    *opening = (struct opening){.domain = domain, .done = done, .context = context};
    domain->stage = DOMAIN_OPENING;
    domain->works++;
    open_next(opening, NULL);
}

/* --- time ------------------------------------------------------------------------------------ */

void domain_tick(struct domain *domain)
{
    if (domain->stage != DOMAIN_OPEN)
        return;
    inside_tick(domain);
    sandbox_keep_unkept(domain);
    if (domain->options.provider && !domain->is_provider_lost) {
        sandbox_orphans_retry(domain);
        expiry_tick(domain);
    }
    for (size_t i = 0; domain_modules[i]; i++)
        if (domain_modules[i]->tick)
            domain_modules[i]->tick(domain);
}

void domain_later(struct domain *domain)
{
    for (size_t i = 0; domain->stage == DOMAIN_OPEN && domain_modules[i]; i++)
        if (domain_modules[i]->later)
            domain_modules[i]->later(domain);
}

/* --- closing --------------------------------------------------------------------------------- */

static void domain_free(struct domain *domain)
{
    for (size_t i = 0; domain_modules[i]; i++)
        if (domain_modules[i]->end)
            domain_modules[i]->end(domain);
    sandbox_orphans_end(domain);
    sandbox_set_free(domain->sandboxes);
    expiry_free(domain->expiry);
    free((char *) domain->options.node);
    free(domain);
}

void domain_check_gone(struct domain *domain)
{
    domain_done *done = domain->closed;
    void *context = domain->closed_context;

    if (domain->stage != DOMAIN_CLOSING || domain->is_provider_open || domain->outstanding ||
        domain->works || domain->uses || domain->turns || !list_is_empty(&domain->tasks))
        return;
    domain_free(domain);
    if (done)
        done(context, NULL);
}

static void on_provider_closed(void *context, const struct error *failure)
{
    struct domain *domain = context;

    (void) failure; /* it is gone in any case */
    domain->is_provider_open = false;
    domain->options.provider = NULL;
    domain_check_gone(domain);
}

/* Something to come back to: closing is never over from inside the call. */
struct farewell {
    struct domain_task task;
    struct domain *domain;
};

static void close_provider(struct domain_task *task)
{
    struct farewell *farewell = CONTAINER_OF(task, struct farewell, task);
    struct domain *domain = farewell->domain;

    free(farewell);
    if (domain->options.provider)
        provider_close(domain->options.provider, on_provider_closed, domain);
    else
        domain->is_provider_open = false;
}

void domain_close(struct domain *domain, domain_done *done, void *context)
{
    struct farewell *farewell = mem_alloc(sizeof(*farewell));
    struct error reason = ERROR_INIT;

    domain->stage = DOMAIN_CLOSING;
    domain->closed = done;
    domain->closed_context = context;
    domain->is_provider_open = true; /* or not: until it is closed */
    (void) domain_is_open(domain, &reason);
    inside_abandon(domain);
    LIST_EACH (&domain->sandboxes->all, at)
        sandbox_fail_waiting(domain, CONTAINER_OF(at, struct sandbox, link), &reason);
    event_followers_end(domain);
    for (size_t i = 0; domain_modules[i]; i++)
        if (domain_modules[i]->closing)
            domain_modules[i]->closing(domain);
    farewell->domain = domain;
    domain_defer(domain, &farewell->task, close_provider);
}
