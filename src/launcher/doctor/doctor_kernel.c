/* The doctor's look at root's rights and at the kernel's calls. */
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "launcher/doctor/doctor_internal.h"
#include "sys/process/sys_process.h"
#include "sys/sys_probe.h"

#define RIGHTS "rights"
#define KERNEL "kernel"

/* The oldest kernel whose mounts can do what a root needs. */
#define KERNEL_MAJOR 6
#define KERNEL_MINOR 1

/* What the launcher uses. The rest it could do without. */
static const struct {
    const char *name;
    int number;
    bool is_needed;
    const char *use; /* or, where it is not needed, what is lost without it */
} capabilities[] = {
    {"sys_admin", CAP_SYS_ADMIN, true, "namespaces, mounts, cgroups"},
    {"setuid", CAP_SETUID, true, "id maps, the daemon's user"},
    {"setgid", CAP_SETGID, true, "id maps, the daemon's group"},
    {"setpcap", CAP_SETPCAP, true, "taking rights away from what is started"},
    {"chown", CAP_CHOWN, true, "disks and sockets of others"},
    {"dac_override", CAP_DAC_OVERRIDE, true, "disks of sandboxes"},
    {"fowner", CAP_FOWNER, true, "disks of sandboxes"},
    {"kill", CAP_KILL, true, "ending sandboxes"},
    {"sys_ptrace", CAP_SYS_PTRACE, true, "the namespaces of PID 1, which is closed to all others"},
    {"net_admin", CAP_NET_ADMIN, false, "no network but `none`"},
    {"sys_resource", CAP_SYS_RESOURCE, false, "hard limits stay as they are, see limits below"},
};

#define STATUS_FIELD "CapEff:"

/* The effective set, from the text of /proc/self/status. */
static bool read_effective(const char *proc, unsigned long long *ret_set)
{
    AUTO(free) char *status = doctor_read(proc, "self/status");
    const char *digits = strstr(status, STATUS_FIELD);
    char *end;

    if (!digits)
        return false;
    digits += strlen(STATUS_FIELD);
    *ret_set = strtoull(digits, &end, 16);
    return end > digits;
}

void doctor_rights(const struct doctor_options *options, struct doctor_report *report)
{
    unsigned long long set = 0;
    bool is_known = read_effective(options->proc, &set);

    if (geteuid() == 0)
        doctor_add(report, RIGHTS, DOCTOR_ON, "root", NULL, "%s", "");
    else
        doctor_add(report, RIGHTS, DOCTOR_MISSING, "root", "run it with sudo", "this is user %u",
                   (unsigned int) geteuid());
    if (!is_known)
        doctor_add(report, RIGHTS, DOCTOR_WARNING, "capabilities", "mount /proc",
                   "%s/self/status cannot be read", options->proc);
    for (size_t i = 0; is_known && i < ARRAY_COUNT(capabilities); i++) {
        if (set & (1ULL << capabilities[i].number))
            doctor_add(report, RIGHTS, DOCTOR_ON, capabilities[i].name, NULL, "%s",
                       capabilities[i].is_needed ? capabilities[i].use : "");
        else
            doctor_add(report, RIGHTS, capabilities[i].is_needed ? DOCTOR_MISSING : DOCTOR_WARNING,
                       capabilities[i].name,
                       "start the launcher outside of this container, or give the container this "
                       "capability",
                       "%s%s", capabilities[i].is_needed ? "needed for " : "", capabilities[i].use);
    }
}

/* "6.1.0-18-amd64" -> 6, 1. */
static bool parse_release(const char *release, unsigned long *ret_major, unsigned long *ret_minor)
{
    const char *minor;
    char *end;

    *ret_major = strtoul(release, &end, 10);
    if (end == release || *end != '.')
        return false;
    minor = end + 1;
    *ret_minor = strtoul(minor, &end, 10);
    return end > minor;
}

static void look_at_version(const struct doctor_options *options, struct doctor_report *report)
{
    AUTO(free) char *release = doctor_read(options->proc, "sys/kernel/osrelease");
    unsigned long major, minor;

    release[strcspn(release, "\n")] = '\0';
    if (!parse_release(release, &major, &minor))
        doctor_add(report, KERNEL, DOCTOR_WARNING, "version", NULL, "'%s' is not understood",
                   release);
    else if (major > KERNEL_MAJOR || (major == KERNEL_MAJOR && minor >= KERNEL_MINOR))
        doctor_add(report, KERNEL, DOCTOR_ON, "version", NULL, "Linux %s", release);
    else
        doctor_add(report, KERNEL, DOCTOR_MISSING, "version", "install a newer kernel",
                   "Linux %s is too old, burrow needs %d.%d", release, KERNEL_MAJOR, KERNEL_MINOR);
}

/* Those whose fallback is not enough for a sandbox. */
static bool is_needed(enum sys_feature feature)
{
    return feature == SYS_FEATURE_MOUNT_API || feature == SYS_FEATURE_MOUNT_SETATTR;
}

static void look_at_feature(enum sys_feature feature, struct doctor_report *report)
{
    int found = sys_probe(feature);

    if (found > 0)
        doctor_add(report, KERNEL, DOCTOR_ON, sys_feature_name(feature), NULL, "%s", "");
    else if (found < 0)
        doctor_add(report, KERNEL, DOCTOR_WARNING, sys_feature_name(feature), NULL,
                   "could not be tried: %s", strerrordesc_np(-found));
    else if (is_needed(feature))
        doctor_add(report, KERNEL, DOCTOR_MISSING, sys_feature_name(feature),
                   "use a newer kernel, or a container whose seccomp filter allows it",
                   "sandboxes cannot be built without it");
    else
        doctor_add(report, KERNEL, DOCTOR_OFF, sys_feature_name(feature), NULL, "%s",
                   sys_feature_consequence(feature));
}

void doctor_kernel(const struct doctor_options *options, struct doctor_report *report)
{
    AUTO(close) int pidfd = sys_process_open(getpid());

    look_at_version(options, report);
    if (pidfd >= 0)
        doctor_add(report, KERNEL, DOCTOR_ON, "pidfd", NULL, "%s", "");
    else
        doctor_add(report, KERNEL, DOCTOR_MISSING, "pidfd",
                   "use a newer kernel, or a container whose seccomp filter allows it",
                   "processes cannot be held: %s", strerrordesc_np(-pidfd));
    for (int i = 0; i < SYS_FEATURE_COUNT; i++)
        look_at_feature((enum sys_feature) i, report);
}
