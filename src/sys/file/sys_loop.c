#include "sys/file/sys_loop.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/auto.h"
#include "base/number.h"
#include "sys/file/sys_file.h"
#include "sys/sys_call.h"

#define CONTROL_PATH  "/dev/loop-control"
#define LOOP_MAJOR    7
#define MISC_MAJOR    10
#define CONTROL_MINOR 237

/* The kernel's own bound on minor numbers. */
#define DEVICE_NUMBER_MAX ((1 << 20) - 1)

/* Direct I/O needs blocks at least as large as those of the disk beneath, and btrfs, the one user,
 * never writes less. */
#define BLOCK_SIZE_BYTES 4096

/* Between "which is free?" and "take it" somebody else may take it. */
#define ATTEMPTS_MAX 64

AUTO_DEFINE_PTR(closedir, DIR, (void) closedir);

static int sys_loop_call(int fd, unsigned long request, void *argument)
{
    int result;

    do {
        result = sys_call_fault();
        if (result == 0)
            result = sys_call_result(ioctl(fd, request, argument));
    } while (result == -EINTR);
    return result;
}

/* The kernel makes the nodes in a devtmpfs; in a static /dev (a chroot, a container) nobody does.
 */
static int open_node(const char *path, mode_t type, dev_t device)
{
    int fd = sys_file_open(AT_FDCWD, path, O_RDWR | O_NOFOLLOW, 0);

    if (fd != -ENOENT)
        return fd;
    if (mknod(path, type | 0600, device) < 0 && errno != EEXIST)
        return -errno;
    return sys_file_open(AT_FDCWD, path, O_RDWR | O_NOFOLLOW, 0);
}

static int open_device(int number, char ret_path[static SYS_LOOP_PATH_SIZE])
{
    (void) snprintf(ret_path, SYS_LOOP_PATH_SIZE, "/dev/loop%d", number);
    return open_node(ret_path, S_IFBLK, makedev(LOOP_MAJOR, (unsigned int) number));
}

int sys_loop_attach(int file, char ret_path[static SYS_LOOP_PATH_SIZE])
{
    struct loop_config config = {
        .fd = (uint32_t) file,
        .block_size = BLOCK_SIZE_BYTES,
        .info = {.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO},
    };
    AUTO(close) int control = open_node(CONTROL_PATH, S_IFCHR, makedev(MISC_MAJOR, CONTROL_MINOR));
    int result = -EBUSY;

    if (file < 0)
        return -EBADF;
    if (control < 0)
        return control;
    for (int i = 0; i < ATTEMPTS_MAX && result == -EBUSY; i++) {
        int number = sys_loop_call(control, LOOP_CTL_GET_FREE, NULL);
        AUTO(close) int device = number < 0 ? number : open_device(number, ret_path);

        if (device < 0)
            return device;
        result = sys_loop_call(device, LOOP_CONFIGURE, &config);
        if (result == 0)
            return TAKE_FD(device);
    }
    return result;
}

/* Number of an entry called "loop7", or negative. */
static int number_of(const char *name)
{
    uint64_t number;

    if (strncmp(name, "loop", 4) != 0 ||
        number_parse_digits(name + 4, strlen(name + 4), DEVICE_NUMBER_MAX, &number) < 0)
        return -1;
    return (int) number;
}

/* Comparing devices and inodes finds the file under any name and in any mount namespace. A device
 * that does not say what it holds may hold the file: only one that is free is passed over. */
static int is_backed_by(int device, const struct stat *file)
{
    struct loop_info64 info = {.lo_flags = 0};
    int result = sys_loop_call(device, LOOP_GET_STATUS64, &info);

    if (result < 0)
        return result == -ENXIO ? 0 : result;
    return info.lo_device == file->st_dev && info.lo_inode == file->st_ino;
}

int sys_loop_find(int file, char ret_path[static SYS_LOOP_PATH_SIZE])
{
    /* /sys knows them all; without it, those that have a node. */
    AUTO(closedir) DIR *devices = opendir("/sys/block");
    struct dirent *entry;
    struct stat status;

    if (fstat(file, &status) < 0)
        return -errno;
    if (!devices)
        devices = opendir("/dev");
    if (!devices)
        return -errno;
    while ((entry = readdir(devices))) {
        int number = number_of(entry->d_name);
        AUTO(close) int device = number < 0 ? -EBADF : open_device(number, ret_path);
        /* Once it is open here, its last user leaving does not clear it any more. */
        int found = device < 0 ? 0 : is_backed_by(device, &status);

        if (found < 0)
            return found;
        if (found)
            return TAKE_FD(device);
    }
    return -ENOENT;
}

int sys_loop_grow(int device)
{
    return sys_loop_call(device, LOOP_SET_CAPACITY, NULL);
}

int sys_loop_is_direct(int device)
{
    struct loop_info64 info = {.lo_flags = 0};
    int result = sys_loop_call(device, LOOP_GET_STATUS64, &info);

    return result < 0 ? result : (info.lo_flags & LO_FLAGS_DIRECT_IO) != 0;
}
