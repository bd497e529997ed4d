#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/image_internal.h"
#include "sys/sys_file.h"

/* Deeper paths are nobody's image. */
#define PARENTS_MAX 256

/* Where the host keeps what is not for strangers. An image may contain none of these; those that
 * are closed may contain no image either. Compared by device and inode, so that neither links nor
 * bind mounts lead around it. */
static const struct {
    const char *path;
    bool is_closed;
} protected_folders[] = {
    {"/", false},    {"/etc", true}, {"/root", false}, {"/home", false},
    {"/proc", true}, {"/sys", true}, {"/dev", true},
};

bool image_is_ours(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && status.st_uid == geteuid() && (status.st_mode & 022) == 0;
}

static bool is_same(const struct stat *left, const struct stat *right)
{
    return left->st_dev == right->st_dev && left->st_ino == right->st_ino;
}

/* Whether a folder on the way can have its entries exchanged by others. In a sticky one (/tmp) they
 * cannot touch what is not theirs. */
static bool is_open_to_others(const struct stat *status)
{
    return status->st_uid != geteuid() ||
           ((status->st_mode & 022) != 0 && (status->st_mode & S_ISVTX) == 0);
}

/* The folder above, or the same at the root. -errno. */
static int open_parent(int folder, struct stat *ret_status)
{
    AUTO(close) int parent = sys_file_open(folder, "..", O_PATH | O_DIRECTORY, 0);

    if (parent < 0)
        return parent;
    return fstat(parent, ret_status) < 0 ? -errno : TAKE_FD(parent);
}

/* Whether `inner` is `outer` or lies beneath it: 1, 0 or -errno. */
static int lies_within(int inner, const struct stat *outer)
{
    AUTO(close) int at = fcntl(inner, F_DUPFD_CLOEXEC, 3);
    struct stat here, above;

    if (at < 0 || fstat(at, &here) < 0)
        return -errno;
    for (int i = 0; i < PARENTS_MAX; i++) {
        int parent;

        if (is_same(&here, outer))
            return 1;
        parent = open_parent(at, &above);
        if (parent < 0)
            return parent;
        (void) fd_close(at);
        at = parent;
        if (is_same(&above, &here))
            return 0;
        here = above;
    }
    return -ELOOP;
}

/* Only root may exchange any part of the path. 1: so it is, 0: not, or -errno. */
static int has_safe_parents(int folder, const struct stat *status)
{
    AUTO(close) int at = fcntl(folder, F_DUPFD_CLOEXEC, 3);
    struct stat here = *status, above;

    for (int i = 0; at >= 0 && i < PARENTS_MAX; i++) {
        int parent = open_parent(at, &above);

        (void) fd_close(at);
        at = parent;
        if (at >= 0 && is_open_to_others(&above))
            return 0;
        if (at >= 0 && is_same(&above, &here))
            return 1;
        here = above;
    }
    return at < 0 ? at : -ELOOP;
}

/* The image as `folder`, a place of the host as `place`. */
static int check_place(int folder, const struct stat *status, int place, bool is_closed,
                       const char *place_path, const char *path, struct error *err)
{
    struct stat place_status;
    int r = fstat(place, &place_status) < 0 ? -errno : 0;

    if (r == 0)
        r = lies_within(place, status);
    if (r > 0)
        return error_set(err, ERR_INVALID, 0, "'%s' cannot be an image: %s is in it", path,
                         place_path);
    if (r == 0 && is_closed)
        r = lies_within(folder, &place_status);
    if (r > 0)
        return error_set(err, ERR_INVALID, 0, "'%s' cannot be an image: it lies in %s", path,
                         place_path);
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "compare '%s' and %s", path, place_path) : 0;
}

static int check_places(const struct image_registry *registry, int folder,
                        const struct stat *status, const char *path, struct error *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(protected_folders); i++) {
        const char *place_path = protected_folders[i].path;
        AUTO(close) int place = sys_file_open(AT_FDCWD, place_path, O_PATH | O_DIRECTORY, 0);

        if (place == -ENOENT)
            continue;
        if (place < 0)
            return error_set(err, ERR_INTERNAL, place, "look at %s", place_path);
        if (check_place(folder, status, place, protected_folders[i].is_closed, place_path, path,
                        err) < 0)
            return -1;
    }
    return check_place(folder, status, registry->folder, true, "the list of images", path, err);
}

int image_check_folder(const struct image_registry *registry, int folder, const char *path,
                       struct error *err)
{
    struct stat status;
    int r;

    if (fstat(folder, &status) < 0)
        return error_set(err, ERR_INTERNAL, errno, "look at '%s'", path);
    if (check_places(registry, folder, &status, path, err) < 0)
        return -1;
    if (!image_is_ours(folder))
        return error_set(err, ERR_INVALID, 0,
                         "'%s' cannot be an image: others than root can change it", path);
    r = has_safe_parents(folder, &status);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "look at the folders above '%s'", path);
    if (r == 0)
        return error_set(err, ERR_INVALID, 0,
                         "'%s' cannot be an image: others than root can change a folder above it",
                         path);
    return 0;
}
