#include "sys/file/sys_disk_room.h"

#include <errno.h>
#include <sys/statvfs.h>

int sys_disk_room_check(int fd, uint64_t floor, uint64_t wanted)
{
    struct statvfs disk;
    uint64_t size, room;

    if (floor == 0 || fstatvfs(fd, &disk) < 0)
        return 0;
    size = (uint64_t) disk.f_blocks * disk.f_frsize;
    room = (uint64_t) disk.f_bavail * disk.f_frsize;
    if (floor > size / SYS_DISK_ROOM_PART)
        floor = size / SYS_DISK_ROOM_PART;
    return room >= floor && wanted <= room - floor ? 0 : -ENOSPC;
}
