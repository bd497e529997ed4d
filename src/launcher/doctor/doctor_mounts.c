/* The doctor tries what a sandbox's root is made of: namespaces, idmapped mounts, overlay. Its
 * process is a child that ends afterwards, and everything mounted here with it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/memory.h"
#include "launcher/doctor/doctor_internal.h"
#include "launcher/fuse/fuse_mount.h"
#include "launcher/ids/id_range.h"
#include "sys/file/sys_file.h"
#include "sys/mount/sys_mount_path.h"
#include "sys/process/sys_clone.h"
#include "sys/process/sys_namespace.h"
#include "sys/process/sys_process.h"

#define KERNEL "kernel"

static const struct {
    const char *name;
    uint64_t flag;
} namespaces[] = {
    {"user namespaces", CLONE_NEWUSER},     {"mount namespaces", CLONE_NEWNS},
    {"pid namespaces", CLONE_NEWPID},       {"network namespaces", CLONE_NEWNET},
    {"ipc namespaces", CLONE_NEWIPC},       {"uts namespaces", CLONE_NEWUTS},
    {"cgroup namespaces", CLONE_NEWCGROUP},
};

/* What to do about an errno of clone. */
static const char *namespace_remedy(int error)
{
    switch (error) {
    case -EINVAL:
        return "use a kernel that was built with this kind of namespace";
    case -ENOSPC:
    case -EUSERS:
        return "raise the limit in /proc/sys/user/, for instance `sysctl -w "
               "user.max_user_namespaces=100000`";
    default:
        return "a container, a chroot or a security module forbids it: run burrow outside of that";
    }
}

/* A child in a new namespace that does nothing. */
static int try_namespace(uint64_t flag)
{
    AUTO(close) int pidfd = -EBADF;
    struct sys_clone how = {.flags = flag, .exit_signal = SIGCHLD, .ret_pidfd = &pidfd};
    struct sys_exit ended;
    pid_t pid = sys_clone(&how);

    if (pid == 0)
        _exit(0);
    return pid < 0 ? pid : sys_process_wait(pidfd, -1, &ended);
}

void doctor_namespaces(const struct doctor_options *options, struct doctor_report *report)
{
    (void) options;
    for (size_t i = 0; i < ARRAY_COUNT(namespaces); i++) {
        int r = try_namespace(namespaces[i].flag);

        if (r == 0)
            doctor_add(report, KERNEL, DOCTOR_ON, namespaces[i].name, NULL, "%s", "");
        else
            doctor_add(report, KERNEL, DOCTOR_MISSING, namespaces[i].name, namespace_remedy(r),
                       "cannot be made: %s", strerrordesc_np(-r));
    }
}

/* A user namespace with a map, kept by its descriptor, or -errno. */
static int make_users(void)
{
    static const struct sys_id_range ids[] = {{0, ID_RANGE_FIRST, ID_RANGE_SIZE}};
    AUTO(close) int pidfd = -EBADF;
    struct sys_clone how = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD, .ret_pidfd = &pidfd};
    struct sys_exit ended;
    pid_t pid = sys_clone(&how);
    int r, users;

    if (pid == 0) {
        for (;;)
            (void) pause();
    }
    if (pid < 0)
        return pid;
    r = sys_namespace_map_users(pid, ids, 1);
    if (r == 0)
        r = sys_namespace_map_groups(pid, ids, 1);
    users = r < 0 ? r : sys_namespace_open(pid, "user");
    (void) sys_process_kill(pidfd, SIGKILL);
    (void) sys_process_wait(pidfd, -1, &ended);
    return users;
}

/* A copy of the folder's mount that is attached nowhere, with other ids: -errno. */
static int try_id_map(const char *path, int users)
{
    AUTO(close) int folder = sys_file_open(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
    AUTO(close) int mount = folder < 0 ? folder : sys_mount_copy(folder, "", false);

    return mount < 0 ? mount : sys_mount_set_id_map(mount, users);
}

/* `path`, or the nearest folder above that is there. */
static void look_at_id_map(const char *path, int users, struct doctor_report *report)
{
    AUTO(free) char *at = mem_copy_text(path);
    char name[DOCTOR_NAME_SIZE];
    int r;

    for (char *slash = strrchr(at, '/'); slash && access(*at ? at : "/", F_OK) < 0;
         slash = strrchr(at, '/'))
        *slash = '\0';
    r = try_id_map(*at ? at : "/", users);
    (void) snprintf(name, sizeof(name), "idmapped mounts of %.32s", *at ? at : "/");
    if (r == 0)
        doctor_add(report, KERNEL, DOCTOR_ON, name, NULL, "%s", "");
    else
        doctor_add(report, KERNEL, DOCTOR_MISSING, name,
                   r == -EINVAL ? "its filesystem cannot map ids: use ext4, btrfs or xfs (overlay "
                                  "and NFS cannot), or a newer kernel"
                                : "run burrow outside of the container or chroot",
                   "%s", strerrordesc_np(-r));
}

/* In this process, which is lost to the host by now: overlay as root of a user namespace. */
static int try_overlay(int users)
{
    static const struct sys_mount_option options[] = {{"lowerdir", "/tmp/lower"},
                                                      {"upperdir", "/tmp/upper"},
                                                      {"workdir", "/tmp/work"},
                                                      {"userxattr", NULL},
                                                      {NULL, NULL}};
    static const char *const folders[] = {"/tmp/lower", "/tmp/upper", "/tmp/work", "/tmp/root"};
    int r = sys_namespace_enter(users, CLONE_NEWUSER);

    if (r == 0 && (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0))
        r = -errno;
    if (r == 0)
        r = sys_namespace_unshare(CLONE_NEWNS);
    if (r == 0)
        r = sys_mount_path_propagate("/", MS_PRIVATE, true);
    if (r == 0)
        r = sys_mount_path_new("tmpfs", "tmpfs", "/tmp", MOUNT_ATTR_NOSUID, NULL);
    for (size_t i = 0; r == 0 && i < ARRAY_COUNT(folders); i++)
        r = mkdir(folders[i], 0700) < 0 ? -errno : 0;
    return r < 0 ? r : sys_mount_path_new("overlay", "overlay", "/tmp/root", 0, options);
}

/* Sandboxes do without; only buckets cannot be mounted in them. */
static void look_at_fuse(struct doctor_report *report)
{
    int r = fuse_mount_try();

    if (r == 0)
        doctor_add(report, KERNEL, DOCTOR_ON, "bucket mounts", NULL, "%s", "");
    else
        doctor_add(report, KERNEL, DOCTOR_OFF, "bucket mounts", "load the module (`modprobe fuse`)",
                   "FUSE does not work here: %s", strerrordesc_np(-r));
}

void doctor_mounts(const struct doctor_options *options, struct doctor_report *report)
{
    AUTO(close) int users = make_users();
    int r;

    look_at_fuse(report);
    if (users < 0) {
        doctor_add(report, KERNEL, DOCTOR_MISSING, "id maps", namespace_remedy(users),
                   "the ids of a user namespace cannot be mapped: %s", strerrordesc_np(-users));
        return;
    }
    look_at_id_map("/usr", users, report);
    look_at_id_map(options->data, users, report);
    r = try_overlay(users);
    if (r == 0)
        doctor_add(report, KERNEL, DOCTOR_ON, "overlay in a user namespace", NULL, "%s", "");
    else
        doctor_add(report, KERNEL, DOCTOR_MISSING, "overlay in a user namespace",
                   "load the module overlay (`modprobe overlay`), or use a newer kernel",
                   "cannot be mounted: %s", strerrordesc_np(-r));
}
