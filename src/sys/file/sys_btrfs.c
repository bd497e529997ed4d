#include "sys/file/sys_btrfs.h"

#include <endian.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <linux/fs.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "sys/sys_call.h"

/* Of Linux 6.7, not in Debian 12's headers. */
#define QUOTA_ENABLE_SIMPLE 4
#define QUOTA_STATUS_SIMPLE (1ULL << 3)

/* Numbers above belong to groups of groups, which we never make. */
#define RECORD_NUMBER_MAX ((1ULL << BTRFS_QGROUP_LEVEL_SHIFT) - 1)

/* Enough for one item of the trees we look into; the largest is a root item of 439 bytes. */
#define ITEM_SIZE_MAX 1024

static int sys_btrfs_call(int fd, unsigned long request, void *argument)
{
    int result;

    do {
        result = sys_call_fault();
        if (result == 0)
            result = sys_call_result(ioctl(fd, request, argument));
    } while (result == -EINTR);
    return result;
}

static int set_name(struct btrfs_ioctl_vol_args_v2 *arguments, const char *name)
{
    size_t length = strlen(name);

    if (length == 0 || length >= sizeof(arguments->name) || strchr(name, '/'))
        return -EINVAL;
    memcpy(arguments->name, name, length + 1);
    return 0;
}

/* The limit travels with the call, so that no moment exists without it. */
static void set_inherited_limit(struct btrfs_ioctl_vol_args_v2 *arguments,
                                struct btrfs_qgroup_inherit *inherit, uint64_t limit)
{
    if (limit == 0)
        return;
    *inherit = (struct btrfs_qgroup_inherit){
        .flags = BTRFS_QGROUP_INHERIT_SET_LIMITS,
        .lim = {.flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = limit},
    };
    arguments->flags |= BTRFS_SUBVOL_QGROUP_INHERIT;
    arguments->size = sizeof(*inherit);
    arguments->qgroup_inherit = inherit;
}

int sys_btrfs_create(int directory, const char *name, uint64_t limit)
{
    struct btrfs_ioctl_vol_args_v2 arguments = {.fd = 0};
    struct btrfs_qgroup_inherit inherit;
    int result = set_name(&arguments, name);

    if (result < 0)
        return result;
    set_inherited_limit(&arguments, &inherit, limit);
    return sys_btrfs_call(directory, BTRFS_IOC_SUBVOL_CREATE_V2, &arguments);
}

int sys_btrfs_snapshot(int subvolume, int directory, const char *name, bool read_only,
                       uint64_t limit)
{
    struct btrfs_ioctl_vol_args_v2 arguments = {.fd = subvolume};
    struct btrfs_qgroup_inherit inherit;
    int result = set_name(&arguments, name);

    if (result < 0)
        return result;
    if (read_only)
        arguments.flags |= BTRFS_SUBVOL_RDONLY;
    set_inherited_limit(&arguments, &inherit, limit);
    return sys_btrfs_call(directory, BTRFS_IOC_SNAP_CREATE_V2, &arguments);
}

int sys_btrfs_flush(int subvolume, int directory, const char *name)
{
    int result = sys_btrfs_snapshot(subvolume, directory, name, true, 0);

    if (result == 0)
        return sys_btrfs_delete(directory, name); /* the name was free: our caller was wrong */
    return result == -EEXIST ? 0 : result;
}

int sys_btrfs_delete(int directory, const char *name)
{
    struct btrfs_ioctl_vol_args_v2 arguments = {.fd = 0};
    int result = set_name(&arguments, name);

    return result < 0 ? result : sys_btrfs_call(directory, BTRFS_IOC_SNAP_DESTROY_V2, &arguments);
}

int sys_btrfs_inspect(int directory, struct sys_btrfs_subvolume *ret_subvolume)
{
    struct btrfs_ioctl_get_subvol_info_args info = {.treeid = 0};
    int result = sys_btrfs_call(directory, BTRFS_IOC_GET_SUBVOL_INFO, &info);

    if (result < 0)
        return result;
    ret_subvolume->number = info.treeid;
    /* The flags of the root item, where bit 0 says read-only; not those of the ioctls. */
    ret_subvolume->read_only = info.flags & BTRFS_ROOT_SUBVOL_RDONLY;
    return 0;
}

/* The first item of a tree with this object and type and an offset from `from` to `to`. Copies its
 * bytes (cut to `size`) and tells the offset. -ENOENT when there is none. */
static int find_item(int fd, uint64_t tree, uint64_t object, uint32_t type, uint64_t from,
                     uint64_t to, void *ret_item, size_t size, uint64_t *ret_offset)
{
    union {
        struct btrfs_ioctl_search_args_v2 arguments;
        char bytes[sizeof(struct btrfs_ioctl_search_args_v2) +
                   sizeof(struct btrfs_ioctl_search_header) + ITEM_SIZE_MAX];
    } search = {.arguments = {.key = {.tree_id = tree,
                                      .min_objectid = object,
                                      .max_objectid = object,
                                      .min_type = type,
                                      .max_type = type,
                                      .min_offset = from,
                                      .max_offset = to,
                                      .max_transid = UINT64_MAX,
                                      .nr_items = 1},
                              .buf_size = sizeof(search) - sizeof(search.arguments)}};
    struct btrfs_ioctl_search_header header;
    int result = sys_btrfs_call(fd, BTRFS_IOC_TREE_SEARCH_V2, &search.arguments);

    if (result < 0)
        return result;
    if (search.arguments.key.nr_items == 0)
        return -ENOENT;
    memcpy(&header, search.arguments.buf, sizeof(header));
    if (header.len < size)
        return -EIO;
    memcpy(ret_item, search.arguments.buf + sizeof(header), size);
    if (ret_offset)
        *ret_offset = header.offset;
    return 0;
}

int sys_btrfs_quota(int filesystem)
{
    struct btrfs_qgroup_status_item status;
    int result = find_item(filesystem, BTRFS_QUOTA_TREE_OBJECTID, 0, BTRFS_QGROUP_STATUS_KEY, 0,
                           UINT64_MAX, &status, sizeof(status), NULL);
    uint64_t flags;

    if (result == -ENOENT)
        return SYS_BTRFS_QUOTA_OFF;
    if (result < 0)
        return result;
    flags = le64toh(status.flags);
    if (flags & QUOTA_STATUS_SIMPLE)
        return SYS_BTRFS_QUOTA_SIMPLE;
    return flags & BTRFS_QGROUP_STATUS_FLAG_ON ? SYS_BTRFS_QUOTA_GROUPS : SYS_BTRFS_QUOTA_OFF;
}

int sys_btrfs_enable_quota(int filesystem, enum sys_btrfs_quota kind)
{
    struct btrfs_ioctl_quota_ctl_args arguments = {.cmd = BTRFS_QUOTA_CTL_ENABLE};
    int result;

    if (kind == SYS_BTRFS_QUOTA_OFF)
        return -EINVAL;
    if (kind == SYS_BTRFS_QUOTA_SIMPLE)
        arguments.cmd = QUOTA_ENABLE_SIMPLE;
    result = sys_btrfs_call(filesystem, BTRFS_IOC_QUOTA_CTL, &arguments);
    if (result == 0 && kind == SYS_BTRFS_QUOTA_GROUPS)
        result = sys_btrfs_call(filesystem, BTRFS_IOC_QUOTA_RESCAN_WAIT, NULL);
    return result;
}

int sys_btrfs_disable_quota(int filesystem)
{
    struct btrfs_ioctl_quota_ctl_args arguments = {.cmd = BTRFS_QUOTA_CTL_DISABLE};

    return sys_btrfs_call(filesystem, BTRFS_IOC_QUOTA_CTL, &arguments);
}

int sys_btrfs_usage(int filesystem, uint64_t number, struct sys_btrfs_usage *ret_usage)
{
    struct btrfs_qgroup_info_item info;
    struct btrfs_qgroup_limit_item limit;
    int result = find_item(filesystem, BTRFS_QUOTA_TREE_OBJECTID, 0, BTRFS_QGROUP_INFO_KEY, number,
                           number, &info, sizeof(info), NULL);

    if (result == 0)
        result = find_item(filesystem, BTRFS_QUOTA_TREE_OBJECTID, 0, BTRFS_QGROUP_LIMIT_KEY, number,
                           number, &limit, sizeof(limit), NULL);
    if (result < 0)
        return result;
    ret_usage->used = le64toh(info.rfer);
    ret_usage->limit =
        le64toh(limit.flags) & BTRFS_QGROUP_LIMIT_MAX_RFER ? le64toh(limit.max_rfer) : 0;
    return 0;
}

int sys_btrfs_set_limit(int filesystem, uint64_t number, uint64_t limit)
{
    /* The flag with the value of all ones means: no limit from now on. */
    struct btrfs_ioctl_qgroup_limit_args arguments = {
        .qgroupid = number,
        .lim = {.flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = limit ? limit : UINT64_MAX},
    };

    return sys_btrfs_call(filesystem, BTRFS_IOC_QGROUP_LIMIT, &arguments);
}

int sys_btrfs_next_record(int filesystem, uint64_t from, uint64_t *ret_number)
{
    struct btrfs_qgroup_info_item info;

    if (from > RECORD_NUMBER_MAX)
        return -ENOENT;
    return find_item(filesystem, BTRFS_QUOTA_TREE_OBJECTID, 0, BTRFS_QGROUP_INFO_KEY, from,
                     RECORD_NUMBER_MAX, &info, sizeof(info), ret_number);
}

int sys_btrfs_drop_record(int filesystem, uint64_t number)
{
    struct btrfs_ioctl_qgroup_create_args arguments = {.create = 0, .qgroupid = number};

    return sys_btrfs_call(filesystem, BTRFS_IOC_QGROUP_CREATE, &arguments);
}

int sys_btrfs_has_subvolume(int filesystem, uint64_t number)
{
    char first;
    int result = find_item(filesystem, BTRFS_ROOT_TREE_OBJECTID, number, BTRFS_ROOT_ITEM_KEY, 0,
                           UINT64_MAX, &first, sizeof(first), NULL);

    if (result == -ENOENT)
        return 0;
    return result < 0 ? result : 1;
}

int sys_btrfs_sync(int filesystem)
{
    return sys_btrfs_call(filesystem, BTRFS_IOC_SYNC, NULL);
}

int sys_btrfs_commit(int filesystem)
{
    uint64_t transaction = 0;
    int result = sys_btrfs_call(filesystem, BTRFS_IOC_START_SYNC, &transaction);

    return result < 0 ? result : sys_btrfs_call(filesystem, BTRFS_IOC_WAIT_SYNC, &transaction);
}

int sys_btrfs_grow(int filesystem)
{
    struct btrfs_ioctl_vol_args arguments = {.name = "max"};

    return sys_btrfs_call(filesystem, BTRFS_IOC_RESIZE, &arguments);
}

int sys_btrfs_disable_copy(int file)
{
    int flags = 0;
    int result = sys_btrfs_call(file, FS_IOC_GETFLAGS, &flags);

    if (result < 0)
        return result;
    flags |= FS_NOCOW_FL;
    return sys_btrfs_call(file, FS_IOC_SETFLAGS, &flags);
}

int sys_btrfs_trim(int filesystem, uint64_t *ret_bytes)
{
    struct fstrim_range range = {.len = UINT64_MAX};
    int result = sys_btrfs_call(filesystem, FITRIM, &range);

    if (result == 0)
        *ret_bytes = range.len;
    return result;
}
