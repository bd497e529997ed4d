#include "agent/file_open.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/auto.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_open_beneath.h"

/* What the kernel shows to those only who may trace the process. */
static const char *const guarded[] = {
    "auxv",      "clear_refs",   "environ", "fd",        "fdinfo",  "io",
    "map_files", "maps",         "mem",     "numa_maps", "pagemap", "personality",
    "smaps",     "smaps_rollup", "stack",   "syscall",   "timers",
};

static bool is_in_proc(int fd)
{
    struct statfs filesystem;

    return fstatfs(fd, &filesystem) == 0 && filesystem.f_type == PROC_SUPER_MAGIC;
}

static bool part_is_guarded(const char *part, size_t length)
{
    for (size_t i = 0; i < ARRAY_COUNT(guarded); i++) {
        if (strlen(guarded[i]) == length && memcmp(guarded[i], part, length) == 0)
            return true;
    }
    return false;
}

/* Of the agent itself, by what is behind /proc/PID: "maps", "task/7/maps", "fdinfo/4". */
static bool is_guarded(int fd)
{
    char link[64], path[256], own[32];
    ssize_t length;
    size_t prefix;

    (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof(path) - 1);
    if (length < 0)
        return true;
    path[length] = '\0';
    prefix = (size_t) snprintf(own, sizeof(own), "/proc/%d/", getpid());
    if (strncmp(path, own, prefix) != 0)
        return false;
    for (const char *part = path + prefix; *part; part += strspn(part, "/")) {
        size_t part_length = strcspn(part, "/");

        if (part_is_guarded(part, part_length))
            return true;
        part += part_length;
    }
    return false;
}

static int check(int fd, int flags)
{
    if (flags & O_PATH || !is_in_proc(fd))
        return 0;
    if ((flags & O_ACCMODE) != O_RDONLY)
        return -EROFS;
    return is_guarded(fd) ? -EACCES : 0;
}

int file_open(int directory, const char *path, int flags, mode_t mode)
{
    AUTO(close) int fd = sys_open_without_magic(directory, path, flags, mode);
    int r;

    if (fd == -ENOSYS)
        fd = sys_file_open(directory, path, flags, mode);
    if (fd < 0)
        return fd;
    r = check(fd, flags);
    return r < 0 ? r : TAKE_FD(fd);
}

int file_open_check_folder(int fd)
{
    return is_in_proc(fd) ? -EROFS : 0;
}
