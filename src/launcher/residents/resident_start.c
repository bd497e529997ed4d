/* Starting a sandbox, and making a ready one somebody's. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/memory.h"
#include "launcher/cgroup/cgroup_weight.h"
#include "launcher/network/network_policy.h"
#include "launcher/network/network_socket.h"
#include "launcher/residents/residents.h"
#include "sys/process/sys_namespace.h"
#include "sys/process/sys_process.h"

/* After a start, when it is calm again: each start puts it off, so in a rush nobody waits for it. */
#define NETWORK_AHEAD_MS 10

/* --- network --------------------------------------------------------------------------------- */

/* The sandbox's namespace, certain to be its: the pid may be another's once it was reaped. */
static int open_namespace(const struct sandbox *sandbox, const char *type, int *ret_fd,
                          struct error *err)
{
    AUTO(close) int fd = sys_namespace_open(sandbox->pid, type);
    int r = fd < 0 ? fd : sys_process_kill(sandbox->pidfd, 0);

    if (r < 0)
        return error_set(err, ERR_GONE, r, "open the %s namespace of sandbox %s", type,
                         sandbox->id.text);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

_Static_assert(WIRE_RULES_MAX <= NETWORK_RULES_MAX, "a plan's rules fit into a policy");

static int join_network(struct resident *resident, const struct wire_plan *plan, struct error *err)
{
    struct network_policy policy = {.rules = plan->rules.items, .count = plan->rules.count};
    AUTO(close) int inside = -EBADF;
    struct router *router;
    struct network network;

    if (site_router(resident->all->site, &router, err) < 0 ||
        open_namespace(&resident->sandbox, "net", &inside, err) < 0 ||
        network_attach(router, &resident->sandbox.id, inside, &network, err) < 0)
        return -1;
    return policy.count ? network_set_policy(router, &network, &policy, err) : 0;
}

/* --- a new one ------------------------------------------------------------------------------- */

struct bound {
    struct sandbox_bind binds[WIRE_BINDS_MAX];
    size_t count;
};

static void bound_done(struct bound *bound)
{
    for (size_t i = 0; i < bound->count; i++)
        (void) fd_close(bound->binds[i].source);
    bound->count = 0;
}

AUTO_DEFINE(bound, struct bound, bound_done);

static int open_binds(struct residents *all, const struct wire_plan *plan, struct bound *bound,
                      struct error *err)
{
    for (size_t i = 0; i < plan->binds.count; i++) {
        const struct wire_bind *bind = &plan->binds.items[i];

        if (bind_open(all->site->binds, bind->source, &bound->binds[i].source, err) < 0)
            return -1;
        bound->binds[i].place = bind->place;
        bound->count++;
    }
    return 0;
}

/* From now on it is somebody's: after a crash it is adopted, not taken down. */
static int mark_ready(struct resident *resident, struct error *err)
{
    resident->record.ready = true;
    return resident_write_record(resident, err);
}

static void became_ready(struct event_source *source, uint32_t events)
{
    struct resident *resident = CONTAINER_OF(source, struct resident, status);
    struct residents *all = resident->all;
    uint64_t request = resident->start_request;

    (void) events;
    event_loop_remove(all->loop, source);
    if (resident->state != RESIDENT_STARTING)
        return; /* killed meanwhile: the pipe ended with the process */
    if (sandbox_ready(&resident->sandbox, &resident->start_failure) < 0 ||
        mark_ready(resident, &resident->start_failure) < 0) {
        resident_abandon(resident);
        return;
    }
    TRACE("launcher.sandbox.ready");
    resident->state = resident->record.pooled ? RESIDENT_POOLED : RESIDENT_RUNNING;
    resident->keep_disk = !resident->record.pooled;
    resident_weigh_first(resident);
    resident->start_request = 0;
    all->hooks.started(all->hooks.context, request, resident, NULL);
}

static int watch_start(struct resident *resident, struct error *err)
{
    int r;

    resident->status = (struct event_source){.fd = resident->sandbox.status,
                                             .events = EPOLLIN,
                                             .ready = became_ready,
                                             .trace = trace_context};
    r = event_loop_add(resident->all->loop, &resident->status);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "watch the start of a sandbox");
    return resident_watch_exit(resident, err);
}

/* From here on there is a process; what fails is cleaned up by its end. */
static int follow_up(struct resident *resident, const struct wire_plan *plan, struct error *err)
{
    /* First of all its end must be seen, or what fails would never be cleaned up. */
    if (watch_start(resident, err) < 0 || resident_write_record(resident, err) < 0)
        return -1;
    return resident->record.nat ? join_network(resident, plan, err) : 0;
}

static int start(struct resident *resident, const struct wire_plan *plan, struct sandbox_plan what,
                 struct error *err)
{
    struct residents *all = resident->all;
    const struct instance *instance = all->instance;
    AUTO(bound) struct bound bound = {.count = 0};
    AUTO(close) int listener = -EBADF;

    if (open_binds(all, plan, &bound, err) < 0)
        return -1;
    what.binds = bound.binds;
    what.bind_count = bound.count;
    what.dies_with_us = all->is_once;
    /* The record comes before all that it stands for, so that a crash leaves nothing unknown. */
    if (resident_write_record(resident, err) < 0)
        return -1;
    if (network_agent_listen(instance->agents, instance->user, instance->group, &plan->id,
                             &listener, err) < 0 ||
        sandbox_start(&all->site->host, &what, listener, &resident->sandbox, err) < 0) {
        (void) network_agent_remove(instance->agents, instance->user, instance->group, &plan->id,
                                    NULL);
        return -1;
    }
    resident->is_child = true;
    event_timer_set(all->loop, &all->network_ahead, NETWORK_AHEAD_MS);
    if (follow_up(resident, plan, err) == 0)
        return 0;
    resident_abandon(resident);
    return -1;
}

/* Before anything is written down: a record of a fresh start says that the disk may be deleted. */
static int check_disk(struct residents *all, const struct sandbox_plan *what, struct error *err)
{
    AUTO(disk) struct disk disk = DISK_INIT;

    if (what->existing_disk)
        return residents_find_stopped(all, &what->id, err);
    if (residents_check_unneeded(all, &what->id, err) < 0)
        return -1;
    if (disk_pool_open_disk(all->site->host.pool, &what->id, &disk, NULL) < 0)
        return 0;
    return error_set(err, ERR_CONFLICT, 0, "sandbox %s has a disk already", what->id.text);
}

static int check_room(struct residents *all, const struct wire_plan *plan, struct error *err)
{
    if (residents_find(all, &plan->id, NULL))
        return error_set(err, ERR_CONFLICT, 0, "there is a sandbox %s already", plan->id.text);
    if (all->count >= RESIDENTS_MAX)
        return error_set(err, ERR_UNAVAILABLE, 0, "%d sandboxes are as many as one launcher keeps",
                         RESIDENTS_MAX);
    if (janitor_is_full(all->janitor))
        return error_set(err, ERR_UNAVAILABLE, 0,
                         "%d sandboxes are still being taken down; try again in a moment",
                         JANITOR_QUEUE_MAX);
    return 0;
}

/* --- one that begins as a copy --------------------------------------------------------------- */

struct fork {
    struct resident_copy copy;
    struct resident *resident; /* being copied or already ending: it stays until this is done */
    struct wire_plan plan;
};

/* Nobody was promised it. Whatever of it is there goes by way of the janitor. */
static void give_up(struct resident *resident)
{
    static const struct ending unknown = {.kind = ENDED_UNKNOWN};

    resident->was_told = true;
    resident->keep_disk = false;
    resident_ended(resident, &unknown);
}

static void disk_is_made(struct resident_copy *copy, const struct error *failure)
{
    struct fork *fork = CONTAINER_OF(copy, struct fork, copy);
    struct resident *resident = fork->resident;
    struct sandbox_plan what;

    resident->pause_us = copy->pause_us;
    if (failure)
        resident->start_failure = *failure;
    if (failure || resident->state != RESIDENT_COPYING) {
        give_up(resident);
        return;
    }
    resident->state = RESIDENT_STARTING;
    if (plan_expand(&fork->plan, &what, &resident->start_failure) == 0) {
        what.existing_disk = true; /* by now */
        if (start(resident, &fork->plan, what, &resident->start_failure) == 0)
            return;
    }
    if (resident->sandbox.pidfd < 0)
        give_up(resident);
    /* else its end tells why */
}

static int start_fork(struct resident *resident, const struct wire_plan *plan, struct error *err)
{
    AUTO(free) struct fork *fork = NULL;
    struct residents *all = resident->all;
    struct resident *source;

    /* Of what is begun something may be left, and on a pool that is read-only nobody can take it
     * away. */
    if (residents_find_source(all, &plan->origin, &source, err) < 0 ||
        disk_pool_check_space(all->site->host.pool, err) < 0)
        return -1;
    if (source && source->freeze_request)
        return error_set(err, ERR_CONFLICT, 0, "sandbox %s is just being frozen",
                         plan->origin.id.text);
    /* The record comes before the disk that it stands for. */
    if (resident_write_record(resident, err) < 0)
        return -1;
    fork = mem_alloc(sizeof(*fork));
    *fork = (struct fork){
        .copy = {.all = all, .done = disk_is_made}, .resident = resident, .plan = *plan};
    fork->copy.job.task = (struct porter_task){
        .work = PORTER_FORK,
        .from = plan->origin.set == DISK_OF_SNAPSHOT ? DISK_POOL_SNAPSHOTS : DISK_POOL_DISKS,
        .source = plan->origin.id,
        .target = plan->id,
        .limit = plan->limits.disk_bytes,
    };
    resident->state = RESIDENT_COPYING;
    if (resident_copy_begin(&fork->copy, source, plan->flags & WIRE_BIT(WIRE_PLAN_HOLD_ORIGIN),
                            err) < 0)
        return -1;
    (void) TAKE_PTR(fork);
    return 0;
}

/* --- a new one, or one again ----------------------------------------------------------------- */

int residents_create(struct residents *all, const struct wire_plan *plan, uint64_t request,
                     struct error *err)
{
    struct sandbox_plan what;
    struct resident *resident;
    int r;

    if (plan_expand(plan, &what, err) < 0 || check_room(all, plan, err) < 0 ||
        check_disk(all, &what, err) < 0)
        return -1;
    resident = resident_add(all, &plan->id);
    resident->state = RESIDENT_STARTING;
    resident->start_request = request;
    resident->unenforced = plan_unenforced(&plan->limits, all->enforced);
    resident->record.pooled = plan->flags & WIRE_BIT(WIRE_PLAN_POOLED);
    resident->had_disk = what.existing_disk;
    resident->record.fresh = !what.existing_disk || all->is_once;
    resident->record.nat = plan->network == NETWORK_NAT && !resident->record.pooled;
    resident->record.owner = plan->owner;
    resident->limits = plan->limits;
    resident->has_limits = true;
    resident->weight = CGROUP_WEIGHT_FULL;
    (void) snprintf(resident->record.image, sizeof(resident->record.image), "%s", plan->image);
    r = plan->origin.id.text[0] ? start_fork(resident, plan, err)
                                : start(resident, plan, what, err);
    if (r == 0) {
        residents_drop_stopped(all, &plan->id);
        return 0;
    }
    if (resident->sandbox.pidfd < 0)
        resident_drop(resident);
    else
        resident->start_request = 0; /* answered now, by our caller */
    return -1;
}

/* --- one in the warm pool --------------------------------------------------------------------- */

static int rename_machine(struct resident *resident, const char *hostname, struct error *err)
{
    AUTO(close) int theirs = -EBADF;
    AUTO(close) int ours = sys_namespace_open(0, "uts");
    int r, back;

    if (ours < 0)
        return error_set(err, ERR_INTERNAL, ours, "open our host name's namespace");
    if (open_namespace(&resident->sandbox, "uts", &theirs, err) < 0)
        return -1;
    r = sys_namespace_enter(theirs, CLONE_NEWUTS);
    if (r == 0) {
        r = sethostname(hostname, strlen(hostname)) < 0 ? -errno : 0;
        back = sys_namespace_enter(ours, CLONE_NEWUTS);
        r = r < 0 ? r : back;
    }
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "name the machine") : 0;
}

static int check_assignment(struct resident *resident, const struct wire_plan *plan,
                            struct error *err)
{
    if (resident->state != RESIDENT_POOLED)
        return error_set(err, ERR_CONFLICT, 0, "sandbox %s is not in the warm pool", plan->id.text);
    if (strcmp(resident->record.image, plan->image) != 0 || plan->binds.count ||
        plan->limits.files || plan->flags)
        return error_set(
            err, ERR_INVALID, 0,
            "a sandbox in the warm pool keeps its image and has no binds, flags or limit of "
            "open files");
    return plan_check_limits(&plan->limits, err);
}

static int apply_plan(struct resident *resident, const struct wire_plan *plan, struct error *err)
{
    struct residents *all = resident->all;

    resident->record.pooled = resident->record.ready = false; /* neither, until all is done */
    resident->record.nat = plan->network == NETWORK_NAT;
    resident->record.owner = plan->owner;
    resident->unenforced = plan_unenforced(&plan->limits, all->enforced);
    if (resident_write_record(resident, err) < 0 ||
        resident_apply_limits(resident, &plan->limits, err) < 0 ||
        rename_machine(resident, plan->hostname, err) < 0)
        return -1;
    if (resident->record.nat && join_network(resident, plan, err) < 0)
        return -1;
    return mark_ready(resident, err);
}

int residents_assign(struct residents *all, const struct wire_plan *plan,
                     struct resident **ret_resident, struct error *err)
{
    struct resident *resident = residents_find(all, &plan->id, err);

    if (!resident || check_assignment(resident, plan, err) < 0)
        return -1;
    if (apply_plan(resident, plan, err) < 0) {
        /* Half of what was asked for is not a sandbox for anybody. */
        resident_abandon(resident);
        return -1;
    }
    TRACE("launcher.sandbox.assigned");
    resident->state = RESIDENT_RUNNING;
    resident->keep_disk = true;
    resident_weigh_first(resident);
    *ret_resident = resident;
    return 0;
}
