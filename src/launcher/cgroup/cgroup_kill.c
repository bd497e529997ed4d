#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "launcher/cgroup/cgroup_freeze.h"
#include "launcher/cgroup/cgroup_internal.h"
#include "sys/file/sys_file.h"
#include "sys/process/sys_process.h"

/* As many processes as pid_max allows, eight bytes each. */
#define PROCS_MAX (32 << 20)

/* How long one round waits for a group to stand still before it signals what it sees. */
#define ROUND_FREEZE_MS 10

/* Take the next pid off a list of lines. 0 at the end. Processes of pid namespaces that we cannot
 * see show as 0 in such a list and are skipped: kill(0) would hit ourselves. */
static pid_t next_pid(const char **list)
{
    while (**list) {
        size_t length = strcspn(*list, "\n");
        uint64_t pid = 0;
        int result = number_parse_digits(*list, length, INT32_MAX, &pid);

        *list += length + ((*list)[length] == '\n');
        if (result == 0 && pid > 0)
            return (pid_t) pid;
    }
    return 0;
}

static int read_procs(const struct cgroup_hierarchy *hierarchy, const char *path, char **ret_list)
{
    size_t length;

    return sys_file_read_all(hierarchy->base, path, PROCS_MAX, ret_list, &length);
}

static bool is_listed(const char *list, pid_t wanted)
{
    pid_t pid;

    while ((pid = next_pid(&list))) {
        if (pid == wanted)
            return true;
    }
    return false;
}

/* A pid may come to mean a stranger between reading and signalling. So take hold of the process
 * first and look whether that pid is still in the group: then the one held is the one listed, or
 * it is dead and the signal goes nowhere. */
static void signal_checked(const struct cgroup_hierarchy *hierarchy, const char *path, pid_t pid)
{
    AUTO(close) int pidfd = sys_process_open(pid);
    AUTO(free) char *list = NULL;

    if (pidfd >= 0 && read_procs(hierarchy, path, &list) == 0 && is_listed(list, pid))
        (void) sys_process_kill(pidfd, SIGKILL); /* gone is what we want */
}

/* `frozen`: nobody in there can end, so the pids stay what they are. */
static void signal_group(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                         enum cgroup_part part, bool frozen)
{
    char path[CGROUP_FILE_PATH_SIZE];
    AUTO(free) char *list = NULL;
    const char *rest;
    pid_t pid;

    cgroup_path(hierarchy, cgroup, part, "cgroup.procs", path);
    if (read_procs(hierarchy, path, &list) < 0)
        return; /* no such group (any more): nobody to kill */
    rest = list;
    while ((pid = next_pid(&rest))) {
        if (frozen)
            (void) kill(pid, SIGKILL); /* cannot fail on a process that stands still */
        else
            signal_checked(hierarchy, path, pid);
    }
}

/* Stop everything so that no fork escapes, signal what is there, and let it die. */
static void kill_round(const struct cgroup *cgroup)
{
    const struct cgroup_hierarchy *hierarchy = cgroup_census(cgroup->host);
    bool v1_freezer = cgroup_host_version(cgroup->host, CGROUP_FREEZER) == CGROUP_V1;
    bool frozen = cgroup_freeze(cgroup, CGROUP_WHOLE, NULL) == 0 &&
                  cgroup_freeze_wait(cgroup, CGROUP_WHOLE, ROUND_FREEZE_MS, NULL) == 0;

    signal_group(hierarchy, cgroup, CGROUP_WHOLE, frozen && v1_freezer);
    if (hierarchy->leaves & CGROUP_BIT(CGROUP_AGENT))
        signal_group(hierarchy, cgroup, CGROUP_AGENT, frozen && v1_freezer);
    if (hierarchy->leaves & CGROUP_BIT(CGROUP_WORK))
        signal_group(hierarchy, cgroup, CGROUP_WORK, frozen && v1_freezer);
    /* Fails where there is no freezer, and then nothing has to be thawed. */
    (void) cgroup_thaw(cgroup, CGROUP_WORK, NULL);
    (void) cgroup_thaw(cgroup, CGROUP_WHOLE, NULL);
}

static int kill_tree(const struct cgroup *cgroup)
{
    const struct cgroup_hierarchy *hierarchy = cgroup_census(cgroup->host);

    if (hierarchy->version != CGROUP_V2)
        return -ENOENT;
    return cgroup_write(hierarchy, cgroup, CGROUP_WHOLE, "cgroup.kill", "1");
}

int cgroup_kill(const struct cgroup *cgroup, int timeout_ms, struct error *err)
{
    uint64_t deadline = cgroup_deadline(cgroup->host, timeout_ms);

    for (;;) {
        int populated = cgroup_populated(cgroup, err);

        if (populated <= 0)
            return populated;
        /* Linux 5.14 and later. Its victims need no thawing. */
        if (kill_tree(cgroup) < 0)
            kill_round(cgroup);
        if (timeout_ms <= 0)
            return 0;
        if (cgroup_time_left_ms(cgroup->host, deadline) == 0)
            return error_set(err, ERR_UNAVAILABLE, ETIMEDOUT, "kill all processes of %s",
                             cgroup->id.text);
        cgroup_pause();
    }
}
