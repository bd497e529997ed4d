#include "agent/exec/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/exec/launch.h"
#include "agent/exec/supervisor.h"
#include "base/auto.h"
#include "base/memory.h"
#include "sys/file/sys_file.h"
#include "sys/process/sys_clone.h"
#include "sys/process/sys_close_range.h"
#include "sys/process/sys_process.h"
#include "sys/process/sys_signal.h"

#define FIRST_FREE_DESCRIPTOR 3

/* How long a command may keep the worker for itself while nobody else wants it. */
#define ALONE_MS 5

struct worker {
    int socket;
    struct worker_notes *notes;
    int signals; /* SIGCHLD; a copy of it works in every copy of the worker */
    char *buffer;
    pid_t pid; /* of the process that became the worker last: a copy is another */
};

/* "0" means the writer itself. The files were opened by the launcher, whose rights count. */
static int join_groups(const struct worker_settings *settings)
{
    for (size_t i = 0; i < settings->group_count; i++) {
        int r = sys_file_write_full(settings->groups[i], "0", 1);

        if (r < 0)
            return r;
    }
    return 0;
}

/* Close all descriptors above 2 but `keep`. */
static int close_others(int keep)
{
    int r = 0;

    if (keep > FIRST_FREE_DESCRIPTOR)
        r = sys_close_range(FIRST_FREE_DESCRIPTOR, (unsigned int) keep - 1, false);
    return r < 0 ? r : sys_close_range((unsigned int) keep + 1, ~0u, false);
}

static int worker_prepare(struct worker *worker, const struct worker_settings *settings)
{
    static const int child_signal[] = {SIGCHLD};
    int r = join_groups(settings);

    if (r < 0)
        return r;
    /* Away from whoever presses Ctrl-C on the agent's terminal. A session would do as well, but the
     * kernel makes a group of its scheduler for each; every command has one of its own anyway. */
    (void) setpgid(0, 0);
    worker->socket = settings->socket;
    worker->notes = settings->notes;
    worker->buffer = mem_alloc(LAUNCH_INLINE_MAX);
    r = close_others(worker->socket);
    if (r == 0)
        r = sys_signal_reset_some(NULL, 0);
    if (r == 0)
        r = sys_signal_ignore(SIGPIPE); /* as main did, unless we are in a test */
    if (r == 0)
        r = worker->signals = sys_signal_open(child_signal, 1);
    if (r >= 0 && setrlimit(RLIMIT_NOFILE, &settings->open_files) < 0)
        r = -errno;
    return r < 0 ? r : 0;
}

/* Leave a copy of ourselves at the socket. Returns true in the copy. */
static bool leave_copy(struct worker *worker)
{
    /* A sibling, not a child: it is no part of the command's tree. Noted by the kernel, so that the
     * agent knows whom to kill even when both of us are stopped right here. */
    struct sys_clone how = {.flags = CLONE_PARENT, .ret_pid = (pid_t *) &worker->notes->worker};

    return sys_clone(&how) == 0; /* when there is no room for a copy, PID 1 makes one */
}

static struct worker_note *take_note(struct worker_notes *notes, uint64_t serial)
{
    struct worker_note *note = &notes->commands[serial % WORKER_NOTES];

    atomic_store(&note->pid, 0);
    atomic_store(&note->serial, serial);
    atomic_store(&notes->received, serial);
    return note;
}

/* Run a launch. Returns when this process is (still, or as a copy) the worker. */
static void worker_launch(struct worker *worker, const char *bytes, size_t length,
                          int fds[LAUNCH_DESCRIPTORS])
{
    struct worker_note *note = take_note(worker->notes, launch_serial(bytes));
    struct supervisor supervisor;

    if (supervisor_start(&supervisor, worker->signals, bytes, length, fds, &note->pid) < 0)
        return;
    if (supervisor_wait(&supervisor, worker->socket, ALONE_MS) || leave_copy(worker)) {
        supervisor_done(&supervisor);
        return;
    }
    (void) fd_close(worker->socket);
    (void) prctl(PR_SET_NAME, "burrow-exec"); /* for people who look at ps */
    supervisor_run(&supervisor);
}

/* Not inherited: every copy must say these for itself, before it has children. */
static void become_worker(struct worker *worker)
{
    (void) prctl(PR_SET_NAME, "burrow-worker");
    if (sys_process_set_subreaper(true) < 0)
        _exit(EXIT_FAILURE);
    worker->pid = getpid();
}

static void worker_serve(struct worker *worker)
{
    AUTO(free) char *owned = NULL;
    int fds[LAUNCH_DESCRIPTORS];
    const char *bytes;
    ssize_t length;

    if (worker->pid != getpid())
        become_worker(worker);
    length = launch_receive(worker->socket, worker->buffer, &bytes, &owned, fds);
    if (length > 0)
        worker_launch(worker, bytes, (size_t) length, fds);
    else if (length == 0 || length == -ENOTCONN || length == -EBADF)
        _exit(EXIT_SUCCESS);
    /* Anything else concerns one message, whose control socket was closed with it. */
}

_Noreturn void worker_run(const struct worker_settings *settings)
{
    struct worker worker = {.socket = -EBADF, .signals = -EBADF};

    if (worker_prepare(&worker, settings) < 0)
        _exit(EXIT_FAILURE);
    for (;;)
        worker_serve(&worker);
}
