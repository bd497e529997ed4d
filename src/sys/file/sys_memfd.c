#include "sys/file/sys_memfd.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "sys/file/sys_file.h"
#include "sys/sys_call.h"

/* Both from Linux 6.3. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

/* Nobody else has a new memfd, but the kernel's own work on memory (reclaim, migration, DAMON) may
 * hold a page for a moment, and then it cannot be sealed. Each try waits 150 ms for that. */
#define SEAL_TRIES 20

int sys_memfd_create(const char *name, enum sys_memfd_kind kind)
{
    unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    unsigned int newer = kind == SYS_MEMFD_PROGRAM ? MFD_EXEC : MFD_NOEXEC_SEAL;
    int result = sys_call_fault_or_missing(SYS_FEATURE_MEMFD_NOEXEC);

    if (result == 0)
        result = sys_call_result(memfd_create(name, flags | newer));
    /* Older kernels know neither flag and call them invalid; all their memfds are executable. */
    if (result == -EINVAL || result == -ENOSYS)
        result = sys_call_result(memfd_create(name, flags));
    return result;
}

int sys_memfd_from_bytes(const char *name, enum sys_memfd_kind kind, const void *bytes,
                         size_t length)
{
    AUTO(close) int fd = sys_memfd_create(name, kind);
    int result, tries = 0;

    if (fd < 0)
        return fd;
    result = sys_file_pwrite_full(fd, bytes, length, 0);
    if (result < 0)
        return result;
    do {
        result = sys_memfd_add_seals(fd, SYS_MEMFD_SEALS_ALL);
    } while (result == -EBUSY && ++tries < SEAL_TRIES);
    return result < 0 ? result : TAKE_FD(fd);
}

int sys_memfd_add_seals(int fd, int seals)
{
    int result = sys_call_fault();

    return result ? result : sys_call_result(fcntl(fd, F_ADD_SEALS, seals));
}

int sys_memfd_get_seals(int fd)
{
    int result = sys_call_fault();

    return result ? result : sys_call_result(fcntl(fd, F_GET_SEALS));
}

int sys_memfd_check(int fd, int seals, size_t limit, size_t *ret_size)
{
    struct stat status;
    int present = sys_memfd_get_seals(fd);

    if (present < 0)
        return present;
    if ((present & seals) != seals)
        return -EPERM;
    if (fstat(fd, &status) < 0)
        return -errno;
    if ((size_t) status.st_size > limit)
        return -EFBIG;
    *ret_size = (size_t) status.st_size;
    return 0;
}
