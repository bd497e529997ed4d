/* burrow serve: wires the parts of the daemon together and runs them. No logic lives here. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/admission.h"
#include "api/error_body.h"
#include "api/native/native.h"
#include "api/shared/operations.h"
#include "base/auto.h"
#include "base/memory.h"
#include "net/http_server.h"
#include "programs/burrow/command.h"
#include "programs/burrow/data_folder.h"
#include "programs/burrow/sandboxes.h"
#include "programs/burrow/serve_root.h"
#include "programs/burrow/settings.h"

#define STOP_SIGNALS 2
#define HELP_MAX     ((size_t) 64 * 1024)

struct daemon {
    struct settings settings;
    struct data_folder data;
    struct admission admission;
    struct operations operations;
    struct native native;
    struct http_mount mounts[2];
    struct http_router *router;
    struct tls_context *tls;
    struct log *log;
    struct loop loop;
    struct http_server *server;
    uv_signal_t signals[STOP_SIGNALS];
    struct sandboxes sandboxes;
    bool loop_runs;
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

static int open_admission(struct daemon *daemon, struct error *err)
{
    AUTO(free) char *key = NULL;
    bool is_new = false;

    if (admission_init(&daemon->admission, daemon->settings.no_auth, daemon->settings.allowed_hosts,
                       err) < 0)
        return -1;
    if (daemon->settings.no_auth) {
        LOG_WARNING(daemon->log, "no keys are asked for: whoever reaches the socket is let in");
        return 0;
    }
    if (data_folder_admin_key(&daemon->data, &key, &is_new, err) < 0)
        return -1;
    admission_set_key(&daemon->admission, key);
    if (is_new)
        (void) printf("key  %s\n     kept in %s/keys/admin, shown only now\n", key,
                      daemon->settings.data);
    explicit_bzero(key, strlen(key));
    return 0;
}

static int open_router(struct daemon *daemon, struct error *err)
{
    daemon->operations = (struct operations){
        .clock = clock_system(),
        .log = daemon->log,
        .started_ns = clock_monotonic_ns(clock_system()),
    };
    daemon->mounts[0] = operations_mount(&daemon->operations);
    daemon->mounts[1] = native_mount(&daemon->native);
    daemon->router = http_router_new();
    for (size_t i = 0; i < ARRAY_COUNT(daemon->mounts); i++) {
        daemon->native.mounts[daemon->native.mount_count++] = &daemon->mounts[i];
        if (http_router_mount(daemon->router, &daemon->mounts[i], err) < 0)
            return -1;
    }
    return 0;
}

static int open_server(struct daemon *daemon, struct error *err)
{
    struct http_server_options options = HTTP_SERVER_OPTIONS_DEFAULT;
    const struct settings *settings = &daemon->settings;

    options.router = daemon->router;
    options.clock = clock_system();
    options.log = daemon->log;
    options.admit = admission_check_source;
    options.authorize = admission_check_access;
    options.admit_data = &daemon->admission;
    options.encode_error = error_body_write;
    options.connections_max = settings->connections_max;
    options.head_timeout_ms = settings->head_timeout_ms;
    options.body_timeout_ms = settings->body_timeout_ms;
    options.idle_timeout_ms = settings->idle_timeout_ms;
    if (*settings->tls_certificate) {
        daemon->tls = tls_context_server(settings->tls_certificate, settings->tls_key, err);
        if (!daemon->tls)
            return -1;
    }
    daemon->server = http_server_new(&daemon->loop, &options);
    daemon->operations.server = daemon->server;
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
        at += length + (at[length] == ',');
    }
    (void) fflush(stdout);
    return 0;
}

/* --- running and stopping ------------------------------------------------------------------- */

static void server_drained(struct http_server *server, void *data)
{
    struct daemon *daemon = data;

    (void) server;
    sandboxes_close(&daemon->sandboxes);
    for (size_t i = 0; i < STOP_SIGNALS; i++)
        uv_close((uv_handle_t *) &daemon->signals[i], NULL);
}

static void stop(struct daemon *daemon)
{
    daemon->operations.ready = false;
    http_server_drain(daemon->server, daemon->settings.drain_timeout_ms, server_drained, daemon);
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
    stop(daemon);
}

static void launcher_lost(void *context)
{
    struct daemon *daemon = context;

    daemon->is_lost = true;
    if (daemon->operations.ready)
        stop(daemon);
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

static int start(struct daemon *daemon, struct error *err)
{
    int r;

    if (settings_check(&daemon->settings, err) < 0)
        return -1;
    if (serve_root_is_wanted(&daemon->settings))
        return serve_root(&daemon->settings, err);
    daemon->log = open_log(&daemon->settings);
    raise_descriptor_limit(daemon->log);
    if (data_folder_open(&daemon->data, daemon->settings.data, err) < 0)
        return -1;
    if (open_admission(daemon, err) < 0 || open_router(daemon, err) < 0)
        return -1;
    r = loop_init(&daemon->loop, daemon->log);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "start the loop");
    daemon->loop_runs = true;
    if (open_server(daemon, err) < 0)
        return -1;
    if (sandboxes_open(&daemon->sandboxes, &daemon->loop, daemon->log, &daemon->settings,
                       launcher_lost, daemon, err) < 0)
        return -1;
    daemon->operations.sandboxes_wait = &daemon->sandboxes.waits_for;
    daemon->operations.has_sandboxes = daemon->sandboxes.provider != NULL;
    return open_listeners(daemon, err);
}

static void nothing_left(struct http_server *server, void *data)
{
    (void) server;
    (void) data;
}

static void finish(struct daemon *daemon)
{
    http_server_free(daemon->server);
    if (daemon->loop_runs)
        loop_done(&daemon->loop);
    tls_context_free(daemon->tls);
    http_router_free(daemon->router);
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
    sandboxes_close(&daemon->sandboxes);
    if (daemon->server) {
        http_server_drain(daemon->server, 0, nothing_left, NULL);
        loop_run(&daemon->loop);
    }
    finish(daemon);
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

    if (r > 0) {
        settings_done(&daemon.settings);
        return print_help();
    }
    if (r < 0 || start(&daemon, &err) < 0)
        return start_failed(&daemon, &err);
    watch_signals(&daemon);
    daemon.operations.ready = true;
    LOG_INFO(daemon.log, "ready", log_text("version", BURROW_VERSION),
             log_text("listen", daemon.settings.listen));
    loop_run(&daemon.loop);
    LOG_INFO(daemon.log, "stopped");
    status = daemon.is_lost;
    finish(&daemon);
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
