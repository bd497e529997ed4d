#include "agent/exec/exec.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/environment.h"
#include "agent/exec/exec_internal.h"
#include "agent/exec/out_of_memory.h"
#include "agent/exec/process_tree.h"
#include "base/memory.h"
#include "sys/network/sys_fd_pass.h"
#include "sys/network/sys_socket.h"

/* All the grace that output still open after the command's end gets, however lively it is. */
#define GRACE_MAX_MS ((uint64_t) 4 * EXEC_GRACE_MS)
/* Launches that a dying worker took with it are sent again, so often in all. */
#define ATTEMPTS_MAX 3

/* Signals that can be kept: all but the last of the real-time ones. */
#define EARLY_SIGNALS 64
/* The command of a killed supervisor becomes our child only some time after the control socket has
 * closed: look so often, so far apart, before its fate is called unknown. */
#define ORPHAN_LOOKS   200
#define ORPHAN_LOOK_MS 5

static int exec_launch(struct exec *exec);

/* --- memory --------------------------------------------------------------------------------- */

static void close_given(struct exec *exec)
{
    for (size_t i = 0; i < LAUNCH_DESCRIPTORS; i++)
        exec->given[i] = fd_close(exec->given[i]);
}

void exec_handle_gone(struct exec *exec)
{
    if (--exec->handles || exec->kept)
        return;
    text_done(&exec->message);
    byte_queue_done(&exec->input_bytes);
    (void) fd_close(exec->terminal);
    free(exec);
}

static void exec_deadline_gone(struct deadline *deadline)
{
    exec_handle_gone(CONTAINER_OF(deadline, struct exec, deadline));
}

static void orphan_look_gone(struct deadline *deadline)
{
    exec_handle_gone(CONTAINER_OF(deadline, struct exec, orphan_look));
}

static void exec_destroy(struct exec *exec)
{
    if (exec->destroyed)
        return;
    exec->destroyed = true;
    if (exec->over)
        exec->set->background_count--;
    else
        exec->set->running_count--;
    list_remove(&exec->link);
    loop_task_cancel(&exec->settle);
    worker_link_forget(&exec->errand);
    close_given(exec);
    for (size_t i = 0; i < EXEC_OUTPUTS; i++)
        watch_close(&exec->output[i].watch);
    watch_close(&exec->input.watch);
    watch_close(&exec->control.watch);
    deadline_close(&exec->deadline, exec_deadline_gone);
    deadline_close(&exec->orphan_look, orphan_look_gone);
}

void exec_settle_soon(struct exec *exec)
{
    if (!exec->destroyed)
        loop_defer(exec->set->loop, &exec->settle);
}

static void know_outcome(struct exec *exec)
{
    exec->outcome_known = true;
    exec->orphaned = false;
    exec->terminal = fd_close(exec->terminal); /* from now on its end is the others' end */
    exec_settle_soon(exec);
}

/* --- what the owner wants ----------------------------------------------------------------- */

void exec_pause(struct exec *exec)
{
    exec->paused = true;
    exec_watch_outputs(exec);
}

void exec_resume(struct exec *exec)
{
    exec->paused = false;
    if (exec->pid)
        exec_watch_outputs(exec);
}

/* --- killing -------------------------------------------------------------------------------- */

static void send_order(struct exec *exec, enum order_type type, int value)
{
    struct launch_order order = {.type = type, .value = value};

    /* The few orders of a life always fit; a dead supervisor shows as the end of the socket. */
    (void) send(exec->control.watch.fd, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The command of a dead supervisor is our own child: its pid is its own until we reap it. */
static void signal_orphan(struct exec *exec, int signal)
{
    if (!exec->orphaned || sys_process_is_child(exec->pid) <= 0)
        return;
    (void) kill(-exec->pid, signal); /* it may have ended meanwhile */
    if (signal == SIGKILL)
        (void) process_tree_signal(exec->pid, SIGKILL); /* without /proc its group is all we know */
}

/* The launch still waits for a worker: then there is nothing to kill. */
static void take_back(struct exec *exec)
{
    worker_link_forget(&exec->errand);
    watch_close(&exec->control.watch);
    for (size_t i = 0; i < EXEC_OUTPUTS; i++)
        exec_pipe_over(&exec->output[i]);
    know_outcome(exec);
}

static void kill_tree(struct exec *exec)
{
    exec->kill_wanted = true;
    if (exec->errand.waiting_for)
        take_back(exec);
    else if (exec->control.watch.open)
        send_order(exec, ORDER_KILL, 0);
    else
        signal_orphan(exec, SIGKILL);
}

void exec_kill(struct exec *exec)
{
    if (exec->destroyed)
        return;
    kill_tree(exec);
    exec->timer = TIMER_KILL;
    deadline_set(&exec->deadline, EXEC_KILL_WAIT_MS);
    exec_settle_soon(exec);
}

/* Before the command runs there is nobody to get it, and a launch may be made a second time with
 * another supervisor: it is kept until the start is known. */
void exec_signal(struct exec *exec, int signal)
{
    if (!exec->pid) {
        if (signal > 0 && signal < EARLY_SIGNALS)
            exec->early_signals |= UINT64_C(1) << signal;
        return;
    }
    if (exec_signal_terminal(exec, signal))
        return;
    if (exec->control.watch.open)
        send_order(exec, ORDER_SIGNAL, signal);
    else
        signal_orphan(exec, signal);
}

void exec_signal_tree(struct exec *exec, int signal)
{
    if (exec->control.watch.open && exec->pid)
        send_order(exec, ORDER_SIGNAL_TREE, signal);
    else
        signal_orphan(exec, signal);
}

bool exec_is_ending(const struct exec *exec)
{
    return exec->outcome_known;
}

/* --- what follows --------------------------------------------------------------------------- */

static bool outputs_done(const struct exec *exec)
{
    return exec->output[EXEC_STDOUT].done && exec->output[EXEC_STDERR].done;
}

static void enter_background(struct exec *exec)
{
    exec->over = true;
    list_remove(&exec->link);
    list_append(&exec->set->background, &exec->link);
    exec->set->running_count--;
    exec->set->background_count++;
    deadline_clear(&exec->deadline);
    watch_close(&exec->input.watch);
}

/* Background processes still hold the pipes: closing these would kill them at their next word, so
 * the supervisor reads on for us. */
static void leave_outputs(struct exec *exec)
{
    struct launch_order order = {.type = ORDER_OUTPUT};
    int fds[EXEC_OUTPUTS];
    size_t count = 0;

    for (size_t i = 0; i < EXEC_OUTPUTS; i++) {
        if (exec->output[i].watch.open)
            fds[count++] = exec->output[i].watch.fd;
    }
    if (count && exec->control.watch.open) /* failing means that the supervisor is dead */
        (void) sys_fd_pass_send(exec->control.watch.fd, &order, sizeof(order), fds, count);
    for (size_t i = 0; i < EXEC_OUTPUTS; i++)
        watch_close(&exec->output[i].watch);
}

/* By itself, or a shell that says so of what it ran. */
static bool looks_killed(const struct exec_result *result)
{
    if (result->timed_out)
        return false;
    return result->exit.kind == SYS_EXIT_SIGNAL
               ? result->exit.value == SIGKILL
               : result->exit.kind == SYS_EXIT_STATUS && result->exit.value == 128 + SIGKILL;
}

static void exec_tell_end(struct exec *exec)
{
    TRACE_AS(&exec->trace);

    TRACE(exec->result.error ? "exec.failed" : "exec.end");
    enter_background(exec);
    leave_outputs(exec);
    if (looks_killed(&exec->result))
        exec->result.out_of_memory =
            out_of_memory_kills(exec->set->oom_kill_count_fd) > exec->oom_kills;
    exec->events->on_end(exec, exec->owner, &exec->result);
    exec_settle_soon(exec); /* nothing may be left of it already */
}

static void begin_grace(struct exec *exec)
{
    if (exec->grace_end)
        return;
    exec->grace_end = loop_now(exec->set->loop) + GRACE_MAX_MS;
    exec->timer = TIMER_GRACE;
    deadline_set(&exec->deadline, EXEC_GRACE_MS);
}

static void exec_settle(struct loop_task *task)
{
    struct exec *exec = CONTAINER_OF(task, struct exec, settle);
    bool tree_gone = !exec->control.watch.open && !exec->launch_again;

    if (exec->over) {
        if (tree_gone && exec->events->on_gone && !exec->cancelled)
            exec->events->on_gone(exec, exec->owner);
        if (tree_gone)
            exec_destroy(exec);
        return;
    }
    if (exec->wait_over ||
        (exec->outcome_known && outputs_done(exec) && (tree_gone || !exec->kill_wanted)))
        exec_tell_end(exec);
    else if (exec->outcome_known && !exec->kill_wanted)
        begin_grace(exec);
}

static void exec_deadline_due(struct deadline *deadline)
{
    struct exec *exec = CONTAINER_OF(deadline, struct exec, deadline);

    switch (exec->timer) {
    case TIMER_TIMEOUT:
        exec->result.timed_out = true;
        exec_kill(exec);
        return;
    case TIMER_GRACE:
        if (exec->paused && !outputs_done(exec)) { /* the consumer is slow, not the output */
            deadline_set(&exec->deadline, EXEC_GRACE_MS);
            return;
        }
        break;
    case TIMER_KILL:
        /* Its supervisor does not follow: perhaps it was stopped. The pid is the command's until
         * the supervisor reaps it, which would have made the outcome known. */
        if (!exec->outcome_known && exec->pid)
            (void) kill(-exec->pid, SIGKILL);
        break;
    }
    exec->wait_over = true;
    exec_settle_soon(exec);
}

static void exec_fail(struct exec *exec, enum launch_stage stage, int error)
{
    exec->result.stage = stage;
    exec->result.error = error;
    for (size_t i = 0; i < EXEC_OUTPUTS; i++)
        exec_pipe_over(&exec->output[i]);
    know_outcome(exec);
}

/* --- the supervisor ------------------------------------------------------------------------- */

/* Not before the start is known: whoever listens hears of that first. */
static void start_io(struct exec *exec)
{
    TRACE_AS(&exec->trace);

    TRACE("exec.started");
    exec->events->on_start(exec, exec->owner);
    if (exec->over)
        return;
    exec_watch_outputs(exec);
    exec_watch_input(exec);
}

static void send_early_signals(struct exec *exec)
{
    uint64_t signals = exec->early_signals;

    exec->early_signals = 0;
    for (int signal = 1; signal < EARLY_SIGNALS && !exec->over; signal++) {
        if (signals & UINT64_C(1) << signal)
            exec_signal(exec, signal);
    }
}

static void take_report(struct exec *exec, const struct launch_report *report)
{
    close_given(exec); /* the supervisor has its own */
    text_done(&exec->message);
    switch (report->type) {
    case REPORT_STARTED:
        exec->pid = report->value;
        if (!exec->over)
            start_io(exec);
        send_early_signals(exec);
        break;
    case REPORT_FAILED:
        exec_fail(exec, (enum launch_stage) report->detail, report->value);
        break;
    case REPORT_EXITED:
        exec->result.exit.kind = report->detail == SYS_EXIT_STATUS   ? SYS_EXIT_STATUS
                                 : report->detail == SYS_EXIT_SIGNAL ? SYS_EXIT_SIGNAL
                                                                     : SYS_EXIT_UNKNOWN;
        exec->result.exit.value = report->value;
        know_outcome(exec);
        break;
    default:
        break; /* only we write there */
    }
}

/* The command may have killed its supervisor before that could say that it runs. */
static void adopt_unreported(struct exec *exec)
{
    exec->pid = worker_link_command(exec->set->worker, &exec->errand);
    close_given(exec);
    if (exec->pid && !exec->over)
        start_io(exec);
}

/* The supervisor was killed before its command ended. The command then becomes our child, whom the
 * reaper tells of; if it does not, the supervisor reaped it and died before it could tell. */
static void look_for_orphan(struct exec *exec)
{
    if (!exec->pid)
        adopt_unreported(exec);
    if (exec->pid && sys_process_is_child(exec->pid) > 0) {
        exec->orphaned = true;
        if (exec->kill_wanted)
            signal_orphan(exec, SIGKILL);
    } else if (exec->pid && ++exec->looks <= ORPHAN_LOOKS) {
        deadline_set(&exec->orphan_look, ORPHAN_LOOK_MS);
    } else {
        know_outcome(exec); /* as unknown */
    }
}

static void orphan_look_due(struct deadline *deadline)
{
    struct exec *exec = CONTAINER_OF(deadline, struct exec, orphan_look);

    if (!exec->outcome_known)
        look_for_orphan(exec);
}

static void control_over(struct exec *exec)
{
    if (!exec->pid && !exec->outcome_known && !exec->over && exec->attempts < ATTEMPTS_MAX &&
        !worker_link_was_received(exec->set->worker, &exec->errand))
        exec->launch_again = true; /* nobody ran anything: the worker died first */
    watch_close(&exec->control.watch);
    if (!exec->outcome_known && !exec->launch_again && !exec->over)
        look_for_orphan(exec);
    exec_settle_soon(exec);
}

static void control_ready(struct watch *watch)
{
    struct exec *exec = CONTAINER_OF(watch, struct exec_pipe, watch)->exec;

    while (watch->open) {
        struct launch_report report;
        ssize_t got = recv(watch->fd, &report, sizeof(report), MSG_DONTWAIT);

        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got != sizeof(report)) {
            control_over(exec);
            return;
        }
        take_report(exec, &report);
    }
}

static void control_gone(struct watch *watch)
{
    struct exec *exec = CONTAINER_OF(watch, struct exec_pipe, watch)->exec;
    int r;

    if (exec->launch_again && !exec->destroyed) {
        exec->launch_again = false;
        r = exec_launch(exec);
        if (r < 0)
            exec_fail(exec, LAUNCH_STAGE_MESSAGE, r);
    }
    exec_handle_gone(exec);
}

/* --- starting ------------------------------------------------------------------------------- */

/* The message carries it now. Kept here, the end of a worker that dies with it would not show. */
static void close_control_given(struct exec *exec)
{
    exec->given[LAUNCH_CONTROL] = fd_close(exec->given[LAUNCH_CONTROL]);
}

static void errand_sent(struct worker_errand *errand, int error)
{
    struct exec *exec = CONTAINER_OF(errand, struct exec, errand);

    close_control_given(exec);
    if (error < 0)
        exec_fail(exec, LAUNCH_STAGE_FORK, error);
}

/* A fresh control socket, and the message to the worker. */
static int exec_launch(struct exec *exec)
{
    AUTO(close) int ours = -EBADF;
    int pair[2];
    int r = sys_socket_pair(SOCK_SEQPACKET, pair);

    if (r < 0)
        return r;
    ours = pair[0];
    (void) fd_close(exec->given[LAUNCH_CONTROL]);
    exec->given[LAUNCH_CONTROL] = pair[1];
    r = exec_pipe_open(exec, &exec->control, &ours, control_ready, control_gone);
    if (r < 0)
        return r;
    watch_for(&exec->control.watch, UV_READABLE);
    exec->attempts++;
    exec->errand.bytes = exec->message.data;
    exec->errand.length = exec->message.length;
    memcpy(exec->errand.fds, exec->given, sizeof(exec->given));
    r = worker_link_send(exec->set->worker, &exec->errand);
    if (r == 1)
        close_control_given(exec);
    return r < 0 ? r : 0;
}

static struct exec *exec_new(struct exec_set *set, const struct exec_events *events, void *owner)
{
    struct exec *exec = mem_alloc(sizeof(*exec));

    exec->set = set;
    exec->events = events;
    exec->owner = owner;
    exec->trace = trace_context;
    exec->message = (struct text) TEXT_INIT(LAUNCH_SIZE_MAX);
    exec->errand.on_sent = errand_sent;
    exec->control.exec = exec->input.exec = exec;
    exec->terminal = exec->terminal_control = -EBADF;
    byte_queue_init(&exec->input_bytes, set->loop->blocks);
    for (size_t i = 0; i < LAUNCH_DESCRIPTORS; i++)
        exec->given[i] = -EBADF;
    for (size_t i = 0; i < EXEC_OUTPUTS; i++)
        exec->output[i] = (struct exec_pipe){.exec = exec, .done = true}; /* until it is opened */
    deadline_init(set->loop, &exec->deadline, exec_deadline_due);
    deadline_init(set->loop, &exec->orphan_look, orphan_look_due);
    exec->handles = 2;
    loop_task_init(&exec->settle, exec_settle);
    list_append(&set->running, &exec->link);
    set->running_count++;
    return exec;
}

/* One that says the same as ours cannot be told from it. */
static bool has_own_home(const struct exec_set *set, const struct launch *what)
{
    const char *home = environment_get(what->environment, "HOME");

    return !home || (set->home && strcmp(home, set->home) == 0);
}

struct exec *exec_start(struct exec_set *set, const struct exec_options *options,
                        const struct exec_events *events, void *owner, int *ret_error)
{
    struct exec *exec = exec_new(set, events, owner);
    struct launch what = options->launch;
    int r;

    TRACE("exec.start");
    exec->oom_kills = out_of_memory_kills(set->oom_kill_count_fd);
    what.terminal = options->terminal != NULL;
    if (!what.user && !options->as_agent)
        what.user = set->user;
    what.own_home = has_own_home(set, &what);
    r = launch_encode(&what, &exec->message);

    if (r == 0)
        r = exec_open_stdio(exec, options);
    if (r == 0)
        r = exec_launch(exec);
    if (r < 0) {
        exec_destroy(exec);
        *ret_error = r;
        return NULL;
    }
    if (options->timeout_ms)
        deadline_set(&exec->deadline, options->timeout_ms);
    set->started++;
    return exec;
}

void exec_cancel(struct exec *exec)
{
    exec->cancelled = true;
    kill_tree(exec);
    if (!exec->over)
        enter_background(exec);
    for (size_t i = 0; i < EXEC_OUTPUTS; i++)
        watch_close(&exec->output[i].watch);
    exec->launch_again = false;
    exec_settle_soon(exec);
}

pid_t exec_pid(const struct exec *exec)
{
    return exec->pid;
}

/* --- the set -------------------------------------------------------------------------------- */

void exec_set_init(struct exec_set *set, struct loop *loop, struct worker_link *worker, int null,
                   int oom_kill_count_fd)
{
    *set = (struct exec_set){
        .loop = loop, .worker = worker, .null = null, .oom_kill_count_fd = oom_kill_count_fd};
    list_init(&set->running);
    list_init(&set->background);
}

void exec_set_reaped(struct exec_set *set, pid_t pid, const struct sys_exit *exit)
{
    LIST_EACH (&set->running, at) {
        struct exec *exec = CONTAINER_OF(at, struct exec, link);

        if (exec->pid && exec->pid != pid)
            continue;
        /* What the supervisor said before it died comes first: the pid, or even the end. */
        if (exec->control.watch.open)
            control_ready(&exec->control.watch);
        if (exec->pid == pid && !exec->outcome_known) {
            exec->result.exit = *exit;
            know_outcome(exec);
            return;
        }
    }
}

void exec_set_kill_all(struct exec_set *set)
{
    struct list *link;

    while ((link = list_first(&set->running))) {
        struct exec *exec = CONTAINER_OF(link, struct exec, link);

        exec->kept = true;
        exec_cancel(exec);
    }
    LIST_EACH (&set->background, at)
        kill_tree(CONTAINER_OF(at, struct exec, link));
}
