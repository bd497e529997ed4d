/* The child between clone and exec: steps that change what the kernel lets it do, in an order that
 * matters. Nothing here allocates or logs; every step returns 0 or -errno. */
#include "launcher/sandbox_child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/auto.h"
#include "launcher/capability.h"
#include "launcher/network.h"
#include "sys/sys_close_range.h"
#include "sys/sys_fd_pass.h"
#include "sys/sys_file.h"
#include "sys/sys_mount.h"
#include "sys/sys_mount_path.h"
#include "sys/sys_namespace.h"
#include "sys/sys_process.h"
#include "sys/sys_signal.h"

/* Where the root is put together; its mount namespace is the child's own by then. */
#define STAGE "/tmp"
#define ROOT  STAGE "/root"

/* The agent finds its descriptors from here on. */
#define AGENT_FIRST_FD 3

static int result(long r)
{
    return r < 0 ? -errno : 0;
}

/* The launcher has written the id maps and made the mounts. */
static int receive_mounts(struct child *child)
{
    char byte;
    ssize_t got = sys_fd_pass_receive(child->socket, &byte, 1, child->mounts,
                                      ARRAY_COUNT(child->mounts), &child->mount_count);

    if (got < 0)
        return (int) got;
    return got == 1 && child->mount_count >= CHILD_FIXED_COUNT ? 0 : -EPIPE;
}

static int enter_cgroup(struct child *child)
{
    int r = cgroup_enter(child->entry.agent, child->entry.agent_count);

    /* Only now: a cgroup namespace shows the group it was made in as its root. */
    return r < 0 ? r : sys_namespace_unshare(CLONE_NEWCGROUP);
}

/* Plain calls: glibc's own would signal threads that do not exist here (see sys_clone.h). */
static int become_root(struct child *child)
{
    (void) child;
    if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, 0, 0, 0) < 0 ||
        syscall(SYS_setresuid, 0, 0, 0) < 0)
        return -errno;
    (void) umask(022);
    return result(setsid());
}

static int name_machine(struct child *child)
{
    return result(sethostname(child->plan->hostname, strlen(child->plan->hostname)));
}

static int separate_mounts(struct child *child)
{
    (void) child;
    /* Private, not slave: nothing the host mounts later appears inside. */
    return sys_mount_path_propagate("/", MS_PRIVATE, true);
}

static int mount_stage(struct child *child)
{
    int r = sys_mount_path_new("tmpfs", "tmpfs", STAGE, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, NULL);

    if (r < 0)
        return r;
    if (mkdir(STAGE "/lower", 0700) < 0 || mkdir(STAGE "/disk", 0700) < 0 || mkdir(ROOT, 0700) < 0)
        return -errno;
    r = sys_mount_attach(child->mounts[CHILD_LOWER], AT_FDCWD, STAGE "/lower");
    return r < 0 ? r : sys_mount_attach(child->mounts[CHILD_DISK], AT_FDCWD, STAGE "/disk");
}

static int mount_overlay(struct child *child)
{
    static const struct sys_mount_option options[] = {{"lowerdir", STAGE "/lower"},
                                                      {"upperdir", STAGE "/disk/" DISK_UPPER},
                                                      {"workdir", STAGE "/disk/" DISK_WORK},
                                                      {"userxattr", NULL},
                                                      {NULL, NULL}};

    (void) child;
    return sys_mount_path_new("overlay", "overlay", ROOT, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                              options);
}

static int mount_image_parts(struct child *child)
{
    size_t next = CHILD_FIXED_COUNT;

    for (size_t i = 0; i < child->image->mount_count; i++) {
        const struct image_mount *part = &child->image->mounts[i];
        char target[256], inside[256];
        int r;

        (void) snprintf(target, sizeof(target), ROOT "/%s", part->target);
        if (part->inside) {
            (void) snprintf(inside, sizeof(inside), ROOT "/%s", part->inside);
            r = sys_mount_path_bind(inside, target, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, false);
        } else {
            r = sys_mount_attach(child->mounts[next++], AT_FDCWD, target);
        }
        if (r < 0)
            return r;
    }
    return 0;
}

static const char *const devices[] = {"null", "zero", "full", "random", "urandom", "tty"};

static const struct {
    const char *path, *target;
} device_links[] = {
    {ROOT "/dev/ptmx", "pts/ptmx"},          {ROOT "/dev/fd", "/proc/self/fd"},
    {ROOT "/dev/stdin", "/proc/self/fd/0"},  {ROOT "/dev/stdout", "/proc/self/fd/1"},
    {ROOT "/dev/stderr", "/proc/self/fd/2"},
};

static int mount_devices(struct child *child)
{
    static const struct sys_mount_option pts[] = {
        {"newinstance", NULL}, {"ptmxmode", "0666"}, {"mode", "0620"}, {NULL, NULL}};
    /* Not tmpfs's sticky 1777: there the kernel refuses O_CREAT on files of others, which is how
     * shells open /dev/null (fs.protected_regular). */
    static const struct sys_mount_option mode[] = {{"mode", "0755"}, {NULL, NULL}};
    int r = sys_mount_path_new("tmpfs", "tmpfs", ROOT "/dev", MOUNT_ATTR_NOSUID, mode);

    (void) child;
    for (size_t i = 0; r == 0 && i < ARRAY_COUNT(devices); i++) {
        char source[32], target[64];
        int fd;

        (void) snprintf(source, sizeof(source), "/dev/%s", devices[i]);
        (void) snprintf(target, sizeof(target), ROOT "/dev/%s", devices[i]);
        fd = sys_file_open(AT_FDCWD, target, O_WRONLY | O_CREAT, 0666);
        if (fd < 0)
            return fd;
        (void) fd_close(fd);
        r = sys_mount_path_bind(source, target, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, false);
    }
    if (r < 0)
        return r;
    if (mkdir(ROOT "/dev/pts", 0755) < 0 || mkdir(ROOT "/dev/shm", 01777) < 0)
        return -errno;
    for (size_t i = 0; i < ARRAY_COUNT(device_links); i++) {
        if (symlink(device_links[i].target, device_links[i].path) < 0)
            return -errno;
    }
    r = sys_mount_path_new("devpts", "devpts", ROOT "/dev/pts",
                           MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, pts);
    if (r < 0)
        return r;
    return sys_mount_path_new("tmpfs", "tmpfs", ROOT "/dev/shm",
                              MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, NULL);
}

/* What proc shows of the host beyond this sandbox's processes: hidden behind an empty file or
 * folder, or not writable. A kernel without one of them is fine. */
static const char *const proc_hidden_files[] = {
    "/proc/kcore",         "/proc/keys",       "/proc/key-users",   "/proc/timer_list",
    "/proc/kallsyms",      "/proc/kmsg",       "/proc/sched_debug", "/proc/sysrq-trigger",
    "/proc/config.gz",     "/proc/kpagecount", "/proc/kpageflags",  "/proc/kpagecgroup",
    "/proc/latency_stats",
};

/* There is no sysfs either: it tells of the host's hardware, and what programs ask it for is
 * mostly found elsewhere. */
static const char *const hidden_folders[] = {"/proc/acpi", "/proc/scsi", "/proc/asound", "/sys"};

static const char *const proc_read_only[] = {"/proc/sys", "/proc/bus", "/proc/fs", "/proc/irq"};

static int hide(const char *const *paths, size_t count, const char *behind)
{
    for (size_t i = 0; i < count; i++) {
        char target[64];
        int r;

        (void) snprintf(target, sizeof(target), ROOT "%s", paths[i]);
        r = behind ? sys_mount_path_bind(behind, target, MOUNT_ATTR_RDONLY, false)
                   : sys_mount_path_bind(target, target, MOUNT_ATTR_RDONLY, false);
        if (r < 0 && r != -ENOENT && r != -ENOTDIR)
            return r;
    }
    return 0;
}

static int mount_proc(struct child *child)
{
    int r = sys_mount_path_new("proc", "proc", ROOT "/proc",
                               MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, NULL);

    (void) child;
    return r;
}

static int hide_host(struct child *child)
{
    int r;

    (void) child;
    if (mkdir(STAGE "/empty", 0555) < 0)
        return -errno;
    r = hide(proc_hidden_files, ARRAY_COUNT(proc_hidden_files), ROOT "/dev/null");
    if (r == 0)
        r = hide(hidden_folders, ARRAY_COUNT(hidden_folders), STAGE "/empty");
    return r < 0 ? r : hide(proc_read_only, ARRAY_COUNT(proc_read_only), NULL);
}

/* Shares of what all sandboxes have in common. After the last mount was copied, which takes a mount
 * namespace for a moment; through a proc of its own, because the one inside is read-only by now. */
static int take_shares(struct child *child)
{
    AUTO(close) int proc = -EBADF;
    int r;

    (void) child;
    if (mkdir(STAGE "/proc", 0555) < 0)
        return -errno;
    r = sys_mount_path_new("proc", "proc", STAGE "/proc", MOUNT_ATTR_NOSUID, NULL);
    if (r < 0)
        return r;
    proc = sys_file_open(AT_FDCWD, STAGE "/proc", O_PATH | O_DIRECTORY, 0);
    return proc < 0 ? proc : process_limit_apply_shares(proc);
}

static int pivot(struct child *child)
{
    int r;

    (void) child;
    if (chdir(ROOT) < 0)
        return -errno;
    r = sys_mount_pivot_root(".", ".");
    if (r == 0)
        r = sys_mount_unmount(".", SYS_UNMOUNT_DETACH);
    return r < 0 ? r : result(chdir("/"));
}

static int bring_up_loopback(struct child *child)
{
    (void) child;
    return network_loopback_up();
}

static int limit_process(struct child *child)
{
    int r = sys_signal_reset();

    return r < 0 ? r : process_limits_apply(child->host->limits);
}

static int give_up_rights(struct child *child)
{
    int r = capability_confine(child->host->capabilities);

    return r < 0 ? r : sys_process_set_no_new_privileges();
}

/* The agent's descriptors to AGENT_FIRST_FD and up, in order: listener, then the ways into `work`.
 * Everything else closes at exec or here. */
static int arrange_descriptors(struct child *child, int *ret_agent)
{
    int kept[3 + CGROUP_HIERARCHY_MAX];
    size_t count = 0, agent_fds;

    kept[count++] = child->listener;
    for (size_t i = 0; i < child->entry.work_count; i++)
        kept[count++] = child->entry.work[i];
    agent_fds = count;
    kept[count++] = child->status;
    kept[count++] = child->host->agent;
    /* Out of the way first, so that no target is overwritten before it was moved. */
    for (size_t i = 0; i < count; i++) {
        kept[i] = fcntl(kept[i], F_DUPFD_CLOEXEC, 100);
        if (kept[i] < 0)
            return -errno;
    }
    for (size_t i = 0; i < count; i++) {
        int target = AGENT_FIRST_FD + (int) i;

        if (dup3(kept[i], target, i < agent_fds ? 0 : O_CLOEXEC) < 0)
            return -errno;
    }
    child->status = AGENT_FIRST_FD + (int) agent_fds;
    *ret_agent = child->status + 1;
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

/* The filter comes last: what follows it is only exec. */
static int exec_agent(struct child *child)
{
    static char *const environment[] = {
        (char *) (uintptr_t) "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        (char *) (uintptr_t) "HOME=/root", (char *) (uintptr_t) "LANG=C.UTF-8", NULL};
    char listen[8], cgroups[64] = "";
    const char *argv[SANDBOX_ARGUMENTS_MAX] = {"burrow-agent", "--listen-fd", listen};
    size_t used = 0;
    int agent = -EBADF, argc = 3, r;

    r = open_null_stdio();
    if (r == 0)
        r = arrange_descriptors(child, &agent);
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
    if (child->host->filter) {
        r = seccomp_filter_load(child->host->filter);
        if (r < 0)
            return r;
    }
    return result(syscall(SYS_execveat, agent, "", (char *const *) (uintptr_t) argv, environment,
                          AT_EMPTY_PATH));
}

static const struct {
    const char *text;
    int (*run)(struct child *child);
} steps[] = {
    {"receive the mounts", receive_mounts},
    {"enter the cgroups", enter_cgroup},
    {"become root of the user namespace", become_root},
    {"set the host name", name_machine},
    {"separate the mounts from the host's", separate_mounts},
    {"attach image and disk", mount_stage},
    {"mount the root", mount_overlay},
    {"attach the image's parts", mount_image_parts},
    {"make /dev", mount_devices},
    {"mount /proc", mount_proc},
    {"hide what /proc and /sys tell of the host", hide_host},
    {"take shares of the kernel's counters", take_shares},
    {"change to the new root", pivot},
    {"bring up loopback", bring_up_loopback},
    {"set resource limits", limit_process},
    {"give up capabilities", give_up_rights},
    {"start the agent", exec_agent},
};

const char *child_step_text(int step)
{
    return step >= 0 && (size_t) step < ARRAY_COUNT(steps) ? steps[step].text : "an unknown step";
}

_Noreturn void child_run(struct child *child)
{
    struct child_failure failure = {0};

    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        failure.error = steps[i].run(child);
        if (failure.error < 0) {
            failure.step = (int) i;
            (void) sys_file_write_full(child->status, &failure, sizeof(failure));
            break;
        }
    }
    _exit(127);
}
