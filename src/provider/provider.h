/* Where sandboxes run: one interface, several providers (local, docker, ..., fake).
 *
 * Asynchronous: a call starts the work and returns; its answer comes exactly once, later, from the
 * loop and never from inside the call. The answer's `failure` is NULL on success. A call on a
 * sandbox that the provider does not know is answered with ERR_NOT_FOUND; what a provider cannot do
 * with ERR_NOT_IMPLEMENTED, and its capabilities say so beforehand; what a sandbox cannot have in
 * the state it is in (to be frozen while it is stopped) with ERR_CONFLICT. What is so already (to
 * be frozen while it is frozen) succeeds.
 *
 *     provider_create(provider, &spec, on_created, mine);
 *     -> on_created(mine, NULL, &sandbox)            the agent answers at provider_agent_address
 *     ... HTTP to the agent does everything inside the sandbox (exec, files, ...)
 *     provider_destroy(provider, &id, on_destroyed, mine);
 *
 * Exits are told to the one watcher, once each, also those that happened while nobody was there. An
 * end that a stop or destroy asked for is answered, not told. A sandbox that ended by itself is
 * stopped: it has its disk, and can be started again.
 *
 * Answers may call anything. Only the loop's thread. Everything given to a call is copied. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"
#include "base/text.h"
#include "base/trace.h"
#include "model/disk.h"
#include "model/ending.h"
#include "model/limits.h"
#include "model/network_rule.h"
#include "model/state.h"
#include "model/stats.h"

struct provider;

/* What a provider can do here, now. */
enum provider_capability {
    PROVIDER_FREEZE = 1 << 0,  /* freeze and thaw: memory is kept */
    PROVIDER_RESTART = 1 << 1, /* stop keeps the disk, start brings it back */
    PROVIDER_PORTS = 1 << 2,   /* provider_sockets */
    PROVIDER_NAT = 1 << 3,     /* the network mode nat */
    PROVIDER_OOM = 1 << 4,     /* tells a kill for lack of memory from others */
    PROVIDER_STATS = 1 << 5,
    PROVIDER_AGENT = 1 << 6,     /* an agent answers at provider_agent_address */
    PROVIDER_LIMITS = 1 << 7,    /* limits of a running sandbox can be changed */
    PROVIDER_DISK_JOBS = 1 << 8, /* provider_run_disk_job */
    PROVIDER_SNAPSHOTS = 1 << 9, /* provider_snapshot and what is done with snapshots */
    PROVIDER_RECLAIM = 1 << 10,  /* there is swap that memory of frozen ones can go to */
    PROVIDER_MOUNTS = 1 << 11    /* provider_open_mount */
};

/* A folder that was registered under a name, seen read-only at a place in the sandbox. */
struct provider_bind {
    const char *source;
    const char *place;
};

struct provider_spec {
    struct id id;         /* chosen by the caller, unless the provider takes one from its stock */
    const char *hostname; /* [a-z0-9][a-z0-9._-]{0,63} */
    const char *image;    /* NULL: the provider's default */
    struct limits limits;
    struct id
        owner; /* or none: of one owner's sandboxes all share one part of CPUs that are short */
    enum network_mode network;
    const struct network_rule *rules;
    size_t rule_count;
    const struct provider_bind *binds;
    size_t bind_count;
    bool keep_id; /* never from stock: the id must be this one */
    /* Create: begin with a copy of this disk instead of an empty one. Implies keep_id. With
     * `hold_origin` a sandbox that runs stands still meanwhile, as for a snapshot. */
    struct disk_ref origin;
    bool hold_origin;
};

struct provider_sandbox {
    struct id id; /* of the sandbox from now on: may be another than the spec's, see keep_id */
    enum run_state state;
    unsigned int unenforced; /* LIMIT_BIT(...) */
    uint64_t pause_us;       /* of a new one: how long its origin stood still */
};

/* --- answers: each is called once; what they are given is borrowed for the call -------------- */

typedef void provider_done(void *context, const struct error *failure);
typedef void provider_sandbox_done(void *context, const struct error *failure,
                                   const struct provider_sandbox *sandbox);
typedef void provider_list_done(void *context, const struct error *failure,
                                const struct provider_sandbox *sandboxes, size_t count);
typedef void provider_stats_done(void *context, const struct error *failure,
                                 const struct stats *stats);
/* The sockets are the receiver's; unconnected, non-blocking TCP sockets inside the sandbox. */
typedef void provider_sockets_done(void *context, const struct error *failure, const int *sockets,
                                   size_t count);
typedef void provider_job_done(void *context, const struct error *failure,
                               const struct ending *ending);

/* What happens by itself. Both may be NULL. */
struct provider_watcher {
    void (*exited)(void *context, const struct id *id, const struct ending *ending);
    /* The provider cannot work any more, `reason` says why; open calls were answered before. */
    void (*lost)(void *context, const struct error *reason);
    void *context;
};

/* --- calls ----------------------------------------------------------------------------------- */

/* Ready to work: answered once, when capabilities are known and sandboxes of earlier times were
 * taken over (they are then in provider_list). All other calls come after it. */
void provider_open(struct provider *provider, const struct provider_watcher *watcher,
                   provider_done *done, void *context);

/* Stop working: open calls are answered with ERR_UNAVAILABLE (what they asked for may happen all
 * the same), sandboxes go on, then `done` (may be NULL) is called and the provider is gone. Nothing
 * may be called after this, also not from answers. Also for providers that were not opened or are
 * lost.
 */
void provider_close(struct provider *provider, provider_done *done, void *context);

unsigned int provider_capabilities(const struct provider *provider);

/* Which limits can be enforced here: LIMIT_BIT(...) */
unsigned int provider_enforced(const struct provider *provider);

/* A new sandbox, running, its agent listening. ERR_CONFLICT: the id is
 * taken; ERR_NOT_FOUND: no such image or bind; ERR_INVALID; ERR_UNAVAILABLE: no room; ERR_UPSTREAM:
 * its agent failed. On failure nothing is left. */
void provider_create(struct provider *provider, const struct provider_spec *spec,
                     provider_sandbox_done *done, void *context);

/* Start a stopped one again, on the disk it has. `spec` as for create, with the id it has. On
 * failure it is stopped as before. */
void provider_start(struct provider *provider, const struct provider_spec *spec,
                    provider_sandbox_done *done, void *context);

/* End all processes, keep the disk. Answered when they are gone. */
void provider_stop(struct provider *provider, const struct id *id, provider_done *done,
                   void *context);

/* End everything and delete the disk. Answered when no process is left and the id is unknown; what
 * is slow about it goes on behind. Also for stopped and broken ones. */
void provider_destroy(struct provider *provider, const struct id *id, provider_done *done,
                      void *context);

void provider_freeze(struct provider *provider, const struct id *id, provider_done *done,
                     void *context);
void provider_thaw(struct provider *provider, const struct id *id, provider_done *done,
                   void *context);

/* All limits, also those that stay. */
void provider_set_limits(struct provider *provider, const struct id *id,
                         const struct limits *limits, provider_done *done, void *context);

void provider_stats(struct provider *provider, const struct id *id, provider_stats_done *done,
                    void *context);

/* All sandboxes of this provider, sorted by id; those in stock are not shown. */
void provider_list(struct provider *provider, provider_list_done *done, void *context);

/* Up to PROVIDER_SOCKETS_MAX sockets to connect to ports inside. */
#define PROVIDER_SOCKETS_MAX 32
void provider_sockets(struct provider *provider, const struct id *id, size_t count,
                      provider_sockets_done *done, void *context);

/* Where the sandbox's agent listens, as http_origin_new wants it ("unix:/..."). Returns 0 or -1
 * with ERR_NOT_FOUND or ERR_NOT_IMPLEMENTED. */
#define PROVIDER_ADDRESS_MAX 256
int provider_agent_address(struct provider *provider, const struct id *id,
                           char ret_address[static PROVIDER_ADDRESS_MAX], struct error *err);

/* --- disks and snapshots ---------------------------------------------------------------------- */

/* A read-only copy of a sandbox's disk under an id of its own, whatever the sandbox's state; it
 * outlives the sandbox. On disk (survives power loss) when answered. `freeze` holds a running one
 * still, so that the copy is of one moment; without it files may be of different ones.
 * ERR_UNAVAILABLE: it could not be frozen. ERR_CONFLICT: the id is taken; ERR_NO_SPACE. */
typedef void provider_snapshot_done(void *context, const struct error *failure,
                                    const struct snapshot_made *snapshot);

void provider_snapshot(struct provider *provider, const struct id *sandbox,
                       const struct id *snapshot, bool freeze, provider_snapshot_done *done,
                       void *context);

/* Sandboxes that were made from it stay. What is not there succeeds. */
void provider_delete_snapshot(struct provider *provider, const struct id *snapshot,
                              provider_done *done, void *context);

/* Sorted by id. */
typedef void provider_ids_done(void *context, const struct error *failure, const struct id *ids,
                               size_t count);
void provider_list_snapshots(struct provider *provider, provider_ids_done *done, void *context);

/* The disk of a stopped sandbox becomes a copy of the snapshot; on failure it is as it was. */
void provider_roll_back(struct provider *provider, const struct id *sandbox,
                        const struct id *snapshot, uint64_t disk_bytes, provider_done *done,
                        void *context);

/* Bytes that this disk or snapshot alone has on its account, as of the last few seconds.
 * ERR_NOT_FOUND: it is not there, which is looked at anew. ERR_NOT_IMPLEMENTED: it is, and nothing
 * is counted here: measure it with a disk job. */
typedef void provider_bytes_done(void *context, const struct error *failure, uint64_t bytes);
void provider_disk_usage(struct provider *provider, const struct disk_ref *disk,
                         provider_bytes_done *done, void *context);

/* Answered when every disk that is there now would survive a power cut: what was made by
 * provider_create without an origin does so only some seconds later. What programs wrote and did
 * not sync themselves is not meant. */
void provider_sync_disks(struct provider *provider, provider_done *done, void *context);

/* The same, with every file as it was when this was called, whoever wrote it and whether or not
 * they synced it. All disks are written back, so it waits for the writers of all of them: for what
 * somebody is promised, not for every day. A failure: something may be missing after a power cut.
 */
void provider_sync_contents(struct provider *provider, provider_done *done, void *context);

/* What the processes behind the provider did last about that request and sandbox (`state` false: an
 * array of struct trace_entry), or what they have now (`state`: lines of text). The file is the
 * provider's, for the call; -EBADF after a failure. ERR_NOT_IMPLEMENTED: there are no processes. */
typedef void provider_inspect_done(void *context, const struct error *failure, int file);
void provider_inspect(struct provider *provider, bool state, const struct trace_context *about,
                      provider_inspect_done *done, void *context);

/* Calls under way and the table, as lines for people. */
void provider_describe(const struct provider *provider, struct text *out);

/* Push the memory of a frozen sandbox out to swap; the answer tells how much went. */
void provider_reclaim(struct provider *provider, const struct id *id, provider_bytes_done *done,
                      void *context);

/* Jobs of a confined process (keeper/job.h says what each reads and writes). `output` gets lines of
 * JSON, the last of which is the outcome; a job that failed answers with `ending` status 1 and its
 * last line is the error.
 *
 *     job        on       base     target   input           data                  view
 *     MEASURE    disk
 *     LIST       disk
 *     COPY       disk              new
 *     DIFF       newer    older
 *     PACK       disk     older              -              layer out (any)
 *     UNPACK                       new       layer in (any) -
 *     ARCHIVE    disk                        options (JSON) squashfs out (file)   yes
 *     UNARCHIVE  -                           squashfs (file) tar out (any)
 *     SCAN       disk                        options (JSON) -                     yes
 *     READ       disk                        paths (JSON)   contents out (any)    yes
 *
 * "disk" is one that nothing writes to: of a stopped sandbox, or a snapshot. A view shows the disk
 * on top of the image `image`, as the sandbox saw it; otherwise a job sees the disk alone, with its
 * whiteouts. "new": the disk of a stopped sandbox is made (with `disk_bytes` as its limit; 0:
 * none), and gone again when the job fails. UNPACK also takes an existing disk of a stopped sandbox
 * as its target (`disk_bytes` is ignored then, and a failure leaves it half filled). Its input is
 * any number of layers one behind the other, the oldest first; an end between two is the end. */
/* Descriptors are borrowed for the call; -EBADF: nothing. */
struct provider_disk_job {
    enum disk_job_kind kind;
    struct disk_ref on, base;
    struct id target;
    uint64_t disk_bytes;
    const char *image; /* of a view; NULL: the provider's default */
    int input, output, data;
};

void provider_run_disk_job(struct provider *provider, const struct provider_disk_job *job,
                           provider_job_done *done, void *context);

/* --- mounts ----------------------------------------------------------------------------------- */

/* A folder in a running sandbox whose files the caller serves. open gives a descriptor of
 * /dev/fuse, the receiver's; once somebody answers on it, attach shows it at `place` (absolute,
 * made when it is missing; ERR_CONFLICT when something is mounted there). Closing the descriptor
 * breaks it off: processes that use it get errors, never wait. Mounts end with the sandbox's
 * processes and are not there after a start; detach takes one away before, also when its server
 * hangs. */
typedef void provider_mount_done(void *context, const struct error *failure, uint32_t mount,
                                 int fuse);
void provider_open_mount(struct provider *provider, const struct id *sandbox, const char *place,
                         bool read_only, provider_mount_done *done, void *context);
void provider_attach_mount(struct provider *provider, const struct id *sandbox, uint32_t mount,
                           provider_done *done, void *context);
void provider_detach_mount(struct provider *provider, const struct id *sandbox, uint32_t mount,
                           provider_done *done, void *context);
