/* burrow-agent: PID 1 of a sandbox. Wiring only; see agent/agent.h. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/number.h"
#include "base/trace.h"
#include "sys/file/sys_file.h"
#include "sys/process/sys_process.h"
#include "sys/process/sys_signal.h"

#define LISTEN_MAX     8
#define GROUPS_MAX     16
#define TOKEN_SIZE     512
#define EXIT_USAGE     2
#define LISTEN_DEFAULT "127.0.0.1:3000"

struct settings {
    struct agent_options agent;
    const char *listen[LISTEN_MAX + 1];
    int groups[GROUPS_MAX];
    char token[TOKEN_SIZE];
    enum log_level log_level;
    bool only_version;
};

static const struct option long_options[] = {
    {"listen", required_argument, NULL, 'l'},
    {"listen-fd", required_argument, NULL, 'f'},
    {"work-cgroup-fds", required_argument, NULL, 'w'},
    {"oom-kill-count-fd", required_argument, NULL, 'o'},
    {"token", required_argument, NULL, 't'},
    {"log-level", required_argument, NULL, 'v'},
    {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: burrow-agent [--listen ADDRESS:PORT|unix:PATH]... [--listen-fd N]\n"
    "                    [--work-cgroup-fds N,N,...] [--oom-kill-count-fd N] [--token TOKEN]\n"
    "                    [--log-level LEVEL]\n"
    "                    [-- command ...]\n"
    "\n"
    "Serves the container API inside a sandbox (default: " LISTEN_DEFAULT "). With a command,\n"
    "supervises it: a failure of the command ends the agent with its status.\n";

static int complain(const char *what, const char *value)
{
    (void) fprintf(stderr, "burrow-agent: %s '%s'\n%s", what, value, usage);
    return -1;
}

/* A descriptor that we inherited: nobody else shall. */
static int parse_fd(const char *text, int *ret_fd)
{
    int64_t number;

    if (number_parse(text, 3, 1 << 20, &number) < 0 || fcntl((int) number, F_SETFD, FD_CLOEXEC) < 0)
        return complain("not an open descriptor:", text);
    *ret_fd = (int) number;
    return 0;
}

static int parse_groups(char *list, struct settings *settings)
{
    char *rest = list, *item;

    while ((item = strsep(&rest, ","))) {
        if (settings->agent.group_count == GROUPS_MAX)
            return complain("too many descriptors:", item);
        if (parse_fd(item, &settings->groups[settings->agent.group_count]) < 0)
            return -1;
        settings->agent.group_count++;
    }
    return 0;
}

static int add_listen(struct settings *settings, const char *address)
{
    size_t count = 0;

    while (settings->listen[count])
        count++;
    if (count == LISTEN_MAX)
        return complain("too many addresses:", address);
    settings->listen[count] = address;
    return 0;
}

/* The token must not be seen in ps. */
static int take_token(char *argument, struct settings *settings)
{
    size_t length = strlen(argument);

    if (!length || length >= sizeof(settings->token))
        return complain("a token has 1 to 511 characters, not", "this");
    memcpy(settings->token, argument, length + 1);
    memset(argument, '*', length);
    settings->agent.token = settings->token;
    return 0;
}

static int parse_option(int option, struct settings *settings)
{
    switch (option) {
    case 'l':
        return add_listen(settings, optarg);
    case 'f':
        return parse_fd(optarg, &settings->agent.listen_fd);
    case 'w':
        return parse_groups(optarg, settings);
    case 'o':
        return parse_fd(optarg, &settings->agent.oom_kill_count_fd);
    case 't':
        return take_token(optarg, settings);
    case 'v':
        return log_level_from_text(optarg, &settings->log_level) < 0
                   ? complain("not a log level:", optarg)
                   : 0;
    case 'V':
        settings->only_version = true;
        return 0;
    default:
        (void) fputs(usage, stderr);
        return -1;
    }
}

static int parse(int argc, char **argv, struct settings *settings)
{
    int option;

    while ((option = getopt_long(argc, argv, "+", long_options, NULL)) >= 0) {
        if (parse_option(option, settings) < 0)
            return -1;
    }
    if (optind < argc)
        settings->agent.entrypoint = (const char *const *) (argv + optind);
    if (!settings->listen[0] && settings->agent.listen_fd < 0)
        settings->listen[0] = LISTEN_DEFAULT;
    settings->agent.listen = settings->listen;
    settings->agent.groups = settings->groups;
    settings->agent.environment = (const char *const *) environ;
    return 0;
}

/* 0, 1 and 2 must be something, or our sockets would get these numbers. Where there is no /dev, a
 * folder will do: it can neither be read nor written. */
static int fill_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        int filler = fcntl(fd, F_GETFD) < 0 ? open("/dev/null", O_RDWR) : fd;

        if (filler < 0)
            filler = open("/", O_RDONLY | O_DIRECTORY);
        if (filler != fd) /* the lowest number that is free, or an error */
            return -errno;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct settings settings = {.agent = {.listen_fd = -EBADF, .oom_kill_count_fd = -EBADF},
                                .log_level = LOG_LEVEL_WARNING};
    struct error error = ERROR_INIT;
    struct log *log;
    int status;

    trace_start("agent", TRACE_AGENT);
    if (parse(argc, argv, &settings) < 0)
        return EXIT_USAGE;
    if (settings.only_version) {
        (void) puts("burrow-agent " BURROW_VERSION);
        return 0;
    }
    /* Our memory and descriptors are no business of the sandbox's root. */
    (void) sys_process_set_dumpable(false);
    /* What whoever started us ignored or blocked is nothing for commands. Once, here: each of them
     * has only what we change to set back (program.c). */
    (void) sys_signal_reset();
    (void) sys_signal_ignore(SIGPIPE);
    if (fill_standard() < 0)
        return EXIT_FAILURE;
    log = log_new(STDERR_FILENO, LOG_FORMAT_AUTO, settings.log_level, clock_system());
    settings.agent.clock = clock_system();
    settings.agent.log = log;
    status = agent_run(&settings.agent, &error);
    if (status < 0)
        LOG_ERROR(log, "burrow-agent cannot run", log_text("reason", error.message));
    log_free(log);
    return status < 0 ? EXIT_USAGE : status;
}
