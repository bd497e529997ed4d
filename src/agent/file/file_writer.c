#include "agent/file/file_writer.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "agent/file/file_error.h"
#include "agent/file_open.h"

/* As the kernel's MAXSYMLINKS. */
#define LINKS_MAX 40

#define OPEN_FLAGS (O_NONBLOCK | O_NOCTTY | O_NOFOLLOW)

/* --- where it goes -------------------------------------------------------------------------- */

static int open_parent(const struct file_writer *writer, int at, const char *path, bool make)
{
    int fd = file_open(at, path, O_PATH | O_DIRECTORY, 0);

    if (fd != -ENOENT || !make)
        return fd;
    fd = file_owner_make_folders(&writer->owner, at, path, 0777);
    return fd < 0 ? fd : file_open(at, path, O_PATH | O_DIRECTORY, 0);
}

/* One path: its folder and its name. */
static int find_once(struct file_writer *writer, int at, const char *path, bool make)
{
    char parent[PATH_MAX + 1];
    const char *name;
    int r = sys_file_split(path, parent, sizeof(parent), &name);
    int fd;

    if (r < 0)
        return r == -EINVAL ? -EISDIR : r;
    if (strlen(name) > NAME_MAX)
        return -ENAMETOOLONG;
    fd = open_parent(writer, at, parent, make);
    r = fd < 0 ? fd : file_open_check_folder(fd);
    if (r < 0) {
        (void) fd_close(fd);
        return r;
    }
    (void) snprintf(writer->name, sizeof(writer->name), "%s", name);
    (void) fd_close(writer->parent); /* `at` may be this */
    writer->parent = fd;
    return 0;
}

/* Follow links to the file that is meant. */
static int find(struct file_writer *writer, int base, const char *path)
{
    char target[PATH_MAX];
    int r = find_once(writer, base, path, true);

    for (int links = 0; r == 0; links++) {
        ssize_t length = readlinkat(writer->parent, writer->name, target, sizeof(target));

        if (length < 0) /* no link, or nothing at all: the file is here */
            return errno == EINVAL || errno == ENOENT ? 0 : -errno;
        if (links == LINKS_MAX)
            return -ELOOP;
        if ((size_t) length == sizeof(target))
            return -ENAMETOOLONG;
        target[length] = '\0';
        r = find_once(writer, writer->parent, target, false);
    }
    return r;
}

/* --- what is there -------------------------------------------------------------------------- */

struct found {
    bool exists;
    bool is_mount; /* nothing can take its place */
    mode_t mode;
    uid_t uid;
    gid_t gid;
};

static int look(const struct file_writer *writer, struct found *found)
{
    struct statx status;

    *found = (struct found){.exists = false};
    if (statx(writer->parent, writer->name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &status) < 0)
        return errno == ENOENT ? 0 : -errno;
    *found = (struct found){
        .exists = true,
        .is_mount = status.stx_attributes & STATX_ATTR_MOUNT_ROOT,
        .mode = status.stx_mode,
        .uid = status.stx_uid,
        .gid = status.stx_gid,
    };
    if (S_ISDIR(found->mode))
        return -EISDIR;
    if (S_ISLNK(found->mode)) /* it was none a moment ago */
        return -ELOOP;
    if (!S_ISREG(found->mode) && !S_ISCHR(found->mode))
        return -FILE_ERROR_NOT_REGULAR;
    /* Replacing a file needs no right to write it; writing it does. */
    return faccessat(writer->parent, writer->name, W_OK, 0) < 0 ? -errno : 0;
}

static int open_in_place(struct file_writer *writer)
{
    struct stat status;

    writer->fd = file_open(writer->parent, writer->name, O_WRONLY | OPEN_FLAGS, 0);
    if (writer->fd < 0)
        return writer->fd;
    if (fstat(writer->fd, &status) < 0)
        return -errno;
    if (S_ISREG(status.st_mode)) /* files of /proc and /sys have no length to cut */
        return ftruncate(writer->fd, 0) < 0 && errno != EINVAL && errno != EPERM ? -errno : 0;
    return S_ISCHR(status.st_mode) ? 0 : -FILE_ERROR_NOT_REGULAR;
}

/* Whether another attempt, at the file itself, may go better than making a new one beside it. */
static bool may_go_in_place(int error)
{
    return error != -ENOSPC && error != -EDQUOT && error != -EMFILE && error != -ENFILE &&
           error != -ENOMEM;
}

static int open_temporary(struct file_writer *writer, const struct found *found)
{
    int r = sys_file_temporary_name(writer->temporary);

    if (r == 0)
        r = writer->fd =
            file_open(writer->parent, writer->temporary, O_WRONLY | O_CREAT | O_EXCL | OPEN_FLAGS,
                      found->exists ? 0600 : 0666);
    if (r < 0)
        writer->temporary[0] = '\0'; /* not ours to remove */
    return r < 0 ? r : 0;
}

/* The owner first: changing it takes away the bits that lend an owner's rights, and so it must be
 * when the owner cannot be kept. */
static int dress(const struct file_writer *writer, const struct found *found, int permissions)
{
    mode_t mode = permissions == FILE_WRITER_KEEP_MODE ? found->mode & 07777 : (mode_t) permissions;
    struct stat now;

    if (!found->exists && !file_owner_is_agent(&writer->owner) &&
        fchown(writer->fd, writer->owner.uid, writer->owner.gid) < 0)
        return -errno;
    if (permissions == FILE_WRITER_KEEP_MODE && !found->exists)
        return 0;
    if (found->exists && fstat(writer->fd, &now) == 0 &&
        (now.st_uid != found->uid || now.st_gid != found->gid) &&
        fchown(writer->fd, found->uid, found->gid) < 0)
        mode &= 0777;
    return fchmod(writer->fd, mode) < 0 ? -errno : 0;
}

int file_writer_open(struct file_writer *writer, int base, const char *path, int permissions)
{
    struct found found = {.exists = false};
    int r = find(writer, base, path);

    if (r == 0)
        r = look(writer, &found);
    if (r < 0)
        return r;
    if (found.is_mount || S_ISCHR(found.mode))
        return open_in_place(writer);
    writer->replaces = found.exists;
    r = open_temporary(writer, &found);
    if (r < 0)
        return found.exists && may_go_in_place(r) ? open_in_place(writer) : r;
    return dress(writer, &found, permissions);
}

int file_writer_write(struct file_writer *writer, const void *bytes, size_t length)
{
    int r = sys_file_write_full(writer->fd, bytes, length);

    if (r == 0)
        writer->written += length;
    return r;
}

/* A new file gets its name by a link, so that who watches the folder sees it made and not moved.
 * Where that cannot be, or somebody else was faster, it is moved all the same. */
static int put_in_place(struct file_writer *writer)
{
    if (!writer->replaces &&
        linkat(writer->parent, writer->temporary, writer->parent, writer->name, 0) == 0)
        return 0; /* file_writer_done takes the other name away */
    if (renameat(writer->parent, writer->temporary, writer->parent, writer->name) < 0)
        return -errno;
    writer->temporary[0] = '\0';
    return 0;
}

int file_writer_commit(struct file_writer *writer)
{
    int r = 0;

    /* Some filesystems say only now that there was no room. */
    if (close(TAKE_FD(writer->fd)) < 0 && errno != EINTR)
        return -errno;
    if (writer->temporary[0])
        r = put_in_place(writer);
    return r;
}

void file_writer_done(struct file_writer *writer)
{
    writer->fd = fd_close(writer->fd);
    if (writer->temporary[0])
        (void) unlinkat(writer->parent, writer->temporary, 0); /* gone is gone */
    writer->temporary[0] = '\0';
    writer->parent = fd_close(writer->parent);
}
