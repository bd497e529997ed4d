/* Snapshots, and disks that go back to one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "launcher/residents/residents.h"

/* --- those that end with us ------------------------------------------------------------------ */

static size_t place_of(const struct residents *all, const struct id *id)
{
    size_t place = 0;

    while (place < all->snapshot_count && strcmp(all->snapshots[place].text, id->text) != 0)
        place++;
    return place;
}

static bool is_ours(const struct residents *all, const struct id *id)
{
    return all->is_once ? place_of(all, id) < all->snapshot_count
                        : !instance_others_have(all->run, all->name, id);
}

void residents_add_snapshot(struct residents *all, const struct id *id)
{
    const struct record record = {.id = *id, .is_snapshot = true, .image = IMAGE_HOST};

    if (!all->is_once || place_of(all, id) < all->snapshot_count)
        return;
    (void) record_write(all->instance->records, all->boot, &record);
    all->snapshots = mem_resize(all->snapshots, (all->snapshot_count + 1) * sizeof(*id));
    all->snapshots[all->snapshot_count++] = *id;
}

static void forget_snapshot(struct residents *all, const struct id *id)
{
    size_t place = place_of(all, id);

    if (place == all->snapshot_count)
        return;
    (void) record_remove(all->instance->records, id);
    all->snapshots[place] = all->snapshots[--all->snapshot_count];
}

void residents_delete_snapshots(struct residents *all)
{
    while (all->snapshot_count) {
        struct id id = all->snapshots[all->snapshot_count - 1];

        (void) disk_pool_delete_snapshot(all->site->host.pool, &id, NULL);
        forget_snapshot(all, &id);
    }
}

/* --- sources --------------------------------------------------------------------------------- */

static int find_sandbox(struct residents *all, const struct id *id, struct resident **ret_running,
                        struct error *err)
{
    struct resident *resident = residents_find(all, id, NULL);

    *ret_running = NULL;
    if (resident && resident->state == RESIDENT_RUNNING) {
        *ret_running = resident;
        return 0;
    }
    if (resident && !(resident->is_down && resident->keep_disk))
        return error_set(err, ERR_CONFLICT, 0, "sandbox %s is just being started or ended",
                         id->text);
    if (!resident && residents_find_disk(all, id, err) < 0)
        return -1;
    if (porter_makes(all->porter, id))
        return error_set(err, ERR_CONFLICT, 0, "the disk of sandbox %s is being made", id->text);
    return 0;
}

int residents_find_source(struct residents *all, const struct disk_ref *disk,
                          struct resident **ret_running, struct error *err)
{
    if (disk->set == DISK_OF_SANDBOX)
        return find_sandbox(all, &disk->id, ret_running, err);
    *ret_running = NULL;
    return is_ours(all, &disk->id)
               ? 0
               : error_set(err, ERR_NOT_FOUND, 0, "there is no snapshot %s", disk->id.text);
}

/* --- making one ------------------------------------------------------------------------------ */

static void remove_snapshot(struct residents *all, const struct id *id)
{
    (void) disk_pool_delete_snapshot(all->site->host.pool, id, NULL);
    forget_snapshot(all, id);
}

static void snapshot_done(struct resident_copy *copy, const struct error *failure)
{
    struct residents *all = copy->all;
    uint64_t now = clock_monotonic_ns(all->loop->clock);
    struct snapshot_made made = {
        .pause_us = copy->pause_us,
        .took_us = (now - copy->began_ns) / 1000,
        .is_copied = copy->job.copies,
    };

    /* What nobody is told of must not stay: too late, or its daemon is gone. */
    if (!copy->request || (failure && failure->code != ERR_CONFLICT))
        remove_snapshot(all, &copy->job.task.target);
    if (copy->request)
        all->hooks.snapshot_made(all->hooks.context, copy->request, &made, failure);
}

/* A name that is taken would otherwise be found out by the porter, and then deleted as a failure.
 */
static int check_name(struct residents *all, const struct id *id, struct error *err)
{
    if (porter_makes(all->porter, id) ||
        disk_pool_has(all->site->host.pool, DISK_POOL_SNAPSHOTS, id))
        return error_set(err, ERR_CONFLICT, 0, "there is a snapshot %s already", id->text);
    return 0;
}

int residents_snapshot(struct residents *all, const struct wire_snapshot *asked, uint64_t request,
                       struct error *err)
{
    AUTO(free) struct resident_copy *copy = NULL;
    struct resident *running;

    if (find_sandbox(all, &asked->id, &running, err) < 0 ||
        check_name(all, &asked->snapshot, err) < 0)
        return -1;
    if (running && running->freeze_request)
        return error_set(err, ERR_CONFLICT, 0, "sandbox %s is just being frozen", asked->id.text);
    copy = mem_alloc(sizeof(*copy));
    *copy = (struct resident_copy){.all = all, .request = request, .done = snapshot_done};
    copy->job.task = (struct porter_task){.work = PORTER_SNAPSHOT,
                                          .from = DISK_POOL_DISKS,
                                          .source = asked->id,
                                          .target = asked->snapshot};
    residents_add_snapshot(all, &asked->snapshot);
    if (resident_copy_begin(copy, running, asked->freeze, err) < 0) {
        forget_snapshot(all, &asked->snapshot);
        return -1;
    }
    (void) TAKE_PTR(copy);
    return 0;
}

/* --- what can be done with it ---------------------------------------------------------------- */

int residents_delete_snapshot(struct residents *all, const struct id *id, struct error *err)
{
    if (!is_ours(all, id))
        return 0;
    if (porter_makes(all->porter, id))
        return error_set(err, ERR_CONFLICT, 0, "snapshot %s is being made", id->text);
    if (disk_pool_has(all->site->host.pool, DISK_POOL_SNAPSHOTS, id) &&
        disk_pool_delete_snapshot(all->site->host.pool, id, err) < 0)
        return -1;
    forget_snapshot(all, id);
    return 0;
}

static void is_done(struct resident_copy *copy, const struct error *failure)
{
    if (copy->request)
        copy->all->hooks.done(copy->all->hooks.context, copy->request, failure);
}

int residents_roll_back(struct residents *all, const struct wire_roll_back *asked, uint64_t request,
                        struct error *err)
{
    const struct disk_ref from = {DISK_OF_SNAPSHOT, asked->snapshot};
    AUTO(free) struct resident_copy *copy = NULL;
    struct resident *running;

    if (find_sandbox(all, &asked->id, &running, err) < 0)
        return -1;
    if (running)
        return error_set(err, ERR_CONFLICT, 0, "sandbox %s runs: stop it first", asked->id.text);
    if (residents_check_unneeded(all, &asked->id, err) < 0)
        return -1;
    if (residents_find_source(all, &from, &running, err) < 0)
        return -1;
    copy = mem_alloc(sizeof(*copy));
    *copy = (struct resident_copy){.all = all, .request = request, .done = is_done};
    copy->job.task = (struct porter_task){.work = PORTER_ROLL_BACK,
                                          .from = DISK_POOL_SNAPSHOTS,
                                          .source = asked->snapshot,
                                          .target = asked->id,
                                          .limit = asked->disk_bytes};
    if (resident_copy_begin(copy, NULL, false, err) < 0)
        return -1;
    (void) TAKE_PTR(copy);
    return 0;
}

int residents_sync(struct residents *all, bool contents, uint64_t request, struct error *err)
{
    AUTO(free) struct resident_copy *work = mem_alloc(sizeof(*work));

    *work = (struct resident_copy){.all = all, .request = request, .done = is_done};
    work->job.task = (struct porter_task){.work = PORTER_SYNC, .contents = contents};
    if (resident_copy_begin(work, NULL, false, err) < 0)
        return -1;
    (void) TAKE_PTR(work);
    return 0;
}

int residents_disk_usage(struct residents *all, const struct disk_ref *disk, uint64_t *ret_bytes,
                         struct error *err)
{
    bool is_snapshot = disk->set == DISK_OF_SNAPSHOT;
    struct disk_usage usage;

    if (is_snapshot ? !is_ours(all, &disk->id)
                    : !residents_find(all, &disk->id, NULL) &&
                          residents_find_disk(all, &disk->id, NULL) < 0)
        return error_set(err, ERR_NOT_FOUND, 0, "there is no %s %s",
                         is_snapshot ? "snapshot" : "sandbox", disk->id.text);
    if (disk_pool_usage(all->site->host.pool, is_snapshot ? DISK_POOL_SNAPSHOTS : DISK_POOL_DISKS,
                        &disk->id, &usage, err) < 0)
        return -1;
    *ret_bytes = usage.used;
    return 0;
}

/* --- the list -------------------------------------------------------------------------------- */

static int compare(const void *one, const void *other)
{
    return memcmp(((const struct id *) one)->text, ((const struct id *) other)->text, ID_LENGTH);
}

int residents_list_snapshots(struct residents *all, const struct id *after,
                             struct wire_snapshots_listed *ret_page, struct error *err)
{
    AUTO(free) struct id *ids = NULL;
    size_t count = 0;

    if (disk_pool_list(all->site->host.pool, DISK_POOL_SNAPSHOTS, &ids, &count, err) < 0)
        return -1;
    if (count)
        qsort(ids, count, sizeof(*ids), compare);
    *ret_page = (struct wire_snapshots_listed){.more = false};
    for (size_t i = 0; i < count; i++) {
        /* Not those that nobody was promised yet. */
        if (memcmp(ids[i].text, after->text, ID_LENGTH) <= 0 ||
            porter_makes(all->porter, &ids[i]) || !is_ours(all, &ids[i]))
            continue;
        if (ret_page->names.count == WIRE_LIST_PAGE) {
            ret_page->more = true;
            break;
        }
        ret_page->names.items[ret_page->names.count++].id = ids[i];
    }
    return 0;
}
