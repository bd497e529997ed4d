#include "launcher/network/nft.h"

#include <linux/netfilter/nfnetlink.h>
#include <string.h>

/* How the tools of nftables call the types of keys: "ipv4_addr", "mark". The kernel only keeps it.
 */
#define TYPE_IPV4_ADDRESS 7
#define TYPE_MARK         19

/* Every key has this size. */
#define KEY_SIZE sizeof(uint32_t)

/* Elements that packets may add to a set of meters: one per address of the largest pool. */
#define METERS_MAX 65536

int nft_open(struct nft *ret_nft)
{
    int fd = sys_netlink_batch_socket(NETLINK_NETFILTER, 0);

    if (fd < 0)
        return fd;
    *ret_nft = (struct nft){.fd = fd};
    return 0;
}

void nft_done(struct nft *nft)
{
    nft->fd = fd_close(nft->fd);
}

static void begin_message(struct nft_batch *batch, uint16_t type, uint16_t flags)
{
    struct nfgenmsg body = {.nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0};

    sys_netlink_batch_message(&batch->messages, (NFNL_SUBSYS_NFTABLES << 8) | type, flags, &body,
                              sizeof(body));
}

/* Begin and end of a transaction name the subsystem it is for. */
static void add_border(struct nft_batch *batch, uint16_t type)
{
    struct nfgenmsg body = {.version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};

    sys_netlink_batch_message(&batch->messages, type, 0, &body, sizeof(body));
}

struct nft_batch nft_batch(const char *table)
{
    struct nft_batch batch = {.messages = SYS_NETLINK_BATCH_INIT, .table = table};

    add_border(&batch, NFNL_MSG_BATCH_BEGIN);
    return batch;
}

void nft_batch_done(struct nft_batch *batch)
{
    sys_netlink_batch_done(&batch->messages);
}

int nft_commit(struct nft *nft, struct nft_batch *batch)
{
    /* One answer is enough: refusals come without being asked for. */
    sys_netlink_batch_add_flags(&batch->messages, NLM_F_ACK);
    add_border(batch, NFNL_MSG_BATCH_END);
    return sys_netlink_batch_run(&batch->messages, nft->fd, &nft->sequence, NULL, NULL);
}

void nft_add_table(struct nft_batch *batch)
{
    begin_message(batch, NFT_MSG_NEWTABLE, NLM_F_CREATE);
    sys_netlink_batch_text(&batch->messages, NFTA_TABLE_NAME, batch->table);
    sys_netlink_batch_be32(&batch->messages, NFTA_TABLE_FLAGS, 0);
}

void nft_delete_table(struct nft_batch *batch)
{
    begin_message(batch, NFT_MSG_DELTABLE, 0);
    sys_netlink_batch_text(&batch->messages, NFTA_TABLE_NAME, batch->table);
}

void nft_add_chain(struct nft_batch *batch, const char *name, const struct nft_hook *hook)
{
    struct sys_netlink_batch *messages = &batch->messages;
    size_t nest;

    begin_message(batch, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
    sys_netlink_batch_text(messages, NFTA_CHAIN_TABLE, batch->table);
    sys_netlink_batch_text(messages, NFTA_CHAIN_NAME, name);
    if (!hook)
        return;
    nest = sys_netlink_batch_open(messages, NFTA_CHAIN_HOOK);
    sys_netlink_batch_be32(messages, NFTA_HOOK_HOOKNUM, (uint32_t) hook->number);
    sys_netlink_batch_be32(messages, NFTA_HOOK_PRIORITY, (uint32_t) hook->priority);
    sys_netlink_batch_close(messages, nest);
    sys_netlink_batch_be32(messages, NFTA_CHAIN_POLICY, (uint32_t) hook->policy);
    sys_netlink_batch_text(messages, NFTA_CHAIN_TYPE, hook->type);
}

void nft_flush_chain(struct nft_batch *batch, const char *name)
{
    begin_message(batch, NFT_MSG_DELRULE, 0);
    sys_netlink_batch_text(&batch->messages, NFTA_RULE_TABLE, batch->table);
    sys_netlink_batch_text(&batch->messages, NFTA_RULE_CHAIN, name);
}

void nft_delete_chain(struct nft_batch *batch, const char *name)
{
    begin_message(batch, NFT_MSG_DELCHAIN, 0);
    sys_netlink_batch_text(&batch->messages, NFTA_CHAIN_TABLE, batch->table);
    sys_netlink_batch_text(&batch->messages, NFTA_CHAIN_NAME, name);
}

/* What the kinds of sets are to the kernel. */
static const struct {
    uint32_t flags;
    uint32_t key_type;
    uint32_t data_type;
    uint32_t data_length;
} set_kinds[] = {
    [NFT_SET_OF_ADDRESSES] = {0, TYPE_IPV4_ADDRESS, 0, 0},
    [NFT_SET_OF_MARKS] = {0, TYPE_MARK, 0, 0},
    [NFT_SET_OF_RANGES] = {NFT_SET_INTERVAL, TYPE_IPV4_ADDRESS, 0, 0},
    [NFT_SET_OF_METERS] = {NFT_SET_EVAL, TYPE_IPV4_ADDRESS, 0, 0},
    [NFT_SET_TO_ADDRESSES] = {NFT_SET_MAP, TYPE_IPV4_ADDRESS, TYPE_IPV4_ADDRESS, KEY_SIZE},
    [NFT_SET_TO_CHAINS] = {NFT_SET_MAP, TYPE_IPV4_ADDRESS, NFT_DATA_VERDICT, 0},
};

void nft_add_set(struct nft_batch *batch, const char *name, enum nft_set_kind kind)
{
    struct sys_netlink_batch *messages = &batch->messages;
    size_t nest;

    begin_message(batch, NFT_MSG_NEWSET, NLM_F_CREATE);
    sys_netlink_batch_text(messages, NFTA_SET_TABLE, batch->table);
    sys_netlink_batch_text(messages, NFTA_SET_NAME, name);
    sys_netlink_batch_be32(messages, NFTA_SET_ID, ++batch->sets);
    sys_netlink_batch_be32(messages, NFTA_SET_FLAGS, set_kinds[kind].flags);
    sys_netlink_batch_be32(messages, NFTA_SET_KEY_TYPE, set_kinds[kind].key_type);
    sys_netlink_batch_be32(messages, NFTA_SET_KEY_LEN, KEY_SIZE);
    if (set_kinds[kind].flags & NFT_SET_MAP) {
        sys_netlink_batch_be32(messages, NFTA_SET_DATA_TYPE, set_kinds[kind].data_type);
        sys_netlink_batch_be32(messages, NFTA_SET_DATA_LEN, set_kinds[kind].data_length);
    }
    if (kind != NFT_SET_OF_METERS)
        return;
    nest = sys_netlink_batch_open(messages, NFTA_SET_DESC);
    sys_netlink_batch_be32(messages, NFTA_SET_DESC_SIZE, METERS_MAX);
    sys_netlink_batch_close(messages, nest);
}

/* The nests around an element, outermost first. */
struct element {
    size_t list;
    size_t element;
};

/* The body of a message about one element. `key` is as the packets have it: an address in network
 * byte order, a mark in that of the machine. */
static struct element describe_element(struct sys_netlink_batch *messages, const char *table,
                                       const char *set, uint32_t key, uint32_t flags)
{
    struct element element;
    size_t nest;

    sys_netlink_batch_text(messages, NFTA_SET_ELEM_LIST_TABLE, table);
    sys_netlink_batch_text(messages, NFTA_SET_ELEM_LIST_SET, set);
    element.list = sys_netlink_batch_open(messages, NFTA_SET_ELEM_LIST_ELEMENTS);
    element.element = sys_netlink_batch_open(messages, NFTA_LIST_ELEM);
    if (flags)
        sys_netlink_batch_be32(messages, NFTA_SET_ELEM_FLAGS, flags);
    nest = sys_netlink_batch_open(messages, NFTA_SET_ELEM_KEY);
    sys_netlink_batch_attribute(messages, NFTA_DATA_VALUE, &key, KEY_SIZE);
    sys_netlink_batch_close(messages, nest);
    return element;
}

static struct element begin_element(struct nft_batch *batch, uint16_t type, const char *set,
                                    uint32_t key, uint32_t flags)
{
    begin_message(batch, type, type == NFT_MSG_NEWSETELEM ? NLM_F_CREATE : 0);
    return describe_element(&batch->messages, batch->table, set, key, flags);
}

static void end_element(struct nft_batch *batch, struct element element)
{
    sys_netlink_batch_close(&batch->messages, element.element);
    sys_netlink_batch_close(&batch->messages, element.list);
}

void nft_flush_set(struct nft_batch *batch, const char *name)
{
    begin_message(batch, NFT_MSG_DELSETELEM, 0);
    sys_netlink_batch_text(&batch->messages, NFTA_SET_ELEM_LIST_TABLE, batch->table);
    sys_netlink_batch_text(&batch->messages, NFTA_SET_ELEM_LIST_SET, name);
}

void nft_add_address(struct nft_batch *batch, const char *set, struct in_addr address)
{
    end_element(batch, begin_element(batch, NFT_MSG_NEWSETELEM, set, address.s_addr, 0));
}

void nft_add_range(struct nft_batch *batch, const char *set, struct in_addr network,
                   unsigned int prefix)
{
    uint32_t size = (uint32_t) (UINT64_C(1) << (32 - prefix));
    struct in_addr end = {.s_addr = htonl(ntohl(network.s_addr) + size)};

    nft_add_address(batch, set, network);
    /* The range that reaches the last address has no end. */
    if (end.s_addr)
        end_element(batch, begin_element(batch, NFT_MSG_NEWSETELEM, set, end.s_addr,
                                         NFT_SET_ELEM_INTERVAL_END));
}

void nft_add_mapped_address(struct nft_batch *batch, const char *map, struct in_addr from,
                            struct in_addr to)
{
    struct element element = begin_element(batch, NFT_MSG_NEWSETELEM, map, from.s_addr, 0);
    size_t nest = sys_netlink_batch_open(&batch->messages, NFTA_SET_ELEM_DATA);

    sys_netlink_batch_attribute(&batch->messages, NFTA_DATA_VALUE, &to, sizeof(to));
    sys_netlink_batch_close(&batch->messages, nest);
    end_element(batch, element);
}

void nft_add_mapped_chain(struct nft_batch *batch, const char *map, struct in_addr address,
                          const char *chain)
{
    struct sys_netlink_batch *messages = &batch->messages;
    struct element element = begin_element(batch, NFT_MSG_NEWSETELEM, map, address.s_addr, 0);
    size_t data = sys_netlink_batch_open(messages, NFTA_SET_ELEM_DATA);
    size_t verdict = sys_netlink_batch_open(messages, NFTA_DATA_VERDICT);

    sys_netlink_batch_be32(messages, NFTA_VERDICT_CODE, (uint32_t) NFT_GOTO);
    sys_netlink_batch_text(messages, NFTA_VERDICT_CHAIN, chain);
    sys_netlink_batch_close(messages, verdict);
    sys_netlink_batch_close(messages, data);
    end_element(batch, element);
}

void nft_delete_address(struct nft_batch *batch, const char *set, struct in_addr address)
{
    end_element(batch, begin_element(batch, NFT_MSG_DELSETELEM, set, address.s_addr, 0));
}

void nft_add_mark(struct nft_batch *batch, const char *set, uint32_t mark)
{
    end_element(batch, begin_element(batch, NFT_MSG_NEWSETELEM, set, mark, 0));
}

void nft_delete_mark(struct nft_batch *batch, const char *set, uint32_t mark)
{
    end_element(batch, begin_element(batch, NFT_MSG_DELSETELEM, set, mark, 0));
}

int nft_has_address(struct nft *nft, const char *table, const char *set, struct in_addr address)
{
    AUTO(netlink_batch) struct sys_netlink_batch batch = SYS_NETLINK_BATCH_INIT;
    struct nfgenmsg body = {.nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0};
    struct element element;
    int result;

    sys_netlink_batch_message(&batch, (NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_GETSETELEM, NLM_F_ACK,
                              &body, sizeof(body));
    element = describe_element(&batch, table, set, address.s_addr, 0);
    sys_netlink_batch_close(&batch, element.element);
    sys_netlink_batch_close(&batch, element.list);
    result = sys_netlink_batch_run(&batch, nft->fd, &nft->sequence, NULL, NULL);
    return result == -ENOENT ? 0 : result < 0 ? result : 1;
}

struct chain_walk {
    nft_chain_function *call;
    void *context;
};

/* A name in an answer, "" when it is not terminated. */
static const char *text_of(const struct sys_netlink_attribute *attribute)
{
    return attribute->length && attribute->value[attribute->length - 1] == '\0' ? attribute->value
                                                                                : "";
}

static int read_hook(const struct sys_netlink_attribute *nest)
{
    const char *bytes = nest->value;
    size_t length = nest->length;
    struct sys_netlink_attribute attribute;

    while (sys_netlink_attribute_next(&bytes, &length, &attribute)) {
        if (attribute.type == NFTA_HOOK_HOOKNUM)
            return (int) sys_netlink_attribute_be32(&attribute);
    }
    return -1;
}

static void answer_chain(void *context, uint16_t type, const char *body, size_t length)
{
    struct chain_walk *walk = context;
    struct nft_base_chain chain = {.table = "", .name = "", .hook = -1};
    struct sys_netlink_attribute attribute;
    struct nfgenmsg message;

    if ((type & 0xff) != NFT_MSG_NEWCHAIN || length < sizeof(message))
        return;
    memcpy(&message, body, sizeof(message));
    chain.family = message.nfgen_family;
    body += NLMSG_ALIGN(sizeof(message));
    length -= NLMSG_ALIGN(sizeof(message));
    while (sys_netlink_attribute_next(&body, &length, &attribute)) {
        if (attribute.type == NFTA_CHAIN_TABLE)
            chain.table = text_of(&attribute);
        else if (attribute.type == NFTA_CHAIN_NAME)
            chain.name = text_of(&attribute);
        else if (attribute.type == NFTA_CHAIN_HOOK)
            chain.hook = read_hook(&attribute);
        else if (attribute.type == NFTA_CHAIN_POLICY)
            chain.policy = (int) sys_netlink_attribute_be32(&attribute);
    }
    if (chain.hook >= 0)
        walk->call(walk->context, &chain);
}

int nft_each_base_chain(struct nft *nft, nft_chain_function *call, void *context)
{
    AUTO(netlink_batch) struct sys_netlink_batch batch = SYS_NETLINK_BATCH_INIT;
    struct nfgenmsg body = {.nfgen_family = NFPROTO_UNSPEC, .version = NFNETLINK_V0};
    struct chain_walk walk = {.call = call, .context = context};

    sys_netlink_batch_message(&batch, (NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_GETCHAIN, NLM_F_DUMP,
                              &body, sizeof(body));
    return sys_netlink_batch_run(&batch, nft->fd, &nft->sequence, answer_chain, &walk);
}

static void answer_elements(void *context, uint16_t type, const char *body, size_t length)
{
    struct sys_netlink_attribute list, element;

    (void) type;
    if (length < sizeof(struct nfgenmsg))
        return;
    body += NLMSG_ALIGN(sizeof(struct nfgenmsg));
    length -= NLMSG_ALIGN(sizeof(struct nfgenmsg));
    while (sys_netlink_attribute_next(&body, &length, &list)) {
        const char *elements = list.value;
        size_t left = list.length;

        if (list.type != NFTA_SET_ELEM_LIST_ELEMENTS)
            continue;
        while (sys_netlink_attribute_next(&elements, &left, &element))
            ++*(int *) context;
    }
}

int nft_count_elements(struct nft *nft, const char *table, const char *set)
{
    AUTO(netlink_batch) struct sys_netlink_batch batch = SYS_NETLINK_BATCH_INIT;
    struct nfgenmsg body = {.nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0};
    int count = 0;
    int result;

    sys_netlink_batch_message(&batch, (NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_GETSETELEM, NLM_F_DUMP,
                              &body, sizeof(body));
    sys_netlink_batch_text(&batch, NFTA_SET_ELEM_LIST_TABLE, table);
    sys_netlink_batch_text(&batch, NFTA_SET_ELEM_LIST_SET, set);
    result = sys_netlink_batch_run(&batch, nft->fd, &nft->sequence, answer_elements, &count);
    return result < 0 ? result : count;
}
