/* Limits of the whole host that many sandboxes meet before memory runs out.
 *
 * Each row computes what a number of sandboxes needs and names the file under /proc/sys that holds
 * it. At start the launcher raises those that are too low, where it may and where the value is not
 * a decision of the administrator's; what stays too low becomes a sentence with the value, the
 * need, what will fail and the remedy, for `doctor` and for the log of the start. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "launcher/wall/process_limit.h"

struct process_limit_need {
    uint64_t sandboxes;        /* alive at once */
    uint64_t processes_each;   /* pids limit of one */
    uint64_t descriptors_each; /* what the launcher holds open for one */
    uint64_t terminals_each;   /* pseudo terminals of one */
    pid_t launcher;            /* whose descriptors are counted when nothing is raised; 0: ours */
};

/* What a sandbox gets unless its plan says otherwise. */
#define PROCESS_LIMIT_NEED(count)                                                                  \
    {                                                                                              \
        .sandboxes = (count), .processes_each = 256, .descriptors_each = 16,                       \
        .terminals_each = PROCESS_LIMIT_TERMINALS                                                  \
    }

enum process_limit_state {
    PROCESS_LIMIT_ENOUGH,  /* was high enough */
    PROCESS_LIMIT_RAISED,  /* is now */
    PROCESS_LIMIT_LOW,     /* too low, or unsafe; `sentence` says what to do */
    PROCESS_LIMIT_MISSING, /* this kernel does not have it, or it cannot be read */
};

#define PROCESS_LIMIT_SENTENCE_MAX 320

struct process_limit_finding {
    const char *name; /* "fs.inotify.max_user_instances" */
    enum process_limit_state state;
    uint64_t value; /* as found, 0 when MISSING */
    uint64_t needed;
    bool raised_at_start; /* not a decision of the administrator's: `raise` writes it */
    char sentence[PROCESS_LIMIT_SENTENCE_MAX]; /* "" unless LOW */
};

#define PROCESS_LIMIT_FINDINGS_MAX 24

struct process_limit_report {
    size_t count;
    struct process_limit_finding findings[PROCESS_LIMIT_FINDINGS_MAX];
};

/* Look at all rows, this process's own descriptor limit and the core pattern. With `raise` write
 * what may be raised. `proc` is a directory descriptor of the host's /proc. Never fails: what
 * cannot be read is MISSING. `core_handler_runs` comes from the plan in process_limit.h. Only reads
 * and writes small files, well below a millisecond; call it at start, not per request. */
void process_limit_check_host(int proc, const struct process_limit_need *need, bool raise,
                              bool core_handler_runs, struct process_limit_report *ret_report);

/* The finding of that name, or NULL. Borrowed from the report. */
const struct process_limit_finding *process_limit_find(const struct process_limit_report *report,
                                                       const char *name);
