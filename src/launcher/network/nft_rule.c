#include "launcher/network/nft_rule.h"

#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nfnetlink.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <string.h>

/* The open nests of one expression. */
struct expression {
    size_t element;
    size_t data;
};

static struct expression begin_expression(struct nft_batch *batch, uint16_t type, const char *name)
{
    struct expression expression = {.element = sys_netlink_batch_open(&batch->messages, type)};

    sys_netlink_batch_text(&batch->messages, NFTA_EXPR_NAME, name);
    expression.data = sys_netlink_batch_open(&batch->messages, NFTA_EXPR_DATA);
    return expression;
}

static void end_expression(struct nft_batch *batch, struct expression expression)
{
    sys_netlink_batch_close(&batch->messages, expression.data);
    sys_netlink_batch_close(&batch->messages, expression.element);
}

struct number {
    uint16_t attribute;
    uint32_t value;
};

/* An expression whose parameters are numbers: most of them. */
static void add_numbers(struct nft_batch *batch, const char *name, const struct number *numbers,
                        size_t count)
{
    struct expression expression = begin_expression(batch, NFTA_LIST_ELEM, name);

    for (size_t i = 0; i < count; i++)
        sys_netlink_batch_be32(&batch->messages, numbers[i].attribute, numbers[i].value);
    end_expression(batch, expression);
}

#define ADD_NUMBERS(batch, name, ...)                                                              \
    add_numbers(batch, name, (const struct number[]){__VA_ARGS__},                                 \
                sizeof((const struct number[]){__VA_ARGS__}) / sizeof(struct number))

static void add_value(struct nft_batch *batch, uint16_t type, const void *value, size_t length)
{
    size_t nest = sys_netlink_batch_open(&batch->messages, type);

    sys_netlink_batch_attribute(&batch->messages, NFTA_DATA_VALUE, value, length);
    sys_netlink_batch_close(&batch->messages, nest);
}

/* All loads go to and all comparisons look at the first register. */
static void load_meta(struct nft_batch *batch, uint32_t key)
{
    ADD_NUMBERS(batch, "meta", {NFTA_META_DREG, NFT_REG_1}, {NFTA_META_KEY, key});
}

static void load_conntrack(struct nft_batch *batch, uint32_t key)
{
    ADD_NUMBERS(batch, "ct", {NFTA_CT_DREG, NFT_REG_1}, {NFTA_CT_KEY, key});
}

static void load_payload(struct nft_batch *batch, uint32_t base, size_t offset, size_t length)
{
    ADD_NUMBERS(batch, "payload", {NFTA_PAYLOAD_DREG, NFT_REG_1}, {NFTA_PAYLOAD_BASE, base},
                {NFTA_PAYLOAD_OFFSET, (uint32_t) offset}, {NFTA_PAYLOAD_LEN, (uint32_t) length});
}

static void load_source(struct nft_batch *batch)
{
    load_payload(batch, NFT_PAYLOAD_NETWORK_HEADER, offsetof(struct iphdr, saddr),
                 sizeof(struct in_addr));
}

static void load_destination(struct nft_batch *batch)
{
    load_payload(batch, NFT_PAYLOAD_NETWORK_HEADER, offsetof(struct iphdr, daddr),
                 sizeof(struct in_addr));
}

static void compare(struct nft_batch *batch, bool equal, const void *value, size_t length)
{
    struct expression expression = begin_expression(batch, NFTA_LIST_ELEM, "cmp");

    sys_netlink_batch_be32(&batch->messages, NFTA_CMP_SREG, NFT_REG_1);
    sys_netlink_batch_be32(&batch->messages, NFTA_CMP_OP, equal ? NFT_CMP_EQ : NFT_CMP_NEQ);
    add_value(batch, NFTA_CMP_DATA, value, length);
    end_expression(batch, expression);
}

/* Keep the bits of `mask`, which is in the byte order of what was loaded. */
static void mask(struct nft_batch *batch, uint32_t bits)
{
    struct expression expression = begin_expression(batch, NFTA_LIST_ELEM, "bitwise");
    uint32_t nothing = 0;

    sys_netlink_batch_be32(&batch->messages, NFTA_BITWISE_SREG, NFT_REG_1);
    sys_netlink_batch_be32(&batch->messages, NFTA_BITWISE_DREG, NFT_REG_1);
    sys_netlink_batch_be32(&batch->messages, NFTA_BITWISE_LEN, sizeof(bits));
    add_value(batch, NFTA_BITWISE_MASK, &bits, sizeof(bits));
    add_value(batch, NFTA_BITWISE_XOR, &nothing, sizeof(nothing));
    end_expression(batch, expression);
}

static void match_any_bit(struct nft_batch *batch, uint32_t bits)
{
    uint32_t nothing = 0;

    mask(batch, bits);
    compare(batch, false, &nothing, sizeof(nothing));
}

static void look_up(struct nft_batch *batch, const char *set, const uint32_t *into)
{
    struct expression expression = begin_expression(batch, NFTA_LIST_ELEM, "lookup");

    sys_netlink_batch_text(&batch->messages, NFTA_LOOKUP_SET, set);
    sys_netlink_batch_be32(&batch->messages, NFTA_LOOKUP_SREG, NFT_REG_1);
    if (into)
        sys_netlink_batch_be32(&batch->messages, NFTA_LOOKUP_DREG, *into);
    end_expression(batch, expression);
}

static void give_verdict(struct nft_batch *batch, int code, const char *chain)
{
    struct sys_netlink_batch *messages = &batch->messages;
    struct expression expression = begin_expression(batch, NFTA_LIST_ELEM, "immediate");
    size_t data, verdict;

    sys_netlink_batch_be32(messages, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    data = sys_netlink_batch_open(messages, NFTA_IMMEDIATE_DATA);
    verdict = sys_netlink_batch_open(messages, NFTA_DATA_VERDICT);
    sys_netlink_batch_be32(messages, NFTA_VERDICT_CODE, (uint32_t) code);
    if (chain)
        sys_netlink_batch_text(messages, NFTA_VERDICT_CHAIN, chain);
    sys_netlink_batch_close(messages, verdict);
    sys_netlink_batch_close(messages, data);
    end_expression(batch, expression);
}

void nft_rule_begin(struct nft_batch *batch, const char *chain)
{
    struct nfgenmsg body = {.nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0};

    sys_netlink_batch_message(&batch->messages, (NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_NEWRULE,
                              NLM_F_CREATE | NLM_F_APPEND, &body, sizeof(body));
    sys_netlink_batch_text(&batch->messages, NFTA_RULE_TABLE, batch->table);
    sys_netlink_batch_text(&batch->messages, NFTA_RULE_CHAIN, chain);
    batch->rule = sys_netlink_batch_open(&batch->messages, NFTA_RULE_EXPRESSIONS);
}

void nft_rule_end(struct nft_batch *batch)
{
    sys_netlink_batch_close(&batch->messages, batch->rule);
}

void nft_match_ipv4(struct nft_batch *batch, bool equal)
{
    uint8_t family = NFPROTO_IPV4;

    load_meta(batch, NFT_META_NFPROTO);
    compare(batch, equal, &family, sizeof(family));
}

static void match_link(struct nft_batch *batch, uint32_t key, const char *link, bool equal)
{
    char name[IFNAMSIZ] = {0};

    memcpy(name, link, strnlen(link, sizeof(name) - 1));
    load_meta(batch, key);
    compare(batch, equal, name, sizeof(name));
}

void nft_match_in(struct nft_batch *batch, const char *link, bool equal)
{
    match_link(batch, NFT_META_IIFNAME, link, equal);
}

void nft_match_out(struct nft_batch *batch, const char *link, bool equal)
{
    match_link(batch, NFT_META_OIFNAME, link, equal);
}

void nft_match_protocol(struct nft_batch *batch, uint8_t protocol)
{
    load_meta(batch, NFT_META_L4PROTO);
    compare(batch, true, &protocol, sizeof(protocol));
}

void nft_match_source(struct nft_batch *batch, struct in_addr address, bool equal)
{
    load_source(batch);
    compare(batch, equal, &address, sizeof(address));
}

void nft_match_destination(struct nft_batch *batch, struct in_addr network, unsigned int prefix)
{
    uint32_t bits = prefix ? htonl(UINT32_MAX << (32 - prefix)) : 0;

    if (prefix == 0)
        return;
    network.s_addr &= bits;
    load_destination(batch);
    if (prefix < 32)
        mask(batch, bits);
    compare(batch, true, &network, sizeof(network));
}

void nft_match_port(struct nft_batch *batch, uint16_t first, uint16_t last)
{
    uint16_t from = htons(first), to = htons(last);
    struct expression expression;

    /* TCP and UDP have the port at the same place. */
    load_payload(batch, NFT_PAYLOAD_TRANSPORT_HEADER, offsetof(struct tcphdr, dest), sizeof(from));
    if (first == last) {
        compare(batch, true, &from, sizeof(from));
        return;
    }
    expression = begin_expression(batch, NFTA_LIST_ELEM, "range");
    sys_netlink_batch_be32(&batch->messages, NFTA_RANGE_SREG, NFT_REG_1);
    sys_netlink_batch_be32(&batch->messages, NFTA_RANGE_OP, NFT_RANGE_EQ);
    add_value(batch, NFTA_RANGE_FROM_DATA, &from, sizeof(from));
    add_value(batch, NFTA_RANGE_TO_DATA, &to, sizeof(to));
    end_expression(batch, expression);
}

void nft_match_state(struct nft_batch *batch, uint32_t states)
{
    load_conntrack(batch, NFT_CT_STATE);
    match_any_bit(batch, states);
}

void nft_match_redirected(struct nft_batch *batch)
{
    load_conntrack(batch, NFT_CT_STATUS);
    match_any_bit(batch, IPS_DST_NAT);
}

void nft_match_destination_in(struct nft_batch *batch, const char *set)
{
    load_destination(batch);
    look_up(batch, set, NULL);
}

void nft_match_mark_in(struct nft_batch *batch, const char *set)
{
    load_conntrack(batch, NFT_CT_MARK);
    look_up(batch, set, NULL);
}

void nft_match_wrong_source(struct nft_batch *batch)
{
    uint32_t none = 0;

    ADD_NUMBERS(batch, "fib", {NFTA_FIB_DREG, NFT_REG_1}, {NFTA_FIB_RESULT, NFT_FIB_RESULT_OIF},
                {NFTA_FIB_FLAGS, NFTA_FIB_F_SADDR | NFTA_FIB_F_IIF});
    compare(batch, true, &none, sizeof(none));
}

void nft_match_connections_over(struct nft_batch *batch, uint32_t limit)
{
    ADD_NUMBERS(batch, "connlimit", {NFTA_CONNLIMIT_COUNT, limit},
                {NFTA_CONNLIMIT_FLAGS, NFT_CONNLIMIT_F_INV});
}

void nft_meter_connections(struct nft_batch *batch, const char *set, uint32_t limit)
{
    struct sys_netlink_batch *messages = &batch->messages;
    struct expression outer, inner;

    load_source(batch);
    outer = begin_expression(batch, NFTA_LIST_ELEM, "dynset");
    sys_netlink_batch_text(messages, NFTA_DYNSET_SET_NAME, set);
    sys_netlink_batch_be32(messages, NFTA_DYNSET_OP, NFT_DYNSET_OP_ADD);
    sys_netlink_batch_be32(messages, NFTA_DYNSET_SREG_KEY, NFT_REG_1);
    inner = begin_expression(batch, NFTA_DYNSET_EXPR, "connlimit");
    sys_netlink_batch_be32(messages, NFTA_CONNLIMIT_COUNT, limit);
    sys_netlink_batch_be32(messages, NFTA_CONNLIMIT_FLAGS, NFT_CONNLIMIT_F_INV);
    end_expression(batch, inner);
    end_expression(batch, outer);
}

void nft_mark_by_link(struct nft_batch *batch)
{
    load_meta(batch, NFT_META_IIF);
    ADD_NUMBERS(batch, "ct", {NFTA_CT_KEY, NFT_CT_MARK}, {NFTA_CT_SREG, NFT_REG_1});
}

void nft_accept(struct nft_batch *batch)
{
    give_verdict(batch, NF_ACCEPT, NULL);
}

void nft_drop(struct nft_batch *batch)
{
    give_verdict(batch, NF_DROP, NULL);
}

void nft_reject(struct nft_batch *batch)
{
    struct expression expression = begin_expression(batch, NFTA_LIST_ELEM, "reject");

    sys_netlink_batch_be32(&batch->messages, NFTA_REJECT_TYPE, NFT_REJECT_ICMPX_UNREACH);
    sys_netlink_batch_u8(&batch->messages, NFTA_REJECT_ICMP_CODE,
                         NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
    end_expression(batch, expression);
}

void nft_jump(struct nft_batch *batch, const char *chain)
{
    give_verdict(batch, NFT_JUMP, chain);
}

void nft_goto(struct nft_batch *batch, const char *chain)
{
    give_verdict(batch, NFT_GOTO, chain);
}

void nft_masquerade(struct nft_batch *batch)
{
    end_expression(batch, begin_expression(batch, NFTA_LIST_ELEM, "masq"));
}

void nft_verdict_of_source(struct nft_batch *batch, const char *map)
{
    uint32_t verdict = NFT_REG_VERDICT;

    load_source(batch);
    look_up(batch, map, &verdict);
}

void nft_redirect_by_map(struct nft_batch *batch, const char *map)
{
    uint32_t address = NFT_REG_1;

    load_destination(batch);
    look_up(batch, map, &address);
    ADD_NUMBERS(batch, "nat", {NFTA_NAT_TYPE, NFT_NAT_DNAT}, {NFTA_NAT_FAMILY, NFPROTO_IPV4},
                {NFTA_NAT_REG_ADDR_MIN, NFT_REG_1}, {NFTA_NAT_REG_ADDR_MAX, NFT_REG_1});
}
