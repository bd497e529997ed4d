/* What changed between two moments of a disk. The present of a running or frozen sandbox is a copy
 * in passing; one without processes is held until its disk was read. */
#include <stdlib.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/domain_internal.h"
#include "domain/domain_share.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/snapshot/snapshot_internal.h"
#include "domain/snapshot/snapshot_set.h"

struct diff {
    struct domain_task task;
    struct domain *domain;
    struct snapshot *older, *newer; /* pinned; NULL: the present */
    struct snapshot_waiter waiter;  /* for them to be here, one after the other */
    struct caller caller;
    struct sandbox *sandbox;   /* a reference: whose present; NULL: two snapshots */
    struct snapshot_shot shot; /* of the present: its wish, the copy */
    bool is_shot;
    struct disk_ref present;
    vault_line *line;
    vault_done *done;
    void *context;
    bool has_failed;
    struct error failure;
};

static void answer(struct domain_task *task)
{
    struct diff *diff = CONTAINER_OF(task, struct diff, task);
    struct domain *domain = diff->domain;

    diff->done(diff->context, diff->has_failed ? &diff->failure : NULL);
    if (diff->older)
        snapshot_unpin(domain, diff->older);
    if (diff->newer)
        snapshot_unpin(domain, diff->newer);
    sandbox_unref(diff->sandbox);
    snapshot_shot_done(&diff->shot);
    free(diff);
    domain->works--;
    domain_check_gone(domain);
}

static void on_over(void *context, const struct error *failure, struct sandbox *sandbox)
{
    struct diff *diff = context;

    (void) sandbox;
    diff->has_failed = failure != NULL;
    if (failure)
        diff->failure = *failure;
    answer(&diff->task);
}

static void end(struct diff *diff, const struct error *failure)
{
    struct sandbox_wish *wish = diff->shot.wish;

    if (diff->is_shot)
        snapshot_orphan(diff->domain, &diff->shot.id);
    if (wish) {
        if (!diff->is_shot && wish->sandbox->is_held)
            snapshot_release(diff->domain, wish->sandbox);
        wish_end(wish, failure);
        return;
    }
    diff->has_failed = failure != NULL;
    if (failure)
        diff->failure = *failure;
    domain_defer(diff->domain, &diff->task, answer);
}

static void on_told(void *context, const struct error *failure)
{
    end(context, failure);
}

static void on_line(void *context, const char *line, size_t length)
{
    struct diff *diff = context;

    diff->line(diff->context, line, length);
}

static struct disk_ref disk_of(const struct diff *diff, const struct snapshot *snapshot)
{
    return snapshot ? (struct disk_ref){DISK_OF_SNAPSHOT, snapshot->id} : diff->present;
}

static void run(struct diff *diff)
{
    const struct vault *vault = diff->domain->options.vault;
    const struct id *owner = diff->sandbox ? &diff->sandbox->owner : &diff->newer->owner;
    const struct vault_asker asker = {.who = domain_asker_of(diff->domain, owner),
                                      .haste = VAULT_ASKED};
    const struct disk_ref newer = disk_of(diff, diff->newer);
    const struct disk_ref older = disk_of(diff, diff->older);
    struct error err = ERROR_INIT;

    if (!domain_is_open(diff->domain, &err))
        end(diff, &err);
    else
        vault->diff(vault->self, &asker, &newer, &older, on_line, on_told, diff);
}

/* --- here ------------------------------------------------------------------------------------- */

static void bring_here(struct diff *diff);
static void look_at_present(struct diff *diff);

static void on_here(struct snapshot_waiter *waiter, const struct error *failure)
{
    struct diff *diff = CONTAINER_OF(waiter, struct diff, waiter);

    if (failure)
        end(diff, failure);
    else
        bring_here(diff);
}

static void bring_here(struct diff *diff)
{
    struct snapshot *snapshots[] = {diff->older, diff->newer};

    diff->waiter.done = on_here;
    for (size_t i = 0; i < ARRAY_COUNT(snapshots); i++)
        if (snapshots[i] && !snapshot_is_here(diff->domain, snapshots[i])) {
            snapshot_fetch(diff->domain, snapshots[i], &diff->waiter);
            return;
        }
    if (diff->sandbox)
        look_at_present(diff);
    else
        run(diff);
}

/* --- the present ------------------------------------------------------------------------------ */

static void on_shot(struct snapshot_shot *shot, const struct error *failure)
{
    struct diff *diff = CONTAINER_OF(shot, struct diff, shot);

    snapshot_release(diff->domain, shot->wish->sandbox);
    if (failure) {
        end(diff, failure);
        return;
    }
    diff->is_shot = true;
    diff->present = (struct disk_ref){DISK_OF_SNAPSHOT, shot->id};
    run(diff);
}

static void act(struct sandbox_wish *wish)
{
    struct diff *diff = wish->context;
    struct sandbox *sandbox = wish->sandbox;

    sandbox->is_held = true;
    if (sandbox->status == SANDBOX_RUNNING || sandbox->status == SANDBOX_FROZEN) {
        snapshot_shoot(&diff->shot);
        return;
    }
    diff->present = (struct disk_ref){DISK_OF_SANDBOX, sandbox->id};
    run(diff);
}

static void look_at_present(struct diff *diff)
{
    /* Who only looks disturbs nobody. */
    diff->shot = (struct snapshot_shot){.id = id_new(), .no_freeze = true, .done = on_shot};
    diff->shot.wish = wish_make(diff->domain, &diff->caller, diff->sandbox, SANDBOX_ACTION_SNAPSHOT,
                                act, on_over, diff);
    wish_begin(diff->shot.wish);
}

static int check(const struct domain *domain, const struct snapshot_place *older,
                 const struct snapshot_place *newer, struct error *err)
{
    if (!domain_is_open(domain, err) || snapshot_check_provider(domain, err) < 0)
        return -1;
    if (!domain->options.vault || !domain->options.vault->diff)
        return error_set(err, ERR_NOT_IMPLEMENTED, 0, "disks cannot be compared here");
    if (!older->snapshot && !newer->snapshot)
        return error_set(err, ERR_INVALID, 0, "one of the two must be a snapshot");
    if (older->snapshot && snapshot_check_ready(older->snapshot, err) < 0)
        return -1;
    return newer->snapshot ? snapshot_check_ready(newer->snapshot, err) : 0;
}

static struct snapshot *pin(struct snapshot *snapshot)
{
    if (snapshot)
        snapshot_pin(snapshot);
    return snapshot;
}

void snapshot_diff(struct domain *domain, const struct caller *caller, struct snapshot_place older,
                   struct snapshot_place newer, vault_line *line, vault_done *done, void *context)
{
    struct sandbox *present = older.snapshot ? newer.sandbox : older.sandbox;
    struct diff *diff = mem_alloc(sizeof(*diff));
    struct error err = ERROR_INIT;

    *diff = (struct diff){.domain = domain,
                          .older = pin(older.snapshot),
                          .newer = pin(newer.snapshot),
                          .caller = *caller,
                          .sandbox = present ? sandbox_ref(present) : NULL,
                          .line = line,
                          .done = done,
                          .context = context};
    domain->works++;
    if (check(domain, &older, &newer, &err) < 0) {
        end(diff, &err);
        return;
    }
    bring_here(diff);
}
