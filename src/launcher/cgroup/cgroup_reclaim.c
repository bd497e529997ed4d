#include "launcher/cgroup/cgroup_reclaim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/sysinfo.h>

#include "launcher/cgroup/cgroup_file.h"
#include "launcher/cgroup/cgroup_internal.h"

#define V2_SWAP_LIMIT "memory.swap.max"

/* How the two versions say it. */
static const struct {
    const char *usage;
    const char *reclaim;
} files[] = {
    [CGROUP_V1] = {"memory.usage_in_bytes", "memory.force_empty"},
    [CGROUP_V2] = {"memory.current", "memory.reclaim"},
};

bool cgroup_can_reclaim(const struct cgroup_host *host)
{
    struct sysinfo system;

    return !cgroup_host_missing(host, CGROUP_MEMORY) && sysinfo(&system) == 0 &&
           system.totalswap > 0;
}

/* v2 is told how much; v1 takes what it can get, whatever it is told. */
static int push_out(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                    uint64_t bytes)
{
    char text[24];
    int r;

    (void) snprintf(text, sizeof(text), "%" PRIu64, bytes);
    r = cgroup_write(hierarchy, cgroup, CGROUP_WHOLE, files[hierarchy->version].reclaim, text);
    /* Not all of it went: no surprise. */
    return r == -EAGAIN || r == -EBUSY ? 0 : r;
}

/* v1 limits the sum of memory and swap, so that what is memory now may be swap in a moment. v2
 * limits swap alone, and the usual limit of 0 keeps everything in memory: it is lifted for as long
 * as this takes. What went stays out until somebody needs it. */
static int push_out_to_swap(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                            uint64_t bytes)
{
    char path[CGROUP_FILE_PATH_SIZE], limit[32];
    int r, restored;

    if (hierarchy->version != CGROUP_V2)
        return push_out(hierarchy, cgroup, bytes);
    cgroup_path(hierarchy, cgroup, CGROUP_WHOLE, V2_SWAP_LIMIT, path);
    r = cgroup_file_read(hierarchy->base, path, limit, sizeof(limit));
    if (r < 0)
        return r == -ENOENT ? push_out(hierarchy, cgroup, bytes) : r; /* no swap in this kernel */
    r = cgroup_file_write(hierarchy->base, path, "max");
    if (r == 0)
        r = push_out(hierarchy, cgroup, bytes);
    restored = cgroup_file_write(hierarchy->base, path, limit);
    return r < 0 ? r : restored;
}

int cgroup_reclaim(const struct cgroup *cgroup, uint64_t *ret_bytes, struct error *err)
{
    const struct cgroup_hierarchy *hierarchy = cgroup_serving(cgroup->host, CGROUP_MEMORY);
    uint64_t before = 0, after = 0;
    const char *usage;
    int r;

    if (!hierarchy)
        return error_set(err, ERR_NOT_IMPLEMENTED, EOPNOTSUPP, "no memory groups on this host");
    usage = files[hierarchy->version].usage;
    r = cgroup_read_number(hierarchy, cgroup, CGROUP_WHOLE, usage, &before);
    if (r == 0)
        r = push_out_to_swap(hierarchy, cgroup, before);
    if (r == 0)
        r = cgroup_read_number(hierarchy, cgroup, CGROUP_WHOLE, usage, &after);
    if (r < 0)
        return error_set(err, cgroup_error_code(r), r, "push out the memory of %s",
                         cgroup->id.text);
    *ret_bytes = before > after ? before - after : 0;
    return 0;
}
