/* Namespaces: leaving, entering, and the id maps of a user namespace. */
#pragma once

#include <linux/sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Move the caller into new namespaces (CLONE_NEW...). For CLONE_NEWPID only later children move.
 * -EINVAL for CLONE_NEWUSER in a program with threads. */
int sys_namespace_unshare(int flags);

/* Enter an existing namespace. `fd` is one of /proc/PID/ns/... (then `types` 0 accepts any, or
 * names the type expected) or a pidfd (then `types` names all those to enter at once). */
int sys_namespace_enter(int fd, int types);

/* A descriptor of a namespace of a process (0: our own): `type` is the file's name in /proc/PID/ns
 * ("net", "user", "mnt"). CLOEXEC, the caller's; it keeps the namespace alive. */
int sys_namespace_open(pid_t pid, const char *type);

/* A descriptor of a new network namespace with nobody in it, CLOEXEC, the caller's. It belongs to a
 * user namespace of its own that has no ids and no processes: only those who have rights over the
 * caller's namespaces have rights over this one. About 0.8 ms; -errno. */
int sys_namespace_make_network(void);

/* `count` ids from `inside` on are the ids from `outside` on. */
struct sys_id_range {
    uint32_t inside;
    uint32_t outside;
    uint32_t count;
};

/* The kernel's own limit on a map. */
#define SYS_ID_RANGES_MAX 340

/* Set the id maps of the user namespace of `pid`, which must be the caller's own unreaped child or
 * the caller (the pid cannot be reused then). Each can be set once: -EPERM afterwards, as well as
 * without the right to map these ids. -EINVAL: no ranges, too many, or overlapping ones. */
int sys_namespace_map_users(pid_t pid, const struct sys_id_range *ranges, size_t count);
int sys_namespace_map_groups(pid_t pid, const struct sys_id_range *ranges, size_t count);

/* Forbid setgroups there for good, which an unprivileged caller must do before it may map groups:
 * otherwise dropping a group could grant what was denied to that group. */
int sys_namespace_deny_setgroups(pid_t pid);
