#include "agent/archive/tar_export.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/file/file_walk.h"
#include "agent/file_open.h"
#include "base/format/tar_header.h"
#include "base/memory.h"
#include "sys/file/sys_file.h"

/* Of a file at a time, and entries in one piece. */
#define READ_SIZE        ((size_t) 128 * 1024)
#define ENTRIES_PER_NEXT 24
#define LINK_PATHS_MAX   ((size_t) 8 * 1024 * 1024)

_Static_assert(ENTRIES_PER_NEXT *TAR_HEADER_MAX < TAR_EXPORT_PIECE,
               "a piece has room for its entries");

/* A file with several names: where its first one is among the paths. */
struct seen {
    dev_t device;
    ino_t inode; /* 0: free */
    size_t path;
};

struct tar_export {
    struct file_walk *walk;      /* owned; NULL at the end */
    const char *const *excludes; /* borrowed */
    bool has_root;               /* the entry of the folder itself is written */
    int file;                    /* owned: being written */
    uint64_t left;               /* of it */
    size_t padding;
    struct seen *seen; /* owned: a hash table of twice TAR_EXPORT_LINKS_MAX */
    size_t seen_count;
    struct text paths; /* of seen: one behind the other, with their NULs */
    struct text path;  /* "./a/b" */
};

struct tar_export *tar_export_new(int directory, const char *const *excludes, int *ret_error)
{
    struct tar_export *export = mem_alloc(sizeof(*export));

    *export = (struct tar_export){
        .excludes = excludes,
        .file = -EBADF,
        .paths = TEXT_INIT(LINK_PATHS_MAX),
        .path = TEXT_INIT((size_t) (FILE_WALK_DEPTH_MAX + 2) * (NAME_MAX + 1)),
        .walk = file_walk_new(directory, ret_error),
    };
    if (!export->walk) {
        tar_export_free(export);
        return NULL;
    }
    return export;
}

void tar_export_free(struct tar_export *export)
{
    if (!export)
        return;
    file_walk_free(export->walk);
    (void) fd_close(export->file);
    free(export->seen);
    text_done(&export->paths);
    text_done(&export->path);
    free(export);
}

const char *tar_export_path(const struct tar_export *export)
{
    return text_string(&export->path);
}

/* --- hard links ----------------------------------------------------------------------------- */

static struct seen *find_seen(struct tar_export *export, const struct stat *status)
{
    size_t slots = 2 * TAR_EXPORT_LINKS_MAX;
    uint64_t hash =
        ((uint64_t) status->st_ino ^ (uint64_t) status->st_dev << 32) * 0x9e3779b97f4a7c15;

    if (!export->seen)
        export->seen = mem_alloc_array(slots, sizeof(*export->seen));
    for (size_t at = (size_t) (hash >> 40);; at++) {
        struct seen *seen = &export->seen[at % slots];

        if (!seen->inode || (seen->inode == status->st_ino && seen->device == status->st_dev))
            return seen;
    }
}

/* The path under which this file went before, or NULL. */
static const char *earlier_path(struct tar_export *export, const struct stat *status)
{
    const struct seen *seen = status->st_nlink < 2 ? NULL : find_seen(export, status);

    return seen && seen->inode ? export->paths.data + seen->path : NULL;
}

/* Keep the path for the next name of this file: it is in the archive now. */
static void keep_path(struct tar_export *export, const struct stat *status)
{
    size_t length = export->path.length + 1;
    struct seen *seen;

    if (status->st_nlink < 2 || export->seen_count == TAR_EXPORT_LINKS_MAX ||
        export->paths.length + length > export->paths.maximum)
        return;
    seen = find_seen(export, status);
    if (seen->inode)
        return;
    *seen = (struct seen){status->st_dev, status->st_ino, export->paths.length};
    export->seen_count++;
    text_append_bytes(&export->paths, text_string(&export->path), length);
}

/* --- entries -------------------------------------------------------------------------------- */

static void append(struct tar_export *export, struct text *out, char type, const char *link,
                   const struct stat *status)
{
    const struct tar_entry entry = {
        .type = type,
        .path = text_string(&export->path),
        .link = link,
        .size = type == TAR_FILE ? (uint64_t) status->st_size : 0,
        .mode = status->st_mode & 07777,
        .uid = status->st_uid,
        .gid = status->st_gid,
        .mtime = status->st_mtim,
    };

    tar_header_append(out, &entry);
}

static int append_link(struct tar_export *export, struct text *out,
                       const struct file_walk_entry *entry)
{
    char target[PATH_MAX];
    ssize_t length = readlinkat(entry->directory, entry->name, target, sizeof(target) - 1);

    if (length < 0)
        return errno == ENOENT || errno == EINVAL ? 0 : -errno; /* gone, or another thing */
    target[length] = '\0';
    append(export, out, TAR_LINK, target, &entry->status);
    return 0;
}

static int append_file(struct tar_export *export, struct text *out,
                       const struct file_walk_entry *entry)
{
    const char *earlier = earlier_path(export, &entry->status);
    AUTO(close) int fd = -EBADF;
    struct stat status;

    if (earlier) {
        append(export, out, TAR_HARD_LINK, earlier, &entry->status);
        return 0;
    }
    fd = file_open(entry->directory, entry->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        return fd == -ENOENT || fd == -ELOOP ? 0 : fd;
    if (fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode))
        return 0; /* it was one a moment ago */
    append(export, out, TAR_FILE, "", &status);
    keep_path(export, &status); /* of the one that was opened: the name may be another's by now */
    if (!status.st_size)
        return 0;
    export->left = (uint64_t) status.st_size;
    export->padding = tar_padding(export->left);
    export->file = TAKE_FD(fd);
    return 0;
}

static int append_entry(struct tar_export *export, struct text *out,
                        const struct file_walk_entry *entry)
{
    mode_t mode = entry->status.st_mode;

    if (S_ISREG(mode))
        return append_file(export, out, entry);
    if (S_ISLNK(mode))
        return append_link(export, out, entry);
    if (S_ISFIFO(mode))
        append(export, out, TAR_PIPE, "", &entry->status);
    if (!S_ISDIR(mode))
        return 0;
    append(export, out, TAR_FOLDER, "", &entry->status);
    return file_walk_enter(export->walk);
}

static bool is_excluded(const struct tar_export *export, const char *path)
{
    for (const char *const *exclude = export->excludes; exclude && *exclude; exclude++) {
        if (strcmp(*exclude, path) == 0)
            return true;
    }
    return false;
}

static int append_root(struct tar_export *export, struct text *out)
{
    struct stat status;

    export->has_root = true;
    text_append(&export->path, ".");
    if (fstat(file_walk_directory(export->walk), &status) < 0)
        return -errno;
    append(export, out, TAR_FOLDER, "", &status);
    return 1;
}

/* Returns 1 while there is more. */
static int next_entry(struct tar_export *export, struct text *out)
{
    struct file_walk_entry entry;
    int r;

    if (!export->has_root)
        return append_root(export, out);
    r = file_walk_next(export->walk, &entry);
    if (r <= 0)
        return r;
    if (entry.is_end || is_excluded(export, entry.path))
        return 1;
    text_clear(&export->path);
    text_append(&export->path, "./");
    text_append(&export->path, entry.path);
    /* A slash may be added. */
    r = export->path.length < TAR_PATH_MAX ? append_entry(export, out, &entry) : -ENAMETOOLONG;
    return r < 0 && r != -ENOENT ? r : 1;
}

/* --- pieces --------------------------------------------------------------------------------- */

static int append_bytes(struct tar_export *export, struct text *out)
{
    size_t wanted = export->left < READ_SIZE ? (size_t) export->left : READ_SIZE;
    char *room = text_reserve(out, wanted + export->padding);
    ssize_t got;

    if (!room)
        return -EOVERFLOW;
    got = sys_file_read_full(export->file, room, wanted);
    if (got < 0)
        return (int) got;
    memset(room + got, 0, wanted - (size_t) got); /* it became shorter */
    export->left -= wanted;
    if (!export->left) {
        memset(room + wanted, 0, export->padding);
        wanted += export->padding;
        export->file = fd_close(export->file);
    }
    text_commit(out, wanted);
    return 1;
}

int tar_export_next(struct tar_export *export, struct text *out)
{
    int r = 1;

    if (!export->walk)
        return 0;
    if (export->file >= 0)
        return append_bytes(export, out);
    for (int i = 0; i < ENTRIES_PER_NEXT && r > 0 && export->file < 0; i++)
        r = next_entry(export, out);
    if (r == 0) {
        tar_end_append(out);
        file_walk_free(TAKE_PTR(export->walk));
    }
    return r;
}
