/* From a key to a file: one name at a time, so that no link is ever followed and no path is too
 * long or too deep for the system. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/table.h"
#include "objects/folder/objects_folder_internal.h"

#define FOLDER_MODE 0700

pthread_mutex_t *folder_lock(struct folder *folder, const char *key)
{
    return &folder->keys[table_hash(0, key, strlen(key)) % FOLDER_LOCKS];
}

/* What to do on the way to a folder. */
enum way {
    WAY_LOOK,
    WAY_MAKE, /* what is missing */
    WAY_SYNC, /* everything passed */
};

static int enter(int parent, const char *name, enum way way)
{
    int r = way == WAY_SYNC ? sys_file_sync(parent) : 0;

    if (r < 0)
        return r;
    r = sys_file_open(parent, name, FOLDER_FLAGS, 0);
    if (r == -ENOENT && way == WAY_MAKE) {
        if (mkdirat(parent, name, FOLDER_MODE) < 0 && errno != EEXIST)
            return -errno;
        r = sys_file_open(parent, name, FOLDER_FLAGS, 0);
    }
    return r == -ELOOP ? -ENOTDIR : r; /* a link, which we never make */
}

/* The folder behind the first `length` bytes of a path. */
static int walk(const struct folder *folder, const char *path, size_t length, enum way way)
{
    AUTO(close) int at = sys_file_open(folder->root, ".", FOLDER_FLAGS, 0);
    char name[OBJECTS_PART_SIZE];
    const char *end = path + length;

    while (at >= 0 && path < end) {
        size_t size = strcspn(path, "/");
        int next;

        if (size >= sizeof(name))
            return -ENAMETOOLONG;
        memcpy(name, path, size);
        name[size] = '\0';
        next = enter(at, name, way);
        (void) fd_close(at);
        at = next;
        path += size + 1;
    }
    return TAKE_FD(at);
}

/* A new folder is durable before the lock is given back. So who finds one that another thread has
 * just made passes the lock before relying on it. */
static int walk_making(struct folder *folder, const char *path, size_t length)
{
    int fd = walk(folder, path, length, WAY_LOOK);

    (void) pthread_mutex_lock(&folder->making);
    if (fd == -ENOENT) {
        fd = walk(folder, path, length, WAY_MAKE);
        if (fd >= 0) {
            (void) fd_close(fd);
            fd = walk(folder, path, length, WAY_SYNC);
        }
    }
    (void) pthread_mutex_unlock(&folder->making);
    return fd;
}

static int go(struct folder *folder, const char *path, size_t length, bool make)
{
    return make ? walk_making(folder, path, length) : walk(folder, path, length, WAY_LOOK);
}

int folder_open(struct folder *folder, const char *path, bool make)
{
    return go(folder, path ? path : "", path ? strlen(path) : 0, make);
}

int folder_open_parent(struct folder *folder, const char *path, bool make, const char **ret_name)
{
    const char *slash = strrchr(path, '/');

    *ret_name = slash ? slash + 1 : path;
    return go(folder, path, slash ? (size_t) (slash - path) : 0, make);
}

int folder_open_file(int parent, const char *name)
{
    /* Not to wait for the other end, should somebody have left a FIFO there. */
    AUTO(close) int file = sys_file_open(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    struct stat status;

    if (file == -ELOOP || file == -ENOTDIR || file == -ENXIO)
        return -ENOENT;
    if (file < 0)
        return file;
    if (fstat(file, &status) < 0)
        return -errno;
    return S_ISREG(status.st_mode) ? TAKE_FD(file) : -ENOENT;
}

int folder_open_key(struct folder *folder, const char *key)
{
    char path[OBJECTS_PATH_SIZE];
    const char *name;
    AUTO(close) int parent = -EBADF;

    objects_key_path(key, path);
    parent = folder_open_parent(folder, path, false, &name);
    if (parent < 0)
        return parent == -ENOTDIR ? -ENOENT : parent;
    return folder_open_file(parent, name);
}

/* Cut the last name off. */
static bool step_up(char *path)
{
    char *slash = strrchr(path, '/');

    if (slash)
        *slash = '\0';
    return slash != NULL;
}

/* The folder of what has `path`, or the nearest above it that is still there: whoever removed the
 * others may not have synced that yet. `path` becomes the folder's own; "" is the root's. */
static int open_nearest(struct folder *folder, char *path)
{
    int fd;

    do {
        if (!step_up(path))
            *path = '\0';
        fd = walk(folder, path, strlen(path), WAY_LOOK);
    } while ((fd == -ENOENT || fd == -ENOTDIR) && *path); /* or an object is there now */
    return fd;
}

/* `*at` is the folder with this path; afterwards the first that is not empty. */
static int remove_empty(char *path, int *at)
{
    while (*path) {
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        /* Ours never move, and we count: that cannot lead out of the root. */
        int parent = sys_file_open(*at, "..", FOLDER_FLAGS, 0);

        if (parent < 0)
            return parent;
        if (unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT) {
            bool is_used = errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR;
            int r = is_used ? 0 : -errno;

            (void) fd_close(parent);
            return r;
        }
        (void) fd_close(*at);
        *at = parent;
        if (!step_up(path))
            *path = '\0';
    }
    return 0;
}

int folder_sweep(struct folder *folder, const char *path)
{
    char copy[OBJECTS_PATH_SIZE];
    AUTO(close) int at = -EBADF;
    int r;

    memcpy(copy, path, strlen(path) + 1);
    at = open_nearest(folder, copy);
    if (at < 0)
        return at;
    (void) pthread_rwlock_wrlock(&folder->tree);
    r = remove_empty(copy, &at);
    (void) pthread_rwlock_unlock(&folder->tree);
    return r < 0 ? r : sys_file_sync(at);
}

int folder_failure(const struct folder *folder, const char *doing, const char *key, int r,
                   struct error *err)
{
    static const struct {
        int system;
        enum err_code code;
    } codes[] = {
        {-EFBIG, ERR_NO_SPACE},     {-EIO, ERR_UPSTREAM},      {-EBADMSG, ERR_UPSTREAM},
        {-EUCLEAN, ERR_UPSTREAM},   {-EROFS, ERR_UNAVAILABLE}, {-EISDIR, ERR_CONFLICT},
        {-ENOTEMPTY, ERR_CONFLICT}, {-ENOTDIR, ERR_CONFLICT},
    };
    enum err_code code = error_code_from_errno(r);

    for (size_t i = 0; i < ARRAY_COUNT(codes); i++)
        code = codes[i].system == r ? codes[i].code : code;
    return error_set(err, code, r, "%s '%.100s' in %.120s", doing, key, folder->text);
}
