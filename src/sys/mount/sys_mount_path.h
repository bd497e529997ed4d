/* Mounting at a path: the simple cases, which also work without the newer mount API.
 *
 * Paths are trusted and links in them may be followed. `attributes` are MOUNT_ATTR_RDONLY, NOSUID,
 * NODEV, NOEXEC, NOATIME, NODIRATIME and NOSYMFOLLOW; others are -EINVAL. With the new API a mount
 * appears with its attributes; in the fallback a bind mount is writable for a moment before it is
 * remounted. When that second step fails the mount is taken away again. Return 0 or -errno. */
#pragma once

#include <stdbool.h>

#include "sys/mount/sys_mount.h"

/* A parameter of a filesystem; no value means a flag. A list ends with a NULL key. */
struct sys_mount_option {
    const char *key;
    const char *value;
};

/* The longest list of options the older call takes, separators included. */
#define SYS_MOUNT_OPTIONS_MAX 4095

/* Mount a new filesystem. `options` may be NULL. In the fallback commas cannot be told from
 * separators: -EINVAL for a value with one. */
int sys_mount_path_new(const char *type, const char *source, const char *target,
                       unsigned int attributes, const struct sys_mount_option *options);

/* Show `source` also at `target`, with the mounts beneath it when `recursive`, as private copies
 * (sys_mount_copy). Attributes of a recursive bind reach all of these mounts; the fallback cannot
 * do that and says -ENOSYS rather than leave writable mounts inside a read-only tree. */
int sys_mount_path_bind(const char *source, const char *target, unsigned int attributes,
                        bool recursive);

/* Add restrictions to the one mount at `target`, keep those it has. */
int sys_mount_path_restrict(const char *target, unsigned int attributes);

/* MS_PRIVATE, MS_SLAVE or MS_SHARED for `target` and the mounts beneath it when `recursive`. */
int sys_mount_path_propagate(const char *target, unsigned long propagation, bool recursive);

/* Give this process a mount namespace of its own: what the host mounts and unmounts later is seen
 * here, as far as the host shares its mounts, and what is mounted here is seen by nobody else. On
 * failure the process is good for nothing but its end. */
int sys_mount_path_separate(void);

/* The older call as it is, MS_... flags and all: one system call where the others take up to eight.
 * For places that count microseconds and need no attribute it does not have. */
int sys_mount_path_plain(const char *source, const char *target, const char *type,
                         unsigned long flags, const char *options);
