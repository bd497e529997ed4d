/* Delete: the row goes first, then the copy, then the answer. What dies in between is found by
 * recovery as a snapshot without a row. A copy that somebody works with stays until that is over.
 */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "base/memory.h"
#include "domain/domain_internal.h"
#include "domain/event/event.h"
#include "domain/orphan.h"
#include "domain/snapshot/snapshot_internal.h"
#include "domain/snapshot/snapshot_set.h"
#include "domain/snapshot/template.h"

/* --- copies that nobody may see any more ------------------------------------------------------ */

static void gone(void)
{
    CRASH_POINT("snapshot.delete.gone");
}

static const struct orphan_kind kind = {
    .noun = "snapshot",
    .failure = "a snapshot cannot be deleted, and will be tried again",
    .take_down = provider_delete_snapshot,
    .gone = gone,
};

static void snapshot_orphan_then(struct domain *domain, const struct id *id,
                                 void (*done)(void *context), void *context)
{
    orphan_add(domain, &domain->snapshots->orphans, &kind, id, done, context);
}

bool snapshot_is_orphan(const struct domain *domain, const struct id *id)
{
    return orphan_has(&domain->snapshots->orphans, id);
}

void snapshot_orphan(struct domain *domain, const struct id *id)
{
    snapshot_orphan_then(domain, id, NULL, NULL);
}

void snapshot_orphans_retry(struct domain *domain)
{
    orphans_retry(&domain->snapshots->orphans);
}

void snapshot_orphans_end(struct domain *domain)
{
    orphans_end(&domain->snapshots->orphans);
}

/* --- who works with one ----------------------------------------------------------------------- */

void snapshot_pin(struct snapshot *snapshot)
{
    snapshot_ref(snapshot);
    snapshot->pins++;
}

void snapshot_unpin(struct domain *domain, struct snapshot *snapshot)
{
    snapshot->pins--;
    if (snapshot->is_gone && snapshot->pins == 0)
        snapshot_orphan(domain, &snapshot->id);
    snapshot_unref(snapshot);
}

/* Who works with it takes it along. */
static void leave(struct domain *domain, struct snapshot *snapshot, void (*done)(void *context),
                  void *context)
{
    snapshot_ref(snapshot);
    snapshot_set_remove(domain, snapshot);
    if (snapshot->pins == 0)
        snapshot_orphan_then(domain, &snapshot->id, done, context);
    else if (done)
        done(context);
    snapshot_unref(snapshot);
}

void snapshot_leave(struct domain *domain, struct snapshot *snapshot)
{
    leave(domain, snapshot, NULL, NULL);
}

int snapshot_check_ready(const struct snapshot *snapshot, struct error *err)
{
    if (snapshot->is_gone)
        return error_set(err, ERR_NOT_FOUND, 0, "snapshot %s was deleted", snapshot->id.text);
    if (snapshot->state == SNAPSHOT_IS_LOST)
        return error_set(err, ERR_GONE, 0, "snapshot %s is lost: its disk is not there any more",
                         snapshot->id.text);
    return 0;
}

/* --- delete ----------------------------------------------------------------------------------- */

struct deletion {
    struct domain_task task;
    struct domain *domain;
    struct snapshot *snapshot; /* a reference */
    snapshot_gone *done;       /* may be NULL */
    void *context;
    bool has_failed;
    struct error failure;
};

static void answer(struct domain_task *task)
{
    struct deletion *deletion = CONTAINER_OF(task, struct deletion, task);
    struct domain *domain = deletion->domain;

    if (deletion->done)
        deletion->done(deletion->context, deletion->has_failed ? &deletion->failure : NULL);
    snapshot_unref(deletion->snapshot);
    free(deletion);
    domain->works--;
    domain_check_gone(domain);
}

static void end(struct deletion *deletion, const struct error *failure)
{
    deletion->has_failed = failure != NULL;
    if (failure)
        deletion->failure = *failure;
    domain_defer(deletion->domain, &deletion->task, answer);
}

static void on_left(void *context)
{
    end(context, NULL);
}

static void on_kept(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct deletion *deletion = context;

    deletion->snapshot->is_going = false;
    if (failure) {
        end(deletion, failure);
        return;
    }
    CRASH_POINT("snapshot.delete.kept");
    event_kept(deletion->domain, receipt);
    if (deletion->snapshot->is_gone) /* with its sandbox, meanwhile */
        end(deletion, NULL);
    else
        leave(deletion->domain, deletion->snapshot, on_left, deletion);
}

static int check(const struct domain *domain, const struct caller *caller,
                 const struct snapshot *snapshot, struct error *err)
{
    const char *user;

    if (!domain_is_open(domain, err))
        return -1;
    if (!caller_may_write(caller))
        return error_set(err, ERR_FORBIDDEN, 0, "this key may not delete snapshots");
    if (snapshot->is_gone || snapshot->is_going)
        return error_set(err, ERR_NOT_FOUND, 0, "snapshot %s is being deleted already",
                         snapshot->id.text);
    user = template_of_snapshot(domain, &snapshot->id);
    if (user)
        return error_set(err, ERR_CONFLICT, 0,
                         "the template '%s' is made from snapshot %s; delete that first", user,
                         snapshot->id.text);
    return 0;
}

void snapshot_delete(struct domain *domain, const struct caller *caller, struct snapshot *snapshot,
                     snapshot_gone *done, void *context)
{
    struct deletion *deletion = mem_alloc(sizeof(*deletion));
    const struct store_condition is_it = {.column = STORE_SNAPSHOT_ID,
                                          .comparison = STORE_EQUAL,
                                          .value = store_text(snapshot->id.text)};
    struct store_transaction *change;
    struct error err = ERROR_INIT;

    *deletion = (struct deletion){
        .domain = domain, .snapshot = snapshot_ref(snapshot), .done = done, .context = context};
    domain->works++;
    if (check(domain, caller, snapshot, &err) < 0) {
        end(deletion, &err);
        return;
    }
    snapshot->is_going = true;
    change = store_begin(domain->options.store);
    store_delete(change, STORE_SNAPSHOT, &is_it, 1);
    snapshot_add_event(domain, change, caller, snapshot, "snapshot.deleted");
    domain_commit(domain, change, on_kept, deletion);
}
