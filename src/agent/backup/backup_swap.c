#include "agent/backup/backup_swap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/file_open.h"
#include "base/auto.h"
#include "base/memory.h"
#include "sys/file/sys_file.h"

/* Entries in one turn: some hundred microseconds. */
#define SLICE    64
#define OLD_MODE 0700
/* Of folders of the image in each other: each takes two descriptors. */
#define DEPTH_MAX  100
#define OPEN_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK)

enum place { FOLDER, NEW, OLD };

enum step { PUT_AWAY, BRING, TAKE_BACK, PUT_BACK, FINISHED };

static const struct {
    enum place from, to;
    enum step next;
    enum step on_failure;
} steps[] = {
    [PUT_AWAY] = {FOLDER, OLD, BRING, PUT_BACK},
    [BRING] = {NEW, FOLDER, FINISHED, TAKE_BACK},
    [TAKE_BACK] = {FOLDER, NEW, PUT_BACK, FINISHED},
    [PUT_BACK] = {OLD, FOLDER, FINISHED, FINISHED},
};

/* A folder whose entries are moved: that of the step, and those in it that do not move as a whole.
 */
struct backup_swap_level {
    struct backup_swap_level *up; /* NULL: that of the step */
    DIR *reader;                  /* owned: of where they are */
    int to;                       /* owned */
    bool moved;                   /* something, in this pass */
    struct stat status;           /* as it was */
    char name[NAME_MAX + 1];
    unsigned int depth;
};

/* --- levels ---------------------------------------------------------------------------------- */

static void drop_level(struct backup_swap *swap)
{
    struct backup_swap_level *level = swap->level;

    swap->level = level->up;
    if (level->reader)
        (void) closedir(level->reader);
    (void) fd_close(level->to);
    free(level);
}

static int fill_level(struct backup_swap_level *level, int from, int to)
{
    AUTO(close) int fd = file_open(from, level->name, OPEN_FLAGS, 0);

    if (fd < 0)
        return fd;
    if (fstat(fd, &level->status) < 0)
        return -errno;
    level->reader = fdopendir(fd);
    if (!level->reader)
        return -errno;
    (void) TAKE_FD(fd); /* the reader's */
    level->to = file_open(to, level->name, OPEN_FLAGS, 0);
    return level->to < 0 ? level->to : 0;
}

/* `name` is in both. */
static int add_level(struct backup_swap *swap, int from, int to, const char *name)
{
    struct backup_swap_level *level = mem_alloc(sizeof(*level));
    int r;

    level->up = swap->level;
    level->to = -EBADF;
    level->depth = level->up ? level->up->depth + 1 : 0;
    (void) snprintf(level->name, sizeof(level->name), "%s", name);
    swap->level = level;
    r = level->depth > DEPTH_MAX ? -ELOOP : fill_level(level, from, to);
    if (r < 0)
        drop_level(swap);
    return r;
}

/* All of it is moved: the other one takes its place. */
static int end_level(struct backup_swap *swap)
{
    struct backup_swap_level *level = swap->level, *up = level->up;
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, level->status.st_mtim};

    if (fchown(level->to, level->status.st_uid, level->status.st_gid) < 0 ||
        fchmod(level->to, level->status.st_mode & 07777) < 0 || futimens(level->to, times) < 0 ||
        unlinkat(dirfd(up->reader), level->name, AT_REMOVEDIR) < 0)
        return -errno;
    up->moved = true;
    drop_level(swap);
    return 0;
}

static void close_places(struct backup_swap *swap)
{
    while (swap->level)
        drop_level(swap);
    for (size_t i = 0; i < ARRAY_COUNT(swap->places); i++)
        swap->places[i] = fd_close(swap->places[i]);
}

/* --- moving ---------------------------------------------------------------------------------- */

static bool is_work(const struct backup_swap *swap, const char *name)
{
    return !swap->level->up && steps[swap->step].from == FOLDER && strcmp(name, swap->work) == 0;
}

/* The next entry, or NULL when a whole pass found none: moving while reading may hide some. */
static const char *next_entry(struct backup_swap *swap)
{
    struct backup_swap_level *level = swap->level;

    for (;;) {
        const struct dirent *entry = readdir(level->reader);

        if (!entry && !level->moved)
            return NULL;
        if (!entry) {
            rewinddir(level->reader);
            level->moved = false;
        } else if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                   !is_work(swap, entry->d_name)) {
            return entry->d_name;
        }
    }
}

/* One that did not move as a whole, and why. On the way back a part of it may be there still. */
static int enter(struct backup_swap *swap, const char *name, int error)
{
    int from = dirfd(swap->level->reader), to = swap->level->to;
    bool is_back = swap->step == TAKE_BACK || swap->step == PUT_BACK;
    struct stat status;

    if (error != -EXDEV && !(is_back && (error == -ENOTEMPTY || error == -EEXIST)))
        return error;
    if (fstatat(from, name, &status, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(status.st_mode))
        return error;
    if (mkdirat(to, name, OLD_MODE) < 0 && errno != EEXIST)
        return -errno;
    return add_level(swap, from, to, name);
}

static int move(struct backup_swap *swap, const char *name)
{
    struct backup_swap_level *level = swap->level;

    if (renameat(dirfd(level->reader), name, level->to, name) < 0)
        return errno == ENOENT ? 0 : enter(swap, name, -errno); /* or somebody else took it away */
    level->moved = true;
    return 0;
}

/* One slice. Returns 1 when there is more, 0 at the end of the step, or -errno. */
static int move_some(struct backup_swap *swap)
{
    int r = 0;

    if (!swap->level)
        r = add_level(swap, swap->places[steps[swap->step].from],
                      swap->places[steps[swap->step].to], ".");
    for (int i = 0; i < SLICE && r == 0; i++) {
        const char *name = next_entry(swap);

        if (!name && !swap->level->up)
            return 0;
        r = name ? move(swap, name) : end_level(swap);
    }
    return r < 0 ? r : 1;
}

static void run(struct loop_task *task)
{
    struct backup_swap *swap = CONTAINER_OF(task, struct backup_swap, task);
    int r = move_some(swap);
    bool undone;

    if (r > 0) {
        loop_defer(swap->loop, &swap->task);
        return;
    }
    while (swap->level)
        drop_level(swap);
    if (r < 0 && !swap->error)
        swap->error = r;
    undone = swap->error && swap->step == PUT_BACK && r == 0;
    swap->step = r < 0 ? (int) steps[swap->step].on_failure : (int) steps[swap->step].next;
    if (swap->step != FINISHED) {
        loop_defer(swap->loop, &swap->task);
        return;
    }
    close_places(swap);
    swap->on_end(swap, swap->error, undone);
}

static int open_inside(struct backup_swap *swap, const char *name)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/%s", swap->work, name) >= (int) sizeof(path))
        return -ENAMETOOLONG;
    return file_open(swap->places[FOLDER], path, OPEN_FLAGS, 0);
}

static int open_places(struct backup_swap *swap, int at, const char *folder)
{
    char old[PATH_MAX];

    swap->places[FOLDER] = file_open(at, folder, OPEN_FLAGS & ~O_NOFOLLOW, 0);
    if (swap->places[FOLDER] < 0)
        return swap->places[FOLDER];
    if (snprintf(old, sizeof(old), "%s/" BACKUP_SWAP_OLD, swap->work) >= (int) sizeof(old))
        return -ENAMETOOLONG;
    if (mkdirat(swap->places[FOLDER], old, OLD_MODE) < 0)
        return -errno;
    swap->places[NEW] = open_inside(swap, BACKUP_SWAP_NEW);
    swap->places[OLD] = open_inside(swap, BACKUP_SWAP_OLD);
    return swap->places[NEW] < 0   ? swap->places[NEW]
           : swap->places[OLD] < 0 ? swap->places[OLD]
                                   : 0;
}

int backup_swap_start(struct backup_swap *swap, struct loop *loop, int at, const char *folder,
                      const char *work)
{
    int r;

    *swap = (struct backup_swap){.on_end = swap->on_end,
                                 .loop = loop,
                                 .work = work,
                                 .step = PUT_AWAY,
                                 .places = {-EBADF, -EBADF, -EBADF}};
    loop_task_init(&swap->task, run);
    r = open_places(swap, at, folder);
    if (r < 0)
        close_places(swap);
    else
        loop_defer(loop, &swap->task);
    return r;
}
