/* Kernel features that may be absent, and a way to pretend that they are.
 *
 * Burrow needs Linux 6.1. Newer calls, and calls that a container's seccomp filter hides, have a
 * fallback; to run the fallback on a kernel that has the feature, name it:
 *
 *     BURROW_PRETEND_MISSING=openat2,clone3 burrow serve
 *
 * The wrappers of sys/ then behave as if the kernel had answered ENOSYS.
 *
 * The set is process-wide: the one deliberate global of this layer, because a wrapper around a
 * single call has no context to carry it. main sets it once, before any thread starts; after that
 * it is only read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* name, text, what happens without it */
#define SYS_FEATURES(X)                                                                            \
    X(SYS_FEATURE_OPENAT2, "openat2", "paths are walked link by link")                             \
    X(SYS_FEATURE_CLONE3, "clone3", "clone is used")                                               \
    X(SYS_FEATURE_CLONE_INTO_CGROUP, "clone_into_cgroup", "the caller attaches the child itself")  \
    X(SYS_FEATURE_CLOSE_RANGE, "close_range", "/proc/self/fd is walked")                           \
    X(SYS_FEATURE_PIDFD_GETFD, "pidfd_getfd", "there is no other way")                             \
    X(SYS_FEATURE_MOUNT_API, "mount_api", "mount is used for the simple cases")                    \
    X(SYS_FEATURE_MOUNT_SETATTR, "mount_setattr", "mounts are remounted; no idmapped mounts")      \
    X(SYS_FEATURE_MEMFD_NOEXEC, "memfd_noexec", "memfds keep the execute bit")                     \
    X(SYS_FEATURE_PTY_PEER, "pty_peer", "the terminal is opened by its path in /dev/pts")

enum sys_feature {
#define X(name, text, without) name,
    SYS_FEATURES(X)
#undef X
        SYS_FEATURE_COUNT
};

/* The environment variable main reads for sys_feature_init. */
#define SYS_FEATURE_VARIABLE "BURROW_PRETEND_MISSING"

#define SYS_FEATURE_NAME_MAX 32

/* Pretend that the features in `list` (comma-separated names; NULL and "" mean none) are missing.
 * Returns 0, or -EINVAL with the first unknown name, cut to fit, in `ret_unknown`; then nothing is
 * changed. Call once, before threads start. */
int sys_feature_init(const char *list, char ret_unknown[static SYS_FEATURE_NAME_MAX]);

/* Is the feature pretended missing? Says nothing of the kernel: see sys_probe. */
bool sys_feature_missing(enum sys_feature feature);

/* The name in the list, and what happens without the feature. Static. */
const char *sys_feature_name(enum sys_feature feature);
const char *sys_feature_consequence(enum sys_feature feature);

#define SYS_FEATURE_BIT(feature) (1u << (feature))

/* For tests: replace the whole set, return the old one. */
unsigned int sys_feature_pretend(unsigned int missing);
