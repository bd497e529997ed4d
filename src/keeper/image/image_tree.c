#include "keeper/image/image_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/format/tar_reader.h"
#include "base/memory.h"
#include "base/path.h"
#include "json/name_escape.h"
#include "keeper/tree/attributes.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_tree.h"

#define WHITEOUT  ".wh."
#define AUFS      ".wh..wh."
#define OPAQUE    ".wh..wh..opq"
#define OWNER_MAX 65535
#define NOBODY    65534
#define SHOWN     160 /* of a path in a message */

/* The disk is looked at once in so many bytes. An entry weighs something even when it is empty. */
#define LOOK_EVERY   ((uint64_t) 16 << 20)
#define ENTRY_WEIGHT ((uint64_t) 4096)

struct image_tree {
    int folder; /* borrowed */
    const struct image_limits *limits;
    struct image_counts *counts;
    struct tar_reader reader;
    char path[TAR_PATH_MAX + 1]; /* of the entry, plain: "etc/passwd", "" for the top */
    int parent;                  /* owned: the folder of the file that is written */
    int file;                    /* owned: the file that is written */
    struct tar_entry entry;      /* of that file; its texts are not kept */
    struct tar_attributes attributes;
    uint64_t weight; /* of all that was written */
    uint64_t look;   /* when that is so much */
};

/* --- failures ------------------------------------------------------------------------------- */

static int refuse(const struct image_tree *tree, enum err_code code, int system, const char *why,
                  struct error *err)
{
    AUTO(text) struct text shown = TEXT_INIT(SHOWN * NAME_ESCAPE_FACTOR);
    size_t length = strlen(tree->reader.entry_path);
    size_t hidden = length > SHOWN ? length - SHOWN : 0;

    name_escape(&shown, tree->reader.entry_path + hidden, length - hidden);
    return error_set(err, code, system, "'%s%s': %s", hidden ? "..." : "", text_string(&shown),
                     why);
}

static int fail(const struct image_tree *tree, int system, struct error *err)
{
    if (system == -E2BIG)
        return refuse(tree, ERR_TOO_LARGE, 0, "the image has too many files", err);
    if (system == -ELOOP || system == -ENOTDIR)
        return refuse(tree, ERR_INVALID, 0, "its way leads through something that is no folder",
                      err);
    return refuse(tree, error_code_from_errno(system), system, "cannot be unpacked", err);
}

/* --- places --------------------------------------------------------------------------------- */

static int open_folder(int at, const char *name)
{
    return sys_file_open(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

/* A folder that is there, or is made in place of what is there and counted in `made`. Without an
 * entry of its own it is root's, like Docker makes it. */
static int take_folder(int at, const char *name, bool make, uint64_t *made)
{
    struct stat status;
    bool was_there = fstatat(at, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
    bool was_gone = was_there && S_ISCHR(status.st_mode);
    int folder;

    if (make && (!was_there || was_gone)) {
        if (was_gone && unlinkat(at, name, 0) < 0)
            return -errno;
        if (mkdirat(at, name, 0755) < 0)
            return -errno;
        (*made)++;
    }
    folder = open_folder(at, name);
    /* What was there below is gone, and this is something new. */
    if (folder >= 0 && was_gone) {
        int r = attributes_write(at, name, "user.overlay.opaque", "y", 1);

        if (r < 0) {
            (void) fd_close(folder);
            return r;
        }
    }
    return folder;
}

/* The folder that a plain path is in, the caller's, and the name there. */
static int open_parent(const struct image_tree *tree, const char *path, bool make,
                       const char **ret_name)
{
    AUTO(close) int here = open_folder(tree->folder, ".");
    const char *slash;

    while (here >= 0 && (slash = strchr(path, '/'))) {
        char name[NAME_MAX + 1];
        int next;

        memcpy(name, path, (size_t) (slash - path));
        name[slash - path] = '\0';
        next = take_folder(here, name, make, &tree->counts->entries);
        (void) fd_close(here);
        here = next;
        if (here >= 0 && tree->counts->entries > tree->limits->entries)
            return -E2BIG;
        path = slash + 1;
    }
    *ret_name = path;
    return here < 0 ? here : TAKE_FD(here);
}

/* --- owners, attributes, times -------------------------------------------------------------- */

static uid_t owner(uid_t id)
{
    return id > OWNER_MAX ? NOBODY : id;
}

static int write_attributes(int parent, const char *name, const struct tar_attributes *attributes)
{
    struct tar_attribute attribute;
    size_t at = 0;

    while (tar_attributes_next(attributes, &at, &attribute)) {
        int r;

        if (attribute.is_capability)
            continue; /* without effect in a sandbox */
        r = attributes_write(parent, name, attribute.name, attribute.value, attribute.length);
        if (r == -ENOSPC || r == -EDQUOT)
            return r;
    }
    return 0;
}

static int dress_open(int fd, int parent, const char *name, const struct tar_entry *entry,
                      const struct tar_attributes *attributes)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, entry->mtime};
    int r;

    if (fchown(fd, owner(entry->uid), owner(entry->gid)) < 0 || fchmod(fd, entry->mode) < 0)
        return -errno;
    r = write_attributes(parent, name, attributes);
    return r < 0 || futimens(fd, times) == 0 ? r : -errno;
}

static int dress_named(int parent, const char *name, const struct tar_entry *entry)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, entry->mtime};

    if (fchownat(parent, name, owner(entry->uid), owner(entry->gid), AT_SYMLINK_NOFOLLOW) < 0 ||
        utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return 0;
}

/* --- entries -------------------------------------------------------------------------------- */

static int clear_way(int parent, const char *name)
{
    int r = sys_tree_delete(parent, name);

    return r == -ENOENT ? 0 : r;
}

static int make_folder(const struct image_tree *tree, int parent, const char *name,
                       const struct tar_entry *entry)
{
    AUTO(close) int folder = -EBADF;
    struct stat status;
    uint64_t made = 0; /* this one is counted as an entry */
    int r;

    if (*name && fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        !S_ISDIR(status.st_mode) && !S_ISCHR(status.st_mode)) {
        r = clear_way(parent, name);
        if (r < 0)
            return r;
    }
    folder = *name ? take_folder(parent, name, true, &made) : open_folder(tree->folder, ".");
    if (folder < 0)
        return folder;
    return dress_open(folder, parent, *name ? name : ".", entry, entry->attributes);
}

static int make_link(int parent, const char *name, const struct tar_entry *entry)
{
    int r = clear_way(parent, name);

    if (r < 0)
        return r;
    if (symlinkat(entry->link, parent, name) < 0)
        return -errno;
    return dress_named(parent, name, entry);
}

static int make_pipe(int parent, const char *name, const struct tar_entry *entry)
{
    int r = clear_way(parent, name);

    if (r < 0)
        return r;
    if (mknodat(parent, name, S_IFIFO | (entry->mode & 0777), 0) < 0)
        return -errno;
    return dress_named(parent, name, entry);
}

static int make_hard_link(const struct image_tree *tree, int parent, const char *name,
                          const struct tar_entry *entry)
{
    char target[TAR_PATH_MAX + 1];
    int r = path_relative(entry->link, target);
    const char *target_name = "";
    AUTO(close) int other = r < 0 ? r : open_parent(tree, target, false, &target_name);
    struct stat status, here;

    if (other < 0)
        return other;
    if (!*target_name || fstatat(other, target_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return *target_name ? -errno : -EPERM;
    if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode))
        return -EPERM;
    if (fstatat(parent, name, &here, AT_SYMLINK_NOFOLLOW) == 0 && here.st_ino == status.st_ino)
        return 0; /* they are one already */
    r = clear_way(parent, name);
    if (r < 0)
        return r;
    return linkat(other, target_name, parent, name, 0) < 0 ? -errno : 0;
}

/* Takes `parent`. */
static int begin_file(struct image_tree *tree, int parent, const char *name,
                      const struct tar_entry *entry)
{
    int r = clear_way(parent, name);

    tree->parent = parent;
    tree->entry = *entry;
    tar_attributes_copy(&tree->attributes, entry->attributes);
    if (r == 0)
        r = tree->file =
            sys_file_open(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    return r < 0 ? r : 0;
}

/* --- marks ---------------------------------------------------------------------------------- */

/* Something else of that name in this layer stays; a folder then hides what lies below it. */
static int mark_gone(int parent, const char *name)
{
    struct stat status;

    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return -EINVAL;
    if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
        return S_ISDIR(status.st_mode)
                   ? attributes_write(parent, name, "user.overlay.opaque", "y", 1)
                   : 0;
    return mknodat(parent, name, S_IFCHR, 0) < 0 ? -errno : 0;
}

static int take_mark(int parent, const char *name)
{
    if (strcmp(name, OPAQUE) == 0)
        return attributes_write(parent, ".", "user.overlay.opaque", "y", 1);
    if (strncmp(name, AUFS, strlen(AUFS)) == 0)
        return 0;
    return mark_gone(parent, name + strlen(WHITEOUT));
}

/* --- the reader's events -------------------------------------------------------------------- */

static int take_entry(struct image_tree *tree, const struct tar_entry *entry)
{
    const char *name;
    AUTO(close) int parent = open_parent(tree, tree->path, true, &name);

    if (parent < 0)
        return parent;
    if (strncmp(name, WHITEOUT, strlen(WHITEOUT)) == 0)
        return take_mark(parent, name);
    if (!*name && entry->type != TAR_FOLDER)
        return -ENOTDIR;
    switch (entry->type) {
    case TAR_FOLDER:
        return make_folder(tree, parent, name, entry);
    case TAR_LINK:
        return make_link(parent, name, entry);
    case TAR_HARD_LINK:
        return make_hard_link(tree, parent, name, entry);
    case TAR_PIPE:
        return make_pipe(parent, name, entry);
    case TAR_FILE:
        return begin_file(tree, TAKE_FD(parent), name, entry);
    default:
        tree->counts->devices++;
        return 0;
    }
}

/* Whether enough would be left. */
static bool has_space(struct image_tree *tree, uint64_t added)
{
    struct statvfs status;

    tree->weight += added;
    if (tree->weight < tree->look)
        return true;
    tree->look = tree->weight + LOOK_EVERY;
    return fstatvfs(tree->folder, &status) < 0 ||
           (uint64_t) status.f_bavail * status.f_frsize >= tree->limits->free;
}

static int refuse_full(const struct image_tree *tree, struct error *err)
{
    return refuse(tree, ERR_NO_SPACE, ENOSPC, "the disk would become too full", err);
}

static int on_entry(void *owner_of_it, const struct tar_entry *entry, struct error *err)
{
    struct image_tree *tree = owner_of_it;
    int r = path_relative(entry->path, tree->path);

    if (r == -EXDEV)
        return refuse(tree, ERR_INVALID, 0, "its path leads out of the image", err);
    if (++tree->counts->entries > tree->limits->entries)
        return fail(tree, -E2BIG, err);
    if (entry->size > tree->limits->bytes)
        return refuse(tree, ERR_TOO_LARGE, 0, "the image is too large", err);
    if (!has_space(tree, ENTRY_WEIGHT + entry->attributes->bytes.length))
        return refuse_full(tree, err);
    if (r == 0)
        r = take_entry(tree, entry);
    return r < 0 ? fail(tree, r, err) : 0;
}

static int on_bytes(void *owner_of_it, const char *bytes, size_t length, struct error *err)
{
    struct image_tree *tree = owner_of_it;
    int r;

    tree->counts->bytes += length;
    if (tree->counts->bytes > tree->limits->bytes)
        return refuse(tree, ERR_TOO_LARGE, 0, "the image is too large", err);
    if (!has_space(tree, length))
        return refuse_full(tree, err);
    if (tree->file < 0)
        return 0; /* of a mark */
    r = sys_file_write_full(tree->file, bytes, length);
    return r < 0 ? fail(tree, r, err) : 0;
}

static int on_entry_end(void *owner_of_it, struct error *err)
{
    struct image_tree *tree = owner_of_it;
    const char *slash = strrchr(tree->path, '/');
    int r = 0;

    if (tree->file >= 0)
        r = dress_open(tree->file, tree->parent, slash ? slash + 1 : tree->path, &tree->entry,
                       &tree->attributes);
    tree->file = fd_close(tree->file);
    tree->parent = fd_close(tree->parent);
    return r < 0 ? fail(tree, r, err) : 0;
}

static const struct tar_reader_events events = {
    .on_entry = on_entry,
    .on_bytes = on_bytes,
    .on_entry_end = on_entry_end,
};

struct image_tree *image_tree_new(int folder, const struct image_limits *limits,
                                  struct image_counts *counts)
{
    struct image_tree *tree = mem_alloc(sizeof(*tree));

    tree->folder = folder;
    tree->limits = limits;
    tree->counts = counts;
    tree->parent = tree->file = -EBADF;
    tree->attributes = (struct tar_attributes) TAR_ATTRIBUTES_INIT(TAR_EXTENDED_MAX);
    tar_reader_init(&tree->reader, &events, tree);
    tree->reader.takes_devices = true;
    return tree;
}

void image_tree_free(struct image_tree *tree)
{
    if (!tree)
        return;
    (void) fd_close(tree->file);
    (void) fd_close(tree->parent);
    tar_attributes_done(&tree->attributes);
    tar_reader_done(&tree->reader);
    free(tree);
}

int image_tree_feed(struct image_tree *tree, const char *bytes, size_t length, struct error *err)
{
    return tar_reader_feed(&tree->reader, bytes, length, err);
}

int image_tree_finish(struct image_tree *tree, struct error *err)
{
    /* An empty layer may be nothing but the end, or nothing at all. */
    if (!tree->reader.entries && tree->reader.state == TAR_READER_HEADER && !tree->reader.filled)
        return 0;
    return tar_reader_finish(&tree->reader, err);
}
