/* A floor of free space: what everybody writes for others stops above it, so that the one writer
 * that must go on, the database, always has room on the same disk.
 *
 * The floor is a number of bytes, and never more than SYS_DISK_ROOM_PART of the disk, so that it
 * suits small ones as well. Room that the system keeps for root counts as taken. */
#pragma once

#include <stdint.h>

#define SYS_DISK_ROOM_PART 20 /* one part in so many */

/* Whether `wanted` bytes more leave the floor of the file system of `fd` free: 0 or -ENOSPC. A floor
 * of 0, and a file system that does not say, are always 0. */
int sys_disk_room_check(int fd, uint64_t floor, uint64_t wanted);
