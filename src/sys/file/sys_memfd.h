/* Files in memory that can be sealed: what a process sends that the receiver need not trust. */
#pragma once

#include <fcntl.h>
#include <stddef.h>

enum sys_memfd_kind {
    SYS_MEMFD_DATA,    /* never executable, where the kernel can promise that (6.3) */
    SYS_MEMFD_PROGRAM, /* meant for fexecve */
};

/* The content and size can never change again, nor the set of seals. */
#define SYS_MEMFD_SEALS_ALL (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* Present on SYS_MEMFD_DATA where the kernel has it: the execute bits cannot change. Newer than
 * the headers we build with. */
#define SYS_MEMFD_SEAL_EXEC 0x0020

/* An empty, sealable memfd, CLOEXEC, the caller's; or -errno. `name` is for people (/proc) only. */
int sys_memfd_create(const char *name, enum sys_memfd_kind kind);

/* A memfd with these bytes and all seals set, positioned at its start; or -errno. */
int sys_memfd_from_bytes(const char *name, enum sys_memfd_kind kind, const void *bytes,
                         size_t length);

/* Add seals. -EBUSY: F_SEAL_WRITE while a writable mapping exists; -EPERM: sealed against it. */
int sys_memfd_add_seals(int fd, int seals);

/* The set of seals, or -EINVAL when `fd` is no memfd. */
int sys_memfd_get_seals(int fd);

/* Before reading what somebody else sent: is `fd` a memfd with at least these seals and at most
 * `limit` bytes? Returns 0 and the size; -EINVAL when it is something else, -EPERM when a seal is
 * missing, -EFBIG when it is longer. Insist on SYS_MEMFD_SEALS_ALL to rely on the size and on
 * reading the same bytes twice. */
int sys_memfd_check(int fd, int seals, size_t limit, size_t *ret_size);
