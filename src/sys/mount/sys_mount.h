/* The mount API by descriptor (Linux 5.2 and later): a filesystem is configured, becomes a mount
 * that is attached nowhere, gets its attributes, and only then appears at a place.
 *
 *     AUTO(close) int fs = sys_mount_open_filesystem("tmpfs");
 *     sys_mount_set_string(fs, "size", "1M");
 *     sys_mount_create(fs);
 *     AUTO(close) int mount = sys_mount_detached(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
 *     sys_mount_attach(mount, root, "tmp");
 *
 * Everything returns -errno on failure, -ENOSYS where the kernel (or a seccomp filter) lacks the
 * call: sys_mount_path.h has the simple cases with a fallback. Descriptors are CLOEXEC and the
 * caller's. Do not include <sys/mount.h> beside this: it and <linux/mount.h> define the same
 * things differently in glibc 2.36. Thread-safe and async-signal-safe; mounting may block. */
#pragma once

#include <linux/mount.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A configuration context for a new filesystem of this type. */
int sys_mount_open_filesystem(const char *type);

/* Its parameters: "source", "lowerdir+", "size", ... */
int sys_mount_set_flag(int filesystem, const char *key);
int sys_mount_set_string(int filesystem, const char *key, const char *value);
int sys_mount_set_descriptor(int filesystem, const char *key, int fd);

/* Make the filesystem. */
int sys_mount_create(int filesystem);

/* Why the last step failed, in the kernel's words ("overlay: no changes allowed in remount"), as
 * far as the filesystem gives reasons. Returns the length, 0 when there is nothing (more) to say;
 * always terminated. */
ssize_t sys_mount_read_message(int filesystem, char *ret_text, size_t size);

/* A mount of it, attached nowhere. `attributes` are MOUNT_ATTR_... */
int sys_mount_detached(int filesystem, unsigned int attributes);

/* A detached copy of the mount at `path` (relative to `directory`; "" means `directory` itself,
 * which may be a detached mount), with the mounts beneath it when `recursive`. A link at the end
 * is not followed.
 *
 * The copy is private. The kernel leaves it in the peer group of its original, and on every host
 * with systemd that is a group of the host's own mounts: whatever is mounted beneath such a copy,
 * in whichever namespace, is then mounted on the host as well. */
int sys_mount_copy(int directory, const char *path, bool recursive);

/* The copy as the kernel makes it, in the peer group of its original. For tests of what that lets
 * happen, and for nothing else (tools/check-layers). */
int sys_mount_copy_in_group(int directory, const char *path, bool recursive);

/* Put a detached mount at `path` beneath `directory`. Links on the way are followed, one at the
 * end is not: open the place with sys_open_beneath and pass "" when a stranger named it. */
int sys_mount_attach(int mount, int directory, const char *path);

struct sys_mount_attributes {
    unsigned int set;          /* MOUNT_ATTR_... to add */
    unsigned int clear;        /* ... to take away */
    unsigned long propagation; /* 0 (leave), MS_PRIVATE, MS_SLAVE, MS_SHARED */
    int user_namespace;        /* with MOUNT_ATTR_IDMAP in `set`: whose id map */
    bool recursive;            /* all mounts beneath too, or none when one cannot be changed */
};

/* Change a mount, the one at `path` or `directory` itself for "". */
int sys_mount_change(int directory, const char *path, const struct sys_mount_attributes *change);

/* The usual change of a detached mount: ids shown as in that user namespace. -EINVAL when the
 * filesystem cannot do that or the mount was attached before; -EPERM when it is idmapped. */
int sys_mount_set_id_map(int mount, int user_namespace);

/* Make `new_root` the root and put the old one at `old_place` ("." and "." stack the old root on
 * the new: unmount "." afterwards with MNT_DETACH). */
int sys_mount_pivot_root(const char *new_root, const char *old_place);

/* MNT_FORCE, MNT_DETACH, MNT_EXPIRE and UMOUNT_NOFOLLOW live in <sys/mount.h>, so: */
#define SYS_UNMOUNT_FORCE    1
#define SYS_UNMOUNT_DETACH   2
#define SYS_UNMOUNT_NOFOLLOW 8

/* -EBUSY while in use, unless detached: then it goes when the last user does. */
int sys_mount_unmount(const char *path, int flags);
