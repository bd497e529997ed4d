#include "launcher/service_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "launcher/wall/seccomp.h"
#include "sys/file/sys_file.h"

#define END_TIMEOUT_MS 5000

struct service_job {
    struct list link;
    struct service_keeper *keeper;
    struct wire_keeper_job asked;
    uint64_t request;
    struct trace_context trace;
    int fds[SERVICE_KEEPER_FDS]; /* owned, until it runs */
    bool is_running;
    bool has_made_target; /* the disk goes again unless the job succeeds */
    struct keeper_job job;
    struct event_source exit;
};

int service_keeper_init(struct service_keeper *keeper, struct error *err)
{
    const struct site *site = keeper->residents->site;
    int r = seccomp_filter_init_keeper(&keeper->filter);

    list_init(&keeper->running);
    list_init(&keeper->waiting);
    keeper->host = (struct keeper_host){
        .pool = site->host.pool,
        .ids = site->host.ids,
        .images = site->host.images,
        .filter = &keeper->filter,
        .limits = &site->limits,
        .program = site->keeper,
    };
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "prepare the keeper's filter") : 0;
}

static struct event_loop *loop_of(const struct service_keeper *keeper)
{
    return keeper->residents->loop;
}

/* --- who has which disk ---------------------------------------------------------------------- */

static bool is_disk(const struct disk_ref *disk, enum disk_set set, const struct id *id)
{
    return disk->set == set && strcmp(disk->id.text, id->text) == 0;
}

static bool speaks_of(const struct wire_keeper_job *asked, enum disk_set set, const struct id *id)
{
    return is_disk(&asked->on, set, id) || is_disk(&asked->base, set, id) ||
           (set == DISK_OF_SANDBOX && strcmp(asked->target.text, id->text) == 0);
}

/* The sandbox whose disk a job writes, or NULL. */
static const struct id *written_by(const struct wire_keeper_job *asked)
{
    if (asked->job == DISK_JOB_DELETE)
        return &asked->on.id;
    return asked->target.text[0] ? &asked->target : NULL;
}

static const struct id *find_clash(const struct list *jobs, const struct wire_keeper_job *asked)
{
    const struct id *written = written_by(asked);

    LIST_EACH (jobs, at) {
        const struct service_job *job = CONTAINER_OF(at, struct service_job, link);
        const struct id *its = written_by(&job->asked);

        if (written && speaks_of(&job->asked, DISK_OF_SANDBOX, written))
            return written;
        if (its && speaks_of(asked, DISK_OF_SANDBOX, its))
            return its;
    }
    return NULL;
}

static bool is_used_in(const struct list *jobs, enum disk_set set, const struct id *id)
{
    LIST_EACH (jobs, at) {
        if (speaks_of(&CONTAINER_OF(at, struct service_job, link)->asked, set, id))
            return true;
    }
    return false;
}

bool service_keeper_uses(const struct service_keeper *keeper, enum disk_set set,
                         const struct id *id)
{
    return is_used_in(&keeper->running, set, id) || is_used_in(&keeper->waiting, set, id);
}

static int check_disk(struct service_keeper *keeper, const struct disk_ref *disk, struct error *err)
{
    /* That a snapshot is there shows when it is mounted. */
    if (!disk->id.text[0] || disk->set != DISK_OF_SANDBOX)
        return 0;
    if (residents_find(keeper->residents, &disk->id, NULL))
        return error_set(err, ERR_CONFLICT, 0, "sandbox %s runs: stop it first", disk->id.text);
    return residents_find_stopped(keeper->residents, &disk->id, err);
}

static int check(struct service_keeper *keeper, const struct wire_keeper_job *asked,
                 struct error *err)
{
    const struct id *clash = find_clash(&keeper->running, asked);

    if (!clash)
        clash = find_clash(&keeper->waiting, asked);
    if (clash)
        return error_set(err, ERR_CONFLICT, 0, "a keeper works on the disk of sandbox %s",
                         clash->text);
    if (check_disk(keeper, &asked->on, err) < 0 || check_disk(keeper, &asked->base, err) < 0)
        return -1;
    if (asked->target.text[0] && residents_find(keeper->residents, &asked->target, NULL))
        return error_set(err, ERR_CONFLICT, 0, "there is a sandbox %s already", asked->target.text);
    return 0;
}

/* --- one job --------------------------------------------------------------------------------- */

static struct service_job *new_job(struct service_keeper *keeper,
                                   const struct wire_keeper_job *asked,
                                   const int fds[static SERVICE_KEEPER_FDS], uint64_t request)
{
    struct service_job *job = mem_alloc(sizeof(*job));

    *job = (struct service_job){
        .keeper = keeper, .asked = *asked, .request = request, .job = KEEPER_JOB_INIT};
    trace_about(asked->target.text[0] ? &asked->target : &asked->on.id);
    job->trace = trace_context;
    list_init(&job->link);
    for (size_t i = 0; i < SERVICE_KEEPER_FDS; i++)
        job->fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
    return job;
}

static void close_streams(struct service_job *job)
{
    for (size_t i = 0; i < SERVICE_KEEPER_FDS; i++)
        job->fds[i] = fd_close(job->fds[i]);
}

/* The last of a job. One that never ran has not changed a count. */
static void drop(struct service_job *job, bool failed)
{
    struct service_keeper *keeper = job->keeper;
    const struct id *target = &job->asked.target;

    if (job->has_made_target) {
        if (failed)
            (void) disk_pool_delete(keeper->host.pool, target, NULL);
        residents_end_disk(keeper->residents, target);
        if (!failed)
            residents_add_stopped(keeper->residents, target);
    }
    if (job->is_running) {
        event_loop_remove(loop_of(keeper), &job->exit);
        keeper->running_count--;
    }
    list_remove(&job->link);
    close_streams(job);
    free(job);
}

static int prepare_target(struct service_job *job, struct error *err)
{
    struct residents *residents = job->keeper->residents;
    const struct wire_keeper_job *asked = &job->asked;

    if (!asked->target.text[0])
        return 0;
    /* Another layer on top of what is there. */
    if (asked->job == DISK_JOB_UNPACK &&
        residents_find_stopped(residents, &asked->target, NULL) == 0) {
        /* A difference is to what lies in one folder. */
        if (disk_pool_height(job->keeper->host.pool, DISK_POOL_DISKS, &asked->target) > 0)
            return error_set(err, ERR_CONFLICT, 0, "the disk of sandbox %s shares layers",
                             asked->target.text);
        return 0;
    }
    if (residents_begin_disk(residents, &asked->target, err) < 0)
        return -1;
    if (disk_pool_create(job->keeper->host.pool, &asked->target, asked->disk_bytes, err) < 0) {
        residents_end_disk(residents, &asked->target);
        return -1;
    }
    job->has_made_target = true;
    return 0;
}

static struct keeper_disk disk_of(const struct disk_ref *disk)
{
    static const enum disk_pool_set sets[] = {
        [DISK_OF_SANDBOX] = DISK_POOL_DISKS,
        [DISK_OF_SNAPSHOT] = DISK_POOL_SNAPSHOTS,
    };

    return (struct keeper_disk){.set = sets[disk->set], .id = disk->id};
}

static int start_keeper(struct service_job *job, struct error *err)
{
    static const enum keeper_task tasks[] = {
        [DISK_JOB_DELETE] = KEEPER_DELETE,       [DISK_JOB_MEASURE] = KEEPER_MEASURE,
        [DISK_JOB_LIST] = KEEPER_LIST,           [DISK_JOB_COPY] = KEEPER_COPY,
        [DISK_JOB_DIFF] = KEEPER_DIFF,           [DISK_JOB_PACK] = KEEPER_PACK,
        [DISK_JOB_UNPACK] = KEEPER_UNPACK,       [DISK_JOB_ARCHIVE] = KEEPER_ARCHIVE,
        [DISK_JOB_UNARCHIVE] = KEEPER_UNARCHIVE, [DISK_JOB_SCAN] = KEEPER_SCAN,
        [DISK_JOB_READ] = KEEPER_READ,
    };
    const struct keeper_spec spec = {
        .task = tasks[job->asked.job],
        .disk = disk_of(&job->asked.on),
        .base = disk_of(&job->asked.base),
        .target = {.set = DISK_POOL_DISKS, .id = job->asked.target},
        .image = job->asked.image,
    };
    const struct keeper_streams streams = {job->fds[0], job->fds[1], job->fds[2]};

    for (size_t i = 0; i < SERVICE_KEEPER_FDS; i++) {
        if (job->fds[i] < 0)
            return error_set(err, ERR_UNAVAILABLE, EMFILE, "take the descriptors of a job");
    }
    if (keeper_job_start(&job->keeper->host, &spec, &streams, &job->job, err) < 0)
        return -1;
    close_streams(job); /* the keeper has its own, and their end must be seen */
    return 0;
}

static void end_now(struct service_job *job)
{
    struct sys_exit ended;

    keeper_job_cancel(&job->job);
    (void) sys_file_poll(job->job.pidfd, POLLIN, END_TIMEOUT_MS);
    (void) keeper_job_finish(&job->keeper->host, &job->job, &ended, NULL);
}

static void job_ended(struct event_source *source, uint32_t events);

/* Let it run. On failure nothing is left but the job itself. */
static int launch(struct service_job *job, struct error *err)
{
    struct service_keeper *keeper = job->keeper;
    int r;

    if (prepare_target(job, err) < 0 || start_keeper(job, err) < 0)
        return -1;
    job->exit = (struct event_source){
        .fd = job->job.pidfd, .events = EPOLLIN, .ready = job_ended, .trace = job->trace};
    r = event_loop_add(loop_of(keeper), &job->exit);
    if (r < 0) {
        end_now(job);
        return error_set(err, ERR_INTERNAL, r, "watch a keeper job");
    }
    list_append(&keeper->running, &job->link);
    keeper->running_count++;
    job->is_running = true;
    return 0;
}

/* --- the queue ------------------------------------------------------------------------------- */

static void launch_waiting(struct service_keeper *keeper)
{
    static const struct ending never = {.kind = ENDED_UNKNOWN};
    struct list *first;

    while (keeper->running_count < SERVICE_KEEPER_MAX && (first = list_first(&keeper->waiting))) {
        struct service_job *job = CONTAINER_OF(first, struct service_job, link);
        uint64_t request = job->request;
        struct error err = ERROR_INIT;
        TRACE_AS(&job->trace);

        list_remove(first);
        keeper->waiting_count--;
        /* Its disks may be gone by now. */
        if (check(keeper, &job->asked, &err) == 0 && launch(job, &err) == 0)
            continue;
        drop(job, true);
        keeper->ended(keeper->context, request, &never, &err);
    }
}

static void job_ended(struct event_source *source, uint32_t events)
{
    struct service_job *job = CONTAINER_OF(source, struct service_job, exit);
    struct service_keeper *keeper = job->keeper;
    struct ending ending = {.kind = ENDED_UNKNOWN};
    struct sys_exit ended = {.kind = SYS_EXIT_UNKNOWN};
    struct error err = ERROR_INIT;
    uint64_t request = job->request;
    bool failed;

    (void) events;
    event_loop_remove(loop_of(keeper), source);
    failed = keeper_job_finish(&keeper->host, &job->job, &ended, &err) < 0;
    if (ended.kind != SYS_EXIT_UNKNOWN)
        ending = (struct ending){
            .kind = ended.kind == SYS_EXIT_STATUS ? ENDED_STATUS : ENDED_SIGNAL,
            .value = (uint8_t) ended.value,
        };
    drop(job, failed || ending.kind != ENDED_STATUS || ending.value != 0);
    keeper->ended(keeper->context, request, &ending, failed ? &err : NULL);
    launch_waiting(keeper);
}

int service_keeper_start(struct service_keeper *keeper, const struct wire_keeper_job *asked,
                         const int fds[static SERVICE_KEEPER_FDS], uint64_t request,
                         struct error *err)
{
    struct service_job *job;

    if (check(keeper, asked, err) < 0)
        return -1;
    if (keeper->waiting_count == SERVICE_KEEPER_WAITING_MAX)
        return error_set(err, ERR_UNAVAILABLE, 0, "%d keeper jobs are as many as may wait",
                         SERVICE_KEEPER_WAITING_MAX);
    job = new_job(keeper, asked, fds, request);
    if (keeper->running_count == SERVICE_KEEPER_MAX) {
        list_append(&keeper->waiting, &job->link);
        keeper->waiting_count++;
        return 0;
    }
    if (launch(job, err) == 0)
        return 0;
    drop(job, true);
    return -1;
}

void service_keeper_done(struct service_keeper *keeper)
{
    LIST_EACH (&keeper->waiting, at)
        drop(CONTAINER_OF(at, struct service_job, link), true);
    keeper->waiting_count = 0;
    LIST_EACH (&keeper->running, at) {
        struct service_job *job = CONTAINER_OF(at, struct service_job, link);

        end_now(job);
        drop(job, true);
    }
}
