/* wall-cost: what each wall and each limit adds to the start of a sandbox.
 *
 *     wall-cost --data DIR --run DIR --cgroup NAME --programs DIR --rounds 50
 *
 * Uses the launcher's own code, because production has no way to leave a wall out. In every round
 * one sandbox is started with everything, one with nothing, and one without each single wall; the
 * cost of a wall is the difference to everything. Measured until PID 1 runs, killed and taken down
 * aside. Prints one JSON object: {"everything":[us...],"nothing":[...],"seccomp":[...],...} */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/number.h"
#include "launcher/image/image_host.h"
#include "launcher/network/network_socket.h"
#include "launcher/site.h"
#include "load/fail.h"
#include "load/samples.h"
#include "sys/file/sys_file.h"

#define MEGABYTE   (UINT64_C(1) << 20)
#define POOL_SIZE  (1024 * MEGABYTE)
#define ROUNDS_MAX 10000
#define PATIENCE   10000 /* ms */

/* One way to start a sandbox: what is left out. */
struct variant {
    const char *name;
    uint32_t open_walls;
    bool no_filter, all_capabilities;
    bool no_memory, no_pids, no_cpu, no_disk;
};

/* Those that are no step of a start have no cost there: links are looked for on the way, and the
 * agent's image is hidden and sealed once for all. */
static const struct variant variants[] = {
    {.name = "everything"},
    {.name = "nothing",
     .open_walls = SANDBOX_WALLS_ALL,
     .no_filter = true,
     .all_capabilities = true,
     .no_memory = true,
     .no_pids = true,
     .no_cpu = true,
     .no_disk = true},
    {.name = "seccomp", .no_filter = true},
    {.name = "capabilities", .all_capabilities = true},
    {.name = "no_new_privileges", .open_walls = SANDBOX_WALL_BIT(NO_NEW_PRIVILEGES)},
    {.name = "no_set_id", .open_walls = SANDBOX_WALL_BIT(NO_SET_ID)},
    {.name = "hidden_proc", .open_walls = SANDBOX_WALL_BIT(HIDDEN_PROC)},
    {.name = "read_only_proc", .open_walls = SANDBOX_WALL_BIT(READ_ONLY_PROC)},
    {.name = "no_sysfs", .open_walls = SANDBOX_WALL_BIT(NO_SYSFS)},
    {.name = "shares", .open_walls = SANDBOX_WALL_BIT(SHARES)},
    {.name = "process_limits", .open_walls = SANDBOX_WALL_BIT(PROCESS_LIMITS)},
    {.name = "cgroup_namespace", .open_walls = SANDBOX_WALL_BIT(CGROUP_NAMESPACE)},
    {.name = "descriptors", .open_walls = SANDBOX_WALL_BIT(DESCRIPTORS)},
    {.name = "memory", .no_memory = true},
    {.name = "pids", .no_pids = true},
    {.name = "cpu", .no_cpu = true},
    {.name = "disk", .no_disk = true},
};

struct stage {
    struct site site;
    int sockets; /* owned */
};

struct options {
    struct site_options site;
    int64_t rounds;
};

static void check(int result, const struct error *err)
{
    if (result < 0)
        fail("%s", err->message);
}

static void set_stage(struct stage *stage, const struct options *options)
{
    struct error err = ERROR_INIT;
    char path[256];

    (void) snprintf(path, sizeof(path), "%s/agents", options->site.run);
    check(site_open(&stage->site, &options->site, &err), &err);
    check(network_agent_folder(path, 0, 0, &stage->sockets, &err), &err);
}

static void strike_stage(struct stage *stage)
{
    struct error err = ERROR_INIT;

    check(disk_pool_unmount(stage->site.host.pool, &err), &err);
    stage->site.host.pool = NULL;
    cgroup_host_remove_base(stage->site.cgroups);
    site_close(&stage->site);
    (void) fd_close(stage->sockets);
}

static struct sandbox_plan plan_of(const struct variant *variant)
{
    return (struct sandbox_plan){
        .id = id_new(),
        .hostname = "bench",
        .image = IMAGE_HOST,
        .limits = {.memory_bytes = variant->no_memory ? 0 : 256 * MEGABYTE,
                   .pids = variant->no_pids ? 0 : 64,
                   .cpu_millis = variant->no_cpu ? 0 : 1000,
                   .disk_bytes = variant->no_disk ? 0 : 64 * MEGABYTE},
        .dies_with_us = true,
    };
}

static struct sandbox_host host_of(const struct stage *stage, const struct variant *variant)
{
    struct sandbox_host host = stage->site.host;

    host.open_walls = variant->open_walls;
    if (variant->no_filter)
        host.filter = NULL;
    if (variant->all_capabilities)
        host.capabilities = UINT64_MAX;
    return host;
}

static void await(struct sandbox *sandbox)
{
    struct error err = ERROR_INIT;

    if (sys_file_poll(sandbox->status, POLLIN, PATIENCE) <= 0)
        fail("a sandbox does not start");
    check(sandbox_ready(sandbox, &err), &err);
}

static void take_down(const struct stage *stage, const struct sandbox_host *host,
                      struct sandbox *sandbox)
{
    struct error err = ERROR_INIT;

    check(sandbox_kill(sandbox, PATIENCE, &err), &err);
    check(sandbox_remove(host, sandbox, false, &err), &err);
    check(network_agent_remove(stage->sockets, 0, 0, &sandbox->id, &err), &err);
    sandbox_forget(sandbox);
}

static uint64_t time_one(const struct stage *stage, const struct variant *variant)
{
    struct sandbox_plan plan = plan_of(variant);
    struct sandbox_host host = host_of(stage, variant);
    struct sandbox sandbox = SANDBOX_INIT;
    struct error err = ERROR_INIT;
    AUTO(close) int listener = -EBADF;
    uint64_t begin = samples_now(), end;

    check(network_agent_listen(stage->sockets, 0, 0, &plan.id, &listener, &err), &err);
    check(sandbox_start(&host, &plan, listener, &sandbox, &err), &err);
    await(&sandbox);
    end = samples_now();
    take_down(stage, &host, &sandbox);
    return end - begin;
}

static void measure(const struct stage *stage, int64_t rounds)
{
    struct samples times[ARRAY_COUNT(variants)] = {0};

    for (int64_t round = 0; round <= rounds; round++) {
        for (size_t i = 0; i < ARRAY_COUNT(variants); i++) {
            uint64_t time = time_one(stage, &variants[i]);

            if (round > 0) /* the first is to get warm */
                samples_add(&times[i], time);
        }
    }
    for (size_t i = 0; i < ARRAY_COUNT(variants); i++) {
        printf(i ? "," : "{");
        samples_print(&times[i], variants[i].name);
        samples_done(&times[i]);
    }
    printf("}\n");
}

static void parse(struct options *options, int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--data") == 0)
            options->site.data = argv[i + 1];
        else if (strcmp(argv[i], "--run") == 0)
            options->site.run = argv[i + 1];
        else if (strcmp(argv[i], "--cgroup") == 0)
            options->site.cgroup = argv[i + 1];
        else if (strcmp(argv[i], "--programs") == 0)
            options->site.programs = argv[i + 1];
        else if (strcmp(argv[i], "--rounds") != 0 ||
                 number_parse(argv[i + 1], 1, ROUNDS_MAX, &options->rounds) < 0)
            fail("'%s %s' will not do", argv[i], argv[i + 1]);
    }
    if (!options->site.data || !options->site.run || !options->site.cgroup)
        fail("usage: wall-cost --data DIR --run DIR --cgroup NAME [--programs DIR] [--rounds N]");
}

int main(int argc, char **argv)
{
    struct options options = {.site = {.network = SITE_NETWORK_DEFAULT, .pool_size = POOL_SIZE},
                              .rounds = 50};
    struct stage stage;

    parse(&options, argc, argv);
    set_stage(&stage, &options);
    measure(&stage, options.rounds);
    strike_stage(&stage);
    return EXIT_SUCCESS;
}
