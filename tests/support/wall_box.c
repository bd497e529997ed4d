#include "wall_box.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/auto.h"
#include "json/json_write.h"
#include "launcher/image/image_host.h"
#include "launcher/network/network_socket.h"
#include "launcher/wall/capability.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_memfd.h"
#include "sys/network/sys_address.h"
#include "sys/network/sys_socket.h"
#include "sys/process/sys_namespace.h"

#define PROGRAM_MAX ((size_t) 64 << 20)
#define ANSWER_MAX  ((size_t) 16 << 20)
/* Far more than anything takes: on a slow machine the deadline of the guard is what ends it. */
#define START_MS      120000
#define ANSWER_MS     3600000
#define POOL_SIZE     (512ULL << 20)
#define POOL_RESERVE  (16ULL << 20)
#define IDS_FIRST     0x70000000u
#define IDS_END       0x7ffe0000u
#define AGENT_LEAK_FD 210

/* --- the stage ------------------------------------------------------------------------------ */

static int open_folders(struct wall_stage *stage, const char *folder, struct error *err)
{
    static const struct disk_pool_options pool = {
        .kind = DISK_POOL_LOOP, .size = POOL_SIZE, .reserve = POOL_RESERVE};
    static const struct image_host_options image = {.with_usr_local = false};
    char path[128];
    struct id_range_options ids = {.folder = path, .first = IDS_FIRST, .end = IDS_END};

    (void) snprintf(path, sizeof(path), "%s/store/pool", folder);
    if (disk_pool_open(path, &pool, &stage->host.pool, err) < 0)
        return -1;
    (void) snprintf(path, sizeof(path), "%s/images", folder);
    if (image_registry_open(path, &stage->host.images, err) < 0 ||
        image_host_prepare(stage->host.images, &image, err) < 0)
        return -1;
    (void) snprintf(path, sizeof(path), "%s/store/ids", folder);
    if (id_range_table_open(&ids, &stage->host.ids, err) < 0)
        return -1;
    (void) snprintf(path, sizeof(path), "%s/agents", folder);
    return network_agent_folder(path, 0, 0, &stage->sockets, err);
}

static void name_targets(struct wall_stage *stage, const char *folder)
{
    const char *group = cgroup_host_place(stage->cgroups, CGROUP_PIDS);

    (void) snprintf(stage->target.group, sizeof(stage->target.group), "%.400s/cgroup.procs",
                    group ? group : "");
    (void) snprintf(stage->target.pool, sizeof(stage->target.pool), "%s/store/pool/store/disks",
                    folder);
}

static int open_binds(struct wall_box_options *options, struct error *err)
{
    for (size_t i = 0; i < options->bind_count; i++) {
        int fd = sys_file_open(AT_FDCWD, options->bind_paths[i], O_PATH | O_DIRECTORY, 0);

        if (fd < 0)
            return error_set(err, ERR_NOT_FOUND, fd, "open %s", options->bind_paths[i]);
        options->binds[i].source = fd;
    }
    return 0;
}

int wall_stage_set(struct wall_stage *stage, struct wall_box_options *options, struct error *err)
{
    struct cgroup_host_options groups = {.name = "boxes"};
    int r;

    *stage = (struct wall_stage){.options = options, .host.capabilities = capability_kept()};
    if (open_binds(options, err) < 0 ||
        wall_target_make(options->folder, &stage->target, err) < 0 ||
        cgroup_host_open(&groups, &stage->cgroups, err) < 0 ||
        open_folders(stage, options->folder, err) < 0)
        return -1;
    r = process_limits_plan(&stage->limits, 0);
    if (r == 0)
        r = sys_file_read_all(AT_FDCWD, options->agent, PROGRAM_MAX, &stage->agent,
                              &stage->agent_length);
    if (r < 0)
        return error_set(err, ERR_UNAVAILABLE, r, "read %s", options->agent);
    name_targets(stage, options->folder);
    stage->host.cgroups = stage->cgroups;
    stage->host.limits = &stage->limits;
    stage->host.home = sys_namespace_open(0, "net");
    return stage->host.home < 0
               ? error_set(err, ERR_INTERNAL, stage->host.home, "open our network namespace")
               : 0;
}

void wall_stage_strike(struct wall_stage *stage)
{
    if (stage->host.pool)
        (void) disk_pool_unmount(stage->host.pool, NULL);
    cgroup_host_free(stage->cgroups);
    id_range_table_free(stage->host.ids);
    image_registry_free(stage->host.images);
    free(stage->agent);
    stage->host.home = fd_close(stage->host.home);
}

/* --- one sandbox ---------------------------------------------------------------------------- */

/* The agent's image as production has it, or without its walls. A second descriptor of it that exec
 * does not close stands for a launcher that forgot one. */
static int make_agent(const struct wall_stage *stage, uint32_t open_walls)
{
    AUTO(close) int fd = -EBADF;
    int r;

    if (open_walls & SANDBOX_WALL_BIT(SEALED_AGENT)) {
        fd = sys_memfd_create("burrow-agent", SYS_MEMFD_PROGRAM);
        r = fd < 0 ? fd : sys_file_pwrite_full(fd, stage->agent, stage->agent_length, 0);
    } else {
        r = fd = sys_memfd_from_bytes("burrow-agent", SYS_MEMFD_PROGRAM, stage->agent,
                                      stage->agent_length);
    }
    if (r >= 0 && !(open_walls & SANDBOX_WALL_BIT(HIDDEN_AGENT)))
        r = process_limit_hide_image(fd);
    if (r >= 0 && dup2(fd, AGENT_LEAK_FD) < 0)
        r = -errno;
    return r < 0 ? r : TAKE_FD(fd);
}

static void make_plan(const struct wall_stage *stage, const struct wall_set *without,
                      const struct id *id, struct sandbox_plan *ret_plan)
{
    const struct wall_box_options *options = stage->options;
    unsigned int off = without->limits;

    *ret_plan = (struct sandbox_plan){
        .id = id ? *id : id_new(),
        .hostname = "box",
        .image = IMAGE_HOST,
        .limits = {.memory_bytes = off & WALL_LIMIT_MEMORY ? 0 : options->memory,
                   .pids = off & WALL_LIMIT_PIDS ? 0 : options->pids,
                   .cpu_millis = off & WALL_LIMIT_CPU ? 0 : options->cpu,
                   .disk_bytes = off & WALL_LIMIT_DISK ? 0 : options->disk},
        .existing_disk = id != NULL,
        .dies_with_us = true,
        .binds = options->binds,
        .bind_count = options->bind_count,
    };
}

static int wait_until_ready(struct wall_box *box, struct error *err)
{
    int r = sys_file_poll(box->sandbox.status, POLLIN, START_MS);

    if (r <= 0)
        return error_set(err, ERR_INTERNAL, r, "the sandbox does not start");
    return sandbox_ready(&box->sandbox, err);
}

int wall_box_start(struct wall_stage *stage, const struct wall_set *without, const struct id *id,
                   struct wall_box *box, struct error *err)
{
    AUTO(close) int listener = -EBADF;
    AUTO(close) int agent = make_agent(stage, without->sandbox);

    *box = (struct wall_box){.host = stage->host, .sandbox = SANDBOX_INIT};
    if (agent < 0)
        return error_set(err, ERR_INTERNAL, agent, "make the agent's image");
    if (seccomp_filter_init(&box->filter, SECCOMP_WALLS_ALL & ~without->seccomp) < 0)
        return error_set(err, ERR_INTERNAL, 0, "compile the filter");
    make_plan(stage, without, id, &box->plan);
    box->host.filter = &box->filter;
    box->host.capabilities |= without->capabilities;
    box->host.open_walls = without->sandbox;
    box->host.agent = agent;
    (void) snprintf(box->socket, sizeof(box->socket), "%s/agents/%s.sock", stage->options->folder,
                    box->plan.id.text);
    if (network_agent_listen(stage->sockets, 0, 0, &box->plan.id, &listener, err) < 0 ||
        sandbox_start(&box->host, &box->plan, listener, &box->sandbox, err) < 0)
        return -1;
    if (wait_until_ready(box, err) == 0)
        return 0;
    (void) wall_box_stop(stage, box, id != NULL, NULL);
    return -1;
}

int wall_box_stop(struct wall_stage *stage, struct wall_box *box, bool keep_disk, struct error *err)
{
    int r = sandbox_kill(&box->sandbox, START_MS, err);

    if (r == 0)
        r = sandbox_remove(&box->host, &box->sandbox, keep_disk, err);
    sandbox_forget(&box->sandbox);
    (void) network_agent_remove(stage->sockets, 0, 0, &box->plan.id, NULL);
    return r;
}

/* --- a program in it ------------------------------------------------------------------------ */

static int write_request(const struct wall_stage *stage, const struct wall_box *box,
                         const char *const *argv, struct text *request)
{
    AUTO(text) struct text body = TEXT_INIT(ANSWER_MAX);
    struct json_writer json;
    char value[512];

    json_writer_init_text(&json, &body);
    json_begin_object(&json);
    json_key(&json, "argv");
    json_begin_array(&json);
    for (; *argv; argv++)
        json_put_text(&json, *argv);
    json_end_array(&json);
    json_key(&json, "env");
    json_begin_object(&json);
    for (size_t i = 0; i < WALL_TARGETS_MAX; i++) {
        const char *name =
            wall_target_variable(&stage->target, i, &box->plan.id, value, sizeof(value));

        json_add_text(&json, name, value);
    }
    json_end_object(&json);
    json_end_object(&json);
    if (json_writer_finish(&json) < 0)
        return -EINVAL;
    text_format(request, "POST /api/execute HTTP/1.0\r\nHost: box\r\nContent-Length: %zu\r\n\r\n",
                body.length);
    text_append_bytes(request, text_string(&body), body.length);
    return 0;
}

static int read_answer(int fd, struct text *answer)
{
    char piece[4096];

    for (;;) {
        ssize_t got =
            sys_file_poll(fd, POLLIN, ANSWER_MS) > 0 ? recv(fd, piece, sizeof(piece), 0) : -1;

        if (got < 0)
            return -ETIMEDOUT;
        if (got == 0)
            return 0;
        text_append_bytes(answer, piece, (size_t) got);
    }
}

int wall_box_execute(const struct wall_stage *stage, const struct wall_box *box,
                     const char *const *argv, struct text *ret_answer, struct error *err)
{
    AUTO(text) struct text request = TEXT_INIT(ANSWER_MAX), answer = TEXT_INIT(ANSWER_MAX);
    AUTO(close) int fd = -EBADF;
    struct sys_address address;
    char path[192];
    const char *body;
    int r;

    (void) snprintf(path, sizeof(path), "unix:%s", box->socket);
    r = sys_address_parse(path, &address);
    if (r == 0)
        r = fd = sys_socket_create(&address);
    if (r >= 0)
        r = sys_socket_connect(fd, &address);
    if (r == 0)
        r = sys_file_set_nonblocking(fd, false);
    if (r == 0)
        r = write_request(stage, box, argv, &request);
    if (r == 0)
        r = sys_file_write_full(fd, text_string(&request), request.length);
    if (r == 0)
        r = read_answer(fd, &answer);
    body = strstr(text_string(&answer), "\r\n\r\n");
    if (r < 0 || !body)
        return error_set(err, ERR_UPSTREAM, r, "ask the agent");
    text_append(ret_answer, body + 4);
    return 0;
}
