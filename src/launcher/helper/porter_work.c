#include "launcher/helper/porter_work.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "launcher/cgroup/cgroup_reclaim.h"
#include "sys/process/sys_close_range.h"
#include "sys/process/sys_process.h"
#include "sys/process/sys_signal.h"

#define STACK_SIZE ((size_t) 256 << 10)

struct work {
    struct site site;
    int socket;
    atomic_uint threads; /* that there are */
    atomic_uint idle;    /* of them */
};

/* --- the tasks ------------------------------------------------------------------------------- */

typedef int perform(struct work *work, const struct porter_task *task, uint64_t *ret_bytes,
                    struct error *err);

struct progress {
    int socket;
    uint64_t number;
};

static void taken(void *context)
{
    const struct progress *progress = context;
    const struct porter_result result = {.number = progress->number, .is_taken = true};

    (void) send(progress->socket, &result, sizeof(result), MSG_NOSIGNAL);
}

static int snapshot(struct work *work, const struct porter_task *task, uint64_t *ret_bytes,
                    struct error *err)
{
    struct disk_pool *pool = work->site.host.pool;
    struct progress progress = {work->socket, task->number};
    const struct disk_pool_waiter waiter = {taken, &progress};

    (void) ret_bytes;
    if (disk_pool_snapshot(pool, &task->source, &task->target, &waiter, err) == 0)
        return 0;
    /* Made by one who died before he could say so, or before it was on disk. */
    return task->is_repeated && err->code == ERR_CONFLICT ? disk_pool_sync(pool, err) : -1;
}

static int fork_disk(struct work *work, const struct porter_task *task, uint64_t *ret_bytes,
                     struct error *err)
{
    struct disk_pool *pool = work->site.host.pool;
    struct progress progress = {work->socket, task->number};
    const struct disk_pool_waiter waiter = {taken, &progress};

    (void) ret_bytes;
    if (disk_pool_fork(pool, task->from, &task->source, &task->target, task->limit, &waiter, err) ==
        0)
        return 0;
    if (!task->is_repeated || err->code != ERR_CONFLICT)
        return -1;
    /* Made by one who died before he could say so; in a plain pool perhaps before it was on disk.
     */
    return disk_pool_shares(pool) ? 0 : disk_pool_sync(pool, err);
}

static int roll_back(struct work *work, const struct porter_task *task, uint64_t *ret_bytes,
                     struct error *err)
{
    (void) ret_bytes;
    return disk_pool_roll_back(work->site.host.pool, &task->target, &task->source, task->limit,
                               err);
}

static int flush(struct work *work, const struct porter_task *task, uint64_t *ret_bytes,
                 struct error *err)
{
    (void) ret_bytes;
    return disk_pool_flush(work->site.host.pool, &task->source, err);
}

static int reclaim(struct work *work, const struct porter_task *task, uint64_t *ret_bytes,
                   struct error *err)
{
    struct cgroup cgroup;

    if (cgroup_adopt(work->site.cgroups, &task->target, &cgroup, NULL, err) < 0)
        return -1;
    return cgroup_reclaim(&cgroup, ret_bytes, err);
}

static int sync_pool(struct work *work, const struct porter_task *task, uint64_t *ret_bytes,
                     struct error *err)
{
    struct disk_pool *pool = work->site.host.pool;

    (void) ret_bytes;
    return task->contents ? disk_pool_sync_contents(pool, err) : disk_pool_sync(pool, err);
}

static perform *const tasks[] = {
    [PORTER_SNAPSHOT] = snapshot, [PORTER_FORK] = fork_disk,  [PORTER_ROLL_BACK] = roll_back,
    [PORTER_FLUSH] = flush,       [PORTER_RECLAIM] = reclaim, [PORTER_SYNC] = sync_pool,
};

static void perform_task(struct work *work, const struct porter_task *task)
{
    struct porter_result result = {.number = task->number, .error = ERROR_INIT};
    TRACE_AS(&task->trace);

    TRACE_WITH("porter.begin", porter_work_name(task->work));
    if (tasks[task->work](work, task, &result.bytes, &result.error) == 0)
        error_clear(&result.error);
    TRACE_WITH(result.error.code == ERR_NONE ? "porter.done" : "porter.failed",
               porter_work_name(task->work));
    /* Blocks while the launcher is busy; fails when it is dead, which the next turn sees. */
    (void) send(work->socket, &result, sizeof(result), MSG_NOSIGNAL);
}

/* --- the threads ----------------------------------------------------------------------------- */

static void *serve(void *context);

/* Without it the others go on, less of them at once. */
static void add_thread(struct work *work)
{
    pthread_attr_t attributes;
    pthread_t thread;

    if (atomic_fetch_add(&work->threads, 1) >= PORTER_THREADS ||
        pthread_attr_init(&attributes) != 0) {
        atomic_fetch_sub(&work->threads, 1);
        return;
    }
    (void) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void) pthread_attr_setstacksize(&attributes, STACK_SIZE);
    if (pthread_create(&thread, &attributes, serve, work) != 0)
        atomic_fetch_sub(&work->threads, 1);
    (void) pthread_attr_destroy(&attributes);
}

/* Each waits at the socket itself; there is always one more than is busy. */
static void *serve(void *context)
{
    struct work *work = context;
    struct porter_task task;

    for (;;) {
        atomic_fetch_add(&work->idle, 1);
        if (recv(work->socket, &task, sizeof(task), 0) != (ssize_t) sizeof(task))
            _exit(0);
        if (atomic_fetch_sub(&work->idle, 1) == 1)
            add_thread(work);
        perform_task(work, &task);
    }
    return NULL;
}

_Noreturn void porter_work(const struct site_options *site, const struct instance *instance,
                           int socket)
{
    struct work work = {.socket = socket, .threads = 1};
    struct site_options options = *site;
    struct error err = ERROR_INIT;
    const int kept[] = {socket, instance->lock};

    trace_name("porter");
    (void) sys_signal_reset();
    (void) setsid(); /* Ctrl-C is for the launcher, which then ends us */
    /* With the launcher, and sharing its lock: the next one starts when nobody works on its disks
     * any more. */
    (void) sys_process_die_with_parent(SIGKILL, getppid());
    crash_point_take_along(getppid());
    (void) sys_close_all_but(STDERR_FILENO + 1, kept, ARRAY_COUNT(kept));
    options.only_disks = true;
    if (site_open(&work.site, &options, &err) < 0) {
        (void) dprintf(STDERR_FILENO, "burrow-launcher: porter: %s\n", err.message);
        _exit(1);
    }
    (void) serve(&work);
    _exit(0);
}
