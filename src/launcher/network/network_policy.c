#include "launcher/network/network_policy.h"

#include <stdio.h>

#include "launcher/network/nft_rule.h"
#include "launcher/network/router_internal.h"

#define CHAIN_SIZE 16

static const uint8_t protocol_numbers[] = {
    [NETWORK_TCP] = IPPROTO_TCP,
    [NETWORK_UDP] = IPPROTO_UDP,
};

static void chain_name(const struct network *network, char ret_name[static CHAIN_SIZE])
{
    (void) snprintf(ret_name, CHAIN_SIZE, "s%u", network->slot.number);
}

static bool has_ports(const struct network_rule *rule)
{
    return !network_ports_are_all(rule->ports);
}

static int check_rule(const struct network_rule *rule, size_t number, struct error *err)
{
    if (rule->to.bits > 32)
        return error_set(err, ERR_INVALID, 0, "network rule %zu: prefix %u", number, rule->to.bits);
    if ((unsigned int) rule->protocol > NETWORK_UDP)
        return error_set(err, ERR_INVALID, 0, "network rule %zu: unknown protocol", number);
    if (has_ports(rule) && rule->protocol == NETWORK_ANY)
        return error_set(err, ERR_INVALID, 0, "network rule %zu: ports need TCP or UDP", number);
    if (has_ports(rule) && (rule->ports.first == 0 || rule->ports.first > rule->ports.last))
        return error_set(err, ERR_INVALID, 0, "network rule %zu: ports %u to %u", number,
                         rule->ports.first, rule->ports.last);
    return 0;
}

static int check_policy(const struct network_policy *policy, struct error *err)
{
    if (policy->count > NETWORK_RULES_MAX)
        return error_set(err, ERR_INVALID, 0, "%zu network rules, at most %d are allowed",
                         policy->count, NETWORK_RULES_MAX);
    for (size_t i = 0; i < policy->count; i++) {
        if (check_rule(&policy->rules[i], i + 1, err) < 0)
            return -1;
    }
    return 0;
}

static void add_rule(struct nft_batch *batch, const char *chain, const struct network_rule *rule)
{
    nft_rule_begin(batch, chain);
    nft_match_destination(batch, (struct in_addr){htonl(rule->to.address)}, rule->to.bits);
    if (rule->protocol != NETWORK_ANY)
        nft_match_protocol(batch, protocol_numbers[rule->protocol]);
    if (has_ports(rule))
        nft_match_port(batch, rule->ports.first, rule->ports.last);
    if (rule->allow)
        nft_accept(batch);
    else
        nft_reject(batch);
    nft_rule_end(batch);
}

/* What comes before the rules: the limit, and the walls that no rule opens. */
static void add_walls(struct nft_batch *batch, const char *chain, bool no_names,
                      uint32_t connections)
{
    nft_rule_begin(batch, chain);
    nft_match_connections_over(batch, connections);
    nft_reject(batch);
    nft_rule_end(batch);
    if (no_names) {
        nft_rule_begin(batch, chain);
        nft_match_redirected(batch);
        nft_reject(batch);
        nft_rule_end(batch);
    }
    nft_rule_begin(batch, chain);
    nft_jump(batch, ROUTER_CHAIN_WALLS);
    nft_rule_end(batch);
}

int network_set_policy(struct router *router, const struct network *network,
                       const struct network_policy *policy, struct error *err)
{
    AUTO(nft_batch) struct nft_batch batch = nft_batch(router->name);
    char chain[CHAIN_SIZE];
    int result;

    if (check_policy(policy, err) < 0)
        return -1;
    chain_name(network, chain);
    nft_add_chain(&batch, chain, NULL);
    nft_flush_chain(&batch, chain);
    add_walls(&batch, chain, policy->no_names,
              policy->connections ? policy->connections : router->connections);
    for (size_t i = 0; i < policy->count; i++)
        add_rule(&batch, chain, &policy->rules[i]);
    nft_rule_begin(&batch, chain);
    if (policy->only_listed)
        nft_reject(&batch);
    else
        nft_goto(&batch, ROUTER_CHAIN_INTERNET);
    nft_rule_end(&batch);
    nft_add_mapped_chain(&batch, ROUTER_SET_POLICIES, network->address, chain);
    result = nft_commit(&router->filter, &batch);
    if (result < 0)
        return error_set(err, error_code_from_errno(result), result, "network rules of %s",
                         network->slot.id.text);
    return 0;
}

int network_clear_policy(struct router *router, const struct network *network, struct error *err)
{
    AUTO(nft_batch) struct nft_batch batch = nft_batch(router->name);
    char chain[CHAIN_SIZE];
    int result;

    result = nft_has_address(&router->filter, router->name, ROUTER_SET_POLICIES, network->address);
    if (result == 0)
        return 0;
    chain_name(network, chain);
    nft_delete_address(&batch, ROUTER_SET_POLICIES, network->address);
    nft_flush_chain(&batch, chain);
    nft_delete_chain(&batch, chain);
    if (result > 0)
        result = nft_commit(&router->filter, &batch);
    if (result < 0)
        return error_set(err, error_code_from_errno(result), result, "remove network rules of %s",
                         network->slot.id.text);
    return 0;
}
