/* Opening what a client named.
 *
 * Links are followed as a plain program would, but for the magic ones of procfs: what leads a
 * plain program to its own files leads here to those of PID 1, and anybody inside can plant a link.
 * For the same reason nothing of procfs is written (/proc/self/timerslack_ns makes all timeouts
 * late), and what shows the agent's memory and descriptors, which nobody inside may read, is not
 * read for clients either. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* openat with O_CLOEXEC added. Returns a descriptor the caller owns; -ELOOP at a magic link, -EROFS
 * for writing in procfs, -EACCES for what only the agent may read, or another -errno. Before Linux
 * 5.6 magic links are followed, and the other two hold. */
int file_open(int directory, const char *path, int flags, mode_t mode);

/* 0 when something can be made or changed in the folder `fd`: -EROFS in procfs. */
int file_open_check_folder(int fd);
