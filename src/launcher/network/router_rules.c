#include "launcher/network/router_rules.h"

#include <string.h>

#include "launcher/network/nft_rule.h"

enum reach { DETAIL, NEVER, PRIVATE };

/* A network: the bytes of its address as they are written, and its prefix. */
struct range {
    uint8_t bytes[4];
    unsigned int prefix;
    enum reach reach;
};

static const struct range special[] = {
#define SPECIAL(reach, a, b, c, d, bits, words) {{a, b, c, d}, bits, reach},
#include "base/special_networks.def"
#undef SPECIAL
};

static const struct nft_hook source_hook = {"filter", NF_INET_PRE_ROUTING, NF_IP_PRI_RAW,
                                            NF_ACCEPT};
static const struct nft_hook names_hook = {"nat", NF_INET_PRE_ROUTING, NF_IP_PRI_NAT_DST,
                                           NF_ACCEPT};
static const struct nft_hook nat_hook = {"nat", NF_INET_POST_ROUTING, NF_IP_PRI_NAT_SRC, NF_ACCEPT};
static const struct nft_hook closed_input = {"filter", NF_INET_LOCAL_IN, NF_IP_PRI_FILTER, NF_DROP};
static const struct nft_hook closed_forward = {"filter", NF_INET_FORWARD, NF_IP_PRI_FILTER,
                                               NF_DROP};
static const struct nft_hook open_input = {"filter", NF_INET_LOCAL_IN, NF_IP_PRI_FILTER, NF_ACCEPT};
static const struct nft_hook open_forward = {"filter", NF_INET_FORWARD, NF_IP_PRI_FILTER,
                                             NF_ACCEPT};

struct chain {
    const char *name;
    const struct nft_hook *hook; /* NULL: only jumped to */
};

static const struct chain router_chains[] = {
    {"source", &source_hook},     {"names", &names_hook},     {"input", &closed_input},
    {"forward", &closed_forward}, {ROUTER_CHAIN_WALLS, NULL}, {ROUTER_CHAIN_INTERNET, NULL},
    {"nat", &nat_hook},
};

static const struct chain host_chains[] = {
    {"input", &open_input},
    {"from_router", NULL},
    {"forward", &open_forward},
    {"nat", &nat_hook},
};

/* Chains as they are, without rules. They may be jumped to by rules that stay, so they are emptied
 * rather than deleted; nobody sees them empty, because the batch is one step. */
static void add_chains(struct nft_batch *batch, const struct chain *chains, size_t count)
{
    for (size_t i = 0; i < count; i++)
        nft_add_chain(batch, chains[i].name, chains[i].hook);
    for (size_t i = 0; i < count; i++)
        nft_flush_chain(batch, chains[i].name);
}

static void add_special(struct nft_batch *batch, const char *set, enum reach reach)
{
    nft_add_set(batch, set, NFT_SET_OF_RANGES);
    nft_flush_set(batch, set);
    for (size_t i = 0; i < ARRAY_COUNT(special); i++) {
        struct in_addr network;

        memcpy(&network, special[i].bytes, sizeof(network));
        if (special[i].reach == reach)
            nft_add_range(batch, set, network, special[i].prefix);
    }
}

static void add_router_sets(struct nft_batch *batch)
{
    nft_add_set(batch, ROUTER_SET_LIVE, NFT_SET_OF_MARKS);
    nft_add_set(batch, "host", NFT_SET_OF_ADDRESSES);
    add_special(batch, "never", NEVER);
    add_special(batch, "private", PRIVATE);
    nft_add_set(batch, "neighbours", NFT_SET_OF_RANGES);
    nft_add_set(batch, "connections", NFT_SET_OF_METERS);
    nft_add_set(batch, "resolvers", NFT_SET_TO_ADDRESSES);
    nft_add_set(batch, ROUTER_SET_POLICIES, NFT_SET_TO_CHAINS);
}

/* The rules that have one match or none before their verdict. */
static void drop_foreign_families(struct nft_batch *batch, const char *chain, const char *link)
{
    nft_rule_begin(batch, chain);
    if (link)
        nft_match_in(batch, link, true);
    nft_match_ipv4(batch, false);
    nft_drop(batch);
    nft_rule_end(batch);
}

static void accept_answers(struct nft_batch *batch, const char *chain, const char *out)
{
    nft_rule_begin(batch, chain);
    if (out)
        nft_match_out(batch, out, true);
    nft_match_state(batch, NFT_STATE_ESTABLISHED | NFT_STATE_RELATED);
    nft_accept(batch);
    nft_rule_end(batch);
}

static void reject_destinations(struct nft_batch *batch, const char *chain, const char *set)
{
    nft_rule_begin(batch, chain);
    nft_match_destination_in(batch, set);
    nft_reject(batch);
    nft_rule_end(batch);
}

static void redirect_names(struct nft_batch *batch, uint8_t protocol)
{
    nft_rule_begin(batch, "names");
    nft_match_ipv4(batch, true);
    nft_match_in(batch, ROUTER_UPLINK, false);
    nft_match_protocol(batch, protocol);
    nft_match_port(batch, 53, 53);
    nft_redirect_by_map(batch, "resolvers");
    nft_rule_end(batch);
}

static void add_source_and_input(struct nft_batch *batch)
{
    nft_rule_begin(batch, "source");
    nft_match_wrong_source(batch);
    nft_drop(batch);
    nft_rule_end(batch);
    redirect_names(batch, IPPROTO_UDP);
    redirect_names(batch, IPPROTO_TCP);
    accept_answers(batch, "input", NULL);
}

/* What is known already, and what is never forwarded. */
static void add_forward_begin(struct nft_batch *batch)
{
    drop_foreign_families(batch, "forward", NULL);
    nft_rule_begin(batch, "forward");
    nft_match_state(batch, NFT_STATE_INVALID);
    nft_drop(batch);
    nft_rule_end(batch);
    nft_rule_begin(batch, "forward");
    nft_match_state(batch, NFT_STATE_ESTABLISHED | NFT_STATE_RELATED);
    nft_match_mark_in(batch, ROUTER_SET_LIVE);
    nft_accept(batch);
    nft_rule_end(batch);
    nft_rule_begin(batch, "forward");
    nft_match_state(batch, NFT_STATE_ESTABLISHED | NFT_STATE_RELATED);
    nft_drop(batch);
    nft_rule_end(batch);
    nft_rule_begin(batch, "forward");
    nft_match_in(batch, ROUTER_UPLINK, true);
    nft_drop(batch);
    nft_rule_end(batch);
    nft_rule_begin(batch, "forward");
    nft_match_out(batch, ROUTER_UPLINK, false);
    nft_drop(batch);
    nft_rule_end(batch);
}

/* New connections of a sandbox to the uplink. */
static void add_forward_new(struct nft_batch *batch, uint32_t connections)
{
    nft_rule_begin(batch, "forward");
    nft_mark_by_link(batch);
    nft_rule_end(batch);
    nft_rule_begin(batch, "forward");
    nft_verdict_of_source(batch, ROUTER_SET_POLICIES);
    nft_rule_end(batch);
    nft_rule_begin(batch, "forward");
    nft_meter_connections(batch, "connections", connections);
    nft_reject(batch);
    nft_rule_end(batch);
    nft_rule_begin(batch, "forward");
    nft_jump(batch, ROUTER_CHAIN_WALLS);
    nft_rule_end(batch);
    nft_rule_begin(batch, "forward");
    nft_goto(batch, ROUTER_CHAIN_INTERNET);
    nft_rule_end(batch);
}

static void add_walls(struct nft_batch *batch)
{
    nft_rule_begin(batch, ROUTER_CHAIN_WALLS);
    nft_match_redirected(batch);
    nft_accept(batch);
    nft_rule_end(batch);
    reject_destinations(batch, ROUTER_CHAIN_WALLS, "host");
    reject_destinations(batch, ROUTER_CHAIN_WALLS, "never");
}

static void add_internet(struct nft_batch *batch)
{
    static const uint8_t protocols[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP};

    reject_destinations(batch, ROUTER_CHAIN_INTERNET, "private");
    reject_destinations(batch, ROUTER_CHAIN_INTERNET, "neighbours");
    for (size_t i = 0; i < ARRAY_COUNT(protocols); i++) {
        nft_rule_begin(batch, ROUTER_CHAIN_INTERNET);
        nft_match_protocol(batch, protocols[i]);
        nft_accept(batch);
        nft_rule_end(batch);
    }
    nft_rule_begin(batch, ROUTER_CHAIN_INTERNET);
    nft_reject(batch);
    nft_rule_end(batch);
}

int router_rules_apply(struct nft *router, const char *table, uint32_t connections)
{
    AUTO(nft_batch) struct nft_batch batch = nft_batch(table);

    nft_add_table(&batch);
    add_router_sets(&batch);
    add_chains(&batch, router_chains, ARRAY_COUNT(router_chains));
    add_source_and_input(&batch);
    add_forward_begin(&batch);
    add_forward_new(&batch, connections);
    add_walls(&batch);
    add_internet(&batch);
    nft_rule_begin(&batch, "nat");
    nft_match_ipv4(&batch, true);
    nft_match_out(&batch, ROUTER_UPLINK, true);
    nft_masquerade(&batch);
    nft_rule_end(&batch);
    return nft_commit(router, &batch);
}

static void accept_resolvers(struct nft_batch *batch, uint8_t protocol)
{
    nft_rule_begin(batch, "from_router");
    nft_match_destination_in(batch, "resolvers");
    nft_match_protocol(batch, protocol);
    nft_match_port(batch, 53, 53);
    nft_accept(batch);
    nft_rule_end(batch);
}

static void add_host_input(struct nft_batch *batch, const char *link)
{
    nft_rule_begin(batch, "input");
    nft_match_in(batch, link, true);
    nft_goto(batch, "from_router");
    nft_rule_end(batch);
    drop_foreign_families(batch, "from_router", NULL);
    accept_answers(batch, "from_router", NULL);
    accept_resolvers(batch, IPPROTO_UDP);
    accept_resolvers(batch, IPPROTO_TCP);
    nft_rule_begin(batch, "from_router");
    nft_drop(batch);
    nft_rule_end(batch);
}

static void add_host_forward(struct nft_batch *batch, const char *link, struct in_addr router)
{
    drop_foreign_families(batch, "forward", link);
    nft_rule_begin(batch, "forward");
    nft_match_in(batch, link, true);
    nft_match_source(batch, router, false);
    nft_drop(batch);
    nft_rule_end(batch);
    accept_answers(batch, "forward", link);
    nft_rule_begin(batch, "forward");
    nft_match_out(batch, link, true);
    nft_drop(batch);
    nft_rule_end(batch);
}

int router_rules_apply_host(struct nft *host, const char *table, struct in_addr router_address)
{
    AUTO(nft_batch) struct nft_batch batch = nft_batch(table);

    nft_add_table(&batch);
    nft_add_set(&batch, "resolvers", NFT_SET_OF_ADDRESSES);
    add_chains(&batch, host_chains, ARRAY_COUNT(host_chains));
    add_host_input(&batch, table);
    add_host_forward(&batch, table, router_address);
    nft_rule_begin(&batch, "nat");
    nft_match_ipv4(&batch, true);
    nft_match_source(&batch, router_address, true);
    nft_match_out(&batch, table, false);
    nft_masquerade(&batch);
    nft_rule_end(&batch);
    return nft_commit(host, &batch);
}

int router_rules_delete_host(struct nft *host, const char *table)
{
    AUTO(nft_batch) struct nft_batch batch = nft_batch(table);

    nft_delete_table(&batch);
    return nft_commit(host, &batch);
}

static bool network_contains(const struct router_network *outer, const struct router_network *inner)
{
    uint32_t mask = outer->prefix ? UINT32_MAX << (32 - outer->prefix) : 0;

    return outer->prefix <= inner->prefix &&
           ((ntohl(outer->address.s_addr) ^ ntohl(inner->address.s_addr)) & mask) == 0;
}

/* The kernel takes no range twice, and none within another. Of two that are equal the first stays. */
static bool is_within_another(const struct router_network *networks, size_t count, size_t n)
{
    for (size_t i = 0; i < count; i++) {
        bool is_wider = i < n || networks[i].prefix < networks[n].prefix;

        if (i != n && is_wider && network_contains(&networks[i], &networks[n]))
            return true;
    }
    return false;
}

int router_rules_set_host(struct nft *router, const char *table, const struct router_host *host)
{
    AUTO(nft_batch) struct nft_batch batch = nft_batch(table);

    nft_flush_set(&batch, "host");
    for (size_t i = 0; i < host->address_count; i++)
        nft_add_address(&batch, "host", host->addresses[i]);
    nft_flush_set(&batch, "neighbours");
    for (size_t i = 0; i < host->network_count; i++) {
        const struct router_network *network = &host->networks[i];

        if (!is_within_another(host->networks, host->network_count, i))
            nft_add_range(&batch, "neighbours", network->address, network->prefix);
    }
    return nft_commit(router, &batch);
}

struct in_addr router_rules_address(unsigned int n)
{
    return (struct in_addr){.s_addr = htonl(UINT32_C(0xa9fe0101) + n)};
}

int router_rules_set_resolvers(struct nft *router, struct nft *host, const char *table,
                               const struct in_addr *addresses, size_t count)
{
    AUTO(nft_batch) struct nft_batch inner = nft_batch(table);
    AUTO(nft_batch) struct nft_batch outer = nft_batch(table);
    int result;

    if (count > ROUTER_RESOLVERS_MAX)
        return -E2BIG;
    nft_flush_set(&inner, "resolvers");
    nft_flush_set(&outer, "resolvers");
    for (size_t i = 0; i < count; i++) {
        nft_add_mapped_address(&inner, "resolvers", router_rules_address((unsigned int) i),
                               addresses[i]);
        nft_add_address(&outer, "resolvers", addresses[i]);
    }
    result = nft_commit(router, &inner);
    return result < 0 ? result : nft_commit(host, &outer);
}
