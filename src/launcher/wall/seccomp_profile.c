#include "launcher/wall/seccomp_profile.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
/* After <sys/mount.h>'s relatives: both define the FI... numbers. */
#include <linux/btrfs.h>
#include <linux/fiemap.h>
#include <linux/fs.h>

#include "base/auto.h"

#ifndef __x86_64__
#error "the profile holds numbers and reasons of x86-64: another machine needs a review of its own"
#endif

/* Newer than the headers of Debian 12; a newer libc says the same in other words. */
#undef SYS_cachestat
#undef SYS_fchmodat2
#undef SYS_map_shadow_stack
#undef SYS_futex_wake
#undef SYS_futex_wait
#undef SYS_futex_requeue
#undef SYS_mseal
#undef SYS_setxattrat
#undef SYS_getxattrat
#undef SYS_listxattrat
#undef SYS_removexattrat
#undef SYS_open_tree_attr
#define SYS_cachestat        451
#define SYS_fchmodat2        452
#define SYS_map_shadow_stack 453
#define SYS_futex_wake       454
#define SYS_futex_wait       455
#define SYS_futex_requeue    456
#define SYS_mseal            462
#define SYS_setxattrat       463
#define SYS_getxattrat       464
#define SYS_listxattrat      465
#define SYS_removexattrat    466
#define SYS_open_tree_attr   467

#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#endif

/* All that clone can make; CLONE_NEWTIME lies in the byte of the signal there. */
#define NEW_NAMESPACES                                                                             \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)

#define PERSONALITIES ((uint32_t) (PER_LINUX32 | UNAME26 | ADDR_NO_RANDOMIZE))

#define MASKED(number, bits, wanted)                                                               \
    {                                                                                              \
        .compare = SECCOMP_EQUAL, .argument = (number), .mask = (bits), .value = (wanted)          \
    }
#define EQUAL(number, wanted) MASKED(number, UINT32_MAX, (uint32_t) (wanted))
#define ANY_BIT(number, bits)                                                                      \
    {                                                                                              \
        .compare = SECCOMP_ANY_BIT, .argument = (number), .mask = (uint32_t) (bits)                \
    }
/* A process id other than 0, the caller. */
#define OTHER_PID(number) ANY_BIT(number, UINT32_MAX)
#define NULL_POINTER(number)                                                                       \
    {                                                                                              \
        .compare = SECCOMP_NULL, .argument = (number)                                              \
    }
#define NOT_NULL(number)                                                                           \
    {                                                                                              \
        .compare = SECCOMP_NOT_NULL, .argument = (number)                                          \
    }

#define TEST_COUNT(...) (sizeof((struct seccomp_test[]){__VA_ARGS__}) / sizeof(struct seccomp_test))

#define ALLOW(call, why)                                                                           \
    {.name = #call, .number = SYS_##call, .wall = SECCOMP_WALL_COUNT, .reason = why},
#define ALLOW_IF(call, why, ...)                                                                   \
    {.name = #call,                                                                                \
     .number = SYS_##call,                                                                         \
     .wall = SECCOMP_WALL_COUNT,                                                                   \
     .test_count = TEST_COUNT(__VA_ARGS__),                                                        \
     .tests = {__VA_ARGS__},                                                                       \
     .reason = why},
#define DENY(group, call, answer, why)                                                             \
    {.name = #call,                                                                                \
     .number = SYS_##call,                                                                         \
     .wall = SECCOMP_WALL_##group,                                                                 \
     .system = answer,                                                                             \
     .reason = why},
#define DENY_IF(group, call, answer, why, ...)                                                     \
    {.name = #call,                                                                                \
     .number = SYS_##call,                                                                         \
     .wall = SECCOMP_WALL_##group,                                                                 \
     .system = answer,                                                                             \
     .test_count = TEST_COUNT(__VA_ARGS__),                                                        \
     .tests = {__VA_ARGS__},                                                                       \
     .reason = why},

static const struct seccomp_rule rules[] = {
#include "launcher/wall/seccomp_profile.def"
};

static const struct seccomp_rule keeper_rules[] = {
#include "launcher/wall/keeper_profile.def"
};

/* Walls have a switch in sandboxes only: which one a row here is of says nothing. */
#define REFUSE(call, answer, why)         DENY(KERNEL, call, answer, why)
#define REFUSE_IF(call, answer, why, ...) DENY_IF(KERNEL, call, answer, why, __VA_ARGS__)

static const struct seccomp_rule daemon_rules[] = {
#include "launcher/wall/daemon_profile.def"
};

static const struct {
    const char *text;
    const char *keeps_out;
} walls_table[SECCOMP_WALL_COUNT] = {
#define X(name, wall_text, what) [SECCOMP_WALL_##name] = {wall_text, what},
    SECCOMP_WALLS(X)
#undef X
};

const struct seccomp_rule *seccomp_profile_rules(size_t *ret_count)
{
    *ret_count = ARRAY_COUNT(rules);
    return rules;
}

const struct seccomp_rule *seccomp_profile_keeper_rules(size_t *ret_count)
{
    *ret_count = ARRAY_COUNT(keeper_rules);
    return keeper_rules;
}

const struct seccomp_rule *seccomp_profile_daemon_rules(size_t *ret_count)
{
    *ret_count = ARRAY_COUNT(daemon_rules);
    return daemon_rules;
}

uint32_t seccomp_rule_action(const struct seccomp_rule *rule, uint32_t walls)
{
    if (rule->wall < SECCOMP_WALL_COUNT && (walls & (UINT32_C(1) << rule->wall)))
        return SECCOMP_RET_ERRNO | rule->system;
    return SECCOMP_RET_ALLOW;
}

const char *seccomp_wall_text(enum seccomp_wall wall)
{
    return wall < SECCOMP_WALL_COUNT ? walls_table[wall].text : "none";
}

const char *seccomp_wall_keeps_out(enum seccomp_wall wall)
{
    return wall < SECCOMP_WALL_COUNT ? walls_table[wall].keeps_out : "nothing";
}

enum seccomp_wall seccomp_wall_from_text(const char *text)
{
    int wall = 0;

    while (wall < SECCOMP_WALL_COUNT && strcmp(walls_table[wall].text, text) != 0)
        wall++;
    return (enum seccomp_wall) wall;
}
