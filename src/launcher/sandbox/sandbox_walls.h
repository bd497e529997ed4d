/* The walls of a sandbox that have a switch, by name.
 *
 * Which calls a sandbox may make are the walls of seccomp.h, which rights its root has those of
 * capability.h; these are the others that its child puts up on its way to exec. Production leaves
 * none open: sandbox_host.open_walls is 0 unless a test fills it, and no plan and no message can.
 *
 * A test of isolation opens a set of walls, makes the attempt, and sees it succeed; closes any one
 * of the set again, and sees it fail (tests/isolation). So every row here is known to hold
 * something by itself. `wall_lab` names them as `hidden_proc`, those of the filter as
 * `seccomp.mounts`, capabilities as `capability.sys_admin`.
 *
 * What has no switch is the shape of a sandbox: its namespaces, its id range and its root. Tests
 * show those by the same attempt made beside the sandbox instead of inside. */
#pragma once

#include <stdint.h>

/* name, text, what it keeps out */
#define SANDBOX_WALLS(X)                                                                           \
    X(NO_NEW_PRIVILEGES, "no_new_privileges", "rights gained by running set-id programs")          \
    X(NO_SET_ID, "no_set_id", "the same, by mounts where set-id bits count for nothing")           \
    X(HIDDEN_PROC, "hidden_proc", "what /proc tells of the host's kernel, keys and memory")        \
    X(READ_ONLY_PROC, "read_only_proc", "settings of the kernel and of its namespaces")            \
    X(NO_SYSFS, "no_sysfs", "the host's hardware and devices")                                     \
    X(NETWORK_OWNER, "network_owner", "rights over the network it is in, whatever it can do else") \
    X(SHARES, "shares", "nested namespaces and the host's watches, by counters of the kernel")     \
    X(PROCESS_LIMITS, "process_limits", "core dumps, queues and locked memory beyond its share")   \
    X(CGROUP_NAMESPACE, "cgroup_namespace", "the names of the host's groups")                      \
    X(DESCRIPTORS, "descriptors", "files of the launcher that were left open")                     \
    X(PRIVATE_MOUNTS, "private_mounts", "its mounts on the host's folders, by groups of mounts")   \
    X(LINKS, "links", "links on a used disk that lead mounts to the host's folders")               \
    X(HIDDEN_AGENT, "hidden_agent", "memory, descriptors and tracing of PID 1")                    \
    X(SEALED_AGENT, "sealed_agent", "changes to the agent's program, which all sandboxes share")

enum sandbox_wall {
#define X(name, text, keeps_out) SANDBOX_WALL_##name,
    SANDBOX_WALLS(X)
#undef X
        SANDBOX_WALL_COUNT
};

#define SANDBOX_WALL_BIT(name) (UINT32_C(1) << SANDBOX_WALL_##name)
#define SANDBOX_WALLS_ALL      ((UINT32_C(1) << SANDBOX_WALL_COUNT) - 1)

/* HIDDEN_AGENT and SEALED_AGENT are walls of the image in sandbox_host.agent: who makes that file
 * puts them up, the child only runs it. */

/* For messages and for the switches of tests. Never NULL for a valid one. */
const char *sandbox_wall_text(enum sandbox_wall wall);
const char *sandbox_wall_keeps_out(enum sandbox_wall wall);

/* The wall with that text, or SANDBOX_WALL_COUNT. */
enum sandbox_wall sandbox_wall_from_text(const char *text);
