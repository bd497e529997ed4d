/* What is done to a sandbox while it runs. */
#include <errno.h>

#include "base/auto.h"
#include "base/memory.h"
#include "launcher/cgroup/cgroup_freeze.h"
#include "launcher/cgroup/cgroup_reclaim.h"
#include "launcher/cgroup/cgroup_stats.h"
#include "launcher/network/network_socket.h"
#include "launcher/residents/residents.h"
#include "sys/process/sys_namespace.h"
#include "sys/process/sys_process.h"

/* A process deep in the kernel can keep a freeze waiting. */
#define FREEZE_STEP_MS 2
#define FREEZE_TURNS   2500

/* --- freezing -------------------------------------------------------------------------------- */

void resident_answer_freeze(struct resident *resident, const struct error *failure)
{
    struct residents *all = resident->all;
    uint64_t request = resident->freeze_request;

    resident->freeze_request = 0;
    event_timer_clear(&resident->timer);
    if (request)
        all->hooks.done(all->hooks.context, request, failure);
}

static void look_at_freeze(struct event_timer *timer)
{
    struct resident *resident = CONTAINER_OF(timer, struct resident, timer);
    struct cgroup_freeze_state state = {0};
    struct error err = ERROR_INIT;

    if (resident->state != RESIDENT_RUNNING) {
        (void) error_set(&err, ERR_GONE, 0, "the sandbox ended");
        resident_answer_freeze(resident, &err);
        return;
    }
    if (cgroup_freeze_state(&resident->sandbox.cgroup, CGROUP_WHOLE, &state, &err) == 0 &&
        state.frozen) {
        resident_answer_freeze(resident, NULL);
        return;
    }
    if (++resident->timer_turns < FREEZE_TURNS) {
        event_timer_set(resident->all->loop, timer, FREEZE_STEP_MS);
        return;
    }
    if (!resident->holds)
        (void) cgroup_thaw(&resident->sandbox.cgroup, CGROUP_WHOLE, NULL);
    resident->is_frozen = false;
    (void) error_set(&err, ERR_UNAVAILABLE, ETIMEDOUT,
                     "a process of the sandbox is busy in the kernel and does not freeze");
    resident_answer_freeze(resident, &err);
}

/* While a copy holds it still, only what becomes of it afterwards changes. */
static int decide_hold(struct resident *resident, bool is_held, struct error *err)
{
    if (!resident->holds)
        return 0;
    resident->record.is_held = is_held;
    return resident_write_record(resident, err);
}

int resident_freeze(struct resident *resident, uint64_t request, struct error *err)
{
    if (resident->freeze_request)
        return error_set(err, ERR_CONFLICT, 0, "sandbox %s is just being frozen",
                         resident->sandbox.id.text);
    if (cgroup_freeze(&resident->sandbox.cgroup, CGROUP_WHOLE, err) < 0 ||
        decide_hold(resident, false, err) < 0)
        return -1;
    resident->is_frozen = true;
    resident->freeze_request = request;
    resident->timer_turns = 0;
    resident->timer.fire = look_at_freeze;
    look_at_freeze(&resident->timer);
    return 0;
}

int resident_thaw(struct resident *resident, struct error *err)
{
    struct error cancelled = ERROR_INIT;

    if (decide_hold(resident, true, err) < 0 ||
        (!resident->holds && cgroup_thaw(&resident->sandbox.cgroup, CGROUP_WHOLE, err) < 0))
        return -1;
    resident->is_frozen = false;
    if (resident->freeze_request) {
        (void) error_set(&cancelled, ERR_CANCELLED, 0, "the sandbox was thawed meanwhile");
        resident_answer_freeze(resident, &cancelled);
    }
    return 0;
}

/* --- limits ---------------------------------------------------------------------------------- */

int resident_apply_limits(struct resident *resident, const struct limits *limits, struct error *err)
{
    struct disk_pool *pool = resident->all->site->host.pool;
    const struct limits *before = resident->has_limits ? &resident->limits : NULL;
    int r = cgroup_set_limits(&resident->sandbox.cgroup, before, limits, err);

    /* After a failure some are the new ones. */
    resident->has_limits = false;
    if (r == 0 && disk_pool_is_limited(pool) &&
        (!before || before->disk_bytes != limits->disk_bytes))
        r = disk_pool_set_limit(pool, &resident->sandbox.id, limits->disk_bytes, err);
    if (r < 0)
        return -1;
    resident->limits = *limits;
    resident->has_limits = true;
    return 0;
}

int resident_set_limits(struct resident *resident, const struct limits *limits, struct error *err)
{
    struct residents *all = resident->all;
    struct stats now;

    if (plan_check_limits(limits, err) < 0)
        return -1;
    /* The kernel would reclaim what is above, and keep all other sandboxes waiting meanwhile. */
    cgroup_stats_read(&resident->sandbox.cgroup, &now);
    if (limits->memory_bytes && (now.known & STATS_BIT(MEMORY)) &&
        now.memory_bytes > limits->memory_bytes)
        return error_set(err, ERR_CONFLICT, 0,
                         "the sandbox uses %llu bytes of memory now, more than the new limit",
                         (unsigned long long) now.memory_bytes);
    if (resident_apply_limits(resident, limits, err) < 0)
        return -1;
    resident->unenforced = plan_unenforced(limits, all->enforced);
    return 0;
}

/* --- statistics ------------------------------------------------------------------------------ */

static void add_network(struct resident *resident, struct stats *stats)
{
    struct network_statistics numbers;
    struct network network;
    struct router *router;

    if (!resident->record.nat || site_router(resident->all->site, &router, NULL) < 0 ||
        network_adopt(router, &resident->sandbox.id, &network, NULL) < 0 ||
        network_statistics(router, &network, &numbers, NULL) < 0)
        return;
    stats->known |= STATS_BIT(NETWORK);
    stats->received_bytes = numbers.received_bytes;
    stats->sent_bytes = numbers.sent_bytes;
}

void resident_stats(struct resident *resident, struct stats *ret_stats)
{
    struct disk_usage usage;

    cgroup_stats_read(&resident->sandbox.cgroup, ret_stats);
    add_network(resident, ret_stats);
    if (disk_pool_usage(resident->all->site->host.pool, DISK_POOL_DISKS, &resident->sandbox.id,
                        &usage, NULL) == 0) {
        ret_stats->known |= STATS_BIT(DISK);
        ret_stats->disk_bytes = usage.used;
    }
}

/* --- memory ---------------------------------------------------------------------------------- */

static void reclaimed(struct resident_copy *work, const struct error *failure)
{
    struct residents *all = work->all;

    if (work->request)
        all->hooks.counted(all->hooks.context, work->request, work->job.bytes, failure);
}

int resident_reclaim(struct resident *resident, uint64_t request, struct error *err)
{
    AUTO(free) struct resident_copy *work = NULL;

    if (!cgroup_can_reclaim(resident->all->site->cgroups))
        return error_set(err, ERR_NOT_IMPLEMENTED, 0, "this host has no swap");
    if (!resident->is_frozen)
        return error_set(err, ERR_CONFLICT, 0, "sandbox %s is not frozen",
                         resident->sandbox.id.text);
    work = mem_alloc(sizeof(*work));
    *work = (struct resident_copy){.all = resident->all, .request = request, .done = reclaimed};
    work->job.task = (struct porter_task){.work = PORTER_RECLAIM, .target = resident->sandbox.id};
    if (resident_copy_begin(work, NULL, false, err) < 0)
        return -1;
    (void) TAKE_PTR(work);
    return 0;
}

/* --- sockets --------------------------------------------------------------------------------- */

int resident_sockets(struct resident *resident, enum wire_socket_family family, int *ret_fds,
                     size_t count, struct error *err)
{
    AUTO(close) int inside = sys_namespace_open(resident->sandbox.pid, "net");
    int r = inside < 0 ? inside : sys_process_kill(resident->sandbox.pidfd, 0);

    if (r < 0)
        return error_set(err, ERR_GONE, r, "open the network of sandbox %s",
                         resident->sandbox.id.text);
    return network_sockets(inside, resident->all->site->home,
                           family == WIRE_SOCKET_IPV6 ? AF_INET6 : AF_INET, ret_fds, count, err);
}
