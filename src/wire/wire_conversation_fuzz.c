/* A daemon that was taken over says anything to the launcher's end: packets of any bytes with any
 * number of descriptors. Nothing crashes, no descriptor is left, and only what the table permits
 * comes through.
 *
 *     input: packets, each  u8 descriptors | u16 length | bytes */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sys/network/sys_socket.h"
#include "wire/wire_conversation.h"

#define RAW_FDS_MAX 70 /* more than any receiver of ours takes */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void send_raw(int socket, const uint8_t *bytes, size_t length, size_t fd_count)
{
    static _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * RAW_FDS_MAX)];
    const struct cmsghdr header = {.cmsg_len = CMSG_LEN(sizeof(int) * fd_count),
                                   .cmsg_level = SOL_SOCKET,
                                   .cmsg_type = SCM_RIGHTS};
    struct iovec part = {.iov_base = (void *) (uintptr_t) bytes, .iov_len = length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (fd_count) {
        memcpy(control, &header, sizeof(header));
        for (size_t i = 0; i < fd_count; i++)
            memcpy(control + CMSG_LEN(sizeof(int) * i), &socket, sizeof(socket));
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
    }
    (void) sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* A launcher of few words: it greets, subscribes, stops when told an odd number, leaves every third
 * request open and fails the others. */
static void respond(struct wire_conversation *launcher, const struct wire_message *message)
{
    struct wire_message subscribed = {.number = WIRE_MESSAGE_SUBSCRIBED};
    struct wire_message stopping = {.number = WIRE_MESSAGE_STOPPING};
    const struct wire_welcome welcome = {.program = "fuzz"};
    struct error failure = ERROR_INIT, err = ERROR_INIT;

    if (message->number == WIRE_MESSAGE_HELLO)
        (void) wire_conversation_welcome(launcher, message, &welcome, &err);
    else if (message->number == WIRE_MESSAGE_SUBSCRIBE_EXIT)
        must(wire_conversation_answer(launcher, message->request, &subscribed, NULL, 0, &err) == 0);
    else if (message->number == WIRE_MESSAGE_LIST && message->request % 7 == 0 &&
             launcher->state != WIRE_DRAINING)
        must(wire_conversation_tell(launcher, &stopping, &err) == 0);
    else if (message->request % 3) {
        (void) error_set(&failure, ERR_NOT_FOUND, 0, "no");
        must(wire_conversation_answer_done(launcher, message->request, &failure, &err) == 0);
        must(wire_conversation_answer_done(launcher, message->request, &failure, &err) < 0);
    }
}

/* One packet arrived. Returns whether the conversation goes on. */
static bool step(struct wire_conversation *launcher)
{
    AUTO(wire_incoming) struct wire_incoming incoming = {.fd_count = 0};
    struct error err = ERROR_INIT;
    enum wire_state before = launcher->state;
    uint64_t last = launcher->requests.last;
    enum wire_received received = wire_conversation_receive(launcher, &incoming, &err);

    must(launcher->requests.count <= WIRE_REQUESTS_MAX);
    if (received == WIRE_FAILED) {
        must(err.code != ERR_NONE && err.message[0] && incoming.fd_count == 0);
        return false;
    }
    if (received == WIRE_SETTLED)
        must(before == WIRE_DRAINING);
    if (received == WIRE_MESSAGE) {
        must(wire_permit(before, incoming.message.number) == WIRE_ALLOW);
        must(wire_message_row(incoming.message.number)->type == WIRE_REQUEST);
        must(incoming.message.request > last);
        must(incoming.fd_count == wire_message_fds(&incoming.message));
        respond(launcher, &incoming.message);
    }
    must(launcher->state >= before);
    return true;
}

/* Read what came back, so that the socket never fills up. */
static void drink(int socket)
{
    char bytes[WIRE_PACKET_MAX];

    while (recv(socket, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        continue;
}

/* More than one conversation can ever leave open. */
static int count_descriptors(void)
{
    int count = 0;

    for (int fd = 0; fd < 2 * RAW_FDS_MAX; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wire_conversation launcher;
    struct error err = ERROR_INIT;
    int ends[2], before = count_descriptors();

    must(sys_socket_pair(SOCK_SEQPACKET, ends) == 0);
    must(wire_conversation_init(&launcher, WIRE_LAUNCHER, ends[0], &err) == 0);
    while (size >= 3) {
        size_t fd_count = data[0] % (RAW_FDS_MAX + 1);
        size_t length = (size_t) (data[1] | data[2] << 8) % (WIRE_PACKET_MAX + 2);

        data += 3;
        size -= 3;
        length = length < size ? length : size;
        send_raw(ends[1], data, length, fd_count);
        data += length;
        size -= length;
        if (!step(&launcher))
            break;
        drink(ends[1]);
    }
    wire_conversation_end(&launcher, NULL);
    must(launcher.requests.count == 0);
    (void) close(ends[1]);
    must(count_descriptors() == before);
    return 0;
}
