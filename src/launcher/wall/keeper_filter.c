#include "launcher/wall/keeper_filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/btrfs.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/auto.h"

#define TESTS_MAX 2

/* (lower half of the argument & mask) == value. The kernel takes these arguments as 32 bits, or
 * looks at these bits only. */
struct test {
    uint8_t argument;
    uint32_t mask, value;
};

/* A call is allowed when all tests of one of its rows hold. */
struct row {
    uint32_t number;
    uint8_t test_count;
    struct test tests[TESTS_MAX];
};

#define NEW_NAMESPACES                                                                             \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)

#define ALLOW(call)                                                                                \
    {                                                                                              \
        .number = SYS_##call                                                                       \
    }
#define ALLOW_IF(call, count, ...)                                                                 \
    {                                                                                              \
        .number = SYS_##call, .test_count = (count), .tests = { __VA_ARGS__ }                      \
    }

static const struct row rows[] = {
    /* Reading. */
    ALLOW(read),
    ALLOW(pread64),
    ALLOW(lseek),
    ALLOW(openat),
    ALLOW(openat2),
    ALLOW(close),
    ALLOW(fcntl),
    ALLOW(fstat),
    ALLOW(newfstatat),
    ALLOW(statx),
    ALLOW(getdents64),
    ALLOW(readlinkat),
    ALLOW(fchdir),
    ALLOW(fstatfs),
    ALLOW(llistxattr),
    ALLOW(lgetxattr),
    /* Where content lies, and whether two folders are of one filesystem: sys_extents.h. */
    ALLOW_IF(ioctl, 1, {1, UINT32_MAX, FS_IOC_FIEMAP}),
    ALLOW_IF(ioctl, 1, {1, UINT32_MAX, BTRFS_IOC_FS_INFO}),
    /* Writing. */
    ALLOW(write),
    ALLOW(writev),
    ALLOW(pwrite64),
    ALLOW(ftruncate),
    ALLOW(unlinkat),
    ALLOW(renameat),
    ALLOW(renameat2),
    ALLOW(mkdirat),
    ALLOW(symlinkat),
    ALLOW(linkat),
    ALLOW_IF(mknodat, 1, {2, S_IFMT, S_IFIFO}),
    ALLOW_IF(mknodat, 2, {2, S_IFMT, S_IFCHR}, {3, UINT32_MAX, 0}),
    ALLOW(fchown),
    ALLOW(fchownat),
    ALLOW(fchmod),
    ALLOW(fchmodat),
    ALLOW(lsetxattr),
    ALLOW(lremovexattr),
    ALLOW(utimensat),
    ALLOW(umask),
    ALLOW(geteuid),
    ALLOW(getegid),
    ALLOW(syncfs),
    /* Memory, never executable. */
    ALLOW(brk),
    ALLOW_IF(mmap, 1, {2, PROT_EXEC, 0}),
    ALLOW_IF(mprotect, 1, {2, PROT_EXEC, 0}),
    ALLOW(munmap),
    ALLOW(mremap),
    ALLOW(madvise),
    /* Threads that compress, never processes; clone3, whose flags no filter can see, is left out
     * and libc then takes clone. */
    ALLOW_IF(clone, 1, {0, CLONE_THREAD | NEW_NAMESPACES, CLONE_THREAD}),
    ALLOW(set_robust_list),
    ALLOW(futex),
    /* For the progress of a job, where the kernel does not answer without a call. */
    ALLOW(clock_gettime),
    /* The look whether somebody still reads: output.h. */
    ALLOW(poll),
    ALLOW(setitimer),
    ALLOW(rt_sigaction),
    ALLOW(rt_sigprocmask),
    ALLOW(rt_sigreturn),
    ALLOW(restart_syscall),
    /* The start and end of a program; sysinfo is what libc's qsort asks for the size of memory. */
    ALLOW_IF(execveat, 1, {0, UINT32_MAX, KEEPER_PROGRAM_FD}),
    ALLOW(arch_prctl),
    ALLOW(set_tid_address),
    ALLOW(getrandom),
    ALLOW(sysinfo),
    ALLOW(exit),
    ALLOW(exit_group),
};

static int emit(struct seccomp_filter *filter, struct sock_filter instruction)
{
    if (filter->count == SECCOMP_FILTER_MAX)
        return -E2BIG;
    filter->instructions[filter->count++] = instruction;
    return 0;
}

static int emit_load(struct seccomp_filter *filter, size_t offset)
{
    return emit(filter, (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t) offset));
}

static int emit_return(struct seccomp_filter *filter, uint32_t action)
{
    return emit(filter, (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, action));
}

/* Go on when the accumulator is `value`, else past the next `skip` instructions. */
static int emit_equal(struct seccomp_filter *filter, uint32_t value, unsigned int skip)
{
    return emit(filter,
                (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, (uint8_t) skip));
}

static int emit_row(struct seccomp_filter *filter, const struct row *row)
{
    unsigned int left = 3u * row->test_count + 1; /* instructions behind the number's test */
    int result = emit_load(filter, offsetof(struct seccomp_data, nr));

    if (result == 0)
        result = emit_equal(filter, row->number, left);
    for (size_t i = 0; result == 0 && i < row->test_count; i++) {
        const struct test *test = &row->tests[i];

        left -= 3;
        /* Little endian: the lower half comes first. */
        result = emit_load(filter, offsetof(struct seccomp_data, args) + 8u * test->argument);
        if (result == 0)
            result =
                emit(filter, (struct sock_filter) BPF_STMT(BPF_ALU | BPF_AND | BPF_K, test->mask));
        if (result == 0)
            result = emit_equal(filter, test->value, left);
    }
    return result < 0 ? result : emit_return(filter, SECCOMP_RET_ALLOW);
}

int keeper_filter_init(struct seccomp_filter *filter)
{
    int result;

    filter->count = 0;
    result = emit_load(filter, offsetof(struct seccomp_data, arch));
    if (result == 0)
        result = emit(filter, (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                            AUDIT_ARCH_X86_64, 1, 0));
    if (result == 0)
        result = emit_return(filter, SECCOMP_RET_KILL_PROCESS);
    for (size_t i = 0; result == 0 && i < ARRAY_COUNT(rows); i++)
        result = emit_row(filter, &rows[i]);
    return result < 0 ? result : emit_return(filter, SECCOMP_RET_ERRNO | ENOSYS);
}
