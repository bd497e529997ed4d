#include "agent/archive/tar_extract.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/format/tar_reader.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "sys/file/sys_file.h"

#define SHOWN 160 /* of a path in a message */

/* What is remembered of folders until the end; those beyond keep the time of their last change. */
#define FOLDERS_MAX ((size_t) 8 * 1024 * 1024)
/* In one call of tar_extract_finish. */
#define FOLDERS_PER_STEP 64
/* Beside -errno: the link would lead out of the folder. */
#define LEADS_OUT EBADMSG

/* Behind the folder's path in `folders`, so that they can be taken from the end. */
struct folder {
    mode_t mode;
    struct timespec mtime;
    size_t path_length;
};

struct tar_extract {
    int root; /* borrowed */
    bool links_out;
    bool finished; /* the reader is */
    struct tar_reader reader;
    char path[TAR_PATH_MAX + 1]; /* of the entry that is under way, plain */
    int parent;                  /* owned: its folder, while a file is written */
    int file;                    /* owned */
    bool ends_in_hole;           /* what came last of it was left out */
    struct tar_attributes attributes;
    char temporary[SYS_FILE_NAME_SIZE];
    struct tar_entry entry; /* its strings are not kept */
    struct text folders;
    uint64_t bytes;
};

/* --- paths ---------------------------------------------------------------------------------- */

/* The next component of a path and its length, 0 at the end. */
static size_t next_component(const char **path, const char **ret_component)
{
    size_t length;

    do {
        *ret_component = *path += strspn(*path, "/");
        length = strcspn(*path, "/");
        *path += length;
    } while (length == 1 && (*ret_component)[0] == '.');
    return length;
}

static bool is_up(const char *component, size_t length)
{
    return length == 2 && component[0] == '.' && component[1] == '.';
}

int tar_extract_plain_path(const char *path, char *ret_path)
{
    return path[0] == '/' ? -EINVAL : path_relative(path, ret_path);
}

bool tar_extract_link_stays(const char *path, const char *target)
{
    size_t length, room = 0;
    const char *component;
    bool named = false;

    if (target[0] == '/')
        return false;
    for (const char *at = path; *at; at++)
        room += *at == '/';
    while ((length = next_component(&target, &component))) {
        if (!is_up(component, length))
            named = true;
        else if (named || room-- == 0)
            return false;
    }
    return true;
}

/* --- failures ------------------------------------------------------------------------------- */

static int refuse(const struct tar_extract *extract, struct error *err, const char *why)
{
    return error_set(err, ERR_INVALID, 0, "archive entry %llu '%.*s': %s",
                     (unsigned long long) extract->reader.entries, SHOWN,
                     extract->reader.entry_path, why);
}

static int fail(const struct tar_extract *extract, struct error *err, int error)
{
    return error_set(err, error_code_from_errno(-error), -error, "archive entry %llu '%.*s'",
                     (unsigned long long) extract->reader.entries, SHOWN,
                     extract->reader.entry_path);
}

/* --- folders -------------------------------------------------------------------------------- */

/* A folder in `at` and never where a link leads. -ELOOP: there is a link. */
static int open_folder(int at, const char *name, bool make)
{
    int fd = sys_file_open(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    struct stat status;

    if (fd == -ENOENT && make) {
        if (mkdirat(at, name, 0777) < 0 && errno != EEXIST)
            return -errno;
        fd = sys_file_open(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    }
    if (fd == -ENOTDIR && fstatat(at, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(status.st_mode))
        return -ELOOP;
    return fd;
}

/* The folder that a plain path is in, and its name there. */
static int open_parent(const struct tar_extract *extract, const char *path, bool make,
                       const char **ret_name)
{
    AUTO(close) int here = fcntl(extract->root, F_DUPFD_CLOEXEC, 0);
    const char *slash;

    if (here < 0)
        return -errno;
    while ((slash = strchr(path, '/'))) {
        char name[NAME_MAX + 1];
        int next;

        memcpy(name, path, (size_t) (slash - path));
        name[slash - path] = '\0';
        next = open_folder(here, name, make);
        if (next < 0)
            return next;
        (void) fd_close(here);
        here = next;
        path = slash + 1;
    }
    *ret_name = path;
    return TAKE_FD(here);
}

static void remember_folder(struct tar_extract *extract, const struct tar_entry *entry)
{
    const struct folder folder = {entry->mode, entry->mtime, strlen(extract->path) + 1};

    if (extract->folders.length + folder.path_length + sizeof(folder) > extract->folders.maximum)
        return;
    text_append_bytes(&extract->folders, extract->path, folder.path_length);
    text_append_bytes(&extract->folders, &folder, sizeof(folder));
}

/* Who may not give things away keeps them. An empty name: the descriptor itself. Returns whether
 * the owner is now right. */
static bool give_away(int directory, const char *name, const struct tar_entry *entry)
{
    return geteuid() == 0 && fchownat(directory, name, entry->uid, entry->gid,
                                      AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) == 0;
}

static int make_folder(struct tar_extract *extract, int parent, const char *name,
                       const struct tar_entry *entry)
{
    AUTO(close) int fd = open_folder(parent, name, true);

    if (fd < 0)
        return fd;
    /* The folder that was opened: its name may be that of another thing by now. */
    (void) give_away(fd, "", entry);
    remember_folder(extract, entry);
    return 0;
}

/* The last folder that is remembered gets its time and mode. */
static void dress_folder(struct tar_extract *extract)
{
    struct text *folders = &extract->folders;
    struct folder folder;
    const char *path, *name = "";
    AUTO(close) int parent = -EBADF;
    AUTO(close) int fd = -EBADF;

    memcpy(&folder, folders->data + folders->length - sizeof(folder), sizeof(folder));
    folders->length -= sizeof(folder) + folder.path_length;
    path = folders->data + folders->length;
    parent = open_parent(extract, path, false, &name);
    if (parent >= 0)
        fd = sys_file_open(parent, name[0] ? name : ".",
                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd >= 0) { /* it may be gone, or another's: then it stays as it is */
        const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, folder.mtime};

        (void) futimens(fd, times);
        (void) fchmod(fd, folder.mode);
    }
}

/* --- other entries -------------------------------------------------------------------------- */

static void set_time(int directory, const char *name, const struct tar_entry *entry)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, entry->mtime};

    (void) utimensat(directory, name, times, AT_SYMLINK_NOFOLLOW); /* not all have times */
}

/* Make room for what cannot take the place of another by itself. */
static int clear_way(int parent, const char *name)
{
    return unlinkat(parent, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static int make_link(int parent, const char *name, const struct tar_entry *entry)
{
    int r = clear_way(parent, name);

    if (r < 0)
        return r;
    if (symlinkat(entry->link, parent, name) < 0)
        return -errno;
    (void) give_away(parent, name, entry);
    set_time(parent, name, entry);
    return 0;
}

static int make_pipe(int parent, const char *name, const struct tar_entry *entry)
{
    int r = clear_way(parent, name);

    if (r < 0)
        return r;
    if (mkfifoat(parent, name, entry->mode & 0777) < 0)
        return -errno;
    (void) give_away(parent, name, entry);
    set_time(parent, name, entry);
    return 0;
}

/* A link leads elsewhere from another place: it is judged by the one it gets. */
static int check_linked(const struct tar_extract *extract, int directory, const char *name)
{
    char target[PATH_MAX];
    ssize_t length;

    if (extract->links_out)
        return 0;
    length = readlinkat(directory, name, target, sizeof(target) - 1);
    if (length < 0)
        return -errno;
    target[length] = '\0';
    return tar_extract_link_stays(extract->path, target) ? 0 : -LEADS_OUT;
}

/* Another name for a file that is in the folder already, or for a link, which is not followed. */
static int make_hard_link(const struct tar_extract *extract, int parent, const char *name,
                          const char *target)
{
    const char *target_name;
    AUTO(close) int other = open_parent(extract, target, false, &target_name);
    struct stat status, here;
    int r;

    if (other < 0)
        return other;
    if (fstatat(other, target_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode))
        return -EPERM;
    if (fstatat(parent, name, &here, AT_SYMLINK_NOFOLLOW) == 0 && here.st_ino == status.st_ino &&
        here.st_dev == status.st_dev)
        return 0; /* they are one already */
    r = S_ISLNK(status.st_mode) ? check_linked(extract, other, target_name) : 0;
    if (r == 0)
        r = clear_way(parent, name);
    if (r < 0)
        return r;
    return linkat(other, target_name, parent, name, 0) < 0 ? -errno : 0;
}

/* Takes `parent`. */
static int begin_file(struct tar_extract *extract, int parent, const struct tar_entry *entry)
{
    int r = sys_file_temporary_name(extract->temporary);

    extract->parent = parent;
    extract->entry = *entry;
    extract->ends_in_hole = false;
    tar_attributes_copy(&extract->attributes, entry->attributes);
    if (r == 0)
        r = extract->file = sys_file_open(parent, extract->temporary,
                                          O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (r < 0)
        extract->temporary[0] = '\0'; /* not ours to remove */
    return r < 0 ? r : 0;
}

/* What the file system, or the kernel, will not have is left out; -ENOSPC, -EDQUOT. `is_owners`: it
 * belongs to whom the archive says, and may have capabilities. */
static int set_attributes(const struct tar_attributes *attributes, int file, bool is_owners)
{
    struct tar_attribute attribute;
    size_t at = 0;

    while (tar_attributes_next(attributes, &at, &attribute)) {
        if ((is_owners || !attribute.is_capability) &&
            fsetxattr(file, attribute.name, attribute.value, attribute.length, 0) < 0 &&
            (errno == ENOSPC || errno == EDQUOT))
            return -errno;
    }
    return 0;
}

static void abandon_file(struct tar_extract *extract)
{
    extract->file = fd_close(extract->file);
    if (extract->temporary[0])
        (void) unlinkat(extract->parent, extract->temporary, 0); /* gone is gone */
    extract->temporary[0] = '\0';
    extract->parent = fd_close(extract->parent);
}

static int end_file(struct tar_extract *extract)
{
    const struct tar_entry *entry = &extract->entry;
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, entry->mtime};
    const char *slash = strrchr(extract->path, '/');
    mode_t mode = entry->mode;
    bool is_owners = geteuid() == 0 && fchown(extract->file, entry->uid, entry->gid) == 0;
    int r;

    if (extract->ends_in_hole && ftruncate(extract->file, (off_t) entry->size) < 0)
        return -errno;
    /* Bits that lend the owner's rights are the right owner's only. */
    if (!is_owners)
        mode &= 01777;
    if (fchmod(extract->file, mode) < 0)
        return -errno;
    r = set_attributes(&extract->attributes, extract->file, is_owners);
    if (r < 0)
        return r;
    (void) futimens(extract->file, times); /* not all have times */
    if (renameat(extract->parent, extract->temporary, extract->parent,
                 slash ? slash + 1 : extract->path) < 0)
        return -errno;
    extract->temporary[0] = '\0';
    return 0;
}

/* --- what the reader finds ------------------------------------------------------------------ */

static const char *why_refused(int error)
{
    switch (error) {
    case -EINVAL:
        return "its path is absolute";
    case -EXDEV:
        return "its path leads out of the folder ('..')";
    default:
        return "its path is too long";
    }
}

/* Takes `parent`. `link` is the plain path of a hard link's target. */
static int make_entry(struct tar_extract *extract, int parent, const char *name,
                      const struct tar_entry *entry, const char *link)
{
    AUTO(close) int owned = parent;

    switch (entry->type) {
    case TAR_FOLDER:
        return make_folder(extract, parent, name, entry);
    case TAR_LINK:
        return make_link(parent, name, entry);
    case TAR_HARD_LINK:
        return make_hard_link(extract, parent, name, link);
    case TAR_PIPE:
        return make_pipe(parent, name, entry);
    default:
        return begin_file(extract, TAKE_FD(owned), entry);
    }
}

/* The folder itself. Who sends it may set its mode and time. */
static int take_root(struct tar_extract *extract, const struct tar_entry *entry, struct error *err)
{
    if (entry->type != TAR_FOLDER)
        return refuse(extract, err, "its path is empty");
    remember_folder(extract, entry);
    return 0;
}

static int check_link(struct tar_extract *extract, const struct tar_entry *entry, char *ret_link,
                      struct error *err)
{
    if (entry->type == TAR_HARD_LINK &&
        (tar_extract_plain_path(entry->link, ret_link) < 0 || !ret_link[0]))
        return refuse(extract, err, "it is a link that leads out of the folder");
    if (entry->type != TAR_LINK)
        return 0;
    if (!entry->link[0])
        return refuse(extract, err, "it is a link to nowhere");
    if (!extract->links_out && !tar_extract_link_stays(extract->path, entry->link))
        return refuse(extract, err, "it is a link that leads out of the folder");
    return 0;
}

static int entry_began(void *owner, const struct tar_entry *entry, struct error *err)
{
    struct tar_extract *extract = owner;
    char link[TAR_PATH_MAX + 1] = "";
    const char *name;
    int parent, r = tar_extract_plain_path(entry->path, extract->path);

    if (r < 0)
        return refuse(extract, err, why_refused(r));
    if (!extract->path[0])
        return take_root(extract, entry, err);
    if (check_link(extract, entry, link, err) < 0)
        return -1;
    parent = open_parent(extract, extract->path, true, &name);
    r = parent < 0 ? parent : make_entry(extract, parent, name, entry, link);
    if (r == -ELOOP)
        return refuse(extract, err, "its path leads through a symbolic link");
    if (r == -LEADS_OUT)
        return refuse(extract, err, "it is a link that leads out of the folder");
    return r < 0 ? fail(extract, err, r) : 0;
}

static bool are_zeros(const char *bytes, size_t length)
{
    return bytes[0] == '\0' && memcmp(bytes, bytes + 1, length - 1) == 0;
}

/* Zeros become a hole again: a sparse file must not fill the disk when it comes back. Also the
 * shortest piece of them: how a stream is cut is nobody's choice, and one byte takes a block. */
static int bytes_came(void *owner, const char *bytes, size_t length, struct error *err)
{
    struct tar_extract *extract = owner;
    int r = 0;

    extract->bytes += length;
    extract->ends_in_hole = length > 0 && are_zeros(bytes, length);
    if (!extract->ends_in_hole)
        r = sys_file_write_full(extract->file, bytes, length);
    else if (lseek(extract->file, (off_t) length, SEEK_CUR) < 0)
        r = -errno;
    return r < 0 ? fail(extract, err, r) : 0;
}

static int entry_ended(void *owner, struct error *err)
{
    struct tar_extract *extract = owner;
    int r = extract->file >= 0 ? end_file(extract) : 0;

    abandon_file(extract);
    return r < 0 ? fail(extract, err, r) : 0;
}

static const struct tar_reader_events events = {
    .on_entry = entry_began,
    .on_bytes = bytes_came,
    .on_entry_end = entry_ended,
};

/* --- life ----------------------------------------------------------------------------------- */

struct tar_extract *tar_extract_new(int root, bool links_out)
{
    struct tar_extract *extract = mem_alloc(sizeof(*extract));

    extract->root = root;
    extract->links_out = links_out;
    extract->parent = extract->file = -EBADF;
    extract->folders = (struct text) TEXT_INIT(FOLDERS_MAX);
    extract->attributes = (struct tar_attributes) TAR_ATTRIBUTES_INIT(TAR_EXTENDED_MAX);
    tar_reader_init(&extract->reader, &events, extract);
    return extract;
}

void tar_extract_free(struct tar_extract *extract)
{
    if (!extract)
        return;
    abandon_file(extract);
    tar_reader_done(&extract->reader);
    text_done(&extract->folders);
    tar_attributes_done(&extract->attributes);
    free(extract);
}

int tar_extract_feed(struct tar_extract *extract, const char *bytes, size_t length,
                     struct error *err)
{
    return tar_reader_feed(&extract->reader, bytes, length, err);
}

int tar_extract_finish(struct tar_extract *extract, struct error *err)
{
    if (!extract->finished && tar_reader_finish(&extract->reader, err) < 0)
        return -1;
    extract->finished = true;
    for (int i = 0; i < FOLDERS_PER_STEP && extract->folders.length; i++)
        dress_folder(extract);
    return extract->folders.length > 0;
}

uint64_t tar_extract_entries(const struct tar_extract *extract)
{
    return extract->reader.entries;
}

uint64_t tar_extract_bytes(const struct tar_extract *extract)
{
    return extract->bytes;
}
