/* Sockets for the daemon to reach a sandbox by: TCP sockets inside its network namespace, and the
 * unix socket its agent listens on. For a program with one thread. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/id.h"

/* As many as fit into one message (SYS_FD_PASS_MAX). */
#define NETWORK_SOCKETS_MAX 64

/* Make `count` TCP sockets of `family` (AF_INET, AF_INET6) in the network namespace `inside`, for
 * whoever connects them later: not connected, non-blocking, CLOEXEC, the caller's. `home` is the
 * caller's own namespace, to which it returns. Returns 0, or -1 and then none is left open. About 3
 * microseconds and 1.5 for each.
 *
 * A socket keeps its namespace alive: whoever holds some must close them when the sandbox is
 * destroyed, or its link to the router stays. The receiver cannot make a namespace of one
 * (SIOCGSKNS needs privileges). */
int network_sockets(int inside, int home, int family, int *ret_fds, size_t count,
                    struct error *err);

/* Make or open the folder for agents' sockets: owned by the daemon's user, mode 0700. Returns 0 and
 * a CLOEXEC descriptor, the caller's. ERR_CONFLICT when something else is there. */
int network_agent_folder(const char *path, uid_t user, gid_t group, int *ret_folder,
                         struct error *err);

/* "<id>.sock" in that folder. */
#define NETWORK_AGENT_NAME_SIZE (ID_SIZE + sizeof(".sock") - 1)

void network_agent_name(const struct id *id, char ret_name[static NETWORK_AGENT_NAME_SIZE]);

/* A unix stream socket that listens at that name, for the agent to inherit: it accepts there
 * although the path does not exist inside the sandbox. A file left behind by an earlier one is
 * replaced. The file belongs to the daemon's user, mode 0600. Returns 0 and a non-blocking CLOEXEC
 * descriptor, the caller's, who closes its copy once the agent has one.
 *
 * The folder belongs to a user we do not trust. So everything there is done with that user's rights
 * on files (setfsuid), and there is nothing that a link or a swapped file could lead us to. The
 * folder's own path may be longer than the 107 bytes of a socket's address. */
int network_agent_listen(int folder, uid_t user, gid_t group, const struct id *id, int *ret_fd,
                         struct error *err);

/* Remove the file of an agent that is gone. No error when there is none. */
int network_agent_remove(int folder, uid_t user, gid_t group, const struct id *id,
                         struct error *err);
