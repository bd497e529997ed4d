/* What this machine has of what sandboxes need: `burrow doctor`.
 *
 * A report is a list of rows, grouped by area, each with a state and, where it is not as it should
 * be, with what to do:
 *
 *     on        there and working; a wall that stands
 *     off       not in use now, and nothing is lost by it
 *     warning   sandboxes run, but with less than they could have: the detail says what is lost
 *     missing   without it no sandbox runs
 *
 * The doctor tries things rather than guess from versions, and leaves nothing behind: what changes
 * a process (namespaces, filters) or can hang is tried in a child, mounts are made in mount
 * namespaces that end with it, and a cgroup is made under a name of its own and removed at once.
 * Nothing on the disk is made or changed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum doctor_state { DOCTOR_ON, DOCTOR_OFF, DOCTOR_WARNING, DOCTOR_MISSING, DOCTOR_STATE_COUNT };

#define DOCTOR_NAME_SIZE 64
#define DOCTOR_TEXT_SIZE 512
#define DOCTOR_ROWS_MAX  192

struct doctor_row {
    const char *area; /* static: "kernel" */
    enum doctor_state state;
    char name[DOCTOR_NAME_SIZE];
    char detail[DOCTOR_TEXT_SIZE]; /* may be "" */
    char remedy[DOCTOR_TEXT_SIZE]; /* what to do; "" when there is nothing to do */
};

struct doctor_report {
    size_t count;
    struct doctor_row rows[DOCTOR_ROWS_MAX];
};

struct doctor_options {
    const char *data;          /* DATA; need not exist */
    const char *run;           /* RUN; need not exist */
    const char *cgroup;        /* name of the launcher's base group */
    const char *cgroup_parent; /* where that is, if there is such a group; or NULL */
    const char *user;          /* whom the daemon runs as */
    const char *programs;      /* folder where agent and keeper are looked for */
    uint64_t sandboxes;        /* alive at once: what the host's limits must allow */

    /* For tests; the real ones outside. */
    const char *proc; /* "/proc" */
    const char *etc;  /* "/etc" */
    const char *dev;  /* "/dev" */
};

/* What is the same on every host; the places are the caller's business. */
#define DOCTOR_OPTIONS_DEFAULT                                                                     \
    {                                                                                              \
        .user = "burrow", .sandboxes = 1000, .proc = "/proc", .etc = "/etc", .dev = "/dev"         \
    }

/* Look at everything. Needs root for honest answers. Takes some tens of milliseconds, at most a few
 * seconds per area. The caller frees the report. */
struct doctor_report *doctor_run(const struct doctor_options *options);

/* How many rows are in that state. */
size_t doctor_count(const struct doctor_report *report, enum doctor_state state);

/* "on", "off", "warning", "missing". Static. */
const char *doctor_state_text(enum doctor_state state);

/* For people: areas, rows, remedies, and a last line that sums up. */
void doctor_print(const struct doctor_report *report, struct text *out);

/* 0: sandboxes can run; 1: something is missing. */
int doctor_exit_status(const struct doctor_report *report);
