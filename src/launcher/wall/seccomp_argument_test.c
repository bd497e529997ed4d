/* The conditions on arguments, one by one and asked of the kernel: closed with the wall, open
 * without it, and its neighbours open in both cases. */
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "launcher/wall/seccomp_test_kit.h"

/* A pointer, and the same bits an int argument loses: a filter that compares 64 bits is passed by
 * setting one of them. */
#define POINTER 0x7f0000000000u
#define HIGH    0x100000000u

struct closed_call {
    enum seccomp_wall wall;
    long answer;
    uint64_t number;
    uint64_t arguments[6];
};

static const struct closed_call closed_calls[] = {
    {SECCOMP_WALL_NAMESPACES, -EPERM, SYS_clone, {CLONE_NEWUSER | SIGCHLD}},
    {SECCOMP_WALL_NAMESPACES, -EPERM, SYS_clone, {CLONE_NEWNS | SIGCHLD}},
    {SECCOMP_WALL_NAMESPACES, -EPERM, SYS_clone, {CLONE_NEWPID | SIGCHLD}},
    {SECCOMP_WALL_NAMESPACES, -EPERM, SYS_clone, {CLONE_NEWNET | SIGCHLD}},
    {SECCOMP_WALL_NAMESPACES, -EPERM, SYS_clone, {CLONE_NEWIPC | SIGCHLD}},
    {SECCOMP_WALL_NAMESPACES, -EPERM, SYS_clone, {CLONE_NEWUTS | SIGCHLD}},
    {SECCOMP_WALL_NAMESPACES, -EPERM, SYS_clone, {CLONE_NEWCGROUP | SIGCHLD}},
    {SECCOMP_WALL_NAMESPACES, -EPERM, SYS_clone, {HIGH | CLONE_NEWUSER | CLONE_VM | SIGCHLD}},
    {SECCOMP_WALL_NAMESPACES, -EPERM, SYS_unshare, {CLONE_NEWUSER}},
    {SECCOMP_WALL_NAMESPACES, -EPERM, SYS_unshare, {CLONE_NEWNS | CLONE_FS}},
    {SECCOMP_WALL_NAMESPACES, -EPERM, SYS_unshare, {CLONE_NEWTIME}},
    {SECCOMP_WALL_NAMESPACES, -EPERM, SYS_unshare, {HIGH | CLONE_NEWNET}},
    {SECCOMP_WALL_INIT, -EPERM, SYS_prlimit64, {1, RLIMIT_NOFILE, POINTER, 0}},
    {SECCOMP_WALL_INIT, -EPERM, SYS_prlimit64, {HIGH | 1, RLIMIT_CPU, POINTER, 0}},
    {SECCOMP_WALL_INIT, -EPERM, SYS_prlimit64, {17, RLIMIT_CPU, POINTER, POINTER}},
    {SECCOMP_WALL_INIT, -EPERM, SYS_prlimit64, {1, RLIMIT_CPU, 0x700000000000, 0}},
    {SECCOMP_WALL_INIT, -EPERM, SYS_prlimit64, {1, RLIMIT_CPU, 0x1000, 0}},
    {SECCOMP_WALL_INIT, -EPERM, SYS_setpriority, {PRIO_PROCESS, 1, 19}},
    {SECCOMP_WALL_INIT, -EPERM, SYS_setpriority, {PRIO_PROCESS, HIGH | 1, 19}},
    {SECCOMP_WALL_INIT, -EPERM, SYS_setpriority, {PRIO_PGRP, 1, 19}},
    {SECCOMP_WALL_INIT, -EPERM, SYS_setpriority, {PRIO_USER, 0, 19}},
    {SECCOMP_WALL_INIT, -EPERM, SYS_setpriority, {HIGH | PRIO_USER, 1000, 19}},
    {SECCOMP_WALL_INIT, -EPERM, SYS_ioprio_set, {1, 1, 0}},
    {SECCOMP_WALL_INIT, -EPERM, SYS_ioprio_set, {2, 1, 0}},
    {SECCOMP_WALL_INIT, -EPERM, SYS_ioprio_set, {3, 0, 0}},
    {SECCOMP_WALL_INIT, -EPERM, SYS_sched_setscheduler, {1}},
    {SECCOMP_WALL_INIT, -EPERM, SYS_sched_setscheduler, {HIGH | 1}},
    {SECCOMP_WALL_INIT, -EPERM, SYS_sched_setparam, {1}},
    {SECCOMP_WALL_INIT, -EPERM, SYS_sched_setattr, {1}},
    {SECCOMP_WALL_INIT, -EPERM, SYS_sched_setaffinity, {1}},
    {SECCOMP_WALL_INIT, -EPERM, SYS_migrate_pages, {1}},
    {SECCOMP_WALL_INIT, -EPERM, SYS_move_pages, {1}},
    {SECCOMP_WALL_INIT, -EPERM, SYS_prctl, {62 /* PR_SCHED_CORE */}},
    {SECCOMP_WALL_CORE, 0, SYS_setrlimit, {RLIMIT_CORE, POINTER}},
    {SECCOMP_WALL_CORE, 0, SYS_setrlimit, {HIGH | RLIMIT_CORE, POINTER}},
    {SECCOMP_WALL_CORE, 0, SYS_prlimit64, {0, RLIMIT_CORE, POINTER, 0}},
    {SECCOMP_WALL_CORE, -EPERM, SYS_prlimit64, {0, RLIMIT_CORE, POINTER, POINTER}},
    {SECCOMP_WALL_CORE, -EPERM, SYS_prlimit64, {0, RLIMIT_CORE, POINTER, 0x1000}},
    {SECCOMP_WALL_SOCKETS, -EAFNOSUPPORT, SYS_socket, {AF_ALG, SOCK_SEQPACKET, 0}},
    {SECCOMP_WALL_SOCKETS, -EAFNOSUPPORT, SYS_socket, {AF_VSOCK, SOCK_STREAM, 0}},
    {SECCOMP_WALL_SOCKETS, -EAFNOSUPPORT, SYS_socket, {AF_PACKET, SOCK_RAW, 0}},
    {SECCOMP_WALL_SOCKETS, -EAFNOSUPPORT, SYS_socket, {HIGH | AF_PACKET, SOCK_DGRAM, 0}},
    {SECCOMP_WALL_SOCKETS, -EAFNOSUPPORT, SYS_socket, {AF_TIPC, SOCK_STREAM, 0}},
    {SECCOMP_WALL_SOCKETS, -EAFNOSUPPORT, SYS_socket, {AF_KEY, SOCK_RAW, 2}},
    {SECCOMP_WALL_SOCKETS, -EAFNOSUPPORT, SYS_socket, {AF_BLUETOOTH, SOCK_RAW, 1}},
    {SECCOMP_WALL_SOCKETS, -EAFNOSUPPORT, SYS_socket, {AF_XDP, SOCK_RAW, 0}},
    {SECCOMP_WALL_SOCKETS, -EPROTONOSUPPORT, SYS_socket, {AF_INET, SOCK_STREAM, IPPROTO_SCTP}},
    {SECCOMP_WALL_SOCKETS, -EPROTONOSUPPORT, SYS_socket, {AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE}},
    {SECCOMP_WALL_SOCKETS, -EPROTONOSUPPORT, SYS_socket, {AF_INET6, SOCK_STREAM, 262}},
    {SECCOMP_WALL_SOCKETS, -EPROTONOSUPPORT, SYS_socket, {AF_INET, SOCK_SEQPACKET, 0}},
    {SECCOMP_WALL_SOCKETS, -EPROTONOSUPPORT, SYS_socket, {AF_INET6, HIGH | SOCK_SEQPACKET, 0}},
    {SECCOMP_WALL_SOCKETS, -EPROTONOSUPPORT, SYS_socket, {AF_INET, SOCK_DCCP, 0}},
    {SECCOMP_WALL_SOCKETS, -EAFNOSUPPORT, SYS_socketpair, {AF_TIPC, SOCK_STREAM, 0}},
    {SECCOMP_WALL_SOCKETS, -EPERM, SYS_setsockopt, {3, IPPROTO_TCP, 31 /* TCP_ULP */}},
    {SECCOMP_WALL_NETLINK, -EPROTONOSUPPORT, SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER}},
    {SECCOMP_WALL_NETLINK, -EPROTONOSUPPORT, SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_AUDIT}},
    {SECCOMP_WALL_NETLINK, -EPROTONOSUPPORT, SYS_socket, {AF_NETLINK, SOCK_DGRAM, NETLINK_XFRM}},
    {SECCOMP_WALL_NETLINK, -EPROTONOSUPPORT, SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_GENERIC}},
    {SECCOMP_WALL_RAW_SOCKETS, -EPERM, SYS_socket, {AF_INET, SOCK_RAW | SOCK_CLOEXEC, 1}},
    {SECCOMP_WALL_RAW_SOCKETS, -EPERM, SYS_socket, {AF_INET, HIGH | SOCK_RAW, IPPROTO_TCP}},
    {SECCOMP_WALL_RAW_SOCKETS, -EPERM, SYS_socket, {AF_INET6, SOCK_RAW, IPPROTO_ICMPV6}},
    {SECCOMP_WALL_RAW_SOCKETS, -EPERM, SYS_socket, {AF_INET, SOCK_PACKET, 0}},
    {SECCOMP_WALL_NETFILTER, -EPERM, SYS_setsockopt, {3, IPPROTO_IP, 64}},
    {SECCOMP_WALL_NETFILTER, -EPERM, SYS_getsockopt, {3, HIGH | IPPROTO_IP, 67}},
    {SECCOMP_WALL_NETFILTER, -EPERM, SYS_setsockopt, {3, IPPROTO_IP, 96}},
    {SECCOMP_WALL_NETFILTER, -EPERM, SYS_setsockopt, {3, IPPROTO_IP, 128}},
    {SECCOMP_WALL_NETFILTER, -EPERM, SYS_setsockopt, {3, IPPROTO_IPV6, 64}},
    {SECCOMP_WALL_NETFILTER, -EPERM, SYS_getsockopt, {3, IPPROTO_IPV6, 65}},
    {SECCOMP_WALL_TERMINAL, -EPERM, SYS_ioctl, {0, TIOCSTI, POINTER}},
    {SECCOMP_WALL_TERMINAL, -EPERM, SYS_ioctl, {0, HIGH | TIOCSTI, POINTER}},
    {SECCOMP_WALL_TERMINAL, -EPERM, SYS_ioctl, {0, TIOCLINUX, POINTER}},
    {SECCOMP_WALL_TERMINAL, -EPERM, SYS_ioctl, {0, TIOCCONS, 0}},
    {SECCOMP_WALL_TERMINAL, -EPERM, SYS_ioctl, {0, TIOCSETD, POINTER}},
    {SECCOMP_WALL_DISK, -ENOTTY, SYS_ioctl, {3, 0x5000940e /* SUBVOL_CREATE */, POINTER}},
    {SECCOMP_WALL_DISK, -ENOTTY, SYS_ioctl, {3, HIGH | 0xc0109428 /* QUOTA_CTL */, POINTER}},
    {SECCOMP_WALL_DEVICES, -EPERM, SYS_mknod, {POINTER, S_IFCHR | 0600, 0x103}},
    {SECCOMP_WALL_DEVICES, -EPERM, SYS_mknod, {POINTER, 0x10000 | S_IFBLK | 0600, 0x103}},
    {SECCOMP_WALL_DEVICES, -EPERM, SYS_mknodat, {3, POINTER, S_IFBLK | 0600, 0x103}},
    {SECCOMP_WALL_DEVICES, -EPERM, SYS_mknodat, {3, POINTER, HIGH | S_IFCHR, 0x103}},
    {SECCOMP_WALL_PERSONALITY, -EPERM, SYS_personality, {READ_IMPLIES_EXEC}},
    {SECCOMP_WALL_PERSONALITY, -EPERM, SYS_personality, {MMAP_PAGE_ZERO | ADDR_NO_RANDOMIZE}},
    {SECCOMP_WALL_PERSONALITY, -EPERM, SYS_personality, {0xfffffffe}},
    {SECCOMP_WALL_MEMORY, -EINVAL, SYS_madvise, {POINTER, 4096, MADV_MERGEABLE}},
    {SECCOMP_WALL_MEMORY, -EINVAL, SYS_process_madvise, {3, POINTER, 1, MADV_MERGEABLE}},
    {SECCOMP_WALL_MEMORY, -EINVAL, SYS_prctl, {67 /* PR_SET_MEMORY_MERGE */, 1}},
    {SECCOMP_WALL_MEMORY, -EINVAL, SYS_prctl, {HIGH | 67, 1}},
    {SECCOMP_WALL_PAGE_CACHE, -ENOSYS, SYS_mincore, {POINTER, 4096, POINTER}},
    {SECCOMP_WALL_PAGE_CACHE, -EOPNOTSUPP, SYS_preadv2, {3, POINTER, 1, 0, 0, RWF_NOWAIT}},
    {SECCOMP_WALL_PAGE_CACHE, -EOPNOTSUPP, SYS_preadv2, {3, POINTER, 1, 0, 0, 0x48}},
    {SECCOMP_WALL_LISTENER,
     -EPERM,
     SYS_seccomp,
     {SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, POINTER}},
    {SECCOMP_WALL_LISTENER,
     -EPERM,
     SYS_seccomp,
     {HIGH | SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER | 1, POINTER}},
};

static const struct probe open_calls[] = {
    {SYS_clone, {CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD}, 0},
    {SYS_clone, {SIGCHLD}, 0},
    {SYS_unshare, {CLONE_FILES | CLONE_FS}, 0},
    {SYS_prlimit64, {0, RLIMIT_NOFILE, POINTER, POINTER}, 0},
    {SYS_prlimit64, {1, RLIMIT_NOFILE, 0, POINTER}, 0},
    {SYS_prlimit64, {0, RLIMIT_CORE, 0, POINTER}, 0},
    {SYS_setrlimit, {RLIMIT_NOFILE, POINTER}, 0},
    {SYS_setpriority, {PRIO_PROCESS, 0, 5}, 0},
    {SYS_setpriority, {PRIO_PROCESS, 4711, 5}, 0},
    {SYS_ioprio_set, {1, 0, 0}, 0},
    {SYS_sched_setaffinity, {4711, 8, POINTER}, 0},
    {SYS_sched_setscheduler, {0, 3, POINTER}, 0},
    {SYS_socket, {AF_UNIX, SOCK_STREAM, 0}, 0},
    {SYS_socket, {AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0}, 0},
    {SYS_socket, {AF_INET, SOCK_DGRAM, IPPROTO_UDP}, 0},
    {SYS_socket, {AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0}, 0},
    {SYS_socket, {AF_INET6, SOCK_STREAM, 0}, 0},
    {SYS_socket, {AF_INET, SOCK_DGRAM, IPPROTO_ICMP}, 0},
    {SYS_socket, {AF_INET6, SOCK_STREAM, IPPROTO_TCP}, 0},
    {SYS_socket, {AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6}, 0},
    {SYS_socket, {AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE}, 0},
    {SYS_socketpair, {AF_UNIX, SOCK_SEQPACKET, 0}, 0},
    {SYS_setsockopt, {3, SOL_SOCKET, SO_REUSEADDR}, 0},
    {SYS_setsockopt, {3, IPPROTO_IP, IP_TOS}, 0},
    {SYS_setsockopt, {3, IPPROTO_IPV6, 67 /* IPV6_TCLASS */}, 0},
    {SYS_setsockopt, {3, IPPROTO_TCP, 1 /* TCP_NODELAY */}, 0},
    {SYS_getsockopt, {3, SOL_SOCKET, SO_ERROR}, 0},
    {SYS_ioctl, {0, TCGETS, POINTER}, 0},
    {SYS_ioctl, {0, TIOCGWINSZ, POINTER}, 0},
    {SYS_ioctl, {3, FICLONE, 4}, 0},
    {SYS_ioctl, {3, FICLONERANGE, POINTER}, 0},
    {SYS_ioctl, {3, FIONREAD, POINTER}, 0},
    {SYS_mknod, {POINTER, S_IFIFO | 0600, 0}, 0},
    {SYS_mknodat, {3, POINTER, S_IFSOCK | 0600, 0}, 0},
    {SYS_personality, {0xffffffff}, 0},
    {SYS_personality, {ADDR_NO_RANDOMIZE}, 0},
    {SYS_madvise, {POINTER, 4096, MADV_DONTNEED}, 0},
    {SYS_seccomp, {SECCOMP_SET_MODE_FILTER, 0, POINTER}, 0},
    {SYS_seccomp, {SECCOMP_GET_ACTION_AVAIL, 0, POINTER}, 0},
    {SYS_prctl, {PR_SET_NAME, POINTER}, 0},
    {SYS_prctl, {68 /* PR_GET_MEMORY_MERGE */}, 0},
    {SYS_preadv2, {3, POINTER, 1, 0, 0, RWF_HIPRI}, 0},
    {SYS_ptrace, {0}, 0},
};

static size_t list_closed(enum seccomp_wall wall, struct probe *probes, long *answers)
{
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_COUNT(closed_calls); i++) {
        const struct closed_call *call = &closed_calls[i];

        if (wall != SECCOMP_WALL_COUNT && call->wall != wall)
            continue;
        probes[count] = (struct probe){.number = call->number};
        for (size_t k = 0; k < ARRAY_COUNT(call->arguments); k++)
            probes[count].arguments[k] = call->arguments[k];
        answers[count++] = call->answer;
    }
    return count;
}

static void closed_arguments_are_refused(void **state)
{
    static struct probe probes[ARRAY_COUNT(closed_calls)];
    static long answers[ARRAY_COUNT(closed_calls)];
    size_t count = list_closed(SECCOMP_WALL_COUNT, probes, answers);

    (void) state;
    probe_all(SECCOMP_WALLS_ALL, probes, count);
    for (size_t i = 0; i < count; i++) {
        if (probes[i].answer != answers[i])
            print_message("row %zu: call %llu\n", i, (unsigned long long) probes[i].number);
        assert_int_equal(probes[i].answer, answers[i]);
    }
}

/* The calls of a wall get through when exactly that one is off: no other wall stands behind. */
static void each_wall_alone_holds_its_calls(void **state)
{
    static struct probe probes[ARRAY_COUNT(closed_calls)];
    static long answers[ARRAY_COUNT(closed_calls)];

    (void) state;
    for (int wall = 0; wall < SECCOMP_WALL_COUNT; wall++) {
        size_t count = list_closed((enum seccomp_wall) wall, probes, answers);

        if (count == 0)
            continue;
        probe_all(SECCOMP_WALLS_ALL & ~(UINT32_C(1) << wall), probes, count);
        for (size_t i = 0; i < count; i++) {
            if (probes[i].answer != PROBE_PASSED)
                print_message("%s, row %zu\n", seccomp_wall_text((enum seccomp_wall) wall), i);
            assert_int_equal(probes[i].answer, PROBE_PASSED);
        }
    }
}

static void open_arguments_pass(void **state)
{
    struct probe probes[ARRAY_COUNT(open_calls)];

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(open_calls); i++)
        probes[i] = open_calls[i];
    probe_all(SECCOMP_WALLS_ALL, probes, ARRAY_COUNT(probes));
    for (size_t i = 0; i < ARRAY_COUNT(probes); i++) {
        if (probes[i].answer != PROBE_PASSED)
            print_message("row %zu: call %llu\n", i, (unsigned long long) probes[i].number);
        assert_int_equal(probes[i].answer, PROBE_PASSED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_arguments_are_refused),
        cmocka_unit_test(each_wall_alone_holds_its_calls),
        cmocka_unit_test(open_arguments_pass),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
