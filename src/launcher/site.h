/* Everything of a host that sandboxes are made from, opened once: cgroups, disks, images, id
 * ranges, the filter, the agent's program.
 *
 *     DATA/          root's, 0755
 *       pool/        disks (disk_pool.h)
 *       images/      names of images (image.h)
 *       binds/       names of folders for read-only binds (bind.h)
 *       daemon/      the daemon's own, not ours
 *     RUN/           root's, 0755, best on a tmpfs
 *       ids/         id ranges, shared by all launchers of the host
 *       network/     the router, likewise
 *       <instance>/  of one launcher (instance.h)
 *
 * A daemon may be taken over: nothing in here is reached through a folder that it could exchange,
 * so DATA and RUN and what leads to them must be root's alone.
 *
 * Opening makes what is missing and takes from 10 ms to a second (the first time). One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "launcher/image/bind.h"
#include "launcher/sandbox/sandbox.h"

#define SITE_DATA_DEFAULT    "/var/lib/burrow"
#define SITE_RUN_DEFAULT     "/run/burrow"
#define SITE_CGROUP_DEFAULT  "burrow"
#define SITE_NETWORK_DEFAULT "burrow"

/* Where the table of id ranges is, which all launchers of a host share: whatever run folders they
 * have, no two sandboxes get the same ids. */
#define SITE_IDS_FOLDER SITE_RUN_DEFAULT "/ids"

/* The unit of the package that sandboxes live in, as a group. */
#define SITE_CGROUP_UNIT "/system.slice/burrow-sandboxes.service"

struct site_options {
    const char *data;
    const char *run;
    const char *cgroup;        /* name of the base group */
    const char *cgroup_parent; /* where it goes; NULL: where we are (cgroup_host.h) */
    const char *network;       /* name of the router's link and tables */
    uint64_t pool_size;        /* bytes; 0: the pool decides */
    const char
        *programs;   /* folder of burrow-agent and burrow-keeper; NULL: where this program is */
    bool only_disks; /* for taking down: no programs, no images */
    const struct host_mounts *host; /* borrowed; NULL: our mounts are the host's */
};

struct site {
    struct sandbox_host host; /* filled from the rest */
    struct cgroup_host *cgroups;
    struct bind_registry *binds;
    struct seccomp_filter filter;
    struct process_limits limits;
    struct router *router;                 /* NULL until site_router */
    int keeper;                            /* owned: sealed memfd */
    int home;                              /* owned: the host's network namespace */
    int network_ahead;                     /* owned: see sandbox_host; -EBADF: none */
    const struct host_mounts *host_mounts; /* borrowed; as in the options */
    char network_folder[256];
    char network_name[16];
};

/* ERR_FORBIDDEN: DATA or RUN is not root's alone; ERR_NOT_FOUND: a program of ours is missing;
 * otherwise what failed and why. On failure nothing is left open. */
int site_open(struct site *site, const struct site_options *options, struct error *err);

void site_close(struct site *site);

/* That table, for whom works in this run folder. The caller frees it. */
int site_open_ids(const char *run, struct id_range_table **ret_ids, struct error *err);

/* Make a network namespace for the next sandbox, unless there is one. Making it is a fifth of a
 * start's time, which nobody has to wait for then. 0.9 ms; a failure shows at that start. */
void site_make_network_ahead(struct site *site);

/* The router, found or made when first asked for (5 ms). Borrowed. */
int site_router(struct site *site, struct router **ret_router, struct error *err);

/* A program of ours as a sealed image that sandboxes cannot read, the caller's. `folder`: where it
 * is; NULL: where this program is. */
int site_load_program(const char *folder, const char *name, int *ret_image, struct error *err);

/* A folder that only root can change: made with mode 0755 when missing, otherwise checked. Returns
 * 0, or -1 with ERR_FORBIDDEN. */
int site_folder(const char *path, struct error *err);
