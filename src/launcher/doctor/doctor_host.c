/* The doctor's look at what the host keeps for sandboxes: cgroups, disks, ids, limits. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/number.h"
#include "launcher/cgroup/cgroup_host.h"
#include "launcher/cgroup/cgroup_reclaim.h"
#include "launcher/disk/disk_pool_look.h"
#include "launcher/doctor/doctor_internal.h"
#include "launcher/ids/id_range.h"
#include "launcher/ids/id_range_reserved.h"
#include "launcher/launcher_look.h"
#include "launcher/wall/process_limit.h"
#include "launcher/wall/process_limit_host.h"
#include "sys/file/sys_file.h"

#define CGROUPS "cgroups"
#define DISK    "disk"
#define IDS     "ids"
#define LIMITS  "limits"

/* --- cgroups -------------------------------------------------------------------------------- */

/* "memory is not limited: no mounted hierarchy has the controller (mount it ...)": what is lost and
 * why in one, what to do often in brackets. It is shown whole. */
static void look_at_controller(const struct cgroup_host *host, enum cgroup_controller controller,
                               struct doctor_report *report)
{
    const char *missing = cgroup_host_missing(host, controller);
    enum cgroup_version version = cgroup_host_version(host, controller);

    if (missing)
        doctor_add(
            report, CGROUPS, DOCTOR_WARNING, cgroup_controller_name(controller),
            "give burrow a cgroup2 with this controller: boot with "
            "systemd.unified_cgroup_hierarchy=1, and on systemd use a unit with Delegate=yes",
            "%s", missing);
    else
        doctor_add(report, CGROUPS, DOCTOR_ON, cgroup_controller_name(controller), NULL, "%s",
                   version == CGROUP_V2 ? "v2" : "v1");
}

/* "0::/user.slice/...": where this process is in v2; "" when nowhere. */
static void read_own_group(const struct doctor_options *options, char *ret_path, size_t size)
{
    AUTO(free) char *text = doctor_read(options->proc, "self/cgroup");
    const char *line = strstr(text, "0::/");

    (void) snprintf(ret_path, size, "%.*s", line ? (int) strcspn(line + 3, "\n") : 0,
                    line ? line + 3 : "");
}

/* Burrow up to 249349c enabled a controller in groups with processes, which makes them so. */
static void look_at_threads(const struct doctor_options *options, struct doctor_report *report)
{
    char own[512], path[sizeof(own) + 32];
    AUTO(free) char *type = NULL;

    read_own_group(options, own, sizeof(own));
    (void) snprintf(path, sizeof(path), "/sys/fs/cgroup%s", own);
    type = doctor_read(path, "cgroup.type");
    if (strstr(type, "threaded"))
        doctor_add(report, CGROUPS, DOCTOR_WARNING, "threaded groups",
                   "log out and in again, or restart the unit: the group goes with its processes",
                   "%s is threaded: memory of what runs in it cannot be limited", own);
    else if (*type)
        doctor_add(report, CGROUPS, DOCTOR_ON, "threaded groups", NULL, "none here");
}

static void look_at_place(const struct cgroup_host *host, const struct doctor_options *options,
                          struct doctor_report *report)
{
    const char *place = cgroup_host_place(host, CGROUP_MEMORY);
    bool is_unit = place && options->cgroup_parent && strstr(place, options->cgroup_parent);

    if (place && cgroup_host_version(host, CGROUP_MEMORY) == CGROUP_V2)
        doctor_add(report, CGROUPS, DOCTOR_ON, "place", NULL, "%.*s%s",
                   (int) (strrchr(place, '/') - place), place,
                   is_unit ? ", a unit of their own: they go on while burrow.service restarts"
                           : ", as started from here");
}

/* Only what sleeps is pushed out; running sandboxes do not use swap. */
static void look_at_swap(const struct cgroup_host *host, struct doctor_report *report)
{
    if (cgroup_can_reclaim(host))
        doctor_add(report, CGROUPS, DOCTOR_ON, "reclaim", NULL,
                   "memory of sleeping sandboxes goes to swap");
    else
        doctor_add(report, CGROUPS, DOCTOR_OFF, "reclaim", NULL,
                   "sleeping sandboxes keep their memory: this host has no swap, or no memory "
                   "controller");
}

/* With a group of our own name, beside that of a launcher that may be at work. In a child: it is
 * not alone in its group, so it is never moved, and a leaf for that is never made. */
void doctor_cgroups(const struct doctor_options *options, struct doctor_report *report)
{
    AUTO(cgroup_host) struct cgroup_host *host = NULL;
    char name[48];
    struct cgroup_host_options how = {.name = name, .parent = options->cgroup_parent};
    struct error err = ERROR_INIT;

    (void) snprintf(name, sizeof(name), "%.24s-doctor-%d", options->cgroup, (int) getpid());
    if (cgroup_host_open(&how, &host, &err) < 0) {
        doctor_add(report, CGROUPS, DOCTOR_WARNING, "cgroups", "mount /proc and cgroup2",
                   "no limits at all: %s", err.message);
        return;
    }
    for (int i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
        look_at_controller(host, (enum cgroup_controller) i, report);
    look_at_place(host, options, report);
    look_at_threads(options, report);
    look_at_swap(host, report);
    cgroup_host_remove_base(host);
}

/* --- disk ----------------------------------------------------------------------------------- */

static const char *const kind_details[] = {
    [DISK_POOL_LOOP] = "btrfs in a file",
    [DISK_POOL_FOLDER] = "subvolumes of the btrfs it lies on",
    [DISK_POOL_PLAIN] = "plain folders",
};

static void describe_space(const struct disk_pool_look *look, struct doctor_report *report)
{
    char size[NUMBER_TEXT_SIZE], free_inside[NUMBER_TEXT_SIZE], beneath[NUMBER_TEXT_SIZE];
    bool is_low =
        look->space.beneath_free < DISK_POOL_RESERVE ||
        (look->space.size > 0 && look->space.free < look->space.size / DISK_POOL_RESERVE_PART &&
         look->space.free < DISK_POOL_RESERVE);
    const char *remedy = is_low ? "make room, or give a larger --pool-size" : NULL;
    enum doctor_state state = is_low ? DOCTOR_WARNING : DOCTOR_ON;

    number_format_size(look->space.size, size);
    number_format_size(look->space.free, free_inside);
    number_format_size(look->space.beneath_free, beneath);
    if (look->space.size == 0)
        doctor_add(report, DISK, state, "space", remedy, "%s free", beneath);
    else
        doctor_add(report, DISK, state, "space", remedy,
                   "%s free of %s, %s free in the filesystem beneath", free_inside, size, beneath);
}

/* Only worth a warning where they would have been used. */
static void describe_parts(const struct disk_pool_look *look, struct doctor_report *report)
{
    const struct {
        const char *name;
        bool is_there;
        const char *remedy;
    } parts[] = {
        {"loop devices", look->has_loop,
         "load the module (`modprobe loop`), or let the container have /dev/loop-control"},
        {"btrfs", look->has_btrfs, "load the module (`modprobe btrfs`)"},
        {"mkfs.btrfs", look->has_mkfs, "install the package btrfs-progs"},
    };
    bool is_used = look->kind != DISK_POOL_FOLDER;

    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        if (parts[i].is_there)
            doctor_add(report, DISK, DOCTOR_ON, parts[i].name, NULL, "%s", "");
        else
            doctor_add(report, DISK, is_used ? DOCTOR_WARNING : DOCTOR_OFF, parts[i].name,
                       is_used ? parts[i].remedy : NULL, "%s",
                       is_used ? "not found; disks with limits need it" : "not needed here");
    }
}

void doctor_disk(const struct doctor_options *options, struct doctor_report *report)
{
    struct error err = ERROR_INIT;
    struct disk_pool_look look;
    char path[4096];

    (void) snprintf(path, sizeof(path), "%s/pool", options->data);
    if (disk_pool_look(path, options->dev, options->proc, &look, &err) < 0) {
        doctor_add(report, DISK, DOCTOR_MISSING, "pool", "give another folder with --data", "%s",
                   err.message);
        return;
    }
    if (look.space.is_read_only)
        doctor_add(report, DISK, DOCTOR_MISSING, "pool", look.reason, "'%s' cannot be written",
                   path);
    else
        doctor_add(report, DISK, DOCTOR_ON, "pool", NULL, "%s: %s, %s", path,
                   kind_details[look.kind],
                   look.is_mounted ? "in use"
                   : look.exists   ? "mounted when a launcher starts"
                                   : "made when a launcher starts");
    if (look.is_limited)
        doctor_add(report, DISK, DOCTOR_ON, "limits", look.reason, "%s",
                   *look.quota ? look.quota : "by the pool's own quota");
    else
        doctor_add(report, DISK, DOCTOR_WARNING, "limits", look.reason,
                   "sandboxes can fill the disk, and there are no snapshots and forks");
    describe_space(&look, report);
    describe_parts(&look, report);
}

/* --- ids ------------------------------------------------------------------------------------ */

static void look_at_ranges(const struct doctor_options *options, struct doctor_report *report)
{
    AUTO(id_range_reserved) struct id_range_reserved reserved = ID_RANGE_RESERVED_INIT;
    const unsigned int all = (ID_RANGE_END - ID_RANGE_FIRST) / ID_RANGE_SIZE;
    struct error err = ERROR_INIT;
    unsigned int usable = 0;
    char process[256];

    (void) snprintf(process, sizeof(process), "%s/self", options->proc);
    if (id_range_reserved_read(&reserved, options->etc, process, &err) < 0) {
        doctor_add(report, IDS, DOCTOR_MISSING, "ranges", NULL, "%s", err.message);
        return;
    }
    for (unsigned int i = 0; i < all; i++)
        usable +=
            !id_range_reserved_has(&reserved, ID_RANGE_FIRST + i * ID_RANGE_SIZE, ID_RANGE_SIZE);
    if (usable == 0)
        doctor_add(report, IDS, DOCTOR_MISSING, "ranges",
                   "take them out of /etc/subuid and /etc/subgid, or run burrow outside of the "
                   "container that lacks these ids",
                   "all ids from %u to %u belong to somebody else or do not exist here",
                   ID_RANGE_FIRST, ID_RANGE_END - 1);
    else
        doctor_add(report, IDS, usable < options->sandboxes ? DOCTOR_WARNING : DOCTOR_ON, "ranges",
                   usable < options->sandboxes
                       ? "take ids above 268435456 out of /etc/subuid and /etc/subgid"
                       : NULL,
                   "room for %u sandboxes%s", usable,
                   usable < all ? ", the rest belongs to others (/etc/subuid, accounts)" : "");
}

/* As the launcher does: without NSS, by the line of /etc/passwd. */
static void look_at_user(const struct doctor_options *options, struct doctor_report *report)
{
    AUTO(free) char *accounts = doctor_read(options->etc, "passwd");
    size_t length = strlen(options->user);
    char remedy[DOCTOR_TEXT_SIZE];

    for (const char *line = accounts; *line;) {
        if (strncmp(line, options->user, length) == 0 && line[length] == ':') {
            doctor_add(report, IDS, DOCTOR_ON, "user of the daemon", NULL, "%s", options->user);
            return;
        }
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    (void) snprintf(remedy, sizeof(remedy),
                    "useradd --system --no-create-home --shell /usr/sbin/nologin %s",
                    options->user);
    doctor_add(report, IDS, DOCTOR_WARNING, "user of the daemon", remedy,
               "there is no user '%s': `burrow serve` does not start, `burrow run` works",
               options->user);
}

void doctor_ids(const struct doctor_options *options, struct doctor_report *report)
{
    look_at_ranges(options, report);
    look_at_user(options, report);
}

/* --- limits --------------------------------------------------------------------------------- */

/* Whether the launcher will be able to raise it: /proc/sys is read-only in many containers. */
static bool is_writable(int proc, const char *name)
{
    char path[128] = "sys/";

    for (size_t i = 0; name[i] && i + 5 < sizeof(path); i++)
        path[4 + i] = name[i] == '.' ? '/' : name[i];
    return faccessat(proc, path, W_OK, 0) == 0;
}

static void describe_limit(int proc, const struct process_limit_finding *finding,
                           struct doctor_report *report)
{
    if (finding->state == PROCESS_LIMIT_MISSING)
        doctor_add(report, LIMITS, DOCTOR_OFF, finding->name, NULL, "this kernel does not have it");
    else if (finding->state != PROCESS_LIMIT_LOW && finding->needed)
        doctor_add(report, LIMITS, DOCTOR_ON, finding->name, NULL, "%llu",
                   (unsigned long long) finding->value);
    else if (finding->state != PROCESS_LIMIT_LOW)
        doctor_add(report, LIMITS, DOCTOR_ON, finding->name, NULL,
                   "crashes of sandboxes reach no program of the host");
    else if (finding->raised_at_start && is_writable(proc, finding->name))
        doctor_add(report, LIMITS, DOCTOR_OFF, finding->name, NULL,
                   "%llu, the launcher raises it to %llu when it starts",
                   (unsigned long long) finding->value, (unsigned long long) finding->needed);
    else
        doctor_add(report, LIMITS, DOCTOR_WARNING, finding->name, NULL, "%s", finding->sentence);
}

/* In a child: planning raises limits of the process. */
void doctor_limits(const struct doctor_options *options, struct doctor_report *report)
{
    struct process_limit_need need = PROCESS_LIMIT_NEED(options->sandboxes);
    AUTO(close) int proc = sys_file_open(AT_FDCWD, options->proc, O_PATH | O_DIRECTORY, 0);
    struct process_limit_report findings;
    struct process_limits limits;
    int r = process_limits_plan(&limits, 0);

    if (r < 0)
        doctor_add(report, LIMITS, DOCTOR_MISSING, "limits of a process", NULL, "%s",
                   strerrordesc_np(-r));
    need.launcher = launcher_look_find(proc, options->data);
    process_limit_check_host(proc, &need, false, r < 0 || limits.core_handler_runs, &findings);
    for (size_t i = 0; i < findings.count; i++)
        describe_limit(proc, &findings.findings[i], report);
}
