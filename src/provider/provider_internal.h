/* For those who write a provider: what all of them share, and what each brings.
 *
 * provider.c checks every call (open? able? does the sandbox exist, is this its moment?) before it
 * reaches the provider's operation, keeps the table of sandboxes up to date from the answers, and
 * sees to it that no answer comes from inside the call that asked. An operation therefore has one
 * duty: to answer its call once, now or later.
 *
 *     static void mine_freeze(struct provider_call *call)
 *     {
 *         ... call->id is known and alive
 *         provider_call_answer(call, NULL);
 *     } */
#pragma once

#include "base/list.h"
#include "net/loop.h"
#include "provider/provider.h"
#include "provider/provider_table.h"

/* What a successful answer brings; which member counts is the kind's business. */
union provider_result {
    struct provider_sandbox sandbox; /* create, start */
    struct stats stats;
    struct ending ending; /* disk job */
    struct snapshot_made snapshot;
    uint64_t bytes; /* disk usage, reclaim */
    struct {
        struct id *ids; /* owned until answered; sorted */
        size_t count;
    } ids; /* list of snapshots */
    struct {
        int fds[PROVIDER_SOCKETS_MAX]; /* owned until answered */
        size_t count;
    } sockets;
    struct {
        uint32_t number;
        int fuse; /* owned until answered */
    } mount;
    int inspection; /* owned until answered */
};

/* One call under way. Belongs to the operation until it is answered. */
struct provider_call {
    struct list link;          /* of provider->late, while its answer waits */
    struct list under_way;     /* of provider->calls */
    uint64_t asked_ms;         /* loop_now() when it began */
    struct provider *provider; /* borrowed */
    enum provider_call_kind kind;
    struct id id;        /* the sandbox it is about; of a create: the spec's */
    struct id base;      /* disk job: another one that it reads, or empty */
    struct id target;    /* disk job: the new one, or empty */
    struct id snapshot;  /* of calls that have one, else empty */
    bool adds_to_target; /* disk job: the target may also be a stopped one */
    union { /* what else was asked; pointers are borrowed until the operation returns */
        const struct provider_spec *spec;    /* create, start */
        const struct limits *limits;         /* set_limits */
        const struct provider_disk_job *job; /* disk_job */
        size_t count;                        /* sockets */
        uint64_t disk_bytes;                 /* roll_back */
        bool freeze;                         /* snapshot */
        uint32_t mount;                      /* attach_mount, detach_mount */
        struct {
            bool state;
            struct trace_context about;
        } inspection;
        struct {
            const char *place;
            bool read_only;
        } open_mount;
    } asked;
    union provider_result result;

    /* The rest is provider_call.c's. */
    enum run_state before;
    bool began;  /* its sandbox was marked */
    bool inside; /* the caller has not returned yet */
    bool failed;
    struct error failure;
    struct trace_context trace; /* of whoever called; its answer is told as that */
    struct loop_task task;
    union {
        provider_done *done;
        provider_sandbox_done *sandbox;
        provider_list_done *list;
        provider_stats_done *stats;
        provider_sockets_done *sockets;
        provider_job_done *job;
        provider_snapshot_done *snapshot;
        provider_ids_done *ids;
        provider_bytes_done *bytes;
        provider_mount_done *mount;
        provider_inspect_done *inspection;
    } answer;
    void *context;
};

struct provider_operations {
    const char *name; /* "local" */

    /* What each call does; NULL for what the capabilities do not promise, and for the list, which is
     * answered from the table.
     *
     * open fills in capabilities, enforced and the table, then answers; a failure leaves only close.
     * open_mount answers with result.mount: what was opened and not attached goes with its
     * descriptor. disk_usage is of the snapshot; when the call has none: of the sandbox. */
    void (*calls[PROVIDER_CALL_COUNT])(struct provider_call *call);

    /* Comes from the loop, once. Answer whatever is open, release everything, end with
     * provider_closed. */
    void (*close)(struct provider *provider);

    int (*agent_address)(struct provider *provider, const struct id *id,
                         char ret_address[static PROVIDER_ADDRESS_MAX], struct error *err);
};

enum provider_stage {
    PROVIDER_STAGE_NEW,
    PROVIDER_STAGE_OPENING,
    PROVIDER_STAGE_OPEN,
    PROVIDER_STAGE_LOST, /* or never opened; only close is left */
    PROVIDER_STAGE_CLOSING,
};

/* The first member of every provider. */
struct provider {
    const struct provider_operations *operations;
    struct loop *loop; /* borrowed */
    enum provider_stage stage;
    unsigned int capabilities, enforced;
    struct provider_table sandboxes;
    struct provider_watcher watcher;
    struct error loss;    /* why the stage is lost */
    struct list calls;    /* of provider_call: all that are under way, the oldest first */
    size_t open_calls;    /* that the provider has not answered */
    uint64_t last_call;   /* loop_now() when one began or ended */
    struct list late;     /* calls whose answer waits for the end of the turn */
    struct loop_task bye; /* close, from the loop */
    provider_done *closed;
    void *closed_context;
};

void provider_init(struct provider *provider, const struct provider_operations *operations,
                   struct loop *loop);

/* Answer a call: NULL for success, with call->result filled in. The call is gone, at the latest at
 * the end of the turn. The caller's function may call anything, also provider_close, but nothing is
 * closed before we return. */
void provider_call_answer(struct provider_call *call, const struct error *failure);

/* A sandbox of ours ended by itself. Told once each; unknown ids and ends that were asked for are
 * left out. Only from the loop. */
void provider_exited(struct provider *provider, const struct id *id, const struct ending *ending);

/* The provider cannot work any more. All calls it held were answered. Only from the loop. */
void provider_lost(struct provider *provider, const struct error *reason);

/* The last word of close: tells the caller after `release` has freed the provider. */
void provider_closed(struct provider *provider, void (*release)(struct provider *provider));

/* For provider.c: a new call, not yet begun. `id` may be NULL. */
struct provider_call *provider_call_new(struct provider *provider, enum provider_call_kind kind,
                                        const struct id *id, void *context);

/* For provider.c: something is wrong with the call itself. Of several the first is answered. */
void provider_call_refuse(struct provider_call *call, const struct error *failure);

/* For provider.c: run its operation, or answer why not. The call may be gone. */
void provider_call_run(struct provider_call *call);
