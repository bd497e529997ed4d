#include "launcher/image/image_copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/memory.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_open_beneath.h"

AUTO_DEFINE_PTR(closedir, DIR, (void) closedir);

/* What may be shown: see the header. */
static bool is_public(const struct stat *status)
{
    return S_ISREG(status->st_mode) && status->st_uid == 0 && (status->st_mode & 0004) &&
           status->st_size <= IMAGE_COPY_FILE_MAX;
}

static int write_copy(int to, const char *name, const char *data, size_t length, mode_t mode)
{
    AUTO(close) int file = sys_file_open(to, name, O_WRONLY | O_CREAT | O_EXCL, 0600);

    if (file < 0)
        return file;
    if (fchmod(file, mode & 0111 ? 0755 : 0644) < 0)
        return -errno;
    return sys_file_write_full(file, data, length);
}

/* `file` is open for reading, or negative: then there is nothing to copy. */
static int copy_content(int file, int to, const char *name)
{
    AUTO(free) char *data = NULL;
    struct stat status;
    ssize_t length;

    if (file < 0 || fstat(file, &status) < 0 || !is_public(&status))
        return 0;
    data = mem_alloc((size_t) status.st_size + 1);
    length = sys_file_read_full(file, data, (size_t) status.st_size);
    if (length < 0)
        return (int) length;
    if (memmem(data, (size_t) length, "PRIVATE KEY-----", 16))
        return 0;
    return write_copy(to, name, data, (size_t) length, status.st_mode);
}

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Relative links are those of packages, which know where they are. */
static bool leads_into_the_image(const char *target)
{
    if (target[0] != '/')
        return true;
    return begins_with(target, "/etc/") ||
           (begins_with(target, "/usr/") && !begins_with(target, "/usr/local/"));
}

static int copy_link(struct image_copy *copy, int from, int to, const char *name)
{
    char target[PATH_MAX];
    ssize_t length = readlinkat(from, name, target, sizeof(target) - 1);
    AUTO(close) int file = -EBADF;

    if (length <= 0)
        return 0;
    target[length] = '\0';
    if (leads_into_the_image(target))
        return symlinkat(target, to, name) < 0 ? -errno : 0;
    file = sys_open_in_root(copy->root, target, O_RDONLY | O_NONBLOCK, 0);
    return copy_content(file, to, name);
}

/* The entries of a folder, or NULL with errno. */
static DIR *open_entries(int directory, const char *name)
{
    int fd = sys_file_open(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);

    if (fd < 0)
        errno = -fd;
    else if (!entries)
        (void) fd_close(fd);
    return entries;
}

static int copy_entry(struct image_copy *copy, int from, int to, const char *name, int depth);

static int copy_folder(struct image_copy *copy, int from, int to, const char *name, int depth)
{
    AUTO(closedir) DIR *entries = open_entries(from, name);
    AUTO(close) int inner = -EBADF;
    struct dirent *entry;
    int r = 0;

    if (!entries)
        return -errno;
    if (mkdirat(to, name, 0755) < 0 || fchmodat(to, name, 0755, 0) < 0)
        return -errno;
    inner = sys_file_open(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (inner < 0)
        return inner;
    while (r == 0 && (entry = readdir(entries))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r = copy_entry(copy, dirfd(entries), inner, entry->d_name, depth + 1);
    }
    return r;
}

static int copy_entry(struct image_copy *copy, int from, int to, const char *name, int depth)
{
    AUTO(close) int file = -EBADF;
    struct stat status;

    if (depth > IMAGE_COPY_DEPTH_MAX || ++copy->entries > IMAGE_COPY_ENTRIES_MAX)
        return -E2BIG;
    if (fstatat(from, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (S_ISLNK(status.st_mode))
        return copy_link(copy, from, to, name);
    if (S_ISDIR(status.st_mode))
        return status.st_mode & 0005 ? copy_folder(copy, from, to, name, depth) : 0;
    if (!is_public(&status))
        return 0;
    file = sys_file_open(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    return copy_content(file, to, name);
}

static int copy_matching(struct image_copy *copy, int from, int to, const char *prefix,
                         size_t length)
{
    AUTO(closedir) DIR *entries = open_entries(from, ".");
    struct dirent *entry;
    int r = 0;

    if (!entries)
        return -errno;
    while (r == 0 && (entry = readdir(entries))) {
        if (strncmp(entry->d_name, prefix, length) == 0)
            r = copy_entry(copy, from, to, entry->d_name, 0);
    }
    return r;
}

int image_copy_named(struct image_copy *copy, int from, int to, const char *name)
{
    size_t length = strlen(name);

    if (length > 0 && name[length - 1] == '*')
        return copy_matching(copy, from, to, name, length - 1);
    return copy_entry(copy, from, to, name, 0);
}
