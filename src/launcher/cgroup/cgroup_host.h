/* What this machine's cgroups can do for us, and our base group in them.
 *
 * Decided per controller: v2 first (what users have), else v1, else none, with a sentence that says
 * what is lost and what to do about it. In every hierarchy used, a base group of the given name is
 * made at our own place; sandboxes live beneath it:
 *
 *     v2     /sys/fs/cgroup/system.slice/burrow.service      where the service manager put us
 *                ├── burrow-launcher                         we, moved aside (see below)
 *                └── burrow                                  the base, controllers enabled
 *                      └── <id>/{agent,work}
 *     v1     /sys/fs/cgroup/memory/.../burrow/<id>/work      one such tree per hierarchy
 *
 * A v2 group that gives controllers to its children must hold no processes itself. So when we are
 * alone in our group (a systemd unit with Delegate=yes) we move into a leaf. When others sit there
 * too (the scope of a login shell) nobody is moved: the base goes to the nearest group above that
 * can pass the controllers on, at worst the root, where the rule does not apply.
 *
 * systemd cannot start a unit again whose own group passes on controllers while sandboxes of the
 * previous run still live in it (status 219; from 254 on it could be told a subgroup). So they have
 * a unit of their own, burrow-sandboxes.service, and the launcher's names it: `parent`.
 *
 * A host holds one descriptor per hierarchy; nothing is kept per sandbox. Not thread-safe. */
#pragma once

#include <stdbool.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/error.h"
#include "launcher/cgroup/cgroup_layout.h"

struct cgroup_host;

struct cgroup_host_options {
    const char *name; /* of the base group: one component without '/' or '.', at most 64 bytes */

    /* All of these may be left out. */
    const char *parent;      /* where the base goes instead, where there is such a group: "/a/b" */
    const char *self_cgroup; /* instead of /proc/self/cgroup */
    const char *mountinfo;   /* instead of /proc/self/mountinfo */
    const struct clock *clock; /* borrowed: outlives the host */
    bool without_v1;
    bool without_v2;
};

/* Look, and make the base groups. Succeeds also when nothing can be used: then groups are made
 * nowhere and limits are not enforced, which cgroup_host_missing says. ERR_INVALID: a bad name;
 * otherwise /proc could not be read. The caller frees the host. Takes milliseconds. */
int cgroup_host_open(const struct cgroup_host_options *options, struct cgroup_host **ret_host,
                     struct error *err);
void cgroup_host_free(struct cgroup_host *host);

AUTO_DEFINE_PTR(cgroup_host, struct cgroup_host, cgroup_host_free);

/* Which version serves a controller. */
enum cgroup_version cgroup_host_version(const struct cgroup_host *host,
                                        enum cgroup_controller controller);

/* "memory", "cpu", ...: for people. */
const char *cgroup_controller_name(enum cgroup_controller controller);

/* NULL when the controller can be used, otherwise a sentence for `doctor`: what does not work, why,
 * and what to do. Borrowed from the host. */
const char *cgroup_host_missing(const struct cgroup_host *host, enum cgroup_controller controller);

/* Where the base group that serves this controller is, NULL without one. Borrowed. */
const char *cgroup_host_place(const struct cgroup_host *host, enum cgroup_controller controller);

/* Be the only one who makes sandboxes beneath this base, as long as this process or a child that has
 * the host open lives. Waits `timeout_ms` for one that is just dying. ERR_CONFLICT: another has it.
 * Without any cgroups there is nothing to share. */
int cgroup_host_claim(const struct cgroup_host *host, int timeout_ms, struct error *err);

/* Take the base groups away where no sandbox is left in them. Opened hosts cannot create any more
 * afterwards, also those of other processes: for tests and for uninstalling. */
void cgroup_host_remove_base(const struct cgroup_host *host);

/* Move this process into the leaf "<name>-launcher" of its v2 group, so that the group can pass on
 * controllers to others. Nothing to do without v2. 0 or -1. */
int cgroup_host_step_aside(const char *name, struct error *err);
