/* Make: the copy is there and on disk, then its row is kept, then the answer is given.
 *
 *     name, quota ──► sessions ──► provider_snapshot ──► size ──► commit (row, event) ──► answered
 *                                      │ fails                        │ fails
 *                                      ▼                              ▼
 *                                  answered                       deleted, answered
 *
 * The sandbox is held meanwhile: it goes on, and everything else that is wished of it waits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "base/encoding/utf8.h"
#include "base/memory.h"
#include "domain/domain_share.h"
#include "domain/event/event.h"
#include "domain/sandbox/expiry.h"
#include "domain/sandbox/sandbox_quota.h"
#include "domain/sandbox/sandbox_record.h"
#include "domain/snapshot/snapshot_internal.h"
#include "domain/snapshot/snapshot_set.h"
#include "json/json_write.h"

#define EVENT_DATA_MAX 1024

/* --- the row --------------------------------------------------------------------------------- */

void snapshot_add_event(struct domain *domain, struct store_transaction *change,
                        const struct caller *caller, const struct snapshot *snapshot,
                        const char *type)
{
    AUTO(text) struct text data = TEXT_INIT(EVENT_DATA_MAX);
    struct json_writer json;

    json_writer_init_text(&json, &data);
    json_begin_object(&json);
    json_add_text(&json, "sandboxId", snapshot->sandbox.text);
    json_add_text(&json, "snapshotId", snapshot->id.text);
    if (snapshot->name)
        json_add_text(&json, "name", snapshot->name);
    json_add_text(&json, "reason", snapshot_reason_text(snapshot->reason));
    json_end_object(&json);
    (void) json_writer_finish(&json); /* a name is short: it fits */
    event_add(domain, change, caller, &snapshot->owner, snapshot->sandbox.text, type,
              text_string(&data));
}

static void snapshot_keeping_fail(struct snapshot_keeping *keeping, const struct error *failure);

static void on_kept(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct snapshot_keeping *keeping = context;
    struct domain *domain = keeping->domain;
    struct snapshot *snapshot = keeping->snapshot;

    if (failure) {
        snapshot_keeping_fail(keeping, failure);
        return;
    }
    CRASH_POINT("snapshot.kept");
    event_kept(domain, receipt);
    snapshot_set_list(domain, snapshot);
    keeping->done(keeping, NULL);
}

static void keep(struct snapshot_keeping *keeping)
{
    struct domain *domain = keeping->domain;
    struct store_transaction *change = store_begin(domain->options.store);
    struct store_value values[STORE_SNAPSHOT_COLUMN_COUNT];

    snapshot_row(keeping->snapshot, values);
    store_insert(change, STORE_SNAPSHOT, values);
    snapshot_add_event(domain, change, &keeping->caller, keeping->snapshot, "snapshot.created");
    domain_commit(domain, change, on_kept, keeping);
}

/* Nobody knows of it yet: it goes as it came. */
static void snapshot_keeping_fail(struct snapshot_keeping *keeping, const struct error *failure)
{
    snapshot_orphan(keeping->domain, &keeping->snapshot->id);
    snapshot_set_remove(keeping->domain, TAKE_PTR(keeping->snapshot));
    keeping->done(keeping, failure);
}

/* Only now it is known how much the owner would hold. */
static void on_sized(void *context, const struct error *failure, uint64_t bytes)
{
    struct snapshot_keeping *keeping = context;
    struct error err = ERROR_INIT;

    if (failure || bytes > INT64_MAX)
        bytes = 0;
    if (sandbox_quota_base(keeping->domain, &keeping->snapshot->owner, bytes, &err) < 0) {
        snapshot_keeping_fail(keeping, &err);
        return;
    }
    snapshot_set_size(keeping->domain, keeping->snapshot, bytes);
    keep(keeping);
}

/* Its own account is empty as long as it shares everything: what it holds is what the disk held. */
void snapshot_keep(struct snapshot_keeping *keeping)
{
    struct domain *domain = keeping->domain;
    const struct disk_ref disk = {DISK_OF_SANDBOX, keeping->snapshot->sandbox};

    CRASH_POINT("snapshot.made");
    if (domain->stage == DOMAIN_OPEN)
        provider_disk_usage(domain->options.provider, &disk, on_sized, keeping);
    else
        keep(keeping);
}

/* --- making one ------------------------------------------------------------------------------ */

struct making {
    struct snapshot_shot shot;
    struct snapshot_keeping keeping;
    struct snapshot *snapshot; /* of the set; NULL: it was refused, or is gone again */
    snapshot_done *done;       /* may be NULL */
    void *context;
};

/* The wish is over, in whatever way. */
static void on_over(void *context, const struct error *failure, struct sandbox *sandbox)
{
    struct making *making = context;
    struct domain *domain = making->keeping.domain;
    struct snapshot *snapshot = making->snapshot;

    if (failure && snapshot) { /* nothing was copied: it waited, or the provider refused */
        snapshot_set_remove(domain, snapshot);
        snapshot = NULL;
    }
    if (making->done)
        making->done(making->context, failure, snapshot, failure ? NULL : &making->shot.how);
    if (!failure && sandbox)
        snapshot_prune(domain, sandbox, snapshot->reason);
    snapshot_shot_done(&making->shot);
    free(making);
}

static void finish(struct making *making, const struct error *failure)
{
    struct sandbox_wish *wish = making->shot.wish;

    wish->sandbox->is_held = false;
    expiry_watch(wish->domain, wish->sandbox);
    wish_end(wish, failure); /* which lets others have their turn */
}

static void on_keeping_over(struct snapshot_keeping *keeping, const struct error *failure)
{
    struct making *making = CONTAINER_OF(keeping, struct making, keeping);

    making->snapshot = keeping->snapshot;
    finish(making, failure);
}

static void on_shot(struct snapshot_shot *shot, const struct error *failure)
{
    struct making *making = CONTAINER_OF(shot, struct making, shot);

    if (failure) {
        finish(making, failure);
        return;
    }
    making->snapshot->inside = TAKE_PTR(shot->inside);
    making->snapshot->created_ms = domain_wall_ms(making->keeping.domain);
    snapshot_keep(&making->keeping);
}

static void act(struct sandbox_wish *wish)
{
    struct making *making = wish->context;

    wish->sandbox->is_held = true;
    snapshot_shoot(&making->shot);
}

/* --- the beginning --------------------------------------------------------------------------- */

static int check_name(const struct domain *domain, const struct id *owner, const char *name,
                      struct error *err)
{
    size_t length = strlen(name);

    if (length == 0 || length > SNAPSHOT_NAME_MAX || id_is_valid(name) ||
        !utf8_is_valid(name, length) || strpbrk(name, "\n\r\t/"))
        return error_set(err, ERR_INVALID, 0,
                         "name must be 1 to %d characters on one line without '/', and no id",
                         SNAPSHOT_NAME_MAX);
    if (snapshot_set_by_name(domain, owner, name))
        return error_set(err, ERR_CONFLICT, 0, "there is a snapshot '%s' already", name);
    return 0;
}

int snapshot_check_room(const struct domain *domain, const struct sandbox *sandbox, uint64_t bytes,
                        struct error *err)
{
    const struct snapshot_usage *usage = snapshot_set_usage(domain, &sandbox->owner);

    if (domain_check_share(domain, &sandbox->owner, SHARE_SNAPSHOTS, 1, err) < 0)
        return -1;
    return sandbox_quota_snapshot(domain, &sandbox->owner, usage ? usage->count - usage->bases : 0,
                                  bytes, err);
}

static int check(const struct domain *domain, const struct caller *caller,
                 const struct sandbox *sandbox, const struct snapshot_options *options,
                 struct error *err)
{
    if (!domain_is_open(domain, err))
        return -1;
    if (!caller_may_write(caller))
        return error_set(err, ERR_FORBIDDEN, 0, "this key may not make snapshots");
    if (snapshot_check_provider(domain, err) < 0 ||
        (options->name && check_name(domain, &sandbox->owner, options->name, err) < 0))
        return -1;
    if (options->expires_ms && options->expires_ms <= domain_wall_ms(domain))
        return error_set(err, ERR_INVALID, 0, "a snapshot cannot expire before it is made");
    return snapshot_check_room(domain, sandbox, 0, err);
}

/* As it is wished for; when it is made, the time and the sessions follow. */
static struct snapshot *add(struct making *making, const struct sandbox *sandbox,
                            const struct snapshot_options *options)
{
    struct domain *domain = making->keeping.domain;
    AUTO(text) struct text spec = TEXT_INIT(SANDBOX_SPEC_MAX);
    struct snapshot like = {.id = making->shot.id,
                            .owner = sandbox->owner,
                            .sandbox = sandbox->id,
                            .name = (char *) options->name,
                            .reason = options->reason,
                            .created_ms = domain_wall_ms(domain),
                            .expires_ms = options->expires_ms};

    sandbox_spec_write(&sandbox->spec, &spec);
    like.spec = (char *) text_string(&spec);
    (void) snprintf(like.node, sizeof(like.node), "%s", domain->options.node);
    return snapshot_set_add(domain, &like);
}

void snapshot_make(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                   const struct snapshot_options *options, snapshot_done *done, void *context)
{
    struct making *making = mem_alloc(sizeof(*making));
    struct sandbox_wish *wish =
        wish_make(domain, caller, sandbox, SANDBOX_ACTION_SNAPSHOT, act, on_over, making);
    struct error err = ERROR_INIT;

    making->done = done;
    making->context = context;
    making->shot = (struct snapshot_shot){
        .wish = wish, .id = id_new(), .no_freeze = options->no_freeze, .done = on_shot};
    making->keeping = (struct snapshot_keeping){
        .domain = domain, .caller = wish->caller, .done = on_keeping_over};
    if (check(domain, &wish->caller, sandbox, options, &err) < 0) {
        wish_end(wish, &err);
        return;
    }
    making->keeping.snapshot = making->snapshot = add(making, sandbox, options);
    wish_begin(wish);
}
