/* Paths, reads and writes of one group's files, and waiting, shared by cgroup_*.c. */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "launcher/cgroup/cgroup_file.h"
#include "launcher/cgroup/cgroup_internal.h"

#define PAUSE_NS 200000

const struct cgroup_hierarchy *cgroup_census(const struct cgroup_host *host)
{
    return host->count ? &host->hierarchies[0] : NULL;
}

void cgroup_path(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                 enum cgroup_part part, const char *file, char ret_path[CGROUP_FILE_PATH_SIZE])
{
    const char *leaf = "";

    if (hierarchy->leaves & CGROUP_BIT(part))
        leaf = part == CGROUP_AGENT ? "/agent" : "/work";
    (void) snprintf(ret_path, CGROUP_FILE_PATH_SIZE, "%s%s%s%s", cgroup->id.text, leaf,
                    *file ? "/" : "", file);
}

int cgroup_write(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                 enum cgroup_part part, const char *file, const char *text)
{
    char path[CGROUP_FILE_PATH_SIZE];

    cgroup_path(hierarchy, cgroup, part, file, path);
    return cgroup_file_write(hierarchy->base, path, text);
}

int cgroup_read_field(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                      enum cgroup_part part, const char *file, const char *key, uint64_t *ret)
{
    char path[CGROUP_FILE_PATH_SIZE];

    cgroup_path(hierarchy, cgroup, part, file, path);
    return cgroup_file_field(hierarchy->base, path, key, ret);
}

int cgroup_read_number(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                       enum cgroup_part part, const char *file, uint64_t *ret)
{
    char path[CGROUP_FILE_PATH_SIZE];

    cgroup_path(hierarchy, cgroup, part, file, path);
    return cgroup_file_number(hierarchy->base, path, ret);
}

uint64_t cgroup_deadline(const struct cgroup_host *host, int timeout_ms)
{
    uint64_t wait = timeout_ms < 0 ? 0 : (uint64_t) timeout_ms;

    return clock_monotonic_ns(host->clock) + wait * 1000000;
}

int cgroup_time_left_ms(const struct cgroup_host *host, uint64_t deadline)
{
    uint64_t now = clock_monotonic_ns(host->clock);

    return now >= deadline ? 0 : (int) ((deadline - now + 999999) / 1000000);
}

enum err_code cgroup_error_code(int result)
{
    return result == -EBUSY || result == -ENOTEMPTY ? ERR_CONFLICT : error_code_from_errno(result);
}

void cgroup_pause(void)
{
    /* Cut short by a signal it only asks again sooner. */
    (void) nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}
