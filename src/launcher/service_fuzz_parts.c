/* The parts of the host in memory that only say yes, no, or that there is nothing. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/auto.h"
#include "launcher/cgroup/cgroup_freeze.h"
#include "launcher/cgroup/cgroup_stats.h"
#include "launcher/cgroup/cgroup_weight.h"
#include "launcher/network/network_policy.h"
#include "launcher/network/network_socket.h"
#include "launcher/service_fuzz_host.h"
#include "wire/wire_text.h"

#define SMALLEST_MEMORY (UINT64_C(1) << 20)

/* --- groups ---------------------------------------------------------------------------------- */

const char *cgroup_host_missing(const struct cgroup_host *host, enum cgroup_controller controller)
{
    (void) host;
    return controller == CGROUP_SWAP ? "no swap" : NULL;
}

int cgroup_adopt(const struct cgroup_host *host, const struct id *id, struct cgroup *ret_cgroup,
                 bool *ret_complete, struct error *err)
{
    (void) host;
    (void) id;
    (void) ret_cgroup;
    (void) ret_complete;
    return host_not_there(err);
}

int cgroup_limits_check(const struct limits *limits, struct error *err)
{
    if (limits->memory_bytes && limits->memory_bytes < SMALLEST_MEMORY)
        return error_set(err, ERR_INVALID, 0, "too little memory");
    return 0;
}

int cgroup_set_limits(const struct cgroup *cgroup, const struct limits *before,
                      const struct limits *limits, struct error *err)
{
    (void) cgroup;
    (void) before;
    must(cgroup_limits_check(limits, NULL) == 0);
    return host_fails(NULL, err) ? -1 : 0;
}

int cgroup_set_weight(const struct cgroup *cgroup, uint32_t weight, struct error *err)
{
    (void) cgroup;
    must(weight >= 1 && weight <= CGROUP_WEIGHT_FULL);
    return host_fails(NULL, err) ? -1 : 0;
}

int cgroup_weight(const struct cgroup *cgroup, uint32_t *ret_weight, struct error *err)
{
    (void) cgroup;
    *ret_weight = CGROUP_WEIGHT_FULL;
    return host_fails(NULL, err) ? -1 : 0;
}

uint64_t cgroup_cpu_used(const struct cgroup *cgroup)
{
    return (uint8_t) cgroup->id.text[0] * UINT64_C(1000000);
}

uint64_t cgroup_host_cpu_used(const struct cgroup_host *host)
{
    (void) host;
    return UINT64_C(1) << 40;
}

/* Groups are not filled in by our sandbox_start, so every sandbox answers for all of them. */
int cgroup_freeze(const struct cgroup *cgroup, enum cgroup_part part, struct error *err)
{
    (void) cgroup;
    (void) part;
    return host_fails(NULL, err) ? -1 : 0;
}

int cgroup_thaw(const struct cgroup *cgroup, enum cgroup_part part, struct error *err)
{
    (void) cgroup;
    (void) part;
    return host_fails(NULL, err) ? -1 : 0;
}

int cgroup_freeze_state(const struct cgroup *cgroup, enum cgroup_part part,
                        struct cgroup_freeze_state *ret_state, struct error *err)
{
    (void) cgroup;
    (void) part;
    (void) err;
    *ret_state = (struct cgroup_freeze_state){.asked = true, .frozen = !host_fails(NULL, NULL)};
    return 0;
}

int cgroup_oom_kills(const struct cgroup *cgroup, uint64_t *ret_agent, uint64_t *ret_work,
                     struct error *err)
{
    (void) cgroup;
    *ret_agent = *ret_work = 0;
    return host_fails(NULL, err) ? -1 : 0;
}

void cgroup_stats_read(const struct cgroup *cgroup, struct stats *ret_stats)
{
    (void) cgroup;
    *ret_stats = (struct stats){.known = STATS_BIT(MEMORY), .memory_bytes = 4096};
}

/* --- disks, ids, records --------------------------------------------------------------------- */

void disk_done(struct disk *disk)
{
    disk->folder = fd_close(disk->folder);
}

bool disk_pool_is_limited(const struct disk_pool *pool)
{
    (void) pool;
    return true;
}

int disk_pool_open_disk(struct disk_pool *pool, const struct id *sandbox, struct disk *ret_disk,
                        struct error *err)
{
    const struct host_box *box = host_find(sandbox);

    (void) pool;
    if (!box || !box->has_disk)
        return host_not_there(err);
    ret_disk->folder = eventfd(0, EFD_CLOEXEC);
    return 0;
}

int disk_pool_check_space(struct disk_pool *pool, struct error *err)
{
    (void) pool;
    return host_fails(NULL, err) ? -1 : 0;
}

int disk_pool_adopt(struct disk_pool *pool, const struct id *sandbox, struct error *err)
{
    const struct host_box *box = host_find(sandbox);

    (void) pool;
    return box && box->has_disk ? 0 : host_not_there(err);
}

int disk_pool_create(struct disk_pool *pool, const struct id *sandbox, uint64_t limit,
                     struct error *err)
{
    struct host_box *box = host_find(sandbox);

    (void) pool;
    (void) limit;
    if (host_fails(sandbox, err))
        return -1;
    if (box->has_disk)
        return error_set(err, ERR_CONFLICT, 0, "it has a disk");
    box->has_disk = true;
    box->is_doomed = false;
    return 0;
}

int disk_pool_delete(struct disk_pool *pool, const struct id *sandbox, struct error *err)
{
    struct host_box *box = host_find(sandbox);

    (void) pool;
    if (!box || !box->has_disk)
        return host_not_there(err);
    must(!box->is_alive && !box->is_promised);
    if (host_fails(NULL, err))
        return -1;
    box->has_disk = false;
    return 0;
}

int disk_pool_set_limit(struct disk_pool *pool, const struct id *sandbox, uint64_t limit,
                        struct error *err)
{
    (void) pool;
    must(limit == 0 || limit >= DISK_LIMIT_MIN);
    return host_fails(sandbox, err) ? -1 : 0;
}

int disk_pool_usage(struct disk_pool *pool, enum disk_pool_set set, const struct id *id,
                    struct disk_usage *ret_usage, struct error *err)
{
    (void) pool;
    must(set == DISK_POOL_DISKS || set == DISK_POOL_SNAPSHOTS);
    *ret_usage = (struct disk_usage){.used = 1};
    return host_fails(id, err) ? -1 : 0;
}

int disk_pool_list(struct disk_pool *pool, enum disk_pool_set set, struct id **ret_ids,
                   size_t *ret_count, struct error *err)
{
    (void) pool;
    if (host_fails(NULL, err))
        return -1;
    *ret_ids = calloc(HOST_BOXES, sizeof(struct id));
    *ret_count = 0;
    for (size_t i = 0; i < HOST_BOXES; i++) {
        if (set == DISK_POOL_DISKS ? the_host.boxes[i].has_disk : the_host.boxes[i].has_snapshot)
            (*ret_ids)[(*ret_count)++] = the_host.boxes[i].id;
    }
    return 0;
}

int id_range_find(struct id_range_table *table, const struct id *sandbox,
                  struct id_range *ret_range, struct error *err)
{
    (void) table;
    (void) sandbox;
    (void) ret_range;
    return host_not_there(err);
}

int id_range_recover(struct id_range_table *table, id_range_is_gone is_gone, void *context,
                     size_t *ret_released, struct error *err)
{
    (void) table;
    (void) is_gone;
    (void) context;
    (void) err;
    *ret_released = 0;
    return 0;
}

int record_read_boot(char ret_boot[static RECORD_BOOT_SIZE])
{
    memset(ret_boot, 0, RECORD_BOOT_SIZE);
    return 0;
}

int record_write(int folder, const char *boot, const struct record *record)
{
    struct host_box *box = host_find(&record->id);

    (void) folder;
    (void) boot;
    if (host_fails(&record->id, NULL))
        return -ENOSPC;
    box->has_record = true;
    return 0;
}

int record_remove(int folder, const struct id *id)
{
    struct host_box *box = host_find(id);

    (void) folder;
    if (box)
        box->has_record = false;
    return 0;
}

int record_list(int folder, struct id **ret_ids, size_t *ret_count)
{
    (void) folder;
    *ret_ids = NULL;
    *ret_count = 0;
    return 0;
}

int record_read(int folder, const char *boot, const struct id *id, struct record *ret_record)
{
    (void) folder;
    (void) boot;
    (void) id;
    (void) ret_record;
    return -ENOENT;
}

/* --- the rest -------------------------------------------------------------------------------- */

bool instance_others_have(const char *run, const char *own, const struct id *id)
{
    (void) run;
    (void) own;
    return !host_find(id);
}

int bind_open(struct bind_registry *registry, const char *name, int *ret_folder, struct error *err)
{
    (void) registry;
    must(wire_text_is_name(name) && !strchr(name, '/'));
    if (host_fails(NULL, err))
        return -1;
    *ret_folder = eventfd(0, EFD_CLOEXEC);
    return 0;
}

void site_make_network_ahead(struct site *site)
{
    (void) site;
}

int site_router(struct site *site, struct router **ret_router, struct error *err)
{
    (void) site;
    *ret_router = NULL;
    return host_fails(NULL, err) ? -1 : 0;
}

int network_attach(struct router *router, const struct id *id, int inside,
                   struct network *ret_network, struct error *err)
{
    (void) router;
    (void) ret_network;
    must(inside >= 0);
    if (host_fails(id, err))
        return -1;
    host_find(id)->has_network = true;
    return 0;
}

int network_adopt(struct router *router, const struct id *id, struct network *ret_network,
                  struct error *err)
{
    (void) router;
    (void) ret_network;
    return host_fails(id, err) ? -1 : 0;
}

int network_set_policy(struct router *router, const struct network *network,
                       const struct network_policy *policy, struct error *err)
{
    (void) router;
    (void) network;
    must(policy->count <= NETWORK_RULES_MAX);
    return host_fails(NULL, err) ? -1 : 0;
}

int network_statistics(struct router *router, const struct network *network,
                       struct network_statistics *ret_statistics, struct error *err)
{
    (void) router;
    (void) network;
    *ret_statistics = (struct network_statistics){.sent_bytes = 1};
    return host_fails(NULL, err) ? -1 : 0;
}

int network_agent_listen(int folder, uid_t user, gid_t group, const struct id *id, int *ret_fd,
                         struct error *err)
{
    (void) folder;
    (void) user;
    (void) group;
    if (host_fails(id, err))
        return -1;
    must(host_find(id)->has_record);
    host_find(id)->has_socket = true;
    *ret_fd = eventfd(0, EFD_CLOEXEC);
    return 0;
}

int network_agent_remove(int folder, uid_t user, gid_t group, const struct id *id,
                         struct error *err)
{
    struct host_box *box = host_find(id);

    (void) folder;
    (void) user;
    (void) group;
    (void) err;
    if (box)
        box->has_socket = false;
    return 0;
}

int network_sockets(int inside, int home, int family, int *ret_fds, size_t count, struct error *err)
{
    (void) home;
    (void) family;
    must(inside >= 0 && count > 0 && count <= NETWORK_SOCKETS_MAX);
    if (host_fails(NULL, err))
        return -1;
    for (size_t i = 0; i < count; i++)
        ret_fds[i] = eventfd(0, EFD_CLOEXEC);
    return 0;
}

/* In place of the C library's: the machine that the fuzzer runs on keeps its name. */
int sethostname(const char *name, size_t length) /* NOLINT: the C library names them otherwise */
{
    must(wire_text_is_name(name) && strlen(name) == length);
    return host_fails(NULL, NULL) ? -1 : 0;
}
