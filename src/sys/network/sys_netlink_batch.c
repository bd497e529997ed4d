#include "sys/network/sys_netlink_batch.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "sys/sys_call.h"

/* The kernel makes dumps in pieces of at most 32 kB. */
#define REPLY_SIZE (32 << 10)

struct netlink_batch_reply {
    _Alignas(struct nlmsghdr) char bytes[REPLY_SIZE];
    size_t length;
};

/* What a run still waits for. */
struct wait {
    uint32_t first; /* sequence number of the first message */
    uint32_t count;
    uint32_t answers; /* acknowledgements and ends of dumps to come */
    int refusal;      /* of the earliest refused message */
    uint32_t refused; /* its sequence number */
};

void sys_netlink_batch_done(struct sys_netlink_batch *batch)
{
    free(batch->data);
    *batch = (struct sys_netlink_batch) SYS_NETLINK_BATCH_INIT;
}

int sys_netlink_batch_socket(int protocol, uint32_t groups)
{
    AUTO(close) int fd = -EBADF;
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = groups};
    int one = 1;
    int result = sys_call_fault();

    if (result < 0)
        return result;
    fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    if (fd < 0)
        return -errno;
    /* Without the copy of our own request in a refusal; harmless where it is not understood. */
    (void) setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *) &address, sizeof(address)) < 0)
        return -errno;
    return TAKE_FD(fd);
}

/* Append aligned, zero-padded bytes and return where they begin. */
static size_t netlink_batch_append(struct sys_netlink_batch *batch, const void *bytes,
                                   size_t length)
{
    size_t at = batch->length;
    size_t aligned = NLMSG_ALIGN(length);

    if (batch->overflowed || length > SYS_NETLINK_BATCH_MAX ||
        aligned > SYS_NETLINK_BATCH_MAX - at) {
        batch->overflowed = true;
        return 0;
    }
    if (aligned > batch->capacity - at) {
        size_t wanted = batch->capacity ? batch->capacity * 2 : 1024;

        while (wanted < at + aligned)
            wanted *= 2;
        batch->data = mem_resize(batch->data, wanted);
        batch->capacity = wanted;
    }
    if (length)
        memcpy(batch->data + at, bytes, length);
    memset(batch->data + at + length, 0, aligned - length);
    batch->length += aligned;
    return at;
}

static struct nlmsghdr header_at(const struct sys_netlink_batch *batch, size_t at)
{
    struct nlmsghdr header;

    memcpy(&header, batch->data + at, sizeof(header));
    return header;
}

/* The length of the last message is known once something else follows it. */
static void end_message(struct sys_netlink_batch *batch)
{
    struct nlmsghdr header;

    if (batch->overflowed || batch->count == 0)
        return;
    header = header_at(batch, batch->message);
    header.nlmsg_len = (uint32_t) (batch->length - batch->message);
    memcpy(batch->data + batch->message, &header, sizeof(header));
}

void sys_netlink_batch_message(struct sys_netlink_batch *batch, uint16_t type, uint16_t flags,
                               const void *body, size_t length)
{
    struct nlmsghdr header = {.nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags};

    end_message(batch);
    batch->message = netlink_batch_append(batch, &header, sizeof(header));
    batch->count++;
    (void) netlink_batch_append(batch, body, length);
}

void sys_netlink_batch_add_flags(struct sys_netlink_batch *batch, uint16_t flags)
{
    struct nlmsghdr header;

    if (batch->overflowed || batch->count == 0)
        return;
    header = header_at(batch, batch->message);
    header.nlmsg_flags |= flags;
    memcpy(batch->data + batch->message, &header, sizeof(header));
}

void sys_netlink_batch_attribute(struct sys_netlink_batch *batch, uint16_t type, const void *value,
                                 size_t length)
{
    struct nlattr header = {.nla_type = type, .nla_len = (uint16_t) (NLA_HDRLEN + length)};

    if (length > UINT16_MAX - NLA_HDRLEN) {
        batch->overflowed = true;
        return;
    }
    (void) netlink_batch_append(batch, &header, sizeof(header));
    (void) netlink_batch_append(batch, value, length);
}

void sys_netlink_batch_text(struct sys_netlink_batch *batch, uint16_t type, const char *text)
{
    sys_netlink_batch_attribute(batch, type, text, strlen(text) + 1);
}

void sys_netlink_batch_u8(struct sys_netlink_batch *batch, uint16_t type, uint8_t value)
{
    sys_netlink_batch_attribute(batch, type, &value, sizeof(value));
}

void sys_netlink_batch_u32(struct sys_netlink_batch *batch, uint16_t type, uint32_t value)
{
    sys_netlink_batch_attribute(batch, type, &value, sizeof(value));
}

void sys_netlink_batch_be32(struct sys_netlink_batch *batch, uint16_t type, uint32_t value)
{
    sys_netlink_batch_u32(batch, type, htonl(value));
}

size_t sys_netlink_batch_open(struct sys_netlink_batch *batch, uint16_t type)
{
    struct nlattr header = {.nla_type = type | NLA_F_NESTED};

    return netlink_batch_append(batch, &header, sizeof(header));
}

void sys_netlink_batch_close(struct sys_netlink_batch *batch, size_t nest)
{
    size_t length = batch->length - nest;
    uint16_t stored = (uint16_t) length;

    if (length > UINT16_MAX)
        batch->overflowed = true;
    if (!batch->overflowed)
        memcpy(batch->data + nest + offsetof(struct nlattr, nla_len), &stored, sizeof(stored));
}

/* Number the messages and note how many answers they will bring. */
static struct wait number_messages(struct sys_netlink_batch *batch, uint32_t *sequence)
{
    struct wait wait = {.first = *sequence + 1, .count = batch->count};

    for (size_t at = 0; at < batch->length;) {
        struct nlmsghdr header = header_at(batch, at);

        header.nlmsg_seq = ++*sequence;
        memcpy(batch->data + at, &header, sizeof(header));
        /* NLM_F_DUMP shares its bits with NLM_F_REPLACE and NLM_F_EXCL, which come with ACK. */
        wait.answers +=
            (header.nlmsg_flags & NLM_F_ACK) || (header.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
        at += NLMSG_ALIGN(header.nlmsg_len);
    }
    return wait;
}

static int send_batch(const struct sys_netlink_batch *batch, int fd)
{
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    ssize_t count;

    do {
        count = sys_call_fault();
        if (count == 0)
            count = sys_call_size(sendto(fd, batch->data, batch->length, 0,
                                         (struct sockaddr *) &kernel, sizeof(kernel)));
    } while (count == -EINTR);
    if (count < 0)
        return (int) count;
    return (size_t) count == batch->length ? 0 : -EIO;
}

static int netlink_batch_receive(int fd, struct netlink_batch_reply *ret_reply)
{
    struct sockaddr_nl sender = {0};
    struct iovec part = {.iov_base = ret_reply->bytes, .iov_len = sizeof(ret_reply->bytes)};
    struct msghdr message = {
        .msg_name = &sender, .msg_namelen = sizeof(sender), .msg_iov = &part, .msg_iovlen = 1};
    ssize_t count;

    do {
        count = sys_call_fault();
        if (count == 0)
            count = sys_call_size(recvmsg(fd, &message, MSG_DONTWAIT));
        /* Only the kernel has port 0; other processes may write to our socket too. */
    } while (count == -EINTR || (count >= 0 && sender.nl_pid != 0));
    if (count < 0)
        return (int) count;
    if (message.msg_flags & MSG_TRUNC)
        return -EMSGSIZE;
    ret_reply->length = (size_t) count;
    return 0;
}

static void note_end(struct wait *wait, uint32_t sequence, int refusal)
{
    if (wait->answers)
        wait->answers--;
    if (refusal < 0 && (wait->refusal == 0 || sequence - wait->first < wait->refused - wait->first))
        wait->refusal = refusal, wait->refused = sequence;
}

static int read_reply(const struct netlink_batch_reply *reply, struct wait *wait,
                      sys_netlink_answer *answer, void *context)
{
    size_t at = 0;

    while (reply->length - at >= sizeof(struct nlmsghdr)) {
        const char *body = reply->bytes + at + NLMSG_HDRLEN;
        struct nlmsghdr header;
        size_t left = reply->length - at;
        int refusal = 0;

        memcpy(&header, reply->bytes + at, sizeof(header));
        if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > left)
            return -EBADMSG;
        at += NLMSG_ALIGN(header.nlmsg_len) < left ? NLMSG_ALIGN(header.nlmsg_len) : left;
        /* Left over from an earlier run that was given up. */
        if (header.nlmsg_seq - wait->first >= wait->count)
            continue;
        if (header.nlmsg_type != NLMSG_ERROR && header.nlmsg_type != NLMSG_DONE) {
            if (answer)
                answer(context, header.nlmsg_type, body, header.nlmsg_len - NLMSG_HDRLEN);
            continue;
        }
        if (header.nlmsg_len - NLMSG_HDRLEN >= sizeof(refusal))
            memcpy(&refusal, body, sizeof(refusal));
        else if (header.nlmsg_type == NLMSG_ERROR)
            return -EBADMSG;
        note_end(wait, header.nlmsg_seq, refusal);
    }
    return 0;
}

int sys_netlink_batch_run(struct sys_netlink_batch *batch, int fd, uint32_t *sequence,
                          sys_netlink_answer *answer, void *context)
{
    struct netlink_batch_reply reply;
    struct wait wait;
    int result;

    end_message(batch);
    if (batch->overflowed)
        return -EMSGSIZE;
    wait = number_messages(batch, sequence);
    result = send_batch(batch, fd);
    while (result == 0 && wait.answers) {
        result = netlink_batch_receive(fd, &reply);
        if (result == 0)
            result = read_reply(&reply, &wait, answer, context);
    }
    if (wait.refusal)
        return wait.refusal;
    return result == -EAGAIN ? -EPROTO : result;
}

bool sys_netlink_attribute_next(const char **bytes, size_t *length,
                                struct sys_netlink_attribute *ret_attribute)
{
    struct nlattr header;
    size_t aligned;

    if (*length < sizeof(header))
        return false;
    memcpy(&header, *bytes, sizeof(header));
    if (header.nla_len < sizeof(header) || header.nla_len > *length)
        return false;
    *ret_attribute = (struct sys_netlink_attribute){.type = header.nla_type & NLA_TYPE_MASK,
                                                    .length = header.nla_len - NLA_HDRLEN,
                                                    .value = *bytes + NLA_HDRLEN};
    aligned = NLA_ALIGN(header.nla_len);
    if (aligned > *length)
        aligned = *length;
    *bytes += aligned;
    *length -= aligned;
    return true;
}

uint32_t sys_netlink_attribute_u32(const struct sys_netlink_attribute *attribute)
{
    uint32_t value = 0;

    if (attribute->length == sizeof(value))
        memcpy(&value, attribute->value, sizeof(value));
    return value;
}

uint32_t sys_netlink_attribute_be32(const struct sys_netlink_attribute *attribute)
{
    return ntohl(sys_netlink_attribute_u32(attribute));
}
