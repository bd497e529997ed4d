/* Sandboxes with walls left out, started as the launcher starts them, one or more in one lab. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"
#include "launcher/sandbox/sandbox.h"
#include "wall_set.h"
#include "wall_target.h"

struct wall_box_options {
    const char *folder;    /* of the guard */
    const char *agent;     /* path of burrow-agent */
    uint64_t memory, disk; /* bytes */
    uint32_t pids, cpu;
    struct sandbox_bind binds[SANDBOX_BINDS_MAX]; /* opened by wall_stage_set: a descriptor from */
    const char *bind_paths[SANDBOX_BINDS_MAX];    /* outside the guard is of foreign mounts */
    size_t bind_count;
};

/* What all sandboxes of a lab share. */
struct wall_stage {
    const struct wall_box_options *options;
    struct sandbox_host host;
    struct cgroup_host *cgroups;
    struct process_limits limits;
    struct wall_target target;
    char *agent; /* the program's bytes */
    size_t agent_length;
    int sockets; /* the folder of agents' sockets */
};

/* One sandbox. */
struct wall_box {
    struct sandbox_host host;
    struct seccomp_filter filter;
    struct sandbox sandbox;
    struct sandbox_plan plan;
    char socket[160];
};

int wall_stage_set(struct wall_stage *stage, struct wall_box_options *options, struct error *err);

/* Unmount the pool; the rest goes with the guard. */
void wall_stage_strike(struct wall_stage *stage);

/* Start a sandbox without these walls; with `id` on the disk that one has. Its agent answers at
 * `box->socket` when this returns. */
int wall_box_start(struct wall_stage *stage, const struct wall_set *without, const struct id *id,
                   struct wall_box *box, struct error *err);

/* Run a program in it and return the agent's answer, one JSON document. */
int wall_box_execute(const struct wall_stage *stage, const struct wall_box *box,
                     const char *const *argv, struct text *ret_answer, struct error *err);

/* Kill it and give everything back. */
int wall_box_stop(struct wall_stage *stage, struct wall_box *box, bool keep_disk,
                  struct error *err);
