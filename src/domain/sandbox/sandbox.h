/* A sandbox as the daemon knows it, in memory and as a row.
 *
 * `struct sandbox` belongs to the domain: others read it, and keep hold of it only by a use
 * (sandbox_use.h). What a user may wish for is in `struct sandbox_spec`, whose JSON form is kept in
 * the row (sandbox_record.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"
#include "base/list.h"
#include "base/table.h"
#include "domain/sandbox/sandbox_state.h"
#include "provider/provider.h"

#define SANDBOX_NAME_MAX      128
#define SANDBOX_VARIABLES_MAX 256
#define SANDBOX_LABELS_MAX    64
#define SANDBOX_TEXT_MAX      ((size_t) 32 * 1024)  /* of one variable's value */
#define SANDBOX_SPEC_MAX      ((size_t) 256 * 1024) /* of the whole spec as JSON */
#define SANDBOX_RULES_MAX     64
#define SANDBOX_BINDS_MAX     16
#define SANDBOX_LABEL_MAX     1024                 /* of one label's value */
#define SANDBOX_INSIDE_MAX    ((size_t) 64 * 1024) /* of `inside`: more is not kept */
#define SANDBOX_DURATION_MAX  ((uint64_t) 10 * 365 * 24 * 3600 * 1000) /* ms: ten years */

/* Snapshots made by themselves: not more often, and how many are kept when nothing is said. */
#define SANDBOX_SNAPSHOT_EVERY_MIN_MS ((uint64_t) 60 * 1000)
#define SANDBOX_SNAPSHOT_KEEP_MAX     10000
#define SANDBOX_SNAPSHOT_KEEP_DEFAULT 24

#define SANDBOX_STARTUP_MAX         16
#define SANDBOX_STARTUP_COMMAND_MAX ((size_t) 8 * 1024)

/* For a time that has a default of the daemon's, which 0 stands for. */
#define SANDBOX_NEVER UINT64_MAX

#define SANDBOX_SLEEP_AFTER_DEFAULT_MS ((uint64_t) 10 * 60 * 1000)

struct sandbox_pair {
    char *name, *value; /* owned */
};

struct sandbox_pairs {
    struct sandbox_pair *items; /* owned */
    size_t count;
};

/* What is wished for. All texts are owned; sandbox_spec_done frees them. */
struct sandbox_spec {
    char *name;   /* alias, unique per owner; NULL: none */
    char *image;  /* NULL: the provider's default */
    char *kind;   /* the dialect it was made by: "native", "bridge", ... */
    char *folder; /* working folder of the dialect that made it; NULL: /workspace */
    struct sandbox_pairs environment;
    struct sandbox_pairs labels;
    struct limits limits; /* 0: the daemon's default */
    enum network_mode network;
    bool has_network;           /* NONE is meant; otherwise NONE is the daemon's default */
    struct network_rule *rules; /* owned */
    size_t rule_count;
    struct sandbox_pairs binds;  /* place -> name of a registered folder */
    uint64_t sleep_after_ms;     /* idle time; 0: never */
    bool keep_alive;             /* never sleeps, whatever sleep_after says */
    uint64_t freeze_for_ms;      /* frozen so long: its memory goes to swap; 0, SANDBOX_NEVER */
    uint64_t hibernate_after_ms; /* frozen so long: its processes end; 0, SANDBOX_NEVER */
    uint64_t offload_after_ms;   /* hibernated so long: its disk is stored; 0, SANDBOX_NEVER */
    char **startup;              /* owned: shell commands that are started with its processes */
    size_t startup_count;
    bool sync;                     /* its workspace is synced before its processes end for sleep */
    uint64_t max_runtime_ms;       /* of one run, then it is stopped; 0: no limit */
    uint64_t lifetime_ms;          /* since creation, then it is destroyed; 0: no limit */
    uint64_t snapshot_every_ms;    /* while it runs; 0: none are made by themselves */
    uint64_t snapshot_keep_for_ms; /* each of those, then it is deleted; 0: whatever its age */
    uint32_t snapshot_keep;        /* how many of those; 0: SANDBOX_SNAPSHOT_KEEP_DEFAULT, or, with
                                      snapshot_keep_for_ms, as many as there are */
};

#define SANDBOX_SPEC_INIT                                                                          \
    {                                                                                              \
        .sleep_after_ms = SANDBOX_SLEEP_AFTER_DEFAULT_MS                                           \
    }

void sandbox_spec_done(struct sandbox_spec *spec);
AUTO_DEFINE(sandbox_spec, struct sandbox_spec, sandbox_spec_done);

/* A deep copy. */
struct sandbox_spec sandbox_spec_copy(const struct sandbox_spec *spec);

/* Free all of them. */
void sandbox_pairs_done(struct sandbox_pairs *pairs);

void sandbox_pairs_set(struct sandbox_pairs *pairs, const char *name, const char *value);
void sandbox_pairs_remove(struct sandbox_pairs *pairs, const char *name);
const char *sandbox_pairs_get(const struct sandbox_pairs *pairs, const char *name);

/* The commands of `startup`: free them, add one, take copies of another's (what was there is
 * overwritten, not freed). */
void sandbox_startup_done(struct sandbox_spec *spec);
void sandbox_startup_add(struct sandbox_spec *spec, const char *command);
void sandbox_startup_copy(struct sandbox_spec *spec, const struct sandbox_spec *from);

/* Lengths, counts, names of variables ([A-Za-z_][A-Za-z0-9_]*), label names, limits, rules. Returns
 * 0, or -1 with ERR_INVALID and the field's name. The name's own rule is the dialect's. */
int sandbox_spec_check(const struct sandbox_spec *spec, struct error *err);

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
