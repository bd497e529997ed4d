/* Update: limits first, because the host may refuse them; then the row; then memory, and the agent
 * is told its variables. While it goes on the sandbox is held: everything but a use of a running
 * one waits, so that no other row of it is written meanwhile.
 *
 *     set_limits ──► commit ──► memory ──► variables ──► answered
 *                       │ fails: the old limits again */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/event/event.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/sandbox_environment.h"
#include "domain/sandbox/sandbox_quota.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandbox_wish.h"

static void finish(struct sandbox_wish *wish, const struct error *failure)
{
    wish->sandbox->is_held = false;
    if (wish->sandbox->status != SANDBOX_DESTROYED)
        expiry_watch(wish->domain, wish->sandbox);
    wish_end(wish, failure);
}

/* --- the last step --------------------------------------------------------------------------- */

static void on_told(void *context, const struct error *failure, const struct inside_answer *answer)
{
    struct sandbox_wish *wish = context;
    struct error err = ERROR_INIT;

    (void) answer;
    if (!failure) {
        finish(wish, NULL);
        return;
    }
    err = *failure;
    wish->sandbox->is_environment_late = true;
    (void) error_wrap(&err, "the variables are kept, and hold from its next start on; now its "
                            "agent did not take them");
    finish(wish, &err);
}

static void tell(struct sandbox_wish *wish)
{
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;
    bool has_agent = domain->options.inside &&
                     (provider_capabilities(domain->options.provider) & PROVIDER_AGENT);

    if (!wish->has_new_environment || !has_agent) {
        finish(wish, NULL);
    } else if (sandbox->status == SANDBOX_RUNNING) {
        sandbox_tell_environment(domain, sandbox, on_told, wish);
    } else {
        sandbox->is_environment_late = true; /* told at wake */
        finish(wish, NULL);
    }
}

/* --- the row --------------------------------------------------------------------------------- */

static void on_limits_back(void *context, const struct error *failure)
{
    struct sandbox_wish *wish = context;

    if (failure)
        LOG_ERROR(wish->domain->options.log, "a sandbox has limits that are not kept",
                  log_text("sandbox", wish->sandbox->id.text), log_text("error", failure->message));
    finish(wish, &wish->failure);
}

static void on_kept(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct sandbox_wish *wish = context;
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;

    if (!failure) {
        event_kept(domain, receipt);
        sandbox_set_spec(domain, sandbox, wish->spec);
        tell(wish);
        return;
    }
    wish->failure = *failure;
    if (wish->has_new_limits && domain->stage == DOMAIN_OPEN)
        provider_set_limits(domain->options.provider, &sandbox->id, &sandbox->spec.limits,
                            on_limits_back, wish);
    else
        finish(wish, &wish->failure);
}

static void keep(struct sandbox_wish *wish)
{
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;
    struct store_transaction *change = store_begin(domain->options.store);
    struct sandbox_next next = sandbox_next(sandbox);
    AUTO(sandbox_row) struct sandbox_row row;

    next.spec = wish->spec;
    sandbox->updated_ms = domain_wall_ms(domain);
    sandbox_row_init(&row, sandbox, &next);
    store_update(change, STORE_SANDBOX, row.values);
    sandbox_add_event(domain, change, &wish->caller, sandbox, &next, "sandbox.updated");
    domain_commit(domain, change, on_kept, wish);
}

/* --- the limits ------------------------------------------------------------------------------ */

static void on_limited(void *context, const struct error *failure)
{
    struct sandbox_wish *wish = context;

    if (failure) {
        wish->domain->counters.failed++;
        finish(wish, failure);
        return;
    }
    keep(wish);
}

static bool is_same(const struct limits *a, const struct limits *b)
{
    return a->memory_bytes == b->memory_bytes && a->swap_bytes == b->swap_bytes &&
           a->pids == b->pids && a->cpu_millis == b->cpu_millis && a->disk_bytes == b->disk_bytes &&
           a->files == b->files;
}

static bool is_alive(const struct sandbox *sandbox)
{
    return sandbox->status == SANDBOX_RUNNING || sandbox->status == SANDBOX_FROZEN;
}

static int check(struct sandbox_wish *wish, struct error *err)
{
    const struct sandbox *sandbox = wish->sandbox;
    const char *old_name = sandbox->spec.name, *name = wish->spec->name;
    bool is_renamed = name && (!old_name || strcmp(name, old_name) != 0);

    if (sandbox_spec_check(wish->spec, err) < 0)
        return -1;
    if (is_renamed && sandbox_set_by_name(wish->domain, &sandbox->owner, name))
        return error_set(err, ERR_CONFLICT, 0, "there is a sandbox '%s' already", name);
    if (!wish->has_new_limits)
        return 0;
    if (sandbox_quota_resize(wish->domain, sandbox, &wish->spec->limits, err) < 0)
        return -1;
    if (is_alive(sandbox) &&
        !(provider_capabilities(wish->domain->options.provider) & PROVIDER_LIMITS))
        return error_set(err, ERR_NOT_IMPLEMENTED, 0,
                         "limits cannot be changed here while it runs; stop it first");
    return 0;
}

/* --- what shall be --------------------------------------------------------------------------- */

static char *copy_text(const char *text)
{
    return text ? mem_copy_text(text) : NULL;
}

static void merge_pairs(struct sandbox_pairs *pairs, const struct sandbox_pairs *changes)
{
    for (size_t i = 0; changes && i < changes->count; i++) {
        const struct sandbox_pair *pair = &changes->items[i];

        if (pair->value)
            sandbox_pairs_set(pairs, pair->name, pair->value);
        else
            sandbox_pairs_remove(pairs, pair->name);
    }
}

/* Limits that are not said stay as they are. */
static void merge_limits(struct limits *limits, const struct limits *wanted)
{
    limits->memory_bytes = wanted->memory_bytes ? wanted->memory_bytes : limits->memory_bytes;
    limits->swap_bytes = wanted->swap_bytes ? wanted->swap_bytes : limits->swap_bytes;
    limits->pids = wanted->pids ? wanted->pids : limits->pids;
    limits->cpu_millis = wanted->cpu_millis ? wanted->cpu_millis : limits->cpu_millis;
    limits->disk_bytes = wanted->disk_bytes ? wanted->disk_bytes : limits->disk_bytes;
    limits->files = wanted->files ? wanted->files : limits->files;
}

static void apply_snapshots(struct sandbox_spec *spec, const struct sandbox_wanted *wanted)
{
    if (wanted->changes & SANDBOX_CHANGE_SNAPSHOT_EVERY)
        spec->snapshot_every_ms = wanted->spec.snapshot_every_ms;
    if (wanted->changes & SANDBOX_CHANGE_SNAPSHOT_KEEP)
        spec->snapshot_keep = wanted->spec.snapshot_keep;
    if (wanted->changes & SANDBOX_CHANGE_SNAPSHOT_KEEP_FOR)
        spec->snapshot_keep_for_ms = wanted->spec.snapshot_keep_for_ms;
}

static void apply_tiers(struct sandbox_spec *spec, const struct sandbox_wanted *wanted)
{
    if (wanted->changes & SANDBOX_CHANGE_FREEZE_FOR)
        spec->freeze_for_ms = wanted->spec.freeze_for_ms;
    if (wanted->changes & SANDBOX_CHANGE_HIBERNATE_AFTER)
        spec->hibernate_after_ms = wanted->spec.hibernate_after_ms;
    if (wanted->changes & SANDBOX_CHANGE_OFFLOAD_AFTER)
        spec->offload_after_ms = wanted->spec.offload_after_ms;
    if (wanted->changes & SANDBOX_CHANGE_STARTUP) {
        sandbox_startup_done(spec);
        sandbox_startup_copy(spec, &wanted->spec);
    }
}

void sandbox_wanted_apply(const struct sandbox_wanted *wanted, struct sandbox_spec *spec)
{
    merge_pairs(&spec->environment, &wanted->environment);
    merge_pairs(&spec->labels, &wanted->labels);
    if (wanted->changes & SANDBOX_CHANGE_NAME) {
        free(spec->name);
        spec->name = copy_text(wanted->spec.name);
    }
    if (wanted->changes & SANDBOX_CHANGE_LIMITS)
        merge_limits(&spec->limits, &wanted->spec.limits);
    if (wanted->changes & SANDBOX_CHANGE_SLEEP_AFTER)
        spec->sleep_after_ms = wanted->spec.sleep_after_ms;
    if (wanted->changes & SANDBOX_CHANGE_KEEP_ALIVE)
        spec->keep_alive = wanted->spec.keep_alive;
    if (wanted->changes & SANDBOX_CHANGE_SYNC)
        spec->sync = wanted->spec.sync;
    if (wanted->changes & SANDBOX_CHANGE_MAX_RUNTIME)
        spec->max_runtime_ms = wanted->spec.max_runtime_ms;
    if (wanted->changes & SANDBOX_CHANGE_LIFETIME)
        spec->lifetime_ms = wanted->spec.lifetime_ms;
    apply_snapshots(spec, wanted);
    apply_tiers(spec, wanted);
}

/* Made when its turn comes: another update may have been before it. */
void sandbox_act_update(struct sandbox_wish *wish)
{
    struct domain *domain = wish->domain;
    struct sandbox *sandbox = wish->sandbox;
    struct error err = ERROR_INIT;

    wish->spec = mem_alloc(sizeof(*wish->spec));
    *wish->spec = sandbox_spec_copy(&sandbox->spec);
    sandbox_wanted_apply(wish->wanted, wish->spec);
    wish->has_new_limits = !is_same(&wish->spec->limits, &sandbox->spec.limits);
    wish->has_new_environment = wish->wanted->environment.count > 0;
    if (check(wish, &err) < 0) {
        wish_end(wish, &err);
        return;
    }
    sandbox->is_held = true;
    wish->has_new_limits = wish->has_new_limits && is_alive(sandbox);
    if (wish->has_new_limits)
        provider_set_limits(domain->options.provider, &sandbox->id, &wish->spec->limits, on_limited,
                            wish);
    else
        keep(wish);
}

/* --- the wish -------------------------------------------------------------------------------- */

/* Unlike those of a spec, values may be NULL. */
static struct sandbox_pairs copy_changes(const struct sandbox_pairs *changes)
{
    struct sandbox_pairs copy = {.count = 0};

    if (!changes || changes->count == 0)
        return copy;
    copy.items = mem_alloc_array(changes->count, sizeof(*copy.items));
    copy.count = changes->count;
    for (size_t i = 0; i < changes->count; i++)
        copy.items[i] = (struct sandbox_pair){.name = mem_copy_text(changes->items[i].name),
                                              .value = copy_text(changes->items[i].value)};
    return copy;
}

struct sandbox_wanted *sandbox_wanted_new(const struct sandbox_update *update)
{
    struct sandbox_wanted *wanted = mem_alloc(sizeof(*wanted));

    wanted->changes = update->changes;
    if (update->spec)
        wanted->spec = sandbox_spec_copy(update->spec);
    wanted->environment = copy_changes(update->environment);
    wanted->labels = copy_changes(update->labels);
    return wanted;
}

void sandbox_wanted_free(struct sandbox_wanted *wanted)
{
    if (!wanted)
        return;
    sandbox_spec_done(&wanted->spec);
    sandbox_pairs_done(&wanted->environment);
    sandbox_pairs_done(&wanted->labels);
    free(wanted);
}
