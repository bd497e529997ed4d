/* Inside launcher/keeper_job: what the parent prepares and the child uses between clone and exec.
 */
#pragma once

#include <stddef.h>

#include "launcher/child/child_steps.h"
#include "launcher/keeper/keeper_job.h"

/* The mounts a job may have, in the order they are sent. */
enum keeper_mount { KEEPER_MOUNT_DISK, KEEPER_MOUNT_BASE, KEEPER_MOUNT_TARGET, KEEPER_MOUNTS_MAX };

/* Layers of disk and base, or of the disk and its image. */
#define KEEPER_LAYERS_MAX (DISK_LAYERS_MAX + IMAGE_LOWERS_MAX)
_Static_assert(IMAGE_LOWERS_MAX >= DISK_LAYERS_MAX, "room for a base");

/* A stack as the program is told of it: "/disk/u:/disk/0:/disk/15". */
#define KEEPER_PATHS_SIZE ((DISK_LAYERS_MAX + 1) * sizeof("/disk/00:"))

/* What comes with the mounts: how many layers are the disk's and the base's. */
struct keeper_delivery {
    uint8_t disk_layers, base_layers;
};

struct keeper_child {
    const struct keeper_host *host;
    enum keeper_task task;
    struct cgroup_entry entry; /* empty without a group */
    int socket;                /* the child's end: mounts come in here */
    int status;                /* the child's end: failures go out here */
    int launcher[2];           /* the launcher's ends of both: see receive_mounts */
    int standard[3];           /* what becomes 0, 1 and 2 */
    int data;                  /* what becomes 3, or -EBADF */
    int trace;                 /* what becomes TRACE_FILE_FD, or -EBADF */
    bool has_base;
    int mounts[KEEPER_MOUNTS_MAX]; /* by enum keeper_mount; -EBADF for those it has not */
    /* Sent behind them: what lies under the disk, under the base, and of a view under both. */
    int layers[KEEPER_LAYERS_MAX];
    size_t layer_count;
    struct keeper_delivery delivery;
    char disk[KEEPER_PATHS_SIZE], base[KEEPER_PATHS_SIZE]; /* what the program is told */
};

/* Tables by task, shared by both sides. */
struct keeper_task_row {
    const char *name;
    /* Where the program finds its folders; NULL: it has no such one. */
    const char *disk, *base, *target;
    bool may_lack_base;
    bool is_tree;  /* works on upper folders, with what lies beneath them */
    bool is_upper; /* works on the upper folder alone */
    bool is_view;
    bool writes;      /* to the disk; the target is always written */
    bool has_folders; /* of the host, no disks */
    bool has_data;
    const char *const *capabilities;
};

const struct keeper_task_row *keeper_task_row(enum keeper_task task);

/* The child's whole life; its context is a struct keeper_child. */
extern const struct child_steps keeper_child_steps;
