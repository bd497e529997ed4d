/* The sandboxes of one launcher, from their start to the last trace of them.
 *
 *                        ┌────────── assign ───────────┐
 *     starting ──ready──►│ pooled                      ▼
 *         │      └───────┴──────────────────────►  running ◄──thaw/freeze──► running, frozen
 *         │ failed             killed or ended by itself │
 *         ▼                                              ▼
 *     leaving: the janitor takes it down; its exit is told  ──►  gone (stopped, when it has a disk)
 *
 * Each has a record (record.h) and a pidfd; a launcher that starts finds all of them again
 * (residents_adopt). Work that a request asked for and that takes time is answered through the
 * hooks, by the request's number; 0 is nobody.
 *
 * A sandbox that begins as a copy of another's disk is `copying` before it is starting: until the
 * porter has made its disk.
 *
 * Files: residents.c the table and adoption, resident_start.c, resident_end.c, resident_control.c,
 * resident_copy.c, resident_mount.c, resident_weight.c, residents_snapshot.c.
 * One thread; nothing blocks for longer than the kernel needs for one such step. */
#pragma once

#include "base/log.h"
#include "launcher/helper/janitor.h"
#include "launcher/helper/porter.h"
#include "launcher/instance/instance.h"
#include "launcher/instance/record.h"
#include "launcher/residents/plan.h"

/* Alive at once in one launcher. */
#define RESIDENTS_MAX 16384

/* In one sandbox, of those whose files the daemon serves. */
#define RESIDENT_MOUNTS_MAX 16

enum resident_state {
    RESIDENT_COPYING,  /* its disk is being made */
    RESIDENT_STARTING, /* its first process is on its way */
    RESIDENT_POOLED,
    RESIDENT_RUNNING,
    RESIDENT_ENDING, /* killed, not yet dead */
    RESIDENT_LEAVING /* dead, being taken down */
};

struct residents;

struct resident {
    struct residents *all;
    struct sandbox sandbox;
    struct record record;
    enum resident_state state;
    bool is_child; /* ours to reap; adopted ones are not */
    bool is_frozen;
    bool was_told;         /* its exit, or nobody needs to know */
    bool is_down;          /* the janitor is done */
    bool keep_disk;        /* what the janitor shall do */
    bool had_disk;         /* it was started on a disk of earlier times */
    bool delete_disk;      /* asked for while it was taken down */
    bool teardown_failed;  /* the janitor failed, and tries again */
    bool teardown_gave_up; /* it failed more than once */
    uint32_t unenforced;
    struct limits limits; /* as they were set last, where `has_limits` */
    bool has_limits;
    uint32_t weight;      /* beside the other sandboxes; 0: not known */
    uint64_t cpu_seen_us; /* what it had used when weights were looked at last */
    uint64_t start_request;
    uint64_t pause_us; /* that the sandbox whose disk it began as a copy of stood still for it */
    uint64_t freeze_request;
    struct list copies;  /* of resident_copy: those that are made of its disk */
    unsigned int holds;  /* of them, for which it has to stand still */
    struct list killers; /* requests that wait for its end */
    struct list served;  /* of resident_mount: what the daemon shows in it */
    size_t served_count;
    uint32_t last_mount;      /* number of the latest */
    bool has_old_mounts;      /* perhaps: of an earlier daemon */
    struct janitor_hold hold; /* from when it is killed */
    struct event_source exit, status;
    struct event_timer timer; /* waits for a freeze, or for somebody else to reap */
    unsigned int timer_turns;
    struct janitor_job job;
    struct error start_failure;
};

/* What happens by itself, or later than it was asked for. */
struct residents_hooks {
    void *context;
    void (*started)(void *context, uint64_t request, const struct resident *resident,
                    const struct error *failure);
    void (*done)(void *context, uint64_t request, const struct error *failure);
    void (*snapshot_made)(void *context, uint64_t request, const struct snapshot_made *made,
                          const struct error *failure);
    void (*counted)(void *context, uint64_t request, uint64_t bytes, const struct error *failure);
    /* An exit waits to be told: residents_next_exit. */
    void (*exited)(void *context);
    /* The last one is gone, or only those are left that cannot be taken down now. */
    void (*empty)(void *context);
};

struct residents {
    struct event_loop *loop;
    struct site *site;
    struct instance *instance;
    struct janitor *janitor;
    struct porter *porter;
    struct log *log;
    struct residents_hooks hooks;
    const char *run, *name;
    char boot[RECORD_BOOT_SIZE];
    bool is_once;       /* sandboxes and their disks end when this launcher does */
    struct id *stopped; /* owned; once: those that have a disk and no processes */
    size_t stopped_count;
    struct id *snapshots; /* owned; once: those that end with us */
    size_t snapshot_count;
    struct event_timer network_ahead; /* for the next sandbox, after the last start */
    struct event_timer weighing;      /* while there are sandboxes: resident_weight.c */
    uint64_t cpu_seen_us;             /* of all of them, when weights were looked at last */
    struct list copies;               /* of resident_copy: all that are under way */
    uint32_t enforced;                /* bits of enum limit */
    bool can_mount;                   /* what a daemon serves */
    int fuse_control;                 /* owned; 0 or less: none */
    struct resident **sorted;         /* owned, by id */
    size_t count, capacity;
    size_t given_up; /* of them; their records stay for the next launcher */
};

/* `all` is filled but for boot, enforced and the table. Returns 0 or -1. */
int residents_init(struct residents *all, struct error *err);

/* Close and free everything; sandboxes go on. */
void residents_done(struct residents *all);

/* Find the sandboxes that an earlier launcher of this instance left. */
int residents_adopt(struct residents *all, struct error *err);

/* Id ranges of sandboxes and keepers whose processes are gone, and whom nobody takes down. */
int residents_give_back_ranges(struct residents *all, struct error *err);

/* NULL with ERR_NOT_FOUND. */
struct resident *residents_find(struct residents *all, const struct id *id, struct error *err);

/* One that runs and was assigned or needs no assignment; otherwise NULL with ERR_NOT_FOUND or
 * ERR_CONFLICT. */
struct resident *residents_find_running(struct residents *all, const struct id *id,
                                        struct error *err);

/* The next page of all sandboxes: ours, and disks without processes. */
int residents_list(struct residents *all, const struct id *after, struct wire_listed *ret_page,
                   struct error *err);

struct wire_entry resident_entry(const struct resident *resident);

/* No request that is open now will be answered: its daemon is gone. */
void residents_forget_requests(struct residents *all);

/* Start one; answered by `started`. -1: it failed at once, nothing is left. */
int residents_create(struct residents *all, const struct wire_plan *plan, uint64_t request,
                     struct error *err);

/* Make a pooled one the sandbox of this plan. Inline. */
int residents_assign(struct residents *all, const struct wire_plan *plan,
                     struct resident **ret_resident, struct error *err);

/* Kill; answered by `done` when no process is left. Also for stopped ones, whose disk goes. */
int residents_kill(struct residents *all, const struct id *id, enum wire_kill_scope scope,
                   uint64_t request, struct error *err);

/* Whether this launcher has such a disk without processes: of `once` those it made, otherwise all
 * but those of others. ERR_NOT_FOUND; ERR_CONFLICT: not while it is copied or rolled back. */
int residents_find_stopped(struct residents *all, const struct id *id, struct error *err);

/* The same, whatever is done to it just now. */
int residents_find_disk(struct residents *all, const struct id *id, struct error *err);

/* ERR_CONFLICT: a copy or a roll back of its disk is under way, perhaps of one that was deleted
 * since: nothing may be made in its place. */
int residents_check_unneeded(struct residents *all, const struct id *id, struct error *err);

/* A disk is being filled: should we be killed before residents_end_disk, the next launcher deletes
 * it. ERR_CONFLICT: there is such a disk or sandbox. */
int residents_begin_disk(struct residents *all, const struct id *id, struct error *err);
void residents_end_disk(struct residents *all, const struct id *id);

/* A disk without processes is there from now on, or gone. `once` remembers. */
void residents_add_stopped(struct residents *all, const struct id *id);
void residents_drop_stopped(struct residents *all, const struct id *id);

/* Kill and delete everything, without requests: the end of a launcher that serves once. */
void residents_kill_all(struct residents *all);

/* End those in the warm pool, and those on their way there: nobody has them, and nobody is left to hand
 * them out. Returns how many are not gone yet, without those that cannot be taken down now: ask
 * again. */
size_t residents_end_warm_pool(struct residents *all);

/* --- snapshots ------------------------------------------------------------------------------- */

/* A copy of a sandbox's disk, whether it runs or not; answered by `snapshot_made`. ERR_CONFLICT:
 * it is just starting or ending, or the snapshot exists. */
int residents_snapshot(struct residents *all, const struct wire_snapshot *asked, uint64_t request,
                       struct error *err);

/* What is not there is deleted. Inline. */
int residents_delete_snapshot(struct residents *all, const struct id *id, struct error *err);

/* The next page. Those of `once` are its own and end with it. */
int residents_list_snapshots(struct residents *all, const struct id *after,
                             struct wire_snapshots_listed *ret_page, struct error *err);

/* Answered by `done`. */
int residents_roll_back(struct residents *all, const struct wire_roll_back *asked, uint64_t request,
                        struct error *err);

/* Answered by `done` when every disk that is there now would survive a power cut; with `contents`
 * also what was written into them by then. */
int residents_sync(struct residents *all, bool contents, uint64_t request, struct error *err);

/* At the end of a launcher that serves once, when the porter has stopped. */
void residents_delete_snapshots(struct residents *all);

/* ERR_NOT_FOUND, ERR_NOT_IMPLEMENTED. Inline. */
int residents_disk_usage(struct residents *all, const struct disk_ref *disk, uint64_t *ret_bytes,
                         struct error *err);

/* An exit that nobody was told of, or NULL. */
struct resident *residents_next_exit(struct residents *all);
/* It was told now. The resident may be gone afterwards. */
void resident_told(struct resident *resident);

/* --- a running one --------------------------------------------------------------------------- */

/* Answered by `done`. */
int resident_freeze(struct resident *resident, uint64_t request, struct error *err);
int resident_thaw(struct resident *resident, struct error *err);
int resident_set_limits(struct resident *resident, const struct limits *limits, struct error *err);
/* Answered by `counted`. ERR_CONFLICT unless it is frozen. */
int resident_reclaim(struct resident *resident, uint64_t request, struct error *err);
void resident_stats(struct resident *resident, struct stats *ret_stats);
int resident_sockets(struct resident *resident, enum wire_socket_family family, int *ret_fds,
                     size_t count, struct error *err);

/* Prepare a mount for `asked->place`; the server's descriptor is the caller's, and must not stay
 * open here. ERR_INVALID: not a place for mounts; ERR_CONFLICT: there is one, or in it, or around
 * it. */
int resident_open_mount(struct resident *resident, const struct wire_open_mount *asked,
                        uint32_t *ret_number, int *ret_server, struct error *err);
/* Answered by `done`, when it is seen in the sandbox; ERR_CONFLICT: something is mounted there;
 * ERR_UPSTREAM_TIMEOUT: nobody serves it. */
int resident_attach_mount(struct resident *resident, uint32_t number, uint64_t request,
                          struct error *err);
/* Answered by `done`. Who waits for its files gets an error, whatever its server does. */
int resident_detach_mount(struct resident *resident, uint32_t number, uint64_t request,
                          struct error *err);

/* --- inside residents ------------------------------------------------------------------------ */

/* Before its processes are killed: one that waits for a server could not die. */
void resident_abort_mounts(struct resident *resident);
/* The daemon is gone, and with it what it served. */
void resident_orphan_mounts(struct resident *resident);
/* The sandbox is gone; open requests are answered. */
void resident_drop_mounts(struct resident *resident);

/* Work of the porter on behalf of somebody, and a sandbox that stands still for it. The first
 * member of what the caller has allocated: it is freed here, after `done`. */
struct resident_copy {
    struct list link; /* of all->copies */
    struct residents *all;
    struct porter_job job; /* its task is the caller's */
    uint64_t request;      /* whom it is for; 0: nobody any more */
    void (*done)(struct resident_copy *copy, const struct error *failure);
    uint64_t began_ns;
    uint64_t pause_us; /* how long its source stood still */

    /* The rest is resident_copy.c's. */
    struct resident *source; /* NULL: one that does not run, or not any more */
    struct list source_link; /* of source->copies */
    bool is_held, is_added, is_late;
    bool is_flushing;      /* it goes on until what it wrote is on the pool */
    enum porter_work work; /* that follows */
    bool is_live;          /* copied while it runs; it stands still before and at the end */
    bool is_ready;         /* only what changed meanwhile is left to copy */
    bool is_pause;         /* it would move if it were not held */
    uint64_t held_ns;
    struct event_timer timer;
    unsigned int turns;
};

/* Begin; `done` follows, perhaps at once. `source` runs, or is NULL. `hold`: it shall not write
 * meanwhile; what it wrote so far is written back first, so that it stands still for less. One that
 * is frozen stays so until the copy is taken, whoever thaws it. In a plain pool it goes on while
 * its disk is copied, and stands still twice: for a moment first, so that no write is under way
 * that no time tells of, and for what changed. -1, without `done` and the memory still the
 * caller's: it cannot be frozen, or too many are under way.
 */
int resident_copy_begin(struct resident_copy *copy, struct resident *source, bool hold,
                        struct error *err);

/* Those limits that are not so already. */
int resident_apply_limits(struct resident *resident, const struct limits *limits,
                          struct error *err);

/* It runs, and has its owner: it gets the weight that the others of this owner have. */
void resident_weigh_first(struct resident *resident);
/* Divide the CPUs among owners, and again in a second (owner_weight.h). */
void residents_weigh(struct event_timer *timer);

/* The sandbox has ended: nothing moves in it any more. */
void resident_copy_source_ended(struct resident *resident);

/* A disk or snapshot to copy: `ret_running` is the sandbox when it runs, else NULL. */
int residents_find_source(struct residents *all, const struct disk_ref *disk,
                          struct resident **ret_running, struct error *err);

/* It ends with this launcher, if that serves once. Written down. */
void residents_add_snapshot(struct residents *all, const struct id *id);
/* Free those whose launcher ends; the porter has stopped. */
void residents_drop_copies(struct residents *all);

/* Requests that wait for its end, and forget them; nobody is told unless `tell`. */
void resident_answer_killers(struct resident *resident, bool tell, const struct error *failure);
/* A freeze that somebody waits for came to its end. */
void resident_answer_freeze(struct resident *resident, const struct error *failure);
/* Kill it because its start failed: nobody hears of it again, and its fresh disk goes. */
void resident_abandon(struct resident *resident);
/* Whether its disk outlives an end that nobody asked for: when it may hold somebody's work. */
bool resident_keeps_disk(const struct resident *resident);
/* Its processes; what becomes of the rest was decided before. */
int resident_send_kill(struct resident *resident, struct error *err);
struct resident *resident_add(struct residents *all, const struct id *id);
/* Out of the table, and gone. */
void resident_drop(struct resident *resident);
int resident_write_record(struct resident *resident, struct error *err);
int resident_watch_exit(struct resident *resident, struct error *err);
/* It is dead; `ending` says how. */
void resident_ended(struct resident *resident, const struct ending *ending);
