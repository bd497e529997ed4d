#include "sys/process/sys_namespace.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/text.h"
#include "sys/file/sys_file.h"
#include "sys/sys_call.h"

/* "/proc/self/ns/pid_for_children" and room */
#define PROC_PATH_SIZE 64

/* Of the process that makes a namespace and opens a file. */
#define MAKER_STACK_SIZE 16384

/* The kernel takes a map in one write of less than a page. */
#define MAP_SIZE_MAX 4095

int sys_namespace_unshare(int flags)
{
    int result = sys_call_fault();

    return result ? result : sys_call_result(unshare(flags));
}

int sys_namespace_enter(int fd, int types)
{
    int result = sys_call_fault();

    return result ? result : sys_call_result(setns(fd, types));
}

static int proc_path(char ret_path[static PROC_PATH_SIZE], pid_t pid, const char *name)
{
    int length;

    if (pid < 0)
        return -EINVAL;
    if (pid == 0)
        length = snprintf(ret_path, PROC_PATH_SIZE, "/proc/self/%s", name);
    else
        length = snprintf(ret_path, PROC_PATH_SIZE, "/proc/%d/%s", pid, name);
    return length >= PROC_PATH_SIZE ? -ENAMETOOLONG : 0;
}

int sys_namespace_open(pid_t pid, const char *type)
{
    char name[PROC_PATH_SIZE], path[PROC_PATH_SIZE];
    int result = snprintf(name, sizeof(name), "ns/%s", type);

    if (result >= (int) sizeof(name))
        return -ENAMETOOLONG;
    result = proc_path(path, pid, name);
    return result < 0 ? result : sys_file_open(AT_FDCWD, path, O_RDONLY, 0);
}

/* Shares everything with its parent but the namespaces, so what it opens is the parent's. */
static int open_own_network(void *ret_fd)
{
    *(int *) ret_fd = sys_namespace_open(0, "net");
    return 0;
}

int sys_namespace_make_network(void)
{
    _Alignas(16) char stack[MAKER_STACK_SIZE];
    int fd = -EIO, result = sys_call_fault();
    pid_t pid;

    if (result)
        return result;
    /* The parent stands still until the child is gone: a copy of its memory would cost as much as
     * the namespace. */
    pid = clone(open_own_network, stack + sizeof(stack),
                CLONE_NEWUSER | CLONE_NEWNET | CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, &fd);
    if (pid < 0)
        return -errno;
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return fd;
}

/* In one write, as the kernel demands of these files. */
static int write_once(pid_t pid, const char *name, const char *bytes, size_t length)
{
    char path[PROC_PATH_SIZE];
    AUTO(close) int fd = -EBADF;
    ssize_t count;
    int result = proc_path(path, pid, name);

    if (result < 0)
        return result;
    fd = sys_file_open(AT_FDCWD, path, O_WRONLY, 0);
    if (fd < 0)
        return fd;
    do {
        count = sys_call_fault();
        if (count == 0)
            count = sys_call_size(write(fd, bytes, length));
    } while (count == -EINTR);
    if (count < 0)
        return (int) count;
    return (size_t) count == length ? 0 : -EIO;
}

static int write_map(pid_t pid, const char *name, const struct sys_id_range *ranges, size_t count)
{
    AUTO(text) struct text map = TEXT_INIT(MAP_SIZE_MAX);

    if (count == 0 || count > SYS_ID_RANGES_MAX)
        return -EINVAL;
    for (size_t i = 0; i < count; i++)
        text_format(&map, "%" PRIu32 " %" PRIu32 " %" PRIu32 "\n", ranges[i].inside,
                    ranges[i].outside, ranges[i].count);
    if (map.overflowed)
        return -EINVAL;
    return write_once(pid, name, text_string(&map), map.length);
}

int sys_namespace_map_users(pid_t pid, const struct sys_id_range *ranges, size_t count)
{
    return write_map(pid, "uid_map", ranges, count);
}

int sys_namespace_map_groups(pid_t pid, const struct sys_id_range *ranges, size_t count)
{
    return write_map(pid, "gid_map", ranges, count);
}

int sys_namespace_deny_setgroups(pid_t pid)
{
    return write_once(pid, "setgroups", "deny", strlen("deny"));
}
