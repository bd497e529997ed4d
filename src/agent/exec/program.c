#include "agent/exec/program.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/environment.h"
#include "agent/exec/account.h"
#include "base/number.h"
#include "sys/process/sys_pty.h"
#include "sys/process/sys_signal.h"

#define SHELL_LEVEL_MAX 1000

/* What bash searches when the environment has no PATH. */
#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static const char *const shells[] = {"/bin/bash", "/usr/bin/bash", "/bin/sh", "/usr/bin/sh"};

static bool is_executable(const char *file)
{
    struct stat status;

    return stat(file, &status) == 0 && S_ISREG(status.st_mode) && access(file, X_OK) == 0;
}

int program_find(const char *name, const char *path, char *ret_file, size_t size)
{
    if (strchr(name, '/')) {
        if ((size_t) snprintf(ret_file, size, "%s", name) >= size)
            return -ENAMETOOLONG;
        return 0;
    }
    for (const char *part = path;; part++) {
        size_t length = strcspn(part, ":");
        int written = length ? snprintf(ret_file, size, "%.*s/%s", (int) length, part, name)
                             : snprintf(ret_file, size, "./%s", name);

        if (written > 0 && (size_t) written < size && is_executable(ret_file))
            return 0;
        part += length;
        if (!*part)
            return -ENOENT;
    }
}

/* --- the spawn ------------------------------------------------------------------------------ */

/* As posix_spawn does it: the child shares our memory, on a stack of its own, and we stand still
 * until it has exec'd. That saves copying page tables for every command. Written out because the
 * pid must be noted before the program runs. */
struct spawn {
    const int *stdio;
    _Atomic pid_t *note;
    bool terminal;
    const struct account *account; /* NULL: as we are */
    const char *file;
    const char *const *arguments;
    const char *const *environment;
    int error; /* -errno, written by the child */
};

#define SPAWN_STACK_SIZE ((size_t) 64 * 1024)

static int place_stdio(const int *stdio)
{
    for (int to = 0; to < PROGRAM_DESCRIPTORS; to++) {
        if (stdio[to] < 0) {
            continue;
        } else if (stdio[to] == to) { /* dup2 would leave it close-on-exec */
            if (fcntl(to, F_SETFD, 0) < 0)
                return -errno;
        } else if (dup2(stdio[to], to) < 0) {
            return -errno;
        }
    }
    return 0;
}

/* System calls as they are: the C library's would do the same to every thread, and this child
 * shares its memory with somebody who must stay who it is. */
static int become_user(const struct account *account)
{
    if (syscall(SYS_setgroups, account->group_count, account->groups) < 0 ||
        syscall(SYS_setresgid, account->gid, account->gid, account->gid) < 0 ||
        syscall(SYS_setresuid, account->uid, account->uid, account->uid) < 0)
        return -errno;
    return 0;
}

/* In the child: nothing here may change memory that the parent relies on. AddressSanitizer would
 * complain of the strange stack, on the command's stderr. */
__attribute__((no_sanitize("address"))) static int become_program(void *data)
{
    static const int changed[] = {SIGPIPE}; /* by main and by the worker */
    struct spawn *spawn = data;

    if (spawn->note)
        atomic_store(spawn->note, getpid());
    spawn->error = sys_signal_reset_some(changed, ARRAY_COUNT(changed));
    if (spawn->error == 0 && setsid() < 0)
        spawn->error = -errno;
    if (spawn->error == 0)
        spawn->error = place_stdio(spawn->stdio);
    if (spawn->error == 0 && spawn->terminal)
        spawn->error = sys_pty_take_control(STDIN_FILENO);
    if (spawn->error == 0 && spawn->account)
        spawn->error = become_user(spawn->account);
    if (spawn->error == 0) {
        /* The type of execve predates const; it changes neither array. */
        (void) execve(spawn->file, (char *const *) (uintptr_t) spawn->arguments,
                      (char *const *) (uintptr_t) spawn->environment);
        spawn->error = -errno;
    }
    _exit(127);
}

static pid_t spawn_run(struct spawn *spawn, char *stack)
{
    sigset_t before;
    pid_t pid;

    spawn->error = 0;
    (void) sys_signal_block_all(&before); /* no handler of ours may run in the child */
    pid = clone(become_program, stack + SPAWN_STACK_SIZE, CLONE_VM | CLONE_VFORK | SIGCHLD, spawn);
    if (pid < 0)
        pid = -errno;
    (void) sys_signal_restore(&before);
    if (pid > 0 && spawn->error) {
        (void) waitpid(pid, NULL, 0);
        return spawn->error;
    }
    return pid;
}

static pid_t spawn_file(struct spawn *spawn, const char *file, const char *const *arguments,
                        const char *const *environment)
{
    void *stack = mmap(NULL, SPAWN_STACK_SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    pid_t pid;

    if (stack == MAP_FAILED)
        return -errno;
    spawn->file = file;
    spawn->arguments = arguments;
    spawn->environment = environment;
    pid = spawn_run(spawn, stack);
    (void) munmap(stack, SPAWN_STACK_SIZE);
    return pid;
}

/* --- which program -------------------------------------------------------------------------- */

static pid_t start_shell(struct spawn *spawn, const struct launch *launch)
{
    pid_t pid = -ENOENT;

    for (size_t i = 0; i < ARRAY_COUNT(shells) && pid == -ENOENT; i++) {
        const char *name = strrchr(shells[i], '/') + 1;
        const char *const arguments[] = {name, "-c", launch->shell_command, NULL};

        pid = spawn_file(spawn, shells[i], arguments, launch->environment);
    }
    return pid;
}

/* What bash adds before it executes a plain command, so that leaving bash out is not seen. */
static const char **shell_environment(const struct launch *launch, const char *file)
{
    char here[PATH_MAX], level[NUMBER_TEXT_SIZE];
    const char *old_level = environment_get(launch->environment, "SHLVL");
    int64_t number = 0;
    struct environment_change changes[3] = {{.name = "SHLVL", .text = level},
                                            {.name = "_", .text = file}};
    size_t count = 2;

    if (old_level)
        (void) number_parse(old_level, 0, SHELL_LEVEL_MAX, &number);
    (void) number_format(number, level);
    if (getcwd(here, sizeof(here)))
        changes[count++] = (struct environment_change){.name = "PWD", .text = here};
    return environment_merge(launch->environment, changes, count);
}

static pid_t start_directly(struct spawn *spawn, const struct launch *launch)
{
    const char *path = environment_get(launch->environment, "PATH");
    char file[PATH_MAX];
    const char **environment;
    pid_t pid;
    int r = program_find(launch->arguments[0], path ? path : PATH_DEFAULT, file, sizeof(file));

    if (r < 0)
        return r;
    if (!launch->shell_command)
        return spawn_file(spawn, file, launch->arguments, launch->environment);
    environment = shell_environment(launch, file);
    pid = spawn_file(spawn, file, launch->arguments, environment);
    environment_free(environment);
    return pid;
}

pid_t program_start(const struct launch *launch, const int stdio[static PROGRAM_DESCRIPTORS],
                    const struct account *account, _Atomic pid_t *note)
{
    struct spawn spawn = {
        .stdio = stdio, .note = note, .terminal = launch->terminal, .account = account};
    pid_t pid = -ENOENT;

    if (launch->arguments)
        pid = start_directly(&spawn, launch);
    if (pid < 0 && launch->shell_command)
        pid = start_shell(&spawn, launch);
    if (pid < 0 && note)
        atomic_store(note, 0);
    return pid;
}
