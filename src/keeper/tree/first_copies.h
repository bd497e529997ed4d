/* The first copy of each file that has several names, to be found again by a key.
 *
 * They are names in a folder that lies in the top of the target and exists only meanwhile: so
 * memory does not grow with the number of such files. It is made when the first of them is kept. */
#pragma once

#include <errno.h>
#include <stdbool.h>

#include "sys/file/sys_file.h"

struct first_copies {
    int top;    /* borrowed: of the target */
    int folder; /* owned: for linkat(2) and the like, by key; -EBADF: there is none */
    char name[SYS_FILE_NAME_SIZE];
};

#define FIRST_COPIES_INIT(target)                                                                  \
    {                                                                                              \
        .top = (target), .folder = -EBADF                                                          \
    }

/* Make the folder unless there is one. 0 or -errno. */
int first_copies_open(struct first_copies *firsts);

/* Whether `name` in the top is our folder and none of the tree's. */
bool first_copies_is_folder(const struct first_copies *firsts, const char *name);

/* Take the folder away, with all that is in it; the copies have their own names. Nothing when there
 * is none. 0 or -errno. It changes the times of the top. */
int first_copies_close(struct first_copies *firsts);
