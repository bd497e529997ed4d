/* Which system calls a sandbox may make: an allowlist, compiled once and loaded in each child.
 *
 * The profile is one table (seccomp_profile.def): call, condition on its arguments, answer, reason.
 * seccomp_filter_init turns it into a classic BPF program, a binary search over ranges of numbers,
 * when the launcher starts; seccomp_filter_load hands that program to the kernel in the child,
 * between no_new_privs and exec, without allocating. A tree matters: at load the kernel runs the
 * filter for every number to find those it may always allow, and a list is four times as dear.
 *
 * Answers. A call the table does not know is ENOSYS, so that libraries take their older way (also
 * clone3, whose flags lie in memory a filter cannot read: libc then uses clone). A closed call is
 * EPERM. Where programs tell "not here" from "not you" the answer is the one of a kernel built
 * without the feature: EAFNOSUPPORT and EPROTONOSUPPORT for sockets (shadow's tools give up on any
 * other answer to an audit socket), ENOTTY for ioctls, ENOSYS for memory tricks and asynchronous
 * io.
 *
 * Arguments. The kernel takes most of them as int, the upper half of the register is dropped, so
 * the conditions look at the lower half only: a comparison of all 64 bits is passed by by setting
 * bit 32. Pointers are compared whole.
 *
 * Other machine interfaces. x32 calls (bit 30 set) are ENOSYS, as on a kernel without x32. An i386
 * call (int 0x80, 32-bit programs) ends the process with SIGSYS: its table has other numbers, more
 * multiplexers (socketcall, ipc) and old bugs, so it would need a second profile for programs that
 * hardly anybody runs; and answering ENOSYS would let such a program run on until it breaks in a
 * less clear way, since even its exit would be refused. The table's numbers are those of x86-64.
 *
 * Walls. Every closed row belongs to a named wall. Production uses SECCOMP_WALLS_ALL. Tests switch
 * single walls off (their closed calls are then allowed) to prove which one holds an attack.
 *
 * What this cannot see: memory behind pointers, file descriptors' types, and which thread ids
 * belong to PID 1. Calls that change scheduling by thread id are closed for id 1 only, because libc
 * sets the affinity of threads by their id: PID 1 must do its work in its main thread. Limits
 * (prlimit), with which PID 1 could be killed, can be set for the caller (0) only. Groups: PID 1
 * must not share its process group with others (they lead groups of their own). */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* name, text, what it keeps out */
#define SECCOMP_WALLS(X)                                                                           \
    X(ABI, "abi", "x32 and i386 system calls")                                                     \
    X(NAMESPACES, "namespaces", "new namespaces, nested user namespaces above all")                \
    X(MOUNTS, "mounts", "the old and the new mount interface")                                     \
    X(HANDLES, "handles", "files by handle, past every path check")                                \
    X(BPF, "bpf", "programs in the kernel")                                                        \
    X(PERF, "perf", "performance counters")                                                        \
    X(IO_URING, "io_uring", "system calls that no filter sees")                                    \
    X(AIO, "aio", "asynchronous io contexts, counted for the whole host")                          \
    X(KEYS, "keys", "the kernel's key rings, not separated by namespaces")                         \
    X(USERFAULT, "userfault", "stopping the kernel in the middle of a copy")                       \
    X(FANOTIFY, "fanotify", "watching whole filesystems")                                          \
    X(KERNEL, "kernel", "the machine itself: clock, modules, swap, ports, log")                    \
    X(SOCKETS, "sockets", "socket families and protocols other than unix and ip")                  \
    X(NETLINK, "netlink", "netlink other than routes")                                             \
    X(RAW_SOCKETS, "raw_sockets", "raw ip sockets")                                                \
    X(NETFILTER, "netfilter", "the packet filter's old socket options")                            \
    X(INIT, "init", "limits and scheduling of PID 1")                                              \
    X(CORE, "core", "the core limit, which keeps crashes from the host's core handler")            \
    X(TERMINAL, "terminal", "typing into terminals, line disciplines")                             \
    X(DISK, "disk", "btrfs ioctls")                                                                \
    X(DEVICES, "devices", "device nodes")                                                          \
    X(PERSONALITY, "personality", "personalities that weaken memory protection")                   \
    X(MEMORY, "memory", "memory shared between sandboxes, hidden or segmented memory")             \
    X(PAGE_CACHE, "page_cache", "which pages of a file are in memory: what others run")            \
    X(LISTENER, "listener", "system calls answered by another process")                            \
    X(UNKNOWN, "unknown", "calls that the table does not know")

enum seccomp_wall {
#define X(name, text, keeps_out) SECCOMP_WALL_##name,
    SECCOMP_WALLS(X)
#undef X
        SECCOMP_WALL_COUNT
};

#define SECCOMP_WALL_BIT(name) (UINT32_C(1) << SECCOMP_WALL_##name)
#define SECCOMP_WALLS_ALL      ((UINT32_C(1) << SECCOMP_WALL_COUNT) - 1)

/* The program has about half of that. */
#define SECCOMP_FILTER_MAX 1024

struct seccomp_filter {
    uint16_t count;
    struct sock_filter instructions[SECCOMP_FILTER_MAX];
};

/* Compile the profile with these walls (bits of SECCOMP_WALL_BIT). Pure; about 0.2 ms. Returns 0 or
 * -E2BIG when the table has outgrown SECCOMP_FILTER_MAX. */
int seccomp_filter_init(struct seccomp_filter *filter, uint32_t walls);

/* The same for the much shorter profile of keeper jobs (keeper_profile.def), which has all walls.
 */
int seccomp_filter_init_keeper(struct seccomp_filter *filter);

/* The same for the daemon (daemon_profile.def): the calls of its table are refused and all others go to
 * the kernel. The daemon loads it into itself, in its only thread; those it starts have it, too. */
int seccomp_filter_init_daemon(struct seccomp_filter *filter);

/* Where a keeper's child has the program when it loads the filter; closed by exec. */
#define KEEPER_PROGRAM_FD 5

/* In the child, last before exec: from now on the calling thread and all it starts are filtered,
 * for good. Needs no_new_privs (-EACCES). Async-signal-safe. -errno. */
int seccomp_filter_load(const struct seccomp_filter *filter);

/* For messages and for the switches of tests. Text of a wall, never NULL for a valid one. */
const char *seccomp_wall_text(enum seccomp_wall wall);
const char *seccomp_wall_keeps_out(enum seccomp_wall wall);

/* The wall with that text, or SECCOMP_WALL_COUNT. */
enum seccomp_wall seccomp_wall_from_text(const char *text);
