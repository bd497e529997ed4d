/* Files of the host, and what /proc and /sys tell and take. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "attack/attack.h"
#include "base/auto.h"

#define BTRFS_FS_INFO 0x8400941f /* only reads */
#define REACH_SECONDS 5
#define REACH_STEP_NS 10000000

/* --- the host's files ----------------------------------------------------------------------- */

static int file_can_be_read(const char *path)
{
    AUTO(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    char byte;

    return fd < 0 ? -errno : attack_result(read(fd, &byte, 1));
}

static int attack_read_target(const char *before, const char *name)
{
    char path[2 * PATH_MAX];

    (void) snprintf(path, sizeof(path), "%s%s/%s", before, attack_target("TARGET_FOLDER"), name);
    return file_can_be_read(path);
}

static int read_public_file(void)
{
    return attack_read_target("", "public");
}

static int read_private_file(void)
{
    return attack_read_target("", "private");
}

/* Out of a chroot by a folder above it, up to the top of all mounts. */
static int read_file_above_chroot(void)
{
    int top = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (top < 0)
        return -errno;
    if ((mkdir("/tmp/jail", 0755) < 0 && errno != EEXIST) || chroot("/tmp/jail") < 0 ||
        fchdir(top) < 0)
        return -errno;
    for (int i = 0; i < 64; i++) {
        if (chdir("..") < 0)
            return -errno;
    }
    return chroot(".") < 0 ? -errno : attack_read_target("", "public");
}

/* By the root or working folder of any process there is. */
static int read_file_by_process(void)
{
    DIR *processes = opendir("/proc");
    struct dirent *entry;

    if (!processes)
        return -errno;
    while ((entry = readdir(processes))) {
        char path[PATH_MAX];

        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        (void) snprintf(path, sizeof(path), "/proc/%s/root", entry->d_name);
        if (attack_read_target(path, "public") == 0)
            return 0;
        (void) snprintf(path, sizeof(path), "/proc/%s/cwd/../../../../../..", entry->d_name);
        if (attack_read_target(path, "public") == 0)
            return 0;
    }
    return -ENOENT;
}

/* What a link that was planted on the disk leads to: see plant_link. */
static int read_planted_link(void)
{
    return file_can_be_read("/usr/local/public");
}

/* The sandbox's own /usr/local is a folder of its disk: lead the next start elsewhere. The folder
 * itself was removed before. */
static int plant_link(void)
{
    return attack_result(symlink(attack_target("TARGET_FOLDER"), "/var/usrlocal"));
}

static time_t seconds_now(void)
{
    struct timespec now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* A pipe where the host looks for programs: whoever opens it there sees our mount on his folder. */
static int mount_on_host(void)
{
    static const struct timespec moment = {.tv_nsec = REACH_STEP_NS};
    const char *path = attack_target("TARGET_PIPE");
    int fd = -1;
    time_t end;

    if (mkfifo(path, 0666) < 0 && errno != EEXIST)
        return -errno;
    end = seconds_now() + REACH_SECONDS;
    while (fd < 0 && seconds_now() < end) {
        (void) nanosleep(&moment, NULL);
        fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    }
    (void) unlink(path);
    return fd < 0 ? -ENXIO : close(fd);
}

static int write_group(void)
{
    return attack_result(open(attack_target("TARGET_GROUP"), O_WRONLY | O_CLOEXEC));
}

static int ask_pool(void)
{
    static char answer[4096];
    AUTO(close) int fd = open(attack_target("TARGET_POOL"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : attack_result(ioctl(fd, BTRFS_FS_INFO, answer));
}

/* --- devices -------------------------------------------------------------------------------- */

static int make_device(void)
{
    int r = attack_result(mknod("/device", S_IFCHR | 0600, makedev(1, 3)));

    (void) unlink("/device");
    return r;
}

/* Device 0:0, which the kernel lets every root of a user namespace make. */
static int make_whiteout(void)
{
    int r = attack_result(mknod("/dev/shm/whiteout", S_IFCHR | 0600, makedev(0, 0)));

    (void) unlink("/dev/shm/whiteout");
    return r;
}

/* --- /proc and /sys ------------------------------------------------------------------------- */

/* Whether the kernel's own file is there: behind the wall is a device, or an empty folder. */
static int attack_see(const char *path)
{
    struct stat status;

    if (stat(path, &status) < 0)
        return -errno;
    return S_ISREG(status.st_mode) ? 0 : -EACCES;
}

static int see_symbols(void)
{
    return attack_see("/proc/kallsyms");
}

static int see_keys(void)
{
    return attack_see("/proc/keys");
}

static int see_timers(void)
{
    return attack_see("/proc/timer_list");
}

static int see_memory(void)
{
    return attack_see("/proc/kcore");
}

static int see_interrupts(void)
{
    return attack_see("/proc/interrupts");
}

/* Which files of the host are locked, by disk and number. */
static int see_locks(void)
{
    return attack_see("/proc/locks");
}

/* One folder for each disk of the host, with how it is mounted and used. */
static int see_disk_options(void)
{
    return attack_result(access("/proc/fs/ext4", F_OK));
}

static int see_boot_parameters(void)
{
    return attack_see("/proc/cmdline");
}

static int trigger_pressure(void)
{
    AUTO(close) int fd = open("/proc/pressure/memory", O_RDWR | O_CLOEXEC);

    return fd < 0 ? -errno : 0;
}

/* Never opened, let alone written. */
static int see_sysrq(void)
{
    return attack_see("/proc/sysrq-trigger");
}

static int write_text(const char *path, const char *text)
{
    AUTO(close) int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd < 0 ? -errno : attack_result(write(fd, text, strlen(text)));
}

/* Of the sandbox's own network namespace. */
static int write_network_setting(void)
{
    return write_text("/proc/sys/net/ipv4/ip_default_ttl", "64");
}

/* Of its own ipc namespace, which its root may change without any capability. */
static int write_queue_setting(void)
{
    return write_text("/proc/sys/kernel/msgmax", "8192");
}

static int raise_share(void)
{
    return write_text("/proc/sys/user/max_inotify_instances", "1000000");
}

/* The host's: opened and not written. */
static int open_core_pattern(void)
{
    return attack_result(open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC));
}

static int see_sysfs(void)
{
    return file_can_be_read("/sys/kernel/uevent_seqnum");
}

/* Names of the host's groups: those of ours begin with "burrow". */
static int see_group_names(void)
{
    char text[4096] = "";
    AUTO(close) int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);

    if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
        return -errno;
    return strstr(text, "burrow") ? 0 : -ENOENT;
}

const struct attack attack_files[] = {
    {"read_public_file", read_public_file},
    {"read_private_file", read_private_file},
    {"read_file_above_chroot", read_file_above_chroot},
    {"read_file_by_process", read_file_by_process},
    {"plant_link", plant_link},
    {"read_planted_link", read_planted_link},
    {"mount_on_host", mount_on_host},
    {"write_group", write_group},
    {"ask_pool", ask_pool},
    {"make_device", make_device},
    {"make_whiteout", make_whiteout},
    {"see_symbols", see_symbols},
    {"see_keys", see_keys},
    {"see_timers", see_timers},
    {"see_memory", see_memory},
    {"see_interrupts", see_interrupts},
    {"see_locks", see_locks},
    {"see_disk_options", see_disk_options},
    {"see_boot_parameters", see_boot_parameters},
    {"trigger_pressure", trigger_pressure},
    {"see_sysrq", see_sysrq},
    {"write_network_setting", write_network_setting},
    {"write_queue_setting", write_queue_setting},
    {"raise_share", raise_share},
    {"open_core_pattern", open_core_pattern},
    {"see_sysfs", see_sysfs},
    {"see_group_names", see_group_names},
    {NULL, NULL},
};
