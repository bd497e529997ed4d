#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/api_error.h"
#include "agent/control/diagnostics.h"
#include "agent/environment.h"
#include "agent/exec/account.h"
#include "agent/exec/image_command.h"
#include "agent/exec/process_tree.h"
#include "agent/process/process_set.h"
#include "agent/services.h"
#include "agent/session/session_set.h"
#include "base/memory.h"
#include "json/json_read.h"
#include "sys/file/sys_file.h"
#include "sys/process/sys_signal.h"

/* An event with 64 KiB of output, every byte of which became six. */
#define SCRATCH_MAX ((size_t) 1024 * 1024)

/* Connections: enough for a busy control plane, few enough that a flood of them leaves memory and
 * descriptors for commands. */
#define CONNECTIONS_MAX 512
/* A command needs up to eight descriptors while it starts, four while it runs. */
#define OPEN_FILES_WANTED ((rlim_t) 65536)

#define STOP_TIMEOUT_MS 1000
/* A client may let a command wait so long before it is cut and the command killed. */
#define STALL_TIMEOUT_MS  600000
#define EXIT_SIGNAL_BASE  128
#define EXIT_LAUNCH_ERROR 127

/* --- requests ------------------------------------------------------------------------------- */

void agent_reply_json(struct http_request *request, const struct text *body)
{
    http_reply(request, 200, "application/json", text_string(body), body->length);
}

void agent_note_work(struct agent *agent)
{
    agent->last_work = loop_now(&agent->loop);
}

/* Every byte is looked at, so that the time says nothing of how much was right. */
static bool is_same_secret(const char *given, const char *secret)
{
    size_t given_length = strlen(given), length = strlen(secret);
    unsigned int difference = given_length != length;

    for (size_t i = 0; i < given_length; i++)
        difference |= (unsigned int) (given[i] ^ secret[i % (length + 1)]);
    return difference == 0;
}

static bool has_token(const struct http_request *request, const char *token)
{
    static const char scheme[] = "Bearer ";
    const char *given = http_request_header(request, "authorization");

    return given && strncasecmp(given, scheme, sizeof(scheme) - 1) == 0 &&
           is_same_secret(given + sizeof(scheme) - 1, token);
}

static int admit(struct http_request *request, void *data, struct error *err)
{
    const struct agent *agent = data;

    (void) http_reply_header(request, "Access-Control-Allow-Origin", "*");
    (void) http_reply_header(request, "Access-Control-Allow-Methods",
                             "GET, POST, PUT, DELETE, OPTIONS");
    (void) http_reply_header(request, "Access-Control-Allow-Headers",
                             "Content-Type, Authorization, X-Session-Id, X-Sandbox-Id, X-Trace-Id");
    if (agent->token && !has_token(request, agent->token))
        return error_set(err, ERR_UNAUTHENTICATED, 0,
                         "this agent wants its token in 'Authorization: Bearer ...'");
    return 0;
}

static int open_server(struct agent *agent, const struct agent_options *options,
                       struct http_mount *mount, struct error *err)
{
    struct http_server_options server = HTTP_SERVER_OPTIONS_DEFAULT;

    services_mount(mount, agent);
    agent->router = http_router_new();
    if (http_router_mount(agent->router, mount, err) < 0)
        return -1;
    server.router = agent->router;
    server.clock = agent->clock;
    server.log = agent->log;
    server.takes_request_ids = true;
    server.admit = admit;
    server.admit_data = agent;
    server.encode_error = api_error_encode;
    server.connections_max = CONNECTIONS_MAX;
    server.stall_timeout_ms = STALL_TIMEOUT_MS;
    agent->server = http_server_new(&agent->loop, &server);
    if (options->listen_fd >= 0 &&
        http_server_listen_on(agent->server, options->listen_fd, NULL, err) < 0)
        return -1;
    for (const char *const *address = options->listen; address && *address; address++) {
        if (http_server_listen(agent->server, *address, NULL, err) < 0)
            return -1;
    }
    return 0;
}

/* --- stopping ------------------------------------------------------------------------------- */

static void drained(struct http_server *server, void *data)
{
    struct agent *agent = data;

    (void) server;
    loop_stop(&agent->loop);
}

static void stop(struct agent *agent, int status)
{
    if (agent->stopping)
        return;
    agent->stopping = true;
    agent->exit_status = status;
    exec_set_kill_all(&agent->execs);
    http_server_drain(agent->server, STOP_TIMEOUT_MS, drained, agent);
}

/* --- the entrypoint ------------------------------------------------------------------------- */

static void entrypoint_started(struct exec *exec, void *owner)
{
    struct agent *agent = owner;

    LOG_INFO(agent->log, "entrypoint started", log_number("pid", exec_pid(exec)));
}

static void entrypoint_wrote(struct exec *exec, void *owner, enum exec_output which,
                             const char *bytes, size_t length)
{
    (void) exec; /* it writes to our own stdout and stderr */
    (void) owner;
    (void) which;
    (void) bytes;
    (void) length;
}

static int entrypoint_status(const struct exec_result *result)
{
    if (result->error)
        return EXIT_LAUNCH_ERROR;
    if (result->exit.kind == SYS_EXIT_STATUS)
        return result->exit.value;
    return EXIT_SIGNAL_BASE + (result->exit.kind == SYS_EXIT_SIGNAL ? result->exit.value : SIGKILL);
}

/* Success leaves the server running; failure ends the container with the command's status. */
static void entrypoint_ended(struct exec *exec, void *owner, const struct exec_result *result)
{
    struct agent *agent = owner;
    int status = entrypoint_status(result);

    (void) exec;
    agent->entrypoint = NULL;
    diagnostics_entrypoint(agent, status, result->error ? strerrorname_np(-result->error) : NULL);
    LOG_INFO(agent->log, "entrypoint ended", log_number("status", status),
             log_text("reason", result->error ? strerrorname_np(-result->error) : NULL));
    if (status || agent->exit_status < 0)
        stop(agent, status);
}

static const struct exec_events entrypoint_events = {
    .on_start = entrypoint_started,
    .on_output = entrypoint_wrote,
    .on_end = entrypoint_ended,
};

static int start_entrypoint(struct agent *agent, const char *const *command, struct error *err)
{
    static const int own[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    const struct exec_options options = {
        .launch = {.arguments = command, .environment = agent->environment},
        .descriptors = own,
        .as_agent = true,
    };
    int r = 0;

    if (!command)
        return 0;
    agent->entrypoint = exec_start(&agent->execs, &options, &entrypoint_events, agent, &r);
    if (!agent->entrypoint)
        return error_set(err, ERR_INTERNAL, r, "start '%s'", command[0]);
    return 0;
}

/* --- signals and children ------------------------------------------------------------------- */

static void child_ended(void *owner, pid_t pid, const struct sys_exit *exit)
{
    struct agent *agent = owner;

    exec_set_reaped(&agent->execs, pid, exit);
}

/* With a command to supervise signals are the command's, and its end after SIGTERM or SIGINT is
 * ours too, whatever its status. */
static void signal_arrived(void *owner, int signal)
{
    struct agent *agent = owner;
    bool ends = signal == SIGTERM || signal == SIGINT;

    if (agent->entrypoint) {
        if (ends)
            agent->exit_status = -1;
        exec_signal(agent->entrypoint, signal);
    } else if (ends) {
        stop(agent, 0);
    }
}

static const struct reaper_events reaper_events = {
    .on_child = child_ended,
    .on_signal = signal_arrived,
};

/* --- life ----------------------------------------------------------------------------------- */

/* As many descriptors as we may have; commands get what we found. */
static struct rlimit raise_open_files(void)
{
    struct rlimit found, wanted;

    if (getrlimit(RLIMIT_NOFILE, &found) < 0)
        return (struct rlimit){.rlim_cur = 1024, .rlim_max = 1024};
    wanted = found;
    if (wanted.rlim_cur < OPEN_FILES_WANTED)
        wanted.rlim_cur = wanted.rlim_max < OPEN_FILES_WANTED ? wanted.rlim_max : OPEN_FILES_WANTED;
    (void) setrlimit(RLIMIT_NOFILE, &wanted); /* the soft limit may always be raised so far */
    return found;
}

static void make_environment(struct agent *agent, const char *const *own)
{
    const char *version = environment_get(own, "SANDBOX_VERSION");
    const char *workspace = environment_get(own, "BURROW_WORKSPACE");
    const char *directory = environment_get(own, "BURROW_DIRECTORY");
    const char *user = environment_get(own, "BURROW_USER");
    struct account account;
    const char *home = account_read(getuid(), &account) == 0 ? account.home : "/";

    agent->environment = environment_for_commands(own, home);
    agent->first_environment = environment_merge(agent->environment, NULL, 0);
    agent->version = version ? version : BURROW_VERSION;
    agent->workspace = workspace && workspace[0] == '/' ? workspace : AGENT_DIRECTORY;
    agent->directory = directory && directory[0] == '/' ? directory : AGENT_DIRECTORY;
    agent->image_command = image_command_read(environment_get(own, "BURROW_COMMAND"));
    agent->user = user && *user ? user : NULL;
    if (!environment_get(own, "BURROW_KEEP_HOME"))
        agent->home = environment_get(agent->first_environment, "HOME");
}

/* Something to read from that is empty. Where there is no /dev, a pipe without a writer. */
static int open_nothing(void)
{
    int fd = sys_file_open(AT_FDCWD, "/dev/null", O_RDONLY, 0);
    int ends[2];

    if (fd >= 0)
        return fd;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    (void) close(ends[1]);
    return ends[0];
}

static int start_services(struct agent *agent, const struct agent_options *options,
                          struct http_mount *mount, struct error *err)
{
    struct worker_settings settings = {
        .groups = options->groups,
        .group_count = options->group_count,
        .open_files = raise_open_files(),
    };
    int r = 0;

    /* Before anything else, so that the worker is small and holds no descriptor or secret. */
    agent->worker = worker_link_new(&agent->loop, &settings, &r);
    if (!agent->worker)
        return error_set(err, ERR_INTERNAL, r, "start the worker");
    agent->reaper = reaper_new(&agent->loop, &reaper_events, agent, &r);
    if (!agent->reaper)
        return error_set(err, ERR_INTERNAL, r, "watch signals");
    agent->null = open_nothing();
    if (agent->null < 0)
        return error_set(err, ERR_INTERNAL, agent->null, "make an empty stdin for commands");
    exec_set_init(&agent->execs, &agent->loop, agent->worker, agent->null,
                  options->oom_kill_count_fd);
    agent->execs.user = agent->user;
    agent->execs.home = agent->home;
    agent->sessions = session_set_new();
    agent->processes = process_set_new(agent);
    if (open_server(agent, options, mount, err) < 0)
        return -1;
    return start_entrypoint(agent, options->entrypoint, err);
}

/* PID 1 takes its namespace with it. Anyone else must clean up: children outlive their parents. */
static void kill_what_is_left(void)
{
    if (getpid() == 1)
        return;
    for (int i = 0; i < 100 && process_tree_signal(getpid(), SIGKILL) > 0; i++)
        (void) usleep(1000);
}

int agent_run(const struct agent_options *options, struct error *err)
{
    struct agent *agent = mem_alloc(sizeof(*agent));
    struct http_mount mount;
    int r = loop_init(&agent->loop, options->log);

    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "event loop");
    agent->clock = options->clock;
    agent->log = options->log;
    agent->token = options->token;
    diagnostics_begin(agent);
    agent->scratch = (struct text) TEXT_INIT(SCRATCH_MAX);
    agent->born = agent->last_work = loop_now(&agent->loop);
    json_seed();
    make_environment(agent, options->environment);
    r = start_services(agent, options, &mount, err);
    if (r == 0)
        loop_run(&agent->loop);
    kill_what_is_left();
    /* The program ends here: the kernel frees what the loop still holds. */
    return r < 0 ? -1 : agent->exit_status;
}
