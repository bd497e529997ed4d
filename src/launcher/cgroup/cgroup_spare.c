#include "launcher/cgroup/cgroup_spare.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "launcher/cgroup/cgroup_file.h"
#include "launcher/cgroup/cgroup_internal.h"
#include "launcher/cgroup/cgroup_stats.h"
#include "sys/file/sys_file.h"

#define SPARE_PREFIX "spare-"

AUTO_DEFINE_PTR(closedir, DIR, (void) closedir);

/* --- the list --------------------------------------------------------------------------------- */

bool cgroup_spares_await(struct cgroup_spares *spares)
{
    if (spares->count + spares->awaited >= CGROUP_SPARES_MAX)
        return false;
    spares->awaited++;
    return true;
}

void cgroup_spares_add(struct cgroup_spares *spares, const struct cgroup_spare *spare)
{
    if (spares->awaited == 0)
        return; /* of a janitor that died since */
    spares->awaited--;
    if (spare)
        spares->spares[spares->count++] = *spare;
}

static bool take_last(struct cgroup_spares *spares, struct cgroup_spare *ret_spare)
{
    if (spares->count == 0)
        return false;
    *ret_spare = spares->spares[--spares->count];
    return true;
}

bool cgroup_spares_take(struct cgroup_spares *spares, struct cgroup_spare *ret_spare)
{
    spares->was_taken = true;
    return take_last(spares, ret_spare);
}

bool cgroup_spares_age(struct cgroup_spares *spares, struct cgroup_spare *ret_spare)
{
    bool was_taken = spares->was_taken;

    spares->was_taken = false;
    return !was_taken && take_last(spares, ret_spare);
}

void cgroup_spares_clear(struct cgroup_spares *spares)
{
    spares->count = spares->awaited = 0;
}

/* --- names ------------------------------------------------------------------------------------ */

/* "spare-<its id>/work/memory.memsw.usage_in_bytes"; `file` may be "". */
static void spare_path(const struct id *spare, const char *file,
                       char ret_path[CGROUP_FILE_PATH_SIZE])
{
    (void) snprintf(ret_path, CGROUP_FILE_PATH_SIZE, SPARE_PREFIX "%s%s%s", spare->text,
                    *file ? "/" : "", file);
}

int cgroup_spare_use(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                     const struct id *spare)
{
    char from[CGROUP_FILE_PATH_SIZE];
    bool found = false;

    if (hierarchy->version != CGROUP_V1)
        return -EOPNOTSUPP;
    spare_path(spare, "", from);
    if (renameat(hierarchy->base, from, hierarchy->base, cgroup->id.text) < 0)
        return -errno;
    if (cgroup_is_complete_in(hierarchy, cgroup, &found))
        return 0;
    /* Nobody removes what is listed. But where limits are not written, nothing else would tell. */
    (void) cgroup_remove_in(hierarchy, cgroup);
    return -ENOENT;
}

/* --- making them ------------------------------------------------------------------------------ */

/* Whether none of its controllers counted what it cannot forget. */
static bool is_unspoilt(const struct cgroup_hierarchy *hierarchy, const struct stats *stats)
{
    const struct {
        enum cgroup_controller controller;
        unsigned int stat;
        uint64_t counted;
    } rows[] = {
        {CGROUP_CPU, STATS_BIT(THROTTLED), stats->throttled_us},
        {CGROUP_MEMORY, STATS_BIT(OOM), stats->oom_kills_agent + stats->oom_kills_work},
        {CGROUP_PIDS, STATS_BIT(PIDS_REFUSED), stats->pids_refused},
        {CGROUP_IO, STATS_BIT(IO), stats->read_bytes + stats->written_bytes},
    };

    if (hierarchy->controllers & CGROUP_BIT(CGROUP_FREEZER))
        return false;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (hierarchy->controllers & CGROUP_BIT(rows[i].controller) &&
            (!(stats->known & rows[i].stat) || rows[i].counted))
            return false;
    }
    return true;
}

/* Set back what can be, and rename it. False: it is not fit for that. */
static bool keep(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                 const struct id *spare, const struct stats *stats)
{
    char to[CGROUP_FILE_PATH_SIZE];
    bool found = false;

    if (hierarchy->version != CGROUP_V1 || !is_unspoilt(hierarchy, stats) ||
        !cgroup_is_complete_in(hierarchy, cgroup, &found))
        return false;
    if (hierarchy->controllers & CGROUP_BIT(CGROUP_CPU_TIME) &&
        cgroup_write(hierarchy, cgroup, CGROUP_WHOLE, "cpuacct.usage", "0") < 0)
        return false;
    spare_path(spare, "", to);
    return renameat(hierarchy->base, cgroup->id.text, hierarchy->base, to) == 0;
}

/* v2, when used, comes first. */
static bool has_v1(const struct cgroup_host *host)
{
    return host->count && host->hierarchies[host->count - 1].version == CGROUP_V1;
}

int cgroup_retire(const struct cgroup_host *host, const struct id *id, const struct id *spare,
                  bool *ret_kept, struct error *err)
{
    const unsigned int wanted =
        STATS_BIT(THROTTLED) | STATS_BIT(OOM) | STATS_BIT(PIDS_REFUSED) | STATS_BIT(IO);
    struct cgroup cgroup = {.host = host, .id = *id};
    struct stats stats;

    *ret_kept = false;
    /* Whoever comes in enters the first one first, and leaves all when it dies. */
    if (!id_is_valid(id->text) || !has_v1(host) ||
        cgroup_populated_in(cgroup_census(host), &cgroup) != 0)
        return cgroup_remove_dead(host, id, err);
    cgroup_stats_read_some(&cgroup, wanted, &stats);
    for (size_t i = 0; i < host->count; i++) {
        const struct cgroup_hierarchy *hierarchy = &host->hierarchies[i];
        bool is_kept = keep(hierarchy, &cgroup, spare, &stats);
        int r = is_kept ? 0 : cgroup_remove_in(hierarchy, &cgroup);

        *ret_kept |= is_kept;
        if (r < 0)
            return error_set(err, cgroup_error_code(r), r, "remove the groups of %s", id->text);
    }
    return 0;
}

/* --- settling --------------------------------------------------------------------------------- */

static void remove_spare(const struct cgroup_hierarchy *hierarchy, const struct id *spare)
{
    static const char *const folders[] = {"agent", "work", ""};

    for (size_t i = 0; i < ARRAY_COUNT(folders); i++) {
        char path[CGROUP_FILE_PATH_SIZE];

        spare_path(spare, folders[i], path);
        (void) unlinkat(hierarchy->base, path, AT_REMOVEDIR); /* most have no `agent` */
    }
}

/* Whether the file says so, or is none of this kernel's. */
static bool holds_little(const struct cgroup_hierarchy *hierarchy, const struct id *spare,
                         const char *file)
{
    char path[CGROUP_FILE_PATH_SIZE];
    uint64_t bytes;
    int r;

    spare_path(spare, file, path);
    r = cgroup_file_number(hierarchy->base, path, &bytes);
    return r == -ENOENT || (r == 0 && bytes <= CGROUP_SPARE_MEMORY_MAX);
}

/* Whether no memory of who had it is left, in the sense of the header; sets its peak back. Buffers
 * of sockets are counted beside the rest. */
static bool is_empty(const struct cgroup_hierarchy *hierarchy, const struct id *spare)
{
    bool has_swap = hierarchy->controllers & CGROUP_BIT(CGROUP_SWAP);
    char path[CGROUP_FILE_PATH_SIZE];

    if (!holds_little(hierarchy, spare,
                      has_swap ? "memory.memsw.usage_in_bytes" : "memory.usage_in_bytes") ||
        !holds_little(hierarchy, spare, "memory.kmem.tcp.usage_in_bytes"))
        return false;
    spare_path(spare, "memory.max_usage_in_bytes", path);
    return cgroup_file_write(hierarchy->base, path, "0") == 0;
}

bool cgroup_spare_settle(const struct cgroup_host *host, const struct id *spare)
{
    bool is_kept = false;

    for (size_t i = 0; i < host->count; i++) {
        const struct cgroup_hierarchy *hierarchy = &host->hierarchies[i];
        char path[CGROUP_FILE_PATH_SIZE];

        spare_path(spare, "", path);
        if (hierarchy->version != CGROUP_V1 || faccessat(hierarchy->base, path, F_OK, 0) < 0)
            continue;
        if (!(hierarchy->controllers & CGROUP_BIT(CGROUP_MEMORY)) || is_empty(hierarchy, spare))
            is_kept = true;
        else
            remove_spare(hierarchy, spare);
    }
    return is_kept;
}

static void remove_in(const struct cgroup_hierarchy *hierarchy)
{
    /* A new description: the position in the base's own one must not move. */
    int fd = sys_file_open(hierarchy->base, ".", O_RDONLY | O_DIRECTORY, 0);
    AUTO(closedir) DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!directory) {
        (void) fd_close(fd);
        return;
    }
    while ((entry = readdir(directory))) {
        const size_t prefix = sizeof(SPARE_PREFIX) - 1;
        struct id id;

        if (strncmp(entry->d_name, SPARE_PREFIX, prefix) != 0 ||
            !id_is_valid(entry->d_name + prefix))
            continue;
        memcpy(id.text, entry->d_name + prefix, ID_SIZE);
        remove_spare(hierarchy, &id);
    }
}

void cgroup_spare_remove(const struct cgroup_host *host, const struct id *spare)
{
    for (size_t i = 0; i < host->count; i++) {
        if (host->hierarchies[i].version == CGROUP_V1)
            remove_spare(&host->hierarchies[i], spare);
    }
}

void cgroup_spare_remove_all(const struct cgroup_host *host)
{
    for (size_t i = 0; i < host->count; i++)
        remove_in(&host->hierarchies[i]);
}
