/* The child's mounts: devices and /proc are put together on a stage of their own while the launcher
 * still makes disk and groups, and moved into the root once that is mounted.
 *
 * The older mount(2) where it does: a bind is one call instead of three, and some thirty of them
 * are a good part of a start. Nothing here allocates or logs; every step returns 0 or -errno. */
#include "launcher/sandbox/sandbox_child_mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "launcher/image/image_ground.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_open_beneath.h"
#include "sys/mount/sys_mount.h"
#include "sys/mount/sys_mount_path.h"

/* Where the root is put together; its mount namespace is the child's own by then. */
#define STAGE   "/tmp"
#define ROOT    STAGE "/root"
#define DEVICES STAGE "/dev"
#define PROC    STAGE "/proc"
#define EMPTY   STAGE "/empty"
#define SHARED  STAGE "/shm"
#define LOWERS  STAGE "/l"

/* The place of one lower layer, "/tmp/l/127", and all of them in the words of overlay. */
#define LOWER_SIZE  16
#define LOWERS_MAX  (DISK_LAYERS_MAX + IMAGE_LOWERS_MAX)
#define LOWERS_SIZE (LOWERS_MAX * LOWER_SIZE)

/* Files in memory: one for so much of their size, because the kernel's own memory for one is less.
 */
#define STAGE_FILE_BYTES 4096

/* PROCESS_LIMIT_TERMINALS, as text. */
#define TERMINALS        TEXT_OF(PROCESS_LIMIT_TERMINALS)
#define TEXT_OF(number)  TEXT_OF_(number)
#define TEXT_OF_(number) #number

/* --- before the root ------------------------------------------------------------------------- */

int child_separate_mounts(struct child *child)
{
    (void) child;
    /* Private, not slave: nothing the host mounts later appears inside. */
    return sys_mount_path_plain(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL);
}

/* Show a folder also at `target`, with these flags. */
static int show(const char *source, const char *target, unsigned long flags)
{
    int r = sys_mount_path_plain(source, target, NULL, MS_BIND, NULL);

    if (r < 0 || !flags)
        return r;
    return sys_mount_path_plain(NULL, target, NULL, MS_REMOUNT | MS_BIND | flags, NULL);
}

/* The stage is the one tmpfs of a sandbox: /dev, /dev/shm and what hides things are folders of it.
 * Every superblock more makes every memory cgroup of the host dearer.
 *
 * Files in memory stay when who wrote them was killed for lack of it. Were they more than half of
 * what there is, no command could run any more to delete them. */
static int mount_stage(const struct child *child)
{
    uint64_t half = child->plan->is_pooled ? 0 : child->plan->limits.memory_bytes / 2;
    char options[96];

    (void) snprintf(options, sizeof(options), "mode=0755,size=%" PRIu64 ",nr_inodes=%" PRIu64, half,
                    half / STAGE_FILE_BYTES);
    return sys_mount_path_plain("tmpfs", STAGE, "tmpfs", MS_NOSUID | MS_NODEV,
                                half ? options : "mode=0755");
}

int child_mount_stage(struct child *child)
{
    static const char *const folders[] = {LOWERS, STAGE "/disk", ROOT,  DEVICES,
                                          PROC,   EMPTY,         SHARED};
    int r = mount_stage(child);

    /* /dev not with a sticky bit: there the kernel refuses O_CREAT on files of others, which is how
     * shells open /dev/null (fs.protected_regular). */
    for (size_t i = 0; r == 0 && i < ARRAY_COUNT(folders); i++)
        r = mkdir(folders[i], 0755) < 0 ? -errno : 0;
    if (r == 0 && (chmod(SHARED, 01777) < 0 || chmod(EMPTY, 0555) < 0))
        r = -errno;
    return r;
}

static const char *const devices[] = {"null", "zero", "full", "random", "urandom", "tty"};

static const struct {
    const char *path, *target;
} device_links[] = {
    {DEVICES "/ptmx", "pts/ptmx"},          {DEVICES "/fd", "/proc/self/fd"},
    {DEVICES "/stdin", "/proc/self/fd/0"},  {DEVICES "/stdout", "/proc/self/fd/1"},
    {DEVICES "/stderr", "/proc/self/fd/2"},
};

static int bind_device(const char *name)
{
    char source[32], target[64];

    (void) snprintf(source, sizeof(source), "/dev/%s", name);
    (void) snprintf(target, sizeof(target), DEVICES "/%s", name);
    if (mknod(target, S_IFREG | 0666, 0) < 0)
        return -errno;
    return show(source, target, MS_NOSUID | MS_NOEXEC);
}

int child_mount_devices(struct child *child)
{
    /* On itself: a mount can be moved later, a folder cannot. */
    int r = show(DEVICES, DEVICES, 0);

    (void) child;
    for (size_t i = 0; r == 0 && i < ARRAY_COUNT(devices); i++)
        r = bind_device(devices[i]);
    if (r < 0)
        return r;
    if (mkdir(DEVICES "/pts", 0755) < 0 || mkdir(DEVICES "/shm", 0755) < 0)
        return -errno;
    for (size_t i = 0; i < ARRAY_COUNT(device_links); i++) {
        if (symlink(device_links[i].target, device_links[i].path) < 0)
            return -errno;
    }
    r = sys_mount_path_plain("devpts", DEVICES "/pts", "devpts", MS_NOSUID | MS_NOEXEC,
                             "newinstance,ptmxmode=0666,mode=0620,max=" TERMINALS);
    if (r < 0)
        return r;
    return show(SHARED, DEVICES "/shm", 0);
}

/* --- /proc ----------------------------------------------------------------------------------- */

/* What proc shows of the host beyond this sandbox's processes: hidden behind an empty file or
 * folder, or not writable. A kernel without one of them is fine. */
static const char *const hidden_files[] = {
    "kcore",       "keys",        "key-users",     "timer_list", "kallsyms",   "kmsg",
    "sched_debug", "interrupts",  "sysrq-trigger", "config.gz",  "kpagecount", "kpageflags",
    "cmdline",     "kpagecgroup", "latency_stats", "locks",      "softirqs",   "schedstat",
    "modules",     "iomem",       "ioports",       "mdstat",
};

/* Pressure is everybody's, and can be written: each write is a trigger in the kernel. In fs is how
 * the host's disks are mounted and what they are doing. */
static const char *const hidden_folders[] = {"acpi", "scsi", "asound", "pressure", "fs", "mpt"};

static const char *const fixed_folders[] = {"sys", "bus", "irq"};

/* Show `behind` in place of each, or (NULL) the same without the right to write. */
static int cover(const char *const *names, size_t count, const char *behind, unsigned long flags)
{
    for (size_t i = 0; i < count; i++) {
        char target[64];
        int r;

        (void) snprintf(target, sizeof(target), PROC "/%s", names[i]);
        r = show(behind ? behind : target, target, flags);
        if (r < 0 && r != -ENOENT && r != -ENOTDIR)
            return r;
    }
    return 0;
}

int child_mount_proc(struct child *child)
{
    const unsigned long guarded = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    int r = sys_mount_path_plain("proc", PROC, "proc", guarded, NULL);

    if (r < 0)
        return r;
    /* Opened before it is covered: this way in stays writable, for take_shares. */
    child->shares = sys_file_open(AT_FDCWD, PROC "/sys/user", O_PATH | O_DIRECTORY, 0);
    if (child->shares < 0)
        return child->shares;
    if (!CHILD_IS_OPEN(child, HIDDEN_PROC)) {
        r = cover(hidden_files, ARRAY_COUNT(hidden_files), DEVICES "/null", 0);
        if (r == 0)
            r = cover(hidden_folders, ARRAY_COUNT(hidden_folders), EMPTY, guarded | MS_RDONLY);
    }
    if (r == 0 && !CHILD_IS_OPEN(child, READ_ONLY_PROC))
        r = cover(fixed_folders, ARRAY_COUNT(fixed_folders), NULL, guarded | MS_RDONLY);
    return r;
}

/* --- the root -------------------------------------------------------------------------------- */

static void name_lower(size_t index, char ret_path[static LOWER_SIZE])
{
    (void) snprintf(ret_path, LOWER_SIZE, LOWERS "/%u", (unsigned int) (index % LOWERS_MAX));
}

int child_attach_layers(struct child *child)
{
    int r = sys_mount_attach(child->mounts[CHILD_DISK], AT_FDCWD, STAGE "/disk");

    for (size_t i = 0; r == 0 && i < child->lower_count; i++) {
        char path[LOWER_SIZE];

        name_lower(i, path);
        if (mkdir(path, 0755) < 0)
            return -errno;
        r = sys_mount_attach(child->mounts[CHILD_FIRST_LOWER + i], AT_FDCWD, path);
    }
    return r;
}

int child_mount_root(struct child *child)
{
    unsigned long no_set_id = CHILD_IS_OPEN(child, NO_SET_ID) ? 0 : MS_NOSUID;
    char options[LOWERS_SIZE + 128] = "lowerdir=";
    size_t used = strlen(options);

    for (size_t i = 0; i < child->lower_count; i++) {
        char path[LOWER_SIZE];

        name_lower(i, path);
        used +=
            (size_t) snprintf(options + used, sizeof(options) - used, "%s%s", i ? ":" : "", path);
    }
    (void) snprintf(options + used, sizeof(options) - used,
                    ",upperdir=" STAGE "/disk/" DISK_UPPER ",workdir=" STAGE "/disk/" DISK_WORK
                    ",userxattr");
    return sys_mount_path_plain("overlay", ROOT, "overlay", no_set_id | MS_NODEV, options);
}

/* A folder of the new root, by a path of which the disk's owner may have made links: those are not
 * followed, for outside they would lead to the host's folders. */
static int open_place(const struct child *child, int root, const char *path, bool make)
{
    int no_links = CHILD_IS_OPEN(child, LINKS) ? 0 : O_NOFOLLOW;
    AUTO(close) int folder = fcntl(root, F_DUPFD_CLOEXEC, 0);
    const char *at = path + strspn(path, "/");

    while (folder >= 0 && *at) {
        size_t length = strcspn(at, "/");
        char name[NAME_MAX + 1];
        int next;

        if (length > NAME_MAX)
            return -ENAMETOOLONG;
        memcpy(name, at, length);
        name[length] = '\0';
        next = openat(folder, name, O_PATH | O_DIRECTORY | O_CLOEXEC | no_links);
        if (next < 0 && errno == ENOENT && make && mkdirat(folder, name, 0755) == 0)
            next = openat(folder, name, O_PATH | O_DIRECTORY | O_CLOEXEC | no_links);
        if (next < 0)
            return -errno;
        (void) fd_close(folder);
        folder = next;
        at += length + strspn(at + length, "/");
    }
    return folder < 0 ? -errno : TAKE_FD(folder);
}

static int attach_at(const struct child *child, int mount, int root, const char *path, bool make)
{
    AUTO(close) int place = open_place(child, root, path, make);

    return place < 0 ? place : sys_mount_attach(mount, place, "");
}

/* A folder of the new root that may be shown elsewhere: its owner may have put it where he likes, by
 * links that are followed within this root. */
static int open_source(const struct child *child, int root, const char *path)
{
    if (CHILD_IS_OPEN(child, LINKS))
        return open_place(child, root, path, false);
    return sys_open_in_root(root, path, O_PATH | O_DIRECTORY, 0);
}

/* Show a folder of the root at another place of it, too. Where that is no folder any more an empty
 * one is shown: the sandbox starts, and its owner can mend it. */
static int bind_inside(const struct child *child, int root, const char *from, const char *to)
{
    static const struct sys_mount_attributes change = {.set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
    static const struct sys_mount_attributes fixed = {.set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                                             MOUNT_ATTR_RDONLY};
    AUTO(close) int source = open_source(child, root, from);
    AUTO(close)
    int mount =
        source < 0 ? sys_mount_copy(AT_FDCWD, EMPTY, false) : sys_mount_copy(source, "", false);
    int r = mount < 0 ? mount : sys_mount_change(mount, "", source < 0 ? &fixed : &change);

    return r < 0 ? r : attach_at(child, mount, root, to, false);
}

/* Everything around a sandbox knows this folder, images of containers do not have it. What has that
 * name already stays. Whichever user a program runs as, it is its own, as in `host`. */
static int make_workspace(int root)
{
    if (mkdirat(root, "workspace", 0777) < 0)
        return errno == EEXIST ? 0 : -errno;
    return fchmodat(root, "workspace", 0777, 0) < 0 ? -errno : 0;
}

/* Where names are asked for: images of containers expect to be told. What an image or somebody in
 * the sandbox wrote stays; an empty file is what image builders leave. Looked at before it is
 * opened: overlay copies a file to the disk when it is opened for writing. */
static int make_resolver(const struct child *child, int root)
{
    AUTO(close) int etc = open_place(child, root, "etc", true);
    AUTO(close) int file = -EBADF;
    char text[IMAGE_RESOLVER_SIZE];
    struct stat status;

    if (etc < 0)
        return 0; /* no folder: then it is how its maker wants it */
    if (fstatat(etc, "resolv.conf", &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        (!S_ISREG(status.st_mode) || status.st_size > 0))
        return 0; /* a link, or a file that has something in it */
    file =
        openat(etc, "resolv.conf", O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    if (file < 0)
        return 0;
    image_ground_resolver(text);
    return sys_file_write_full(file, text, strlen(text));
}

/* What is mounted by path below must be folders: a used disk may have links there. Nobody changes
 * them between this and the mounts: the disk is nobody's but ours now. */
int child_check_places(struct child *child)
{
    static const char *const places[] = {"dev", "proc", "sys"};
    AUTO(close) int root = sys_file_open(AT_FDCWD, ROOT, O_PATH | O_DIRECTORY, 0);
    int r;

    if (root < 0)
        return root;
    for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
        AUTO(close) int place = open_place(child, root, places[i], true);

        if (place < 0)
            return place;
    }
    if (!child->image->environment)
        return 0;
    r = make_workspace(root);
    return r < 0 ? r : make_resolver(child, root);
}

int child_mount_image_parts(struct child *child)
{
    AUTO(close) int root = sys_file_open(AT_FDCWD, ROOT, O_PATH | O_DIRECTORY, 0);
    size_t next = CHILD_FIRST_LOWER + child->lower_count;
    int r = root < 0 ? root : 0;

    for (size_t i = 0; r == 0 && i < child->image->mount_count; i++) {
        const struct image_mount *part = &child->image->mounts[i];

        r = part->inside ? bind_inside(child, root, part->inside, part->target)
                         : attach_at(child, child->mounts[next++], root, part->target, false);
    }
    child->next_mount = next;
    return r;
}

int child_mount_binds(struct child *child)
{
    AUTO(close) int root = sys_file_open(AT_FDCWD, ROOT, O_PATH | O_DIRECTORY, 0);
    int r = root < 0 ? root : 0;

    for (size_t i = 0; r == 0 && i < child->plan->bind_count; i++)
        r = attach_at(child, child->mounts[child->next_mount + i], root,
                      child->plan->binds[i].place, true);
    return r;
}

/* Take a mount from the stage, with what is mounted in it. */
static int move(const char *from, const char *to)
{
    return sys_mount_path_plain(from, to, NULL, MS_MOVE, NULL);
}

/* There is no sysfs: it tells of the host's hardware, and what programs ask it for is mostly found
 * elsewhere. */
static int mount_system(const struct child *child)
{
    /* The kernel shows it to those only who own their network. */
    if (CHILD_IS_OPEN(child, NO_SYSFS) && CHILD_IS_OPEN(child, NETWORK_OWNER))
        return sys_mount_path_plain("sysfs", ROOT "/sys", "sysfs", 0, NULL);
    return show(EMPTY, ROOT "/sys", MS_RDONLY | MS_NOSUID | MS_NODEV);
}

int child_move_stage(struct child *child)
{
    int r = move(DEVICES, ROOT "/dev");

    if (r == 0)
        r = move(PROC, ROOT "/proc");
    return r < 0 ? r : mount_system(child);
}

int child_pivot(struct child *child)
{
    (void) child;
    return child_pivot_to(ROOT);
}
