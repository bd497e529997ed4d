#include "sys/file/sys_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/time_types.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/memory.h"
#include "sys/sys_call.h"

#define PAGE 4096

int sys_file_open(int directory, const char *path, int flags, mode_t mode)
{
    int result;

    do {
        result = sys_call_fault();
        if (result == 0)
            result = sys_call_result(openat(directory, path, flags | O_CLOEXEC, mode));
    } while (result == -EINTR);
    return result;
}

/* Offset -1 means the descriptor's own position, for both movers. */
static ssize_t sys_file_read_some(int fd, void *buffer, size_t size, off_t offset)
{
    ssize_t result;

    do {
        result = sys_call_fault();
        if (result == 0 && offset < 0)
            result = sys_call_size(read(fd, buffer, size));
        else if (result == 0)
            result = sys_call_size(pread(fd, buffer, size, offset));
    } while (result == -EINTR);
    return result;
}

static ssize_t write_some(int fd, const void *bytes, size_t length, off_t offset)
{
    ssize_t result;

    do {
        result = sys_call_fault();
        if (result == 0 && offset < 0)
            result = sys_call_size(write(fd, bytes, length));
        else if (result == 0)
            result = sys_call_size(pwrite(fd, bytes, length, offset));
    } while (result == -EINTR);
    return result;
}

static ssize_t read_full(int fd, void *buffer, size_t size, off_t offset)
{
    size_t done = 0;

    while (done < size) {
        off_t at = offset < 0 ? offset : offset + (off_t) done;
        ssize_t count = sys_file_read_some(fd, (char *) buffer + done, size - done, at);

        if (count < 0)
            return count;
        if (count == 0)
            break;
        done += (size_t) count;
    }
    return (ssize_t) done;
}

static int write_full(int fd, const void *bytes, size_t length, off_t offset)
{
    size_t done = 0;

    while (done < length) {
        off_t at = offset < 0 ? offset : offset + (off_t) done;
        ssize_t count = write_some(fd, (const char *) bytes + done, length - done, at);

        if (count < 0)
            return (int) count;
        /* No progress and no error would be an endless loop. */
        if (count == 0)
            return -EIO;
        done += (size_t) count;
    }
    return 0;
}

ssize_t sys_file_read_full(int fd, void *buffer, size_t size)
{
    return read_full(fd, buffer, size, -1);
}

ssize_t sys_file_pread_full(int fd, void *buffer, size_t size, off_t offset)
{
    return offset < 0 ? -EINVAL : read_full(fd, buffer, size, offset);
}

int sys_file_write_full(int fd, const void *bytes, size_t length)
{
    return write_full(fd, bytes, length, -1);
}

int sys_file_pwrite_full(int fd, const void *bytes, size_t length, off_t offset)
{
    return offset < 0 ? -EINVAL : write_full(fd, bytes, length, offset);
}

/* How much of the front is pages that are all zeros, or all not. */
static size_t sys_file_run(const char *bytes, size_t length, bool *ret_is_hole)
{
    static const char zeros[PAGE];
    size_t done = 0;

    while (done < length) {
        size_t size = length - done < PAGE ? length - done : PAGE;
        bool is_hole = memcmp(bytes + done, zeros, size) == 0;

        if (done == 0)
            *ret_is_hole = is_hole;
        else if (is_hole != *ret_is_hole)
            break;
        done += size;
    }
    return done;
}

int sys_file_pwrite_sparse(int fd, const void *bytes, size_t length, off_t offset)
{
    struct stat status;
    size_t done = 0;
    bool is_hole = false;
    int r = fstat(fd, &status) < 0 ? -errno : 0;

    if (r == 0 && offset < status.st_size)
        return sys_file_pwrite_full(fd, bytes, length, offset);
    while (r == 0 && done < length) {
        size_t size = sys_file_run((const char *) bytes + done, length - done, &is_hole);

        if (!is_hole)
            r = sys_file_pwrite_full(fd, (const char *) bytes + done, size, offset + (off_t) done);
        done += size;
    }
    if (r == 0 && is_hole && ftruncate(fd, offset + (off_t) length) < 0)
        r = -errno;
    return r;
}

int sys_file_sync(int fd)
{
    int result;

    do {
        result = sys_call_fault();
        if (result == 0)
            result = sys_call_result(fsync(fd));
    } while (result == -EINTR);
    return result;
}

int sys_file_split(const char *path, char *ret_parent, size_t parent_size, const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *parent = slash ? path : ".";
    size_t length = slash ? (size_t) (slash - path) : 1;

    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return -EINVAL;
    if (slash == path)
        length = 1;
    if (length >= parent_size)
        return -ENAMETOOLONG;
    memcpy(ret_parent, parent, length);
    ret_parent[length] = '\0';
    *ret_name = name;
    return 0;
}

/* The directory that holds `path`, open, and the name in it. */
static int sys_file_open_parent(int directory, const char *path, const char **ret_name)
{
    char parent[PATH_MAX];
    int result = sys_file_split(path, parent, sizeof(parent), ret_name);

    if (result < 0)
        return result;
    return sys_file_open(directory, parent, O_RDONLY | O_DIRECTORY, 0);
}

int sys_file_sync_parent(int directory, const char *path)
{
    const char *name;
    AUTO(close) int parent = sys_file_open_parent(directory, path, &name);

    return parent < 0 ? parent : sys_file_sync(parent);
}

#define TEMPORARY_BEGIN  ".burrow-"
#define TEMPORARY_DIGITS 16
#define TEMPORARY_END    ".tmp"

bool sys_file_is_temporary_name(const char *name)
{
    size_t begin = strlen(TEMPORARY_BEGIN), end = begin + TEMPORARY_DIGITS;

    if (strlen(name) != end + strlen(TEMPORARY_END) || memcmp(name, TEMPORARY_BEGIN, begin) != 0 ||
        memcmp(name + end, TEMPORARY_END, strlen(TEMPORARY_END)) != 0)
        return false;
    for (size_t i = begin; i < end; i++) {
        if (!strchr("0123456789abcdef", name[i]))
            return false;
    }
    return true;
}

int sys_file_temporary_name(char ret_name[static SYS_FILE_NAME_SIZE])
{
    uint64_t number = 0;
    ssize_t count;

    do {
        count = sys_call_fault();
        if (count == 0)
            count = sys_call_size(getrandom(&number, sizeof(number), 0));
    } while (count == -EINTR);
    if (count != sizeof(number))
        return count < 0 ? (int) count : -EIO;
    (void) snprintf(ret_name, SYS_FILE_NAME_SIZE, TEMPORARY_BEGIN "%016" PRIx64 TEMPORARY_END,
                    number);
    return 0;
}

static int fill_temporary(int parent, const char *temporary, const void *bytes, size_t length,
                          mode_t mode)
{
    AUTO(close) int fd = sys_file_open(parent, temporary, O_WRONLY | O_CREAT | O_EXCL, 0600);
    int result;

    if (fd < 0)
        return fd;
    result = write_full(fd, bytes, length, -1);
    if (result == 0)
        result = sys_call_result(fchmod(fd, mode));
    return result == 0 ? sys_file_sync(fd) : result;
}

int sys_file_replace(int directory, const char *path, const void *bytes, size_t length, mode_t mode)
{
    const char *name;
    AUTO(close) int parent = sys_file_open_parent(directory, path, &name);
    char temporary[SYS_FILE_NAME_SIZE];
    int result;

    if (parent < 0)
        return parent;
    result = sys_file_temporary_name(temporary);
    if (result < 0)
        return result;
    result = fill_temporary(parent, temporary, bytes, length, mode);
    if (result == -EEXIST)
        return result; /* somebody else's file: not ours to remove */
    if (result == 0)
        result = sys_call_fault();
    if (result == 0)
        result = sys_call_result(renameat(parent, temporary, parent, name));
    if (result < 0) {
        (void) unlinkat(parent, temporary, 0); /* the first error is the one to report */
        return result;
    }
    return sys_file_sync(parent);
}

#define READ_ALL_FIRST 4096

static int read_growing(int fd, size_t limit, char **ret_data, size_t *ret_length)
{
    size_t capacity = limit < READ_ALL_FIRST ? limit : READ_ALL_FIRST;
    AUTO(free) char *data = mem_alloc(capacity + 1);
    size_t length = 0;

    for (;;) {
        /* One byte beyond the limit is asked for, to tell "exactly" from "more". */
        ssize_t count = read_full(fd, data + length, capacity + 1 - length, -1);

        if (count < 0)
            return (int) count;
        length += (size_t) count;
        if (length <= capacity)
            break;
        if (capacity == limit)
            return -EFBIG;
        capacity = capacity > limit / 2 ? limit : capacity * 2;
        data = mem_resize(data, capacity + 1);
    }
    data[length] = '\0';
    *ret_data = TAKE_PTR(data);
    *ret_length = length;
    return 0;
}

int sys_file_read_all(int directory, const char *path, size_t limit, char **ret_data,
                      size_t *ret_length)
{
    /* Non-blocking only for the open: a FIFO without a writer would hold us for ever. */
    AUTO(close) int fd = sys_file_open(directory, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    struct stat status;

    if (fd < 0)
        return fd;
    if (fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode))
        return -EINVAL;
    return read_growing(fd, limit, ret_data, ret_length);
}

static int make_directory(int directory, const char *path, mode_t mode, uid_t uid, gid_t gid)
{
    struct stat status;
    int result = sys_call_fault();

    if (result == 0)
        result = sys_call_result(mkdirat(directory, path, mode));
    if (result == 0 && (uid != SYS_FILE_SAME_OWNER || gid != SYS_FILE_SAME_OWNER))
        result = sys_call_result(fchownat(directory, path, uid, gid, AT_SYMLINK_NOFOLLOW));
    if (result != -EEXIST)
        return result;
    if (fstatat(directory, path, &status, 0) < 0)
        return -errno;
    return S_ISDIR(status.st_mode) ? 0 : -ENOTDIR;
}

int sys_file_make_directories(int directory, const char *path, mode_t mode)
{
    return sys_file_make_directories_for(directory, path, mode, SYS_FILE_SAME_OWNER,
                                         SYS_FILE_SAME_OWNER);
}

int sys_file_make_directories_for(int directory, const char *path, mode_t mode, uid_t uid,
                                  gid_t gid)
{
    char prefix[PATH_MAX];
    size_t length = strlen(path);

    if (length == 0)
        return -ENOENT;
    if (length >= sizeof(prefix))
        return -ENAMETOOLONG;
    memcpy(prefix, path, length + 1);
    for (size_t end = 1; end <= length; end++) {
        char kept = prefix[end];
        int result;

        /* Only where a component ends: "a//b" makes a and b. */
        if ((kept != '/' && kept != '\0') || prefix[end - 1] == '/')
            continue;
        prefix[end] = '\0';
        result = make_directory(directory, prefix, mode, uid, gid);
        if (result < 0)
            return result;
        prefix[end] = kept;
    }
    return 0;
}

bool sys_file_has_room(int fd, uint64_t bytes)
{
    struct statvfs status;

    return fstatvfs(fd, &status) < 0 || !status.f_blocks ||
           (uint64_t) status.f_bavail * status.f_frsize >= bytes;
}

int sys_file_set_nonblocking(int fd, bool nonblocking)
{
    int flags = fcntl(fd, F_GETFL);
    int wanted;

    if (flags < 0)
        return -errno;
    wanted = nonblocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    if (wanted == flags)
        return 0;
    return sys_call_result(fcntl(fd, F_SETFL, wanted));
}

int sys_file_poll(int fd, short events, int timeout_ms)
{
    struct pollfd entry = {.fd = fd, .events = events};
    struct __kernel_timespec left = {.tv_sec = timeout_ms / 1000,
                                     .tv_nsec = timeout_ms % 1000 * 1000000LL};
    int result;

    if (fd < 0)
        return -EBADF;
    /* The raw call, because the kernel leaves the remaining time in `left`, which libc hides: so
     * the total holds across signals without reading a clock. */
    do {
        result = sys_call_fault();
        if (result == 0)
            result = sys_call_result(
                syscall(SYS_ppoll, &entry, 1, timeout_ms < 0 ? NULL : &left, NULL, 0));
    } while (result == -EINTR);
    if (result <= 0)
        return result;
    return entry.revents & POLLNVAL ? -EBADF : entry.revents;
}
