/* burrow-launcher serve|once: the launcher itself. Options and wiring; see launcher/launcher.h. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/number.h"
#include "base/trace.h"
#include "launcher/host/host_mounts.h"
#include "launcher/launcher.h"
#include "programs/launcher/verb.h"
#include "programs/root/root_verb.h"

#define BINDS_MAX         64
#define POOL_SIZE_MAX     (UINT64_C(1) << 50)
#define SANDBOXES_MAX     16384
#define SANDBOXES_DEFAULT 1000
#define USER_DEFAULT      "burrow"
#define PASSWD_MAX        16384

struct words {
    struct launcher_options launcher;
    const char *binds[BINDS_MAX + 1];
    size_t bind_count;
    const char *user;
    enum log_level log_level;
    bool has_log_level;
    bool only_help;
};

static const struct option long_options[] = {
    {"data", required_argument, NULL, 'd'},
    {"run", required_argument, NULL, 'r'},
    {"cgroup", required_argument, NULL, 'c'},
    {"cgroup-parent", required_argument, NULL, 'C'},
    {"network-name", required_argument, NULL, 'n'},
    {"pool-size", required_argument, NULL, 'p'},
    {"user", required_argument, NULL, 'u'},
    {"socket-fd", required_argument, NULL, 's'},
    {"bind", required_argument, NULL, 'b'},
    {"sandboxes", required_argument, NULL, 'S'},
    {"nat", no_argument, NULL, 'N'},
    {"log-level", required_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: burrow-launcher serve [options] -- PROGRAM [ARGUMENT ...]\n"
    "       burrow-launcher once --socket-fd N [--bind NAME=DIR]... [options]\n"
    "\n"
    "serve starts PROGRAM, the daemon, as a user without rights, and starts it again when it "
    "dies.\n"
    "once serves one conversation on the socket N and takes everything down at its end.\n"
    "\n"
    "  --data DIR          disks, images, binds           (" SITE_DATA_DEFAULT ")\n"
    "  --run DIR           what lasts until a reboot      (" SITE_RUN_DEFAULT ")\n"
    "  --user NAME         who the daemon is              (serve: " USER_DEFAULT ", once: root)\n"
    "  --cgroup NAME       the base of all groups         (" SITE_CGROUP_DEFAULT ")\n"
    "  --cgroup-parent GROUP  where that base goes        (the launcher's own group)\n"
    "  --network-name NAME the router's link and tables   (" SITE_NETWORK_DEFAULT ")\n"
    "  --nat               make the router now, not when it is first needed\n"
    "  --pool-size SIZE    of the disk pool's file        (most of what is free)\n"
    "  --sandboxes N       how many the host must carry   (1000)\n"
    "  --log-level LEVEL   debug, info, warning, error    (serve: info, once: warning)\n";

static int complain(const char *what, const char *value)
{
    (void) fprintf(stderr, "burrow-launcher: %s '%s'\n", what, value);
    return -1;
}

static int parse_numbers(int option, struct words *words)
{
    int64_t number = 0;

    if (option == 'p')
        return number_parse_size(optarg, POOL_SIZE_MAX, &words->launcher.site.pool_size) < 0
                   ? complain("not a size:", optarg)
                   : 0;
    if (option == 'S') {
        if (number_parse(optarg, 1, SANDBOXES_MAX, &number) < 0)
            return complain("not a number of sandboxes:", optarg);
        words->launcher.sandboxes = (uint64_t) number;
        return 0;
    }
    if (number_parse(optarg, 0, 1 << 20, &number) < 0 ||
        fcntl((int) number, F_SETFD, FD_CLOEXEC) < 0)
        return complain("not an open descriptor:", optarg);
    words->launcher.socket = (int) number;
    return 0;
}

static int parse_option(int option, struct words *words)
{
    struct site_options *site = &words->launcher.site;

    switch (option) {
    case 'd':
        site->data = optarg;
        return 0;
    case 'r':
        site->run = optarg;
        return 0;
    case 'c':
        site->cgroup = optarg;
        return 0;
    case 'C':
        if (*optarg != '/')
            return complain("not a group, which begins with '/':", optarg);
        site->cgroup_parent = optarg;
        return 0;
    case 'n':
        site->network = optarg;
        return 0;
    case 'u':
        words->user = optarg;
        return 0;
    case 'N':
        words->launcher.nat = true;
        return 0;
    case 'b':
        if (words->bind_count == BINDS_MAX)
            return complain("too many binds:", optarg);
        words->binds[words->bind_count++] = optarg;
        return 0;
    case 'v':
        words->has_log_level = true;
        return log_level_from_text(optarg, &words->log_level) < 0
                   ? complain("not a log level:", optarg)
                   : 0;
    case 'h':
        words->only_help = true;
        return 0;
    case '?':
        return -1;
    default:
        return parse_numbers(option, words);
    }
}

static int find_user(struct words *words)
{
    char memory[PASSWD_MAX];
    struct passwd storage, *entry = NULL;

    if (!words->user)
        return 0; /* root: itself */
    if (getpwnam_r(words->user, &storage, memory, sizeof(memory), &entry) != 0 || !entry) {
        (void) fprintf(stderr,
                       "burrow-launcher: there is no user '%s': make it with `useradd --system "
                       "--no-create-home --shell /usr/sbin/nologin %s`, or name another with "
                       "--user\n",
                       words->user, words->user);
        return -1;
    }
    words->launcher.user = entry->pw_uid;
    words->launcher.group = entry->pw_gid;
    return 0;
}

static int parse(int argc, char **argv, struct words *words)
{
    bool is_once = strcmp(argv[0], "once") == 0;
    int option;

    while ((option = getopt_long(argc, argv, "+", long_options, NULL)) >= 0) {
        if (parse_option(option, words) < 0)
            return -1;
    }
    if (words->only_help)
        return 0;
    if (is_once && words->launcher.socket < 0)
        return complain("missing:", "--socket-fd");
    if (!is_once && (optind >= argc || *argv[optind] != '/'))
        return complain("serve needs a program with an absolute path behind", "--");
    /* Its stderr is that of `burrow run`. */
    if (is_once && !words->has_log_level)
        words->log_level = LOG_LEVEL_WARNING;
    if (!is_once) {
        words->launcher.daemon = (const char *const *) (argv + optind);
        words->user = words->user ? words->user : USER_DEFAULT;
    }
    words->launcher.binds = words->binds;
    return find_user(words);
}

int verb_launch(int argc, char **argv)
{
    struct words words = {
        .launcher = {.site = {.data = SITE_DATA_DEFAULT,
                              .run = SITE_RUN_DEFAULT,
                              .cgroup = SITE_CGROUP_DEFAULT,
                              .network = SITE_NETWORK_DEFAULT},
                     .socket = -EBADF,
                     .sandboxes = SANDBOXES_DEFAULT},
        .log_level = LOG_LEVEL_INFO,
    };
    AUTO(host_mounts) struct host_mounts host = HOST_MOUNTS_INIT;
    AUTO(log) struct log *log = NULL;
    struct error err = ERROR_INIT;
    int status;

    trace_start("launcher", TRACE_LAUNCHER);
    if (parse(argc, argv, &words) < 0) {
        (void) fputs(usage, stderr);
        return ROOT_VERB_REFUSED;
    }
    if (words.only_help) {
        (void) fputs(usage, stdout);
        return 0;
    }
    if (!root_verb_is_allowed(argv[0]))
        return ROOT_VERB_REFUSED;
    log = log_new(STDERR_FILENO, LOG_FORMAT_AUTO, words.log_level, clock_system());
    words.launcher.site.host = &host;
    status = host_mounts_leave(&host, &err);
    if (status == 0)
        status = launcher_run(&words.launcher, log, &err);
    if (status < 0)
        (void) fprintf(stderr, "burrow-launcher: %s\n", err.message);
    return status < 0 ? ROOT_VERB_REFUSED : status;
}
