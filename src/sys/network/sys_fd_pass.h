/* Messages that carry descriptors, over unix sockets, and who is at the other end.
 *
 * Made for SOCK_SEQPACKET, where a message stays whole. On SOCK_STREAM bytes may come in other
 * pieces than they were sent, and the descriptors come with the first byte of theirs. */
#pragma once

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Most descriptors in one message; the kernel's own limit is 253. */
#define SYS_FD_PASS_MAX 192

/* Send `length` bytes (at least one: an empty message cannot be told from the end) and duplicates
 * of `count` descriptors, which stay the caller's. Returns the bytes sent, on SOCK_STREAM perhaps
 * fewer than asked: send the rest without the descriptors. -EAGAIN when a non-blocking socket is
 * full, -EPIPE when the peer is gone (never SIGPIPE), -EINVAL for too many descriptors. */
ssize_t sys_fd_pass_send(int socket, const void *bytes, size_t length, const int *fds,
                         size_t count);

/* Receive up to `size` bytes and `capacity` descriptors (at most SYS_FD_PASS_MAX). Returns the
 * number of bytes, 0 when the peer closed; the received descriptors are CLOEXEC and the caller's.
 *
 * -EMSGSIZE: the message was longer than `size`. -E2BIG: it carried more descriptors than
 * `capacity`, or than this process may open. Both close whatever was received: a peer cannot fill
 * our descriptor table. */
ssize_t sys_fd_pass_receive(int socket, void *ret_bytes, size_t size, int *ret_fds, size_t capacity,
                            size_t *ret_count);

/* Who connected (or, seen from there, who listens), as the kernel noted it at connect, listen or
 * socketpair. The pid is 0 when it is not visible from our pid namespace, ids that are not mapped
 * here show as 65534. */
int sys_fd_pass_peer(int socket, struct ucred *ret_peer);
