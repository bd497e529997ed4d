/* The doctor looks at the host's mounts: whether they are shared, whether ours stay apart from
 * them, and whether an earlier burrow left some of a sandbox's there. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/auto.h"
#include "launcher/doctor/doctor_internal.h"
#include "sys/mount/sys_mount_path.h"

#define AREA      "mounts"
#define PATH_SIZE 256
#define LINE_SIZE 4096

/* "36 35 98:0 /root /place rw,noatime shared:1 - ext4 /dev/root rw" */
struct mount_line {
    char root[PATH_SIZE];
    char place[PATH_SIZE];
    char type[32];
    bool is_shared;
};

static bool read_line(const char *text, struct mount_line *ret_line)
{
    char line[LINE_SIZE];
    const char *dash;

    (void) snprintf(line, sizeof(line), "%.*s", (int) strcspn(text, "\n"), text);
    dash = strstr(line, " - ");
    if (!dash || sscanf(line, "%*s %*s %*s %255s %255s", ret_line->root, ret_line->place) != 2 ||
        sscanf(dash, " - %31s", ret_line->type) != 1)
        return false;
    ret_line->is_shared = memmem(line, (size_t) (dash - line), " shared:", strlen(" shared:"));
    return true;
}

/* The writable /usr/local of image `host`, which builds up to 0.1.0 let propagate. */
static bool is_left_over(const struct mount_line *line)
{
    return strcmp(line->type, "overlay") == 0 && strcmp(line->root, "/var/usrlocal") == 0;
}

static void look_at_table(const struct doctor_options *options, struct doctor_report *report)
{
    AUTO(free) char *table = doctor_read(options->proc, "self/mountinfo");
    char place[PATH_SIZE] = "";
    bool is_shared = false;
    size_t left = 0;

    for (const char *at = table; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        struct mount_line line = {.is_shared = false};

        if (!read_line(at, &line))
            continue;
        if (strcmp(line.place, "/") == 0)
            is_shared = line.is_shared;
        if (is_left_over(&line) && left++ == 0)
            (void) snprintf(place, sizeof(place), "%s", line.place);
    }
    doctor_add(report, AREA, is_shared ? DOCTOR_ON : DOCTOR_OFF, "shared mounts", NULL,
               is_shared ? "%s"
                         : "%s: what is mounted on it later, burrow sees when it is restarted",
               is_shared ? "as systemd has it" : "this host does not share its mounts");
    if (left)
        doctor_add(report, AREA, DOCTOR_WARNING, "mounts of sandboxes on the host",
                   "stop burrow, `umount` that folder until it says `not mounted` (or reboot), and "
                   "take the host for compromised if you did not trust what ran in sandboxes",
                   "%zu at '%s', made by an earlier burrow: programs there are a sandbox's", left,
                   place);
    else
        doctor_add(report, AREA, DOCTOR_ON, "no mounts of sandboxes on the host", NULL, "%s", "");
}

/* In this process, which ends afterwards: mount something beneath a copy of a shared mount. 1 when
 * it stays there, 0 when it reaches the original, -errno. */
static int try_copy(void)
{
    struct stat above, place;
    int r = sys_mount_path_separate();

    if (r == 0)
        r = sys_mount_path_new("tmpfs", "tmpfs", "/tmp", MOUNT_ATTR_NOSUID, NULL);
    if (r == 0)
        r = sys_mount_path_propagate("/tmp", MS_SHARED, false);
    if (r == 0 && (mkdir("/tmp/place", 0700) < 0 || mkdir("/tmp/copy", 0700) < 0))
        r = -errno;
    if (r == 0)
        r = sys_mount_path_bind("/tmp", "/tmp/copy", 0, false);
    if (r == 0)
        r = sys_mount_path_new("tmpfs", "tmpfs", "/tmp/copy/place", MOUNT_ATTR_NOSUID, NULL);
    if (r < 0)
        return r;
    if (stat("/tmp", &above) < 0 || stat("/tmp/place", &place) < 0)
        return -errno;
    return above.st_dev == place.st_dev;
}

void doctor_host_mounts(const struct doctor_options *options, struct doctor_report *report)
{
    int r;

    look_at_table(options, report);
    r = try_copy();
    if (r > 0)
        doctor_add(report, AREA, DOCTOR_ON, "private copies of mounts", NULL, "%s", "");
    else
        doctor_add(report, AREA, DOCTOR_MISSING, "private copies of mounts",
                   "use Linux 5.12 or newer, outside of a container or chroot",
                   "what sandboxes mount would reach the host: %s",
                   r < 0 ? strerrordesc_np(-r) : "a copy stays in the group of its original");
}
