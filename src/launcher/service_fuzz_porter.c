/* The porter of the host in memory: copies are made when the fuzzer says so. */
#include <errno.h>
#include <string.h>

#include "launcher/cgroup/cgroup_reclaim.h"
#include "launcher/service_fuzz_host.h"

int porter_init(struct porter *porter, struct event_loop *loop, const struct site_options *options,
                struct site *site, const struct instance *instance, struct log *log,
                struct error *err)
{
    (void) porter, (void) loop, (void) options, (void) site, (void) instance, (void) log;
    (void) err;
    return 0;
}

void porter_add(struct porter *porter, struct porter_job *job)
{
    (void) porter;
    must(job->task.work <= PORTER_SYNC);
    must(job->task.work == PORTER_SYNC || id_is_valid(job->task.target.text));
    must(job->task.work >= PORTER_RECLAIM || id_is_valid(job->task.source.text));
    must(job->task.limit == 0 || job->task.limit >= DISK_LIMIT_MIN);
    must(job->task.since_ms == 0 || the_host.is_plain);
    must(!job->task.contents || job->task.work == PORTER_SYNC);
    job->stage = PORTER_NEW;
    job->copies = job->task.since_ms != 0;
    error_clear(&job->failure);
    list_append(&the_host.copies, &job->link);
}

void porter_finish(struct porter_job *job)
{
    must(job->stage == PORTER_COPYING);
    job->stage = PORTER_COPIED;
}

void porter_give_up(struct porter_job *job, const struct error *failure)
{
    must(job->stage == PORTER_COPYING);
    job->stage = PORTER_COPIED;
    job->failure = *failure;
}

bool porter_is_full(const struct porter *porter)
{
    (void) porter;
    return host_fails(NULL, NULL);
}

static bool is(const struct id *one, const struct id *other)
{
    return strcmp(one->text, other->text) == 0;
}

bool porter_needs(const struct porter *porter, const struct id *disk)
{
    (void) porter;
    LIST_EACH (&the_host.copies, at) {
        const struct porter_task *task = &CONTAINER_OF(at, struct porter_job, link)->task;

        if ((task->work == PORTER_ROLL_BACK && is(&task->target, disk)) ||
            (the_host.is_plain && task->work < PORTER_RECLAIM && task->from == DISK_POOL_DISKS &&
             is(&task->source, disk)))
            return true;
    }
    return false;
}

bool porter_makes(const struct porter *porter, const struct id *target)
{
    (void) porter;
    LIST_EACH (&the_host.copies, at) {
        const struct porter_task *task = &CONTAINER_OF(at, struct porter_job, link)->task;

        if (task->work < PORTER_RECLAIM && is(&task->target, target))
            return true;
    }
    return false;
}

static bool has_source(const struct porter_task *task)
{
    const struct host_box *box = host_find(&task->source);

    return box && (task->from == DISK_POOL_SNAPSHOTS ? box->has_snapshot : box->has_disk);
}

/* -1 with `err`: nothing was made. */
static int carry(const struct porter_task *task, struct error *err)
{
    bool is_of_all = task->work == PORTER_SYNC;
    struct host_box *target = is_of_all ? NULL : host_find(&task->target);

    if ((!target && !is_of_all) || host_fails(NULL, err))
        return error_set(err, ERR_INTERNAL, EIO, "it cannot be carried");
    if (task->work >= PORTER_RECLAIM)
        return 0;
    if (!has_source(task))
        return host_not_there(err);
    switch (task->work) {
    case PORTER_FLUSH:
        return 0;
    case PORTER_SNAPSHOT:
        if (target->has_snapshot) /* as the pool says it */
            return error_set(err, ERR_CONFLICT, EEXIST, "there is such a snapshot");
        target->has_snapshot = true;
        return 0;
    case PORTER_FORK:
        must(!target->has_disk && !target->is_alive && target->has_record);
        target->has_disk = true;
        target->is_doomed = false;
        return 0;
    default:
        must(!target->is_alive && !target->has_groups);
        return target->has_disk ? 0 : host_not_there(err);
    }
}

/* The first that does not wait for its source to stand still, or NULL. */
static struct porter_job *find_job(void)
{
    LIST_EACH (&the_host.copies, at) {
        struct porter_job *job = CONTAINER_OF(at, struct porter_job, link);

        if (job->stage != PORTER_COPYING)
            return job;
    }
    return NULL;
}

bool host_carry(void)
{
    struct porter_job *job = find_job();
    struct error failure = ERROR_INIT;
    int r;

    if (!job)
        return false;
    if (job->task.since_ms && job->stage == PORTER_NEW) {
        job->stage = PORTER_COPYING;
        job->ready(job);
        return true;
    }
    failure = job->failure;
    r = failure.code != ERR_NONE ? -1 : carry(&job->task, &failure);
    if (r == 0 && job->task.work <= PORTER_FORK)
        job->taken(job);
    list_remove(&job->link);
    job->bytes = 1;
    job->done(job, r < 0 ? &failure : NULL);
    return true;
}

/* --- what copies need beside ----------------------------------------------------------------- */

bool disk_pool_shares(const struct disk_pool *pool)
{
    (void) pool;
    return !the_host.is_plain;
}

bool disk_pool_has(const struct disk_pool *pool, enum disk_pool_set set, const struct id *id)
{
    const struct host_box *box = host_find(id);

    (void) pool;
    must(set == DISK_POOL_SNAPSHOTS);
    return box && box->has_snapshot;
}

int disk_pool_delete_snapshot(struct disk_pool *pool, const struct id *snapshot, struct error *err)
{
    struct host_box *box = host_find(snapshot);

    (void) pool;
    if (!box || !box->has_snapshot)
        return host_not_there(err);
    if (host_fails(NULL, err))
        return -1;
    box->has_snapshot = false;
    return 0;
}

size_t disk_pool_height(struct disk_pool *pool, enum disk_pool_set set, const struct id *id)
{
    (void) pool, (void) set, (void) id;
    return the_host.is_plain && host_fails(NULL, NULL) ? 1 : 0;
}

bool cgroup_can_reclaim(const struct cgroup_host *host)
{
    (void) host;
    return true;
}
