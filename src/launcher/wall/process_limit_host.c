#include "launcher/wall/process_limit_host.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/auto.h"
#include "base/number.h"
#include "launcher/wall/process_limit.h"
#include "sys/file/sys_file.h"

/* What the host's own programs use of each. */
#define RESERVE_PROCESSES   4096
#define RESERVE_WATCHES     65536
#define RESERVE_INSTANCES   128
#define RESERVE_TERMINALS   1024
#define RESERVE_NAMESPACES  1024
#define RESERVE_NEIGHBOURS  1024
#define RESERVE_DESCRIPTORS 512 /* NETWORK_SPARES_MAX among them */

/* The least an open file costs in the memory that a cgroup counts. With as many files allowed as
 * fit into all memory, a sandbox that opens files meets its own memory limit and not the host's. */
#define FILE_BYTES 256

/* A sandbox with a network has an entry at each end of its link, and some to spare. */
#define NEIGHBOURS_EACH 4

#define FILE_MAX_SIZE 65536

struct host {
    const struct process_limit_need *need;
    uint64_t memory_bytes;
};

static uint64_t share_of(const char *file)
{
    size_t count;
    const struct process_limit_share *shares = process_limit_shares(&count);

    for (size_t i = 0; i < count; i++)
        if (strcmp(shares[i].file, file) == 0)
            return (uint64_t) shares[i].value;
    return 0;
}

static uint64_t need_instances(const struct host *host)
{
    return RESERVE_INSTANCES + host->need->sandboxes * share_of("max_inotify_instances");
}

static uint64_t need_watches(const struct host *host)
{
    return RESERVE_WATCHES + host->need->sandboxes * share_of("max_inotify_watches");
}

static uint64_t need_processes(const struct host *host)
{
    return RESERVE_PROCESSES + host->need->sandboxes * host->need->processes_each;
}

static uint64_t need_files(const struct host *host)
{
    return host->memory_bytes / FILE_BYTES;
}

static uint64_t need_descriptors_each(const struct host *host)
{
    size_t count;
    const struct process_limit_row *rows = process_limit_rows(&count);

    (void) host;
    for (size_t i = 0; i < count; i++)
        if (rows[i].resource == RLIMIT_NOFILE)
            return rows[i].hard;
    return 0;
}

static uint64_t need_terminals(const struct host *host)
{
    return RESERVE_TERMINALS + host->need->sandboxes * host->need->terminals_each;
}

static uint64_t need_namespaces(const struct host *host)
{
    return RESERVE_NAMESPACES + host->need->sandboxes;
}

/* One of its own, and that which owns its network. */
static uint64_t need_user_namespaces(const struct host *host)
{
    return RESERVE_NAMESPACES + 2 * host->need->sandboxes;
}

static uint64_t need_neighbours(const struct host *host)
{
    return RESERVE_NEIGHBOURS + host->need->sandboxes * NEIGHBOURS_EACH;
}

struct row {
    const char *name;
    const char *path; /* in /proc/sys */
    uint64_t (*needed)(const struct host *host);
    uint64_t highest;      /* that the kernel accepts */
    bool ours_to_raise;    /* false: who set it low may have meant it */
    const char *otherwise; /* what fails */
};

static const struct row rows[] = {
    {"fs.inotify.max_user_instances", "fs/inotify/max_user_instances", need_instances, INT_MAX,
     true, "file watchers in all sandboxes together fail beyond it"},
    {"fs.inotify.max_user_watches", "fs/inotify/max_user_watches", need_watches, INT_MAX, true,
     "file watchers in all sandboxes together fail beyond it"},
    {"kernel.pid_max", "kernel/pid_max", need_processes, 4194304, true,
     "no process can be started anywhere beyond it"},
    {"kernel.threads-max", "kernel/threads-max", need_processes, 0x3fffffff, true,
     "no thread can be started anywhere beyond it"},
    {"fs.file-max", "fs/file-max", need_files, LONG_MAX, true,
     "a sandbox that hoards open files can keep others from opening any"},
    {"fs.nr_open", "fs/nr_open", need_descriptors_each, 2147483584, true,
     "programs get fewer descriptors than they may ask for"},
    {"kernel.pty.max", "kernel/pty/max", need_terminals, 1048576, true,
     "no terminal can be opened anywhere beyond it"},
    {"net.ipv4.neigh.default.gc_thresh3", "net/ipv4/neigh/default/gc_thresh3", need_neighbours,
     INT_MAX, true, "sandboxes with a network lose packets beyond it"},
    {"user.max_user_namespaces", "user/max_user_namespaces", need_user_namespaces, INT_MAX, false,
     "no sandbox can be made beyond it"},
    {"user.max_net_namespaces", "user/max_net_namespaces", need_namespaces, INT_MAX, false,
     "no sandbox can be made beyond it"},
    {"user.max_mnt_namespaces", "user/max_mnt_namespaces", need_namespaces, INT_MAX, false,
     "no sandbox can be made beyond it"},
    {"user.max_pid_namespaces", "user/max_pid_namespaces", need_namespaces, INT_MAX, false,
     "no sandbox can be made beyond it"},
    {"user.max_ipc_namespaces", "user/max_ipc_namespaces", need_namespaces, INT_MAX, false,
     "no sandbox can be made beyond it"},
    {"user.max_uts_namespaces", "user/max_uts_namespaces", need_namespaces, INT_MAX, false,
     "no sandbox can be made beyond it"},
    {"user.max_cgroup_namespaces", "user/max_cgroup_namespaces", need_namespaces, INT_MAX, false,
     "no sandbox can be made beyond it"},
};

/* The first line of a file in `directory`, without its newline; the caller frees it. */
static int read_line(int directory, const char *path, char **ret_line)
{
    size_t length;
    int result = sys_file_read_all(directory, path, FILE_MAX_SIZE, ret_line, &length);

    if (result == 0)
        (*ret_line)[strcspn(*ret_line, "\n")] = '\0';
    return result;
}

static int read_value(int directory, const char *path, uint64_t *ret_value)
{
    AUTO(free) char *line = NULL;
    int result = read_line(directory, path, &line);

    /* systemd sets fs.file-max to the largest value there is. */
    return result < 0 ? result : number_parse_digits(line, strlen(line), UINT64_MAX, ret_value);
}

static int write_value(int directory, const char *path, uint64_t value)
{
    char text[NUMBER_TEXT_SIZE];
    uint64_t now = 0;
    int result;
    AUTO(close) int fd = sys_file_open(directory, path, O_WRONLY, 0);

    if (fd < 0)
        return fd;
    result = sys_file_write_full(fd, text, number_format_unsigned(value, text));
    if (result == 0)
        result = read_value(directory, path, &now);
    return result < 0 ? result : now < value ? -ERANGE : 0;
}

/* "MemTotal:       24640000 kB", the first line. */
static uint64_t read_memory(int proc)
{
    AUTO(free) char *line = NULL;
    const char *digits;
    uint64_t kilobytes;

    if (read_line(proc, "meminfo", &line) < 0)
        return 0;
    digits = line + strcspn(line, "0123456789");
    if (number_parse_digits(digits, strspn(digits, "0123456789"), UINT64_MAX / 1024, &kilobytes) <
        0)
        return 0;
    return kilobytes * 1024;
}

static struct process_limit_finding *add(struct process_limit_report *report, const char *name)
{
    struct process_limit_finding *finding = &report->findings[report->count++];

    *finding = (struct process_limit_finding){.name = name, .state = PROCESS_LIMIT_MISSING};
    return finding;
}

static void say_low(struct process_limit_finding *finding, uint64_t sandboxes,
                    const char *otherwise, int raised)
{
    finding->state = PROCESS_LIMIT_LOW;
    (void) snprintf(finding->sentence, sizeof(finding->sentence),
                    "%s is %llu, %llu sandboxes need %llu: %s. Raising it %s%s; "
                    "`sysctl -w %s=%llu` does.",
                    finding->name, (unsigned long long) finding->value,
                    (unsigned long long) sandboxes, (unsigned long long) finding->needed, otherwise,
                    raised < 0 ? "failed: " : "was left to you",
                    raised < 0 ? strerrordesc_np(-raised) : "", finding->name,
                    (unsigned long long) finding->needed);
}

static void check_row(int sys, const struct row *row, const struct host *host, bool raise,
                      struct process_limit_report *report)
{
    struct process_limit_finding *finding = add(report, row->name);
    uint64_t needed = row->needed(host);
    int raised = 0;

    finding->needed = needed < row->highest ? needed : row->highest;
    finding->raised_at_start = row->ours_to_raise;
    if (read_value(sys, row->path, &finding->value) < 0)
        return;
    finding->state = PROCESS_LIMIT_ENOUGH;
    if (finding->value >= finding->needed)
        return;
    if (raise && row->ours_to_raise) {
        raised = write_value(sys, row->path, finding->needed);
        finding->state = PROCESS_LIMIT_RAISED;
        if (raised == 0)
            return;
    }
    say_low(finding, host->need->sandboxes, row->otherwise, raised);
}

/* The launcher's own descriptors: soft up to hard always works, beyond only with CAP_SYS_RESOURCE.
 */
static void check_descriptors(const struct process_limit_need *need, bool raise,
                              struct process_limit_report *report)
{
    struct process_limit_finding *finding = add(report, "nofile");
    struct rlimit own, wanted;

    finding->needed = RESERVE_DESCRIPTORS + need->sandboxes * need->descriptors_each;
    if (prlimit(raise ? 0 : need->launcher, RLIMIT_NOFILE, NULL, &own) < 0)
        return;
    /* Who only looks looks for a launcher, which takes as many as it may. */
    finding->value = raise ? own.rlim_cur : own.rlim_max;
    finding->state = PROCESS_LIMIT_ENOUGH;
    if (finding->value >= finding->needed)
        return;
    wanted = (struct rlimit){finding->needed,
                             own.rlim_max > finding->needed ? own.rlim_max : finding->needed};
    if (raise && setrlimit(RLIMIT_NOFILE, &wanted) == 0) {
        finding->state = PROCESS_LIMIT_RAISED;
        return;
    }
    finding->state = PROCESS_LIMIT_LOW;
    (void) snprintf(finding->sentence, sizeof(finding->sentence),
                    "The launcher may open %llu files (at most %llu), %llu sandboxes need "
                    "%llu: later ones are refused. Start it with a higher limit "
                    "(LimitNOFILE=%llu, or `ulimit -n`).",
                    (unsigned long long) own.rlim_cur, (unsigned long long) own.rlim_max,
                    (unsigned long long) need->sandboxes, (unsigned long long) finding->needed,
                    (unsigned long long) finding->needed);
}

static void check_core_pattern(int sys, bool core_handler_runs, struct process_limit_report *report)
{
    struct process_limit_finding *finding = add(report, "kernel.core_pattern");
    AUTO(free) char *pattern = NULL;
    const char *why = NULL;

    if (read_line(sys, "kernel/core_pattern", &pattern) < 0)
        return;
    finding->state = PROCESS_LIMIT_ENOUGH;
    if (pattern[0] == '@')
        why = "no limit of a process keeps crashes from a socket";
    else if (pattern[0] == '|' && core_handler_runs)
        why = "the launcher's hard core limit is 0 and cannot be set to 1, which would keep "
              "crashes from it";
    if (!why)
        return;
    finding->state = PROCESS_LIMIT_LOW;
    (void) snprintf(finding->sentence, sizeof(finding->sentence),
                    "kernel.core_pattern hands the memory of crashed sandbox processes to a "
                    "program of the host (%.60s), and %s. Set it to a file name, or let that "
                    "program ignore sandboxes.",
                    pattern, why);
}

_Static_assert(ARRAY_COUNT(rows) + 2 <= PROCESS_LIMIT_FINDINGS_MAX, "too many findings");

void process_limit_check_host(int proc, const struct process_limit_need *need, bool raise,
                              bool core_handler_runs, struct process_limit_report *ret_report)
{
    struct host host = {.need = need, .memory_bytes = read_memory(proc)};
    AUTO(close) int sys = sys_file_open(proc, "sys", O_PATH | O_DIRECTORY, 0);

    *ret_report = (struct process_limit_report){0};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        check_row(sys, &rows[i], &host, raise, ret_report);
    check_descriptors(need, raise, ret_report);
    check_core_pattern(sys, core_handler_runs, ret_report);
}

const struct process_limit_finding *process_limit_find(const struct process_limit_report *report,
                                                       const char *name)
{
    for (size_t i = 0; i < report->count; i++)
        if (strcmp(report->findings[i].name, name) == 0)
            return &report->findings[i];
    return NULL;
}
