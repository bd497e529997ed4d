#include "launcher/helper/janitor_work.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/memory.h"
#include "launcher/cgroup/cgroup_freeze.h"
#include "launcher/instance/record.h"
#include "launcher/network/network_socket.h"
#include "sys/file/sys_file.h"
#include "sys/network/sys_fd_pass.h"
#include "sys/process/sys_close_range.h"
#include "sys/process/sys_process.h"
#include "sys/process/sys_signal.h"

#define NANOSECONDS_PER_MS UINT64_C(1000000)
#define REMOVE_TIMEOUT_MS  5000
/* The kernel takes some 30 ms to delete a link after its namespace ended. */
#define NETWORK_STEP_MS 20
#define NETWORK_TRIES   100
#define CLOSERS_MAX     31
/* libc keeps the stacks of ended threads, but only 40 MB of them: of ordinary ones that is five. */
#define CLOSER_STACK (128 << 10)
#define TIDY_MS      30000
#define TRIM_EVERY   20 /* times of tidying */

/* A task whose network is not gone yet; everything else of it is. */
struct waiting {
    struct list link;
    struct janitor_task task;
    unsigned int tries;
};

/* A deleted sandbox whose mounts are still there, and so its disk. */
struct lingering {
    struct janitor_task task;
    struct janitor_hold hold;
};

struct work {
    struct site site;
    const struct instance *instance;
    int socket;
    struct list waiting; /* of struct waiting */
    struct lingering lingering[JANITOR_LINGER_MAX];
    size_t lingering_count;
    atomic_size_t next_to_close;
    uint64_t linger_end_ns; /* of the first of them */
    uint64_t tidy_ns;       /* not before */
    unsigned int tidied;
    bool has_trash;
};

static void answer(struct work *work, const struct janitor_task *task, const struct error *error)
{
    struct janitor_result result = {.number = task->number, .error = *error};

    TRACE(error->code == ERR_NONE ? "janitor.done" : "janitor.failed");
    /* Blocks while the launcher is busy; fails when it is dead, which the next turn sees. */
    (void) send(work->socket, &result, sizeof(result), MSG_NOSIGNAL);
}

/* --- one sandbox ----------------------------------------------------------------------------- */

static int remove_groups(struct work *work, const struct id *id, struct error *err)
{
    struct cgroup cgroup;

    /* Its first process is dead and took the others along. But after a crash of a launcher there
     * may be groups of a sandbox that never got that far. */
    if (cgroup_remove_dead(work->site.cgroups, id, err) == 0)
        return 0;
    if (cgroup_adopt(work->site.cgroups, id, &cgroup, NULL, err) < 0)
        return err->code == ERR_NOT_FOUND ? 0 : -1;
    if (cgroup_kill(&cgroup, REMOVE_TIMEOUT_MS, err) < 0 && err->code != ERR_NOT_IMPLEMENTED)
        return -1;
    return cgroup_remove(&cgroup, REMOVE_TIMEOUT_MS, err);
}

static int delete_disk(struct work *work, const struct id *id, struct error *err)
{
    if (disk_pool_delete(work->site.host.pool, id, err) < 0)
        return err->code == ERR_NOT_FOUND ? 0 : -1;
    work->has_trash = disk_pool_kind(work->site.host.pool) == DISK_POOL_PLAIN;
    return 0;
}

static int release_range(struct work *work, const struct id *id, struct error *err)
{
    if (id_range_release(work->site.host.ids, id, err) < 0)
        return err->code == ERR_NOT_FOUND ? 0 : -1;
    return 0;
}

/* 1: gone, 0: not yet, -1. */
static int finish_network(struct work *work, const struct id *id, bool cut, struct error *err)
{
    struct router *router;
    struct network network;

    if (!work->site.router && !router_may_have(work->site.network_folder, id))
        return 1;
    if (site_router(&work->site, &router, err) < 0)
        return -1;
    if (network_adopt(router, id, &network, err) < 0)
        return err->code == ERR_NOT_FOUND ? 1 : -1;
    if (cut && network_cut(router, &network, err) < 0)
        return -1;
    return network_finish(router, &network, err);
}

static void wait_for_network(struct work *work, const struct janitor_task *task)
{
    struct waiting *waiting = mem_alloc(sizeof(*waiting));

    waiting->task = *task;
    list_append(&work->waiting, &waiting->link);
}

/* The last steps, when no mount of its disk or with its ids is left. */
static void finish(struct work *work, const struct janitor_task *task)
{
    struct error err = ERROR_INIT;
    int gone;
    TRACE_AS(&task->trace);

    TRACE("janitor.finish");
    if (!task->keep_disk && delete_disk(work, &task->id, &err) < 0) {
        answer(work, task, &err);
        return;
    }
    error_clear(&err);
    gone = task->has_network ? finish_network(work, &task->id, false, &err) : 1;
    if (gone == 0) {
        wait_for_network(work, task);
        return;
    }
    if (gone > 0) {
        error_clear(&err);
        if (release_range(work, &task->id, &err) == 0)
            error_clear(&err);
    }
    answer(work, task, &err);
}

static uint64_t now_ns(void)
{
    return clock_monotonic_ns(clock_system());
}

/* Those mounts that no other thread takes. */
static void *close_some(void *context)
{
    struct work *work = context;
    size_t at;

    while ((at = atomic_fetch_add(&work->next_to_close, 1)) < work->lingering_count)
        janitor_hold_done(&work->lingering[at].hold);
    return NULL;
}

/* Side by side: each close waits for a commit of the pool, and those that wait at the same time
 * wait for the same one. */
static void close_mounts(struct work *work)
{
    pthread_t threads[CLOSERS_MAX];
    pthread_attr_t small;
    size_t started = 0;

    atomic_store(&work->next_to_close, 0);
    (void) pthread_attr_init(&small);
    (void) pthread_attr_setstacksize(&small, CLOSER_STACK); /* else it is the usual one */
    while (started + 1 < work->lingering_count && started < CLOSERS_MAX &&
           pthread_create(&threads[started], &small, close_some, work) == 0)
        started++;
    (void) pthread_attr_destroy(&small);
    (void) close_some(work);
    while (started > 0)
        (void) pthread_join(threads[--started], NULL);
}

/* All before the first mounts, which take a while: the kernel ends those together that are given up
 * before it comes to the first. */
static void close_networks(struct work *work)
{
    for (size_t i = 0; i < work->lingering_count; i++) {
        struct janitor_hold *hold = &work->lingering[i].hold;

        hold->network = fd_close(hold->network);
    }
}

static void close_lingering(struct work *work)
{
    size_t count = work->lingering_count;

    close_networks(work);
    close_mounts(work);
    work->lingering_count = 0;
    for (size_t i = 0; i < count; i++)
        finish(work, &work->lingering[i].task);
}

static void linger(struct work *work, const struct janitor_task *task,
                   const struct janitor_hold *hold)
{
    if (work->lingering_count == 0)
        work->linger_end_ns = now_ns() + JANITOR_LINGER_MS * NANOSECONDS_PER_MS;
    work->lingering[work->lingering_count++] = (struct lingering){*task, *hold};
    if (work->lingering_count == JANITOR_LINGER_MAX)
        close_lingering(work);
}

/* Takes what is held. */
static void take_down(struct work *work, const struct janitor_task *task, struct janitor_hold *hold)
{
    const struct instance *instance = work->instance;
    struct error err = ERROR_INIT;
    TRACE_AS(&task->trace);

    TRACE("janitor.take_down");
    /* A disk that stays may be started on at once. */
    if (task->keep_disk)
        janitor_hold_done(hold);
    if (remove_groups(work, &task->id, &err) < 0 ||
        network_agent_remove(instance->agents, instance->user, instance->group, &task->id, &err) <
            0) {
        janitor_hold_done(hold);
        answer(work, task, &err);
        return;
    }
    if (hold->mounts >= 0)
        linger(work, task, hold);
    else
        finish(work, task);
}

static void look_at_networks(struct work *work)
{
    LIST_EACH (&work->waiting, at) {
        struct waiting *waiting = CONTAINER_OF(at, struct waiting, link);
        struct error err = ERROR_INIT;
        bool cut = ++waiting->tries >= NETWORK_TRIES;
        TRACE_AS(&waiting->task.trace);
        int gone = finish_network(work, &waiting->task.id, cut, &err);

        if (gone == 0 && !cut)
            continue;
        if (gone == 0)
            (void) error_set(&err, ERR_UNAVAILABLE, 0, "its link to the router does not go");
        else if (gone > 0 && release_range(work, &waiting->task.id, &err) == 0)
            error_clear(&err);
        answer(work, &waiting->task, &err);
        list_remove(&waiting->link);
        free(waiting);
    }
}

/* --- the pool -------------------------------------------------------------------------------- */

static void tidy(struct work *work)
{
    struct disk_pool *pool = work->site.host.pool;
    unsigned int dropped;
    uint64_t bytes;

    work->tidy_ns = now_ns() + TIDY_MS * NANOSECONDS_PER_MS;
    /* All of it can wait for the next time: nothing here is an error for anybody. */
    (void) disk_pool_clean(pool, DISK_POOL_CLEAN_MAX, &dropped, NULL);
    work->has_trash = disk_pool_kind(pool) == DISK_POOL_PLAIN; /* of others than us */
    if (++work->tidied % TRIM_EVERY == 0)
        (void) disk_pool_trim(pool, &bytes, NULL);
}

static void empty_trash(struct work *work)
{
    work->has_trash = false;
    (void) disk_pool_empty_trash(work->site.host.pool, NULL);
}

/* --- life ------------------------------------------------------------------------------------ */

static void keep_descriptors(const struct work *work, const struct host_mounts *host)
{
    const int kept[] = {work->socket,
                        work->instance->folder,
                        work->instance->lock,
                        work->instance->records,
                        work->instance->agents,
                        host ? host->namespace : work->socket,
                        host ? host->root : work->socket};

    /* Copies of the launcher's descriptors would keep namespaces and sockets alive. */
    (void) sys_close_all_but(STDERR_FILENO + 1, kept, ARRAY_COUNT(kept));
}

/* What the next turn waits for: a task, a link to go, mounts to close, time to tidy up. */
static int patience(const struct work *work)
{
    uint64_t now = now_ns();
    int wait = work->has_trash ? 0 : TIDY_MS;

    if (!list_is_empty(&work->waiting) && wait > NETWORK_STEP_MS)
        wait = NETWORK_STEP_MS;
    if (work->lingering_count) {
        uint64_t left = work->linger_end_ns > now ? work->linger_end_ns - now : 0;

        if ((uint64_t) wait * NANOSECONDS_PER_MS > left)
            wait = (int) (left / NANOSECONDS_PER_MS + 1);
    }
    return wait;
}

/* One task and what it brings, which goes to `ret_hold`. 1, 0 when none is there, -1 at the end. */
static int receive_task(struct work *work, struct janitor_task *ret_task,
                        struct janitor_hold *ret_hold)
{
    int fds[] = {-EBADF, -EBADF};
    size_t count = 0;
    ssize_t got;

    if (sys_file_poll(work->socket, POLLIN, 0) == 0)
        return 0;
    got = sys_fd_pass_receive(work->socket, ret_task, sizeof(*ret_task), fds, ARRAY_COUNT(fds),
                              &count);
    *ret_hold = (struct janitor_hold){.mounts = count > 0 ? fds[0] : -EBADF,
                                      .network = count > 1 ? fds[1] : -EBADF};
    return got == (ssize_t) sizeof(*ret_task) ? 1 : -1;
}

static bool take_tasks(struct work *work)
{
    struct janitor_task task;
    struct janitor_hold hold;
    int got;

    while ((got = receive_task(work, &task, &hold)) > 0) {
        take_down(work, &task, &hold);
        if (work->lingering_count && now_ns() >= work->linger_end_ns)
            close_lingering(work);
    }
    return got >= 0;
}

static bool turn(struct work *work)
{
    bool has_tasks = sys_file_poll(work->socket, POLLIN, patience(work)) != 0;

    if (work->lingering_count && now_ns() >= work->linger_end_ns)
        close_lingering(work);
    if (has_tasks)
        return take_tasks(work);
    if (!list_is_empty(&work->waiting))
        look_at_networks(work);
    else if (work->has_trash)
        empty_trash(work);
    else if (now_ns() >= work->tidy_ns)
        tidy(work);
    return true;
}

_Noreturn void janitor_work(const struct site_options *site, const struct instance *instance,
                            int socket)
{
    struct work work = {.instance = instance, .socket = socket};
    struct site_options options = *site;
    struct error err = ERROR_INIT;

    trace_name("janitor");
    (void) sys_signal_reset();
    (void) setsid(); /* Ctrl-C is for the launcher, which then ends us */
    /* With the launcher, and sharing its lock: the next one starts when nobody works here any more,
     * or what it starts anew would be taken down by us. */
    (void) sys_process_die_with_parent(SIGKILL, getppid());
    keep_descriptors(&work, site->host);
    list_init(&work.waiting);
    work.tidy_ns = now_ns() + TIDY_MS * NANOSECONDS_PER_MS;
    options.only_disks = true;
    if (site_open(&work.site, &options, &err) < 0) {
        (void) dprintf(STDERR_FILENO, "burrow-launcher: janitor: %s\n", err.message);
        _exit(1);
    }
    while (turn(&work))
        ;
    _exit(0);
}
