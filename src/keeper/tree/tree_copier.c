#include "keeper/tree/tree_copier.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/memory.h"
#include "keeper/tree/file_copy.h"
#include "keeper/tree/folder_names.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_tree.h"

#define COPY_BUFFER_SIZE ((size_t) 256 << 10)
#define KEY_SIZE         40

/* --- folders -------------------------------------------------------------------------------- */

/* Make room for a folder unless what is there was made for just this one. 1: it was. */
static int settle_folder(struct tree_copier *copier, const struct tree_step *step)
{
    struct stat old;

    if (!copier->since)
        return 0;
    if (fstatat(copier->where.folder, step->name, &old, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (S_ISDIR(old.st_mode) && folder_twins_match(copier->twins, old.st_ino, step->status.st_ino))
        return 1;
    return sys_tree_delete(copier->where.folder, step->name);
}

static int remember_twin(struct tree_copier *copier, const struct tree_step *step)
{
    struct stat status;

    if (!copier->twins)
        return 0;
    if (fstat(copier->where.folder, &status) < 0)
        return -errno;
    folder_twins_put(copier->twins, status.st_ino, step->status.st_ino);
    return 0;
}

static int enter_folder(struct tree_copier *copier, const struct tree_step *step)
{
    int result;

    copier->counts.folders++;
    if (step->depth == 0)
        return folder_descent_begin(&copier->where, copier->top);
    result = settle_folder(copier, step);
    if (result == 0 && mkdirat(copier->where.folder, step->name, 0700) < 0)
        result = -errno;
    if (result >= 0)
        result = folder_descent_enter(&copier->where, step->name);
    return result < 0 ? result : remember_twin(copier, step);
}

/* Owner first, which takes set-id bits away; times last, since everything else changes them. */
static int finish_open(struct tree_copier *copier, int fd, int folder, const char *at,
                       const struct tree_step *step)
{
    const struct stat *status = &step->status;
    struct timespec times[] = {status->st_atim, status->st_mtim};
    int result;

    if (fchown(fd, status->st_uid, status->st_gid) < 0 || fchmod(fd, status->st_mode & 07777) < 0)
        return -errno;
    result = copier->since ? attributes_clear(&copier->attributes, folder, at) : 0;
    if (result < 0)
        return result;
    result = attributes_copy(&copier->attributes, step->folder, step->at, folder, at,
                             &copier->counts.attributes_left_out);
    if (result == 0 && step->is_opaque)
        result = attributes_write(folder, at, TREE_OPAQUE, "y", 1);
    if (result < 0)
        return result;
    return futimens(fd, times) < 0 ? -errno : 0;
}

static bool has_changed(const struct tree_copier *copier, const struct stat *status)
{
    const struct timespec *since = copier->since, *changed = &status->st_ctim;

    return changed->tv_sec != since->tv_sec ? changed->tv_sec > since->tv_sec
                                            : changed->tv_nsec >= since->tv_nsec;
}

/* Some of the names in the copy of a folder: those that the source has not any more go. */
static int remove_some(struct tree_copier *copier, const struct tree_step *step,
                       struct folder_names *names)
{
    const char *name;

    while ((name = folder_names_next(names))) {
        struct stat status;
        int result = 0;

        if (step->depth == 0 && first_copies_is_folder(&copier->firsts, name))
            continue;
        if (fstatat(step->folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
            result = errno == ENOENT ? sys_tree_delete(copier->where.folder, name) : -errno;
        if (result < 0)
            return result;
    }
    return 0;
}

static int remove_gone(struct tree_copier *copier, const struct tree_step *step)
{
    AUTO(folder_names) struct folder_names names = FOLDER_NAMES_INIT;
    char last[NAME_MAX + 1] = "";
    int result = 0;

    if (!copier->since || !has_changed(copier, &step->status))
        return 0;
    do {
        result = folder_names_read(&names, copier->where.folder, last, TREE_WALK_NAMES_READ);
        if (result == 0 && names.count)
            (void) snprintf(last, sizeof(last), "%s", names.bytes + names.starts[names.count - 1]);
        if (result == 0)
            result = remove_some(copier, step, &names);
    } while (result == 0 && names.more);
    return result;
}

static int leave_folder(struct tree_copier *copier, const struct tree_step *step)
{
    AUTO(close) int above = -EBADF;
    int result = remove_gone(copier, step);

    if (result < 0 || step->depth == 0)
        return result; /* the top: at the very end, when nothing is made in it any more */
    above = folder_descent_open_above(&copier->where);
    if (above < 0)
        return above;
    result = finish_open(copier, copier->where.folder, copier->where.folder, ".", step);
    if (result < 0)
        return result;
    folder_descent_leave(&copier->where, TAKE_FD(above));
    return 0;
}

/* --- everything else ------------------------------------------------------------------------ */

/* What has no descriptor to change it by: its mode is the one it was made with. */
static int finish_by_name(struct tree_copier *copier, const struct tree_step *step)
{
    const struct stat *status = &step->status;
    struct timespec times[] = {status->st_atim, status->st_mtim};

    if (fchownat(copier->where.folder, step->name, status->st_uid, status->st_gid,
                 AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return utimensat(copier->where.folder, step->name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int copy_file(struct tree_copier *copier, const struct tree_step *step)
{
    AUTO(close)
    int source = sys_file_open(step->folder, step->at, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    AUTO(close) int target = -EBADF;
    struct stat status;
    int result;

    if (source < 0)
        return source;
    if (fstat(source, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode) || status.st_ino != step->status.st_ino)
        return -ESTALE;
    target = sys_file_open(copier->where.folder, step->name,
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (target < 0)
        return target;
    result = file_copy(source, (uint64_t) status.st_size, target, copier->buffer, COPY_BUFFER_SIZE,
                       &copier->counts.bytes);
    if (result < 0)
        return result;
    copier->counts.files++;
    return finish_open(copier, target, copier->where.folder, step->name, step);
}

static int copy_link(struct tree_copier *copier, const struct tree_step *step)
{
    char text[PATH_MAX + 1];
    ssize_t length = readlinkat(step->folder, step->at, text, sizeof(text));

    if (length < 0)
        return -errno;
    if (length == (ssize_t) sizeof(text))
        return -ENAMETOOLONG;
    text[length] = '\0';
    if (symlinkat(text, copier->where.folder, step->name) < 0)
        return -errno;
    copier->counts.links++;
    return finish_by_name(copier, step);
}

static int copy_fifo(struct tree_copier *copier, const struct tree_step *step)
{
    AUTO(close) int fd = -EBADF;

    if (mknodat(copier->where.folder, step->name, S_IFIFO | 0600, 0) < 0)
        return -errno;
    copier->counts.fifos++;
    fd = sys_file_open(copier->where.folder, step->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    return fd < 0 ? fd : finish_open(copier, fd, copier->where.folder, step->name, step);
}

static int copy_device(struct tree_copier *copier, const struct tree_step *step)
{
    mode_t mode = step->status.st_mode;

    if (!S_ISCHR(mode) || step->status.st_rdev != makedev(0, 0)) {
        copier->counts.devices_refused++;
        return 0;
    }
    if (mknodat(copier->where.folder, step->name, S_IFCHR | (mode & 07777), makedev(0, 0)) < 0)
        return -errno;
    copier->counts.whiteouts++;
    return finish_by_name(copier, step);
}

static int skip_socket(struct tree_copier *copier, const struct tree_step *step)
{
    (void) step;
    copier->counts.sockets_skipped++;
    return 0;
}

static const struct {
    mode_t format;
    int (*copy)(struct tree_copier *copier, const struct tree_step *step);
    bool makes_name;
} kinds[] = {
    {S_IFREG, copy_file, true},   {S_IFLNK, copy_link, true},    {S_IFIFO, copy_fifo, true},
    {S_IFCHR, copy_device, true}, {S_IFBLK, copy_device, false}, {S_IFSOCK, skip_socket, false},
};

/* --- several names of one file -------------------------------------------------------------- */

/* Make the name a further one of the first copy. 1 when done, 0 when it has to be copied. */
static int link_to_first(struct tree_copier *copier, const struct tree_step *step, const char *key)
{
    if (linkat(copier->firsts.folder, key, copier->where.folder, step->name, 0) == 0) {
        copier->counts.hard_links++;
        return 1;
    }
    if (errno == ENOENT)
        return 0;
    /* Overlay gives one whiteout as many names as there may be, and we hold one more. */
    if (errno != EMLINK)
        return -errno;
    copier->counts.hard_links_split++;
    return unlinkat(copier->firsts.folder, key, 0) < 0 ? -errno : 0;
}

/* What was just copied is the first of its kind, if it was copied at all. */
static int keep_first(struct tree_copier *copier, const struct tree_step *step, const char *key)
{
    if (linkat(copier->where.folder, step->name, copier->firsts.folder, key, 0) == 0 ||
        errno == ENOENT)
        return 0;
    return -errno;
}

/* Make room for an entry unless it is there as it is. 1: it is. What changed has all its names
 * here: a new or lost name is a change, too. */
static int settle_entry(struct tree_copier *copier, const struct tree_step *step)
{
    struct stat old;

    if (!copier->since)
        return 0;
    if (fstatat(copier->where.folder, step->name, &old, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if ((old.st_mode & S_IFMT) == (step->status.st_mode & S_IFMT) &&
        !has_changed(copier, &step->status))
        return 1;
    return sys_tree_delete(copier->where.folder, step->name);
}

static int tree_copier_entry(struct tree_copier *copier, const struct tree_step *step)
{
    const struct stat *status = &step->status;
    char key[KEY_SIZE];
    size_t kind = 0;
    int result = settle_entry(copier, step);

    if (result != 0)
        return result < 0 ? result : 0;
    while (kind < ARRAY_COUNT(kinds) && (status->st_mode & S_IFMT) != kinds[kind].format)
        kind++;
    if (kind == ARRAY_COUNT(kinds))
        return -EINVAL;
    if (status->st_nlink < 2 || !kinds[kind].makes_name)
        return kinds[kind].copy(copier, step);
    (void) snprintf(key, sizeof(key), "%" PRIx64 "-%" PRIx64, (uint64_t) status->st_dev,
                    (uint64_t) status->st_ino);
    result = first_copies_open(&copier->firsts);
    if (result == 0)
        result = link_to_first(copier, step, key);
    if (result != 0)
        return result < 0 ? result : 0;
    result = kinds[kind].copy(copier, step);
    return result < 0 ? result : keep_first(copier, step, key);
}

/* --- the whole ------------------------------------------------------------------------------ */

void tree_copier_init(struct tree_copier *copier, int target)
{
    *copier = (struct tree_copier){
        .top = target, .where = FOLDER_DESCENT_INIT, .firsts = FIRST_COPIES_INIT(target)};
    (void) umask(0);
    copier->buffer = mem_alloc(COPY_BUFFER_SIZE);
    attributes_init(&copier->attributes);
}

bool tree_copier_is_passing(const struct tree_copier *copier, int result)
{
    static const int passing[] = {-ENOENT, -ESTALE, -ENOTDIR, -ELOOP, -ENXIO, -EIO};

    for (size_t i = 0; copier->is_live && i < ARRAY_COUNT(passing); i++) {
        if (result == passing[i])
            return true;
    }
    return false;
}

int tree_copier_step(struct tree_copier *copier, const struct tree_step *step, struct error *err)
{
    int result = step->event == TREE_ENTER   ? enter_folder(copier, step)
                 : step->event == TREE_LEAVE ? leave_folder(copier, step)
                                             : tree_copier_entry(copier, step);

    /* No half of a file may stay. */
    if (step->event == TREE_ENTRY && tree_copier_is_passing(copier, result))
        result = sys_tree_delete(copier->where.folder, step->name);
    return result < 0 ? tree_step_error(step, result, "copy", err) : 0;
}

int tree_copier_end(struct tree_copier *copier)
{
    folder_descent_end(&copier->where);
    return first_copies_close(&copier->firsts);
}

int tree_copier_finish_top(struct tree_copier *copier, int folder, struct error *err)
{
    struct tree_step step = {.event = TREE_LEAVE, .folder = folder, .at = ".", .path = ""};
    int result = fstat(folder, &step.status) < 0 ? -errno : 0;

    if (result == 0)
        result = finish_open(copier, copier->top, copier->top, ".", &step);
    return result < 0 ? tree_step_error(&step, result, "finish", err) : 0;
}

void tree_copier_report(const struct tree_copier *copier, struct output *output)
{
    struct json_writer json;

    output_begin(output, &json);
#define X(name) output_add_count(&json, #name, copier->counts.name);
    TREE_COPY_COUNTS(X)
#undef X
    output_end(output, &json);
}

void tree_copier_done(struct tree_copier *copier)
{
    attributes_done(&copier->attributes);
    folder_descent_done(&copier->where);
    free(copier->buffer);
}
