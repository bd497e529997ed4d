#include "launcher/image/folder_rules.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "sys/file/sys_file.h"

/* Deeper paths are shown to nobody. */
#define PARENTS_MAX 256

/* Where the host keeps what is not for strangers. A folder may contain none of these; those that
 * are closed may contain no folder either. */
static const struct {
    const char *path;
    bool is_closed;
    bool by_hand; /* refused on root's own command line, too */
} protected_folders[] = {
    {"/", false, false},   {"/etc", true, false}, {"/root", false, false}, {"/home", false, false},
    {"/proc", true, true}, {"/sys", true, true},  {"/dev", true, true},
};

/* What is being checked. */
struct candidate {
    int fd;
    struct stat status;
    const char *path;
    const char *noun;
};

bool folder_is_ours(int fd)
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

/* The candidate against a place of the host. */
static int check_place(const struct candidate *candidate, int place, bool is_closed,
                       const char *place_text, struct error *err)
{
    struct stat status;
    int r = fstat(place, &status) < 0 ? -errno : 0;

    if (r == 0)
        r = lies_within(place, &candidate->status);
    if (r > 0)
        return error_set(err, ERR_INVALID, 0, "'%s' cannot be %s: %s is in it", candidate->path,
                         candidate->noun, place_text);
    if (r == 0 && is_closed)
        r = lies_within(candidate->fd, &status);
    if (r > 0)
        return error_set(err, ERR_INVALID, 0, "'%s' cannot be %s: it lies in %s", candidate->path,
                         candidate->noun, place_text);
    return r < 0
               ? error_set(err, ERR_INTERNAL, r, "compare '%s' and %s", candidate->path, place_text)
               : 0;
}

static int check_protected(enum folder_rules rules, const struct candidate *candidate,
                           struct error *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(protected_folders); i++) {
        const char *path = protected_folders[i].path;
        AUTO(close) int place = -EBADF;

        if (rules == FOLDER_BY_HAND && !protected_folders[i].by_hand)
            continue;
        place = sys_file_open(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
        if (place == -ENOENT)
            continue;
        if (place < 0)
            return error_set(err, ERR_INTERNAL, place, "look at %s", path);
        if (check_place(candidate, place, protected_folders[i].is_closed, path, err) < 0)
            return -1;
    }
    return 0;
}

/* A name must still mean the same folder when somebody uses it. */
static int check_owners(const struct candidate *candidate, struct error *err)
{
    int r;

    if (!folder_is_ours(candidate->fd))
        return error_set(err, ERR_INVALID, 0, "'%s' cannot be %s: others than root can change it",
                         candidate->path, candidate->noun);
    r = has_safe_parents(candidate->fd, &candidate->status);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "look at the folders above '%s'", candidate->path);
    if (r == 0)
        return error_set(err, ERR_INVALID, 0,
                         "'%s' cannot be %s: others than root can change a folder above it",
                         candidate->path, candidate->noun);
    return 0;
}

int folder_check(enum folder_rules rules, int folder, const char *path, const char *noun,
                 const struct folder_place *own, size_t own_count, struct error *err)
{
    struct candidate candidate = {.fd = folder, .path = path, .noun = noun};

    if (fstat(folder, &candidate.status) < 0)
        return error_set(err, ERR_INTERNAL, errno, "look at '%s'", path);
    if (check_protected(rules, &candidate, err) < 0)
        return -1;
    for (size_t i = 0; i < own_count; i++) {
        if (own[i].fd >= 0 && check_place(&candidate, own[i].fd, true, own[i].text, err) < 0)
            return -1;
    }
    return rules == FOLDER_REGISTERED ? check_owners(&candidate, err) : 0;
}
