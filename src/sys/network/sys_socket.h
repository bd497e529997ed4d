/* Sockets: always CLOEXEC and non-blocking, TCP and unix alike.
 *
 * Functions that return a descriptor return one the caller owns, or -errno. Thread-safe. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "sys/network/sys_address.h"

/* Listen at an address (port 0: one the kernel chooses, see sys_socket_local_address). IPv6
 * sockets take IPv6 only. -EADDRINUSE when somebody listens there.
 *
 * A unix socket's file gets exactly `mode`, and never a wider one before. A file left behind by a
 * dead listener is replaced; one that a live process listens on, and anything that is no socket,
 * stays: -EADDRINUSE. Its directory must not be writable by strangers; it is locked meanwhile
 * (flock, up to a second) so that two starting programs do not both believe to have won. */
int sys_socket_listen(const struct sys_address *address, int backlog, mode_t mode);

/* The same for a TCP socket that is there already, perhaps of another network; it stays the
 * caller's. */
int sys_socket_listen_on(int fd, const struct sys_address *address, int backlog);

/* An unconnected stream socket for the address's family. */
int sys_socket_create(const struct sys_address *address);

/* Start to connect `fd`. Returns 0 when connected already, -EINPROGRESS when it goes on: wait for
 * POLLOUT, then ask sys_socket_error. A unix socket whose listener's queue is full: -EAGAIN. */
int sys_socket_connect(int fd, const struct sys_address *address);

/* The next connection and, when wanted, its address. -EAGAIN when none waits. Connections that
 * died in the queue are skipped. On -EMFILE and -ENFILE the connection keeps waiting: stop asking
 * for a while. */
int sys_socket_accept(int fd, struct sys_address *ret_peer);

/* A connected pair of unix sockets of this type (SOCK_SEQPACKET, SOCK_STREAM); these block. */
int sys_socket_pair(int type, int ret_fds[static 2]);

/* The error that waits on the socket: 0 or -errno. Taken away by asking. */
int sys_socket_error(int fd);

/* Send small segments at once (TCP only). */
int sys_socket_set_nodelay(int fd, bool on);

/* Whether an IP address is one of this machine's own: the kernel would send to it from itself.
 * Nothing is sent. */
bool sys_socket_is_own(const struct sys_address *address);

int sys_socket_local_address(int fd, struct sys_address *ret_address);
int sys_socket_peer_address(int fd, struct sys_address *ret_address);
