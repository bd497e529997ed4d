#include "agent/file/file_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "agent/file/file_error.h"
#include "base/memory.h"
#include "base/text.h"
#include "sys/file/sys_file.h"

#define WALK_PATH_MAX ((size_t) (FILE_WALK_DEPTH_MAX + 1) * (NAME_MAX + 1))

struct level {
    DIR *stream; /* owned */
    size_t path_length;
    struct stat status; /* when it was entered */
};

struct file_walk {
    struct level *levels; /* owned; [0] is the folder itself */
    size_t depth;         /* levels that are open */
    size_t room;
    struct text path;
    struct stat last; /* of the entry that came last */
};

static int push(struct file_walk *walk, int fd)
{
    DIR *stream = fdopendir(fd);
    struct level *level;

    if (!stream) {
        int r = -errno;

        (void) fd_close(fd);
        return r;
    }
    if (walk->depth == walk->room) {
        walk->room = walk->room ? walk->room * 2 : 4;
        walk->levels = mem_resize(walk->levels, walk->room * sizeof(*walk->levels));
    }
    level = &walk->levels[walk->depth++];
    *level =
        (struct level){.stream = stream, .path_length = walk->path.length, .status = walk->last};
    return 0;
}

struct file_walk *file_walk_new(int directory, int *ret_error)
{
    struct file_walk *walk = mem_alloc(sizeof(*walk));

    walk->path = (struct text) TEXT_INIT(WALK_PATH_MAX);
    *ret_error = push(walk, directory);
    if (*ret_error < 0) {
        file_walk_free(walk);
        return NULL;
    }
    return walk;
}

void file_walk_free(struct file_walk *walk)
{
    if (!walk)
        return;
    while (walk->depth)
        (void) closedir(walk->levels[--walk->depth].stream);
    free(walk->levels);
    text_done(&walk->path);
    free(walk);
}

static struct level *top(const struct file_walk *walk)
{
    return &walk->levels[walk->depth - 1];
}

static void set_path(struct file_walk *walk, size_t length, const char *name)
{
    if (walk->path.length > length) {
        walk->path.length = length;
        walk->path.data[length] = '\0';
    }
    if (length)
        text_append_char(&walk->path, '/');
    text_append(&walk->path, name);
}

static void fill(struct file_walk *walk, const char *name, struct file_walk_entry *entry)
{
    entry->directory = dirfd(top(walk)->stream);
    entry->name = name;
    entry->path = text_string(&walk->path);
    entry->depth = (unsigned int) walk->depth;
}

/* The folder that is open last is done. */
static int leave(struct file_walk *walk, struct file_walk_entry *entry)
{
    struct level *level = top(walk);
    const char *slash;

    (void) closedir(level->stream);
    walk->depth--;
    if (!walk->depth)
        return 0;
    if (walk->path.length > level->path_length) {
        walk->path.length = level->path_length;
        walk->path.data[level->path_length] = '\0';
    }
    slash = strrchr(walk->path.data, '/');
    fill(walk, slash ? slash + 1 : walk->path.data, entry);
    entry->is_end = true;
    entry->status = level->status;
    return 1;
}

static bool is_dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

int file_walk_next(struct file_walk *walk, struct file_walk_entry *ret_entry)
{
    while (walk->depth) {
        struct dirent *found;

        errno = 0;
        found = readdir(top(walk)->stream);
        if (!found && errno && errno != ENOENT)
            return -errno;
        if (!found)
            return leave(walk, ret_entry);
        if (is_dots(found->d_name) || fstatat(dirfd(top(walk)->stream), found->d_name,
                                              &ret_entry->status, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        set_path(walk, top(walk)->path_length, found->d_name);
        fill(walk, found->d_name, ret_entry);
        ret_entry->is_end = false;
        walk->last = ret_entry->status;
        return 1;
    }
    return 0;
}

int file_walk_enter(struct file_walk *walk)
{
    const char *slash = strrchr(text_string(&walk->path), '/');
    AUTO(close) int fd = -EBADF;
    struct stat status;

    if (walk->depth > FILE_WALK_DEPTH_MAX)
        return -FILE_ERROR_TOO_DEEP;
    fd = sys_file_open(dirfd(top(walk)->stream), slash ? slash + 1 : text_string(&walk->path),
                       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    if (fstat(fd, &status) < 0)
        return -errno;
    if (status.st_dev != walk->last.st_dev || status.st_ino != walk->last.st_ino)
        return -EXDEV;
    return push(walk, TAKE_FD(fd));
}

int file_walk_directory(const struct file_walk *walk)
{
    return dirfd(top(walk)->stream);
}
