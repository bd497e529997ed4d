#include "keeper/tree_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/number.h"
#include "keeper/attributes.h"
#include "keeper/file_copy.h"
#include "keeper/first_copies.h"
#include "keeper/folder_descent.h"
#include "keeper/folder_names.h"
#include "keeper/folder_twins.h"
#include "keeper/tree_walk.h"
#include "sys/sys_file.h"
#include "sys/sys_tree.h"

#define COPY_BUFFER_SIZE ((size_t) 256 << 10)
#define KEY_SIZE         40
#define SINCE_SIZE       24

#define COUNTS(X)                                                                                  \
    X(folders)                                                                                     \
    X(files)                                                                                       \
    X(links)                                                                                       \
    X(fifos)                                                                                       \
    X(whiteouts)                                                                                   \
    X(hard_links)                                                                                  \
    X(bytes)                                                                                       \
    X(sockets_skipped)                                                                             \
    X(devices_refused)                                                                             \
    X(attributes_left_out)                                                                         \
    X(hard_links_split)

struct counts {
#define X(name) uint64_t name;
    COUNTS(X)
#undef X
};

struct copy {
    int top;                     /* borrowed: of the target */
    struct folder_descent where; /* in it */
    struct first_copies firsts;
    struct attributes attributes;
    char *buffer; /* owned */
    struct counts counts;

    /* Of a copy in two passes. */
    struct folder_twins *twins;   /* borrowed, or NULL */
    bool is_live;                 /* somebody works in the source */
    const struct timespec *since; /* the second pass: what did not change since then is there */
};

/* --- folders -------------------------------------------------------------------------------- */

/* Make room for a folder unless what is there was made for just this one. 1: it was. */
static int settle_folder(struct copy *copy, const struct tree_step *step)
{
    struct stat old;

    if (!copy->since)
        return 0;
    if (fstatat(copy->where.folder, step->name, &old, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (S_ISDIR(old.st_mode) && folder_twins_match(copy->twins, old.st_ino, step->status.st_ino))
        return 1;
    return sys_tree_delete(copy->where.folder, step->name);
}

static int remember_twin(struct copy *copy, const struct tree_step *step)
{
    struct stat status;

    if (!copy->twins)
        return 0;
    if (fstat(copy->where.folder, &status) < 0)
        return -errno;
    folder_twins_put(copy->twins, status.st_ino, step->status.st_ino);
    return 0;
}

static int enter_folder(struct copy *copy, const struct tree_step *step)
{
    int result;

    copy->counts.folders++;
    if (step->depth == 0)
        return folder_descent_begin(&copy->where, copy->top);
    result = settle_folder(copy, step);
    if (result == 0 && mkdirat(copy->where.folder, step->name, 0700) < 0)
        result = -errno;
    if (result >= 0)
        result = folder_descent_enter(&copy->where, step->name);
    return result < 0 ? result : remember_twin(copy, step);
}

/* Owner first, which takes set-id bits away; times last, since everything else changes them. */
static int finish_open(struct copy *copy, int fd, int folder, const char *at,
                       const struct tree_step *step)
{
    const struct stat *status = &step->status;
    struct timespec times[] = {status->st_atim, status->st_mtim};
    int result;

    if (fchown(fd, status->st_uid, status->st_gid) < 0 || fchmod(fd, status->st_mode & 07777) < 0)
        return -errno;
    result = copy->since ? attributes_clear(&copy->attributes, folder, at) : 0;
    if (result < 0)
        return result;
    result = attributes_copy(&copy->attributes, step->folder, step->at, folder, at,
                             &copy->counts.attributes_left_out);
    if (result == 0 && step->is_opaque)
        result = attributes_write(folder, at, TREE_OPAQUE, "y", 1);
    if (result < 0)
        return result;
    return futimens(fd, times) < 0 ? -errno : 0;
}

static bool has_changed(const struct copy *copy, const struct stat *status)
{
    const struct timespec *since = copy->since, *changed = &status->st_ctim;

    return changed->tv_sec != since->tv_sec ? changed->tv_sec > since->tv_sec
                                            : changed->tv_nsec >= since->tv_nsec;
}

/* Some of the names in the copy of a folder: those that the source has not any more go. */
static int remove_some(struct copy *copy, const struct tree_step *step, struct folder_names *names)
{
    const char *name;

    while ((name = folder_names_next(names))) {
        struct stat status;
        int result = 0;

        if (step->depth == 0 && first_copies_is_folder(&copy->firsts, name))
            continue;
        if (fstatat(step->folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
            result = errno == ENOENT ? sys_tree_delete(copy->where.folder, name) : -errno;
        if (result < 0)
            return result;
    }
    return 0;
}

static int remove_gone(struct copy *copy, const struct tree_step *step)
{
    AUTO(folder_names) struct folder_names names = FOLDER_NAMES_INIT;
    char last[NAME_MAX + 1] = "";
    int result = 0;

    if (!copy->since || !has_changed(copy, &step->status))
        return 0;
    do {
        result = folder_names_read(&names, copy->where.folder, last, TREE_WALK_NAMES_READ);
        if (result == 0 && names.count)
            (void) snprintf(last, sizeof(last), "%s", names.bytes + names.starts[names.count - 1]);
        if (result == 0)
            result = remove_some(copy, step, &names);
    } while (result == 0 && names.more);
    return result;
}

static int leave_folder(struct copy *copy, const struct tree_step *step)
{
    AUTO(close) int above = -EBADF;
    int result = remove_gone(copy, step);

    if (result < 0 || step->depth == 0)
        return result; /* the top: at the very end, when nothing is made in it any more */
    above = folder_descent_open_above(&copy->where);
    if (above < 0)
        return above;
    result = finish_open(copy, copy->where.folder, copy->where.folder, ".", step);
    if (result < 0)
        return result;
    folder_descent_leave(&copy->where, TAKE_FD(above));
    return 0;
}

/* --- everything else ------------------------------------------------------------------------ */

/* What has no descriptor to change it by: its mode is the one it was made with. */
static int finish_by_name(struct copy *copy, const struct tree_step *step)
{
    const struct stat *status = &step->status;
    struct timespec times[] = {status->st_atim, status->st_mtim};

    if (fchownat(copy->where.folder, step->name, status->st_uid, status->st_gid,
                 AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return utimensat(copy->where.folder, step->name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int copy_file(struct copy *copy, const struct tree_step *step)
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
    target = sys_file_open(copy->where.folder, step->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                           0600);
    if (target < 0)
        return target;
    result = file_copy(source, (uint64_t) status.st_size, target, copy->buffer, COPY_BUFFER_SIZE,
                       &copy->counts.bytes);
    if (result < 0)
        return result;
    copy->counts.files++;
    return finish_open(copy, target, copy->where.folder, step->name, step);
}

static int copy_link(struct copy *copy, const struct tree_step *step)
{
    char text[PATH_MAX + 1];
    ssize_t length = readlinkat(step->folder, step->at, text, sizeof(text));

    if (length < 0)
        return -errno;
    if (length == (ssize_t) sizeof(text))
        return -ENAMETOOLONG;
    text[length] = '\0';
    if (symlinkat(text, copy->where.folder, step->name) < 0)
        return -errno;
    copy->counts.links++;
    return finish_by_name(copy, step);
}

static int copy_fifo(struct copy *copy, const struct tree_step *step)
{
    AUTO(close) int fd = -EBADF;

    if (mknodat(copy->where.folder, step->name, S_IFIFO | 0600, 0) < 0)
        return -errno;
    copy->counts.fifos++;
    fd = sys_file_open(copy->where.folder, step->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    return fd < 0 ? fd : finish_open(copy, fd, copy->where.folder, step->name, step);
}

static int copy_device(struct copy *copy, const struct tree_step *step)
{
    mode_t mode = step->status.st_mode;

    if (!S_ISCHR(mode) || step->status.st_rdev != makedev(0, 0)) {
        copy->counts.devices_refused++;
        return 0;
    }
    if (mknodat(copy->where.folder, step->name, S_IFCHR | (mode & 07777), makedev(0, 0)) < 0)
        return -errno;
    copy->counts.whiteouts++;
    return finish_by_name(copy, step);
}

static int skip_socket(struct copy *copy, const struct tree_step *step)
{
    (void) step;
    copy->counts.sockets_skipped++;
    return 0;
}

static const struct {
    mode_t format;
    int (*copy)(struct copy *copy, const struct tree_step *step);
    bool makes_name;
} kinds[] = {
    {S_IFREG, copy_file, true},   {S_IFLNK, copy_link, true},    {S_IFIFO, copy_fifo, true},
    {S_IFCHR, copy_device, true}, {S_IFBLK, copy_device, false}, {S_IFSOCK, skip_socket, false},
};

/* --- several names of one file -------------------------------------------------------------- */

/* Make the name a further one of the first copy. 1 when done, 0 when it has to be copied. */
static int link_to_first(struct copy *copy, const struct tree_step *step, const char *key)
{
    if (linkat(copy->firsts.folder, key, copy->where.folder, step->name, 0) == 0) {
        copy->counts.hard_links++;
        return 1;
    }
    if (errno == ENOENT)
        return 0;
    /* Overlay gives one whiteout as many names as there may be, and we hold one more. */
    if (errno != EMLINK)
        return -errno;
    copy->counts.hard_links_split++;
    return unlinkat(copy->firsts.folder, key, 0) < 0 ? -errno : 0;
}

/* What was just copied is the first of its kind, if it was copied at all. */
static int keep_first(struct copy *copy, const struct tree_step *step, const char *key)
{
    if (linkat(copy->where.folder, step->name, copy->firsts.folder, key, 0) == 0 || errno == ENOENT)
        return 0;
    return -errno;
}

/* Make room for an entry unless it is there as it is. 1: it is. What changed has all its names
 * here: a new or lost name is a change, too. */
static int settle_entry(struct copy *copy, const struct tree_step *step)
{
    struct stat old;

    if (!copy->since)
        return 0;
    if (fstatat(copy->where.folder, step->name, &old, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if ((old.st_mode & S_IFMT) == (step->status.st_mode & S_IFMT) &&
        !has_changed(copy, &step->status))
        return 1;
    return sys_tree_delete(copy->where.folder, step->name);
}

static int copy_entry(struct copy *copy, const struct tree_step *step)
{
    const struct stat *status = &step->status;
    char key[KEY_SIZE];
    size_t kind = 0;
    int result = settle_entry(copy, step);

    if (result != 0)
        return result < 0 ? result : 0;
    while (kind < ARRAY_COUNT(kinds) && (status->st_mode & S_IFMT) != kinds[kind].format)
        kind++;
    if (kind == ARRAY_COUNT(kinds))
        return -EINVAL;
    if (status->st_nlink < 2 || !kinds[kind].makes_name)
        return kinds[kind].copy(copy, step);
    (void) snprintf(key, sizeof(key), "%" PRIx64 "-%" PRIx64, (uint64_t) status->st_dev,
                    (uint64_t) status->st_ino);
    result = first_copies_open(&copy->firsts);
    if (result == 0)
        result = link_to_first(copy, step, key);
    if (result != 0)
        return result < 0 ? result : 0;
    result = kinds[kind].copy(copy, step);
    return result < 0 ? result : keep_first(copy, step, key);
}

/* --- the whole ------------------------------------------------------------------------------ */

static int check_empty(int target, struct error *err)
{
    AUTO(folder_names) struct folder_names names = FOLDER_NAMES_INIT;
    int result = folder_names_read(&names, target, "", FOLDER_NAMES_MIN);

    if (result < 0)
        return error_set(err, error_code_from_errno(result), result, "read the target");
    if (names.count > 0)
        return error_set(err, ERR_CONFLICT, 0, "the target is not empty");
    return 0;
}

/* What can go wrong because somebody works in the source: the next pass does it again. */
static bool is_passing(const struct copy *copy, int result)
{
    static const int passing[] = {-ENOENT, -ESTALE, -ENOTDIR, -ELOOP, -ENXIO, -EIO};

    for (size_t i = 0; copy->is_live && i < ARRAY_COUNT(passing); i++) {
        if (result == passing[i])
            return true;
    }
    return false;
}

static int copy_step(struct copy *copy, const struct tree_step *step, struct error *err)
{
    int result = step->event == TREE_ENTER   ? enter_folder(copy, step)
                 : step->event == TREE_LEAVE ? leave_folder(copy, step)
                                             : copy_entry(copy, step);

    /* No half of a file may stay. */
    if (step->event == TREE_ENTRY && is_passing(copy, result))
        result = sys_tree_delete(copy->where.folder, step->name);
    return result < 0 ? tree_step_error(step, result, "copy", err) : 0;
}

/* The top comes last: the folder of first copies changed its times. */
static int finish_top(struct copy *copy, int folder, struct error *err)
{
    struct tree_step step = {.event = TREE_LEAVE, .folder = folder, .at = ".", .path = ""};
    int result = fstat(folder, &step.status) < 0 ? -errno : 0;

    if (result == 0)
        result = finish_open(copy, copy->top, copy->top, ".", &step);
    return result < 0 ? tree_step_error(&step, result, "finish", err) : 0;
}

/* A filesystem may say only now that there is no room, or that the disk failed. */
static int sync_target(const struct copy *copy, struct error *err)
{
    int result = syncfs(copy->top) < 0 ? -errno : 0;

    return result < 0 ? error_set(err, error_code_from_errno(result), result, "sync the target")
                      : 0;
}

static int copy_steps(struct copy *copy, const struct tree *tree, struct error *err)
{
    AUTO(tree_walk) struct tree_walk *walk = tree_walk_new_tree(tree);
    struct tree_step step = {.event = TREE_LEAVE};

    if (copy->is_live)
        tree_walk_forgive(walk);
    while (step.event != TREE_END) {
        if (tree_walk_next(walk, &step, err) < 0 ||
            (step.event != TREE_END && copy_step(copy, &step, err) < 0))
            return -1;
    }
    return 0;
}

/* Once through the tree. */
static int copy_pass(struct copy *copy, const struct tree *tree, struct error *err)
{
    struct error own = ERROR_INIT;
    int result = copy_steps(copy, tree, &own);
    int closed = first_copies_close(&copy->firsts);

    folder_descent_end(&copy->where);
    if (result < 0 && !is_passing(copy, -own.system)) {
        *err = own;
        return -1;
    }
    if (closed < 0)
        return error_set(err, error_code_from_errno(closed), closed, "tidy up the target");
    return copy->is_live ? 0 : finish_top(copy, tree->layers[0], err);
}

static void report(const struct counts *counts, struct output *output)
{
    struct json_writer json;

    output_begin(output, &json);
#define X(name) output_add_count(&json, #name, counts->name);
    COUNTS(X)
#undef X
    output_end(output, &json);
}

static void copy_init(struct copy *copy, int target)
{
    *copy = (struct copy){
        .top = target, .where = FOLDER_DESCENT_INIT, .firsts = FIRST_COPIES_INIT(target)};
    (void) umask(0);
    copy->buffer = mem_alloc(COPY_BUFFER_SIZE);
    attributes_init(&copy->attributes);
}

static void copy_done(struct copy *copy)
{
    attributes_done(&copy->attributes);
    folder_descent_done(&copy->where);
    free(copy->buffer);
}

AUTO_DEFINE(copy, struct copy, copy_done);

int tree_copy(const struct tree *tree, int target, struct output *output, struct error *err)
{
    AUTO(copy) struct copy copy;

    copy_init(&copy, target);
    if (check_empty(target, err) < 0 || copy_pass(&copy, tree, err) < 0 ||
        sync_target(&copy, err) < 0)
        return -1;
    report(&copy.counts, output);
    return 0;
}

/* --- while somebody works in it -------------------------------------------------------------- */

/* The times of files in memory do not change when they are written through a mapping. */
static bool tells_changes(int folder)
{
    struct statfs filesystem;

    return fstatfs(folder, &filesystem) == 0 && filesystem.f_type != TMPFS_MAGIC;
}

static int read_since(int input, struct timespec *ret_since, struct error *err)
{
    char line[SINCE_SIZE];
    size_t length = 0;
    uint64_t since;

    while (length < sizeof(line) && sys_file_read_full(input, line + length, 1) == 1 &&
           line[length] != '\n')
        length++;
    if (length == sizeof(line) ||
        number_parse_digits(line, length, INT64_MAX / 1000000, &since) < 0)
        return error_set(err, ERR_INVALID, 0, "the input does not begin with a time");
    *ret_since = (struct timespec){.tv_sec = (time_t) (since / 1000),
                                   .tv_nsec = (long) (since % 1000) * 1000000};
    return 0;
}

static int say_ready(struct output *output, struct error *err)
{
    struct json_writer json;
    int result;

    output_begin(output, &json);
    json_add_boolean(&json, "ready", true);
    output_end(output, &json);
    result = output_flush(output);
    return result < 0 ? error_set(err, ERR_CANCELLED, result, "write the report") : 0;
}

/* Until the input ends. */
static int wait_for_end(int input, struct error *err)
{
    char byte;
    ssize_t got = sys_file_read_full(input, &byte, 1);

    if (got == 0)
        return 0;
    return error_set(err, ERR_INVALID, got < 0 ? (int) got : 0, "wait for the end of the input");
}

int tree_copy_live(int folder, int target, int input, struct output *output, struct error *err)
{
    AUTO(folder_twins) struct folder_twins twins = FOLDER_TWINS_INIT;
    AUTO(copy) struct copy copy;
    struct timespec since;

    copy_init(&copy, target);
    copy.twins = &twins;
    if (read_since(input, &since, err) < 0 || check_empty(target, err) < 0)
        return -1;
    /* From here on a write through a mapping is a fault, which changes the time. */
    if (tells_changes(folder)) {
        copy.is_live = true;
        if (sync_target(&copy, err) < 0 || copy_pass(&copy, TREE_OF(folder), err) < 0)
            return -1;
        copy.is_live = false;
    }
    if (say_ready(output, err) < 0 || wait_for_end(input, err) < 0)
        return -1;
    copy.since = &since;
    if (copy_pass(&copy, TREE_OF(folder), err) < 0)
        return -1;
    report(&copy.counts, output);
    return 0;
}
