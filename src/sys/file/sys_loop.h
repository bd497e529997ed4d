/* Loop devices: a file as a block device.
 *
 * Devices attached here use direct I/O where the file's filesystem can (the page cache would hold
 * everything twice and double the time of writes) and are cleared by the kernel when the last user
 * (mount or descriptor) is gone, so that a crash leaks none. All functions return -errno on failure
 * and may block. Attaching one file twice destroys what is on it: look with sys_loop_find first,
 * under a lock. */
#pragma once

#include <stdbool.h>

#define SYS_LOOP_PATH_SIZE 32

/* Attach `file` (open for reading and writing) to a free device. Returns a CLOEXEC descriptor of
 * the device, which the caller owns and keeps until something else uses the device, and its path.
 * -ENOENT or -ENXIO: no loop devices here; -EACCES, -EPERM: not ours to use. */
int sys_loop_attach(int file, char ret_path[static SYS_LOOP_PATH_SIZE]);

/* The device that `file` is attached to. Returns as above, -ENOENT when there is none. */
int sys_loop_find(int file, char ret_path[static SYS_LOOP_PATH_SIZE]);

/* Let the device grow to the size its file has now. */
int sys_loop_grow(int device);

/* 1 when the device goes around the page cache, 0 when not. */
int sys_loop_is_direct(int device);
