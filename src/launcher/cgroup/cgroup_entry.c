#include <errno.h>
#include <fcntl.h>

#include "launcher/cgroup/cgroup.h"
#include "launcher/cgroup/cgroup_internal.h"
#include "sys/file/sys_file.h"

static int open_procs(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                      enum cgroup_part part, int *fds, size_t *count)
{
    char path[CGROUP_FILE_PATH_SIZE];
    int fd;

    /* The mover has one thread, so on v1 `tasks` does the same; moving a whole process takes a lock
     * that now and then waits milliseconds for all CPUs. */
    cgroup_path(hierarchy, cgroup, part, hierarchy->version == CGROUP_V1 ? "tasks" : "cgroup.procs",
                path);
    fd = sys_file_open(hierarchy->base, path, O_WRONLY, 0);
    if (fd < 0)
        return fd;
    fds[(*count)++] = fd;
    return 0;
}

static int open_directory(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                          int *ret_fd)
{
    char path[CGROUP_FILE_PATH_SIZE];
    int fd;

    cgroup_path(hierarchy, cgroup, CGROUP_AGENT, "", path);
    fd = sys_file_open(hierarchy->base, path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return fd;
    *ret_fd = fd;
    return 0;
}

static int open_ways_in(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                        bool for_clone, struct cgroup_entry *entry)
{
    int result =
        hierarchy->version == CGROUP_V2 && for_clone
            ? open_directory(hierarchy, cgroup, &entry->clone_into)
            : open_procs(hierarchy, cgroup, CGROUP_AGENT, entry->agent, &entry->agent_count);

    /* Where both share the sandbox's group there is nowhere to move to. */
    if (result == 0 && hierarchy->leaves & CGROUP_BIT(CGROUP_WORK))
        result = open_procs(hierarchy, cgroup, CGROUP_WORK, entry->work, &entry->work_count);
    return result;
}

int cgroup_open_work(const struct cgroup *cgroup)
{
    const struct cgroup_host *host = cgroup->host;
    char path[CGROUP_FILE_PATH_SIZE];

    if (host->count != 1 || host->hierarchies[0].version != CGROUP_V2 ||
        !(host->hierarchies[0].leaves & CGROUP_BIT(CGROUP_WORK)))
        return -EBADF;
    cgroup_path(&host->hierarchies[0], cgroup, CGROUP_WORK, "", path);
    return sys_file_open(host->hierarchies[0].base, path, O_RDONLY | O_DIRECTORY, 0);
}

/* What cannot be told is not told: no reason to fail. */
static int open_oom_kill_count(const struct cgroup *cgroup)
{
    const struct cgroup_hierarchy *hierarchy = cgroup_serving(cgroup->host, CGROUP_MEMORY);
    char path[CGROUP_FILE_PATH_SIZE];

    if (!hierarchy)
        return -EBADF;
    cgroup_path(hierarchy, cgroup, CGROUP_WORK,
                hierarchy->version == CGROUP_V2 ? "memory.events" : "memory.oom_control", path);
    return sys_file_open(hierarchy->base, path, O_RDONLY, 0);
}

int cgroup_entry_open(const struct cgroup *cgroup, bool for_clone, struct cgroup_entry *ret_entry,
                      struct error *err)
{
    const struct cgroup_host *host = cgroup->host;
    struct cgroup_entry entry = CGROUP_ENTRY_INIT;

    for (size_t i = 0; i < host->count; i++) {
        int result = open_ways_in(&host->hierarchies[i], cgroup, for_clone, &entry);

        if (result == 0)
            continue;
        cgroup_entry_close(&entry);
        return error_set(err, cgroup_error_code(result), result, "open the groups of %s",
                         cgroup->id.text);
    }
    entry.oom_kill_count = open_oom_kill_count(cgroup);
    *ret_entry = entry;
    return 0;
}

void cgroup_entry_close(struct cgroup_entry *entry)
{
    for (size_t i = 0; i < entry->agent_count; i++)
        (void) fd_close(entry->agent[i]);
    for (size_t i = 0; i < entry->work_count; i++)
        (void) fd_close(entry->work[i]);
    (void) fd_close(entry->oom_kill_count);
    (void) fd_close(entry->clone_into);
    *entry = (struct cgroup_entry) CGROUP_ENTRY_INIT;
}

int cgroup_enter(const int *procs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        /* "0" is the writer itself, whatever its pid is here. */
        int result = sys_file_write_full(procs[i], "0", 1);

        if (result < 0)
            return result;
    }
    return 0;
}
