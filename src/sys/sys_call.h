/* Inside sys/ only: the two steps every wrapper shares.
 *
 *     do {
 *         result = sys_call_fault();
 *         if (result == 0)
 *             result = sys_call_result(read(fd, buffer, size));
 *     } while (result == -EINTR);
 *
 * The files of this folder are all called sys_*: the tree's root is on the include path, so a
 * sys/socket.h of ours would be found in place of the system's <sys/socket.h>. */
#pragma once

#include <errno.h>
#include <sys/types.h>

#include "base/fault.h"
#include "sys/sys_feature.h"

/* 0, or the -errno a test wants instead of the next call. */
static inline int sys_call_fault(void)
{
    return fault_errno(FAULT_SYSTEM_CALL);
}

/* The same for a call that may be pretended missing: then -ENOSYS, as an old kernel would say. */
static inline int sys_call_fault_or_missing(enum sys_feature feature)
{
    int fault = sys_call_fault();

    if (fault)
        return fault;
    return sys_feature_missing(feature) ? -ENOSYS : 0;
}

/* What libc returned, as ours: the value, or -errno in place of -1. */
static inline int sys_call_result(long result)
{
    return result < 0 ? -errno : (int) result;
}

static inline ssize_t sys_call_size(ssize_t result)
{
    return result < 0 ? -errno : result;
}
