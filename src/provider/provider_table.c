#include "provider/provider_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"

#define IN(phase) (1u << PROVIDER_PHASE_##phase)
#define ALIVE     (IN(RUNNING) | IN(FROZEN))

/* A phase that a call leaves as it is. */
#define STAY PROVIDER_PHASE_COUNT

struct rule {
    const char *name;
    unsigned int capability;
    unsigned int permitted; /* bit per phase */
    enum provider_phase during, after;
};

static const struct rule rules[PROVIDER_CALL_COUNT] = {
    [PROVIDER_CALL_OPEN] = {"open", 0, 0, STAY, STAY},
    [PROVIDER_CALL_CREATE] = {"create", 0, IN(ABSENT), PROVIDER_PHASE_CREATING,
                              PROVIDER_PHASE_RUNNING},
    [PROVIDER_CALL_START] = {"start", PROVIDER_RESTART, IN(STOPPED), PROVIDER_PHASE_STARTING,
                             PROVIDER_PHASE_RUNNING},
    [PROVIDER_CALL_STOP] = {"stop", PROVIDER_RESTART, ALIVE | IN(STOPPED), PROVIDER_PHASE_STOPPING,
                            PROVIDER_PHASE_STOPPED},
    [PROVIDER_CALL_DESTROY] = {"destroy", 0,
                               ALIVE | IN(STOPPING) | IN(STOPPED) | IN(STARTING) | IN(BROKEN),
                               PROVIDER_PHASE_DESTROYING, PROVIDER_PHASE_ABSENT},
    [PROVIDER_CALL_FREEZE] = {"freeze", PROVIDER_FREEZE, ALIVE, STAY, PROVIDER_PHASE_FROZEN},
    [PROVIDER_CALL_THAW] = {"thaw", PROVIDER_FREEZE, ALIVE, STAY, PROVIDER_PHASE_RUNNING},
    [PROVIDER_CALL_SET_LIMITS] = {"set_limits", PROVIDER_LIMITS, ALIVE, STAY, STAY},
    [PROVIDER_CALL_STATS] = {"stats", PROVIDER_STATS, ALIVE | IN(STOPPED), STAY, STAY},
    [PROVIDER_CALL_LIST] = {"list", 0, 0, STAY, STAY},
    [PROVIDER_CALL_SOCKETS] = {"sockets", PROVIDER_PORTS, ALIVE, STAY, STAY},
    [PROVIDER_CALL_DISK_JOB] = {"disk_job", PROVIDER_DISK_JOBS, IN(STOPPED), STAY, STAY},
    [PROVIDER_CALL_OPEN_MOUNT] = {"open_mount", PROVIDER_MOUNTS, ALIVE, STAY, STAY},
    [PROVIDER_CALL_ATTACH_MOUNT] = {"attach_mount", PROVIDER_MOUNTS, ALIVE, STAY, STAY},
    [PROVIDER_CALL_DETACH_MOUNT] = {"detach_mount", PROVIDER_MOUNTS, ALIVE, STAY, STAY},
    [PROVIDER_CALL_SNAPSHOT] = {"snapshot", PROVIDER_SNAPSHOTS, ALIVE | IN(STOPPED), STAY, STAY},
    [PROVIDER_CALL_DELETE_SNAPSHOT] = {"delete_snapshot", PROVIDER_SNAPSHOTS, 0, STAY, STAY},
    [PROVIDER_CALL_LIST_SNAPSHOTS] = {"list_snapshots", PROVIDER_SNAPSHOTS, 0, STAY, STAY},
    [PROVIDER_CALL_ROLL_BACK] = {"roll_back", PROVIDER_SNAPSHOTS, IN(STOPPED), STAY, STAY},
    [PROVIDER_CALL_DISK_USAGE] = {"disk_usage", PROVIDER_SNAPSHOTS, ALIVE | IN(STOPPED), STAY,
                                  STAY},
    [PROVIDER_CALL_RECLAIM] = {"reclaim", PROVIDER_RECLAIM, IN(FROZEN), STAY, STAY},
    [PROVIDER_CALL_SYNC_DISKS] = {"sync_disks", 0, 0, STAY, STAY},
    [PROVIDER_CALL_SYNC_CONTENTS] = {"sync_contents", 0, 0, STAY, STAY},
};

static const struct {
    const char *name;
    enum run_state state; /* what others see */
} phases[PROVIDER_PHASE_COUNT] = {
    [PROVIDER_PHASE_ABSENT] = {"absent", RUN_STATE_BROKEN},
    [PROVIDER_PHASE_CREATING] = {"being created", RUN_STATE_BROKEN},
    [PROVIDER_PHASE_RUNNING] = {"running", RUN_STATE_RUNNING},
    [PROVIDER_PHASE_FROZEN] = {"frozen", RUN_STATE_FROZEN},
    [PROVIDER_PHASE_STOPPING] = {"being stopped", RUN_STATE_STOPPING},
    [PROVIDER_PHASE_STOPPED] = {"stopped", RUN_STATE_STOPPED},
    [PROVIDER_PHASE_STARTING] = {"being started", RUN_STATE_STOPPED},
    [PROVIDER_PHASE_BROKEN] = {"broken", RUN_STATE_BROKEN},
    [PROVIDER_PHASE_DESTROYING] = {"being destroyed", RUN_STATE_STOPPING},
};

const char *provider_call_name(enum provider_call_kind kind)
{
    return rules[kind].name;
}

unsigned int provider_call_capability(enum provider_call_kind kind)
{
    return rules[kind].capability;
}

void provider_table_done(struct provider_table *table)
{
    free(table->entries);
    *table = (struct provider_table){.count = 0};
}

/* The first place whose id is not below `id`. */
static size_t place_of(const struct provider_table *table, const struct id *id)
{
    size_t low = 0, high = table->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(table->entries[middle].id.text, id->text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct provider_table *table, size_t place, const struct id *id)
{
    return place < table->count && strcmp(table->entries[place].id.text, id->text) == 0;
}

struct provider_entry *provider_table_find(const struct provider_table *table, const struct id *id)
{
    size_t place = place_of(table, id);

    return is_at(table, place, id) ? &table->entries[place] : NULL;
}

struct provider_entry *provider_table_add(struct provider_table *table, const struct id *id,
                                          enum provider_phase phase)
{
    size_t place = place_of(table, id);
    struct provider_entry *entry;

    if (is_at(table, place, id) || table->count >= PROVIDER_TABLE_MAX)
        return NULL;
    if (table->count == table->capacity) {
        table->capacity = table->capacity ? table->capacity * 2 : 16;
        table->entries = mem_resize(table->entries, table->capacity * sizeof(*table->entries));
    }
    entry = &table->entries[place];
    memmove(entry + 1, entry, (table->count - place) * sizeof(*entry));
    *entry = (struct provider_entry){.id = *id, .phase = phase};
    table->count++;
    return entry;
}

void provider_table_remove(struct provider_table *table, const struct id *id)
{
    size_t place = place_of(table, id);
    struct provider_entry *entry;

    if (!is_at(table, place, id))
        return;
    entry = &table->entries[place];
    table->count--;
    memmove(entry, entry + 1, (table->count - place) * sizeof(*entry));
}

static int refuse(enum provider_phase phase, enum provider_call_kind kind, const struct id *id,
                  struct error *err)
{
    if (kind == PROVIDER_CALL_CREATE)
        return error_set(err, ERR_CONFLICT, 0, "there is a sandbox %s already", id->text);
    if (phase == PROVIDER_PHASE_ABSENT || phase == PROVIDER_PHASE_CREATING)
        return error_set(err, ERR_NOT_FOUND, 0, "there is no sandbox '%.*s'", ID_LENGTH, id->text);
    return error_set(err, ERR_CONFLICT, 0, "sandbox %s is %s: no %s now", id->text,
                     phases[phase].name, rules[kind].name);
}

int provider_table_begin(struct provider_table *table, enum provider_call_kind kind,
                         const struct id *id, enum provider_phase *ret_before, struct error *err)
{
    const struct rule *rule = &rules[kind];
    struct provider_entry *entry = provider_table_find(table, id);
    enum provider_phase phase = entry ? entry->phase : PROVIDER_PHASE_ABSENT;

    if (!(rule->permitted & 1u << phase))
        return refuse(phase, kind, id, err);
    if (!entry && !provider_table_add(table, id, rule->during))
        return error_set(err, ERR_UNAVAILABLE, 0, "there are %d sandboxes already",
                         PROVIDER_TABLE_MAX);
    if (entry && rule->during != STAY)
        entry->phase = rule->during;
    *ret_before = phase;
    return 0;
}

static void set_phase(struct provider_table *table, struct provider_entry *entry,
                      enum provider_phase phase)
{
    struct id id = entry->id;

    if (phase == PROVIDER_PHASE_ABSENT)
        provider_table_remove(table, &id);
    else
        entry->phase = phase;
}

static bool succeed(struct provider_table *table, const struct rule *rule,
                    struct provider_entry *entry)
{
    /* Others may have come in between: a sandbox that ended is not frozen by an answer that was
     * under way. */
    bool applies =
        rule->during == STAY ? rule->permitted & 1u << entry->phase : entry->phase == rule->during;

    if (!applies || rule->after == STAY)
        return false;
    entry->ended = rule->after == PROVIDER_PHASE_STOPPED;
    entry->held = false;
    set_phase(table, entry, rule->after);
    return false;
}

/* Back to what it was. What it was on the way to when the call began is not known any more. */
static bool fail(struct provider_table *table, const struct rule *rule,
                 struct provider_entry *entry, enum provider_phase before,
                 struct ending *ret_ending)
{
    bool was_under_way = before == PROVIDER_PHASE_STOPPING || before == PROVIDER_PHASE_STARTING;
    bool held = entry->held;

    if (rule->during == STAY || entry->phase != rule->during)
        return false;
    *ret_ending = entry->ending;
    entry->held = false;
    entry->ended |= held;
    set_phase(table, entry,
              held            ? PROVIDER_PHASE_STOPPED
              : was_under_way ? PROVIDER_PHASE_BROKEN
                              : before);
    return held;
}

bool provider_table_end(struct provider_table *table, enum provider_call_kind kind,
                        const struct id *id, enum provider_phase before, bool success,
                        struct ending *ret_ending)
{
    struct provider_entry *entry = provider_table_find(table, id);

    if (!entry)
        return false;
    return success ? succeed(table, &rules[kind], entry)
                   : fail(table, &rules[kind], entry, before, ret_ending);
}

bool provider_table_exit(struct provider_table *table, const struct id *id,
                         const struct ending *ending)
{
    struct provider_entry *entry = provider_table_find(table, id);

    if (!entry || entry->ended || entry->held || entry->phase == PROVIDER_PHASE_CREATING)
        return false;
    if (entry->phase == PROVIDER_PHASE_STOPPING || entry->phase == PROVIDER_PHASE_DESTROYING) {
        entry->held = true;
        entry->ending = *ending;
        return false;
    }
    entry->ended = true;
    entry->phase = PROVIDER_PHASE_STOPPED;
    return true;
}

bool provider_entry_is_visible(const struct provider_entry *entry)
{
    return entry->phase != PROVIDER_PHASE_CREATING;
}

struct provider_sandbox provider_entry_sandbox(const struct provider_entry *entry)
{
    return (struct provider_sandbox){
        .id = entry->id, .state = phases[entry->phase].state, .unenforced = entry->unenforced};
}
