/* One copy of a disk: the sandbox is asked for its sessions, then the provider copies. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "domain/inside_call.h"
#include "domain/sandbox/expiry.h"
#include "domain/snapshot/snapshot_internal.h"

int snapshot_check_provider(const struct domain *domain, struct error *err)
{
    if (!domain->options.provider)
        return error_set(err, ERR_UNAVAILABLE, 0, "there is nowhere to run sandboxes");
    if (!(provider_capabilities(domain->options.provider) & PROVIDER_SNAPSHOTS))
        return error_set(err, ERR_NOT_IMPLEMENTED, 0, "there are no snapshots here");
    return 0;
}

void snapshot_release(struct domain *domain, struct sandbox *sandbox)
{
    sandbox->is_held = false;
    if (sandbox->status != SANDBOX_DESTROYED)
        expiry_watch(domain, sandbox);
    sandbox_settle(domain, sandbox);
}

void snapshot_shot_done(struct snapshot_shot *shot)
{
    free(shot->inside);
    shot->inside = NULL;
}

bool snapshot_freezes(const struct domain *domain, bool no_freeze)
{
    return !no_freeze && (provider_capabilities(domain->options.provider) & PROVIDER_FREEZE);
}

void snapshot_count(struct domain *domain, const struct snapshot_made *how)
{
    domain->counters.snapshots++;
    domain->counters.snapshot_pause_us_total += how->pause_us;
}

static void on_shot(void *context, const struct error *failure, const struct snapshot_made *how)
{
    struct snapshot_shot *shot = context;
    struct domain *domain = shot->wish->domain;

    if (failure) {
        domain->counters.failed++;
    } else {
        shot->how = *how;
        snapshot_count(domain, how);
    }
    shot->done(shot, failure);
}

static void shoot(struct snapshot_shot *shot)
{
    struct domain *domain = shot->wish->domain;
    struct sandbox *sandbox = shot->wish->sandbox;
    struct error err = ERROR_INIT;

    if (!domain_is_open(domain, &err))
        shot->done(shot, &err);
    else
        provider_snapshot(domain->options.provider, &sandbox->id, &shot->id,
                          snapshot_freezes(domain, shot->no_freeze), on_shot, shot);
}

char *snapshot_sessions(const struct error *failure, const struct inside_answer *answer)
{
    return !failure && answer->text && strlen(answer->text) <= SANDBOX_INSIDE_MAX
               ? mem_copy_text(answer->text)
               : NULL;
}

/* Without them the copy is as good, only its shells begin anew. */
static void on_saved(void *context, const struct error *failure, const struct inside_answer *answer)
{
    struct snapshot_shot *shot = context;

    shot->inside = snapshot_sessions(failure, answer);
    shoot(shot);
}

void snapshot_shoot(struct snapshot_shot *shot)
{
    struct sandbox *sandbox = shot->wish->sandbox;

    if (sandbox->status == SANDBOX_RUNNING) {
        inside_ask(shot->wish->domain, &sandbox->id, INSIDE_SAVE, NULL, on_saved, shot);
        return;
    }
    shot->inside = sandbox->inside ? mem_copy_text(sandbox->inside) : NULL;
    shoot(shot);
}
