#include "launcher/residents/residents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "launcher/cgroup/cgroup_freeze.h"
#include "launcher/cgroup/cgroup_weight.h"
#include "launcher/fuse/fuse_mount.h"
#include "sys/process/sys_process.h"

/* --- the table ------------------------------------------------------------------------------- */

/* Where the id is, or would go. */
static size_t place_of(const struct residents *all, const struct id *id)
{
    size_t low = 0, high = all->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (memcmp(all->sorted[middle]->sandbox.id.text, id->text, ID_LENGTH) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct residents *all, size_t place, const struct id *id)
{
    return place < all->count &&
           memcmp(all->sorted[place]->sandbox.id.text, id->text, ID_LENGTH) == 0;
}

struct resident *resident_add(struct residents *all, const struct id *id)
{
    struct resident *resident = mem_alloc(sizeof(*resident));
    size_t place = place_of(all, id);

    *resident = (struct resident){
        .all = all, .sandbox = SANDBOX_INIT, .record.id = *id, .hold = JANITOR_HOLD_INIT};
    resident->sandbox.id = *id;
    list_init(&resident->killers);
    list_init(&resident->served);
    list_init(&resident->copies);
    if (all->count == all->capacity) {
        all->capacity = all->capacity ? 2 * all->capacity : 64;
        all->sorted = mem_resize(all->sorted, all->capacity * sizeof(struct resident *));
    }
    memmove(&all->sorted[place + 1], &all->sorted[place],
            (all->count - place) * sizeof(struct resident *));
    all->sorted[place] = resident;
    all->count++;
    return resident;
}

static void free_resident(struct resident *resident)
{
    resident_copy_source_ended(resident);
    event_loop_remove(resident->all->loop, &resident->exit);
    event_loop_remove(resident->all->loop, &resident->status);
    event_timer_clear(&resident->timer);
    sandbox_forget(&resident->sandbox);
    janitor_hold_done(&resident->hold);
    resident_drop_mounts(resident);
    free(resident);
}

void resident_drop(struct resident *resident)
{
    struct residents *all = resident->all;
    size_t place = place_of(all, &resident->sandbox.id);
    struct id id = resident->sandbox.id;
    bool has_disk = resident->is_down ? resident->keep_disk : resident->had_disk;

    (void) record_remove(all->instance->records, &id);
    memmove(&all->sorted[place], &all->sorted[place + 1],
            (all->count - place - 1) * sizeof(struct resident *));
    all->count--;
    all->given_up -= resident->teardown_gave_up;
    free_resident(resident);
    if (has_disk)
        residents_add_stopped(all, &id);
    if (all->count == all->given_up)
        all->hooks.empty(all->hooks.context);
}

struct resident *residents_find(struct residents *all, const struct id *id, struct error *err)
{
    size_t place = place_of(all, id);

    if (is_at(all, place, id))
        return all->sorted[place];
    (void) error_set(err, ERR_NOT_FOUND, 0, "there is no sandbox %s", id->text);
    return NULL;
}

struct resident *residents_find_running(struct residents *all, const struct id *id,
                                        struct error *err)
{
    struct resident *resident = residents_find(all, id, err);

    if (!resident)
        return NULL;
    if (resident->state == RESIDENT_RUNNING)
        return resident;
    if (resident->state == RESIDENT_POOLED)
        (void) error_set(err, ERR_CONFLICT, 0, "sandbox %s is in the warm pool", id->text);
    else
        (void) error_set(err, ERR_CONFLICT, 0, "sandbox %s does not run", id->text);
    return NULL;
}

void residents_forget_requests(struct residents *all)
{
    for (size_t i = 0; i < all->count; i++) {
        struct resident *resident = all->sorted[i];

        /* Nobody will ever know of it, unless it has a disk: then the next daemon does. */
        if (resident->state <= RESIDENT_STARTING) {
            resident_abandon(resident);
            resident->was_told = !resident->had_disk;
        }
        resident->start_request = 0;
        resident->freeze_request = 0;
        resident_orphan_mounts(resident);
        resident_answer_killers(resident, false, NULL);
    }
    LIST_EACH (&all->copies, at)
        CONTAINER_OF(at, struct resident_copy, link)->request = 0;
}

/* --- life of the table ----------------------------------------------------------------------- */

static uint32_t find_enforced(const struct site *site)
{
    static const struct {
        enum cgroup_controller controller;
        enum limit limit;
    } rows[] = {
        {CGROUP_MEMORY, LIMIT_MEMORY},
        {CGROUP_PIDS, LIMIT_PIDS},
        {CGROUP_CPU, LIMIT_CPU},
        {CGROUP_SWAP, LIMIT_SWAP},
    };
    uint32_t enforced = LIMIT_BIT(FILES);

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (!cgroup_host_missing(site->cgroups, rows[i].controller))
            enforced |= WIRE_BIT(rows[i].limit);
    }
    if (disk_pool_is_limited(site->host.pool))
        enforced |= LIMIT_BIT(DISK);
    return enforced;
}

static void make_network_ahead(struct event_timer *timer)
{
    site_make_network_ahead(CONTAINER_OF(timer, struct residents, network_ahead)->site);
}

int residents_init(struct residents *all, struct error *err)
{
    int r = record_read_boot(all->boot);

    list_init(&all->copies);
    all->network_ahead.fire = make_network_ahead;
    all->weighing.fire = residents_weigh;
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "read the id of this boot");
    all->enforced = find_enforced(all->site);
    all->fuse_control = fuse_mount_control();
    all->can_mount = all->fuse_control >= 0 && fuse_mount_try() == 0;
    return 0;
}

void residents_done(struct residents *all)
{
    event_timer_clear(&all->network_ahead);
    event_timer_clear(&all->weighing);
    residents_forget_requests(all);
    residents_drop_copies(all);
    for (size_t i = 0; i < all->count; i++)
        free_resident(all->sorted[i]);
    if (all->fuse_control > 0)
        all->fuse_control = fd_close(all->fuse_control);
    free(all->sorted);
    all->sorted = NULL;
    all->count = all->capacity = 0;
    free(all->stopped);
    all->stopped = NULL;
    all->stopped_count = 0;
    free(all->snapshots);
    all->snapshots = NULL;
    all->snapshot_count = 0;
}

/* --- those without processes ----------------------------------------------------------------- */

static size_t stopped_place(const struct residents *all, const struct id *id)
{
    size_t place = 0;

    while (place < all->stopped_count && strcmp(all->stopped[place].text, id->text) != 0)
        place++;
    return place;
}

int residents_find_disk(struct residents *all, const struct id *id, struct error *err)
{
    bool is_ours = all->is_once ? stopped_place(all, id) < all->stopped_count
                                : !instance_others_have(all->run, all->name, id);

    if (!is_ours)
        return error_set(err, ERR_NOT_FOUND, 0, "there is no sandbox %s", id->text);
    /* A power cut may have left half of it. */
    return disk_pool_adopt(all->site->host.pool, id, err);
}

int residents_check_unneeded(struct residents *all, const struct id *id, struct error *err)
{
    if (porter_needs(all->porter, id))
        return error_set(err, ERR_CONFLICT, 0, "the disk of sandbox %s is being copied", id->text);
    return 0;
}

int residents_find_stopped(struct residents *all, const struct id *id, struct error *err)
{
    return residents_find_disk(all, id, err) < 0 ? -1 : residents_check_unneeded(all, id, err);
}

/* For whoever takes over when we are killed: a disk that nobody was promised. */
static int write_unpromised(struct residents *all, const struct id *id)
{
    struct record record = {.id = *id, .fresh = true, .image = IMAGE_HOST};

    return record_write(all->instance->records, all->boot, &record);
}

int residents_begin_disk(struct residents *all, const struct id *id, struct error *err)
{
    AUTO(disk) struct disk disk = DISK_INIT;
    int r;

    if (residents_find(all, id, NULL) ||
        disk_pool_open_disk(all->site->host.pool, id, &disk, NULL) == 0)
        return error_set(err, ERR_CONFLICT, 0, "there is a sandbox %s already", id->text);
    if (residents_check_unneeded(all, id, err) < 0)
        return -1;
    r = write_unpromised(all, id);
    return r < 0 ? error_set(err, error_code_from_errno(r), r, "write down disk %s", id->text) : 0;
}

void residents_end_disk(struct residents *all, const struct id *id)
{
    (void) record_remove(all->instance->records, id);
}

void residents_add_stopped(struct residents *all, const struct id *id)
{
    if (!all->is_once || stopped_place(all, id) < all->stopped_count)
        return;
    (void) write_unpromised(all, id);
    all->stopped = mem_resize(all->stopped, (all->stopped_count + 1) * sizeof(*id));
    all->stopped[all->stopped_count++] = *id;
}

void residents_drop_stopped(struct residents *all, const struct id *id)
{
    size_t place = stopped_place(all, id);

    if (place == all->stopped_count)
        return;
    if (!residents_find(all, id, NULL))
        (void) record_remove(all->instance->records, id);
    all->stopped[place] = all->stopped[--all->stopped_count];
}

/* --- records and adoption -------------------------------------------------------------------- */

int resident_write_record(struct resident *resident, struct error *err)
{
    struct residents *all = resident->all;
    int r;

    resident->record.pid = resident->sandbox.pid;
    resident->record.start_time = resident->sandbox.started;
    r = record_write(all->instance->records, all->boot, &resident->record);
    return r < 0 ? error_set(err, error_code_from_errno(r), r, "write down sandbox %s",
                             resident->sandbox.id.text)
                 : 0;
}

/* The process of a record, if it is still the one that was written down. */
static bool find_process(struct resident *resident)
{
    const struct record *record = &resident->record;
    AUTO(close) int pidfd = record->pid > 0 ? sys_process_open(record->pid) : -EBADF;
    uint64_t started;

    if (pidfd < 0 || sys_process_start_time(record->pid, &started) < 0 ||
        started != record->start_time)
        return false;
    resident->sandbox.pid = record->pid;
    resident->sandbox.started = started;
    resident->sandbox.pidfd = TAKE_FD(pidfd);
    return true;
}

static void find_resources(struct resident *resident)
{
    struct residents *all = resident->all;
    struct sandbox *sandbox = &resident->sandbox;
    struct cgroup_freeze_state state = {0};

    /* What is missing shows when it is needed; a sandbox without it still runs and can be killed.
     */
    if (cgroup_adopt(all->site->cgroups, &sandbox->id, &sandbox->cgroup, NULL, NULL) < 0)
        sandbox->cgroup = (struct cgroup){.host = all->site->cgroups, .id = sandbox->id};
    (void) id_range_find(all->site->host.ids, &sandbox->id, &sandbox->ids, NULL);
    /* One that an earlier launcher held still for a moment goes on. */
    if (resident->record.is_held)
        (void) cgroup_thaw(&sandbox->cgroup, CGROUP_WHOLE, NULL);
    else if (cgroup_freeze_state(&sandbox->cgroup, CGROUP_WHOLE, &state, NULL) == 0)
        resident->is_frozen = state.asked;
}

/* Those that nobody said an owner of have a part of their own, as before there were owners. */
static void find_weight(struct resident *resident)
{
    const struct cgroup *cgroup = &resident->sandbox.cgroup;

    if (resident->record.owner.text[0])
        (void) cgroup_weight(cgroup, &resident->weight, NULL);
    else if (cgroup_set_weight(cgroup, CGROUP_WEIGHT_FULL, NULL) == 0)
        resident->weight = CGROUP_WEIGHT_FULL;
}

static int adopt_one(struct residents *all, const struct record *record, struct error *err)
{
    static const struct ending unknown = {.kind = ENDED_UNKNOWN};
    struct resident *resident = resident_add(all, &record->id);

    resident->record = *record;
    resident->had_disk = !record->fresh;
    /* One that was never whole was never promised to anybody, unless it had a disk before. */
    resident->was_told = record->was_told || (!record->ready && record->fresh);
    resident->has_old_mounts = true;
    resident->keep_disk =
        record->was_killed || record->has_ended ? record->keep_disk : resident_keeps_disk(resident);
    find_resources(resident);
    if (record->has_ended || !find_process(resident)) {
        resident_ended(resident, record->has_ended ? &record->ending : &unknown);
        return 0;
    }
    resident->state = record->pooled ? RESIDENT_POOLED : RESIDENT_RUNNING;
    if (resident_watch_exit(resident, err) < 0)
        return -1;
    find_weight(resident);
    if (!all->weighing.is_set)
        event_timer_set(all->loop, &all->weighing, 0);
    if (record->is_held) {
        resident->record.is_held = false;
        (void) resident_write_record(resident, NULL);
    }
    return record->was_killed || !record->ready ? resident_send_kill(resident, err) : 0;
}

static bool is_gone(void *context, const struct id *id)
{
    struct residents *all = context;
    struct cgroup cgroup;

    return !residents_find(all, id, NULL) && !instance_others_have(all->run, all->name, id) &&
           cgroup_adopt(all->site->cgroups, id, &cgroup, NULL, NULL) < 0;
}

int residents_give_back_ranges(struct residents *all, struct error *err)
{
    size_t released = 0;

    return id_range_recover(all->site->host.ids, is_gone, all, &released, err);
}

int residents_adopt(struct residents *all, struct error *err)
{
    AUTO(free) struct id *ids = NULL;
    size_t count = 0;
    int r = record_list(all->instance->records, &ids, &count);

    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "read the records of sandboxes");
    for (size_t i = 0; i < count; i++) {
        struct record record;

        r = record_read(all->instance->records, all->boot, &ids[i], &record);
        if (r == -EINVAL) /* of an earlier boot: nothing of it runs */
            (void) record_remove(all->instance->records, &ids[i]);
        else if (r == 0 && record.is_snapshot)
            residents_add_snapshot(all, &ids[i]);
        else if (r == 0 && adopt_one(all, &record, err) < 0)
            return -1;
    }
    if (residents_give_back_ranges(all, err) < 0)
        return -1;
    if (count)
        LOG_INFO(all->log, "sandboxes of an earlier launcher found",
                 log_number("count", (int64_t) count));
    return 0;
}

/* --- lists ----------------------------------------------------------------------------------- */

struct wire_entry resident_entry(const struct resident *resident)
{
    static const enum run_state states[] = {
        [RESIDENT_COPYING] = RUN_STATE_RUNNING, [RESIDENT_STARTING] = RUN_STATE_RUNNING,
        [RESIDENT_POOLED] = RUN_STATE_POOLED,   [RESIDENT_RUNNING] = RUN_STATE_RUNNING,
        [RESIDENT_ENDING] = RUN_STATE_STOPPING, [RESIDENT_LEAVING] = RUN_STATE_STOPPING,
    };
    bool is_alive = resident->state < RESIDENT_LEAVING;

    /* One that is down is there only until its end was told. */
    return (struct wire_entry){
        .id = resident->sandbox.id,
        .state = resident->state == RESIDENT_RUNNING && resident->is_frozen ? RUN_STATE_FROZEN
                 : resident->is_down                                        ? RUN_STATE_STOPPED
                                     : states[resident->state],
        .pid = is_alive ? (uint32_t) resident->sandbox.pid : 0,
        .start_time = is_alive ? resident->sandbox.started : 0,
    };
}

/* Collects the smallest ids after a given one, as many as a page holds and one more. */
struct page {
    struct wire_entry entries[WIRE_LIST_PAGE + 1];
    size_t count;
    const struct id *after;
};

/* Whether it is one of the smallest so far: cheap to know, unlike the rest about a disk. */
static bool page_wants(const struct page *page, const struct id *id)
{
    if (memcmp(id->text, page->after->text, ID_LENGTH) <= 0)
        return false;
    return page->count < ARRAY_COUNT(page->entries) ||
           memcmp(id->text, page->entries[page->count - 1].id.text, ID_LENGTH) < 0;
}

static void page_add(struct page *page, const struct wire_entry *entry)
{
    size_t place = page->count;

    if (!page_wants(page, &entry->id))
        return;
    while (place > 0 && memcmp(page->entries[place - 1].id.text, entry->id.text, ID_LENGTH) > 0)
        place--;
    if (page->count == ARRAY_COUNT(page->entries))
        page->count--;
    memmove(&page->entries[place + 1], &page->entries[place],
            (page->count - place) * sizeof(*entry));
    page->entries[place] = *entry;
    page->count++;
}

/* Not those that nobody was promised yet, nor those whose end was promised. */
static bool is_shown(const struct resident *resident)
{
    return resident->state > RESIDENT_STARTING &&
           (resident->state < RESIDENT_ENDING || resident->keep_disk);
}

int residents_list(struct residents *all, const struct id *after, struct wire_listed *ret_page,
                   struct error *err)
{
    static const struct id none = {""};
    struct page page = {.after = *after->text ? after : &none};
    AUTO(free) struct id *found = NULL;
    const struct id *disks = all->stopped;
    size_t disk_count = all->stopped_count;

    if (!all->is_once) {
        if (disk_pool_list(all->site->host.pool, DISK_POOL_DISKS, &found, &disk_count, err) < 0)
            return -1;
        disks = found;
    }
    for (size_t i = 0; i < all->count; i++) {
        struct wire_entry entry = resident_entry(all->sorted[i]);

        if (is_shown(all->sorted[i]))
            page_add(&page, &entry);
    }
    for (size_t i = 0; i < disk_count; i++) {
        struct wire_entry entry = {.id = disks[i], .state = RUN_STATE_STOPPED};

        if (page_wants(&page, &disks[i]) && !residents_find(all, &disks[i], NULL) &&
            (all->is_once || !instance_others_have(all->run, all->name, &disks[i])))
            page_add(&page, &entry);
    }
    *ret_page = (struct wire_listed){.more = page.count > WIRE_LIST_PAGE};
    ret_page->entries.count = ret_page->more ? WIRE_LIST_PAGE : page.count;
    memcpy(ret_page->entries.items, page.entries,
           ret_page->entries.count * sizeof(struct wire_entry));
    return 0;
}
