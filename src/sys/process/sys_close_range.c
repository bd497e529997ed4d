#include "sys/process/sys_close_range.h"

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/auto.h"
#include "sys/file/sys_file.h"
#include "sys/sys_call.h"

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1u << 2)
#endif

/* A number in /proc/self/fd, or -1 for "." and "..". */
static int parse_descriptor(const char *name)
{
    int number = 0;

    if (!*name)
        return -1;
    for (; *name; name++) {
        if (*name < '0' || *name > '9' || number > (INT32_MAX - 9) / 10)
            return -1;
        number = number * 10 + (*name - '0');
    }
    return number;
}

static int close_range_settle(int fd, bool only_on_exec)
{
    if (!only_on_exec) {
        (void) fd_close(fd);
        return 0;
    }
    return sys_call_result(fcntl(fd, F_SETFD, FD_CLOEXEC));
}

/* getdents64 by hand: opendir allocates, which the child of a program with threads must not. The
 * position in this directory is the descriptor's number, so closing does not disturb the walk. */
static int close_listed(unsigned int first, unsigned int last, bool only_on_exec)
{
    AUTO(close)
    int list = sys_file_open(AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY, 0);
    _Alignas(struct dirent64) char entries[2048];
    int length;

    if (list < 0)
        return list;
    while ((length = sys_call_result(syscall(SYS_getdents64, list, entries, sizeof(entries)))) >
           0) {
        for (int at = 0; at < length;) {
            struct dirent64 *entry = (void *) (entries + at);
            int fd = parse_descriptor(entry->d_name);
            int result = 0;

            at += entry->d_reclen;
            if (fd >= 0 && fd != list && (unsigned int) fd >= first && (unsigned int) fd <= last)
                result = close_range_settle(fd, only_on_exec);
            if (result < 0)
                return result;
        }
    }
    return length;
}

int sys_close_range(unsigned int first, unsigned int last, bool only_on_exec)
{
    int result = sys_call_fault_or_missing(SYS_FEATURE_CLOSE_RANGE);

    if (first > last)
        return -EINVAL;
    if (result == 0)
        result = sys_call_result(
            syscall(SYS_close_range, first, last, only_on_exec ? CLOSE_RANGE_CLOEXEC : 0));
    if (result == -ENOSYS)
        result = close_listed(first, last, only_on_exec);
    return result;
}

/* The lowest of them from `first` on; ~0u for none. */
static unsigned int next_kept(unsigned int first, const int *kept, size_t count)
{
    unsigned int next = ~0u;

    for (size_t i = 0; i < count; i++) {
        if (kept[i] >= 0 && (unsigned int) kept[i] >= first && (unsigned int) kept[i] < next)
            next = (unsigned int) kept[i];
    }
    return next;
}

int sys_close_all_but(unsigned int first, const int *kept, size_t count)
{
    unsigned int next;

    while ((next = next_kept(first, kept, count)) != ~0u) {
        int result = next > first ? sys_close_range(first, next - 1, false) : 0;

        if (result < 0)
            return result;
        first = next + 1;
    }
    return sys_close_range(first, ~0u, false);
}
