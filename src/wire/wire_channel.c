#include "wire/wire_channel.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sys/file/sys_file.h"
#include "sys/network/sys_fd_pass.h"

_Static_assert(WIRE_FDS_MAX <= SYS_FD_PASS_MAX, "a message of ours can be sent");

struct waiting {
    struct list link;
    size_t fd_count;
    int fds[WIRE_FDS_MAX]; /* owned */
    size_t length;
    uint8_t bytes[];
};

static void waiting_free(struct wire_channel *channel, struct waiting *waiting)
{
    list_remove(&waiting->link);
    channel->waiting_count--;
    for (size_t i = 0; i < waiting->fd_count; i++)
        (void) fd_close(waiting->fds[i]);
    free(waiting);
}

void wire_incoming_done(struct wire_incoming *incoming)
{
    for (size_t i = 0; i < incoming->fd_count; i++)
        incoming->fds[i] = fd_close(incoming->fds[i]);
    incoming->fd_count = 0;
}

int wire_channel_init(struct wire_channel *channel, int fd, struct error *err)
{
    int result = sys_file_set_nonblocking(fd, true);

    *channel = (struct wire_channel){.fd = fd, .version = WIRE_VERSION_GREETING};
    list_init(&channel->waiting);
    if (result < 0) {
        wire_channel_done(channel);
        return error_set(err, ERR_INTERNAL, result, "prepare the socket of the launcher protocol");
    }
    return 0;
}

void wire_channel_done(struct wire_channel *channel)
{
    LIST_EACH (&channel->waiting, at)
        waiting_free(channel, CONTAINER_OF(at, struct waiting, link));
    channel->fd = fd_close(channel->fd);
}

/* A result of the socket other than success or "not now". */
static int socket_error(int result, const char *what, struct error *err)
{
    bool gone = result == -EPIPE || result == -ECONNRESET || result == -ENOTCONN;

    if (gone)
        return error_set(err, ERR_GONE, result, "the other side of the launcher protocol is gone");
    /* ETOOMANYREFS: too many descriptors of ours travel unread. */
    return error_set(err, result == -ETOOMANYREFS ? ERR_UNAVAILABLE : ERR_INTERNAL, result, "%s",
                     what);
}

/* 1 when sent, 0 when it did not fit, -1. */
static int try_send(int fd, const void *bytes, size_t length, const int *fds, size_t count,
                    struct error *err)
{
    ssize_t sent = sys_fd_pass_send(fd, bytes, length, fds, count);

    if (sent == -EAGAIN)
        return 0;
    return sent < 0 ? socket_error((int) sent, "send a message", err) : 1;
}

static int keep(struct wire_channel *channel, const struct wire_packet *packet, const int *fds,
                size_t count, struct error *err)
{
    struct waiting *waiting;

    if (channel->waiting_count >= WIRE_WAITING_MAX)
        return error_set(err, ERR_UNAVAILABLE, 0, "%d messages wait to be read by the other side",
                         WIRE_WAITING_MAX);
    waiting = mem_alloc(sizeof(*waiting) + packet->length);
    list_append(&channel->waiting, &waiting->link);
    channel->waiting_count++;
    waiting->length = packet->length;
    memcpy(waiting->bytes, packet->bytes, packet->length);
    for (; waiting->fd_count < count; waiting->fd_count++) {
        int copy = fcntl(fds[waiting->fd_count], F_DUPFD_CLOEXEC, 0);

        if (copy < 0) {
            (void) error_set(err, ERR_UNAVAILABLE, errno, "keep a descriptor");
            waiting_free(channel, waiting);
            return -1;
        }
        waiting->fds[waiting->fd_count] = copy;
    }
    return 0;
}

int wire_channel_send(struct wire_channel *channel, const struct wire_message *message,
                      const int *fds, size_t count, struct error *err)
{
    struct wire_packet packet;
    int result = 0;

    if (wire_message_encode(message, channel->version, &packet, err) < 0)
        return -1;
    if (count != wire_message_fds(message))
        return error_set(err, ERR_INVALID, 0, "'%s' with %zu descriptors instead of %zu",
                         wire_message_name(message->number), count, wire_message_fds(message));
    if (!wire_channel_is_waiting(channel))
        result = try_send(channel->fd, packet.bytes, packet.length, fds, count, err);
    if (result == 0)
        return keep(channel, &packet, fds, count, err);
    return result < 0 ? -1 : 0;
}

int wire_channel_flush(struct wire_channel *channel, struct error *err)
{
    LIST_EACH (&channel->waiting, at) {
        struct waiting *first = CONTAINER_OF(at, struct waiting, link);
        int result =
            try_send(channel->fd, first->bytes, first->length, first->fds, first->fd_count, err);

        if (result <= 0)
            return result;
        waiting_free(channel, first);
    }
    return 0;
}

bool wire_channel_is_waiting(const struct wire_channel *channel)
{
    return channel->waiting_count > 0;
}

static int judge(const struct wire_channel *channel, const uint8_t *bytes, size_t length,
                 struct wire_incoming *incoming, struct error *err)
{
    size_t expected;

    /* The end, or an empty packet, which cannot be told from it, but can carry descriptors. */
    if (length == 0)
        return error_set(err, ERR_GONE, 0, "the other side of the launcher protocol closed");
    if (wire_message_decode(bytes, length, channel->version, &incoming->message, err) < 0)
        return -1;
    expected = wire_message_fds(&incoming->message);
    if (incoming->fd_count != expected)
        return error_set(err, ERR_INVALID, 0, "'%s' with %zu descriptors instead of %zu",
                         wire_message_name(incoming->message.number), incoming->fd_count, expected);
    return 0;
}

int wire_channel_receive(struct wire_channel *channel, struct wire_incoming *ret_incoming,
                         struct error *err)
{
    uint8_t bytes[WIRE_PACKET_MAX];
    ssize_t length;
    int result;

    ret_incoming->fd_count = 0;
    length = sys_fd_pass_receive(channel->fd, bytes, sizeof(bytes), ret_incoming->fds, WIRE_FDS_MAX,
                                 &ret_incoming->fd_count);
    if (length == -EAGAIN)
        return 0;
    if (length == -EMSGSIZE || length == -E2BIG)
        return error_set(err, ERR_INVALID, (int) length, "a message beyond every limit");
    if (length < 0)
        return socket_error((int) length, "receive a message", err);
    result = judge(channel, bytes, (size_t) length, ret_incoming, err);
    if (result < 0)
        wire_incoming_done(ret_incoming);
    return result < 0 ? -1 : 1;
}
