#include "sys/file/sys_open_beneath.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/auto.h"
#include "sys/file/sys_file.h"
#include "sys/sys_call.h"

/* As the kernel's MAXSYMLINKS. */
#define LINKS_MAX 40

/* openat2 answers -EAGAIN when a rename anywhere made a ".." uncertain. */
#define RACES_MAX 64

/* Answers of a step that are neither a descriptor nor an errno (those end at -4095). */
#define WALK_ON    (-5000) /* there is more of the path */
#define WALK_AGAIN (-5001) /* the component changed under us: look again */

/* A walk in progress.
 *
 *     stack[0] = root, stack[1] = root/a, stack[2] = root/a/b        pending = "c/d"
 *
 * All of the stack but the root is ours to close. */
struct open_beneath_walk {
    int stack[SYS_OPEN_BENEATH_DEPTH_MAX];
    unsigned int depth; /* index of the current directory */
    bool in_root;
    int flags;
    mode_t mode;
    unsigned int links; /* links followed and races met so far */
    char *pending;      /* what is left of the path; points into buffer */
    char buffer[2 * PATH_MAX];
};

static void walk_return_to_root(struct open_beneath_walk *walk)
{
    while (walk->depth > 0)
        (void) fd_close(walk->stack[walk->depth--]);
}

AUTO_DEFINE(walk, struct open_beneath_walk, walk_return_to_root);

static int walk_up(struct open_beneath_walk *walk)
{
    if (walk->depth == 0)
        return walk->in_root ? 0 : -EXDEV;
    (void) fd_close(walk->stack[walk->depth--]);
    return 0;
}

/* Takes `fd` in any case. */
static int walk_down(struct open_beneath_walk *walk, int fd)
{
    if (walk->depth + 1 == SYS_OPEN_BENEATH_DEPTH_MAX) {
        (void) fd_close(fd);
        return -ENAMETOOLONG;
    }
    walk->stack[++walk->depth] = fd;
    return 0;
}

/* An absolute path, given or read from a link, starts again at the root or is refused. */
static int walk_enter_absolute(struct open_beneath_walk *walk)
{
    if (*walk->pending != '/')
        return 0;
    if (!walk->in_root)
        return -EXDEV;
    walk_return_to_root(walk);
    return 0;
}

/* Put the content of the link at `fd` before what is pending. */
static int walk_follow(struct open_beneath_walk *walk, int fd)
{
    char target[PATH_MAX];
    size_t rest = strlen(walk->pending);
    struct statfs filesystem;
    ssize_t length;

    if (walk->links++ >= LINKS_MAX)
        return -ELOOP;
    if (fstatfs(fd, &filesystem) < 0)
        return -errno;
    if (filesystem.f_type == PROC_SUPER_MAGIC)
        return -ELOOP;
    length = readlinkat(fd, "", target, sizeof(target));
    if (length < 0)
        return -errno;
    if (length == 0)
        return -ENOENT;
    if ((size_t) length >= sizeof(target) || (size_t) length + rest >= sizeof(walk->buffer))
        return -ENAMETOOLONG;
    memmove(walk->buffer + length, walk->pending, rest + 1);
    memcpy(walk->buffer, target, (size_t) length);
    walk->pending = walk->buffer;
    return walk_enter_absolute(walk);
}

/* Cut the next component off `pending`. Returns its length, 0 at the end. */
static int walk_next(struct open_beneath_walk *walk, char ret_name[static NAME_MAX + 1])
{
    size_t length;

    walk->pending += strspn(walk->pending, "/");
    length = strcspn(walk->pending, "/");
    if (length > NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(ret_name, walk->pending, length);
    ret_name[length] = '\0';
    walk->pending += length;
    return (int) length;
}

/* The path ended at a directory we already stand in: ".", "a/..", "/". */
static int walk_open_here(struct open_beneath_walk *walk)
{
    if (walk->flags & O_CREAT)
        return walk->flags & O_EXCL ? -EEXIST : -EISDIR;
    return sys_file_open(walk->stack[walk->depth], ".", walk->flags & ~O_NOFOLLOW, walk->mode);
}

/* The last component, known not to be a link to follow. WALK_AGAIN when it became one. */
static int walk_open_last(struct open_beneath_walk *walk, const char *name)
{
    bool slash = *walk->pending == '/';
    int flags = walk->flags | O_NOFOLLOW | (slash ? O_DIRECTORY : 0);
    int fd;

    if (slash && walk->flags & O_CREAT)
        return -EISDIR;
    fd = sys_file_open(walk->stack[walk->depth], name, flags, walk->mode);
    if (fd == -ELOOP && !(walk->flags & O_NOFOLLOW))
        return walk->links++ < LINKS_MAX ? WALK_AGAIN : -ELOOP;
    return fd;
}

/* One step. Returns WALK_ON, WALK_AGAIN, or what ends the walk: a descriptor or -errno. */
static int walk_step(struct open_beneath_walk *walk, char name[static NAME_MAX + 1])
{
    AUTO(close) int fd = -EBADF;
    bool last, wants_link;
    struct stat status;
    int result;

    fd = sys_file_open(walk->stack[walk->depth], name, O_PATH | O_NOFOLLOW, 0);
    last = walk->pending[strspn(walk->pending, "/")] == '\0';
    if (fd < 0)
        return last && fd == -ENOENT ? walk_open_last(walk, name) : fd;
    if (fstat(fd, &status) < 0)
        return -errno;
    /* "link/" names what the link leads to; O_EXCL never follows. */
    wants_link =
        last && *walk->pending != '/' &&
        (walk->flags & O_NOFOLLOW || (walk->flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL));
    if (S_ISLNK(status.st_mode) && !wants_link)
        result = walk_follow(walk, fd);
    else if (last)
        return walk_open_last(walk, name);
    else if (!S_ISDIR(status.st_mode))
        result = -ENOTDIR;
    else
        result = walk_down(walk, TAKE_FD(fd));
    return result < 0 ? result : WALK_ON;
}

static int walk_run(struct open_beneath_walk *walk)
{
    int result = walk_enter_absolute(walk);

    while (result == 0) {
        char name[NAME_MAX + 1];
        char *before = walk->pending;
        int length = walk_next(walk, name);

        if (length < 0)
            return length;
        if (length == 0)
            return walk_open_here(walk);
        if (strcmp(name, ".") == 0)
            continue;
        if (strcmp(name, "..") == 0) {
            result = walk_up(walk);
            continue;
        }
        result = walk_step(walk, name);
        if (result == WALK_AGAIN)
            walk->pending = before;
        else if (result != WALK_ON)
            return result;
        result = 0;
    }
    return result;
}

static int open_by_walking(int root, const char *path, int flags, mode_t mode, bool in_root)
{
    AUTO(walk)
    struct open_beneath_walk walk = {
        .stack = {root}, .in_root = in_root, .flags = flags, .mode = mode};
    size_t length = strlen(path);

    if (length == 0)
        return -ENOENT;
    if (length >= PATH_MAX)
        return -ENAMETOOLONG;
    memcpy(walk.buffer, path, length + 1);
    walk.pending = walk.buffer;
    return walk_run(&walk);
}

static int open_by_kernel(int root, const char *path, int flags, mode_t mode, uint64_t scope)
{
    struct open_how how = {
        .flags = (unsigned int) flags | O_CLOEXEC,
        .mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? mode : 0,
        .resolve = RESOLVE_NO_MAGICLINKS | scope,
    };
    int races = 0;
    int result;

    do {
        result = sys_call_fault_or_missing(SYS_FEATURE_OPENAT2);
        if (result == 0)
            result = sys_call_result(syscall(SYS_openat2, root, path, &how, sizeof(how)));
    } while (result == -EINTR || (result == -EAGAIN && races++ < RACES_MAX));
    return result;
}

static int open_scoped(int root, const char *path, int flags, mode_t mode, bool in_root)
{
    int result;

    /* With AT_FDCWD or a wrong descriptor an absolute path would still mean something. */
    if (root < 0)
        return -EBADF;
    if (flags & O_CREAT && flags & O_DIRECTORY)
        return -EINVAL;
    result = open_by_kernel(root, path, flags, mode, in_root ? RESOLVE_IN_ROOT : RESOLVE_BENEATH);
    if (result == -ENOSYS)
        result = open_by_walking(root, path, flags, mode, in_root);
    return result;
}

int sys_open_beneath(int root, const char *path, int flags, mode_t mode)
{
    return open_scoped(root, path, flags, mode, false);
}

int sys_open_in_root(int root, const char *path, int flags, mode_t mode)
{
    return open_scoped(root, path, flags, mode, true);
}

int sys_open_without_magic(int directory, const char *path, int flags, mode_t mode)
{
    return open_by_kernel(directory, path, flags, mode, 0);
}
