/* Opening a path that somebody else named, without ever leaving a directory.
 *
 * Two rules for what an absolute path, an absolute link or a ".." at the top means:
 *
 *                             sys_open_beneath     sys_open_in_root
 *     "/etc/passwd"           -EXDEV               etc/passwd of the root
 *     link to "/etc"          -EXDEV               etc of the root
 *     "..", at the root       -EXDEV               the root, as in a chroot
 *
 * Both refuse magic links (/proc/self/fd/3, /proc/self/exe) with -ELOOP and hold when somebody
 * renames directories or swaps links meanwhile. Mounts beneath the root are entered.
 *
 * With openat2 the kernel does it. The fallback walks one component at a time with O_NOFOLLOW,
 * reads links itself and keeps every directory on the way open, so that ".." means the directory
 * we came from and not where it was moved to. It differs in three points: all links of procfs
 * count as magic, paths deeper than SYS_OPEN_BENEATH_DEPTH_MAX directories are -ENAMETOOLONG, and
 * fs.protected_symlinks and the mount option nosymfollow are not looked at.
 *
 * `root` is an open directory (O_PATH is enough). `flags` and `mode` are as for openat; O_CLOEXEC
 * is added and `mode` is used only where a file is made, before the umask. O_CREAT together with
 * O_DIRECTORY is -EINVAL (kernels disagree on its meaning). Both return a descriptor the caller
 * owns, or -errno; -EAGAIN when the tree changes faster than it can be walked. They may block as
 * open does (FIFOs, network filesystems): add O_NONBLOCK for what a stranger owns. Thread-safe and
 * async-signal-safe. */
#pragma once

#include <sys/types.h>

#define SYS_OPEN_BENEATH_DEPTH_MAX 256

int sys_open_beneath(int root, const char *path, int flags, mode_t mode);
int sys_open_in_root(int root, const char *path, int flags, mode_t mode);

/* openat without a border: only magic links are refused, with -ELOOP. `directory` may be AT_FDCWD.
 * -ENOSYS without openat2: there is no fallback. */
int sys_open_without_magic(int directory, const char *path, int flags, mode_t mode);
