/* The program is run by a small interpreter here; that the kernel takes it, and that the keeper
 * lives with it, is shown by keeper_job_test. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/btrfs.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "base/auto.h"
#include "launcher/wall/seccomp.h"

#define CLOSED  (SECCOMP_RET_ERRNO | ENOSYS)
#define X32_BIT 0x40000000u

static struct seccomp_filter filter;

static uint32_t run(const struct seccomp_data *data)
{
    uint32_t accumulator = 0;

    for (size_t at = 0; at < filter.count; at++) {
        const struct sock_filter *now = &filter.instructions[at];

        switch (now->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            assert_true(now->k + sizeof(accumulator) <= sizeof(*data));
            memcpy(&accumulator, (const char *) data + now->k, sizeof(accumulator));
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            accumulator &= now->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            at += accumulator == now->k ? now->jt : now->jf;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            at += accumulator >= now->k ? now->jt : now->jf;
            break;
        case BPF_JMP | BPF_JA:
            at += now->k;
            break;
        case BPF_RET | BPF_K:
            return now->k;
        default:
            fail_msg("instruction %d", (int) now->code);
        }
    }
    fail_msg("no return");
    return 0;
}

static uint32_t answer(long number, uint64_t first, uint64_t second, uint64_t third,
                       uint64_t fourth)
{
    struct seccomp_data data = {
        .nr = (int) number, .arch = AUDIT_ARCH_X86_64, .args = {first, second, third, fourth}};

    return run(&data);
}

static void what_a_keeper_never_needs_is_closed(void **state)
{
    static const long closed[] = {
        SYS_socket,
        SYS_socketpair,
        SYS_connect,
        SYS_bind,
        SYS_sendmsg,
        SYS_execve,
        SYS_fork,
        SYS_vfork,
        SYS_clone,
        SYS_clone3,
        SYS_ptrace,
        SYS_kill,
        SYS_tgkill,
        SYS_mount,
        SYS_umount2,
        SYS_move_mount,
        SYS_open_tree,
        SYS_fsopen,
        SYS_pivot_root,
        SYS_chroot,
        SYS_unshare,
        SYS_setns,
        SYS_open_by_handle_at,
        SYS_bpf,
        SYS_keyctl,
        SYS_io_uring_setup,
        SYS_userfaultfd,
        SYS_perf_event_open,
        SYS_ioctl,
        SYS_prctl,
        SYS_memfd_create,
        SYS_setuid,
        SYS_capset,
        SYS_prlimit64,
        SYS_seccomp,
        SYS_open,
        SYS_creat,
        SYS_chmod,
        SYS_chown,
        SYS_mknod,
        SYS_init_module,
        SYS_reboot,
        SYS_pidfd_getfd,
        SYS_process_vm_writev,
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(closed); i++)
        assert_int_equal(answer(closed[i], 0, 0, 0, 0), CLOSED);
}

/* Of all numbers there are, few are open: who adds a row changes this number on purpose. */
static void few_calls_are_open(void **state)
{
    int open = 0;

    (void) state;
    for (long number = 0; number < 2000; number++)
        open += answer(number, KEEPER_PROGRAM_FD, 0, S_IFIFO, 0) == SECCOMP_RET_ALLOW;
    assert_int_equal(open, 60);
}

static void only_places_of_content_can_be_asked_for(void **state)
{
    (void) state;
    assert_int_equal(answer(SYS_ioctl, 3, FS_IOC_FIEMAP, 0, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(answer(SYS_ioctl, 3, BTRFS_IOC_FS_INFO, 0, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(answer(SYS_ioctl, 3, BTRFS_IOC_SUBVOL_CREATE, 0, 0), CLOSED);
    assert_int_equal(answer(SYS_ioctl, 3, FS_IOC_SETFLAGS, 0, 0), CLOSED);
}

static void only_pipes_and_whiteouts_can_be_made(void **state)
{
    (void) state;
    assert_int_equal(answer(SYS_mknodat, 3, 0, S_IFIFO | 0600, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(answer(SYS_mknodat, 3, 0, S_IFCHR, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(answer(SYS_mknodat, 3, 0, S_IFCHR | 0666, 0x103), CLOSED);
    assert_int_equal(answer(SYS_mknodat, 3, 0, S_IFBLK, 0), CLOSED);
    assert_int_equal(answer(SYS_mknodat, 3, 0, S_IFSOCK, 0), CLOSED);
}

static void threads_can_be_made_and_processes_not(void **state)
{
    const uint64_t thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;

    (void) state;
    assert_int_equal(answer(SYS_clone, thread, 0, 0, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(answer(SYS_clone, CLONE_VM | CLONE_VFORK, 0, 0, 0), CLOSED);
    assert_int_equal(answer(SYS_clone, thread | CLONE_NEWUSER, 0, 0, 0), CLOSED);
    assert_int_equal(answer(SYS_clone, thread | CLONE_NEWNS, 0, 0, 0), CLOSED);
}

static void memory_cannot_become_code(void **state)
{
    (void) state;
    assert_int_equal(answer(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(answer(SYS_mmap, 0, 4096, PROT_READ | PROT_EXEC, 0), CLOSED);
    assert_int_equal(answer(SYS_mprotect, 0, 4096, PROT_READ, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(answer(SYS_mprotect, 0, 4096, PROT_EXEC, 0), CLOSED);
    assert_int_equal(answer(SYS_execveat, KEEPER_PROGRAM_FD, 0, 0, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(answer(SYS_execveat, KEEPER_PROGRAM_FD + 1, 0, 0, 0), CLOSED);
}

static void other_machine_interfaces_are_closed(void **state)
{
    struct seccomp_data data = {.nr = SYS_read, .arch = AUDIT_ARCH_I386};

    (void) state;
    assert_int_equal(run(&data), SECCOMP_RET_KILL_PROCESS);
    assert_int_equal(answer(X32_BIT | SYS_read, 0, 0, 0, 0), CLOSED);
}

static int compile(void **state)
{
    (void) state;
    return seccomp_filter_init_keeper(&filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_keeper_never_needs_is_closed),
        cmocka_unit_test(few_calls_are_open),
        cmocka_unit_test(only_places_of_content_can_be_asked_for),
        cmocka_unit_test(only_pipes_and_whiteouts_can_be_made),
        cmocka_unit_test(threads_can_be_made_and_processes_not),
        cmocka_unit_test(memory_cannot_become_code),
        cmocka_unit_test(other_machine_interfaces_are_closed),
    };

    return cmocka_run_group_tests_name("seccomp_keeper", tests, compile, NULL);
}
