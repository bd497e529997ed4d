#include "launcher/ids/id_range.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "launcher/ids/id_range_internal.h"
#include "sys/file/sys_lock.h"
#include "sys/process/sys_process.h"

/* Records read at once when all are wanted. */
#define LIST_STEP 256

static const char *const etc_names[ID_RANGE_STAMPS] = {"passwd", "group", "subuid", "subgid"};

/* A list that grows. */
struct entries {
    struct id_range_entry *all; /* owned */
    size_t count;
    size_t room;
};

static void auto_entries(struct entries *entries)
{
    free(entries->all);
}

static struct id_range range_of(const struct id_range_table *table, uint32_t slot)
{
    return (struct id_range){.first = table->first + slot * ID_RANGE_SIZE, .count = ID_RANGE_SIZE};
}

/* Where the search for a sandbox starts. */
static uint32_t home_of(const struct id_range_table *table, const struct id *sandbox)
{
    return (uint32_t) (id_range_checksum(sandbox->text, ID_LENGTH) % table->slots);
}

static uint32_t next_slot(const struct id_range_table *table, uint32_t slot)
{
    return slot + 1 == table->slots ? 0 : slot + 1;
}

static uint32_t previous_slot(const struct id_range_table *table, uint32_t slot)
{
    return slot == 0 ? table->slots - 1 : slot - 1;
}

/* Accounts may be added while we run. */
static int refresh_reserved(struct id_range_table *table, struct error *err)
{
    struct id_range_stamp stamps[ID_RANGE_STAMPS];
    char path[PATH_MAX + 16];

    memset(stamps, 0, sizeof(stamps));
    for (size_t i = 0; i < ID_RANGE_STAMPS; i++) {
        struct stat status;

        (void) snprintf(path, sizeof(path), "%s/%s", table->etc, etc_names[i]);
        if (stat(path, &status) < 0)
            continue;
        stamps[i] = (struct id_range_stamp){.inode = status.st_ino,
                                            .size = status.st_size,
                                            .seconds = status.st_ctim.tv_sec,
                                            .nanoseconds = status.st_ctim.tv_nsec};
    }
    if (memcmp(stamps, table->stamps, sizeof(stamps)) == 0)
        return 0;
    id_range_reserved_done(&table->reserved);
    if (id_range_reserved_read(&table->reserved, table->etc, table->process, err) < 0) {
        /* Unknown is not free. */
        table->reserved.overflowed = true;
        memset(table->stamps, 0, sizeof(table->stamps));
        return -1;
    }
    memcpy(table->stamps, stamps, sizeof(stamps));
    return 0;
}

/* Searching. Both results may be missing: then they are table->slots. */
struct search {
    uint32_t found;     /* the sandbox's own slot */
    uint32_t available; /* the first that could be given out */
};

static bool is_reserved(const struct id_range_table *table, uint32_t slot)
{
    struct id_range range = range_of(table, slot);

    return id_range_reserved_has(&table->reserved, range.first, range.count);
}

/* Passing over a reserved slot marks it, so that later searches pass over it as well, reserved or
 * not: the accounts of the host come and go. */
static int search_table(struct id_range_table *table, const struct id *sandbox, bool to_take,
                        struct search *ret_search)
{
    struct search search = {.found = table->slots, .available = table->slots};
    uint32_t slot = home_of(table, sandbox);
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < table->slots; i++, slot = next_slot(table, slot)) {
        struct id_range_record record;

        r = id_range_read(table, slot, &record, 1);
        if (r < 0)
            return r;
        if (record.state == STATE_TAKEN && strcmp(record.sandbox, sandbox->text) == 0) {
            search.found = slot;
            break;
        }
        if (record.state == STATE_TAKEN)
            continue;
        if (search.available == table->slots && !is_reserved(table, slot))
            search.available = slot;
        if (record.state == STATE_NEVER && (!to_take || search.available != table->slots))
            break;
        if (record.state == STATE_NEVER)
            r = id_range_write(table, slot, (struct id_range_record){.state = STATE_FREE});
    }
    *ret_search = search;
    return r;
}

static int check_id(const struct id *sandbox, struct error *err)
{
    if (memchr(sandbox->text, '\0', ID_SIZE) && id_is_valid(sandbox->text))
        return 0;
    return error_set(err, ERR_INVALID, 0, "not an id");
}

static int search_for(struct id_range_table *table, const struct id *sandbox, bool to_take,
                      struct search *ret_search, struct error *err)
{
    int r = search_table(table, sandbox, to_take, ret_search);

    return r < 0 ? error_set(err, ERR_INTERNAL, r, "read the table of id ranges") : 0;
}

/* The same, and it must be there. */
static int search_taken(struct id_range_table *table, const struct id *sandbox, uint32_t *ret_slot,
                        struct error *err)
{
    struct search search;

    if (search_for(table, sandbox, false, &search, err) < 0)
        return -1;
    if (search.found == table->slots)
        return error_set(err, ERR_NOT_FOUND, 0, "sandbox %s has no id range", sandbox->text);
    *ret_slot = search.found;
    return 0;
}

static int start_time(struct id_range_table *table, pid_t pid, uint64_t *ret_start)
{
    int r = 0;

    if (pid != table->self)
        r = sys_process_start_time(pid, ret_start);
    else
        *ret_start = table->self_start;
    if (r == 0 && pid == getpid()) {
        table->self = pid;
        table->self_start = *ret_start;
    }
    return r;
}

static int make_record(struct id_range_table *table, const struct id *sandbox, pid_t owner,
                       struct id_range_record *ret_record, struct error *err)
{
    uint64_t start = 0;
    int r = start_time(table, owner, &start);

    if (r < 0)
        return error_set(err, ERR_NOT_FOUND, r, "the owner of the id range of %s", sandbox->text);
    *ret_record = (struct id_range_record){.state = STATE_TAKEN,
                                           .owner = (uint32_t) owner,
                                           .owner_start = start,
                                           .user = table->user,
                                           .pids = table->pids};
    memcpy(ret_record->sandbox, sandbox->text, ID_SIZE);
    return 0;
}

/* A record of another user of the table's whose process ended. With it all others of the sandbox
 * did: it was PID 1, or who started a job and takes it along. Nobody else would give it back. */
static bool is_abandoned(const struct id_range_table *table, uint64_t user, uint64_t pids,
                         pid_t owner, uint64_t owner_start)
{
    uint64_t start;

    if (user == 0 || user == table->user || pids == 0 || pids != table->pids)
        return false;
    return sys_process_start_time(owner, &start) < 0 || start != owner_start;
}

static bool is_slot_abandoned(struct id_range_table *table, uint32_t slot)
{
    struct id_range_record record;

    return id_range_read(table, slot, &record, 1) == 0 &&
           is_abandoned(table, record.user, record.pids, (pid_t) record.owner, record.owner_start);
}

static int take_locked(struct id_range_table *table, const struct id *sandbox,
                       struct id_range *ret_range, struct error *err)
{
    struct search search;
    struct id_range_record record;
    int r;

    if (search_for(table, sandbox, true, &search, err) < 0)
        return -1;
    if (search.found != table->slots && is_slot_abandoned(table, search.found))
        search.available = search.found;
    else if (search.found != table->slots)
        return error_set(err, ERR_CONFLICT, 0, "sandbox %s has an id range already", sandbox->text);
    if (search.available == table->slots)
        return error_set(err, ERR_UNAVAILABLE, 0, "all %u id ranges are in use", table->slots);
    if (make_record(table, sandbox, getpid(), &record, err) < 0)
        return -1;
    r = id_range_write(table, search.available, record);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "write the table of id ranges");
    *ret_range = range_of(table, search.available);
    return 0;
}

int id_range_take(struct id_range_table *table, const struct id *sandbox,
                  struct id_range *ret_range, struct error *err)
{
    int r;

    if (check_id(sandbox, err) < 0 || refresh_reserved(table, err) < 0)
        return -1;
    if (table->reserved.overflowed)
        return error_set(err, ERR_UNAVAILABLE, 0, "too many accounts on this host");
    if (id_range_lock(table, err) < 0)
        return -1;
    r = take_locked(table, sandbox, ret_range, err);
    sys_lock_release(table->file);
    return r;
}

static int hand_over_locked(struct id_range_table *table, const struct id *sandbox, pid_t owner,
                            struct error *err)
{
    struct id_range_record record;
    uint32_t slot;
    int r;

    if (search_taken(table, sandbox, &slot, err) < 0 ||
        make_record(table, sandbox, owner, &record, err) < 0)
        return -1;
    r = id_range_write(table, slot, record);
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "write the table of id ranges") : 0;
}

int id_range_hand_over(struct id_range_table *table, const struct id *sandbox, pid_t owner,
                       struct error *err)
{
    int r;

    if (check_id(sandbox, err) < 0 || id_range_lock(table, err) < 0)
        return -1;
    r = hand_over_locked(table, sandbox, owner, err);
    sys_lock_release(table->file);
    return r;
}

int id_range_find(struct id_range_table *table, const struct id *sandbox,
                  struct id_range *ret_range, struct error *err)
{
    uint32_t slot;
    int r;

    if (check_id(sandbox, err) < 0 || id_range_lock(table, err) < 0)
        return -1;
    r = search_taken(table, sandbox, &slot, err);
    if (r == 0)
        *ret_range = range_of(table, slot);
    sys_lock_release(table->file);
    return r;
}

/* Free again. Where a search would end at the next slot anyway, this one and the free ones before
 * it may end it too; without that, old traces would make every search longer. A crash half way
 * leaves longer searches, not wrong ones. */
static int clear_slot(struct id_range_table *table, uint32_t slot)
{
    struct id_range_record record;
    int r = id_range_read(table, next_slot(table, slot), &record, 1);

    if (r < 0 || record.state != STATE_NEVER || table->slots == 1)
        return r < 0 ? r
                     : id_range_write(table, slot, (struct id_range_record){.state = STATE_FREE});
    do {
        r = id_range_write(table, slot, (struct id_range_record){.state = STATE_NEVER});
        slot = previous_slot(table, slot);
        if (r == 0)
            r = id_range_read(table, slot, &record, 1);
    } while (r == 0 && record.state == STATE_FREE);
    return r;
}

static int release_locked(struct id_range_table *table, const struct id *sandbox, struct error *err)
{
    uint32_t slot;
    int r;

    if (search_taken(table, sandbox, &slot, err) < 0)
        return -1;
    r = clear_slot(table, slot);
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "write the table of id ranges") : 0;
}

int id_range_release(struct id_range_table *table, const struct id *sandbox, struct error *err)
{
    int r;

    if (check_id(sandbox, err) < 0 || id_range_lock(table, err) < 0)
        return -1;
    r = release_locked(table, sandbox, err);
    sys_lock_release(table->file);
    return r;
}

static void append_entry(const struct id_range_table *table, uint32_t slot,
                         const struct id_range_record *record, struct entries *entries)
{
    struct id_range_entry *entry;

    if (record->state != STATE_TAKEN || !id_is_valid(record->sandbox))
        return;
    if (entries->count == entries->room) {
        entries->room = entries->room ? entries->room * 2 : 64;
        entries->all = mem_resize(entries->all, entries->room * sizeof(*entries->all));
    }
    entry = &entries->all[entries->count++];
    *entry = (struct id_range_entry){.range = range_of(table, slot),
                                     .owner = (pid_t) record->owner,
                                     .owner_start = record->owner_start,
                                     .user = record->user,
                                     .pids = record->pids};
    memcpy(entry->sandbox.text, record->sandbox, ID_SIZE);
}

static int list_locked(struct id_range_table *table, struct entries *entries, struct error *err)
{
    struct id_range_record records[LIST_STEP];

    for (uint32_t slot = 0; slot < table->slots; slot += LIST_STEP) {
        uint32_t left = table->slots - slot;
        uint32_t count = left < LIST_STEP ? left : LIST_STEP;
        int r = id_range_read(table, slot, records, count);

        if (r < 0)
            return error_set(err, ERR_INTERNAL, r, "read the table of id ranges");
        for (uint32_t i = 0; i < count; i++)
            append_entry(table, slot + i, &records[i], entries);
    }
    return 0;
}

int id_range_list(struct id_range_table *table, struct id_range_entry **ret_entries,
                  size_t *ret_count, struct error *err)
{
    AUTO(entries) struct entries entries = {.all = NULL};
    int r;

    if (id_range_lock(table, err) < 0)
        return -1;
    r = list_locked(table, &entries, err);
    sys_lock_release(table->file);
    if (r < 0)
        return -1;
    *ret_entries = TAKE_PTR(entries.all);
    *ret_count = entries.count;
    return 0;
}

bool id_range_is_for_us(const struct id_range_table *table, const struct id_range_entry *entry)
{
    return entry->user == 0 || entry->user == table->user;
}

static bool owner_lives(const struct id_range_entry *entry)
{
    uint64_t start;

    return sys_process_start_time(entry->owner, &start) == 0 && start == entry->owner_start;
}

/* Release what was seen, unless it changed hands meanwhile. */
static int release_seen(struct id_range_table *table, const struct id_range_entry *seen,
                        struct error *err)
{
    struct id_range_record record = {.state = STATE_NEVER};
    uint32_t slot;
    int r;

    if (id_range_lock(table, err) < 0)
        return -1;
    r = search_taken(table, &seen->sandbox, &slot, NULL);
    if (r == 0)
        r = id_range_read(table, slot, &record, 1);
    if (r == 0 && record.owner == (uint32_t) seen->owner && record.owner_start == seen->owner_start)
        r = clear_slot(table, slot) < 0 ? -1 : 1;
    sys_lock_release(table->file);
    return r < 0 ? 0 : r;
}

int id_range_recover(struct id_range_table *table, id_range_is_gone is_gone, void *context,
                     size_t *ret_released, struct error *err)
{
    AUTO(free) struct id_range_entry *entries = NULL;
    size_t count, released = 0;

    if (id_range_list(table, &entries, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        int r;

        /* Its owner may be in another pid namespace, where pids mean others. */
        if (!id_range_is_for_us(table, &entries[i]) &&
            !is_abandoned(table, entries[i].user, entries[i].pids, entries[i].owner,
                          entries[i].owner_start))
            continue;
        if (owner_lives(&entries[i]) || !is_gone(context, &entries[i].sandbox))
            continue;
        r = release_seen(table, &entries[i], err);
        if (r < 0)
            return -1;
        released += (size_t) r;
    }
    *ret_released = released;
    return 0;
}

/* --- tables of earlier versions ---------------------------------------------------------------- */

/* The very range that it has. A search from its home must come to it. */
static int import_locked(struct id_range_table *table, const struct id_range_entry *entry)
{
    struct id_range_record record = {.state = STATE_TAKEN,
                                     .owner = (uint32_t) entry->owner,
                                     .owner_start = entry->owner_start,
                                     .user = table->user,
                                     .pids = table->pids};
    uint32_t wanted = (entry->range.first - table->first) / ID_RANGE_SIZE, slot;
    struct id_range_record found;
    int r = id_range_read(table, wanted, &found, 1);

    if (r < 0 || found.state == STATE_TAKEN)
        return r;
    for (slot = home_of(table, &entry->sandbox); r == 0 && slot != wanted;
         slot = next_slot(table, slot)) {
        r = id_range_read(table, slot, &found, 1);
        if (r == 0 && found.state == STATE_NEVER)
            r = id_range_write(table, slot, (struct id_range_record){.state = STATE_FREE});
    }
    memcpy(record.sandbox, entry->sandbox.text, ID_SIZE);
    return r < 0 ? r : id_range_write(table, wanted, record);
}

static int import_entries(struct id_range_table *table, const struct id_range_entry *entries,
                          size_t count, struct error *err)
{
    int r = 0;

    if (id_range_lock(table, err) < 0)
        return -1;
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (owner_lives(&entries[i]) && entries[i].range.first >= table->first &&
            (entries[i].range.first - table->first) / ID_RANGE_SIZE < table->slots)
            r = import_locked(table, &entries[i]);
    }
    sys_lock_release(table->file);
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "take over an earlier table of id ranges") : 0;
}

int id_range_import(struct id_range_table *table, const char *folder, struct error *err)
{
    struct id_range_options options = {.folder = folder, .etc = table->etc, .boot = table->boot};
    AUTO(id_range_table) struct id_range_table *old = NULL;
    AUTO(free) struct id_range_entry *entries = NULL;
    size_t count;

    if (access(folder, F_OK) < 0)
        return 0;
    if (id_range_table_open(&options, &old, err) < 0 ||
        id_range_list(old, &entries, &count, err) < 0)
        return error_wrap(err, "an earlier table of id ranges in %s", folder);
    return import_entries(table, entries, count, err);
}
