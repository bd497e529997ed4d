/* Limits of the processes of a sandbox, where the kernel keeps them per process.
 *
 * The cgroups bound what a sandbox takes as a whole; these bound what they do not count. The
 * launcher plans once what its own hard limits permit (process_limits_plan); each child applies the
 * plan to itself. Without CAP_SYS_RESOURCE nobody can raise a hard limit: the plan then stays at
 * what there is and says so.
 *
 * Core dumps. With `kernel.core_pattern` a pipe ("|/usr/lib/systemd/systemd-coredump ..."), the
 * kernel starts that program as root of the host, outside every sandbox, and hands it the memory of
 * the crashed process. A limit of 0 does not stop this: for pipes the limit is not looked at
 * (core(5); fs/coredump.c), except for the value 1, with which the kernel marks the handler itself
 * against recursion: then there is no dump. For plain files 1 is as good as 0, being less than one
 * page. So the limit is 1, soft and hard. A process could still lower it to 0: the seccomp wall
 * "core" keeps it. A pattern "@..." (a socket, Linux 6.16) knows no limit at all;
 * process_limit_host says so.
 *
 * PID 1. Exec makes a process dumpable again, so the agent must call
 * sys_process_set_dumpable(false) first of all. Better: its image cannot be read by the sandbox
 * (process_limit_hide_image). Then the kernel makes it non-dumpable from its first instruction, and
 * counts its memory as the host's: no capability inside the sandbox opens it, its descriptors
 * cannot even be listed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

struct process_limit_row {
    const char *name; /* "nofile" */
    int resource;     /* RLIMIT_... */
    rlim_t soft, hard;
    const char *reason;
};

/* What a sandbox should have. Static. */
const struct process_limit_row *process_limit_rows(size_t *ret_count);

#define PROCESS_LIMITS_MAX 16

/* Pseudo terminals of one sandbox: its devpts has no more. The kernel's number of them is for all
 * sandboxes and the host together. */
#define PROCESS_LIMIT_TERMINALS 64

struct process_limits {
    size_t count;
    struct {
        int resource;
        struct rlimit limit;
    } entries[PROCESS_LIMITS_MAX];
    bool core_handler_runs; /* the core limit could not be 1: a piped handler would be started */
};

/* Plan for this process's children: raises its own hard limits first where it may, then takes from
 * each row what is possible. `processes` is a limit per user id for hosts without a pids cgroup, 0
 * for none (then the cgroup counts). Returns 0 or -errno. */
int process_limits_plan(struct process_limits *limits, rlim_t processes);

/* In the child, before exec. Async-signal-safe. 0 or -errno. */
int process_limits_apply(const struct process_limits *limits);

/* How the kernel ranks all processes of sandboxes when the whole host runs out of memory: before
 * the host's own, the largest first. A program inside may only rank itself higher. */
#define PROCESS_LIMIT_OOM_SCORE 900

/* Write oom_score_adj of `pid`, from the launcher. Best effort: lowering needs CAP_SYS_RESOURCE,
 * and only a writer with it keeps the process from lowering it again. 0 or -errno. */
int process_limit_set_oom_score(pid_t pid, int score);

/* Make the program in `image`, a memfd or file owned by host root, executable but not readable by
 * others: see above. For the launcher, once. 0 or -errno. */
int process_limit_hide_image(int image);

/* Per-namespace shares: counters of the kernel that go up the chain of user namespaces to the one
 * who made them, host root, and so are shared by all sandboxes. Written in the child while it still
 * has all capabilities in its user namespace; afterwards nobody inside can raise them. They are
 * also a second wall against nested namespaces. */
struct process_limit_share {
    const char *file; /* in /proc/sys/user */
    int value;
    bool required; /* false: older kernels do not have it */
    bool late;     /* the sandbox needs one itself until its root stands */
    const char *reason;
};

const struct process_limit_share *process_limit_shares(size_t *ret_count);

/* In the child, after clone with CLONE_NEWUSER and its id maps, before capability_confine.
 * `directory` is a descriptor of /proc/sys/user of any proc filesystem that can be written. Those
 * that are `late` only after its cgroup namespace exists and the last mount was copied, which takes
 * a mount namespace for a moment. Async-signal-safe. 0 or -errno. */
int process_limit_apply_shares(int directory, bool late);
