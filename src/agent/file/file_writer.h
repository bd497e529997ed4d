/* Writing a file as a whole: readers see the old content or the new, never a part.
 *
 * The bytes go to a temporary file in the same folder, which takes the place of the old one at the
 * end. Missing folders on the way are made; they and a new file are `owner`'s. A link is followed:
 * the file it leads to is replaced, or made. The mode of an existing file is kept, and its owner
 * where we may; its other hard links keep the old content.
 *
 * Where no file can take the place of another, the bytes are written into what is there: character
 * devices (/dev/null), mount points (/etc/hosts of a container), /proc and /sys, and files that we
 * may change in a folder that we may not. There a failure can leave a part. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "agent/file/file_owner.h"
#include "base/auto.h"
#include "sys/file/sys_file.h"

#define FILE_WRITER_KEEP_MODE (-1)

struct file_writer {
    struct file_owner owner; /* of what is made; set before file_writer_open */
    int parent;              /* owned */
    int fd;                  /* owned */
    char name[NAME_MAX + 1];
    char temporary[SYS_FILE_NAME_SIZE]; /* "": written in place */
    bool replaces;                      /* there was a file */
    uint64_t written;
};

#define FILE_WRITER_INIT                                                                           \
    {                                                                                              \
        .owner = FILE_OWNER_AGENT, .parent = -EBADF, .fd = -EBADF                                  \
    }

/* Begin. `base` and `path` are as for openat. `permissions`: the file's exact mode, or
 * FILE_WRITER_KEEP_MODE for that of the old file, or what the umask leaves of 0666. Returns 0,
 * -errno, or -FILE_ERROR_NOT_REGULAR for pipes, sockets and block devices. */
int file_writer_open(struct file_writer *writer, int base, const char *path, int permissions);

/* All of the bytes. Returns 0 or -errno; then abandon it. */
int file_writer_write(struct file_writer *writer, const void *bytes, size_t length);

/* Put it in place. Returns 0 or -errno; then the old content is still there. */
int file_writer_commit(struct file_writer *writer);

/* Abandon what was not committed. */
void file_writer_done(struct file_writer *writer);

AUTO_DEFINE(file_writer, struct file_writer, file_writer_done);
