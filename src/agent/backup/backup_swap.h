/* A swap: the entries of one folder take the place of those of another, or none does.
 *
 * Inside `folder` is a work folder with two more, "new" and "old". The entries of `folder` move to
 * "old", those of "new" to `folder`; when one cannot be moved all go back. A folder of the image
 * cannot be renamed as a whole (the kernel's overlay has EXDEV for it): its entries are moved one
 * by one. It is done in slices, so that a folder of any size does not hold up the loop. Only on the
 * loop's thread. */
#pragma once

#include "net/loop.h"

#define BACKUP_SWAP_NEW "new"
#define BACKUP_SWAP_OLD "old"

struct backup_swap_level;

struct backup_swap {
    /* 0, or the -errno that stopped it. `undone`: everything is as it was before. Never called from
     * inside backup_swap_start. */
    void (*on_end)(struct backup_swap *swap, int error, bool undone);

    struct loop *loop; /* from here on: private */
    struct loop_task task;
    int places[3];                   /* owned: the folder, "new" and "old" */
    const char *work;                /* borrowed: the name of the work folder */
    struct backup_swap_level *level; /* owned: the innermost folder; NULL: the step has not begun */
    int step;
    int error;
};

/* Start; "old" is made. `folder` is relative to `at`. Returns 0, or -errno. `work` lives until the
 * end. */
int backup_swap_start(struct backup_swap *swap, struct loop *loop, int at, const char *folder,
                      const char *work);
