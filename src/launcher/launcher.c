#include "launcher/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "launcher/cgroup/cgroup_host.h"
#include "launcher/daemon_child.h"
#include "launcher/service.h"
#include "launcher/wall/process_limit_host.h"
#include "sys/file/sys_file.h"
#include "sys/process/sys_signal.h"

#define CGROUP_NAME_SIZE 65
#define HOUSEKEEPING_MS  5000

/* How long the janitor of a launcher that died may take to let go of its group, as of its folder. */
#define CLAIM_MS 10000
/* The router's rules are refreshed every so many times. */
#define REFRESH_EVERY 6
/* At the end, for those in the warm pool: how long they may take, and how often is looked. */
#define POOL_END_MS  5000
#define POOL_LOOK_MS 10

struct launcher {
    const struct launcher_options *options;
    struct site_options site_options; /* with our own base group */
    struct log *log;
    struct event_loop loop;
    struct site site;
    struct instance instance;
    struct janitor janitor;
    struct porter porter;
    struct residents residents;
    struct service service;
    struct daemon_child daemon;
    struct event_source signals; /* its fd is owned */
    struct event_source router;
    struct event_timer housekeeping;
    struct event_timer pool_end;
    uint64_t pool_looks;
    char name[INSTANCE_NAME_MAX + 1];
    char cgroup[CGROUP_NAME_SIZE];
    char agents[INSTANCE_PATH_MAX + 16];
    unsigned int housekept; /* times */
    bool has_loop, has_instance, has_site, has_janitor, has_porter, has_residents;
    bool is_once, is_ending;
    bool leaves_traces; /* of sandboxes that could not be taken down: for the next launcher */
    int status;
};

/* --- the end --------------------------------------------------------------------------------- */

static void finish_when_empty(struct launcher *launcher)
{
    size_t given_up = launcher->residents.given_up;

    if (!launcher->is_ending || !launcher->is_once || launcher->residents.count > given_up)
        return;
    if (given_up) {
        LOG_ERROR(launcher->log, "what is left of sandboxes stays for the next launcher",
                  log_number("sandboxes", (int64_t) given_up));
        launcher->leaves_traces = true;
    }
    event_loop_stop(&launcher->loop);
}

static void residents_empty(void *context)
{
    struct service *service = context;

    finish_when_empty(CONTAINER_OF(service, struct launcher, service));
}

static void end_once(struct launcher *launcher)
{
    launcher->is_ending = true;
    residents_kill_all(&launcher->residents);
    finish_when_empty(launcher);
}

static void conversation_ended(void *context)
{
    struct launcher *launcher = context;

    if (launcher->is_once)
        end_once(launcher);
    else
        daemon_child_kill(&launcher->daemon);
}

/* What is somebody's goes on without us; what is in the warm pool nobody would find again but the next
 * service, which makes its own in a moment. */
static void end_warm_pool(struct event_timer *timer)
{
    struct launcher *launcher = CONTAINER_OF(timer, struct launcher, pool_end);
    size_t left = residents_end_warm_pool(&launcher->residents);

    if (left && launcher->pool_looks++ < POOL_END_MS / POOL_LOOK_MS) {
        event_timer_set(&launcher->loop, timer, POOL_LOOK_MS);
        return;
    }
    if (left)
        LOG_WARNING(launcher->log, "sandboxes of the warm pool are left to the next launcher",
                    log_number("sandboxes", (int64_t) left));
    event_loop_stop(&launcher->loop);
}

static void daemon_over(void *context, int status)
{
    struct launcher *launcher = context;

    if (launcher->pool_looks) { /* asked to end once more: then it is left */
        event_loop_stop(&launcher->loop);
        return;
    }
    launcher->status = status;
    end_warm_pool(&launcher->pool_end);
}

static void got_signal(struct event_source *source, uint32_t events)
{
    struct launcher *launcher = CONTAINER_OF(source, struct launcher, signals);
    struct sys_signal signal;

    (void) events;
    if (sys_signal_read(source->fd, &signal) < 0)
        return;
    LOG_INFO(launcher->log, "asked to end", log_text("signal", sigabbrev_np(signal.number)));
    service_stopping(&launcher->service, "the launcher was asked to end");
    if (launcher->is_once)
        end_once(launcher);
    else
        daemon_child_stop(&launcher->daemon);
}

/* --- now and then ---------------------------------------------------------------------------- */

static void refresh_router(struct launcher *launcher)
{
    struct error err = ERROR_INIT;

    if (router_refresh(launcher->site.router, &err) < 0)
        LOG_WARNING(launcher->log, "the router's rules cannot be brought up to date",
                    log_text("reason", err.message));
}

static void addresses_changed(struct event_source *source, uint32_t events)
{
    (void) events;
    refresh_router(CONTAINER_OF(source, struct launcher, router));
}

/* Keepers of a launcher that was killed die soon after it, and perhaps after we looked. */
static void give_back_ranges(struct launcher *launcher)
{
    struct error err = ERROR_INIT;

    if (residents_give_back_ranges(&launcher->residents, &err) < 0)
        LOG_WARNING(launcher->log, "id ranges of the dead cannot be given back",
                    log_text("reason", err.message));
}

static void housekeeping(struct event_timer *timer)
{
    struct launcher *launcher = CONTAINER_OF(timer, struct launcher, housekeeping);

    if (launcher->site.router && !launcher->router.is_added) {
        launcher->router = (struct event_source){.fd = router_watch(launcher->site.router),
                                                 .events = EPOLLIN,
                                                 .ready = addresses_changed};
        (void) event_loop_add(&launcher->loop, &launcher->router);
    }
    if (launcher->housekept % REFRESH_EVERY == 0)
        give_back_ranges(launcher);
    if (++launcher->housekept % REFRESH_EVERY == 0 && launcher->site.router)
        refresh_router(launcher);
    event_timer_set(&launcher->loop, timer, HOUSEKEEPING_MS);
}

/* --- the start ------------------------------------------------------------------------------- */

static int watch_signals(struct launcher *launcher, struct error *err)
{
    static const int serving[] = {SIGTERM, SIGINT};
    static const int once[] = {SIGTERM};
    int fd = launcher->is_once ? sys_signal_open(once, ARRAY_COUNT(once))
                               : sys_signal_open(serving, ARRAY_COUNT(serving));

    if (fd < 0)
        return error_set(err, ERR_INTERNAL, fd, "watch signals");
    if (launcher->is_once) {
        (void) sys_signal_ignore(SIGINT);
        (void) sys_signal_ignore(SIGQUIT);
        (void) sys_signal_ignore(SIGHUP);
    }
    launcher->signals = (struct event_source){.fd = fd, .events = EPOLLIN, .ready = got_signal};
    return event_loop_add(&launcher->loop, &launcher->signals);
}

static void check_host(struct launcher *launcher)
{
    struct process_limit_need need = PROCESS_LIMIT_NEED(launcher->options->sandboxes);
    struct process_limit_report report;
    AUTO(close) int proc = sys_file_open(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY, 0);

    if (proc < 0)
        return;
    process_limit_check_host(proc, &need, true, launcher->site.limits.core_handler_runs, &report);
    for (size_t i = 0; i < report.count; i++) {
        if (report.findings[i].state == PROCESS_LIMIT_LOW)
            LOG_WARNING(launcher->log, "a limit of this host is low",
                        log_text("name", report.findings[i].name),
                        log_text("reason", report.findings[i].sentence));
    }
    if (*disk_pool_reason(launcher->site.host.pool))
        LOG_WARNING(launcher->log, "the disk pool is not as good as it could be",
                    log_text("reason", disk_pool_reason(launcher->site.host.pool)));
}

/* A launcher that serves once takes its base group away at its end, so it must be no other's. */
static void take_name(struct launcher *launcher, const char *name)
{
    const struct site_options *given = &launcher->options->site;

    (void) snprintf(launcher->name, sizeof(launcher->name), "%s", name);
    launcher->site_options = *given;
    if (launcher->is_once) {
        (void) snprintf(launcher->cgroup, sizeof(launcher->cgroup), "%s-%s", given->cgroup, name);
        launcher->site_options.cgroup = launcher->cgroup;
    }
}

static int open_parts(struct launcher *launcher, struct error *err)
{
    const struct launcher_options *options = launcher->options;
    const struct site_options *where = &launcher->site_options;
    int r = event_loop_init(&launcher->loop, clock_system());

    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "make the event loop");
    launcher->has_loop = true;
    launcher->loop.log = launcher->log;
    if (watch_signals(launcher, err) < 0)
        return -1;
    if (site_folder(where->run, err) < 0 ||
        instance_open(&launcher->instance, where->run, launcher->name, options->user,
                      options->group, err) < 0)
        return -1;
    launcher->has_instance = true;
    if (site_open(&launcher->site, where, err) < 0)
        return -1;
    launcher->has_site = true;
    if (cgroup_host_claim(launcher->site.cgroups, CLAIM_MS, err) < 0)
        return -1;
    for (size_t i = 0; options->binds && options->binds[i]; i++) {
        if (bind_registry_add_word(launcher->site.binds, options->binds[i], err) < 0)
            return -1;
    }
    if (janitor_start(&launcher->janitor, &launcher->loop, where, &launcher->instance,
                      launcher->log, err) < 0)
        return -1;
    launcher->has_janitor = true;
    if (porter_init(&launcher->porter, &launcher->loop, where, &launcher->site, &launcher->instance,
                    launcher->log, err) < 0)
        return -1;
    launcher->has_porter = true;
    return 0;
}

static int open_residents(struct launcher *launcher, struct error *err)
{
    launcher->residents = (struct residents){
        .loop = &launcher->loop,
        .site = &launcher->site,
        .instance = &launcher->instance,
        .janitor = &launcher->janitor,
        .porter = &launcher->porter,
        .log = launcher->log,
        .hooks = service_hooks(&launcher->service, residents_empty),
        .run = launcher->options->site.run,
        .name = launcher->name,
        .is_once = launcher->is_once,
    };
    if (residents_init(&launcher->residents, err) < 0)
        return -1;
    launcher->has_residents = true;
    if (service_init(&launcher->service, &launcher->loop, &launcher->residents, launcher->log,
                     conversation_ended, launcher, err) < 0)
        return -1;
    return residents_adopt(&launcher->residents, err);
}

static void new_conversation(void *context, int fd)
{
    struct launcher *launcher = context;
    struct error err = ERROR_INIT;

    if (service_open(&launcher->service, fd, &err) < 0)
        LOG_ERROR(launcher->log, "no conversation with the daemon",
                  log_text("reason", err.message));
}

static int open_daemon(struct launcher *launcher, struct error *err)
{
    (void) snprintf(launcher->agents, sizeof(launcher->agents), "%s/agents",
                    launcher->instance.path);
    launcher->daemon = (struct daemon_child){
        .loop = &launcher->loop,
        .log = launcher->log,
        .command = launcher->options->daemon,
        .agents = launcher->agents,
        .user = launcher->options->user,
        .group = launcher->options->group,
        .context = launcher,
        .conversation = new_conversation,
        .over = daemon_over,
        .pidfd = -EBADF,
    };
    return daemon_child_start(&launcher->daemon, err);
}

static int start(struct launcher *launcher, struct error *err)
{
    struct router *router;

    if (open_parts(launcher, err) < 0)
        return -1;
    check_host(launcher);
    if (launcher->options->nat && site_router(&launcher->site, &router, err) < 0)
        return -1;
    if (open_residents(launcher, err) < 0)
        return -1;
    if (!launcher->is_once)
        porter_warm_up(&launcher->porter);
    /* What the start took and gave back: every clone would copy its page tables. */
    (void) malloc_trim(0);
    launcher->pool_end.fire = end_warm_pool;
    launcher->housekeeping.fire = housekeeping;
    event_timer_set(&launcher->loop, &launcher->housekeeping, HOUSEKEEPING_MS);
    return launcher->is_once ? service_open(&launcher->service, launcher->options->socket, err)
                             : open_daemon(launcher, err);
}

/* --- leaving nothing open -------------------------------------------------------------------- */

static void close_site(struct launcher *launcher)
{
    struct site *site = &launcher->site;

    /* Both stay where somebody else uses them, sandboxes that go on included. */
    if (site->router)
        (void) router_remove(site->router, NULL);
    (void) disk_pool_unmount(site->host.pool, NULL);
    site->host.pool = NULL;
    cgroup_host_remove_base(site->cgroups);
    site_close(site);
}

static void finish(struct launcher *launcher)
{
    if (launcher->has_residents)
        service_done(&launcher->service);
    if (launcher->has_porter)
        porter_stop(&launcher->porter);
    if (launcher->has_residents) {
        residents_delete_snapshots(&launcher->residents);
        residents_done(&launcher->residents);
    }
    if (!launcher->is_once)
        daemon_child_done(&launcher->daemon);
    if (launcher->has_janitor)
        janitor_stop(&launcher->janitor);
    if (launcher->has_site)
        close_site(launcher);
    if (launcher->has_instance && launcher->is_once && !launcher->leaves_traces)
        instance_remove(&launcher->instance);
    else if (launcher->has_instance)
        instance_close(&launcher->instance);
    if (launcher->has_loop) {
        (void) fd_close(launcher->signals.fd);
        event_loop_done(&launcher->loop);
    }
}

/* --- others who died ------------------------------------------------------------------------- */

struct recovery {
    const struct launcher_options *options;
    struct log *log;
};

/* What a launcher that served once and was killed has left: its sandboxes died with it, the rest is
 * taken down as if it had ended. */
static void take_over(void *context, const char *name)
{
    const struct recovery *recovery = context;
    struct launcher launcher = {.options = recovery->options,
                                .log = recovery->log,
                                .is_once = true,
                                .signals.fd = -EBADF,
                                .daemon.pidfd = -EBADF};
    struct error err = ERROR_INIT;

    take_name(&launcher, name);
    if (open_parts(&launcher, &err) == 0 && open_residents(&launcher, &err) == 0) {
        launcher.is_ending = true;
        residents_kill_all(&launcher.residents);
        if (launcher.residents.count)
            (void) event_loop_run(&launcher.loop);
        if (!launcher.leaves_traces)
            LOG_INFO(launcher.log, "what a killed launcher left is taken down",
                     log_text("name", name));
    } else {
        LOG_WARNING(launcher.log, "what a killed launcher left stays", log_text("name", name),
                    log_text("reason", err.message));
        launcher.is_once = false; /* its folder must stay for the next try */
    }
    finish(&launcher);
}

static void recover_others(const struct launcher_options *options, struct log *log)
{
    struct recovery recovery = {options, log};

    instance_find_dead(options->site.run, LAUNCHER_ONCE_PREFIX, take_over, &recovery);
}

int launcher_run(const struct launcher_options *options, struct log *log, struct error *err)
{
    struct launcher launcher = {.options = options,
                                .log = log,
                                .is_once = !options->daemon,
                                .signals.fd = -EBADF,
                                .daemon.pidfd = -EBADF};
    char name[INSTANCE_NAME_MAX + 1] = LAUNCHER_SERVE_INSTANCE;
    int r;

    if (launcher.is_once)
        (void) snprintf(name, sizeof(name), LAUNCHER_ONCE_PREFIX "%d", (int) getpid());
    take_name(&launcher, name);
    recover_others(options, log);
    if (start(&launcher, err) < 0) {
        finish(&launcher);
        return -1;
    }
    r = event_loop_run(&launcher.loop);
    finish(&launcher);
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "the event loop") : launcher.status;
}
