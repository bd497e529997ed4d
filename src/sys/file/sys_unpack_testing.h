/* For fuzzers of what unpacks tar archives only: a folder to unpack into, a witness beside it that
 * nothing may touch, and archives whose checksums are right. */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format/tar_header.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_tree.h"

/* What must hold, in any build. */
static inline void must(bool holds)
{
    if (!holds)
        abort();
}

struct unpack_ground {
    char path[64]; /* has "witness", and "in" while something is unpacked there */
    int folder;    /* owned: the same, open; -1 before it is made */
};

static inline void unpack_ground_make(struct unpack_ground *ground)
{
    (void) snprintf(ground->path, sizeof(ground->path), "/tmp/burrow-unpack-fuzz-XXXXXX");
    must(mkdtemp(ground->path) != NULL);
    ground->folder = open(ground->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(ground->folder >= 0);
    must(sys_file_replace(ground->folder, "witness", "unchanged", 9, 0644) == 0);
}

static inline void unpack_ground_remove(const struct unpack_ground *ground)
{
    int parent = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void) sys_tree_delete(parent, strrchr(ground->path, '/') + 1);
    (void) close(parent);
}

/* The empty folder "in", which the caller owns. */
static inline int unpack_ground_begin(const struct unpack_ground *ground)
{
    int in;

    must(mkdirat(ground->folder, "in", 0755) == 0);
    in = openat(ground->folder, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(in >= 0);
    return in;
}

/* Nothing happened outside of "in", which goes. */
static inline void unpack_ground_end(const struct unpack_ground *ground)
{
    char *data = NULL;
    size_t length = 0, count = 0;
    DIR *stream = fdopendir(openat(ground->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

    must(stream && sys_file_read_all(ground->folder, "witness", 64, &data, &length) == 0);
    must(length == 9 && memcmp(data, "unchanged", 9) == 0);
    free(data);
    while (readdir(stream))
        count++;
    (void) closedir(stream);
    must(count == 4); /* ".", "..", "in" and "witness" */
    must(sys_tree_delete(ground->folder, "in") == 0);
}

/* Make the checksums of blocks right that look like headers, so that fuzzing gets behind them. The
 * caller's, like what malloc gives. */
static inline char *unpack_mended(const void *data, size_t size)
{
    char *bytes = malloc(size + 1);

    must(bytes != NULL);
    memcpy(bytes, data, size);
    for (size_t at = 0; at + TAR_BLOCK <= size; at += TAR_BLOCK) {
        unsigned char *block = (unsigned char *) bytes + at;
        unsigned int sum = 8 * ' ';

        if (memcmp(block + 257, "ustar", 5) != 0)
            continue;
        for (size_t i = 0; i < TAR_BLOCK; i++)
            sum += i >= 148 && i < 156 ? 0 : block[i];
        (void) snprintf((char *) block + 148, 8, "%06o", sum & 0777777);
        block[155] = ' ';
    }
    return bytes;
}
