#include "sys/network/sys_fd_pass.h"

#include <stdint.h>
#include <string.h>

#include "base/auto.h"
#include "sys/sys_call.h"

/* Control data for the most descriptors, aligned as the kernel wants it. */
union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * SYS_FD_PASS_MAX)];
};

ssize_t sys_fd_pass_send(int socket, const void *bytes, size_t length, const int *fds, size_t count)
{
    struct iovec part = {.iov_base = (void *) (uintptr_t) bytes, .iov_len = length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    union control control = {0};
    ssize_t result;

    if (length == 0 || count > SYS_FD_PASS_MAX)
        return -EINVAL;
    if (count > 0) {
        size_t size = sizeof(int) * count;

        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(size);
        control.align = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(size), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.align), fds, size);
    }
    do {
        result = sys_call_fault();
        if (result == 0)
            result = sys_call_size(sendmsg(socket, &message, MSG_NOSIGNAL));
    } while (result == -EINTR);
    return result;
}

/* All descriptors of a received message, in order. Returns how many. */
static size_t fd_pass_collect(struct msghdr *message, int ret_fds[static SYS_FD_PASS_MAX])
{
    size_t count = 0;

    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at)) {
        size_t here;

        if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
            continue;
        here = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(ret_fds + count, CMSG_DATA(at), here * sizeof(int));
        count += here;
    }
    return count;
}

ssize_t sys_fd_pass_receive(int socket, void *ret_bytes, size_t size, int *ret_fds, size_t capacity,
                            size_t *ret_count)
{
    union control control = {0};
    struct iovec part = {.iov_base = ret_bytes, .iov_len = size};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    int received[SYS_FD_PASS_MAX];
    size_t count;
    ssize_t result;

    if (size == 0 || capacity > SYS_FD_PASS_MAX)
        return -EINVAL;
    do {
        result = sys_call_fault();
        if (result == 0)
            result = sys_call_size(recvmsg(socket, &message, MSG_CMSG_CLOEXEC));
    } while (result == -EINTR);
    if (result < 0)
        return result;
    /* Collected before anything is judged, because they are open already. */
    count = fd_pass_collect(&message, received);
    if (message.msg_flags & MSG_CTRUNC || count > capacity)
        result = -E2BIG;
    else if (message.msg_flags & MSG_TRUNC)
        result = -EMSGSIZE;
    if (result < 0) {
        for (size_t i = 0; i < count; i++)
            (void) fd_close(received[i]);
        return result;
    }
    if (count > 0)
        memcpy(ret_fds, received, count * sizeof(int));
    *ret_count = count;
    return result;
}

int sys_fd_pass_peer(int socket, struct ucred *ret_peer)
{
    struct ucred peer;
    socklen_t length = sizeof(peer);
    int result = sys_call_fault();

    if (result == 0)
        result = sys_call_result(getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length));
    if (result < 0)
        return result;
    if (length != sizeof(peer))
        return -EIO;
    *ret_peer = peer;
    return 0;
}
