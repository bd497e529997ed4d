/* Plain pools: disks and snapshots as stacks of layers that are shared. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crash_point.h"
#include "base/memory.h"
#include "launcher/disk/disk_pool_internal.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_lock.h"
#include "sys/mount/sys_mount.h"

/* The list of a disk: an id a line, the topmost first. */
#define LIST_NAME "l"
#define LIST_SIZE (DISK_LAYERS_MAX * (ID_LENGTH + 1))

/* Whoever changes lists or collects layers has it for milliseconds. */
#define LOCK_MS 10000

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
#define UPPER_SIZE   (ID_SIZE + sizeof("/" DISK_UPPER))

AUTO_DEFINE_PTR(closedir, DIR, (void) closedir);

static int fail(struct error *err, int system, const char *what, const struct id *id)
{
    return error_set(err, error_code_from_errno(system), system, "%s %s", what, id->text);
}

/* --- lists ----------------------------------------------------------------------------------- */

static int parse(const char *text, size_t length, struct disk_stack *ret_stack)
{
    struct disk_stack stack = {.count = 0};

    if (length % (ID_LENGTH + 1) != 0 || length > LIST_SIZE)
        return -EBADMSG;
    for (size_t at = 0; at < length; at += ID_LENGTH + 1) {
        struct id *id = &stack.layers[stack.count++];

        memcpy(id->text, text + at, ID_LENGTH);
        id->text[ID_LENGTH] = '\0';
        if (!id_is_valid(id->text) || text[at + ID_LENGTH] != '\n')
            return -EBADMSG;
    }
    *ret_stack = stack;
    return 0;
}

int disk_pool_read_stack(int folder, struct disk_stack *ret_stack)
{
    AUTO(free) char *text = NULL;
    size_t length;
    int r = sys_file_read_all(folder, LIST_NAME, LIST_SIZE, &text, &length);

    if (r == -ENOENT) {
        *ret_stack = (struct disk_stack){.count = 0};
        return 0;
    }
    return r < 0 ? r : parse(text, length, ret_stack);
}

int disk_pool_write_stack(int folder, const struct disk_stack *stack)
{
    char text[LIST_SIZE + 1];
    size_t used = 0;

    for (size_t i = 0; i < stack->count; i++)
        used += (size_t) snprintf(text + used, sizeof(text) - used, "%s\n", stack->layers[i].text);
    return used ? sys_file_replace(folder, LIST_NAME, text, used, 0600) : 0;
}

/* --- the top --------------------------------------------------------------------------------- */

static int is_empty(int folder)
{
    int fd = sys_file_open(folder, ".", FOLDER_FLAGS, 0);
    AUTO(closedir) DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!entries) {
        (void) fd_close(fd);
        return fd < 0 ? fd : -errno;
    }
    while ((entry = readdir(entries))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return 0;
    }
    return 1;
}

/* The root of a sandbox is its top layer's folder: a new one looks as the old one did. */
static int copy_status(int from, int to)
{
    struct stat status;
    int r = fstat(from, &status) < 0 ? -errno : 0;
    struct timespec times[2];

    if (r < 0)
        return r;
    times[0] = status.st_atim;
    times[1] = status.st_mtim;
    if (fchown(to, status.st_uid, status.st_gid) < 0 || fchmod(to, status.st_mode & 07777) < 0 ||
        futimens(to, times) < 0)
        return -errno;
    return 0;
}

static int copy_status_of_upper(int from, int to)
{
    AUTO(close) int source = sys_file_open(from, DISK_UPPER, FOLDER_FLAGS, 0);
    AUTO(close) int target = sys_file_open(to, DISK_UPPER, FOLDER_FLAGS, 0);

    return source < 0 ? source : target < 0 ? target : copy_status(source, target);
}

/* A layer with nothing in it, and a list that begins with it: that changes nothing yet. */
static int begin_layer(struct disk_pool *pool, int folder, const struct id *id,
                       const struct disk_stack *stack)
{
    AUTO(close) int layer = -EBADF;
    struct disk_stack longer = {.layers = {*id}, .count = stack->count + 1};
    int r;

    memcpy(&longer.layers[1], stack->layers, stack->count * sizeof(*stack->layers));
    if (mkdirat(pool->layers, id->text, 0700) < 0)
        return -errno;
    r = layer = sys_file_open(pool->layers, id->text, FOLDER_FLAGS, 0);
    if (r >= 0)
        r = mkdirat(layer, DISK_UPPER, 0755) < 0 ? -errno : 0;
    if (r == 0)
        r = copy_status_of_upper(folder, layer);
    return r < 0 ? r : disk_pool_write_stack(folder, &longer);
}

/* Make what is in the top a layer; the top is empty then. At every moment top and list together are
 * the same tree. Under the lock. -E2BIG: the stack is as high as it may be. */
static int seal(struct disk_pool *pool, int folder)
{
    AUTO(close) int upper = sys_file_open(folder, DISK_UPPER, FOLDER_FLAGS, 0);
    struct id id = id_new();
    struct disk_stack stack;
    char path[UPPER_SIZE];
    int r = upper < 0 ? upper : is_empty(upper);

    if (r != 0)
        return r < 0 ? r : 0;
    r = disk_pool_read_stack(folder, &stack);
    if (r == 0 && stack.count == DISK_LAYERS_MAX)
        r = -E2BIG;
    if (r == 0)
        r = begin_layer(pool, folder, &id, &stack);
    if (r < 0)
        return r; /* a layer that no list names is collected */
    CRASH_POINT("launcher.plain_seal.listed");
    (void) snprintf(path, sizeof(path), "%s/" DISK_UPPER, id.text);
    if (renameat2(folder, DISK_UPPER, pool->layers, path, RENAME_EXCHANGE) < 0)
        return -errno;
    CRASH_POINT("launcher.plain_seal.moved");
    return 0;
}

/* --- copies that share ----------------------------------------------------------------------- */

static int lock_layers(struct disk_pool *pool, int timeout_ms)
{
    AUTO(close) int lock = sys_file_open(pool->layers, ".", FOLDER_FLAGS, 0);
    int r = lock < 0 ? lock : sys_lock_take(lock, SYS_LOCK_EXCLUSIVE, timeout_ms);

    return r < 0 ? r : TAKE_FD(lock);
}

int disk_pool_copy_stack(struct disk_pool *pool, int source, const struct id *target)
{
    AUTO(close) int folder = disk_pool_open_entry(pool, DISK_POOL_UNFINISHED, target);
    struct disk_stack stack;
    int r = folder < 0 ? folder : disk_pool_read_stack(source, &stack);

    if (r == 0)
        r = disk_pool_write_stack(folder, &stack);
    return r < 0 ? r : copy_status_of_upper(source, folder);
}

static int share(struct disk_pool *pool, const struct disk_pool_share *share)
{
    AUTO(close) int lock = lock_layers(pool, LOCK_MS);
    AUTO(close) int source = disk_pool_open_entry(pool, share->from, share->source);
    int r = lock < 0 ? lock : source < 0 ? source : seal(pool, source);

    if (r == 0 && disk_pool_begin_copy(pool, share->target, NULL) < 0)
        r = -EBUSY;
    if (r < 0)
        return r;
    r = disk_pool_copy_stack(pool, source, share->target);
    CRASH_POINT("launcher.plain_share.made");
    if (r == 0 && disk_pool_place_copy(pool, share->target, share->as, share->replace, NULL) < 0)
        r = -EEXIST;
    if (r < 0)
        disk_pool_drop_copy(pool, share->target);
    CRASH_POINT("launcher.plain_share.placed");
    return r;
}

/* What was replaced is the disk again. Under the lock: whoever collects must see both lists. */
static void take_back(struct disk_pool *pool, const struct disk_pool_share *share)
{
    AUTO(close) int lock = lock_layers(pool, LOCK_MS);

    if (lock >= 0 && disk_pool_place_copy(pool, share->target, share->as, true, NULL) == 0)
        disk_pool_drop_copy(pool, share->target);
}

int disk_pool_share(struct disk_pool *pool, const struct disk_pool_share *asked, struct error *err)
{
    int r;

    if (disk_pool_check_space(pool, err) < 0)
        return -1;
    if (disk_pool_has(pool, asked->as, asked->target) != asked->replace)
        return fail(err, asked->replace ? -ENOENT : -EEXIST, "make", asked->target);
    r = share(pool, asked);
    if (r < 0)
        return fail(err, r, "share layers with", asked->target);
    if (asked->sync && disk_pool_sync(pool, err) < 0) {
        if (asked->replace)
            take_back(pool, asked);
        return -1;
    }
    if (asked->replace)
        disk_pool_drop_copy(pool, asked->target);
    return 0;
}

/* --- what others need ------------------------------------------------------------------------ */

static int read_entry(struct disk_pool *pool, enum disk_pool_set set, const struct id *id,
                      struct disk_stack *ret_stack)
{
    AUTO(close) int folder = -EBADF;

    *ret_stack = (struct disk_stack){.count = 0};
    if (pool->kind != DISK_POOL_PLAIN)
        return 0;
    folder = disk_pool_open_entry(pool, set, id);
    return folder < 0 ? folder : disk_pool_read_stack(folder, ret_stack);
}

size_t disk_pool_height(struct disk_pool *pool, enum disk_pool_set set, const struct id *id)
{
    struct disk_stack stack;

    return read_entry(pool, set, id, &stack) < 0 ? 0 : stack.count;
}

bool disk_pool_is_full(struct disk_pool *pool, enum disk_pool_set set, const struct id *id)
{
    AUTO(close) int folder = -EBADF, upper = -EBADF;

    if (disk_pool_height(pool, set, id) < DISK_LAYERS_MAX)
        return false;
    folder = disk_pool_open_entry(pool, set, id);
    upper = folder < 0 ? folder : sys_file_open(folder, DISK_UPPER, FOLDER_FLAGS, 0);
    return upper >= 0 && is_empty(upper) == 0;
}

int disk_pool_mount_layers(struct disk_pool *pool, enum disk_pool_set set, const struct id *id,
                           int user_namespace, int ret_mounts[static DISK_LAYERS_MAX],
                           size_t *ret_count, struct error *err)
{
    struct disk_stack stack;
    size_t count = 0;
    int r = read_entry(pool, set, id, &stack);

    while (r >= 0 && count < stack.count) {
        char path[UPPER_SIZE];

        (void) snprintf(path, sizeof(path), "%s/" DISK_UPPER, stack.layers[count].text);
        r = ret_mounts[count] = sys_mount_copy(pool->layers, path, false);
        if (r >= 0)
            r = sys_mount_set_id_map(ret_mounts[count++], user_namespace);
    }
    if (r >= 0) {
        *ret_count = count;
        return 0;
    }
    while (count > 0)
        (void) fd_close(ret_mounts[--count]);
    return fail(err, r, "mount the layers of", id);
}

/* --- collecting ------------------------------------------------------------------------------ */

struct names {
    struct id *ids; /* owned */
    size_t count, room;
};

static int add_names(int folder, const char *name, struct names *names)
{
    AUTO(close) int entry = sys_file_open(folder, name, FOLDER_FLAGS, 0);
    struct disk_stack stack;
    int r = entry < 0 ? entry : disk_pool_read_stack(entry, &stack);

    if (r == -ENOENT)
        return 0; /* just gone */
    for (size_t i = 0; r == 0 && i < stack.count; i++) {
        if (names->count == names->room) {
            names->room = names->room ? names->room * 2 : 64;
            names->ids = mem_resize(names->ids, names->room * sizeof(*names->ids));
        }
        names->ids[names->count++] = stack.layers[i];
    }
    return r;
}

/* Of all entries of a folder; of `unfinished`, of those in its folders. */
static int add_all_names(int folder, bool is_deep, struct names *names)
{
    int fd = sys_file_open(folder, ".", FOLDER_FLAGS, 0), r = 0;
    AUTO(closedir) DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!entries) {
        (void) fd_close(fd);
        return fd < 0 ? fd : -errno;
    }
    while (r == 0 && (entry = readdir(entries))) {
        AUTO(close) int inside = -EBADF;

        if (!id_is_valid(entry->d_name))
            continue;
        if (!is_deep) {
            r = add_names(folder, entry->d_name, names);
            continue;
        }
        inside = sys_file_open(folder, entry->d_name, FOLDER_FLAGS, 0);
        r = inside == -ENOENT ? 0 : inside < 0 ? inside : add_all_names(inside, false, names);
    }
    return r;
}

static int compare(const void *one, const void *other)
{
    return memcmp(((const struct id *) one)->text, ((const struct id *) other)->text, ID_LENGTH);
}

static int throw_away_others(struct disk_pool *pool, const struct names *names)
{
    int fd = sys_file_open(pool->layers, ".", FOLDER_FLAGS, 0), r = 0;
    AUTO(closedir) DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!entries) {
        (void) fd_close(fd);
        return fd < 0 ? fd : -errno;
    }
    while (r == 0 && (entry = readdir(entries))) {
        struct id id;

        if (!id_is_valid(entry->d_name))
            continue;
        memcpy(id.text, entry->d_name, ID_SIZE);
        if (!names->count || !bsearch(&id, names->ids, names->count, sizeof(id), compare))
            r = disk_pool_throw_away(pool, pool->layers, id.text);
    }
    return r;
}

/* Copies move from `unfinished` into a set while we read, without the lock, and what a roll back
 * replaced moves the other way: `unfinished` is read on both sides of the sets, so that neither is
 * missed. When one list cannot be read, nobody knows what it names. */
static int find_named(struct disk_pool *pool, struct names *names)
{
    int r = add_all_names(pool->unfinished, true, names);

    if (r == 0)
        r = add_all_names(pool->sets[DISK_POOL_DISKS], false, names);
    if (r == 0)
        r = add_all_names(pool->sets[DISK_POOL_SNAPSHOTS], false, names);
    return r < 0 ? r : add_all_names(pool->unfinished, true, names);
}

void disk_pool_collect(struct disk_pool *pool)
{
    AUTO(close) int lock = pool->kind == DISK_POOL_PLAIN ? lock_layers(pool, 0) : -EBADF;
    struct names names = {.ids = NULL};

    if (lock < 0)
        return; /* another time */
    if (find_named(pool, &names) == 0) {
        if (names.count)
            qsort(names.ids, names.count, sizeof(*names.ids), compare);
        (void) throw_away_others(pool, &names); /* what is left: another time */
    }
    free(names.ids);
}
