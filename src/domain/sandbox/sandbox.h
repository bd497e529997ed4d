/* A sandbox as the daemon knows it, in memory and as a row.
 *
 * `struct sandbox` belongs to the domain: others read it, and keep hold of it only by a use
 * (sandbox_use.h). What a user may wish for is in `struct sandbox_spec` (model/spec.h), whose JSON form
 * is kept in the row (sandbox_record.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"
#include "base/list.h"
#include "base/table.h"
#include "model/spec.h"
#include "provider/provider.h"

/* What a task's sandbox is called: its kind, and the label that has the task's id. All sandboxes with
 * the same label share a task's budget. */
#define SANDBOX_KIND_TASK  "task"
#define SANDBOX_LABEL_TASK "task"

#define SANDBOX_INSIDE_MAX ((size_t) 64 * 1024) /* of `inside`: more is not kept */

struct creation;

struct sandbox {
    struct table_link by_id;
    struct table_link by_name; /* owner and name; in the table only when it has one */
    struct list link;          /* all, oldest first */

    struct id id;
    struct id owner;
    char node[64];
    int64_t epoch;
    struct sandbox_spec spec;
    enum sandbox_status status;
    char *reason; /* owned, never NULL: why it is so */
    char *inside; /* owned, may be NULL: sessions to bring back at wake, as JSON */
    char *stored; /* owned, may be NULL: its disk in the object store: {"layers":[...],"bytes":n} */
    struct id
        base; /* a snapshot that its disk was like once, ""; it may be gone: snapshot_base.c */
    uint64_t restored_files; /* by the last wake, from the mirror of its workspace */
    bool is_disk_new;  /* kept: a power cut would take its disk away, which is empty: new_disks.h */
    bool is_disk_lost; /* it gets another one at the next start: sandbox_rebuild.c */
    bool is_rebuilding;       /* kept: that has begun, and is not done */
    bool is_ended_by_request; /* stopped because somebody asked: a use does not start it */
    unsigned int unenforced;  /* LIMIT_BIT(...): wished for and not to be had */
    int64_t created_ms, updated_ms, active_ms, started_ms; /* wall time; started 0: not running */

    /* The domain's own. */
    struct creation *creation; /* while it is being created; sandbox_create.c */
    uint64_t idle_since_ns;    /* monotonic: when the last use ended or work was last seen */
    uint64_t started_ns;       /* monotonic, as far as known: of max_runtime */
    uint64_t asleep_ns;        /* monotonic, as far as known: since when it is frozen, hibernated */
    uint64_t save_ns;     /* monotonic: its disk is not stored before that, because it failed */
    uint64_t squash_ns;   /* monotonic: its layers are not squashed before that: it failed */
    uint64_t restore_ns;  /* monotonic: it is not fetched before that, because it failed */
    uint64_t snapshot_ns; /* monotonic, as far as known: of the last one made by itself */
    uint64_t look_ns;     /* monotonic: when something may be due, while in the schedule */
    uint64_t patience_ns; /* monotonic: nothing is tried before that, because it failed */
    size_t place;         /* in the schedule, plus 1; 0: not in it */
    struct list waiting;  /* of struct sandbox_wish: what waits for its turn */
    struct list wanted;   /* of struct sandbox_use: those that wait until it runs */
    struct list unkept;   /* of those whose row is not as they are */
    struct list new_disk; /* of those whose disk is new: new_disks.c */
    const char *event;    /* static: what the unkept change has to tell; NULL: nothing */
    unsigned int wishes;  /* that wait */
    unsigned int uses;    /* open ones */
    unsigned int references;
    enum err_code restore_code; /* how it failed: restore_ns */
    struct ending ending;       /* the last one that was told */
    bool has_ended;             /* by itself, while something was under way: `ending` */
    bool is_unexplained;        /* found ended after a restart, nobody knows how */
    bool is_asked;              /* its agent was asked what goes on inside */
    bool is_held;               /* it is being changed: everything else waits */
    bool is_environment_late;   /* its agent does not know its variables yet */
    bool is_saving;             /* its disk is being stored */
    bool is_copied;             /* the last copy of its disk was made file by file */
    bool is_reclaimed;          /* frozen, and its memory is in swap */
    bool is_disk_left;          /* `stored` is its disk; what the provider has is to be deleted */
};

/* How deep it sleeps. Only with SANDBOX_TIER_OFFLOADED `stored` is set, and then it is its disk. */
enum sandbox_tier {
    SANDBOX_TIER_RUNNING,
    SANDBOX_TIER_FROZEN,
    SANDBOX_TIER_RECLAIMED,
    SANDBOX_TIER_HIBERNATED, /* also of stopped ones: processes ended, the disk is here */
    SANDBOX_TIER_OFFLOADED,
    SANDBOX_TIER_COUNT
};

enum sandbox_tier sandbox_tier(const struct sandbox *sandbox);
const char *sandbox_tier_text(enum sandbox_tier tier);
