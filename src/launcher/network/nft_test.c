#include <string.h>

#include "launcher/network/nft.h"
#include "launcher/network/nft_rule.h"
#include "launcher/network/router_rules.h"
#include "sys/sys_test.h"

#define NEEDS_NFTABLES "network namespaces with nftables (root)"

static struct nft enter_network(void)
{
    struct nft nft = NFT_INIT;

    if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0 || nft_open(&nft) < 0)
        _exit(CHILD_UNABLE);
    CHECK(is_close_on_exec(nft.fd));
    return nft;
}

static struct in_addr ip(const char *text)
{
    struct in_addr address;

    CHECK_EQUAL(inet_pton(AF_INET, text, &address), 1);
    return address;
}

static const struct nft_hook hook = {"filter", NF_INET_FORWARD, NF_IP_PRI_FILTER, NF_DROP};

struct seen {
    int count;
    struct nft_base_chain last;
    char table[32];
    char name[32];
};

static void note_chain(void *context, const struct nft_base_chain *chain)
{
    struct seen *seen = context;

    seen->count++;
    seen->last = *chain;
    (void) snprintf(seen->table, sizeof(seen->table), "%s", chain->table);
    (void) snprintf(seen->name, sizeof(seen->name), "%s", chain->name);
}

static struct seen see_chains(struct nft *nft)
{
    struct seen seen = {0};

    CHECK_EQUAL(nft_each_base_chain(nft, note_chain, &seen), 0);
    return seen;
}

static void make_tables(void)
{
    AUTO(nft) struct nft nft = enter_network();
    AUTO(nft_batch) struct nft_batch batch = nft_batch("test");
    AUTO(nft_batch) struct nft_batch removal = nft_batch("test");
    AUTO(nft_batch) struct nft_batch again = nft_batch("test");
    struct seen seen;

    nft_add_table(&batch);
    nft_add_chain(&batch, "forward", &hook);
    nft_add_chain(&batch, "plain", NULL);
    CHECK_EQUAL(nft_commit(&nft, &batch), 0);
    seen = see_chains(&nft);
    CHECK_EQUAL(seen.count, 1);
    CHECK_EQUAL(seen.last.family, NFPROTO_INET);
    CHECK_EQUAL(seen.last.hook, NF_INET_FORWARD);
    CHECK_EQUAL(seen.last.policy, NF_DROP);
    CHECK(strcmp(seen.table, "test") == 0 && strcmp(seen.name, "forward") == 0);
    nft_delete_table(&removal);
    CHECK_EQUAL(nft_commit(&nft, &removal), 0);
    CHECK_EQUAL(see_chains(&nft).count, 0);
    nft_delete_table(&again);
    CHECK_EQUAL(nft_commit(&nft, &again), -ENOENT);
}

static void tables_and_chains_come_and_go(void **state)
{
    (void) state;
    run_in_child(make_tables, NEEDS_NFTABLES);
}

static void fill_sets(void)
{
    AUTO(nft) struct nft nft = enter_network();
    AUTO(nft_batch) struct nft_batch batch = nft_batch("test");
    AUTO(nft_batch) struct nft_batch change = nft_batch("test");

    nft_add_table(&batch);
    nft_add_chain(&batch, "plain", NULL);
    nft_add_set(&batch, "addresses", NFT_SET_OF_ADDRESSES);
    nft_add_set(&batch, "marks", NFT_SET_OF_MARKS);
    nft_add_set(&batch, "ranges", NFT_SET_OF_RANGES);
    nft_add_set(&batch, "meters", NFT_SET_OF_METERS);
    nft_add_set(&batch, "translated", NFT_SET_TO_ADDRESSES);
    nft_add_set(&batch, "judged", NFT_SET_TO_CHAINS);
    nft_add_address(&batch, "addresses", ip("10.0.0.1"));
    nft_add_address(&batch, "addresses", ip("10.0.0.1")); /* twice is no error */
    nft_add_address(&batch, "addresses", ip("10.0.0.2"));
    nft_add_mark(&batch, "marks", 77);
    nft_add_range(&batch, "ranges", ip("10.0.0.0"), 8);
    nft_add_range(&batch, "ranges", ip("224.0.0.0"), 3); /* up to the last address */
    nft_add_mapped_address(&batch, "translated", ip("10.0.0.1"), ip("10.0.0.2"));
    nft_add_mapped_chain(&batch, "judged", ip("10.0.0.1"), "plain");
    CHECK_EQUAL(nft_commit(&nft, &batch), 0);
    CHECK_EQUAL(nft_count_elements(&nft, "test", "addresses"), 2);
    CHECK_EQUAL(nft_count_elements(&nft, "test", "marks"), 1);
    CHECK_EQUAL(nft_count_elements(&nft, "test", "ranges"), 3);
    CHECK_EQUAL(nft_count_elements(&nft, "test", "none"), -ENOENT);
    CHECK_EQUAL(nft_has_address(&nft, "test", "judged", ip("10.0.0.1")), 1);
    CHECK_EQUAL(nft_has_address(&nft, "test", "judged", ip("10.0.0.2")), 0);
    CHECK_EQUAL(nft_has_address(&nft, "test", "addresses", ip("10.0.0.2")), 1);
    nft_flush_set(&change, "addresses");
    nft_add_address(&change, "addresses", ip("10.0.0.3"));
    nft_delete_mark(&change, "marks", 77);
    nft_delete_address(&change, "judged", ip("10.0.0.1"));
    nft_delete_chain(&change, "plain");
    CHECK_EQUAL(nft_commit(&nft, &change), 0);
    CHECK_EQUAL(nft_count_elements(&nft, "test", "addresses"), 1);
    CHECK_EQUAL(nft_has_address(&nft, "test", "addresses", ip("10.0.0.3")), 1);
    CHECK_EQUAL(nft_count_elements(&nft, "test", "marks"), 0);
}

static void sets_hold_what_was_added(void **state)
{
    (void) state;
    run_in_child(fill_sets, NEEDS_NFTABLES);
}

static void fail_halfway(void)
{
    AUTO(nft) struct nft nft = enter_network();
    AUTO(nft_batch) struct nft_batch batch = nft_batch("test");
    AUTO(nft_batch) struct nft_batch huge = nft_batch("test");
    AUTO(nft_batch) struct nft_batch after = nft_batch("test");

    nft_add_table(&batch);
    nft_add_chain(&batch, "forward", &hook);
    nft_delete_chain(&batch, "none");
    CHECK_EQUAL(nft_commit(&nft, &batch), -ENOENT);
    CHECK_EQUAL(see_chains(&nft).count, 0);
    nft_add_table(&huge);
    for (int i = 0; i < 4000; i++)
        nft_add_chain(&huge, "forward", &hook);
    CHECK_EQUAL(nft_commit(&nft, &huge), -EMSGSIZE);
    CHECK_EQUAL(see_chains(&nft).count, 0);
    nft_add_table(&after); /* the socket is still good */
    CHECK_EQUAL(nft_commit(&nft, &after), 0);
}

static void a_transaction_is_done_whole_or_not_at_all(void **state)
{
    (void) state;
    run_in_child(fail_halfway, NEEDS_NFTABLES);
}

static void apply_twice(void)
{
    AUTO(nft) struct nft nft = enter_network();
    AUTO(nft_batch) struct nft_batch batch = nft_batch("burrow");
    struct in_addr addresses[ROUTER_RESOLVERS_MAX + 1] = {ip("10.0.0.1"), ip("10.0.0.2")};
    struct router_network networks[] = {
        {ip("10.0.0.0"), 16}, {ip("10.0.0.0"), 8},     {ip("10.7.0.0"), 16},
        {ip("10.0.0.0"), 8},  {ip("192.0.2.128"), 25}, {ip("192.0.2.0"), 25},
    };
    struct router_host host = {addresses, 2, networks, ARRAY_COUNT(networks)};

    CHECK_EQUAL(router_rules_apply(&nft, "burrow", 5), 0);
    CHECK_EQUAL(see_chains(&nft).count, 5);
    nft_add_mark(&batch, ROUTER_SET_LIVE, 1 << 21);
    nft_add_chain(&batch, "s7", NULL);
    nft_rule_begin(&batch, "s7");
    nft_jump(&batch, ROUTER_CHAIN_WALLS);
    nft_rule_end(&batch);
    nft_add_mapped_chain(&batch, ROUTER_SET_POLICIES, ip("10.66.0.7"), "s7");
    CHECK_EQUAL(nft_commit(&nft, &batch), 0);
    CHECK_EQUAL(router_rules_set_host(&nft, "burrow", &host), 0);
    CHECK_EQUAL(router_rules_apply(&nft, "burrow", 6), 0);
    CHECK_EQUAL(see_chains(&nft).count, 5);
    CHECK_EQUAL(nft_count_elements(&nft, "burrow", ROUTER_SET_LIVE), 1);
    CHECK_EQUAL(nft_has_address(&nft, "burrow", ROUTER_SET_POLICIES, ip("10.66.0.7")), 1);
    CHECK_EQUAL(nft_count_elements(&nft, "burrow", "host"), 2);
    CHECK(nft_count_elements(&nft, "burrow", "neighbours") > 0);
    host.address_count = 1;
    host.network_count = 0;
    CHECK_EQUAL(router_rules_set_host(&nft, "burrow", &host), 0);
    CHECK_EQUAL(nft_count_elements(&nft, "burrow", "host"), 1);
    CHECK_EQUAL(nft_count_elements(&nft, "burrow", "neighbours"), 0);
    CHECK_EQUAL(router_rules_set_resolvers(&nft, &nft, "burrow", addresses, 4), -E2BIG);
}

static void rules_are_brought_up_to_date_around_what_sandboxes_have(void **state)
{
    (void) state;
    run_in_child(apply_twice, NEEDS_NFTABLES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_and_chains_come_and_go),
        cmocka_unit_test(sets_hold_what_was_added),
        cmocka_unit_test(a_transaction_is_done_whole_or_not_at_all),
        cmocka_unit_test(rules_are_brought_up_to_date_around_what_sandboxes_have),
    };

    return cmocka_run_group_tests_name("nft", tests, NULL, NULL);
}
