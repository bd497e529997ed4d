/* The sandboxes that a provider knows: what each is up to, and which call it can have now.
 *
 *     create        stop                   destroy
 *     ──────► running ◄──► frozen    from anywhere ──────► gone
 *                │   ▲
 *           stop │   │ start          running or frozen, and its PID 1 ends ──► stopped
 *                ▼   │
 *               stopped               broken: found, but parts are missing
 *
 * A call names its sandbox at its beginning (provider_table_begin: is it there, may it be asked
 * this now?) and at its end (provider_table_end). In between the sandbox is `creating`, `starting`,
 * `stopping` or `destroying`. The rules are one table in provider_table.c.
 *
 * Also decides which exits are told: each once, and not those that a stop or destroy asked for.
 *
 * One thread. Entries are borrowed until the table changes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "provider/provider.h"

/* As many as there are ranges of ids on one host. */
#define PROVIDER_TABLE_MAX 65536

enum provider_call_kind {
    PROVIDER_CALL_OPEN,
    PROVIDER_CALL_CREATE,
    PROVIDER_CALL_START,
    PROVIDER_CALL_STOP,
    PROVIDER_CALL_DESTROY,
    PROVIDER_CALL_FREEZE,
    PROVIDER_CALL_THAW,
    PROVIDER_CALL_SET_LIMITS,
    PROVIDER_CALL_STATS,
    PROVIDER_CALL_LIST,
    PROVIDER_CALL_SOCKETS,
    PROVIDER_CALL_DISK_JOB,
    PROVIDER_CALL_OPEN_MOUNT,
    PROVIDER_CALL_ATTACH_MOUNT,
    PROVIDER_CALL_DETACH_MOUNT,
    PROVIDER_CALL_SNAPSHOT,
    PROVIDER_CALL_DELETE_SNAPSHOT,
    PROVIDER_CALL_LIST_SNAPSHOTS,
    PROVIDER_CALL_ROLL_BACK,
    PROVIDER_CALL_DISK_USAGE,
    PROVIDER_CALL_RECLAIM,
    PROVIDER_CALL_SYNC_DISKS,
    PROVIDER_CALL_SYNC_CONTENTS,
    PROVIDER_CALL_INSPECT,
    PROVIDER_CALL_COUNT
};

/* "create", "set_limits", ... */
const char *provider_call_name(enum provider_call_kind kind);

/* The capability that a call needs; 0: none. */
unsigned int provider_call_capability(enum provider_call_kind kind);

struct provider_entry {
    struct id id;
    enum run_state state;
    unsigned int unenforced;
    bool ended;           /* its end was told, or asked for */
    bool held;            /* it ended while a stop or destroy was under way: */
    struct ending ending; /* told when that fails */
};

struct provider_table {
    struct provider_entry *entries; /* owned; sorted by id */
    size_t count, capacity;
};

void provider_table_done(struct provider_table *table);

/* NULL: not known. */
struct provider_entry *provider_table_find(const struct provider_table *table, const struct id *id);

/* NULL: the id is taken, or the table is full. */
struct provider_entry *provider_table_add(struct provider_table *table, const struct id *id,
                                          enum run_state state);

/* No error when it is not there. */
void provider_table_remove(struct provider_table *table, const struct id *id);

/* A call begins. Returns 0 and the state before it; -1 with ERR_NOT_FOUND, ERR_CONFLICT (create:
 * the id is taken; others: not while the sandbox is ...), or ERR_UNAVAILABLE: the table is full. */
int provider_table_begin(struct provider_table *table, enum provider_call_kind kind,
                         const struct id *id, enum run_state *ret_before, struct error *err);

/* It ends. Returns true when an exit was held back and must be told now, as `ret_ending` says. */
bool provider_table_end(struct provider_table *table, enum provider_call_kind kind,
                        const struct id *id, enum run_state before, bool success,
                        struct ending *ret_ending);

/* A sandbox's PID 1 ended. Returns whether that must be told now. */
bool provider_table_exit(struct provider_table *table, const struct id *id,
                         const struct ending *ending);

/* Whether others may see this entry. */
bool provider_entry_is_visible(const struct provider_entry *entry);

/* What others see of it. */
struct provider_sandbox provider_entry_sandbox(const struct provider_entry *entry);
