#include "provider/provider_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"

/* A state that a call leaves as it is. */
#define STAY RUN_STATE_COUNT

#define IN(state) RUN_STATE_BIT(state)

struct rule {
    const char *name;
    unsigned int capability;
    unsigned int permitted; /* RUN_STATE_BIT(...) */
    enum run_state during, after;
};

static const struct rule rules[PROVIDER_CALL_COUNT] = {
    [PROVIDER_CALL_OPEN] = {"open", 0, 0, STAY, STAY},
    [PROVIDER_CALL_CREATE] = {"create", 0, IN(ABSENT), RUN_STATE_CREATING, RUN_STATE_RUNNING},
    [PROVIDER_CALL_START] = {"start", PROVIDER_RESTART, IN(STOPPED), RUN_STATE_STARTING,
                             RUN_STATE_RUNNING},
    [PROVIDER_CALL_STOP] = {"stop", PROVIDER_RESTART, RUN_STATES_WHOLE, RUN_STATE_STOPPING,
                            RUN_STATE_STOPPED},
    [PROVIDER_CALL_DESTROY] = {"destroy", 0, RUN_STATES_ENDABLE, RUN_STATE_DESTROYING,
                               RUN_STATE_ABSENT},
    [PROVIDER_CALL_FREEZE] = {"freeze", PROVIDER_FREEZE, RUN_STATES_ALIVE, STAY, RUN_STATE_FROZEN},
    [PROVIDER_CALL_THAW] = {"thaw", PROVIDER_FREEZE, RUN_STATES_ALIVE, STAY, RUN_STATE_RUNNING},
    [PROVIDER_CALL_SET_LIMITS] = {"set_limits", PROVIDER_LIMITS, RUN_STATES_ALIVE, STAY, STAY},
    [PROVIDER_CALL_STATS] = {"stats", PROVIDER_STATS, RUN_STATES_WHOLE, STAY, STAY},
    [PROVIDER_CALL_LIST] = {"list", 0, 0, STAY, STAY},
    [PROVIDER_CALL_SOCKETS] = {"sockets", PROVIDER_PORTS, RUN_STATES_ALIVE, STAY, STAY},
    [PROVIDER_CALL_DISK_JOB] = {"disk_job", PROVIDER_DISK_JOBS, IN(STOPPED), STAY, STAY},
    [PROVIDER_CALL_OPEN_MOUNT] = {"open_mount", PROVIDER_MOUNTS, RUN_STATES_ALIVE, STAY, STAY},
    [PROVIDER_CALL_ATTACH_MOUNT] = {"attach_mount", PROVIDER_MOUNTS, RUN_STATES_ALIVE, STAY, STAY},
    [PROVIDER_CALL_DETACH_MOUNT] = {"detach_mount", PROVIDER_MOUNTS, RUN_STATES_ALIVE, STAY, STAY},
    [PROVIDER_CALL_SNAPSHOT] = {"snapshot", PROVIDER_SNAPSHOTS, RUN_STATES_WHOLE, STAY, STAY},
    [PROVIDER_CALL_DELETE_SNAPSHOT] = {"delete_snapshot", PROVIDER_SNAPSHOTS, 0, STAY, STAY},
    [PROVIDER_CALL_LIST_SNAPSHOTS] = {"list_snapshots", PROVIDER_SNAPSHOTS, 0, STAY, STAY},
    [PROVIDER_CALL_ROLL_BACK] = {"roll_back", PROVIDER_SNAPSHOTS, IN(STOPPED), STAY, STAY},
    [PROVIDER_CALL_DISK_USAGE] = {"disk_usage", PROVIDER_SNAPSHOTS, RUN_STATES_WHOLE, STAY, STAY},
    [PROVIDER_CALL_RECLAIM] = {"reclaim", PROVIDER_RECLAIM, IN(FROZEN), STAY, STAY},
    [PROVIDER_CALL_SYNC_DISKS] = {"sync_disks", 0, 0, STAY, STAY},
    [PROVIDER_CALL_SYNC_CONTENTS] = {"sync_contents", 0, 0, STAY, STAY},
    [PROVIDER_CALL_INSPECT] = {"inspect", 0, 0, STAY, STAY},
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
                                          enum run_state state)
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
    *entry = (struct provider_entry){.id = *id, .state = state};
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

static int refuse(enum run_state state, enum provider_call_kind kind, const struct id *id,
                  struct error *err)
{
    if (kind == PROVIDER_CALL_CREATE)
        return error_set(err, ERR_CONFLICT, 0, "there is a sandbox %s already", id->text);
    if (state == RUN_STATE_ABSENT || state == RUN_STATE_CREATING)
        return error_set(err, ERR_NOT_FOUND, 0, "there is no sandbox '%.*s'", ID_LENGTH, id->text);
    return error_set(err, ERR_CONFLICT, 0, "sandbox %s is %s: no %s now", id->text,
                     run_state_text(state), rules[kind].name);
}

int provider_table_begin(struct provider_table *table, enum provider_call_kind kind,
                         const struct id *id, enum run_state *ret_before, struct error *err)
{
    const struct rule *rule = &rules[kind];
    struct provider_entry *entry = provider_table_find(table, id);
    enum run_state state = entry ? entry->state : RUN_STATE_ABSENT;

    if (!(rule->permitted & 1u << state))
        return refuse(state, kind, id, err);
    if (!entry && !provider_table_add(table, id, rule->during))
        return error_set(err, ERR_UNAVAILABLE, 0, "there are %d sandboxes already",
                         PROVIDER_TABLE_MAX);
    if (entry && rule->during != STAY)
        entry->state = rule->during;
    *ret_before = state;
    return 0;
}

static void set_state(struct provider_table *table, struct provider_entry *entry,
                      enum run_state state)
{
    struct id id = entry->id;

    if (state == RUN_STATE_ABSENT)
        provider_table_remove(table, &id);
    else
        entry->state = state;
}

static bool succeed(struct provider_table *table, const struct rule *rule,
                    struct provider_entry *entry)
{
    /* Others may have come in between: a sandbox that ended is not frozen by an answer that was
     * under way. */
    bool applies =
        rule->during == STAY ? rule->permitted & 1u << entry->state : entry->state == rule->during;

    if (!applies || rule->after == STAY)
        return false;
    entry->ended = rule->after == RUN_STATE_STOPPED;
    entry->held = false;
    set_state(table, entry, rule->after);
    return false;
}

/* Back to what it was. What it was on the way to when the call began is not known any more. */
static bool fail(struct provider_table *table, const struct rule *rule,
                 struct provider_entry *entry, enum run_state before, struct ending *ret_ending)
{
    bool was_under_way = before == RUN_STATE_STOPPING || before == RUN_STATE_STARTING;
    bool held = entry->held;

    if (rule->during == STAY || entry->state != rule->during)
        return false;
    *ret_ending = entry->ending;
    entry->held = false;
    entry->ended |= held;
    set_state(table, entry, held ? RUN_STATE_STOPPED : was_under_way ? RUN_STATE_BROKEN : before);
    return held;
}

bool provider_table_end(struct provider_table *table, enum provider_call_kind kind,
                        const struct id *id, enum run_state before, bool success,
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

    if (!entry || entry->ended || entry->held || entry->state == RUN_STATE_CREATING)
        return false;
    if (entry->state == RUN_STATE_STOPPING || entry->state == RUN_STATE_DESTROYING) {
        entry->held = true;
        entry->ending = *ending;
        return false;
    }
    entry->ended = true;
    entry->state = RUN_STATE_STOPPED;
    return true;
}

bool provider_entry_is_visible(const struct provider_entry *entry)
{
    return entry->state != RUN_STATE_CREATING;
}

struct provider_sandbox provider_entry_sandbox(const struct provider_entry *entry)
{
    return (struct provider_sandbox){
        .id = entry->id, .state = run_state_shown(entry->state), .unenforced = entry->unenforced};
}
