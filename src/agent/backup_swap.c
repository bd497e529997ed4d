#include "agent/backup_swap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/auto.h"
#include "sys/sys_file.h"

/* Entries in one turn: some hundred microseconds. */
#define SLICE      64
#define OLD_MODE   0700
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

static void close_reader(struct backup_swap *swap)
{
    if (swap->reader)
        (void) closedir(swap->reader);
    swap->reader = NULL;
}

static void close_places(struct backup_swap *swap)
{
    close_reader(swap);
    for (size_t i = 0; i < ARRAY_COUNT(swap->places); i++)
        swap->places[i] = fd_close(swap->places[i]);
}

static int open_reader(struct backup_swap *swap)
{
    AUTO(close)
    int fd = sys_file_open(swap->places[steps[swap->step].from], ".", OPEN_FLAGS, 0);

    if (fd < 0)
        return fd;
    swap->reader = fdopendir(fd);
    if (!swap->reader)
        return -errno;
    (void) TAKE_FD(fd); /* the reader's */
    swap->moved = false;
    return 0;
}

/* The next entry, or NULL when a whole pass found none: moving while reading may hide some. */
static const char *next_entry(struct backup_swap *swap)
{
    for (;;) {
        const struct dirent *entry = readdir(swap->reader);

        if (!entry && !swap->moved)
            return NULL;
        if (!entry) {
            rewinddir(swap->reader);
            swap->moved = false;
        } else if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                   (steps[swap->step].from != FOLDER || strcmp(entry->d_name, swap->work) != 0)) {
            return entry->d_name;
        }
    }
}

/* One slice. Returns 1 when there is more, 0 at the end of the step, or -errno. */
static int move_some(struct backup_swap *swap)
{
    int from = swap->places[steps[swap->step].from], to = swap->places[steps[swap->step].to];
    int r = swap->reader ? 0 : open_reader(swap);

    if (r < 0)
        return r;
    for (int i = 0; i < SLICE; i++) {
        const char *name = next_entry(swap);

        if (!name)
            return 0;
        if (renameat(from, name, to, name) == 0)
            swap->moved = true;
        else if (errno != ENOENT) /* somebody else took it away */
            return -errno;
    }
    return 1;
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
    close_reader(swap);
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
    return sys_file_open(swap->places[FOLDER], path, OPEN_FLAGS, 0);
}

static int open_places(struct backup_swap *swap, const char *folder)
{
    char old[PATH_MAX];

    swap->places[FOLDER] = sys_file_open(AT_FDCWD, folder, OPEN_FLAGS & ~O_NOFOLLOW, 0);
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

int backup_swap_start(struct backup_swap *swap, struct loop *loop, const char *folder,
                      const char *work)
{
    int r;

    *swap = (struct backup_swap){.on_end = swap->on_end,
                                 .loop = loop,
                                 .work = work,
                                 .step = PUT_AWAY,
                                 .places = {-EBADF, -EBADF, -EBADF}};
    loop_task_init(&swap->task, run);
    r = open_places(swap, folder);
    if (r < 0)
        close_places(swap);
    else
        loop_defer(loop, &swap->task);
    return r;
}
