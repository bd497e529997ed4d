/* The child between clone and exec: steps that change what the kernel lets it do, in an order that
 * matters. Nothing here allocates or logs; every step returns 0 or -errno. */
#include "launcher/sandbox/sandbox_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/auto.h"
#include "launcher/child/child_steps.h"
#include "launcher/network/network.h"
#include "launcher/sandbox/sandbox_child_mounts.h"
#include "launcher/wall/capability.h"
#include "sys/file/sys_file.h"
#include "sys/network/sys_fd_pass.h"
#include "sys/network/sys_socket.h"
#include "sys/process/sys_clone.h"
#include "sys/process/sys_close_range.h"
#include "sys/process/sys_namespace.h"
#include "sys/process/sys_process.h"

/* The agent finds its descriptors from here on. */
#define AGENT_FIRST_FD 3

/* Where they are for a moment, out of the way. */
#define SPARE_FD 100

/* The image's, the folder to work in, ours, and the end. */
#define AGENT_VARIABLES_MAX (WIRE_IMAGE_WORDS_MAX + 8)

/* The launcher has written the id maps: from here on there is a root to become. */
static int wait_for_maps(struct child *child)
{
    char byte;
    size_t count = 0;
    ssize_t got;

    /* Our copy of the launcher's end, or its death would not end this wait. */
    (void) fd_close(child->their_socket);
    got = sys_fd_pass_receive(child->socket, &byte, 1, NULL, 0, &count);
    if (got < 0)
        return (int) got;
    return got == 1 ? 0 : -EPIPE;
}

/* Ways into the groups, and mounts: what the launcher made meanwhile. */
static int receive_resources(struct child *child)
{
    struct child_delivery delivery;
    int fds[CHILD_FDS_MAX];
    size_t count = 0, at = 0;
    ssize_t got = sys_fd_pass_receive(child->socket, &delivery, sizeof(delivery), fds,
                                      ARRAY_COUNT(fds), &count);

    if (got < 0)
        return (int) got;
    if (got != (ssize_t) sizeof(delivery) ||
        count != (size_t) delivery.agent_count + delivery.work_count + delivery.has_oom_kill_count +
                     delivery.mount_count ||
        delivery.mount_count < CHILD_FIRST_LOWER + delivery.layer_count + child->image->lower_count)
        return -EPIPE;
    child->lower_count = delivery.layer_count + child->image->lower_count;
    child->entry.agent_count = delivery.agent_count;
    child->entry.work_count = delivery.work_count;
    for (size_t i = 0; i < delivery.agent_count; i++)
        child->entry.agent[i] = fds[at++];
    for (size_t i = 0; i < delivery.work_count; i++)
        child->entry.work[i] = fds[at++];
    child->entry.oom_kill_count = delivery.has_oom_kill_count ? fds[at++] : -EBADF;
    for (size_t i = 0; i < delivery.mount_count; i++)
        child->mounts[i] = fds[at++];
    return 0;
}

/* The life of a process that makes a cgroup namespace for another. */
static _Noreturn void send_cgroup_namespace(int socket)
{
    int made = -EBADF;

    if (sys_namespace_unshare(CLONE_NEWCGROUP) == 0)
        made = sys_namespace_open(0, "cgroup");
    if (made >= 0)
        (void) sys_fd_pass_send(socket, "c", 1, &made, 1);
    _exit(0);
}

/* A cgroup namespace shows the group it was made in as its root. Made here, in `agent`, commands
 * would see themselves in "/../work". So a process that starts in `work` makes it: moving there and
 * back would wait for all CPUs, twice. Without it, the usual way does: only names look worse.
 * As the host's root still, whose groups these are. */
static int make_cgroup_namespace(struct child *child)
{
    AUTO(close) int pidfd = -EBADF, ours = -EBADF, made = -EBADF;
    struct sys_clone how = {.flags = CLONE_INTO_CGROUP,
                            .exit_signal = SIGCHLD,
                            .cgroup = child->work_group,
                            .ret_pidfd = &pidfd};
    struct sys_exit ended;
    size_t count = 0;
    char byte;
    int pair[2];
    pid_t pid;

    if (child->work_group < 0 || CHILD_IS_OPEN(child, CGROUP_NAMESPACE) ||
        sys_socket_pair(SOCK_SEQPACKET, pair) < 0)
        return 0;
    pid = sys_clone(&how);
    if (pid == 0)
        send_cgroup_namespace(pair[1]);
    (void) fd_close(pair[1]);
    ours = pair[0];
    if (pid < 0)
        return 0;
    if (sys_fd_pass_receive(ours, &byte, 1, &made, 1, &count) == 1 && count == 1)
        child->has_cgroup_namespace = sys_namespace_enter(made, CLONE_NEWCGROUP) == 0;
    return sys_process_wait(pidfd, -1, &ended);
}

static int enter_cgroup(struct child *child)
{
    int r = cgroup_enter(child->entry.agent, child->entry.agent_count);

    if (r < 0 || child->has_cgroup_namespace || CHILD_IS_OPEN(child, CGROUP_NAMESPACE))
        return r;
    /* Only now: a cgroup namespace shows the group it was made in as its root. */
    return sys_namespace_unshare(CLONE_NEWCGROUP);
}

static int become_root(struct child *child)
{
    int r = child_become_root();

    (void) child;
    (void) umask(022);
    return r < 0 ? r : child_result(setsid());
}

static int name_machine(struct child *child)
{
    return child_result(sethostname(child->plan->hostname, strlen(child->plan->hostname)));
}

/* Shares of what all sandboxes have in common. */
static int take_shares(struct child *child)
{
    return CHILD_IS_OPEN(child, SHARES) ? 0 : process_limit_apply_shares(child->shares, false);
}

static int take_late_shares(struct child *child)
{
    return CHILD_IS_OPEN(child, SHARES) ? 0 : process_limit_apply_shares(child->shares, true);
}

/* In a network of its own; others come with it. */
static int bring_up_loopback(struct child *child)
{
    return CHILD_IS_OPEN(child, NETWORK_OWNER) ? network_loopback_up() : 0;
}

static int limit_process(struct child *child)
{
    rlim_t files = child->plan->limits.files;
    struct rlimit limit;
    int r = CHILD_IS_OPEN(child, PROCESS_LIMITS) ? 0 : process_limits_apply(child->host->limits);

    if (r < 0 || !files)
        return r;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return -errno;
    limit.rlim_max = limit.rlim_max < files ? limit.rlim_max : files;
    limit.rlim_cur = limit.rlim_max;
    return child_result(setrlimit(RLIMIT_NOFILE, &limit));
}

static int give_up_rights(struct child *child)
{
    bool fixed = !CHILD_IS_OPEN(child, NO_NEW_PRIVILEGES);
    /* Without that promise the filter asks for this right: load_filter gives it up. */
    uint64_t for_filter = fixed ? 0 : capability_bit("sys_admin");
    int r = capability_confine(child->host->capabilities | for_filter);

    /* Only now: a change of ids would have cleared it. */
    if (r == 0 && child->plan->dies_with_us)
        r = sys_process_die_with_parent(SIGKILL, 0);
    return r < 0 || !fixed ? r : sys_process_set_no_new_privileges();
}

static int load_filter(const struct child *child)
{
    int r = child->host->filter ? seccomp_filter_load(child->host->filter) : 0;

    if (r == 0 && CHILD_IS_OPEN(child, NO_NEW_PRIVILEGES))
        r = capability_confine(child->host->capabilities);
    return r;
}

/* The agent's descriptors to AGENT_FIRST_FD and up, in order: listener, the ways into `work`, the
 * count of OOM kills. Everything else closes at exec or here. */
static int arrange_descriptors(struct child *child, int *ret_agent)
{
    int kept[4 + CGROUP_HIERARCHY_MAX];
    size_t count = 0, agent_fds;
    int r;

    kept[count++] = child->listener;
    for (size_t i = 0; i < child->entry.work_count; i++)
        kept[count++] = child->entry.work[i];
    if (child->entry.oom_kill_count >= 0)
        kept[count++] = child->entry.oom_kill_count;
    agent_fds = count;
    kept[count++] = child->status;
    kept[count++] = child->host->agent;
    /* A launcher of many sandboxes has more open than a sandbox may. */
    r = CHILD_IS_OPEN(child, DESCRIPTORS) ? 0 : sys_close_all_but(AGENT_FIRST_FD, kept, count);
    if (r < 0)
        return r;
    r = child_place_descriptors(kept, count, agent_fds, AGENT_FIRST_FD, SPARE_FD);
    if (r < 0)
        return r;
    child->status = AGENT_FIRST_FD + (int) agent_fds;
    *ret_agent = child->status + 1;
    if (CHILD_IS_OPEN(child, DESCRIPTORS))
        return 0;
    return sys_close_range((unsigned int) *ret_agent + 1, ~0u, 0);
}

static int open_null_stdio(void)
{
    int fd = sys_file_open(AT_FDCWD, "/dev/null", O_RDWR, 0);

    if (fd < 0)
        return fd;
    for (int i = 0; i < 3; i++) {
        if (dup2(fd, i) < 0)
            return -errno;
    }
    return 0;
}

static bool has_variable(char *const *environment, const char *variable)
{
    size_t length = strcspn(variable, "=") + 1;

    for (; environment && *environment; environment++) {
        if (strncmp(*environment, variable, length) == 0)
            return true;
    }
    return false;
}

/* The image's variables, and ours where it has none. */
static void fill_environment(const struct child *child,
                             const char *ret_environment[static AGENT_VARIABLES_MAX])
{
    static const char *const ours[] = {
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME=/root",
        "LANG=C.UTF-8",
    };
    char *const *theirs = child->image->environment;
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_COUNT(ours); i++) {
        if (!has_variable(theirs, ours[i]))
            ret_environment[count++] = ours[i];
    }
    for (; theirs && *theirs; theirs++)
        ret_environment[count++] = *theirs;
    ret_environment[count] = NULL;
}

/* The filter comes last: what follows it is only exec. */
static int exec_agent(struct child *child)
{
    const char *environment[AGENT_VARIABLES_MAX];
    char listen[8], cgroups[64] = "", oom_kill_count[8];
    const char *argv[SANDBOX_ARGUMENTS_MAX] = {"burrow-agent", "--listen-fd", listen};
    size_t used = 0;
    int agent = -EBADF, argc = 3, r;

    r = arrange_descriptors(child, &agent);
    if (r == 0)
        r = open_null_stdio();
    if (r < 0)
        return r;
    (void) snprintf(listen, sizeof(listen), "%d", AGENT_FIRST_FD);
    for (size_t i = 0; i < child->entry.work_count; i++)
        used += (size_t) snprintf(cgroups + used, sizeof(cgroups) - used, "%s%d", i ? "," : "",
                                  AGENT_FIRST_FD + 1 + (int) i);
    if (used) {
        argv[argc++] = "--work-cgroup-fds";
        argv[argc++] = cgroups;
    }
    if (child->entry.oom_kill_count >= 0) {
        (void) snprintf(oom_kill_count, sizeof(oom_kill_count), "%d",
                        AGENT_FIRST_FD + 1 + (int) child->entry.work_count);
        argv[argc++] = "--oom-kill-count-fd";
        argv[argc++] = oom_kill_count;
    }
    fill_environment(child, environment);
    r = load_filter(child);
    if (r < 0)
        return r;
    return child_result(syscall(SYS_execveat, agent, "", (char *const *) (uintptr_t) argv,
                                (char *const *) (uintptr_t) environment, AT_EMPTY_PATH));
}

static const struct {
    const char *text;
    int (*run)(struct child *child);
} steps[] = {
    /* While the launcher makes disk and groups. */
    {"wait for the id maps", wait_for_maps},
    {"make the cgroup namespace", make_cgroup_namespace},
    {"become root of the user namespace", become_root},
    {"set the host name", name_machine},
    {"separate the mounts from the host's", child_separate_mounts},
    {"set up the stage", child_mount_stage},
    {"make /dev", child_mount_devices},
    {"mount /proc and hide what it tells of the host", child_mount_proc},
    {"bring up loopback", bring_up_loopback},
    {"take shares of the kernel's counters", take_shares},
    /* With them. */
    {"receive disk and groups", receive_resources},
    {"enter the cgroups", enter_cgroup},
    {"attach image and disk", child_attach_layers},
    {"mount the root", child_mount_root},
    {"check the places of mounts", child_check_places},
    {"attach the image's parts", child_mount_image_parts},
    {"attach the bound folders", child_mount_binds},
    {"move /dev and /proc into the root", child_move_stage},
    {"take the last shares of the kernel's counters", take_late_shares},
    {"change to the new root", child_pivot},
    {"set resource limits", limit_process},
    {"give up capabilities", give_up_rights},
    {"start the agent", exec_agent},
};

static int run_step(void *child, size_t step)
{
    return steps[step].run(child);
}

static const char *step_text(size_t step)
{
    return steps[step].text;
}

const struct child_steps sandbox_child_steps = {ARRAY_COUNT(steps), run_step, step_text, "child"};
