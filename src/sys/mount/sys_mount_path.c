#include "sys/mount/sys_mount_path.h"

#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/text.h"
#include "sys/process/sys_namespace.h"
#include "sys/sys_call.h"

#ifndef ST_NOSYMFOLLOW
#define ST_NOSYMFOLLOW 8192
#endif

/* The same restriction as the three interfaces spell it. */
static const struct {
    unsigned int attribute; /* mount_setattr, fsmount */
    unsigned long mount;    /* mount */
    unsigned long statvfs;  /* statvfs */
} restrictions[] = {
    {MOUNT_ATTR_RDONLY, MS_RDONLY, ST_RDONLY},
    {MOUNT_ATTR_NOSUID, MS_NOSUID, ST_NOSUID},
    {MOUNT_ATTR_NODEV, MS_NODEV, ST_NODEV},
    {MOUNT_ATTR_NOEXEC, MS_NOEXEC, ST_NOEXEC},
    {MOUNT_ATTR_NOATIME, MS_NOATIME, ST_NOATIME},
    {MOUNT_ATTR_NODIRATIME, MS_NODIRATIME, ST_NODIRATIME},
    {MOUNT_ATTR_NOSYMFOLLOW, MS_NOSYMFOLLOW, ST_NOSYMFOLLOW},
};

static int to_mount_flags(unsigned int attributes, unsigned long *ret_flags)
{
    unsigned long flags = 0;

    for (size_t i = 0; i < ARRAY_COUNT(restrictions); i++) {
        if (attributes & restrictions[i].attribute)
            flags |= restrictions[i].mount;
        attributes &= ~restrictions[i].attribute;
    }
    if (attributes)
        return -EINVAL;
    *ret_flags = flags;
    return 0;
}

static int mount_old(const char *source, const char *target, const char *type, unsigned long flags,
                     const char *options)
{
    int result = sys_call_fault();

    return result ? result
                  : sys_call_result(syscall(SYS_mount, source, target, type, flags, options));
}

static int set_options(int filesystem, const struct sys_mount_option *options)
{
    for (; options && options->key; options++) {
        int result = options->value ? sys_mount_set_string(filesystem, options->key, options->value)
                                    : sys_mount_set_flag(filesystem, options->key);

        if (result < 0)
            return result;
    }
    return 0;
}

static int new_by_descriptor(const char *type, const char *source, const char *target,
                             unsigned int attributes, const struct sys_mount_option *options)
{
    AUTO(close) int filesystem = sys_mount_open_filesystem(type);
    AUTO(close) int mount = -EBADF;
    int result = filesystem;

    if (result >= 0)
        result = sys_mount_set_string(filesystem, "source", source);
    if (result >= 0)
        result = set_options(filesystem, options);
    if (result >= 0)
        result = sys_mount_create(filesystem);
    if (result >= 0)
        result = mount = sys_mount_detached(filesystem, attributes);
    if (result >= 0)
        result = sys_mount_attach(mount, AT_FDCWD, target);
    return result;
}

static int join_options(const struct sys_mount_option *options, struct text *ret_joined)
{
    for (; options && options->key; options++) {
        if (strchr(options->key, ',') || (options->value && strchr(options->value, ',')))
            return -EINVAL;
        if (ret_joined->length)
            text_append_char(ret_joined, ',');
        text_append(ret_joined, options->key);
        if (options->value) {
            text_append_char(ret_joined, '=');
            text_append(ret_joined, options->value);
        }
    }
    return ret_joined->overflowed ? -EINVAL : 0;
}

int sys_mount_path_new(const char *type, const char *source, const char *target,
                       unsigned int attributes, const struct sys_mount_option *options)
{
    AUTO(text) struct text joined = TEXT_INIT(SYS_MOUNT_OPTIONS_MAX);
    unsigned long flags;
    int result = to_mount_flags(attributes, &flags);

    if (result < 0)
        return result;
    result = new_by_descriptor(type, source, target, attributes, options);
    if (result != -ENOSYS)
        return result;
    result = join_options(options, &joined);
    return result < 0 ? result : mount_old(source, target, type, flags, text_string(&joined));
}

/* A remount names all flags anew: those left out would be cleared, or refused with EPERM where a
 * user namespace locks them. */
static int current_flags(const char *target, unsigned long *ret_flags)
{
    struct statvfs status;
    unsigned long flags = 0;

    if (statvfs(target, &status) < 0)
        return -errno;
    for (size_t i = 0; i < ARRAY_COUNT(restrictions); i++) {
        if (status.f_flag & restrictions[i].statvfs)
            flags |= restrictions[i].mount;
    }
    if (status.f_flag & ST_RELATIME)
        flags |= MS_RELATIME;
    *ret_flags = flags;
    return 0;
}

static int restrict_old(const char *target, unsigned long flags)
{
    unsigned long current = 0;
    int result = current_flags(target, &current);

    if (result < 0)
        return result;
    if (flags & MS_NOATIME)
        current &= ~(unsigned long) MS_RELATIME;
    return mount_old(NULL, target, NULL, MS_REMOUNT | MS_BIND | current | flags, NULL);
}

static int bind_old(const char *source, const char *target, unsigned long flags, bool recursive)
{
    int result;

    if (recursive && flags)
        return -ENOSYS;
    result = mount_old(source, target, NULL, MS_BIND | (recursive ? MS_REC : 0), NULL);
    if (result < 0)
        return result;
    result = mount_old(NULL, target, NULL, MS_PRIVATE | (recursive ? MS_REC : 0), NULL);
    if (result == 0 && flags)
        result = restrict_old(target, flags);
    /* Better nothing than one that is writable or in the host's group. */
    if (result < 0)
        (void) sys_mount_unmount(target, SYS_UNMOUNT_DETACH);
    return result;
}

/* Attributes replace the access-time mode as a whole, so asking for one clears the others. */
static struct sys_mount_attributes addition(unsigned int attributes, bool recursive)
{
    return (struct sys_mount_attributes){
        .set = attributes,
        .clear = attributes & MOUNT_ATTR_NOATIME ? MOUNT_ATTR__ATIME : 0,
        .recursive = recursive,
    };
}

static int bind_by_descriptor(const char *source, const char *target, unsigned int attributes,
                              bool recursive)
{
    struct sys_mount_attributes change = addition(attributes, recursive);
    AUTO(close) int mount = sys_mount_copy(AT_FDCWD, source, recursive);
    int result = mount;

    if (result >= 0 && attributes)
        result = sys_mount_change(mount, "", &change);
    if (result >= 0)
        result = sys_mount_attach(mount, AT_FDCWD, target);
    return result;
}

int sys_mount_path_bind(const char *source, const char *target, unsigned int attributes,
                        bool recursive)
{
    unsigned long flags;
    int result = to_mount_flags(attributes, &flags);

    if (result < 0)
        return result;
    result = bind_by_descriptor(source, target, attributes, recursive);
    return result == -ENOSYS ? bind_old(source, target, flags, recursive) : result;
}

int sys_mount_path_restrict(const char *target, unsigned int attributes)
{
    struct sys_mount_attributes change = addition(attributes, false);
    unsigned long flags;
    int result = to_mount_flags(attributes, &flags);

    if (result < 0)
        return result;
    result = sys_mount_change(AT_FDCWD, target, &change);
    return result == -ENOSYS ? restrict_old(target, flags) : result;
}

int sys_mount_path_propagate(const char *target, unsigned long propagation, bool recursive)
{
    struct sys_mount_attributes change = {.propagation = propagation, .recursive = recursive};
    int result = sys_mount_change(AT_FDCWD, target, &change);

    if (result == -ENOSYS)
        result = mount_old(NULL, target, NULL, propagation | (recursive ? MS_REC : 0), NULL);
    return result;
}

int sys_mount_path_separate(void)
{
    int result = sys_namespace_unshare(CLONE_NEWNS);

    /* Slave: a disk that the host unmounts is not kept busy by our copy of its mount. */
    return result < 0 ? result : sys_mount_path_propagate("/", MS_SLAVE, true);
}

int sys_mount_path_plain(const char *source, const char *target, const char *type,
                         unsigned long flags, const char *options)
{
    return mount_old(source, target, type, flags, options);
}
