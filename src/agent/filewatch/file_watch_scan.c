#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/filewatch/file_watch_tree_internal.h"
#include "base/auto.h"
#include "base/text.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_open_beneath.h"

/* What the loop may be kept from its other work at a time. */
#define SLICE_NS ((uint64_t) 500 * 1000)

/* How often a folder is looked for where it should be. */
#define TRIES_MAX 3

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

#define NOTHING WATCH_CHANGE_COUNT

/* What reading a folder tells, and what it does about the folders in it. */
static const struct scan_rule {
    enum watch_change file;      /* told of everything but folders */
    enum watch_change unknown;   /* told of folders that were not known */
    enum scan_mode unknown_mode; /* how those are read */
    bool descends;               /* known folders are read as well, in the same way */
    bool sweeps;                 /* known folders that are not there are gone */
} rules[] = {
    [SCAN_CHECK] = {NOTHING, NOTHING, SCAN_QUIET, false, false}, /* reads nothing */
    [SCAN_QUIET] = {NOTHING, NOTHING, SCAN_QUIET, false, false},
    [SCAN_NEW] = {WATCH_CREATE, WATCH_CREATE, SCAN_NEW, false, false},
    [SCAN_TOUCHED] = {WATCH_MODIFY, WATCH_CREATE, SCAN_NEW, true, false},
    [SCAN_RESYNC] = {NOTHING, WATCH_CREATE, SCAN_NEW, true, true},
};

/* --- opening --------------------------------------------------------------------------------- */

int scan_open_path(const struct watch_tree *tree, const char *path)
{
    const struct watch_place *place = &tree->options.place;
    AUTO(close) int base = sys_file_open(AT_FDCWD, place->base, O_PATH | O_DIRECTORY, 0);
    AUTO(text) struct text whole = TEXT_INIT((size_t) 2 * PATH_MAX);

    if (base < 0)
        return base;
    text_format(&whole, "%s%s%s", place->relative, place->relative[0] && path[0] ? "/" : "", path);
    return sys_open_beneath(base, whole.length ? whole.data : ".", FOLDER_FLAGS, 0);
}

int scan_bind(struct folder *folder, int fd)
{
    struct watch_tree *tree = folder->tree;
    struct stat status;
    int r;

    if (fstat(fd, &status) < 0)
        return -errno;
    if (folder->inode && (folder->inode != status.st_ino || folder->device != status.st_dev))
        return -ESTALE;
    r = watch_hub_watch(&tree->forest->hub, &folder->watch, fd, tree->options.attributes);
    if (r < 0)
        return r;
    folder->inode = status.st_ino;
    folder->device = status.st_dev;
    return 0;
}

static int open_known(struct folder *folder)
{
    char buffer[PATH_MAX];
    const char *path = folder_path(folder, NULL, buffer);
    AUTO(close) int fd = path ? scan_open_path(folder->tree, path) : -ESTALE;
    int r = fd < 0 ? fd : scan_bind(folder, fd);

    return r < 0 ? r : TAKE_FD(fd);
}

/* A folder that was not looked at yet is an entry of its parent, wherever that is by now. */
static int open_unknown(struct folder *folder, int parent)
{
    AUTO(close) int fd = sys_file_open(parent, folder->name, FOLDER_FLAGS, 0);
    int r = fd < 0 ? fd : scan_bind(folder, fd);

    return r < 0 ? r : TAKE_FD(fd);
}

static int watch_scan_open_folder(struct folder *folder)
{
    AUTO(close) int parent = -EBADF;

    if (folder->inode || folder == folder->tree->top)
        return open_known(folder);
    if (!folder->parent || !folder->parent->inode)
        return -ESTALE;
    parent = open_known(folder->parent);
    return parent < 0 ? parent : open_unknown(folder, parent);
}

/* --- failing --------------------------------------------------------------------------------- */

static bool watch_scan_is_lost(int error)
{
    return error == -ENOENT || error == -ESTALE || error == -ENOTDIR || error == -ELOOP ||
           error == -EXDEV || error == -EAGAIN;
}

static void watch_scan_give_up(struct folder *folder)
{
    if (folder == folder->tree->top) {
        tree_end(folder->tree, "The watched folder was moved or deleted");
        folder_work_done(folder);
    } else {
        folder_drop(folder);
    }
}

/* What is found in its place, when all events are told, is what it is. */
static void forget_identity(struct folder *folder)
{
    folder_drop_children(folder);
    watch_hub_unwatch(&folder->tree->forest->hub, &folder->watch);
    folder->inode = 0;
    folder->work->mode = SCAN_NEW;
}

static void lose(struct folder *folder, int error)
{
    struct watch_forest *forest = folder->tree->forest;
    struct folder_work *work = folder->work;
    bool is_attached = folder_top(folder) == folder->tree->top;

    if (is_attached && ++work->tries > TRIES_MAX) {
        watch_scan_give_up(folder);
        return;
    }
    if (is_attached && error == -ESTALE && work->tries > 1 && folder->inode &&
        folder != folder->tree->top)
        forget_identity(folder);
    work->due = watch_hub_end(&forest->hub);
    list_remove(&work->link);
    list_append(&forest->lost, &work->link);
    forest_wake(forest);
}

static void watch_scan_fail(struct folder *folder, int error)
{
    if (watch_scan_is_lost(error)) {
        lose(folder, error);
        return;
    }
    /* A folder we may not read is not watched, as a file in it could not be read either. */
    if (error != -EACCES && error != -EPERM) {
        char buffer[PATH_MAX];
        const char *path = folder_path(folder, NULL, buffer);

        tree_problem(folder->tree, error, path ? path : folder->name);
    }
    folder_work_done(folder);
}

/* --- reading --------------------------------------------------------------------------------- */

static bool is_directory(int fd, const struct dirent *entry)
{
    struct stat status;

    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

static void tell_entry(struct folder *folder, const char *name, const char *path,
                       enum watch_change change, bool is_folder)
{
    if (change == NOTHING || (change == WATCH_CREATE && seen_has(folder, name)))
        return;
    if (change == WATCH_CREATE)
        seen_add(folder, name);
    tree_change(folder->tree, change, path, is_folder);
}

static void meet_folder(struct folder *parent, const char *name, int fd, enum scan_mode mode)
{
    struct folder *folder = folder_new(parent->tree, parent, name);
    AUTO(close) int opened = -EBADF;

    if (!folder) {
        tree_problem(parent->tree, -ENOMEM, name);
        return;
    }
    opened = open_unknown(folder, fd); /* watched from now on, read later */
    folder_queue(folder, mode);
    if (opened < 0)
        watch_scan_fail(folder, opened);
}

static void watch_scan_visit(struct folder *folder, const struct dirent *entry, int fd)
{
    const struct scan_rule *rule = &rules[folder->work->mode];
    const struct watch_tree *tree = folder->tree;
    const char *name = entry->d_name;
    char buffer[PATH_MAX];
    const char *path = folder_path(folder, name, buffer);
    bool is_folder = is_directory(fd, entry);
    struct folder *known = is_folder ? folder_find(folder, name) : NULL;

    if (!path) { /* too long to be named, or the folder left the tree while we read */
        if (folder_top(folder) != tree->top) {
            scan_abandon(folder);
            lose(folder, -ESTALE);
        }
        return;
    }
    if (!known)
        tell_entry(folder, name, path, is_folder ? rule->unknown : rule->file, is_folder);
    if (known) {
        known->generation = tree->generation;
        if (rule->descends && (!known->work || known->work->mode == SCAN_CHECK))
            folder_queue(known, folder->work->mode);
    } else if (is_folder && !tree->options.events->is_excluded(tree->options.owner, path)) {
        meet_folder(folder, name, fd, rule->unknown_mode);
    }
}

static void watch_scan_sweep(struct folder *folder)
{
    LIST_EACH (&folder->children, at) {
        struct folder *child = CONTAINER_OF(at, struct folder, siblings);
        char buffer[PATH_MAX];
        const char *path = folder_path(child, NULL, buffer);

        if (child->generation == folder->tree->generation)
            continue;
        if (path)
            tree_change(folder->tree, WATCH_DELETE, path, true);
        folder_drop(child);
    }
}

void scan_abandon(struct folder *folder)
{
    struct watch_forest *forest = folder->tree->forest;

    if (forest->reading_folder != folder)
        return;
    (void) closedir(forest->reading);
    forest->reading = NULL;
    forest->reading_folder = NULL;
}

static void watch_scan_finish(struct folder *folder)
{
    if (rules[folder->work->mode].sweeps)
        watch_scan_sweep(folder);
    folder_work_done(folder);
}

static void read_entry(struct watch_forest *forest)
{
    struct folder *folder = forest->reading_folder;
    const struct dirent *entry = readdir(forest->reading);

    if (!entry)
        watch_scan_finish(folder);
    else if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
             !sys_file_is_temporary_name(entry->d_name))
        watch_scan_visit(folder, entry, dirfd(forest->reading));
}

static void watch_scan_begin(struct folder *folder)
{
    struct watch_forest *forest = folder->tree->forest;
    AUTO(close) int fd = watch_scan_open_folder(folder);

    if (fd < 0) {
        watch_scan_fail(folder, fd);
        return;
    }
    if (folder->work->mode == SCAN_CHECK || !folder->tree->options.recursive) {
        folder_work_done(folder);
        return;
    }
    forest->reading = fdopendir(fd);
    if (!forest->reading) {
        watch_scan_fail(folder, -errno);
        return;
    }
    (void) TAKE_FD(fd);
    forest->reading_folder = folder;
}

bool scan_slice(struct watch_forest *forest)
{
    uint64_t end = uv_hrtime() + SLICE_NS;

    do {
        struct list *first = list_first(&forest->queue);

        if (forest->reading)
            read_entry(forest);
        else if (first)
            watch_scan_begin(CONTAINER_OF(first, struct folder_work, link)->folder);
        else
            return false;
    } while (uv_hrtime() < end);
    return true;
}

void scan_settle(struct watch_forest *forest)
{
    LIST_EACH (&forest->lost, at) {
        struct folder_work *work = CONTAINER_OF(at, struct folder_work, link);

        if (work->due > watch_hub_position(&forest->hub) ||
            folder_top(work->folder) != work->folder->tree->top)
            continue;
        list_remove(at);
        list_append(&forest->queue, at);
        forest_wake(forest);
    }
}
