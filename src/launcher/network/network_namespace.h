/* Network namespaces: making one, and stepping into one for a moment, in a program with one thread.
 *
 *     if (network_namespace_enter(there) == 0) {
 *         fd = socket(...);                  belongs to `there` for its whole life
 *         network_namespace_return(home);
 *     }
 *
 * Going there and back costs under 3 microseconds. /proc/sys/net shows the namespace we are in. */
#pragma once

/* Make a namespace for a sandbox: with loopback up, and owned by nobody
 * (sys_namespace_make_network). Root of a sandbox therefore has no rights over it and can change no
 * address, setting or filter. Instead of by a capability, everybody in there may listen on any port
 * because the setting says so. `home` is the caller's own namespace, where it is afterwards.
 * Returns 0 and a CLOEXEC descriptor that the caller owns, or -errno. */
int network_namespace_make(int home, int *ret_network);

/* Returns 0 or -errno, and then we are where we were. */
int network_namespace_enter(int there);

/* Aborts when it fails: a launcher that stays in a stranger's namespace must not go on. */
void network_namespace_return(int home);

/* Write a setting of the namespace we are in: `path` beneath /proc/sys. Returns 0 or -errno;
 * -ENOENT when the kernel has no such setting. */
int network_namespace_set(const char *path, const char *value);
