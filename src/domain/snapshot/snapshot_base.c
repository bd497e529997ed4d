/* What a disk was like once: a snapshot whose layers the object store has, so that the next offload
 * stores no more than what is different since.
 *
 *     made from a snapshot, rolled back to it    that snapshot
 *     brought back from the object store         one that is made of it then (SNAPSHOT_SLEEP)
 *
 * The second kind belongs to its sandbox: it goes when the disk is stored again, and with the
 * sandbox. It costs nothing when it is made and as much as is changed afterwards; its size is in
 * the owner's quota. None is made of a disk whose last copy had to be made file by file: in a plain
 * pool one that lies on as many layers as may be, where others are shared.
 *
 * Which snapshot it is makes no difference to what is stored being right, only to how much it is:
 * the difference is found by looking at both disks. */
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "domain/sandbox/sandbox_quota.h"
#include "domain/sandbox/sandbox_record.h"
#include "domain/snapshot/snapshot_internal.h"
#include "domain/snapshot/snapshot_set.h"
#include "domain/stored_disk.h"

/* Nobody else's: layers of one owner are not seen by another. */
static bool is_usable(const struct domain *domain, const struct snapshot *snapshot,
                      const struct sandbox *sandbox)
{
    return snapshot && snapshot->is_kept && !snapshot->is_going &&
           snapshot->state == SNAPSHOT_IS_READY && id_equal(&snapshot->owner, &sandbox->owner) &&
           strcmp(snapshot->node, domain->options.node) == 0;
}

static bool is_too_long(const struct snapshot *snapshot)
{
    AUTO(stored_disk) struct stored_disk disk = {.layers = NULL};
    struct error err = ERROR_INIT;

    return snapshot->layers && (stored_disk_read(snapshot->layers, &disk, &err) < 0 ||
                                disk.count >= STORED_DISK_LONGEST);
}

struct snapshot *snapshot_base_take(struct domain *domain, const struct sandbox *sandbox)
{
    struct snapshot *snapshot = snapshot_set_by_id(domain, sandbox->base.text);

    if (!is_usable(domain, snapshot, sandbox) || is_too_long(snapshot))
        return NULL;
    snapshot_pin(snapshot);
    return snapshot;
}

struct snapshot *snapshot_own_base(const struct domain *domain, const struct sandbox *sandbox)
{
    struct snapshot *snapshot = snapshot_set_by_id(domain, sandbox->base.text);

    return snapshot && snapshot->is_kept && snapshot->reason == SNAPSHOT_SLEEP &&
                   id_equal(&snapshot->sandbox, &sandbox->id)
               ? snapshot
               : NULL;
}

void snapshot_base_set(struct domain *domain, struct sandbox *sandbox, const struct id *base)
{
    struct snapshot *own = snapshot_own_base(domain, sandbox);
    struct caller system = caller_system();

    if (own && !id_equal(&own->id, base) && !own->is_going)
        snapshot_delete(domain, &system, own, NULL, NULL);
    sandbox->base = *base;
}

struct snapshot *snapshot_start_take(struct domain *domain, const struct sandbox *sandbox,
                                     size_t *ret_layers)
{
    AUTO(stored_disk) struct stored_disk disk = {.layers = NULL};
    struct snapshot *longest = NULL;
    struct error err = ERROR_INIT;

    LIST_EACH (&domain->snapshots->all, at) {
        struct snapshot *snapshot = CONTAINER_OF(at, struct snapshot, link);

        if (snapshot->layers && is_usable(domain, snapshot, sandbox) &&
            stored_disk_begins(sandbox->stored, snapshot->layers) &&
            (!longest || strlen(snapshot->layers) > strlen(longest->layers)))
            longest = snapshot;
    }
    if (!longest || stored_disk_read(longest->layers, &disk, &err) < 0)
        return NULL;
    *ret_layers = disk.count;
    (void) snapshot_is_here(domain, longest);
    snapshot_pin(longest);
    return longest;
}

bool snapshot_base_is_wanted(const struct domain *domain, const struct sandbox *sandbox,
                             uint64_t bytes)
{
    struct error err = ERROR_INIT;

    return provider_capabilities(domain->options.provider) & PROVIDER_SNAPSHOTS &&
           !sandbox->is_copied && sandbox_quota_base(domain, &sandbox->owner, bytes, &err) == 0;
}

struct snapshot *snapshot_base_add(struct domain *domain, const struct sandbox *sandbox,
                                   const struct id *id, uint64_t bytes)
{
    AUTO(text) struct text spec = TEXT_INIT(SANDBOX_SPEC_MAX);
    struct snapshot like = {.id = *id,
                            .owner = sandbox->owner,
                            .sandbox = sandbox->id,
                            .inside = sandbox->inside,
                            .layers = sandbox->stored,
                            .reason = SNAPSHOT_SLEEP,
                            .size = bytes,
                            .created_ms = domain_wall_ms(domain)};

    sandbox_spec_write(&sandbox->spec, &spec);
    like.spec = (char *) text_string(&spec);
    (void) snprintf(like.node, sizeof(like.node), "%s", domain->options.node);
    return snapshot_set_add(domain, &like);
}
