/* Putting: a draft in .tmp, filled, labelled and synced, then moved to its place. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/crash_point.h"
#include "base/encoding/sha256.h"
#include "base/memory.h"
#include "objects/folder/objects_folder_internal.h"
#include "objects/objects_transfer.h"
#include "sys/file/sys_disk_room.h"

/* How often another process may remove a folder under us before we give up. */
#define TRIES_MAX 100

/* Of a copy within the system, between two looks at `cancelled`. */
#define COPY_STEP ((size_t) 64 * 1024 * 1024)

/* Of a put, between two looks at the room that is left. */
#define ROOM_STEP ((uint64_t) 64 * OBJECTS_BLOCK)

struct draft {
    struct folder *folder; /* borrowed; NULL: nothing to remove */
    char name[SYS_FILE_NAME_SIZE];
    int file; /* owned */
};

#define DRAFT_INIT                                                                                 \
    {                                                                                              \
        .file = -EBADF                                                                             \
    }

static void draft_done(struct draft *draft)
{
    draft->file = fd_close(draft->file);
    if (draft->folder)
        (void) unlinkat(draft->folder->temporary, draft->name, 0); /* else the next start does */
}

AUTO_DEFINE(draft, struct draft, draft_done);

/* For `length` bytes, as far as they are known. */
static int draft_init(struct draft *draft, struct folder *folder, uint64_t length)
{
    int r = sys_file_temporary_name(draft->name);

    if (r == 0)
        r = sys_disk_room_check(folder->root, folder->floor, length);
    if (r == 0)
        r = sys_file_open(folder->temporary, draft->name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (r < 0)
        return r;
    draft->file = r;
    draft->folder = folder;
    return 0;
}

/* --- filling ---------------------------------------------------------------------------------- */

/* What the source says: written into the draft, unless it is there already. The sum and how much it
 * was. */
static int take_bytes(struct draft *draft, const struct objects_work *work,
                      const struct objects_source *source, bool is_there,
                      struct folder_label *label, uint64_t *ret_total, struct error *err)
{
    AUTO(free) char *buffer = mem_alloc(OBJECTS_BLOCK);
    struct sha256 sum;
    uint64_t total = 0;
    ssize_t count;

    sha256_init(&sum);
    do {
        int r = 0;

        count = objects_source_read(work, source, buffer, OBJECTS_BLOCK, total, err);
        if (count < 0)
            return -1;
        if (!is_there)
            r = sys_file_pwrite_sparse(draft->file, buffer, (size_t) count, (off_t) total);
        if (r == 0 && total % ROOM_STEP == 0)
            r = sys_disk_room_check(draft->folder->root, draft->folder->floor, 0);
        if (r < 0)
            return folder_failure(draft->folder, "write", draft->name, r, err);
        sha256_add(&sum, buffer, (size_t) count);
        total += (uint64_t) count;
    } while (count == (ssize_t) OBJECTS_BLOCK);
    sha256_finish(&sum, label->sum);
    label->has_sum = true;
    *ret_total = total;
    return 0;
}

/* A file is shared with its origin where the file system can, and read from ourselves then: what
 * was summed is what is kept. */
static int fill(struct draft *draft, const struct objects_work *work,
                const struct objects_source *source, struct folder_label *label, struct error *err)
{
    struct objects_source from = *source;
    bool is_file = !source->bytes && !source->is_stream;
    bool is_there = is_file && ioctl(draft->file, FICLONE, source->fd) == 0;
    uint64_t total;

    if (is_there)
        from.fd = draft->file;
    if (take_bytes(draft, work, &from, is_there, label, &total, err) < 0)
        return -1;
    if (is_file && total != source->length)
        return error_set(err, ERR_CONFLICT, 0, "the file changed while it was put");
    return 0;
}

/* --- its place -------------------------------------------------------------------------------- */

static int label_and_sync(struct draft *draft, const struct folder_label *label, struct error *err)
{
    struct folder *folder = draft->folder;
    int r = folder_label_write(draft->file, label);

    if (r == -EOPNOTSUPP)
        return error_set(err, ERR_UNAVAILABLE, 0,
                         "the file system of '%.200s' keeps no attributes (user.*) of files: put "
                         "the data folder on ext4, xfs or btrfs",
                         folder->path);
    if (r == 0)
        r = sys_file_sync(draft->file);
    return r < 0 ? folder_failure(folder, "keep", draft->name, r, err) : 0;
}

/* Whether what is there now has that tag. The key's lock is held. */
static int check_tag(struct folder *folder, struct objects_work *work, const char *key,
                     const char *tag, struct error *err)
{
    AUTO(close) int file = -EBADF;
    struct folder_label label;
    struct stat status;

    if (!tag)
        return 0;
    if (folder_look(folder, work, key, &file, &status, &label, err) < 0) {
        if (err->code != ERR_NOT_FOUND)
            return -1;
    } else if (strcmp(label.tag, tag) == 0) {
        return 0;
    }
    return error_set(err, ERR_CONFLICT, 0, "'%.100s' is not the one with the tag %s", key, tag);
}

/* Without replacing anything. Not every file system has the flag; all have links. */
static int move_new(struct draft *draft, int parent, const char *name)
{
    int from = draft->folder->temporary;

    if (renameat2(from, draft->name, parent, name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    return linkat(from, draft->name, parent, name, 0) < 0 ? -errno : 0;
}

/* An empty folder is no object: one that somebody has made and not used yet, or is about to
 * remove. Returns -EAGAIN when it is out of the way, else -EEXIST. */
static int clear_place(int parent, const char *name)
{
    return unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? -EAGAIN : -EEXIST;
}

static int move(struct draft *draft, int parent, const char *name, bool only_new)
{
    int r;

    if (only_new)
        r = move_new(draft, parent, name);
    else
        r = renameat(draft->folder->temporary, draft->name, parent, name) < 0 ? -errno : 0;
    if (r == -ENOENT)
        return -EAGAIN; /* the folder was removed by another process: it was empty until now */
    return r == -EISDIR || r == -EEXIST || r == -ENOTEMPTY ? clear_place(parent, name) : r;
}

/* Into its folder, which stays there meanwhile. -1 with the error; 0 with what the system said in
 * `ret_result`, and the folder, to be synced, in `ret_parent`. */
static int place_in(struct draft *draft, struct objects_work *work, const char *key,
                    const struct object_put_options *options, int *ret_parent, int *ret_result,
                    struct error *err)
{
    pthread_mutex_t *lock = folder_lock(draft->folder, key);
    char path[OBJECTS_PATH_SIZE];
    const char *name;
    int r;

    objects_key_path(key, path);
    *ret_parent = folder_open_parent(draft->folder, path, true, &name);
    *ret_result = *ret_parent == -ENOENT ? -EAGAIN : *ret_parent;
    if (*ret_parent < 0)
        return 0;
    (void) pthread_mutex_lock(lock);
    r = check_tag(draft->folder, work, key, options->only_tag, err);
    if (r == 0) {
        CRASH_POINT("objects.put.before");
        *ret_result = move(draft, *ret_parent, name, options->only_new);
    }
    (void) pthread_mutex_unlock(lock);
    return r;
}

static int place_once(struct draft *draft, struct objects_work *work, const char *key,
                      const struct object_put_options *options, int *ret_result, struct error *err)
{
    AUTO(close) int parent = -EBADF;
    int r;

    (void) pthread_rwlock_rdlock(&draft->folder->tree);
    r = place_in(draft, work, key, options, &parent, ret_result, err);
    (void) pthread_rwlock_unlock(&draft->folder->tree);
    if (r < 0 || *ret_result < 0)
        return r;
    CRASH_POINT("objects.put.moved");
    *ret_result = sys_file_sync(parent);
    return 0;
}

static int place(struct draft *draft, struct objects_work *work, const char *key,
                 const struct object_put_options *options, struct error *err)
{
    int r = -EAGAIN;

    for (int i = 0; i < TRIES_MAX && r == -EAGAIN; i++) {
        if (objects_work_go_on(work, err) < 0 || place_once(draft, work, key, options, &r, err) < 0)
            return -1;
    }
    if (r == -EAGAIN)
        return error_set(err, ERR_UNAVAILABLE, 0, "the folder of '%.100s' is removed all the time",
                         key);
    if (r == -EEXIST && options->only_new)
        return error_set(err, ERR_CONFLICT, 0, "'%.100s' is there already", key);
    if (r == -EEXIST || r == -ENOTDIR)
        return error_set(err, ERR_CONFLICT, 0,
                         "'%.100s' is in the way of another key, or another one in its way: a "
                         "folder cannot hold both \"a\" and \"a/b\"",
                         key);
    if (r < 0)
        return folder_failure(draft->folder, "put", key, r, err);
    return 0;
}

/* Labelled, synced, moved, told. */
static int finish(struct draft *draft, struct objects_work *work, const char *key,
                  const struct object_put_options *options, struct folder_label *label,
                  struct object_info *ret_info, struct error *err)
{
    struct stat status;

    folder_label_stamp(label);
    if (label_and_sync(draft, label, err) < 0 || place(draft, work, key, options, err) < 0)
        return -1;
    if (fstat(draft->file, &status) < 0)
        return folder_failure(draft->folder, "look at", key, -errno, err);
    folder_label_info(label, &status, ret_info);
    return 0;
}

/* --- the calls -------------------------------------------------------------------------------- */

int folder_put(void *self, struct objects_work *work, const char *key,
               const struct objects_source *source, const struct object_put_options *options,
               struct object_info *ret_info, struct error *err)
{
    struct folder *folder = self;
    AUTO(draft) struct draft draft = DRAFT_INIT;
    struct folder_label label = {
        .media_type = options->media_type,
        .metadata = options->metadata,
        .metadata_count = options->metadata_count,
    };
    int r = draft_init(&draft, folder, source->bytes ? source->length : 0);

    if (r < 0)
        return folder_failure(folder, "begin", key, r, err);
    if (fill(&draft, work, source, &label, err) < 0)
        return -1;
    return finish(&draft, work, key, options, &label, ret_info, err);
}

/* What lies between two holes, in steps. Returns 0 or -errno; ERR_CANCELLED is in `err`. */
static int copy_range(struct draft *draft, const struct objects_work *work, int from, off_t at,
                      off_t end, struct error *err)
{
    off_t to = at;

    while (at < end) {
        size_t left = (size_t) (end - at);
        ssize_t count;

        if (objects_work_go_on(work, err) < 0)
            return -ECANCELED;
        if (sys_disk_room_check(draft->folder->root, draft->folder->floor, 0) < 0)
            return -ENOSPC;
        count =
            copy_file_range(from, &at, draft->file, &to, left < COPY_STEP ? left : COPY_STEP, 0);
        if (count <= 0)
            return count < 0 ? -errno : -EIO; /* shorter than it was */
    }
    return 0;
}

/* Holes stay holes. */
static int copy_data(struct draft *draft, const struct objects_work *work, int from, off_t size,
                     struct error *err)
{
    off_t at = 0;
    int r = 0;

    while (r == 0 && (at = lseek(from, at, SEEK_DATA)) >= 0 && at < size) {
        off_t end = lseek(from, at, SEEK_HOLE);

        r = end < 0 ? -errno : copy_range(draft, work, from, at, end, err);
        at = end;
    }
    if (r == 0 && at < 0 && errno != ENXIO)
        r = -errno;
    return r == 0 && ftruncate(draft->file, size) < 0 ? -errno : r;
}

/* Within the system where it can; else through us. */
static int copy_bytes(struct draft *draft, const struct objects_work *work, int from, off_t size,
                      struct error *err)
{
    const struct objects_source source = {.fd = from};
    struct folder_label label = {.has_sum = false};
    uint64_t total;
    int r;

    if (ioctl(draft->file, FICLONE, from) == 0)
        return 0;
    r = copy_data(draft, work, from, size, err);
    if (r == -ECANCELED)
        return -1;
    if (r != -EXDEV && r != -EINVAL && r != -EOPNOTSUPP && r != -ENOSYS)
        return r < 0 ? folder_failure(draft->folder, "copy", draft->name, r, err) : 0;
    if (ftruncate(draft->file, 0) < 0)
        return folder_failure(draft->folder, "copy", draft->name, -errno, err);
    return take_bytes(draft, work, &source, false, &label, &total, err);
}

int folder_copy(void *self, struct objects_work *work, const char *from, const char *to,
                struct object_info *ret_info, struct error *err)
{
    const struct object_put_options options = {.only_new = false};
    struct folder *folder = self;
    AUTO(draft) struct draft draft = DRAFT_INIT;
    AUTO(close) int file = -EBADF;
    struct folder_label label;
    struct stat status;
    int r;

    if (folder_look(folder, work, from, &file, &status, &label, err) < 0)
        return -1;
    r = draft_init(&draft, folder, 0);
    if (r < 0)
        return folder_failure(folder, "begin", to, r, err);
    if (copy_bytes(&draft, work, file, status.st_size, err) < 0)
        return -1;
    return finish(&draft, work, to, &options, &label, ret_info, err);
}

/* What a put does, but for its last step. */
int folder_check(void *self, struct objects_work *work, struct error *err)
{
    const struct objects_source source = {.bytes = "burrow", .length = 6};
    struct folder *folder = self;
    AUTO(draft) struct draft draft = DRAFT_INIT;
    struct folder_label label = {.has_sum = false};
    uint64_t total;
    int r = draft_init(&draft, folder, 0);

    if (r < 0)
        return folder_failure(folder, "begin", "a test", r, err);
    if (take_bytes(&draft, work, &source, false, &label, &total, err) < 0)
        return -1;
    folder_label_stamp(&label);
    return label_and_sync(&draft, &label, err);
}
