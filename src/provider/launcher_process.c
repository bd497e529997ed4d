#include "provider/launcher_process.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/network/sys_socket.h"
#include "sys/process/sys_process.h"
#include "sys/process/sys_spawn.h"

#define PROGRAM_NAME "burrow-launcher"

/* The launcher's end of the conversation, as a number and as an argument. */
#define SOCKET_FD   3
#define SOCKET_TEXT "3"

/* program, verb, --socket-fd N, seven options and the binds with their values, NULL */
#define ARGUMENTS_MAX (4 + 2 * 7 + 2 * LAUNCHER_PROCESS_BINDS_MAX + 1)

/* --- which program --------------------------------------------------------------------------- */

static bool is_program(const char *path)
{
    return access(path, X_OK) == 0;
}

/* In the folder of this program. Returns whether it is there. */
static bool find_beside(char *ret_path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", ret_path, size - 1);
    char *slash;

    if (length < 0)
        return false;
    ret_path[length] = '\0';
    slash = strrchr(ret_path, '/');
    if (!slash || (size_t) (slash + 1 - ret_path) + sizeof(PROGRAM_NAME) > size)
        return false;
    memcpy(slash + 1, PROGRAM_NAME, sizeof(PROGRAM_NAME));
    return is_program(ret_path);
}

/* Absolute folders only: what a current directory holds is not to be run as root. */
static bool find_in_path(char *ret_path, size_t size)
{
    const char *at = getenv("PATH") ?: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin";

    while (*at) {
        size_t length = strcspn(at, ":");

        if (*at == '/' && length + sizeof("/" PROGRAM_NAME) <= size) {
            (void) snprintf(ret_path, size, "%.*s/%s", (int) length, at, PROGRAM_NAME);
            if (is_program(ret_path))
                return true;
        }
        at += length + (at[length] == ':');
    }
    return false;
}

static int find_program(const char *wanted, char *ret_path, size_t size, struct error *err)
{
    if (wanted) {
        if (snprintf(ret_path, size, "%s", wanted) < (int) size && is_program(ret_path))
            return 0;
        return error_set(err, ERR_NOT_FOUND, 0, "there is no program %s", wanted);
    }
    if (find_beside(ret_path, size) || find_in_path(ret_path, size))
        return 0;
    return error_set(err, ERR_NOT_FOUND, 0,
                     PROGRAM_NAME " is neither beside this program nor in PATH");
}

/* --- its arguments --------------------------------------------------------------------------- */

struct arguments {
    const char *list[ARGUMENTS_MAX];
    size_t count;
    char binds[LAUNCHER_PROCESS_BINDS_MAX][PATH_MAX + 80]; /* NAME=FOLDER */
};

static void add(struct arguments *arguments, const char *flag, const char *value)
{
    if (!value)
        return;
    arguments->list[arguments->count++] = flag;
    arguments->list[arguments->count++] = value;
}

static int add_binds(struct arguments *arguments, const struct launcher_process_options *options,
                     struct error *err)
{
    if (options->bind_count > LAUNCHER_PROCESS_BINDS_MAX)
        return error_set(err, ERR_INVALID, 0, "more than %d binds", LAUNCHER_PROCESS_BINDS_MAX);
    for (size_t i = 0; i < options->bind_count; i++) {
        const struct launcher_process_bind *bind = &options->binds[i];
        int length = snprintf(arguments->binds[i], sizeof(arguments->binds[i]), "%s=%s", bind->name,
                              bind->folder);

        if (length >= (int) sizeof(arguments->binds[i]))
            return error_set(err, ERR_INVALID, 0, "bind %s is too long", bind->name);
        add(arguments, "--bind", arguments->binds[i]);
    }
    return 0;
}

static int make_arguments(struct arguments *arguments,
                          const struct launcher_process_options *options, struct error *err)
{
    arguments->count = 0;
    add(arguments, PROGRAM_NAME, "once");
    add(arguments, "--socket-fd", SOCKET_TEXT);
    add(arguments, "--data", options->data);
    add(arguments, "--run", options->run);
    add(arguments, "--cgroup", options->cgroup);
    add(arguments, "--user", options->user);
    add(arguments, "--network-name", options->network);
    add(arguments, "--pool-size", options->pool_size);
    add(arguments, "--log-level", options->log_level);
    if (add_binds(arguments, options, err) < 0)
        return -1;
    arguments->list[arguments->count] = NULL;
    return 0;
}

/* --- its life -------------------------------------------------------------------------------- */

static int name_agents(struct launcher_process *process, const char *run, struct error *err)
{
    int length = snprintf(process->agents, sizeof(process->agents), "%s/once-%d/agents",
                          run ?: LAUNCHER_PROCESS_RUN, (int) process->pid);

    if (length >= (int) sizeof(process->agents))
        return error_set(err, ERR_INVALID, 0, "the run folder's name is too long");
    return 0;
}

static int spawn(const char *path, const struct arguments *arguments, int socket,
                 struct launcher_process *process, struct error *err)
{
    struct sys_spawn_descriptor descriptors[] = {{.from = STDERR_FILENO, .to = STDERR_FILENO},
                                                 {.from = socket, .to = SOCKET_FD}};
    struct sys_spawn how = {.path = path,
                            .arguments = arguments->list,
                            .environment = (const char *const *) environ,
                            .descriptors = descriptors,
                            .descriptor_count = ARRAY_COUNT(descriptors),
                            .new_session = true};

    process->pidfd = sys_spawn(&how, &process->pid);
    if (process->pidfd < 0)
        return error_set(err, ERR_INTERNAL, process->pidfd, "start %s", path);
    return 0;
}

int launcher_process_start(const struct launcher_process_options *options,
                           struct launcher_process *ret_process, struct error *err)
{
    AUTO(close) int ours = -EBADF;
    AUTO(close) int theirs = -EBADF;
    struct launcher_process process = LAUNCHER_PROCESS_INIT;
    struct arguments arguments;
    char path[PATH_MAX];
    int ends[2], result;

    process.pid = INT_MAX; /* the longest name that there can be */
    if (find_program(options->program, path, sizeof(path), err) < 0 ||
        make_arguments(&arguments, options, err) < 0 ||
        name_agents(&process, options->run, err) < 0)
        return -1;
    result = sys_socket_pair(SOCK_SEQPACKET, ends);
    if (result < 0)
        return error_set(err, ERR_INTERNAL, result, "make a socket for the launcher");
    ours = ends[0];
    theirs = ends[1];
    if (spawn(path, &arguments, theirs, &process, err) < 0)
        return -1;
    (void) name_agents(&process, options->run, err); /* it fitted before */
    process.conversation = TAKE_FD(ours);
    *ret_process = process;
    return 0;
}

/* How it ended, as an error, when that was no success. */
static int judge(const struct sys_exit *ended, struct error *err)
{
    if (ended->kind == SYS_EXIT_STATUS && ended->value == 0)
        return 0;
    if (ended->kind == SYS_EXIT_STATUS)
        return error_set(err, ERR_UPSTREAM, 0, PROGRAM_NAME " failed with status %d", ended->value);
    if (ended->kind == SYS_EXIT_SIGNAL)
        return error_set(err, ERR_UPSTREAM, 0, PROGRAM_NAME " was killed by signal %d",
                         ended->value);
    return error_set(err, ERR_UPSTREAM, 0, PROGRAM_NAME " ended, nobody knows how");
}

void launcher_process_explain(struct launcher_process *process, int timeout_ms, struct error *err)
{
    struct sys_exit ended;

    if (process->pidfd < 0 || sys_process_wait(process->pidfd, timeout_ms, &ended) < 0)
        return;
    process->pidfd = fd_close(process->pidfd);
    if (judge(&ended, err) == 0)
        (void) error_set(err, ERR_UPSTREAM, 0, PROGRAM_NAME " ended too early");
}

int launcher_process_end(struct launcher_process *process, int timeout_ms, struct error *err)
{
    struct sys_exit ended = {.kind = SYS_EXIT_UNKNOWN};
    int result;

    process->conversation = fd_close(process->conversation);
    if (process->pidfd < 0)
        return 0;
    result = sys_process_wait(process->pidfd, timeout_ms, &ended);
    process->pidfd = fd_close(process->pidfd);
    if (result == -ETIMEDOUT)
        return error_set(err, ERR_UPSTREAM_TIMEOUT, 0,
                         PROGRAM_NAME " (process %d) is still cleaning up", (int) process->pid);
    if (result < 0)
        return error_set(err, ERR_INTERNAL, result, "wait for " PROGRAM_NAME);
    return judge(&ended, err);
}
