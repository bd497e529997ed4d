#include "sys/mount/sys_mount.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/auto.h"
#include "sys/sys_call.h"

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

int sys_mount_open_filesystem(const char *type)
{
    int result = sys_call_fault_or_missing(SYS_FEATURE_MOUNT_API);

    return result ? result : sys_call_result(syscall(SYS_fsopen, type, FSOPEN_CLOEXEC));
}

static int configure(int filesystem, enum fsconfig_command command, const char *key,
                     const void *value, int auxiliary)
{
    int result = sys_call_fault_or_missing(SYS_FEATURE_MOUNT_API);

    return result
               ? result
               : sys_call_result(syscall(SYS_fsconfig, filesystem, command, key, value, auxiliary));
}

int sys_mount_set_flag(int filesystem, const char *key)
{
    return configure(filesystem, FSCONFIG_SET_FLAG, key, NULL, 0);
}

int sys_mount_set_string(int filesystem, const char *key, const char *value)
{
    return configure(filesystem, FSCONFIG_SET_STRING, key, value, 0);
}

int sys_mount_set_descriptor(int filesystem, const char *key, int fd)
{
    return configure(filesystem, FSCONFIG_SET_FD, key, NULL, fd);
}

int sys_mount_create(int filesystem)
{
    return configure(filesystem, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
}

ssize_t sys_mount_read_message(int filesystem, char *ret_text, size_t size)
{
    ssize_t length;

    if (size == 0)
        return -EINVAL;
    do
        length = sys_call_size(read(filesystem, ret_text, size - 1));
    while (length == -EINTR);
    if (length == -ENODATA)
        length = 0;
    if (length >= 0)
        ret_text[length] = '\0';
    return length;
}

int sys_mount_detached(int filesystem, unsigned int attributes)
{
    int result = sys_call_fault_or_missing(SYS_FEATURE_MOUNT_API);

    return result ? result
                  : sys_call_result(syscall(SYS_fsmount, filesystem, FSMOUNT_CLOEXEC, attributes));
}

int sys_mount_copy_in_group(int directory, const char *path, bool recursive)
{
    unsigned int flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW |
                         (recursive ? AT_RECURSIVE : 0) | (*path ? 0 : AT_EMPTY_PATH);
    int result = sys_call_fault_or_missing(SYS_FEATURE_MOUNT_API);

    return result ? result : sys_call_result(syscall(SYS_open_tree, directory, path, flags));
}

int sys_mount_copy(int directory, const char *path, bool recursive)
{
    struct sys_mount_attributes change = {.propagation = MS_PRIVATE, .recursive = recursive};
    AUTO(close) int copy = sys_mount_copy_in_group(directory, path, recursive);
    int r = copy < 0 ? copy : sys_mount_change(copy, "", &change);

    return r < 0 ? r : TAKE_FD(copy);
}

int sys_mount_attach(int mount, int directory, const char *path)
{
    unsigned int flags = MOVE_MOUNT_F_EMPTY_PATH | (*path ? 0 : MOVE_MOUNT_T_EMPTY_PATH);
    int result = sys_call_fault_or_missing(SYS_FEATURE_MOUNT_API);

    return result ? result
                  : sys_call_result(syscall(SYS_move_mount, mount, "", directory, path, flags));
}

int sys_mount_change(int directory, const char *path, const struct sys_mount_attributes *change)
{
    struct mount_attr attributes = {
        .attr_set = change->set,
        .attr_clr = change->clear,
        .propagation = change->propagation,
        .userns_fd = change->set & MOUNT_ATTR_IDMAP ? (unsigned int) change->user_namespace : 0,
    };
    unsigned int flags =
        AT_SYMLINK_NOFOLLOW | (change->recursive ? AT_RECURSIVE : 0) | (*path ? 0 : AT_EMPTY_PATH);
    int result = sys_call_fault_or_missing(SYS_FEATURE_MOUNT_SETATTR);

    return result ? result
                  : sys_call_result(syscall(SYS_mount_setattr, directory, path, flags, &attributes,
                                            sizeof(attributes)));
}

int sys_mount_set_id_map(int mount, int user_namespace)
{
    struct sys_mount_attributes change = {.set = MOUNT_ATTR_IDMAP,
                                          .user_namespace = user_namespace};

    return sys_mount_change(mount, "", &change);
}

int sys_mount_pivot_root(const char *new_root, const char *old_place)
{
    int result = sys_call_fault();

    return result ? result : sys_call_result(syscall(SYS_pivot_root, new_root, old_place));
}

int sys_mount_unmount(const char *path, int flags)
{
    int result = sys_call_fault();

    return result ? result : sys_call_result(syscall(SYS_umount2, path, flags));
}
