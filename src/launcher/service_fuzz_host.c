#include "launcher/service_fuzz_host.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "launcher/keeper/keeper_job.h"
#include "launcher/sandbox/sandbox_child.h"
#include "launcher/wall/seccomp.h"
#include "sys/file/sys_file.h"
#include "sys/process/sys_namespace.h"
#include "wire/wire_text.h"

struct host the_host;

void host_init(void)
{
    the_host = (struct host){.fail_next = 0};
    list_init(&the_host.jobs);
    list_init(&the_host.copies);
    for (size_t i = 0; i < HOST_KEEPERS; i++)
        the_host.keepers[i].process = -EBADF;
    for (size_t i = 0; i < HOST_BOXES; i++) {
        uint8_t bytes[ID_RANDOM_SIZE] = {(uint8_t) (40 * i), 1};

        the_host.boxes[i] =
            (struct host_box){.id = id_from_bytes(bytes), .process = -EBADF, .status_end = -EBADF};
    }
}

struct host_box *host_find(const struct id *id)
{
    must(id_is_valid(id->text));
    for (size_t i = 0; i < HOST_BOXES; i++) {
        if (strcmp(the_host.boxes[i].id.text, id->text) == 0)
            return &the_host.boxes[i];
    }
    return NULL;
}

bool host_fails(const struct id *id, struct error *err)
{
    if ((the_host.fail_next && --the_host.fail_next == 0) || (id && !host_find(id))) {
        (void) error_set(err, ERR_UNAVAILABLE, EIO, "the host fails");
        return true;
    }
    return false;
}

int host_not_there(struct error *err)
{
    return error_set(err, ERR_NOT_FOUND, ENOENT, "not there");
}

static struct host_box *find_process(int pidfd)
{
    for (size_t i = 0; i < HOST_BOXES; i++) {
        if (the_host.boxes[i].process == pidfd && pidfd >= 0)
            return &the_host.boxes[i];
    }
    abort();
}

/* --- what happens by itself ------------------------------------------------------------------ */

void host_become_ready(struct host_box *box)
{
    if (box->is_alive)
        box->status_end = fd_close(box->status_end);
}

void host_fail_start(struct host_box *box)
{
    const struct child_failure failure = {.error = EPERM};

    if (!box->is_alive || box->status_end < 0)
        return;
    must(write(box->status_end, &failure, sizeof(failure)) == (ssize_t) sizeof(failure));
    host_die(box, &(struct sys_exit){.kind = SYS_EXIT_STATUS, .value = 1});
}

void host_die(struct host_box *box, const struct sys_exit *how)
{
    const uint64_t one = 1;

    if (!box->is_alive)
        return;
    box->exit = *how;
    if (box->is_killed)
        box->exit = (struct sys_exit){.kind = SYS_EXIT_SIGNAL, .value = SIGKILL};
    box->is_alive = box->is_killed = box->is_frozen = false;
    box->deaths++;
    box->status_end = fd_close(box->status_end);
    must(write(box->process, &one, sizeof(one)) == (ssize_t) sizeof(one));
}

bool host_work(void)
{
    struct list *first = list_first(&the_host.jobs);
    struct janitor_job *job;
    struct host_box *box;
    struct error failure = ERROR_INIT;

    if (!first)
        return false;
    job = CONTAINER_OF(first, struct janitor_job, link);
    list_remove(first);
    box = host_find(&job->task.id);
    must(box && !box->is_alive);
    if (host_fails(NULL, &failure)) {
        job->done(job, &failure);
        return true;
    }
    must(job->task.has_network || !box->has_network);
    must(job->task.keep_disk || !box->is_promised);
    box->has_groups = box->has_socket = box->has_range = box->has_network = false;
    box->has_disk = box->has_disk && job->task.keep_disk;
    job->done(job, NULL);
    return true;
}

/* --- the janitor ----------------------------------------------------------------------------- */

void janitor_hold_done(struct janitor_hold *hold)
{
    hold->mounts = fd_close(hold->mounts);
    hold->network = fd_close(hold->network);
}

void janitor_add(struct janitor *janitor, struct janitor_job *job)
{
    (void) janitor;
    janitor_hold_done(&job->hold);
    list_append(&the_host.jobs, &job->link);
}

bool janitor_is_full(const struct janitor *janitor)
{
    (void) janitor;
    return host_fails(NULL, NULL);
}

/* --- sandboxes and their processes ----------------------------------------------------------- */

static struct host_keeper *find_keeper(int pidfd)
{
    for (size_t i = 0; i < HOST_KEEPERS; i++) {
        if (the_host.keepers[i].process == pidfd)
            return &the_host.keepers[i];
    }
    abort();
}

/* Whether a keeper works on this disk. */
static bool is_kept(const struct id *id)
{
    for (size_t i = 0; i < HOST_KEEPERS; i++) {
        const struct host_keeper *keeper = &the_host.keepers[i];

        if (keeper->process >= 0 &&
            (strcmp(keeper->disk.text, id->text) == 0 || strcmp(keeper->base.text, id->text) == 0 ||
             strcmp(keeper->target.text, id->text) == 0))
            return true;
    }
    return false;
}

static void check_plan(const struct sandbox_plan *plan)
{
    must(wire_text_is_name(plan->hostname) && wire_text_is_name(plan->image));
    must(plan->bind_count <= SANDBOX_BINDS_MAX);
    for (size_t i = 0; i < plan->bind_count; i++)
        must(wire_text_is_path(plan->binds[i].place) && plan->binds[i].source >= 0);
}

/* All descriptors of our namespaces are of one kind, which has one number. */
int sandbox_start(const struct sandbox_host *host, const struct sandbox_plan *plan, int listener,
                  struct sandbox *ret_sandbox, struct error *err)
{
    struct host_box *box = host_find(&plan->id);
    int ends[2];

    (void) host;
    check_plan(plan);
    if (host_fails(&plan->id, err))
        return -1;
    must(listener >= 0 && box->has_socket && box->has_record);
    must(!box->is_alive && !box->has_groups && !box->has_range && !is_kept(&plan->id));
    if (plan->existing_disk != box->has_disk)
        return error_set(err, ERR_CONFLICT, 0, "a disk, or none");
    must(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    box->has_disk = box->has_groups = box->has_range = box->is_alive = true;
    box->is_doomed = false;
    box->process = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    box->status_end = ends[1];
    *ret_sandbox = (struct sandbox){.id = plan->id,
                                    .ids = {65536, 65536},
                                    .pid = (pid_t) (box - the_host.boxes) + 2,
                                    .started = box->deaths,
                                    .pidfd = box->process,
                                    .status = ends[0]};
    return 0;
}

int sandbox_ready(struct sandbox *sandbox, struct error *err)
{
    struct child_failure failure;
    ssize_t got = read(sandbox->status, &failure, sizeof(failure));

    must(got >= 0); /* asked only when there is something */
    sandbox->status = fd_close(sandbox->status);
    return got == 0 ? 0 : error_set(err, ERR_INTERNAL, failure.error, "a step failed");
}

void sandbox_forget(struct sandbox *sandbox)
{
    if (sandbox->pidfd >= 0)
        find_process(sandbox->pidfd)->process = -EBADF;
    sandbox->pidfd = fd_close(sandbox->pidfd);
    sandbox->status = fd_close(sandbox->status);
}

int sys_process_kill(int pidfd, int signal)
{
    struct host_box *box = find_process(pidfd);

    if (!box->is_alive)
        return -ESRCH;
    box->is_killed = box->is_killed || signal == SIGKILL;
    return 0;
}

int sys_process_wait(int pidfd, int timeout_ms, struct sys_exit *ret_exit)
{
    struct host_box *box = find_process(pidfd);

    must(timeout_ms == 0 && !box->is_alive);
    *ret_exit = box->exit;
    return 0;
}

int sys_process_exit_of_other(int pidfd, struct sys_exit *ret_exit)
{
    (void) pidfd;
    (void) ret_exit;
    abort(); /* all are children here */
}

int sys_process_open(pid_t pid)
{
    (void) pid;
    return -ESRCH;
}

int sys_process_start_time(pid_t pid, uint64_t *ret_ticks)
{
    (void) pid;
    (void) ret_ticks;
    return -ESRCH;
}

int sys_namespace_open(pid_t pid, const char *type)
{
    (void) type;
    must(pid >= 0 && pid < HOST_BOXES + 2);
    return eventfd(0, EFD_CLOEXEC);
}

int sys_namespace_enter(int fd, int type)
{
    (void) type;
    must(fd >= 0);
    return 0; /* see sethostname below */
}

/* --- keepers --------------------------------------------------------------------------------- */

int seccomp_filter_init_keeper(struct seccomp_filter *filter)
{
    (void) filter;
    return 0;
}

/* A disk that a keeper shall have: 1 when it can, 0 when it is not there. There are no snapshots.
 */
static bool may_have(const struct keeper_disk *disk)
{
    const struct host_box *box;

    if (!disk->id.text[0])
        return true;
    box = host_find(&disk->id);
    if (disk->set != DISK_POOL_DISKS || !box || !box->has_disk)
        return false;
    must(!box->is_alive && !box->has_groups);
    return true;
}

int keeper_job_start(const struct keeper_host *host, const struct keeper_spec *spec,
                     const struct keeper_streams *streams, struct keeper_job *ret_job,
                     struct error *err)
{
    struct host_keeper *keeper;

    (void) host;
    must(streams->input >= 0 && streams->output >= 0 && streams->data >= 0);
    if (host_fails(NULL, err))
        return -1;
    must(!spec->target.id.text[0] || (may_have(&spec->target) && !is_kept(&spec->target.id)));
    if (!may_have(&spec->disk) || !may_have(&spec->base))
        return host_not_there(err);
    keeper = find_keeper(-EBADF); /* a place that is free: the service has as many */
    *keeper = (struct host_keeper){
        .disk = spec->disk.id, .base = spec->base.id, .target = spec->target.id};
    keeper->process = ret_job->pidfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return 0;
}

static void end_keeper(struct host_keeper *keeper, struct sys_exit how)
{
    const uint64_t one = 1;

    if (keeper->process < 0 || keeper->is_over)
        return;
    keeper->is_over = true;
    keeper->exit = how;
    must(write(keeper->process, &one, sizeof(one)) == (ssize_t) sizeof(one));
}

void host_end_keepers(int status)
{
    for (size_t i = 0; i < HOST_KEEPERS; i++)
        end_keeper(&the_host.keepers[i],
                   (struct sys_exit){.kind = SYS_EXIT_STATUS, .value = status});
}

void keeper_job_cancel(struct keeper_job *job)
{
    end_keeper(find_keeper(job->pidfd),
               (struct sys_exit){.kind = SYS_EXIT_SIGNAL, .value = SIGKILL});
}

int keeper_job_finish(const struct keeper_host *host, struct keeper_job *job,
                      struct sys_exit *ret_exit, struct error *err)
{
    struct host_keeper *keeper = find_keeper(job->pidfd);

    (void) host;
    must(keeper->is_over);
    *ret_exit = keeper->exit;
    keeper->process = -EBADF;
    job->pidfd = fd_close(job->pidfd);
    return host_fails(NULL, err) ? -1 : 0;
}
