#include "agent/file/file_copy.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/file/file_error.h"
#include "agent/file/file_walk.h"
#include "agent/file_open.h"
#include "base/memory.h"
#include "sys/file/sys_file.h"

#define BUFFER_SIZE ((size_t) 128 * 1024)
/* In one step: pieces of a file, or entries. */
#define PIECES_PER_STEP  4
#define ENTRIES_PER_STEP 32

struct file_copy {
    int from, to; /* borrowed */
    char *name;
    char *new_name;
    bool begun;
    struct file_walk *walk; /* owned; NULL: no folder */
    int *folders;           /* owned: the copies of the folders that are open, outermost first */
    size_t depth;
    int source, target; /* owned: of the file that is being copied */
    struct stat status; /* of its source */
    char *buffer;       /* owned */
};

struct file_copy *file_copy_new(int from, const char *name, int to, const char *new_name)
{
    struct file_copy *copy = mem_alloc(sizeof(*copy));

    *copy = (struct file_copy){
        .from = from,
        .to = to,
        .name = mem_copy_text(name),
        .new_name = mem_copy_text(new_name),
        .source = -EBADF,
        .target = -EBADF,
    };
    return copy;
}

void file_copy_free(struct file_copy *copy)
{
    if (!copy)
        return;
    while (copy->depth)
        (void) fd_close(copy->folders[--copy->depth]);
    free(copy->folders);
    file_walk_free(copy->walk);
    (void) fd_close(copy->source);
    (void) fd_close(copy->target);
    free(copy->buffer);
    free(copy->name);
    free(copy->new_name);
    free(copy);
}

/* --- what an entry is besides its content --------------------------------------------------- */

/* Owner, mode and times of an open copy. Who may not give files away keeps them. */
static int dress(int fd, const struct stat *status)
{
    const struct timespec times[2] = {status->st_atim, status->st_mtim};
    mode_t mode = status->st_mode & 07777;

    if (fchown(fd, status->st_uid, status->st_gid) < 0)
        mode &= 01777;
    if (fchmod(fd, mode) < 0)
        return -errno;
    (void) futimens(fd, times); /* not every filesystem has them */
    return 0;
}

static void dress_link(int directory, const char *name, const struct stat *status)
{
    const struct timespec times[2] = {status->st_atim, status->st_mtim};

    /* As above: an owner that cannot be kept is no failure. The mode of a link has no meaning. */
    if (fchownat(directory, name, status->st_uid, status->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
        errno = 0;
    (void) utimensat(directory, name, times, AT_SYMLINK_NOFOLLOW);
}

/* --- entries -------------------------------------------------------------------------------- */

static int copy_link(int from, const char *name, int to, const char *new_name,
                     const struct stat *status)
{
    char target[PATH_MAX];
    ssize_t length = readlinkat(from, name, target, sizeof(target) - 1);

    if (length < 0)
        return -errno;
    target[length] = '\0';
    if (symlinkat(target, to, new_name) < 0)
        return -errno;
    dress_link(to, new_name, status);
    return 0;
}

static int copy_pipe(int to, const char *new_name, const struct stat *status)
{
    if (mkfifoat(to, new_name, status->st_mode & 0777) < 0)
        return -errno;
    dress_link(to, new_name, status);
    return 0;
}

static int begin_file(struct file_copy *copy, int from, const char *name, int to,
                      const char *new_name)
{
    copy->source = file_open(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
    if (copy->source < 0)
        return copy->source;
    if (fstat(copy->source, &copy->status) < 0)
        return -errno;
    if (!S_ISREG(copy->status.st_mode))
        return -FILE_ERROR_NOT_REGULAR; /* it was one a moment ago */
    copy->target = file_open(to, new_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    return copy->target < 0 ? copy->target : 0;
}

static int begin_folder(struct file_copy *copy, int to, const char *new_name)
{
    int fd;

    if (mkdirat(to, new_name, 0700) < 0)
        return -errno;
    fd = file_open(to, new_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (fd < 0)
        return fd;
    if (!copy->folders)
        copy->folders = mem_alloc_array(FILE_WALK_DEPTH_MAX + 2, sizeof(int));
    copy->folders[copy->depth++] = fd;
    return 0;
}

static int end_folder(struct file_copy *copy, const struct stat *status)
{
    int r = dress(copy->folders[--copy->depth], status);

    (void) fd_close(copy->folders[copy->depth]);
    return r;
}

static int file_copy_entry(struct file_copy *copy, int from, const char *name, int to,
                           const char *new_name, const struct stat *status)
{
    if (S_ISREG(status->st_mode))
        return begin_file(copy, from, name, to, new_name);
    if (S_ISLNK(status->st_mode))
        return copy_link(from, name, to, new_name, status);
    if (S_ISFIFO(status->st_mode))
        return copy_pipe(to, new_name, status);
    return 0;
}

/* --- steps ---------------------------------------------------------------------------------- */

static int begin_walk(struct file_copy *copy)
{
    int fd = file_open(copy->from, copy->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    int r = fd;

    if (fd >= 0)
        copy->walk = file_walk_new(fd, &r);
    return copy->walk ? begin_folder(copy, copy->to, copy->new_name) : r;
}

static int begin(struct file_copy *copy)
{
    copy->begun = true;
    if (fstatat(copy->from, copy->name, &copy->status, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (S_ISDIR(copy->status.st_mode))
        return begin_walk(copy);
    if (S_ISSOCK(copy->status.st_mode) || S_ISCHR(copy->status.st_mode) ||
        S_ISBLK(copy->status.st_mode))
        return -FILE_ERROR_NOT_REGULAR;
    return file_copy_entry(copy, copy->from, copy->name, copy->to, copy->new_name, &copy->status);
}

/* Returns 1 while there is more of the file. */
static int copy_pieces(struct file_copy *copy)
{
    if (!copy->buffer)
        copy->buffer = mem_alloc(BUFFER_SIZE);
    for (int i = 0; i < PIECES_PER_STEP; i++) {
        ssize_t got = sys_file_read_full(copy->source, copy->buffer, BUFFER_SIZE);
        int r = got < 0 ? (int) got : sys_file_write_full(copy->target, copy->buffer, (size_t) got);

        if (r < 0)
            return r;
        if ((size_t) got == BUFFER_SIZE)
            continue;
        r = dress(copy->target, &copy->status);
        copy->source = fd_close(copy->source);
        copy->target = fd_close(copy->target);
        return r;
    }
    return 1;
}

/* Returns 1 while there is more of the folder. */
static int copy_next(struct file_copy *copy)
{
    struct file_walk_entry entry;
    struct stat status;
    int r = file_walk_next(copy->walk, &entry);

    if (r < 0)
        return r;
    if (r == 0) { /* the outermost folder: as it was before */
        if (fstatat(copy->from, copy->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
            return -errno;
        return end_folder(copy, &status);
    }
    if (entry.is_end)
        r = end_folder(copy, &entry.status);
    else if (S_ISDIR(entry.status.st_mode))
        r = begin_folder(copy, copy->folders[copy->depth - 1], entry.name);
    else
        r = file_copy_entry(copy, entry.directory, entry.name, copy->folders[copy->depth - 1],
                            entry.name, &entry.status);
    if (r == 0 && S_ISDIR(entry.status.st_mode) && !entry.is_end)
        r = file_walk_enter(copy->walk);
    return r < 0 ? r : 1;
}

int file_copy_step(struct file_copy *copy)
{
    int r = copy->begun ? 1 : begin(copy);

    if (r < 0)
        return r;
    for (int i = 0; i < ENTRIES_PER_STEP && copy->source < 0; i++) {
        r = copy->walk ? copy_next(copy) : 0;
        if (r <= 0)
            return r;
    }
    r = copy->source >= 0 ? copy_pieces(copy) : 1;
    if (r < 0)
        return r;
    return r == 1 || copy->walk ? 1 : 0;
}
