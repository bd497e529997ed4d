#include "launcher/network/network_conntrack.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>

static void ask(struct sys_netlink_batch *batch, uint16_t type, uint16_t flags, uint32_t mark)
{
    struct nfgenmsg body = {.nfgen_family = AF_INET, .version = NFNETLINK_V0};

    sys_netlink_batch_message(batch, (NFNL_SUBSYS_CTNETLINK << 8) | type, flags, &body,
                              sizeof(body));
    sys_netlink_batch_be32(batch, CTA_MARK, mark);
    sys_netlink_batch_be32(batch, CTA_MARK_MASK, UINT32_MAX);
}

int network_conntrack_flush(struct nft *netfilter, uint32_t mark)
{
    AUTO(netlink_batch) struct sys_netlink_batch batch = SYS_NETLINK_BATCH_INIT;
    int result;

    if (mark == 0)
        return -EINVAL;
    ask(&batch, IPCTNL_MSG_CT_DELETE, NLM_F_ACK, mark);
    result = sys_netlink_batch_run(&batch, netfilter->fd, &netfilter->sequence, NULL, NULL);
    /* Some kernels say so when nothing matched. */
    return result == -ENOENT ? 0 : result;
}

static void count_one(void *context, uint16_t type, const char *body, size_t length)
{
    (void) type;
    (void) body;
    (void) length;
    ++*(int *) context;
}

int network_conntrack_count(struct nft *netfilter, uint32_t mark)
{
    AUTO(netlink_batch) struct sys_netlink_batch batch = SYS_NETLINK_BATCH_INIT;
    int count = 0;
    int result;

    if (mark == 0)
        return -EINVAL;
    ask(&batch, IPCTNL_MSG_CT_GET, NLM_F_DUMP, mark);
    result = sys_netlink_batch_run(&batch, netfilter->fd, &netfilter->sequence, count_one, &count);
    return result < 0 ? result : count;
}
