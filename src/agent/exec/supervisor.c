#include "agent/exec/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/environment.h"
#include "agent/exec/account.h"
#include "agent/exec/process_tree.h"
#include "agent/exec/program.h"
#include "sys/file/sys_file.h"
#include "sys/network/sys_fd_pass.h"
#include "sys/process/sys_process.h"
#include "sys/process/sys_signal.h"

/* Between two rounds of killing: those killed must die and hand their children to us. */
#define KILL_ROUND_FIRST_MS 1
#define KILL_ROUND_MAX_MS   64

#define DISCARD_SIZE 16384

enum {
    POLL_CONTROL,
    POLL_SIGNALS,
    POLL_LEFT_OUTPUT,
    POLL_COUNT = POLL_LEFT_OUTPUT + SUPERVISOR_OUTPUTS
};

/* A socket that cannot take it (the agent is gone) is nobody's concern. */
static void supervisor_tell(const struct supervisor *supervisor, enum report_type type, int value,
                            int detail)
{
    struct launch_report report = {.type = type, .value = value, .detail = detail};

    (void) send(supervisor->control, &report, sizeof(report), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* --- starting ------------------------------------------------------------------------------- */

static int enter_directory(const struct launch *launch)
{
    const char *home;
    int r = 0;

    if (launch->directory && chdir(launch->directory) < 0)
        r = -errno;
    if (r == 0 || !launch->any_directory)
        return r;
    home = environment_get(launch->environment, "HOME");
    if (home && chdir(home) == 0)
        return 0;
    return chdir("/") < 0 ? -errno : 0;
}

static int supervisor_fail(const struct supervisor *supervisor, enum launch_stage stage, int error)
{
    supervisor_tell(supervisor, REPORT_FAILED, error, stage);
    return error;
}

/* Who runs it, and where that is at home. In this process, because passwd is the sandbox's and may
 * be anything: whoever waits for it here holds up nobody else. */
static int find_user(struct launch *launch, struct account *ret_account)
{
    const struct environment_change changes[] = {{.name = "USER", .text = ret_account->name},
                                                 {.name = "LOGNAME", .text = ret_account->name},
                                                 {.name = "HOME", .text = ret_account->home}};
    const char *const *before = launch->environment;
    int r = account_read_owner(launch->user, ret_account);

    if (r < 0)
        return r;
    launch->environment =
        environment_merge(before, changes, ARRAY_COUNT(changes) - !launch->own_home);
    return 0;
}

static pid_t start_program(const struct launch *launch, const struct account *account,
                           const int *stdio, _Atomic pid_t *note)
{
    pid_t pid = program_start(launch, stdio, account, note);

    if (account)
        environment_free((const char **) (uintptr_t) launch->environment); /* find_user's own */
    return pid;
}

static int supervisor_run_command(struct supervisor *supervisor, const struct launch *asked,
                                  const int *stdio, _Atomic pid_t *note)
{
    struct launch launch = *asked;
    struct account account;
    pid_t pid;
    int r = enter_directory(&launch);

    if (r < 0)
        return supervisor_fail(supervisor, LAUNCH_STAGE_DIRECTORY, r);
    r = launch.user ? find_user(&launch, &account) : 0;
    if (r < 0)
        return supervisor_fail(supervisor, LAUNCH_STAGE_USER, r);
    pid = start_program(&launch, launch.user ? &account : NULL, stdio, note);
    if (chdir("/") < 0) {
        /* Then our directory keeps a mount busy, as the command's own does. */
    }
    if (pid == -EAGAIN || pid == -ENOMEM)
        return supervisor_fail(supervisor, LAUNCH_STAGE_FORK, pid);
    if (pid < 0)
        return supervisor_fail(supervisor, LAUNCH_STAGE_PROGRAM, pid);
    supervisor->command = pid;
    supervisor_tell(supervisor, REPORT_STARTED, pid, 0);
    return 0;
}

int supervisor_start(struct supervisor *supervisor, int signals, const char *bytes, size_t length,
                     int fds[LAUNCH_DESCRIPTORS], _Atomic pid_t *note)
{
    AUTO(launch) struct launch launch = {.arguments = NULL};
    int r = launch_decode(bytes, length, &launch);

    *supervisor = (struct supervisor){
        .control = fds[LAUNCH_CONTROL],
        .signals = signals,
        .left_output = {-EBADF, -EBADF},
    };
    (void) sys_file_set_nonblocking(supervisor->control, true); /* an open socket takes that */
    r = r < 0 ? supervisor_fail(supervisor, LAUNCH_STAGE_MESSAGE, r)
              : supervisor_run_command(supervisor, &launch, &fds[LAUNCH_STDIN], note);
    for (int i = LAUNCH_STDIN; i < LAUNCH_DESCRIPTORS; i++)
        fds[i] = fd_close(fds[i]); /* our copies would keep the pipes open */
    if (r < 0)
        supervisor_done(supervisor);
    return r;
}

void supervisor_done(struct supervisor *supervisor)
{
    supervisor->control = fd_close(supervisor->control);
    for (size_t i = 0; i < SUPERVISOR_OUTPUTS; i++)
        supervisor->left_output[i] = fd_close(supervisor->left_output[i]);
}

/* --- children ------------------------------------------------------------------------------- */

/* Reap whatever has ended. Returns false when no child is left: the tree is gone. */
static bool reap(struct supervisor *supervisor)
{
    for (;;) {
        struct sys_exit exit;
        pid_t pid;
        int r = sys_process_reap(&pid, &exit);

        if (r == -ECHILD)
            return false;
        if (r < 0)
            return true;
        if (pid == supervisor->command) {
            supervisor->command = 0;
            supervisor_tell(supervisor, REPORT_EXITED, exit.value, (int) exit.kind);
        }
    }
}

/* One round; killed processes hand their children to us, who are found in the next. */
static void kill_tree(struct supervisor *supervisor)
{
    /* First all of the group at one stroke, which no fork can outrun. Its number is the command's
     * pid and may belong to somebody else once that was reaped. */
    if (supervisor->command)
        (void) kill(-supervisor->command, SIGKILL);
    (void) process_tree_signal(getpid(), SIGKILL); /* without /proc the group is all there is */
    supervisor->round_ms =
        supervisor->round_ms < KILL_ROUND_MAX_MS ? supervisor->round_ms * 2 : KILL_ROUND_MAX_MS;
}

/* One round and not two ways: a second SIGTERM means something else to many programs. */
static void signal_tree(const struct supervisor *supervisor, int signal)
{
    if (process_tree_signal(getpid(), signal) < 0 && supervisor->command)
        (void) kill(-supervisor->command, signal); /* without /proc the group is all there is */
}

static void begin_killing(struct supervisor *supervisor)
{
    if (supervisor->killing)
        return;
    supervisor->killing = true;
    supervisor->round_ms = KILL_ROUND_FIRST_MS;
    kill_tree(supervisor);
}

/* --- the agent ------------------------------------------------------------------------------ */

static void take_output(struct supervisor *supervisor, int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        (void) sys_file_set_nonblocking(fds[i], true); /* it is the agent's, who had set it */
        (void) fd_close(supervisor->left_output[i]);
        supervisor->left_output[i] = fds[i];
    }
}

/* Returns false when there is nothing more to read now. */
static bool take_order(struct supervisor *supervisor)
{
    int fds[SUPERVISOR_OUTPUTS];
    size_t count = 0;
    struct launch_order order;
    ssize_t length = sys_fd_pass_receive(supervisor->control, &order, sizeof(order), fds,
                                         SUPERVISOR_OUTPUTS, &count);

    if (length == -EAGAIN)
        return false;
    if (length != sizeof(order)) { /* the agent is gone */
        supervisor->control = fd_close(supervisor->control);
        begin_killing(supervisor);
        return false;
    }
    take_output(supervisor, fds, count);
    if (order.type == ORDER_KILL)
        begin_killing(supervisor);
    else if (order.type == ORDER_SIGNAL && supervisor->command)
        (void) kill(-supervisor->command, order.value);
    else if (order.type == ORDER_SIGNAL_TREE)
        signal_tree(supervisor, order.value);
    return true;
}

static void discard_output(struct supervisor *supervisor, size_t which)
{
    char buffer[DISCARD_SIZE];
    ssize_t got = read(supervisor->left_output[which], buffer, sizeof(buffer));

    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        supervisor->left_output[which] = fd_close(supervisor->left_output[which]);
}

/* --- the loop ------------------------------------------------------------------------------- */

static void empty_signals(struct supervisor *supervisor)
{
    struct sys_signal signal;

    while (sys_signal_read(supervisor->signals, &signal) == 0)
        ; /* one means as much as many */
}

static void supervisor_turn(struct supervisor *supervisor)
{
    struct pollfd polls[POLL_COUNT] = {
        [POLL_CONTROL] = {.fd = supervisor->control, .events = POLLIN},
        [POLL_SIGNALS] = {.fd = supervisor->signals, .events = POLLIN},
    };

    for (size_t i = 0; i < SUPERVISOR_OUTPUTS; i++)
        polls[POLL_LEFT_OUTPUT + i] =
            (struct pollfd){.fd = supervisor->left_output[i], .events = POLLIN};
    if (poll(polls, POLL_COUNT, supervisor->killing ? supervisor->round_ms : -1) < 0)
        return; /* EINTR; there is no other */
    if (polls[POLL_SIGNALS].revents)
        empty_signals(supervisor);
    for (size_t i = 0; i < SUPERVISOR_OUTPUTS; i++) {
        if (polls[POLL_LEFT_OUTPUT + i].revents)
            discard_output(supervisor, i);
    }
    while (polls[POLL_CONTROL].revents && take_order(supervisor))
        ;
}

bool supervisor_wait(struct supervisor *supervisor, int other, int timeout_ms)
{
    while (reap(supervisor)) {
        struct pollfd polls[] = {
            {.fd = supervisor->signals, .events = POLLIN},
            {.fd = supervisor->control, .events = POLLIN},
            {.fd = other, .events = POLLIN},
        };
        int r = poll(polls, ARRAY_COUNT(polls), timeout_ms);

        if (r <= 0 || polls[1].revents || polls[2].revents)
            return false;
        empty_signals(supervisor);
    }
    return true;
}

_Noreturn void supervisor_run(struct supervisor *supervisor)
{
    while (reap(supervisor)) {
        supervisor_turn(supervisor);
        if (supervisor->killing && reap(supervisor))
            kill_tree(supervisor);
    }
    _exit(0);
}
