#include "launcher/cgroup/cgroup_weight.h"

#include <errno.h>

#include "base/number.h"
#include "launcher/cgroup/cgroup_file.h"
#include "launcher/cgroup/cgroup_internal.h"

/* v1 counts in shares, of which a group has 1024 by default and 2 at least. */
#define V1_SHARES_OF_ONE 10

#define V1_FILE "cpu.shares"
#define V2_FILE "cpu.weight"

int cgroup_set_weight(const struct cgroup *cgroup, uint32_t weight, struct error *err)
{
    const struct cgroup_hierarchy *hierarchy = cgroup_serving(cgroup->host, CGROUP_CPU);
    char text[NUMBER_TEXT_SIZE];
    bool is_v2;
    int r;

    if (!hierarchy)
        return 0;
    is_v2 = hierarchy->version == CGROUP_V2;
    (void) number_format(is_v2 ? weight : (uint64_t) weight * V1_SHARES_OF_ONE, text);
    r = cgroup_write(hierarchy, cgroup, CGROUP_WHOLE, is_v2 ? V2_FILE : V1_FILE, text);
    return r < 0 ? error_set(err, cgroup_error_code(r), r, "set the weight of %s", cgroup->id.text)
                 : 0;
}

int cgroup_weight(const struct cgroup *cgroup, uint32_t *ret_weight, struct error *err)
{
    const struct cgroup_hierarchy *hierarchy = cgroup_serving(cgroup->host, CGROUP_CPU);
    uint64_t number = 0;
    bool is_v2;
    int r;

    if (!hierarchy)
        return error_set(err, ERR_NOT_IMPLEMENTED, 0, "there is no CPU controller");
    is_v2 = hierarchy->version == CGROUP_V2;
    r = cgroup_read_number(hierarchy, cgroup, CGROUP_WHOLE, is_v2 ? V2_FILE : V1_FILE, &number);
    if (r < 0)
        return error_set(err, cgroup_error_code(r), r, "read the weight of %s", cgroup->id.text);
    *ret_weight = (uint32_t) (is_v2 ? number : number / V1_SHARES_OF_ONE);
    return 0;
}

/* `group` is relative to the base, and ends in '/' unless it is empty. */
static uint64_t cpu_used_in(const struct cgroup_host *host, const char *group)
{
    const struct cgroup_hierarchy *hierarchy = cgroup_serving(host, CGROUP_CPU_TIME);
    char path[CGROUP_FILE_PATH_SIZE];
    uint64_t number = 0;
    bool is_v2;
    int r;

    if (!hierarchy)
        return 0;
    is_v2 = hierarchy->version == CGROUP_V2;
    (void) snprintf(path, sizeof(path), "%s%s", group, is_v2 ? "cpu.stat" : "cpuacct.usage");
    r = is_v2 ? cgroup_file_field(hierarchy->base, path, "usage_usec", &number)
              : cgroup_file_number(hierarchy->base, path, &number);
    if (r < 0)
        return 0; /* it has just ended */
    return is_v2 ? number : number / 1000;
}

uint64_t cgroup_cpu_used(const struct cgroup *cgroup)
{
    char group[ID_SIZE + 1];

    (void) snprintf(group, sizeof(group), "%s/", cgroup->id.text);
    return cpu_used_in(cgroup->host, group);
}

uint64_t cgroup_host_cpu_used(const struct cgroup_host *host)
{
    return cpu_used_in(host, "");
}
