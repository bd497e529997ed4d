#include "sys/file/sys_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "sys/file/sys_file.h"

/* One directory on the way down. */
struct sys_tree_level {
    DIR *entries;            /* owned */
    char name[NAME_MAX + 1]; /* in the level above */
    bool progress;           /* something was removed since the last rewind */
};

struct sys_tree_walk {
    struct sys_tree_level levels[SYS_TREE_DEPTH_MAX];
    int depth;            /* levels in use */
    unsigned int entries; /* that may still be looked at */
};

static void leave_level(struct sys_tree_walk *walk)
{
    (void) closedir(walk->levels[--walk->depth].entries);
}

static void auto_walk(struct sys_tree_walk *walk)
{
    while (walk->depth > 0)
        leave_level(walk);
}

/* A directory of mode 000 stops everyone but root: give ourselves the rights, through a descriptor
 * so that a link put in its place is not followed. */
static int unlock_directory(int parent, const char *name)
{
    AUTO(close) int place = sys_file_open(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    char path[64];

    if (place < 0)
        return place;
    (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
    return chmod(path, 0700) < 0 ? -errno : 0;
}

static int enter_level(struct sys_tree_walk *walk, int parent, const char *name)
{
    struct sys_tree_level *level = &walk->levels[walk->depth];
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK;
    int fd = sys_file_open(parent, name, flags, 0);

    if (fd == -EACCES && unlock_directory(parent, name) == 0)
        fd = sys_file_open(parent, name, flags, 0);
    if (fd < 0)
        return fd;
    /* One that may be read but not changed: nothing in it could be removed. */
    if (faccessat(fd, ".", W_OK | X_OK, 0) < 0 && errno == EACCES)
        (void) fchmod(fd, 0700); /* another's folder: then removing fails, and says so */
    level->entries = fdopendir(fd);
    if (!level->entries) {
        int result = -errno;

        (void) fd_close(fd);
        return result;
    }
    (void) snprintf(level->name, sizeof(level->name), "%s", name);
    level->progress = false;
    walk->depth++;
    return 0;
}

/* A file or an empty directory. -ENOTEMPTY asks for a level of its own. */
static int remove_entry(int parent, const char *name, unsigned char type)
{
    if (type != DT_DIR && unlinkat(parent, name, 0) == 0)
        return 0;
    if (type != DT_DIR && errno != EISDIR)
        return errno == ENOENT ? 0 : -errno;
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    /* Where a directory may not be looked into, some filesystems cannot tell that it is empty. */
    return errno == EEXIST || errno == EACCES ? -ENOTEMPTY : -errno;
}

/* Too deep: to the top with it, where the next pass finds it. */
static int lift_directory(struct sys_tree_walk *walk, int parent, const char *name)
{
    int top = dirfd(walk->levels[0].entries);
    char new_name[SYS_FILE_NAME_SIZE];
    int result = sys_file_temporary_name(new_name);

    if (result < 0)
        return result;
    if (renameat(parent, name, top, new_name) == 0)
        return 0;
    /* Moving a directory changes its "..", for which it must be writable. */
    if (errno != EACCES)
        return -errno;
    result = unlock_directory(parent, name);
    if (result < 0)
        return result;
    return renameat(parent, name, top, new_name) < 0 ? -errno : 0;
}

static int handle_entry(struct sys_tree_walk *walk, const struct dirent *entry)
{
    struct sys_tree_level *level = &walk->levels[walk->depth - 1];
    int parent = dirfd(level->entries);
    int result;

    if (walk->entries == 0)
        return -E2BIG;
    if (walk->entries != UINT_MAX)
        walk->entries--;
    result = remove_entry(parent, entry->d_name, entry->d_type);
    if (result == -ENOTEMPTY && walk->depth < SYS_TREE_DEPTH_MAX)
        return enter_level(walk, parent, entry->d_name);
    if (result == -ENOTEMPTY)
        result = lift_directory(walk, parent, entry->d_name);
    if (result == 0)
        level->progress = true;
    return result;
}

/* At the end of a directory: remove it from the one above. Entries that appeared behind our
 * position (those lifted to the top) need another pass; a pass that removed nothing means that
 * somebody refills the tree. */
static int finish_level(struct sys_tree_walk *walk)
{
    struct sys_tree_level *level = &walk->levels[walk->depth - 1];
    bool again = level->progress;

    if (walk->depth == 1) {
        level->progress = false;
        if (again)
            rewinddir(level->entries);
        else
            leave_level(walk);
        return 0;
    }
    if (unlinkat(dirfd(walk->levels[walk->depth - 2].entries), level->name, AT_REMOVEDIR) == 0 ||
        errno == ENOENT) {
        walk->levels[walk->depth - 2].progress = true;
        leave_level(walk);
        return 0;
    }
    if ((errno != ENOTEMPTY && errno != EEXIST) || !again)
        return -errno;
    level->progress = false;
    rewinddir(level->entries);
    return 0;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Everything beneath the first level. */
static int empty_walk(struct sys_tree_walk *walk)
{
    int result = 0;

    while (walk->depth > 0 && result == 0) {
        struct dirent *entry;

        errno = 0;
        entry = readdir(walk->levels[walk->depth - 1].entries);
        if (!entry && errno)
            result = -errno;
        else if (!entry)
            result = finish_level(walk);
        else if (!is_dots(entry->d_name))
            result = handle_entry(walk, entry);
    }
    return result;
}

int sys_tree_empty(int directory)
{
    AUTO(walk) struct sys_tree_walk walk = {.entries = UINT_MAX};
    int result = enter_level(&walk, directory, ".");

    return result < 0 ? result : empty_walk(&walk);
}

static bool sys_tree_is_name(const char *name)
{
    return *name && strlen(name) <= NAME_MAX && !strchr(name, '/') && !is_dots(name);
}

int sys_tree_delete_small(int directory, const char *name, unsigned int entries)
{
    AUTO(walk) struct sys_tree_walk walk = {.entries = entries};
    int result;

    if (!sys_tree_is_name(name))
        return -EINVAL;
    result = remove_entry(directory, name, DT_UNKNOWN);
    if (result != -ENOTEMPTY)
        return result;
    result = enter_level(&walk, directory, name);
    if (result == 0)
        result = empty_walk(&walk);
    return result < 0 ? result : remove_entry(directory, name, DT_DIR);
}

int sys_tree_delete(int directory, const char *name)
{
    return sys_tree_delete_small(directory, name, UINT_MAX);
}
