#include "agent/code/code_server.h"

#include <linux/sockios.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "sys/file/sys_file.h"
#include "sys/network/sys_fd_pass.h"
#include "sys/network/sys_socket.h"

struct code_server {
    struct agent *agent; /* borrowed */
    struct exec *exec;   /* NULL: none runs */
    int control;         /* owned; negative: none runs */
    size_t contexts;
    struct deadline idle;
    struct deadline stall; /* for what it was sent, and others before that */
};

static void stop(struct code_server *server)
{
    deadline_clear(&server->stall);
    server->control = fd_close(server->control);
    /* Not killed: its contexts would be too. It ends when it finds the socket closed. */
    server->exec = NULL;
}

static void idle_due(struct deadline *deadline)
{
    stop(CONTAINER_OF(deadline, struct code_server, idle));
}

/* Whether there is something that it did not read. */
static bool is_behind(const struct code_server *server)
{
    int unread = 0;

    return ioctl(server->control, SIOCOUTQ, &unread) == 0 && unread > 0;
}

/* Not its contexts: they are groups of their own. Its supervisor may be stopped like itself, so the
 * signal is ours; the pid is the server's until its end is known. */
static void stall_is_over(struct deadline *deadline)
{
    struct code_server *server = CONTAINER_OF(deadline, struct code_server, stall);

    if (!is_behind(server))
        return;
    if (server->exec && exec_pid(server->exec) && !exec_is_ending(server->exec))
        (void) kill(-exec_pid(server->exec), SIGKILL);
    stop(server);
}

struct code_server *code_server_new(struct agent *agent)
{
    struct code_server *server = mem_alloc(sizeof(*server));

    server->agent = agent;
    server->control = -EBADF;
    deadline_init(&agent->loop, &server->idle, idle_due);
    deadline_init(&agent->loop, &server->stall, stall_is_over);
    return server;
}

/* --- its process ----------------------------------------------------------------------------- */

static void exec_started(struct exec *exec, void *owner)
{
    (void) exec;
    (void) owner;
}

static void exec_wrote(struct exec *exec, void *owner, enum exec_output which, const char *bytes,
                       size_t length)
{
    (void) exec; /* it writes to nowhere */
    (void) owner;
    (void) which;
    (void) bytes;
    (void) length;
}

/* Also of one that was stopped, while its successor runs already. */
static void exec_ended(struct exec *exec, void *owner, const struct exec_result *result)
{
    struct code_server *server = owner;

    (void) result;
    if (server->exec == exec)
        stop(server);
}

static const struct exec_events exec_events = {
    .on_start = exec_started,
    .on_output = exec_wrote,
    .on_end = exec_ended,
};

static int start(struct code_server *server)
{
    const struct code_place place = {
        .directory = "/", .environment = (const char *const *) server->agent->environment};
    AUTO(close) int ours = -EBADF, theirs = -EBADF, nowhere = -EBADF;
    int pair[2];
    int r = sys_socket_pair(SOCK_SEQPACKET, pair);

    if (r < 0)
        return r;
    ours = pair[0];
    theirs = pair[1];
    nowhere = sys_file_open(AT_FDCWD, "/dev/null", O_WRONLY, 0);
    if (nowhere < 0)
        nowhere = fcntl(theirs, F_DUPFD_CLOEXEC, 3);
    r = sys_file_set_nonblocking(ours, true);
    if (r < 0 || nowhere < 0)
        return r < 0 ? r : -EMFILE;
    server->exec = code_launch(server->agent, code_program_of(CODE_PYTHON), &place,
                               (const int[]){theirs, nowhere, nowhere}, &exec_events, server, &r);
    if (!server->exec)
        return r;
    server->control = TAKE_FD(ours);
    return 0;
}

/* --- contexts -------------------------------------------------------------------------------- */

static int send_descriptors(struct code_server *server, const int *fds)
{
    bool was_behind = is_behind(server);
    ssize_t sent = sys_fd_pass_send(server->control, "", 1, fds, CODE_DESCRIPTORS);

    if (sent < 0)
        return (int) sent;
    if (!was_behind)
        deadline_set(&server->stall, CODE_SERVER_STALL_MS);
    return 0;
}

int code_server_fork(struct code_server *server, const int fds[static CODE_DESCRIPTORS])
{
    int r = server->exec ? send_descriptors(server, fds) : -EPIPE;

    if (r != -EPIPE && r != -ECONNRESET)
        return r;
    stop(server); /* it is dead, which was not told yet */
    r = start(server);
    return r < 0 ? r : send_descriptors(server, fds);
}

bool code_server_has_exec(const struct code_server *server)
{
    return server->exec != NULL;
}

void code_server_hold(struct code_server *server)
{
    server->contexts++;
    deadline_clear(&server->idle);
}

void code_server_let_go(struct code_server *server)
{
    if (--server->contexts == 0)
        deadline_set(&server->idle, CODE_SERVER_IDLE_MS);
}
