#include "launcher/helper/janitor.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"
#include "launcher/helper/janitor_work.h"
#include "sys/file/sys_file.h"
#include "sys/network/sys_fd_pass.h"
#include "sys/network/sys_socket.h"
#include "sys/process/sys_process.h"

#define RESTART_MS 200

void janitor_hold_done(struct janitor_hold *hold)
{
    hold->mounts = fd_close(hold->mounts);
    hold->network = fd_close(hold->network);
}

/* The task, and what it brings, which is the janitor's from then on. */
static int send_job(struct janitor *janitor, struct janitor_job *job)
{
    const int fds[] = {job->hold.mounts, job->hold.network};
    size_t count = 0;
    ssize_t sent;

    while (count < ARRAY_COUNT(fds) && fds[count] >= 0)
        count++;
    sent = sys_fd_pass_send(janitor->socket.fd, &job->task, sizeof(job->task), fds, count);
    if (sent < 0)
        return (int) sent;
    janitor_hold_done(&job->hold);
    return 0;
}

static void send_more(struct janitor *janitor)
{
    LIST_EACH (&janitor->jobs, at) {
        struct janitor_job *job = CONTAINER_OF(at, struct janitor_job, link);

        if (janitor->sent == JANITOR_SENT_MAX || janitor->socket.fd < 0)
            return;
        if (job->is_sent)
            continue;
        if (send_job(janitor, job) < 0)
            return; /* full or dead; either way we are woken */
        job->is_sent = true;
        janitor->sent++;
    }
}

static void finish_job(struct janitor *janitor, struct janitor_job *job,
                       const struct error *failure)
{
    TRACE_AS(&job->task.trace);

    TRACE(failure ? "launcher.janitor.failed" : "launcher.janitor.done");
    list_remove(&job->link);
    janitor_hold_done(&job->hold);
    janitor->count--;
    if (job->is_sent)
        janitor->sent--;
    job->done(job, failure);
}

static struct janitor_job *find_job(struct janitor *janitor, uint64_t number)
{
    LIST_EACH (&janitor->jobs, at) {
        struct janitor_job *job = CONTAINER_OF(at, struct janitor_job, link);

        if (job->is_sent && job->task.number == number)
            return job;
    }
    return NULL;
}

/* --- its death ------------------------------------------------------------------------------- */

static int start_process(struct janitor *janitor, struct error *err);

static void try_again(struct event_timer *timer)
{
    struct janitor *janitor = CONTAINER_OF(timer, struct janitor, restart);
    struct error err = ERROR_INIT;

    if (start_process(janitor, &err) == 0)
        return;
    LOG_ERROR(janitor->log, "the janitor does not start", log_text("reason", err.message));
    event_timer_set(janitor->loop, &janitor->restart, RESTART_MS);
}

static void give_up_jobs(struct janitor *janitor)
{
    struct error failure = ERROR_INIT;

    (void) error_set(&failure, ERR_INTERNAL, 0, "the janitor died of this task %d times",
                     JANITOR_TRIES_MAX);
    LIST_EACH (&janitor->jobs, at) {
        struct janitor_job *job = CONTAINER_OF(at, struct janitor_job, link);

        if (!job->is_sent)
            continue;
        job->is_sent = false;
        janitor->sent--;
        if (++job->tries == JANITOR_TRIES_MAX)
            finish_job(janitor, job, &failure);
    }
}

static void close_process(struct janitor *janitor)
{
    struct sys_exit ended;

    event_loop_remove(janitor->loop, &janitor->socket);
    janitor->socket.fd = fd_close(janitor->socket.fd);
    if (janitor->pidfd >= 0)
        (void) sys_process_wait(janitor->pidfd, -1, &ended);
    janitor->pidfd = fd_close(janitor->pidfd);
}

static void receive_results(struct event_source *source, uint32_t events)
{
    struct janitor *janitor = CONTAINER_OF(source, struct janitor, socket);
    struct janitor_result result;
    struct janitor_job *job;
    ssize_t got = recv(source->fd, &result, sizeof(result), MSG_DONTWAIT);

    (void) events;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got != (ssize_t) sizeof(result)) {
        LOG_WARNING(janitor->log, "the janitor died, another one goes on");
        close_process(janitor);
        give_up_jobs(janitor);
        event_timer_set(janitor->loop, &janitor->restart, RESTART_MS);
        return;
    }
    job = find_job(janitor, result.number);
    if (job)
        finish_job(janitor, job, result.error.code == ERR_NONE ? NULL : &result.error);
    send_more(janitor);
}

/* --- its birth ------------------------------------------------------------------------------- */

static int start_process(struct janitor *janitor, struct error *err)
{
    AUTO(close) int theirs = -EBADF;
    int pair[2];
    int r = sys_socket_pair(SOCK_SEQPACKET, pair);

    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "make the janitor's socket");
    theirs = pair[1];
    janitor->socket =
        (struct event_source){.fd = pair[0], .events = EPOLLIN, .ready = receive_results};
    (void) sys_file_set_nonblocking(pair[0], true);
    janitor->pid = fork();
    if (janitor->pid == 0)
        janitor_work(janitor->site, janitor->instance, theirs);
    if (janitor->pid < 0) {
        r = errno;
        janitor->socket.fd = fd_close(janitor->socket.fd);
        return error_set(err, ERR_INTERNAL, r, "start the janitor");
    }
    janitor->pidfd = sys_process_open(janitor->pid); /* not reaped yet: it is this one */
    r = event_loop_add(janitor->loop, &janitor->socket);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "watch the janitor");
    send_more(janitor);
    return 0;
}

int janitor_start(struct janitor *janitor, struct event_loop *loop, const struct site_options *site,
                  const struct instance *instance, struct log *log, struct error *err)
{
    *janitor = (struct janitor){.loop = loop,
                                .site = site,
                                .instance = instance,
                                .log = log,
                                .pidfd = -EBADF,
                                .socket.fd = -EBADF,
                                .restart.fire = try_again};
    list_init(&janitor->jobs);
    return start_process(janitor, err);
}

void janitor_add(struct janitor *janitor, struct janitor_job *job)
{
    job->task.number = ++janitor->last_number;
    job->task.trace = (struct trace_context){trace_context.request, job->task.id};
    job->is_sent = false;
    job->tries = 0;
    list_append(&janitor->jobs, &job->link);
    janitor->count++;
    send_more(janitor);
}

bool janitor_is_full(const struct janitor *janitor)
{
    return janitor->count >= JANITOR_QUEUE_MAX;
}

void janitor_stop(struct janitor *janitor)
{
    event_timer_clear(&janitor->restart);
    close_process(janitor);
}
