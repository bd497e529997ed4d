#include "launcher/wall/process_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/auto.h"
#include "base/number.h"
#include "sys/file/sys_file.h"

#define KIB ((rlim_t) 1024)
#define MIB (KIB * 1024)

static const struct process_limit_row rows[] = {
    {"core", RLIMIT_CORE, 1, 1, "no core file, and no piped core handler on the host"},
    {"nofile", RLIMIT_NOFILE, 1024, 65536, "what a login has; programs that need more raise it"},
    {"memlock", RLIMIT_MEMLOCK, 8 * MIB, 8 * MIB, "locked memory cannot be paged out"},
    {"msgqueue", RLIMIT_MSGQUEUE, 800 * KIB, 800 * KIB, "kernel memory of message queues"},
    {"sigpending", RLIMIT_SIGPENDING, 16384, 16384, "kernel memory of queued signals and timers"},
    {"nice", RLIMIT_NICE, 0, 0, "nobody gets ahead of others"},
    {"rtprio", RLIMIT_RTPRIO, 0, 0, "nobody gets ahead of others"},
    {"stack", RLIMIT_STACK, 8 * MIB, RLIM_INFINITY, "the usual"},
    {"cpu", RLIMIT_CPU, RLIM_INFINITY, RLIM_INFINITY, "the cgroup counts; nothing odd inherited"},
    {"fsize", RLIMIT_FSIZE, RLIM_INFINITY, RLIM_INFINITY, "the disk counts"},
    {"data", RLIMIT_DATA, RLIM_INFINITY, RLIM_INFINITY, "the cgroup counts"},
    {"as", RLIMIT_AS, RLIM_INFINITY, RLIM_INFINITY, "the cgroup counts"},
    {"rttime", RLIMIT_RTTIME, RLIM_INFINITY, RLIM_INFINITY, "no realtime anyway"},
    {"nproc", RLIMIT_NPROC, RLIM_INFINITY, RLIM_INFINITY, "the cgroup counts, where there is one"},
};

_Static_assert(ARRAY_COUNT(rows) <= PROCESS_LIMITS_MAX, "PROCESS_LIMITS_MAX is too small");

static const struct process_limit_share shares[] = {
    {"max_inotify_instances", 128, true, false, "what one user has on a machine of its own"},
    {"max_inotify_watches", 65536, true, false, "what a large source tree needs"},
    {"max_fanotify_groups", 0, false, false, "closed"},
    {"max_fanotify_marks", 0, false, false, "closed"},
    {"max_net_namespaces", 0, true, false, "no nested namespaces"},
    {"max_mnt_namespaces", 0, true, true, "no nested namespaces"},
    {"max_pid_namespaces", 0, true, false, "no nested namespaces"},
    {"max_ipc_namespaces", 0, true, false, "no nested namespaces"},
    {"max_uts_namespaces", 0, true, false, "no nested namespaces"},
    {"max_cgroup_namespaces", 0, true, true, "no nested namespaces"},
    {"max_time_namespaces", 0, false, false, "no nested namespaces"},
    {"max_user_namespaces", 0, true, false, "no nested namespaces"},
};

const struct process_limit_row *process_limit_rows(size_t *ret_count)
{
    *ret_count = ARRAY_COUNT(rows);
    return rows;
}

const struct process_limit_share *process_limit_shares(size_t *ret_count)
{
    *ret_count = ARRAY_COUNT(shares);
    return shares;
}

static rlim_t smaller(rlim_t left, rlim_t right)
{
    return left < right ? left : right;
}

/* RLIM_INFINITY is the largest value, so that comparing is enough. */
static int plan_one(const struct process_limit_row *row, struct rlimit *ret_limit)
{
    struct rlimit own;

    if (getrlimit((__rlimit_resource_t) row->resource, &own) < 0)
        return -errno;
    if (own.rlim_max < row->hard) {
        struct rlimit raised = {own.rlim_cur, row->hard};

        if (setrlimit((__rlimit_resource_t) row->resource, &raised) == 0)
            own = raised;
    }
    ret_limit->rlim_max = smaller(own.rlim_max, row->hard);
    ret_limit->rlim_cur = smaller(ret_limit->rlim_max, row->soft);
    return 0;
}

int process_limits_plan(struct process_limits *limits, rlim_t processes)
{
    *limits = (struct process_limits){0};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct process_limit_row row = rows[i];
        int result;

        if (row.resource == RLIMIT_NPROC && processes > 0)
            row.soft = row.hard = processes;
        limits->entries[i].resource = row.resource;
        result = plan_one(&row, &limits->entries[i].limit);
        if (result < 0)
            return result;
        if (row.resource == RLIMIT_CORE && limits->entries[i].limit.rlim_cur != 1)
            limits->core_handler_runs = true;
    }
    limits->count = ARRAY_COUNT(rows);
    return 0;
}

int process_limits_apply(const struct process_limits *limits)
{
    for (size_t i = 0; i < limits->count; i++)
        if (setrlimit((__rlimit_resource_t) limits->entries[i].resource,
                      &limits->entries[i].limit) < 0)
            return -errno;
    return 0;
}

static int write_number(int directory, const char *path, int value)
{
    char text[NUMBER_TEXT_SIZE];
    AUTO(close) int fd = sys_file_open(directory, path, O_WRONLY, 0);

    if (fd < 0)
        return fd;
    return sys_file_write_full(fd, text, number_format(value, text));
}

int process_limit_set_oom_score(pid_t pid, int score)
{
    char path[64];

    (void) snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
    return write_number(AT_FDCWD, path, score);
}

int process_limit_hide_image(int image)
{
    return fchmod(image, S_IXUSR | S_IXGRP | S_IXOTH) < 0 ? -errno : 0;
}

int process_limit_apply_shares(int directory, bool late)
{
    for (size_t i = 0; i < ARRAY_COUNT(shares); i++) {
        int result =
            shares[i].late == late ? write_number(directory, shares[i].file, shares[i].value) : 0;

        if (result < 0 && (shares[i].required || result != -ENOENT))
            return result;
    }
    return 0;
}
