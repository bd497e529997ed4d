#include "launcher/daemon_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/text.h"
#include "sys/file/sys_file.h"
#include "sys/network/sys_socket.h"
#include "sys/process/sys_spawn.h"

#define NANOSECONDS_PER_MS UINT64_C(1000000)
#define FD_VARIABLE        "BURROW_LAUNCHER_FD="
#define AGENTS_VARIABLE    "BURROW_AGENTS="
#define VARIABLE_MAX       4096

/* --- its environment ------------------------------------------------------------------------- */

/* What it gets of ours, by name or by the beginning of names. Root's own variables
 * (keys of other programs, sockets of agents, libraries to load) are no business of it. */
static const struct {
    const char *text;
    bool is_beginning;
} passed_on[] = {
    {"BURROW_", true}, /* settings; tests' crash points and missing features */
    {"TZ", false},
    {"TMPDIR", false},        /* SQLite's, for what it sorts */
    {"SSL_CERT_FILE", false}, /* authorities that stores and webhooks are trusted by */
    {"SSL_CERT_DIR", false},
    {"RES_OPTIONS", false}, /* how names are resolved */
    {"LOCALDOMAIN", false},
    {"UV_THREADPOOL_SIZE", false},
    {"MALLOC_", true},
    {"GLIBC_TUNABLES", false},
    {"ASAN_OPTIONS", false}, /* builds with sanitizers or counters */
    {"LSAN_OPTIONS", false},
    {"TSAN_OPTIONS", false},
    {"UBSAN_OPTIONS", false},
    {"GCOV_PREFIX", true},
};

static bool is_ours(const char *variable)
{
    return strncmp(variable, FD_VARIABLE, strlen(FD_VARIABLE)) == 0 ||
           strncmp(variable, AGENTS_VARIABLE, strlen(AGENTS_VARIABLE)) == 0;
}

static bool is_passed_on(const char *variable)
{
    size_t length = strcspn(variable, "=");

    if (is_ours(variable))
        return false;
    for (size_t i = 0; i < ARRAY_COUNT(passed_on); i++) {
        size_t known = strlen(passed_on[i].text);

        if (strncmp(variable, passed_on[i].text, known) == 0 &&
            (passed_on[i].is_beginning || length == known))
            return true;
    }
    return false;
}

static void make_environment(const struct daemon_child *daemon, struct text *agents,
                             struct text *fd, const char ***ret_environment)
{
    size_t count = 0;

    while (environ[count])
        count++;
    *ret_environment = mem_alloc_array(count + 3, sizeof(char *));
    count = 0;
    for (char **at = environ; *at; at++) {
        if (is_passed_on(*at))
            (*ret_environment)[count++] = *at;
    }
    text_format(fd, FD_VARIABLE "%d", DAEMON_SOCKET_FD);
    text_format(agents, AGENTS_VARIABLE "%s", daemon->agents);
    (*ret_environment)[count++] = text_string(fd);
    (*ret_environment)[count] = text_string(agents);
}

/* --- its life -------------------------------------------------------------------------------- */

static void try_again(struct event_timer *timer)
{
    struct daemon_child *daemon = CONTAINER_OF(timer, struct daemon_child, restart);
    struct error err = ERROR_INIT;

    if (daemon_child_start(daemon, &err) == 0)
        return;
    LOG_ERROR(daemon->log, "the daemon does not start", log_text("reason", err.message));
    event_timer_set(daemon->loop, timer, DAEMON_PAUSE_MAX_MS);
}

static void start_later(struct daemon_child *daemon)
{
    uint64_t lived = clock_monotonic_ns(daemon->loop->clock) - daemon->started_ns;

    if (!daemon->pause_ms || lived / NANOSECONDS_PER_MS >= DAEMON_STEADY_MS)
        daemon->pause_ms = DAEMON_PAUSE_MIN_MS;
    else
        daemon->pause_ms *= 2;
    if (daemon->pause_ms > DAEMON_PAUSE_MAX_MS)
        daemon->pause_ms = DAEMON_PAUSE_MAX_MS;
    event_timer_set(daemon->loop, &daemon->restart, daemon->pause_ms);
}

static void has_ended(struct event_source *source, uint32_t events)
{
    struct daemon_child *daemon = CONTAINER_OF(source, struct daemon_child, exit);
    struct sys_exit ended = {.kind = SYS_EXIT_UNKNOWN};
    bool by_itself;

    (void) events;
    event_loop_remove(daemon->loop, source);
    (void) sys_process_wait(daemon->pidfd, 0, &ended);
    daemon->pidfd = fd_close(daemon->pidfd);
    daemon->pid = 0;
    by_itself =
        ended.kind == SYS_EXIT_STATUS && (ended.value == 0 || ended.value == DAEMON_REFUSED);
    if (by_itself || daemon->is_stopping) {
        daemon->over(daemon->context, ended.kind == SYS_EXIT_STATUS ? ended.value : 1);
        return;
    }
    LOG_WARNING(daemon->log, "the daemon ended, starting it again",
                log_text("how", ended.kind == SYS_EXIT_SIGNAL ? "signal" : "status"),
                log_number("value", ended.value));
    start_later(daemon);
}

static int spawn(struct daemon_child *daemon, int socket, struct error *err)
{
    const struct sys_spawn_descriptor descriptors[] = {
        {STDIN_FILENO, STDIN_FILENO},
        {STDOUT_FILENO, STDOUT_FILENO},
        {STDERR_FILENO, STDERR_FILENO},
        {socket, DAEMON_SOCKET_FD},
    };
    const struct sys_spawn_user user = {daemon->user, daemon->group};
    AUTO(text) struct text agents = TEXT_INIT(VARIABLE_MAX), fd = TEXT_INIT(VARIABLE_MAX);
    AUTO(free) const char **environment = NULL;
    AUTO(close) int program = sys_file_open(AT_FDCWD, daemon->command[0], O_PATH, 0);
    char path[32];
    struct sys_spawn how = {
        .path = path,
        .arguments = daemon->command,
        .descriptors = descriptors,
        .descriptor_count = ARRAY_COUNT(descriptors),
        .new_session = true, /* Ctrl-C is for us; we then ask it to end */
        .parent_signal = SIGTERM,
        .user = &user,
    };

    if (program < 0)
        return error_set(err, error_code_from_errno(program), program, "open the daemon '%s'",
                         daemon->command[0]);
    /* By descriptor: its user may lack the right to walk there (a checkout in /root). */
    (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", program);
    make_environment(daemon, &agents, &fd, &environment);
    how.environment = environment;
    daemon->pidfd = sys_spawn(&how, &daemon->pid);
    return daemon->pidfd < 0 ? error_set(err, error_code_from_errno(daemon->pidfd), daemon->pidfd,
                                         "start the daemon '%s'", daemon->command[0])
                             : 0;
}

int daemon_child_start(struct daemon_child *daemon, struct error *err)
{
    AUTO(close) int ours = -EBADF, theirs = -EBADF;
    int pair[2];
    int r = sys_socket_pair(SOCK_SEQPACKET, pair);

    daemon->pidfd = -EBADF;
    daemon->restart.fire = try_again;
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "make the daemon's socket");
    ours = pair[0];
    theirs = pair[1];
    if (spawn(daemon, theirs, err) < 0)
        return -1;
    daemon->started_ns = clock_monotonic_ns(daemon->loop->clock);
    daemon->exit =
        (struct event_source){.fd = daemon->pidfd, .events = EPOLLIN, .ready = has_ended};
    r = event_loop_add(daemon->loop, &daemon->exit);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "watch the daemon");
    daemon->conversation(daemon->context, TAKE_FD(ours));
    return 0;
}

void daemon_child_stop(struct daemon_child *daemon)
{
    event_timer_clear(&daemon->restart);
    if (daemon->pidfd < 0) {
        daemon->over(daemon->context, 0);
        return;
    }
    (void) sys_process_kill(daemon->pidfd, daemon->is_stopping ? SIGKILL : SIGTERM);
    daemon->is_stopping = true;
}

void daemon_child_kill(struct daemon_child *daemon)
{
    if (daemon->pidfd >= 0 && !daemon->is_stopping)
        (void) sys_process_kill(daemon->pidfd, SIGKILL);
}

void daemon_child_done(struct daemon_child *daemon)
{
    event_timer_clear(&daemon->restart);
    event_loop_remove(daemon->loop, &daemon->exit);
    daemon->pidfd = fd_close(daemon->pidfd);
}
