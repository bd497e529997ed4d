#include "launcher/helper/porter.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"
#include "launcher/helper/porter_work.h"
#include "launcher/wall/seccomp.h"
#include "sys/file/sys_file.h"
#include "sys/network/sys_fd_pass.h"
#include "sys/network/sys_socket.h"
#include "sys/process/sys_process.h"

#define RESTART_MS     200
#define END_TIMEOUT_MS 5000

const char *porter_work_name(enum porter_work work)
{
    static const char *const names[] = {
        [PORTER_SNAPSHOT] = "snapshot",   [PORTER_FORK] = "fork",
        [PORTER_ROLL_BACK] = "roll back", [PORTER_FLUSH] = "flush",
        [PORTER_RECLAIM] = "reclaim",     [PORTER_SYNC] = "sync",
    };

    return names[work];
}

static void go_on(struct porter *porter);

static void finish_job(struct porter_job *job, const struct error *failure)
{
    struct porter *porter = job->porter;

    list_remove(&job->link);
    porter->count--;
    if (job->is_sent)
        porter->sent--;
    job->done(job, failure);
}

/* --- plain pools: a keeper copies ------------------------------------------------------------- */

/* What is in use cannot be shared, nor what has as many layers as may be. */
static bool copies_files(const struct porter *porter, const struct porter_task *task)
{
    struct disk_pool *pool = porter->site->host.pool;

    if (task->work >= PORTER_RECLAIM || disk_pool_shares(pool))
        return false;
    return task->since_ms != 0 || disk_pool_is_full(pool, task->from, &task->source);
}

/* What was copied so far goes, and so does what a roll back has replaced: the old disk, or, when
 * the new one is not sure to be there, the new one. */
static void finish_copy(struct porter_job *job, const struct error *failure)
{
    struct disk_pool *pool = job->porter->site->host.pool;

    if (failure && job->stage == PORTER_PLACED && job->task.work == PORTER_ROLL_BACK)
        (void) disk_pool_place_copy(pool, &job->task.target, DISK_POOL_DISKS, true, NULL);
    disk_pool_drop_copy(pool, &job->task.target);
    finish_job(job, failure);
}

static void put_into_place(struct porter_job *job)
{
    bool is_snapshot = job->task.work == PORTER_SNAPSHOT;
    struct error err = ERROR_INIT;

    if (disk_pool_place_copy(job->porter->site->host.pool, &job->task.target,
                             is_snapshot ? DISK_POOL_SNAPSHOTS : DISK_POOL_DISKS,
                             job->task.work == PORTER_ROLL_BACK, &err) < 0) {
        finish_copy(job, &err);
        return;
    }
    job->stage = PORTER_PLACED;
}

/* Its own words are in a pipe that nobody reads: they name files of strangers. */
static int explain_failure(const struct porter_job *job, const struct sys_exit *ended,
                           struct error *err)
{
    struct disk_pool_space space;

    if (disk_pool_space(job->porter->site->host.pool, &space, NULL) == 0 &&
        space.free < DISK_LIMIT_MIN)
        return error_set(err, ERR_NO_SPACE, ENOSPC, "the disk pool is full");
    return error_set(err, ERR_INTERNAL, 0, "disk %s cannot be copied: the keeper ended with %s %d",
                     job->task.source.text, ended->kind == SYS_EXIT_SIGNAL ? "signal" : "status",
                     ended->value);
}

static void forget_keeper(struct porter_job *job)
{
    event_loop_remove(job->porter->loop, &job->exit);
    event_loop_remove(job->porter->loop, &job->report);
    job->report.fd = fd_close(job->report.fd);
    job->input = fd_close(job->input);
}

/* A source that was deleted meanwhile went out of sight first. */
static int check_source(const struct porter_job *job, struct error *err)
{
    const struct porter_task *task = &job->task;

    if (disk_pool_has(job->porter->site->host.pool, task->from, &task->source))
        return 0;
    return error_set(err, ERR_NOT_FOUND, 0, "disk %s was deleted while it was copied",
                     task->source.text);
}

static void copied(struct event_source *source, uint32_t events)
{
    struct porter_job *job = CONTAINER_OF(source, struct porter_job, exit);
    struct porter *porter = job->porter;
    struct sys_exit ended = {.kind = SYS_EXIT_UNKNOWN};
    struct error err = ERROR_INIT;
    int r;

    (void) events;
    forget_keeper(job);
    porter->copying--;
    r = keeper_job_finish(&porter->keepers, &job->keeper, &ended, &err);
    if (job->failure.code != ERR_NONE) {
        err = job->failure;
        r = -1;
    } else if (r == 0 && (ended.kind != SYS_EXIT_STATUS || ended.value != 0)) {
        r = explain_failure(job, &ended, &err);
    } else if (r == 0) {
        r = check_source(job, &err);
    }
    job->stage = PORTER_COPIED;
    if (r == 0)
        job->taken(job);
    else
        finish_copy(job, &err);
    go_on(porter);
}

/* One line, or a failure, which its exit tells better. */
static void hear_ready(struct event_source *source, uint32_t events)
{
    static const char ready[] = "{\"ready\":true}\n";
    struct porter_job *job = CONTAINER_OF(source, struct porter_job, report);
    char line[sizeof(ready)];

    (void) events;
    event_loop_remove(job->porter->loop, source);
    if (read(source->fd, line, sizeof(ready) - 1) == (ssize_t) sizeof(ready) - 1 &&
        memcmp(line, ready, sizeof(ready) - 1) == 0)
        job->ready(job);
}

/* What the keeper of a source that runs is told, and how it is heard; the keeper's ends are
 * `streams`, for the caller to close. */
static int open_live(struct porter_job *job, struct keeper_streams *streams, struct error *err)
{
    int input[2], report[2];

    if (pipe2(input, O_CLOEXEC) < 0)
        return error_set(err, ERR_INTERNAL, errno, "make a pipe for the keeper");
    streams->input = input[0];
    job->input = input[1];
    (void) dprintf(job->input, "%" PRId64 "\n", job->task.since_ms); /* an empty pipe takes it */
    if (pipe2(report, O_CLOEXEC) < 0)
        return error_set(err, ERR_INTERNAL, errno, "make a pipe for the keeper");
    job->report = (struct event_source){
        .fd = report[0], .events = EPOLLIN, .ready = hear_ready, .trace = job->task.trace};
    streams->output = report[1];
    return 0;
}

static int watch_keeper(struct porter_job *job, struct error *err)
{
    struct porter *porter = job->porter;
    int r;

    job->exit = (struct event_source){
        .fd = job->keeper.pidfd, .events = EPOLLIN, .ready = copied, .trace = job->task.trace};
    r = event_loop_add(porter->loop, &job->exit);
    if (r == 0 && job->report.fd >= 0)
        r = event_loop_add(porter->loop, &job->report);
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "watch a keeper") : 0;
}

static void end_keeper(struct porter_job *job)
{
    struct porter *porter = job->porter;

    forget_keeper(job);
    keeper_job_cancel(&job->keeper);
    (void) sys_file_poll(job->keeper.pidfd, POLLIN, END_TIMEOUT_MS);
    (void) keeper_job_finish(&porter->keepers, &job->keeper, &(struct sys_exit){0}, NULL);
}

static int start_keeper(struct porter_job *job, struct error *err)
{
    struct keeper_streams streams = {-EBADF, -EBADF, -EBADF};
    bool is_live = job->task.since_ms != 0;
    const struct keeper_spec spec = {
        .task = is_live ? KEEPER_COPY_LIVE : KEEPER_COPY,
        .disk = {job->task.from, job->task.source},
        .target = {DISK_POOL_UNFINISHED, job->task.target},
    };
    int r = is_live ? open_live(job, &streams, err) : 0;

    if (r == 0)
        r = keeper_job_start(&job->porter->keepers, &spec, &streams, &job->keeper, err);
    (void) fd_close(streams.input);
    (void) fd_close(streams.output);
    if (r < 0) {
        forget_keeper(job);
        return -1;
    }
    if (watch_keeper(job, err) == 0)
        return 0;
    end_keeper(job);
    return -1;
}

void porter_finish(struct porter_job *job)
{
    job->input = fd_close(job->input);
}

void porter_give_up(struct porter_job *job, const struct error *failure)
{
    job->failure = *failure;
    keeper_job_cancel(&job->keeper);
}

static void start_copy(struct porter_job *job)
{
    struct disk_pool *pool = job->porter->site->host.pool;
    struct error err = ERROR_INIT;
    TRACE_AS(&job->task.trace);

    if (disk_pool_begin_copy(pool, &job->task.target, &err) < 0) {
        finish_job(job, &err);
        return;
    }
    if (start_keeper(job, &err) < 0) {
        finish_copy(job, &err);
        return;
    }
    /* Of one in use only the upper folder is copied, other copies become one layer. The keeper has
     * its mount of that folder by now: should it become a layer when the sandbox has ended, the
     * list may name that too, which changes nothing, and lacks nothing that is not in the mount. */
    if (job->task.since_ms && disk_pool_begin_layers(pool, job->task.from, &job->task.source,
                                                     &job->task.target, &err) < 0) {
        end_keeper(job);
        finish_copy(job, &err);
        return;
    }
    job->stage = PORTER_COPYING;
    job->porter->copying++;
}

/* --- tasks and results ------------------------------------------------------------------------ */

/* Whether the porter's process has something to do for it now. */
static bool is_for_process(const struct porter_job *job)
{
    return !job->is_sent && (!job->copies || job->stage >= PORTER_COPIED);
}

/* False: not now. */
static bool send_task(struct porter *porter, struct porter_job *job)
{
    struct porter_task task = job->task;

    if (job->copies)
        task.work = PORTER_SYNC;
    if (porter->socket.fd < 0 || porter->sent == PORTER_SENT_MAX ||
        sys_fd_pass_send(porter->socket.fd, &task, sizeof(task), NULL, 0) < 0)
        return false; /* full or dead; either way we are woken */
    job->is_sent = true;
    porter->sent++;
    return true;
}

/* The oldest job that can be taken a step further. */
static struct porter_job *find_next(const struct porter *porter, bool wants_keeper)
{
    LIST_EACH (&porter->jobs, at) {
        struct porter_job *job = CONTAINER_OF(at, struct porter_job, link);

        if (wants_keeper ? job->copies && job->stage == PORTER_NEW : is_for_process(job))
            return job;
    }
    return NULL;
}

/* Looked for anew after each one: what is done in between may change the list. */
static void go_on(struct porter *porter)
{
    struct porter_job *job;

    while (porter->copying < PORTER_KEEPERS && (job = find_next(porter, true)))
        start_copy(job);
    while ((job = find_next(porter, false))) {
        if (porter->socket.fd < 0)
            porter_warm_up(porter);
        if (!send_task(porter, job))
            return;
    }
}

static struct porter_job *find_job(const struct porter *porter, uint64_t number)
{
    LIST_EACH (&porter->jobs, at) {
        struct porter_job *job = CONTAINER_OF(at, struct porter_job, link);

        if (job->is_sent && job->task.number == number)
            return job;
    }
    return NULL;
}

static void take_result(struct porter_job *job, const struct porter_result *result)
{
    const struct error *failure = result->error.code == ERR_NONE ? NULL : &result->error;
    TRACE_AS(&job->task.trace);

    TRACE_WITH(result->is_taken ? "launcher.porter.taken" : "launcher.porter.done",
               porter_work_name(job->task.work));
    if (result->is_taken) {
        job->taken(job);
        return;
    }
    job->bytes = result->bytes;
    if (!job->copies) {
        finish_job(job, failure);
        return;
    }
    job->is_sent = false;
    job->porter->sent--;
    if (failure || job->stage == PORTER_PLACED)
        finish_copy(job, failure);
    else
        put_into_place(job);
}

/* --- its death ------------------------------------------------------------------------------- */

static void give_up_jobs(struct porter *porter)
{
    struct error failure = ERROR_INIT;

    (void) error_set(&failure, ERR_INTERNAL, 0, "the porter died of this task %d times",
                     PORTER_TRIES_MAX);
    LIST_EACH (&porter->jobs, at) {
        struct porter_job *job = CONTAINER_OF(at, struct porter_job, link);

        if (!job->is_sent)
            continue;
        job->is_sent = false;
        porter->sent--;
        job->task.is_repeated = true;
        if (++job->tries < PORTER_TRIES_MAX)
            continue;
        if (job->copies)
            finish_copy(job, &failure);
        else
            finish_job(job, &failure);
    }
}

static void close_process(struct porter *porter)
{
    struct sys_exit ended;

    event_loop_remove(porter->loop, &porter->socket);
    porter->socket.fd = fd_close(porter->socket.fd);
    if (porter->pidfd >= 0)
        (void) sys_process_wait(porter->pidfd, -1, &ended);
    porter->pidfd = fd_close(porter->pidfd);
}

static void receive_results(struct event_source *source, uint32_t events)
{
    struct porter *porter = CONTAINER_OF(source, struct porter, socket);
    struct porter_result result;
    struct porter_job *job;
    ssize_t got = recv(source->fd, &result, sizeof(result), MSG_DONTWAIT);

    (void) events;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got != (ssize_t) sizeof(result)) {
        LOG_WARNING(porter->log, "the porter died, another one goes on");
        close_process(porter);
        event_timer_set(porter->loop, &porter->restart, RESTART_MS);
        give_up_jobs(porter);
        return;
    }
    job = find_job(porter, result.number);
    if (job)
        take_result(job, &result);
    go_on(porter);
}

/* --- its birth ------------------------------------------------------------------------------- */

static int start_process(struct porter *porter, struct error *err)
{
    AUTO(close) int theirs = -EBADF;
    int pair[2];
    int r = sys_socket_pair(SOCK_SEQPACKET, pair);

    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "make the porter's socket");
    theirs = pair[1];
    porter->socket =
        (struct event_source){.fd = pair[0], .events = EPOLLIN, .ready = receive_results};
    (void) sys_file_set_nonblocking(pair[0], true);
    porter->pid = fork();
    if (porter->pid == 0)
        porter_work(porter->options, porter->instance, theirs);
    if (porter->pid < 0) {
        r = -errno;
        porter->socket.fd = fd_close(porter->socket.fd);
        return error_set(err, ERR_INTERNAL, r, "start the porter");
    }
    porter->pidfd = sys_process_open(porter->pid); /* not reaped yet: it is this one */
    r = event_loop_add(porter->loop, &porter->socket);
    if (r == 0)
        return 0;
    close_process(porter);
    return error_set(err, ERR_INTERNAL, r, "watch the porter");
}

static void try_again(struct event_timer *timer)
{
    go_on(CONTAINER_OF(timer, struct porter, restart));
}

void porter_warm_up(struct porter *porter)
{
    struct error err = ERROR_INIT;

    /* Not faster than this, should it die of its own start. */
    if (porter->socket.fd >= 0 || porter->restart.is_set || start_process(porter, &err) == 0)
        return;
    LOG_ERROR(porter->log, "the porter does not start", log_text("reason", err.message));
    event_timer_set(porter->loop, &porter->restart, RESTART_MS);
}

int porter_init(struct porter *porter, struct event_loop *loop, const struct site_options *options,
                struct site *site, const struct instance *instance, struct log *log,
                struct error *err)
{
    int r;

    *porter = (struct porter){.loop = loop,
                              .options = options,
                              .site = site,
                              .instance = instance,
                              .log = log,
                              .pidfd = -EBADF,
                              .socket.fd = -EBADF,
                              .restart.fire = try_again};
    list_init(&porter->jobs);
    r = seccomp_filter_init_keeper(&porter->filter);
    porter->keepers = (struct keeper_host){
        .pool = site->host.pool,
        .ids = site->host.ids,
        .filter = &porter->filter,
        .limits = &site->limits,
        .program = site->keeper,
    };
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "prepare the keeper's filter") : 0;
}

void porter_add(struct porter *porter, struct porter_job *job)
{
    job->porter = porter;
    job->task.number = ++porter->last_number;
    job->task.trace = trace_context;
    TRACE_WITH("launcher.porter.add", porter_work_name(job->task.work));
    job->task.is_repeated = job->is_sent = false;
    job->copies = copies_files(porter, &job->task);
    job->stage = PORTER_NEW;
    job->tries = 0;
    job->bytes = 0;
    job->keeper = (struct keeper_job) KEEPER_JOB_INIT;
    job->exit.is_added = job->report.is_added = false;
    job->report.fd = job->input = -EBADF;
    error_clear(&job->failure);
    list_append(&porter->jobs, &job->link);
    porter->count++;
    go_on(porter);
}

bool porter_is_full(const struct porter *porter)
{
    return porter->count >= PORTER_QUEUE_MAX;
}

static bool is(const struct id *one, const struct id *other)
{
    return strcmp(one->text, other->text) == 0;
}

bool porter_needs(const struct porter *porter, const struct id *disk)
{
    LIST_EACH (&porter->jobs, at) {
        const struct porter_job *job = CONTAINER_OF(at, struct porter_job, link);

        if (job->task.work == PORTER_ROLL_BACK && is(&job->task.target, disk))
            return true;
        if (job->task.work != PORTER_RECLAIM && job->task.from == DISK_POOL_DISKS &&
            !disk_pool_shares(porter->site->host.pool) && is(&job->task.source, disk))
            return true;
    }
    return false;
}

bool porter_makes(const struct porter *porter, const struct id *target)
{
    LIST_EACH (&porter->jobs, at) {
        const struct porter_job *job = CONTAINER_OF(at, struct porter_job, link);

        if (job->task.work < PORTER_RECLAIM && is(&job->task.target, target))
            return true;
    }
    return false;
}

void porter_stop(struct porter *porter)
{
    event_timer_clear(&porter->restart);
    LIST_EACH (&porter->jobs, at) {
        struct porter_job *job = CONTAINER_OF(at, struct porter_job, link);

        list_remove(&job->link);
        if (job->stage != PORTER_COPYING)
            continue;
        end_keeper(job);
        disk_pool_drop_copy(porter->site->host.pool, &job->task.target);
    }
    close_process(porter);
}
