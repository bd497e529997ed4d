#include "sys/file/sys_extents.h"

#include <linux/btrfs.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/auto.h"
#include "sys/sys_call.h"

/* Extents asked for at once. */
#define EXTENTS 32

/* What says nothing about the content: who else has it, and that it is the last. */
#define FLAGS_IGNORED (FIEMAP_EXTENT_SHARED | FIEMAP_EXTENT_LAST | FIEMAP_EXTENT_MERGED)

union map {
    struct fiemap map;
    char bytes[sizeof(struct fiemap) + EXTENTS * sizeof(struct fiemap_extent)];
};

static int sys_extents_ask(int fd, unsigned long request, void *argument)
{
    int result;

    do
        result = sys_call_result(ioctl(fd, request, argument));
    while (result == -EINTR);
    return result;
}

bool sys_extents_comparable(int left, int right)
{
    struct btrfs_ioctl_fs_info_args first = {.flags = 0}, second = {.flags = 0};

    return sys_extents_ask(left, BTRFS_IOC_FS_INFO, &first) == 0 &&
           sys_extents_ask(right, BTRFS_IOC_FS_INFO, &second) == 0 &&
           memcmp(first.fsid, second.fsid, sizeof(first.fsid)) == 0;
}

/* Without the flag the kernel tells the old place of content that was replaced and is not yet
 * written. */
static int read_map(int fd, uint64_t start, union map *map)
{
    memset(map, 0, sizeof(*map));
    map->map.fm_start = start;
    map->map.fm_length = FIEMAP_MAX_OFFSET - start;
    map->map.fm_flags = FIEMAP_FLAG_SYNC;
    map->map.fm_extent_count = EXTENTS;
    return sys_extents_ask(fd, FS_IOC_FIEMAP, map);
}

static bool sys_extents_is_same(const struct fiemap_extent *left, const struct fiemap_extent *right)
{
    return ((left->fe_flags | right->fe_flags) & ~(uint32_t) FLAGS_IGNORED) == 0 &&
           left->fe_logical == right->fe_logical && left->fe_physical == right->fe_physical &&
           left->fe_length == right->fe_length;
}

/* Whether what both maps tell is the same. */
static bool is_same_part(const union map *left, const union map *right)
{
    if (left->map.fm_mapped_extents != right->map.fm_mapped_extents)
        return false;
    for (uint32_t i = 0; i < left->map.fm_mapped_extents; i++)
        if (!sys_extents_is_same(&left->map.fm_extents[i], &right->map.fm_extents[i]))
            return false;
    return true;
}

int sys_extents_same(int left, int right)
{
    union map first, second;
    uint64_t start = 0;

    for (;;) {
        const struct fiemap_extent *last;
        int result = read_map(left, start, &first);

        if (result == 0)
            result = read_map(right, start, &second);
        if (result)
            return result;
        if (!is_same_part(&first, &second))
            return 0;
        if (first.map.fm_mapped_extents < EXTENTS)
            return 1;
        last = &first.map.fm_extents[EXTENTS - 1];
        if (last->fe_flags & FIEMAP_EXTENT_LAST)
            return 1;
        start = last->fe_logical + last->fe_length;
    }
}
