/* Netlink messages of any protocol: built in memory, several in one send, answers matched.
 *
 *     AUTO(netlink_batch) struct sys_netlink_batch batch = SYS_NETLINK_BATCH_INIT;
 *     sys_netlink_batch_message(&batch, RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE, &link,
 * sizeof(link)); sys_netlink_batch_text(&batch, IFLA_IFNAME, "eth0"); size_t nest =
 * sys_netlink_batch_open(&batch, IFLA_LINKINFO);
 *     ...
 *     sys_netlink_batch_close(&batch, nest);
 *     int result = sys_netlink_batch_run(&batch, fd, &sequence, NULL, NULL);
 *
 * sys_netlink.h has ready requests for links, addresses and routes that need no memory; this is for
 * everything larger: dumps, and the transactions of nftables. A batch that grows past
 * SYS_NETLINK_BATCH_MAX keeps the failure and is not sent. Not thread-safe. */
#pragma once

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"

/* The kernel takes one send of at most the socket's send buffer, by default 208 kB. */
#define SYS_NETLINK_BATCH_MAX (128 << 10)

struct sys_netlink_batch {
    char *data; /* owned */
    size_t length;
    size_t capacity;
    size_t message; /* where the last message begins */
    uint32_t count; /* messages so far */
    bool overflowed;
};

#define SYS_NETLINK_BATCH_INIT                                                                     \
    {                                                                                              \
        .length = 0                                                                                \
    }

void sys_netlink_batch_done(struct sys_netlink_batch *batch);

AUTO_DEFINE(netlink_batch, struct sys_netlink_batch, sys_netlink_batch_done);

/* A CLOEXEC socket of this protocol (NETLINK_ROUTE, NETLINK_NETFILTER) in the caller's network
 * namespace, subscribed to the multicast `groups`. The caller's; -errno on failure. */
int sys_netlink_batch_socket(int protocol, uint32_t groups);

/* Begin the next message. `flags` beyond NLM_F_REQUEST: NLM_F_ACK, NLM_F_DUMP, NLM_F_CREATE... */
void sys_netlink_batch_message(struct sys_netlink_batch *batch, uint16_t type, uint16_t flags,
                               const void *body, size_t length);

/* Add flags to the last message: nftables is asked for one answer for the whole transaction. */
void sys_netlink_batch_add_flags(struct sys_netlink_batch *batch, uint16_t flags);

void sys_netlink_batch_attribute(struct sys_netlink_batch *batch, uint16_t type, const void *value,
                                 size_t length);
void sys_netlink_batch_text(struct sys_netlink_batch *batch, uint16_t type, const char *text);
void sys_netlink_batch_u8(struct sys_netlink_batch *batch, uint16_t type, uint8_t value);
void sys_netlink_batch_u32(struct sys_netlink_batch *batch, uint16_t type, uint32_t value);

/* In network byte order, as everything of netfilter is. */
void sys_netlink_batch_be32(struct sys_netlink_batch *batch, uint16_t type, uint32_t value);

/* An attribute that holds others: open it, append them, close it with what open returned. */
size_t sys_netlink_batch_open(struct sys_netlink_batch *batch, uint16_t type);
void sys_netlink_batch_close(struct sys_netlink_batch *batch, size_t nest);

/* Called with each answer that is neither an acknowledgement nor an end; borrowed for the call. */
typedef void sys_netlink_answer(void *context, uint16_t type, const char *body, size_t length);

/* Send all messages and take their answers. Does not wait: the kernel has answered, or prepared
 * the next part of a dump, before send and receive return. `sequence` is counted up. Returns 0, the
 * -errno of the first message the kernel refused, -EMSGSIZE for a batch that was too long, or
 * -EPROTO when an answer that was asked for did not come. */
int sys_netlink_batch_run(struct sys_netlink_batch *batch, int fd, uint32_t *sequence,
                          sys_netlink_answer *answer, void *context);

/* Walk attributes: the one at the front of `*bytes` (`*length` left), which is moved behind it.
 * False at the end and for what is not an attribute. Type flags are taken off. */
struct sys_netlink_attribute {
    uint16_t type;
    uint16_t length;
    const char *value; /* borrowed */
};

bool sys_netlink_attribute_next(const char **bytes, size_t *length,
                                struct sys_netlink_attribute *ret_attribute);

/* The value as a number, 0 when it has another size. */
uint32_t sys_netlink_attribute_u32(const struct sys_netlink_attribute *attribute);
uint32_t sys_netlink_attribute_be32(const struct sys_netlink_attribute *attribute);
