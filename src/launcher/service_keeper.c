#include "launcher/service_keeper.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "launcher/keeper_filter.h"
#include "sys/sys_file.h"

#define END_TIMEOUT_MS 5000

struct service_job {
    struct list link;
    struct service_keeper *keeper;
    struct keeper_job job;
    struct event_source exit;
    uint64_t request;
    struct id disk;
    bool has_target;
    struct id target;
};

int service_keeper_init(struct service_keeper *keeper, struct error *err)
{
    const struct site *site = keeper->residents->site;
    int r = keeper_filter_init(&keeper->filter);

    list_init(&keeper->jobs);
    keeper->host = (struct keeper_host){
        .pool = site->host.pool,
        .ids = site->host.ids,
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

static void drop(struct service_job *job, bool failed)
{
    struct service_keeper *keeper = job->keeper;

    if (failed && job->has_target)
        (void) disk_pool_delete(keeper->host.pool, &job->target, NULL);
    if (job->has_target)
        residents_end_disk(keeper->residents, &job->target);
    if (!failed && job->has_target)
        residents_add_stopped(keeper->residents, &job->target);
    event_loop_remove(loop_of(keeper), &job->exit);
    list_remove(&job->link);
    keeper->count--;
    free(job);
}

static void job_ended(struct event_source *source, uint32_t events)
{
    struct service_job *job = CONTAINER_OF(source, struct service_job, exit);
    struct service_keeper *keeper = job->keeper;
    struct wire_ending ending = {.kind = WIRE_EXIT_UNKNOWN};
    struct sys_exit ended = {.kind = SYS_EXIT_UNKNOWN};
    struct error err = ERROR_INIT;
    uint64_t request = job->request;
    bool failed;

    (void) events;
    event_loop_remove(loop_of(keeper), source);
    failed = keeper_job_finish(&keeper->host, &job->job, &ended, &err) < 0;
    if (ended.kind != SYS_EXIT_UNKNOWN)
        ending = (struct wire_ending){
            .kind = ended.kind == SYS_EXIT_STATUS ? WIRE_EXIT_EXITED : WIRE_EXIT_SIGNALED,
            .value = (uint8_t) ended.value,
        };
    drop(job, failed || ending.kind != WIRE_EXIT_EXITED || ending.value != 0);
    keeper->ended(keeper->context, request, &ending, failed ? &err : NULL);
}

bool service_keeper_uses(const struct service_keeper *keeper, const struct id *id)
{
    LIST_EACH (&keeper->jobs, at) {
        const struct service_job *job = CONTAINER_OF(at, struct service_job, link);

        if (strcmp(job->disk.text, id->text) == 0 ||
            (job->has_target && strcmp(job->target.text, id->text) == 0))
            return true;
    }
    return false;
}

static int check(struct service_keeper *keeper, const struct wire_keeper_job *asked,
                 struct error *err)
{
    struct residents *residents = keeper->residents;

    if (keeper->count == SERVICE_KEEPER_MAX)
        return error_set(err, ERR_UNAVAILABLE, 0, "%d keeper jobs are as many as run at once",
                         SERVICE_KEEPER_MAX);
    if (residents_find(residents, &asked->id, NULL))
        return error_set(err, ERR_CONFLICT, 0, "sandbox %s runs: stop it first", asked->id.text);
    return residents_find_stopped(residents, &asked->id, err);
}

static int make_target(struct service_keeper *keeper, const struct wire_keeper_job *asked,
                       struct error *err)
{
    struct disk_usage usage = {0};

    if (residents_begin_disk(keeper->residents, &asked->target, err) < 0)
        return -1;
    /* Where nothing is counted there are no limits either. */
    (void) disk_pool_usage(keeper->host.pool, &asked->id, &usage, NULL);
    if (disk_pool_create(keeper->host.pool, &asked->target, usage.limit, err) == 0)
        return 0;
    residents_end_disk(keeper->residents, &asked->target);
    return -1;
}

static int watch(struct service_job *job, struct error *err)
{
    int r;

    job->exit = (struct event_source){.fd = job->job.pidfd, .events = EPOLLIN, .ready = job_ended};
    r = event_loop_add(loop_of(job->keeper), &job->exit);
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "watch a keeper job") : 0;
}

int service_keeper_start(struct service_keeper *keeper, const struct wire_keeper_job *asked,
                         const int fds[static 2], uint64_t request, struct error *err)
{
    static const enum keeper_task tasks[] = {
        [WIRE_KEEPER_DELETE] = KEEPER_DELETE,
        [WIRE_KEEPER_MEASURE] = KEEPER_MEASURE,
        [WIRE_KEEPER_LIST] = KEEPER_LIST,
        [WIRE_KEEPER_COPY] = KEEPER_COPY,
    };
    struct keeper_spec spec = {
        .task = tasks[asked->job], .disk = asked->id, .target = asked->target};
    struct service_job *job;

    if (check(keeper, asked, err) < 0 ||
        (asked->job == WIRE_KEEPER_COPY && make_target(keeper, asked, err) < 0))
        return -1;
    job = mem_alloc(sizeof(*job));
    *job = (struct service_job){.keeper = keeper,
                                .job = KEEPER_JOB_INIT,
                                .request = request,
                                .disk = asked->id,
                                .has_target = asked->job == WIRE_KEEPER_COPY,
                                .target = asked->target};
    list_append(&keeper->jobs, &job->link);
    keeper->count++;
    if (keeper_job_start(&keeper->host, &spec, fds[0], fds[1], &job->job, err) < 0) {
        drop(job, true);
        return -1;
    }
    return watch(job, err);
}

void service_keeper_done(struct service_keeper *keeper)
{
    LIST_EACH (&keeper->jobs, at) {
        struct service_job *job = CONTAINER_OF(at, struct service_job, link);
        struct sys_exit ended;

        keeper_job_cancel(&job->job);
        (void) sys_file_poll(job->job.pidfd, POLLIN, END_TIMEOUT_MS);
        (void) keeper_job_finish(&keeper->host, &job->job, &ended, NULL);
        drop(job, true);
    }
}
