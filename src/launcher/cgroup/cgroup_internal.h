/* Shared by the cgroup_*.c files only: hierarchies, parts and their files. */
#pragma once

#include <stdint.h>

#include "base/clock.h"
#include "launcher/cgroup/cgroup.h"
#include "launcher/cgroup/cgroup_host.h"

#define CGROUP_REASON_SIZE 512

/* "<id>/agent/memory.memsw.limit_in_bytes" and more. */
#define CGROUP_FILE_PATH_SIZE 96

struct cgroup_hierarchy {
    enum cgroup_version version;
    unsigned int controllers; /* what we use it for */
    unsigned int leaves;      /* CGROUP_BIT of the parts that have a group of their own */
    int base;                 /* owned: the base group */
    char path[CGROUP_PATH_SIZE];
};

struct cgroup_support {
    int hierarchy;                    /* index, or -1 */
    char missing[CGROUP_REASON_SIZE]; /* why not */
};

struct cgroup_host {
    struct cgroup_hierarchy hierarchies[CGROUP_HIERARCHY_MAX]; /* v2 first, if used */
    size_t count;
    struct cgroup_support support[CGROUP_CONTROLLER_COUNT];
    const struct clock *clock; /* borrowed */
};

/* The hierarchy that serves `controller`, or NULL. */
const struct cgroup_hierarchy *cgroup_serving(const struct cgroup_host *host,
                                              enum cgroup_controller controller);

/* The one whose list of processes we go by: v2 when used, else any; NULL without any. */
const struct cgroup_hierarchy *cgroup_census(const struct cgroup_host *host);

/* The file of a part, relative to the base. A part without a group of its own shares the
 * sandbox's. `file` "" is the group itself. */
void cgroup_path(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                 enum cgroup_part part, const char *file, char ret_path[CGROUP_FILE_PATH_SIZE]);

/* Read or write such a file. -errno. */
int cgroup_write(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                 enum cgroup_part part, const char *file, const char *text);
int cgroup_read_field(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                      enum cgroup_part part, const char *file, const char *key, uint64_t *ret);
int cgroup_read_number(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                       enum cgroup_part part, const char *file, uint64_t *ret);

/* A moment `timeout_ms` from now, and how much of it is left (0 when it passed). */
uint64_t cgroup_deadline(const struct cgroup_host *host, int timeout_ms);
int cgroup_time_left_ms(const struct cgroup_host *host, uint64_t deadline);

/* error_code_from_errno, with groups that are in use as a conflict. */
enum err_code cgroup_error_code(int result);

/* For the loops that must ask again, where the kernel has no event. */
void cgroup_pause(void);
