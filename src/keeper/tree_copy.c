#include "keeper/tree_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/memory.h"
#include "keeper/attributes.h"
#include "keeper/file_copy.h"
#include "keeper/folder_names.h"
#include "keeper/tree_walk.h"
#include "sys/sys_file.h"
#include "sys/sys_tree.h"

#define COPY_BUFFER_SIZE ((size_t) 256 << 10)
#define KEY_SIZE         40

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)

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

/* A folder of the target on the way down: what ".." must lead back to. */
struct identity {
    dev_t device;
    ino_t inode;
};

struct copy {
    int top;                /* borrowed: of the target */
    int folder;             /* owned: where we are in it */
    struct identity *above; /* owned: the folders we came through */
    size_t depth, capacity;
    int firsts; /* owned: a folder with a name for the first copy of each file that has several */
    char firsts_name[SYS_FILE_NAME_SIZE];
    struct attributes attributes;
    char *buffer; /* owned */
    struct counts counts;
};

/* --- folders -------------------------------------------------------------------------------- */

static int remember_folder(struct copy *copy)
{
    struct stat status;

    if (fstat(copy->folder, &status) < 0)
        return -errno;
    if (copy->depth == copy->capacity) {
        copy->capacity = copy->capacity ? copy->capacity * 2 : 64;
        copy->above = mem_resize(copy->above, copy->capacity * sizeof(*copy->above));
    }
    copy->above[copy->depth++] = (struct identity){status.st_dev, status.st_ino};
    return 0;
}

static int enter_folder(struct copy *copy, const struct tree_step *step)
{
    int folder, result;

    copy->counts.folders++;
    if (step->depth == 0) {
        copy->folder = sys_file_open(copy->top, ".", FOLDER_FLAGS, 0);
        return copy->folder < 0 ? copy->folder : 0;
    }
    if (mkdirat(copy->folder, step->name, 0700) < 0)
        return -errno;
    result = remember_folder(copy);
    if (result < 0)
        return result;
    folder = sys_file_open(copy->folder, step->name, FOLDER_FLAGS, 0);
    if (folder < 0)
        return folder;
    (void) fd_close(copy->folder);
    copy->folder = folder;
    return 0;
}

/* The folder above in the target, which must be the one we came from. */
static int open_above(struct copy *copy)
{
    const struct identity *wanted = &copy->above[copy->depth - 1];
    AUTO(close) int folder = sys_file_open(copy->folder, "..", FOLDER_FLAGS, 0);
    struct stat status;

    if (folder < 0)
        return folder;
    if (fstat(folder, &status) < 0)
        return -errno;
    if (status.st_dev != wanted->device || status.st_ino != wanted->inode)
        return -ESTALE;
    return TAKE_FD(folder);
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
    result = attributes_copy(&copy->attributes, step->folder, step->at, folder, at,
                             &copy->counts.attributes_left_out);
    if (result < 0)
        return result;
    return futimens(fd, times) < 0 ? -errno : 0;
}

static int leave_folder(struct copy *copy, const struct tree_step *step)
{
    AUTO(close) int above = -EBADF;
    int result;

    if (step->depth == 0)
        return 0; /* at the very end, when nothing is made in it any more */
    above = open_above(copy);
    if (above < 0)
        return above;
    result = finish_open(copy, copy->folder, copy->folder, ".", step);
    if (result < 0)
        return result;
    copy->depth--;
    (void) fd_close(copy->folder);
    copy->folder = TAKE_FD(above);
    return 0;
}

/* --- everything else ------------------------------------------------------------------------ */

/* What has no descriptor to change it by: its mode is the one it was made with. */
static int finish_by_name(struct copy *copy, const struct tree_step *step)
{
    const struct stat *status = &step->status;
    struct timespec times[] = {status->st_atim, status->st_mtim};

    if (fchownat(copy->folder, step->name, status->st_uid, status->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return utimensat(copy->folder, step->name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
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
    target =
        sys_file_open(copy->folder, step->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (target < 0)
        return target;
    result = file_copy(source, (uint64_t) status.st_size, target, copy->buffer, COPY_BUFFER_SIZE,
                       &copy->counts.bytes);
    if (result < 0)
        return result;
    copy->counts.files++;
    return finish_open(copy, target, copy->folder, step->name, step);
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
    if (symlinkat(text, copy->folder, step->name) < 0)
        return -errno;
    copy->counts.links++;
    return finish_by_name(copy, step);
}

static int copy_fifo(struct copy *copy, const struct tree_step *step)
{
    AUTO(close) int fd = -EBADF;

    if (mknodat(copy->folder, step->name, S_IFIFO | 0600, 0) < 0)
        return -errno;
    copy->counts.fifos++;
    fd = sys_file_open(copy->folder, step->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    return fd < 0 ? fd : finish_open(copy, fd, copy->folder, step->name, step);
}

static int copy_device(struct copy *copy, const struct tree_step *step)
{
    mode_t mode = step->status.st_mode;

    if (!S_ISCHR(mode) || step->status.st_rdev != makedev(0, 0)) {
        copy->counts.devices_refused++;
        return 0;
    }
    if (mknodat(copy->folder, step->name, S_IFCHR | (mode & 07777), makedev(0, 0)) < 0)
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

static int open_firsts(struct copy *copy)
{
    int result;

    if (copy->firsts >= 0)
        return 0;
    result = sys_file_temporary_name(copy->firsts_name);
    if (result < 0)
        return result;
    if (mkdirat(copy->top, copy->firsts_name, 0700) < 0)
        return -errno;
    copy->firsts = sys_file_open(copy->top, copy->firsts_name, FOLDER_FLAGS, 0);
    return copy->firsts < 0 ? copy->firsts : 0;
}

static int close_firsts(struct copy *copy)
{
    if (copy->firsts < 0)
        return 0;
    copy->firsts = fd_close(copy->firsts);
    return sys_tree_delete(copy->top, copy->firsts_name);
}

/* Make the name a further one of the first copy. 1 when done, 0 when it has to be copied. */
static int link_to_first(struct copy *copy, const struct tree_step *step, const char *key)
{
    if (linkat(copy->firsts, key, copy->folder, step->name, 0) == 0) {
        copy->counts.hard_links++;
        return 1;
    }
    if (errno == ENOENT)
        return 0;
    /* Overlay gives one whiteout as many names as there may be, and we hold one more. */
    if (errno != EMLINK)
        return -errno;
    copy->counts.hard_links_split++;
    return unlinkat(copy->firsts, key, 0) < 0 ? -errno : 0;
}

/* What was just copied is the first of its kind, if it was copied at all. */
static int keep_first(struct copy *copy, const struct tree_step *step, const char *key)
{
    if (linkat(copy->folder, step->name, copy->firsts, key, 0) == 0 || errno == ENOENT)
        return 0;
    return -errno;
}

static int copy_entry(struct copy *copy, const struct tree_step *step)
{
    const struct stat *status = &step->status;
    char key[KEY_SIZE];
    size_t kind = 0;
    int result;

    while (kind < ARRAY_COUNT(kinds) && (status->st_mode & S_IFMT) != kinds[kind].format)
        kind++;
    if (kind == ARRAY_COUNT(kinds))
        return -EINVAL;
    if (status->st_nlink < 2 || !kinds[kind].makes_name)
        return kinds[kind].copy(copy, step);
    (void) snprintf(key, sizeof(key), "%" PRIx64 "-%" PRIx64, (uint64_t) status->st_dev,
                    (uint64_t) status->st_ino);
    result = open_firsts(copy);
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

static int copy_step(struct copy *copy, const struct tree_step *step, struct error *err)
{
    int result = step->event == TREE_ENTER   ? enter_folder(copy, step)
                 : step->event == TREE_LEAVE ? leave_folder(copy, step)
                                             : copy_entry(copy, step);

    return result < 0 ? tree_step_error(step, result, "copy", err) : 0;
}

/* The top comes last: the folder of first copies changed its times. */
static int finish_top(struct copy *copy, int folder, struct error *err)
{
    struct tree_step step = {.event = TREE_LEAVE, .folder = folder, .at = ".", .path = ""};
    int result = fstat(folder, &step.status) < 0 ? -errno : 0;

    if (result == 0)
        result = finish_open(copy, copy->top, copy->top, ".", &step);
    /* A filesystem may say only now that there is no room, or that the disk failed. */
    if (result == 0 && syncfs(copy->top) < 0)
        result = -errno;
    return result < 0 ? tree_step_error(&step, result, "finish", err) : 0;
}

static int copy_all(struct copy *copy, int folder, struct error *err)
{
    AUTO(tree_walk) struct tree_walk *walk = tree_walk_new(folder);
    struct tree_step step;
    int result;

    for (;;) {
        if (tree_walk_next(walk, &step, err) < 0)
            return -1;
        if (step.event == TREE_END)
            break;
        if (copy_step(copy, &step, err) < 0)
            return -1;
    }
    result = close_firsts(copy);
    if (result < 0)
        return error_set(err, error_code_from_errno(result), result, "tidy up the target");
    return finish_top(copy, folder, err);
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

int tree_copy(int folder, int target, struct output *output, struct error *err)
{
    struct copy copy = {.top = target, .folder = -EBADF, .firsts = -EBADF};
    int result;

    if (check_empty(target, err) < 0)
        return -1;
    (void) umask(0);
    copy.buffer = mem_alloc(COPY_BUFFER_SIZE);
    attributes_init(&copy.attributes);
    result = copy_all(&copy, folder, err);
    (void) close_firsts(&copy); /* after a failure, which is the one to tell */
    if (result == 0)
        report(&copy.counts, output);
    attributes_done(&copy.attributes);
    (void) fd_close(copy.folder);
    free(copy.above);
    free(copy.buffer);
    return result;
}
