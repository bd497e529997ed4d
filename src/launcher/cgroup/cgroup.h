/* The groups of one sandbox: `agent` for PID 1 and its helpers, `work` for everything the user
 * runs, so that no bomb in there silences the agent.
 *
 *     <base>/<id>          the hard limit of the sandbox
 *     ├── agent            PID 1; where <id> may hold processes beside its children (v1, or v2
 *     │                    without controllers) it lives there instead
 *     └── work             the limit less a small reserve; the CPU quota (cgroup_limits.h)
 *
 * The same in every hierarchy that serves a controller. A `struct cgroup` is a name, not a
 * resource: it holds no descriptor (thousands of sandboxes would fill the launcher's table, and
 * every clone copies that), so it can be copied, dropped and rebuilt from the id after a restart.
 *
 * How a process gets in: the launcher opens the `cgroup.procs` (v1: `tasks`) files
 * (cgroup_entry_open), the child, which has one thread, writes "0" to them before it loses its
 * rights (cgroup_enter). The kernel goes by the rights of the opener, so PID 1 of a sandbox may
 * keep the descriptors of `work` and start its worker-init again from inside the user namespace.
 *
 * Functions with `err` are for the launcher, may allocate and block as stated, and return -1 on
 * failure. Where the host has no cgroups at all they succeed and do nothing, unless stated. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/id.h"
#include "launcher/cgroup/cgroup_host.h"
#include "launcher/cgroup/cgroup_limits.h"

enum cgroup_part { CGROUP_WHOLE, CGROUP_AGENT, CGROUP_WORK };

struct cgroup {
    const struct cgroup_host *host; /* borrowed: outlives us */
    struct id id;
};

/* Make the groups and set the limits. All or nothing. ERR_CONFLICT: a sandbox of this id has groups
 * already; ERR_INVALID: limits out of range. About 0.4 ms, most of it the kernel making ten
 * directories: for the warm pool, or beside other work. */
int cgroup_create(const struct cgroup_host *host, const struct id *id, const struct limits *limits,
                  struct cgroup *ret_cgroup, struct error *err);

/* The same in two steps, for a process that is cloned in between: first the groups of v2, and the
 * directory to clone into (CLOEXEC, the caller's; -EBADF without v2), because moving a process
 * there can wait milliseconds for all CPUs; then the rest, and the limits. When the second step
 * fails everything is gone, as far as no process is in it: remove it again then. */
int cgroup_create_first(const struct cgroup_host *host, const struct id *id,
                        struct cgroup *ret_cgroup, int *ret_directory, struct error *err);
int cgroup_create_rest(const struct cgroup *cgroup, const struct limits *limits, struct error *err);

/* Find the groups of a sandbox made before we started. ERR_NOT_FOUND: there are none.
 * `*ret_complete` (may be NULL) is false when they are missing in some hierarchy, because somebody
 * died while making or removing them: such a sandbox can only be killed and removed. */
int cgroup_adopt(const struct cgroup_host *host, const struct id *id, struct cgroup *ret_cgroup,
                 bool *ret_complete, struct error *err);

/* More groups than this under one base are not listed. */
#define CGROUP_LIST_MAX 65536

/* The ids of all sandboxes with groups under the base, complete or not, sorted, each once. The
 * caller frees the array, which is never NULL. Names that are no ids are skipped. */
int cgroup_list(const struct cgroup_host *host, struct id **ret_ids, size_t *ret_count,
                struct error *err);

/* Remove the groups. ERR_CONFLICT with EBUSY while processes are left in them: then nothing was
 * removed, as far as that could be seen. `timeout_ms` allows for the moment processes take to leave
 * after they died: tried again until then. 0.3 ms and often much more: for a helper process, off
 * the request path. Groups that are gone already are no error. */
int cgroup_remove(const struct cgroup *cgroup, int timeout_ms, struct error *err);

/* The same for a sandbox whose processes are dead for certain: nobody looks for them first, which
 * would take a third of the time. ERR_CONFLICT with EBUSY when some live all the same; then some of
 * the groups are gone. */
int cgroup_remove_dead(const struct cgroup_host *host, const struct id *id, struct error *err);

/* Whether any process is in the groups. 1, 0, or -1 with `err` (also without any cgroups). */
int cgroup_populated(const struct cgroup *cgroup, struct error *err);

/* The directory of `work`, where v2 serves everything and `work` is a group of its own: there a
 * cgroup namespace should be made, so that commands see themselves in its root. CLOEXEC, the
 * caller's; -EBADF elsewhere. */
int cgroup_open_work(const struct cgroup *cgroup);

/* The ways in, open. Plain data: nothing here allocates, so a child may use it as it is. */
struct cgroup_entry {
    int agent[CGROUP_HIERARCHY_MAX]; /* owned; O_WRONLY and O_CLOEXEC */
    size_t agent_count;
    int work[CGROUP_HIERARCHY_MAX]; /* owned; the same: for PID 1 to keep */
    size_t work_count;
    int oom_kill_count; /* owned; O_RDONLY: a line "oom_kill N" counts those in `work`; or -EBADF */
    int clone_into;     /* owned; v2 directory for CLONE_INTO_CGROUP, or -EBADF */
};

#define CGROUP_ENTRY_INIT                                                                          \
    {                                                                                              \
        .oom_kill_count = -EBADF, .clone_into = -EBADF                                             \
    }

/* Open them. With `for_clone` on a v2 host, `clone_into` is the `agent` directory and `agent` has
 * no descriptor for v2: the child starts there (sys_clone; the launcher's own rights are needed,
 * the kernel checks the caller here). A caller whose clone3 refuses opens again without. */
int cgroup_entry_open(const struct cgroup *cgroup, bool for_clone, struct cgroup_entry *ret_entry,
                      struct error *err);
void cgroup_entry_close(struct cgroup_entry *entry);

AUTO_DEFINE(cgroup_entry, struct cgroup_entry, cgroup_entry_close);

/* Move the calling process in: `agent` or `work` of an entry. -errno; async-signal-safe; for the
 * child. The kernel now and then takes milliseconds to move a process. */
int cgroup_enter(const int *procs, size_t count);
