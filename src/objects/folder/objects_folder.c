#include "objects/folder/objects_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/text.h"
#include "objects/folder/objects_folder_internal.h"
#include "objects/objects_transfer.h"
#include "sys/file/sys_lock.h"

#define TEMPORARY_FOLDER ".tmp"

static int folder_head(void *self, struct objects_work *work, const char *key,
                       struct object_info *ret_info, struct error *err)
{
    struct folder *folder = self;
    AUTO(close) int file = -EBADF;
    struct folder_label label;
    struct stat status;

    if (folder_look(folder, work, key, &file, &status, &label, err) < 0)
        return -1;
    folder_label_info(&label, &status, ret_info);
    return 0;
}

/* --- removing --------------------------------------------------------------------------------- */

static int remove_one(struct folder *folder, const char *key, const char *path)
{
    pthread_mutex_t *lock = folder_lock(folder, key);
    const char *name;
    AUTO(close) int parent = folder_open_parent(folder, path, false, &name);
    int r;

    if (parent < 0)
        return parent == -ENOENT || parent == -ENOTDIR ? 0 : parent;
    (void) pthread_mutex_lock(lock);
    r = unlinkat(parent, name, 0) < 0 ? -errno : 0;
    (void) pthread_mutex_unlock(lock);
    return r == -ENOENT || r == -EISDIR ? 0 : r; /* a folder is no object */
}

static bool is_same_folder(const char *path, const char *other)
{
    const char *a = strrchr(path, '/'), *b = strrchr(other, '/');
    size_t length = a ? (size_t) (a - path) : 0;

    return length == (b ? (size_t) (b - other) : 0) && memcmp(path, other, length) == 0;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* In their order: keys of one folder follow each other, and are synced together. */
static int folder_remove(void *self, struct objects_work *work, const char *const *keys,
                         size_t count, struct error *err)
{
    struct folder *folder = self;
    const char **sorted = pool_alloc(work->pool, count * sizeof(*sorted));
    char path[OBJECTS_PATH_SIZE], next[OBJECTS_PATH_SIZE] = "";

    memcpy(sorted, keys, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), by_bytes);
    for (size_t i = 0; i < count; i++) {
        int r;

        if (objects_work_go_on(work, err) < 0)
            return -1;
        objects_key_path(sorted[i], path);
        r = remove_one(folder, sorted[i], path);
        if (i + 1 < count)
            objects_key_path(sorted[i + 1], next);
        if (r == 0 && (i + 1 == count || !is_same_folder(path, next)))
            r = folder_sweep(folder, path);
        if (r < 0)
            return folder_failure(folder, "remove", sorted[i], r, err);
    }
    return 0;
}

/* --- opening ---------------------------------------------------------------------------------- */

static void folder_end(void *self)
{
    struct folder *folder = self;

    for (size_t i = 0; i < FOLDER_LOCKS; i++)
        (void) pthread_mutex_destroy(&folder->keys[i]);
    (void) pthread_mutex_destroy(&folder->making);
    (void) pthread_rwlock_destroy(&folder->tree);
    (void) fd_close(folder->temporary);
    (void) fd_close(folder->root);
    free(folder->text);
    free(folder->path);
    free(folder);
}

/* Whoever removes is done in microseconds, and would wait for ever behind puts that never end. */
static void tree_init(pthread_rwlock_t *tree)
{
    pthread_rwlockattr_t attributes;

    (void) pthread_rwlockattr_init(&attributes);
    (void) pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    (void) pthread_rwlock_init(tree, &attributes);
    (void) pthread_rwlockattr_destroy(&attributes);
}

static struct folder *folder_new(const char *path)
{
    struct folder *folder = mem_alloc(sizeof(*folder));
    AUTO(text) struct text text = TEXT_INIT(strlen(path) + 16);

    text_format(&text, "folder %s", path);
    folder->text = text_take(&text);
    folder->path = mem_copy_text(path);
    folder->root = folder->temporary = -EBADF;
    tree_init(&folder->tree);
    (void) pthread_mutex_init(&folder->making, NULL);
    for (size_t i = 0; i < FOLDER_LOCKS; i++)
        (void) pthread_mutex_init(&folder->keys[i], NULL);
    return folder;
}

/* What a process that died was putting. It may have made folders, too, that nobody has synced: the
 * whole file system is, once, so that later objects can rely on them. */
static int clean(struct folder *folder)
{
    int fd = sys_file_open(folder->temporary, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    bool found = false;

    if (!entries)
        return fd < 0 ? fd : (fd_close(fd), -errno);
    while ((entry = readdir(entries))) {
        if (!sys_file_is_temporary_name(entry->d_name))
            continue;
        (void) unlinkat(folder->temporary, entry->d_name, 0); /* else the next start does */
        found = true;
    }
    (void) closedir(entries);
    return found && syncfs(folder->root) < 0 ? -errno : 0;
}

/* Nobody else's drafts are removed: who puts holds the lock together with others. */
static int claim(struct folder *folder)
{
    int r = sys_lock_take(folder->temporary, SYS_LOCK_EXCLUSIVE, 0);

    if (r == 0)
        r = clean(folder);
    if (r == 0 || r == -ETIMEDOUT)
        r = sys_lock_take(folder->temporary, SYS_LOCK_SHARED, -1);
    return r;
}

static int folder_prepare(struct folder *folder)
{
    int r = sys_file_make_directories(AT_FDCWD, folder->path, 0700);

    if (r == 0)
        r = folder->root = sys_file_open(AT_FDCWD, folder->path, O_RDONLY | O_DIRECTORY, 0);
    if (r >= 0)
        r = sys_file_make_directories(folder->root, TEMPORARY_FOLDER, 0700);
    if (r == 0)
        r = folder->temporary =
            sys_file_open(folder->root, TEMPORARY_FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    return r < 0 ? r : claim(folder);
}

struct objects *objects_folder_new(struct loop *loop, const char *path, uint64_t floor,
                                   struct error *err)
{
    struct folder *folder = folder_new(path);
    const struct objects_backend backend = {
        .self = folder,
        .put = folder_put,
        .copy = folder_copy,
        .remove = folder_remove,
        .head = folder_head,
        .get = folder_get,
        .list = folder_list,
        .check = folder_check,
        .end = folder_end,
        .text = folder->text,
    };
    int r = folder_prepare(folder);

    folder->floor = floor;
    if (r == 0)
        return objects_new(loop, &backend, 0);
    (void) error_set(err, error_code_from_errno(r), r, "open the folder of objects '%s'", path);
    folder_end(folder);
    return NULL;
}
