/* burrow serve: wires the parts of the daemon together and runs them. No logic lives here. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/access/admission.h"
#include "api/http/api.h"
#include "api/page/page.h"
#include "api/shared/operations.h"
#include "base/auto.h"
#include "base/memory.h"
#include "net/http/http_server.h"
#include "net/outbound/outbound.h"
#include "net/turn_meter.h"
#include "programs/burrow/command.h"
#include "programs/burrow/control_plane.h"
#include "programs/burrow/daemon_walls.h"
#include "programs/burrow/data_folder.h"
#include "programs/burrow/serve_root.h"
#include "programs/burrow/settings.h"

#define STOP_SIGNALS 2
#define MOUNTS_MAX   (CONTROL_PLANE_MOUNTS_MAX + 2) /* and operations, and the page */
#define HELP_MAX     ((size_t) 64 * 1024)

struct daemon {
    struct settings settings;
    struct data_folder data;
    struct admission admission;
    struct operations operations;
    struct http_mount mounts[MOUNTS_MAX];
    char *key; /* owned: the administrator's, until the control plane has it */
    struct http_router *router;
    struct http_router *no_routes; /* of the server for previews by path */
    struct tls_context *tls;
    struct log *log;
    struct loop loop;
    struct turn_meter *meter;
    struct http_server *server;
    struct http_server *preview_server; /* for previews by path; NULL: none */
    uv_signal_t signals[STOP_SIGNALS];
    struct control_plane plane;
    unsigned int servers_open; /* while they drain */
    bool loop_runs;
    bool has_outbound;
    bool is_lost; /* the launcher is gone: end, and not with success */
};

/* --- parts, in the order they are needed ---------------------------------------------------- */

static void raise_descriptor_limit(struct log *log)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
            LOG_WARNING(log, "the limit of open files stays low", log_number("errno", errno));
    }
}

static struct log *open_log(const struct settings *settings)
{
    enum log_format format = strcmp(settings->log_format, "json") == 0   ? LOG_FORMAT_JSON
                             : strcmp(settings->log_format, "text") == 0 ? LOG_FORMAT_TEXT
                                                                         : LOG_FORMAT_AUTO;
    enum log_level level = LOG_LEVEL_INFO;

    (void) log_level_from_text(settings->log_level, &level); /* checked by its list of choices */
    return log_new(STDERR_FILENO, format, level, clock_system());
}

/* A person at a terminal is shown the key. A journal or a file keeps what it gets, for people who
 * may not read the key: it gets the path. */
static void tell_key(const struct daemon *daemon)
{
    if (isatty(STDOUT_FILENO))
        (void) printf("key  %s\n     kept in %s/keys/admin, shown only now\n", daemon->key,
                      daemon->settings.data);
    else
        (void) printf("key  in %s/keys/admin\n", daemon->settings.data);
}

/* Whoever may see the key may make the first account: for programs that know passwords, not keys. */
static void tell_first(void *context)
{
    struct daemon *daemon = context;
    char token[AUTH_FIRST_SIZE];

    if (daemon->settings.no_auth || !isatty(STDOUT_FILENO) ||
        !auth_first_offer(daemon->plane.auth, token))
        return;
    (void) printf(
        "first  %s\n       makes the first account, once, within %d hours; in a browser:\n"
        "       open the url above with /#first= and this token behind it\n",
        token, AUTH_FIRST_HOURS);
    (void) fflush(stdout);
    explicit_bzero(token, sizeof(token));
}

static int open_admission(struct daemon *daemon, struct error *err)
{
    const struct admission_options options = {
        .without_keys = daemon->settings.no_auth,
        .hosts = daemon->settings.allowed_hosts,
        .proxies = daemon->settings.trusted_proxies,
        .origins = daemon->settings.cors_origins,
    };
    bool is_new = false;

    if (admission_init(&daemon->admission, &options, err) < 0)
        return -1;
    if (daemon->settings.no_auth) {
        LOG_WARNING(daemon->log, "no keys are asked for: whoever reaches the socket is let in");
        return 0;
    }
    if (data_folder_admin_key(&daemon->data, &daemon->key, &is_new, err) < 0)
        return -1;
    if (is_new)
        tell_key(daemon);
    return 0;
}

static int open_router(struct daemon *daemon, struct error *err)
{
    size_t count = control_plane_mounts(&daemon->plane, daemon->mounts);

    daemon->operations = (struct operations){
        .clock = clock_system(),
        .log = daemon->log,
        .api = &daemon->plane.api,
        .meter = daemon->meter,
        .started_ns = clock_monotonic_ns(clock_system()),
        .sandboxes_wait = &daemon->plane.waits_for,
        .objects_problem = &daemon->plane.objects.problem,
        .has_sandboxes = daemon->plane.provider != NULL,
    };
    daemon->mounts[count++] = operations_mount(&daemon->operations);
    daemon->plane.api.mounts = daemon->mounts;
    daemon->plane.api.mount_count = count;
    /* The page is for people: the documents tell of what programs may ask. */
    daemon->mounts[count++] = page_mount(daemon->plane.preview);
    daemon->router = http_router_new();
    for (size_t i = 0; i < count; i++)
        if (http_router_mount(daemon->router, &daemon->mounts[i], err) < 0)
            return -1;
    return 0;
}

static struct http_server_options server_options(const struct daemon *daemon)
{
    struct http_server_options options = HTTP_SERVER_OPTIONS_DEFAULT;
    const struct settings *settings = &daemon->settings;

    options.router = daemon->router;
    options.clock = clock_system();
    options.log = daemon->log;
    options.encode_error = error_body_write;
    options.connections_max = control_plane_connections(settings);
    options.head_timeout_ms = settings->head_timeout_ms;
    options.body_timeout_ms = settings->body_timeout_ms;
    options.idle_timeout_ms = settings->idle_timeout_ms;
    options.caller_size = sizeof(struct caller);
    return options;
}

static int open_server(struct daemon *daemon, struct error *err)
{
    struct http_server_options options = server_options(daemon);
    const struct settings *settings = &daemon->settings;

    options.admit = admission_check_source;
    options.authorize = admission_check_access;
    options.on_error = admission_note_denial;
    options.admit_data = &daemon->admission;
    options.intercept = preview_intercept;
    options.intercept_data = daemon->plane.preview;
    if (*settings->tls_certificate) {
        daemon->tls = tls_context_server(settings->tls_certificate, settings->tls_key, err);
        if (!daemon->tls)
            return -1;
    }
    daemon->server = http_server_new(&daemon->loop, &options);
    daemon->operations.server = daemon->server;
    lasting_watch(daemon->plane.lasting, daemon->server);
    return 0;
}

/* Previews by path have a server of their own: nothing of the API is there, not even a cookie. */
static int open_preview_server(struct daemon *daemon, struct error *err)
{
    struct http_server_options options = server_options(daemon);
    const char *address = daemon->settings.preview_listen;

    if (!*address)
        return 0;
    options.router = daemon->no_routes = http_router_new();
    options.fallback = preview_by_path;
    options.fallback_context = daemon->plane.preview;
    options.hidden_segments = 1;
    daemon->preview_server = http_server_new(&daemon->loop, &options);
    lasting_watch(daemon->plane.lasting, daemon->preview_server);
    if (http_server_listen(daemon->preview_server, address, daemon->tls, err) < 0)
        return -1;
    (void) printf("previews by path  %s\n", address);
    return 0;
}

static void announce(const struct daemon *daemon, const char *address, size_t nth_tcp)
{
    bool is_unix = strncmp(address, "unix:", 5) == 0;
    const char *colon = strrchr(address, ':');

    if (is_unix)
        (void) printf("url  %s\n", address);
    else
        (void) printf("url  http%s://%.*s:%u\n", daemon->tls ? "s" : "", (int) (colon - address),
                      address, http_server_port(daemon->server, nth_tcp));
}

static int open_listeners(struct daemon *daemon, struct error *err)
{
    const char *at = daemon->settings.listen;
    size_t tcp = 0;

    while (*at) {
        size_t length = strcspn(at, ",");
        AUTO(free) char *address = mem_copy_bytes(at, length);
        bool is_unix = strncmp(address, "unix:", 5) == 0;

        if (http_server_listen(daemon->server, address, is_unix ? NULL : daemon->tls, err) < 0)
            return -1;
        announce(daemon, address, is_unix ? 0 : tcp++);
        if (!is_unix && tcp == 1)
            preview_set_address(daemon->plane.preview, http_server_port(daemon->server, 0),
                                daemon->tls != NULL);
        at += length + (at[length] == ',');
    }
    (void) fflush(stdout);
    return 0;
}

/* --- running and stopping ------------------------------------------------------------------- */

static void plane_closed(void *context)
{
    struct daemon *daemon = context;

    for (size_t i = 0; i < STOP_SIGNALS; i++)
        uv_close((uv_handle_t *) &daemon->signals[i], NULL);
}

static void server_drained(struct http_server *server, void *data)
{
    struct daemon *daemon = data;

    (void) server;
    if (--daemon->servers_open == 0)
        control_plane_close(&daemon->plane, plane_closed);
}

static void serve_stop(struct daemon *daemon)
{
    daemon->operations.ready = false;
    daemon->servers_open = daemon->preview_server ? 2 : 1;
    http_server_drain(daemon->server, daemon->settings.drain_timeout_ms, server_drained, daemon);
    if (daemon->preview_server)
        http_server_drain(daemon->preview_server, daemon->settings.drain_timeout_ms, server_drained,
                          daemon);
}

static void stop_requested(uv_signal_t *handle, int number)
{
    struct daemon *daemon = handle->data;

    if (!daemon->operations.ready) {
        LOG_WARNING(daemon->log, "told to stop a second time, not waiting any longer");
        log_flush(daemon->log);
        _exit(1);
    }
    LOG_INFO(daemon->log, "stopping", log_text("signal", sigabbrev_np(number)));
    serve_stop(daemon);
}

static void launcher_lost(void *context)
{
    struct daemon *daemon = context;

    daemon->is_lost = true;
    if (daemon->operations.ready)
        serve_stop(daemon);
}

static void watch_signals(struct daemon *daemon)
{
    static const int numbers[STOP_SIGNALS] = {SIGTERM, SIGINT};

    for (size_t i = 0; i < STOP_SIGNALS; i++) {
        (void) uv_signal_init(&daemon->loop.uv, &daemon->signals[i]);
        daemon->signals[i].data = daemon;
        (void) uv_signal_start(&daemon->signals[i], stop_requested, numbers[i]);
    }
}

static void forget_key(struct daemon *daemon)
{
    if (daemon->key)
        explicit_bzero(daemon->key, strlen(daemon->key));
    free(TAKE_PTR(daemon->key));
}

static int serve_start(struct daemon *daemon, struct error *err)
{
    int r;

    if (settings_check(&daemon->settings, err) < 0)
        return -1;
    if (serve_root_is_wanted(&daemon->settings))
        return serve_root(&daemon->settings, err);
    if (daemon_walls_raise(daemon->settings.core_dumps, err) < 0)
        return -1;
    daemon->log = open_log(&daemon->settings);
    raise_descriptor_limit(daemon->log);
    if (data_folder_open(&daemon->data, daemon->settings.data, err) < 0)
        return -1;
    if (open_admission(daemon, err) < 0 || outbound_global_init(err) < 0)
        return -1;
    daemon->has_outbound = true;
    r = loop_init(&daemon->loop, daemon->log);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "start the loop");
    daemon->loop_runs = true;
    daemon->meter = turn_meter_new(&daemon->loop, daemon->log);
    if (control_plane_open(&daemon->plane, &daemon->loop, daemon->log, &daemon->settings,
                           &daemon->data, &daemon->admission, daemon->key, tell_first,
                           launcher_lost, daemon, err) < 0)
        return -1;
    forget_key(daemon);
    if (open_router(daemon, err) < 0 || open_server(daemon, err) < 0 ||
        open_preview_server(daemon, err) < 0)
        return -1;
    return open_listeners(daemon, err);
}

static void nothing_left(struct http_server *server, void *data)
{
    (void) server;
    (void) data;
}

static void serve_finish(struct daemon *daemon)
{
    http_server_free(daemon->server);
    http_server_free(daemon->preview_server);
    turn_meter_close(daemon->meter);
    if (daemon->loop_runs)
        loop_done(&daemon->loop);
    tls_context_free(daemon->tls);
    http_router_free(daemon->router);
    http_router_free(daemon->no_routes);
    if (daemon->has_outbound)
        outbound_global_done();
    forget_key(daemon);
    admission_done(&daemon->admission);
    data_folder_done(&daemon->data);
    log_free(daemon->log);
    settings_done(&daemon->settings);
}

/* A start that failed half-way closes what it opened, so that every exit is clean. */
static int start_failed(struct daemon *daemon, const struct error *err)
{
    (void) fflush(stdout);
    (void) fprintf(stderr, "burrow: %s\n", err->message);
    if (daemon->server)
        http_server_drain(daemon->server, 0, nothing_left, NULL);
    if (daemon->preview_server)
        http_server_drain(daemon->preview_server, 0, nothing_left, NULL);
    control_plane_close(&daemon->plane, NULL);
    if (daemon->loop_runs)
        loop_run(&daemon->loop);
    serve_finish(daemon);
    return 2;
}

static int print_help(void)
{
    AUTO(text) struct text help = TEXT_INIT(HELP_MAX);

    settings_help(&help);
    (void) fputs(text_string(&help), stdout);
    return 0;
}

int command_serve(int argc, char **argv)
{
    struct daemon daemon = {.data = DATA_FOLDER_INIT};
    struct error err = ERROR_INIT;
    int r = settings_load(&daemon.settings, argc, argv, environ, &err), status;

    trace_start("daemon", TRACE_DAEMON);
    if (r > 0) {
        settings_done(&daemon.settings);
        return print_help();
    }
    if (r < 0 || serve_start(&daemon, &err) < 0)
        return start_failed(&daemon, &err);
    watch_signals(&daemon);
    daemon.operations.ready = true;
    LOG_INFO(daemon.log, "ready", log_text("version", BURROW_VERSION),
             log_text("listen", daemon.settings.listen));
    loop_run(&daemon.loop);
    LOG_INFO(daemon.log, "stopped");
    status = daemon.is_lost;
    serve_finish(&daemon);
    return status;
}

int command_settings(int argc, char **argv)
{
    AUTO(text) struct text page = TEXT_INIT(HELP_MAX);

    (void) argc;
    (void) argv;
    settings_document(&page);
    (void) fputs(text_string(&page), stdout);
    return 0;
}
