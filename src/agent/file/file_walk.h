/* A walk through a folder, one entry at a time, so that it can be done in slices.
 *
 * By descriptor and without following links: nothing outside the folder is ever looked at, whatever
 * others do in it meanwhile. Entries come in the order of the filesystem, a folder before what is
 * in it (if the caller enters it) and once more when it is left. What vanishes during the walk, or
 * may not be looked at, is passed over. One descriptor and about 40 kB for every level that is
 * open. All calls block for one look at the disk at most. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "base/auto.h"

#define FILE_WALK_DEPTH_MAX 256

struct file_walk;

struct file_walk_entry {
    int directory;      /* borrowed: where `name` is */
    const char *name;   /* both borrowed until the next call */
    const char *path;   /* below the folder: "a/b" */
    unsigned int depth; /* 1 for what is in the folder itself */
    bool is_end;        /* a folder that was entered is left: the second time that it comes */
    struct stat status; /* of the entry itself, not of where a link leads */
};

/* Takes `directory`, which is open for reading, also on failure. Returns NULL and -errno. */
struct file_walk *file_walk_new(int directory, int *ret_error);

void file_walk_free(struct file_walk *walk);

AUTO_DEFINE_PTR(file_walk, struct file_walk, file_walk_free);

/* Returns 1 and an entry, 0 at the end, or -errno when a folder cannot be read further. */
int file_walk_next(struct file_walk *walk, struct file_walk_entry *ret_entry);

/* Go into the folder that came last. Returns 0 or -errno, after which the walk goes on behind it;
 * -EXDEV: it is another one by now; -FILE_ERROR_TOO_DEEP. */
int file_walk_enter(struct file_walk *walk);

/* The folder that was entered last. Borrowed. */
int file_walk_directory(const struct file_walk *walk);
