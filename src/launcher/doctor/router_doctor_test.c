#include "launcher/doctor/router_doctor.h"
#include "sys/sys_test.h"

/* The statics are tested too. */
#include "launcher/doctor/router_doctor.c"

#define NEEDS_NFTABLES "network namespaces with nftables (root)"

#define RESOLVER "/tmp/resolv.conf"

static void enter_network(void)
{
    enter_private_mounts();
    if (unshare(CLONE_NEWNET) < 0)
        _exit(CHILD_UNABLE);
    CHECK_EQUAL(sys_file_replace(AT_FDCWD, RESOLVER, "nameserver 192.0.2.1\n", 21, 0644), 0);
}

static void add_forward(struct nft *nft, const char *table, int number, int policy)
{
    AUTO(nft_batch) struct nft_batch batch = nft_batch(table);
    struct nft_hook hook = {"filter", number, NF_IP_PRI_FILTER, policy};

    nft_add_table(&batch);
    nft_add_chain(&batch, "chain", &hook);
    CHECK_EQUAL(nft_commit(nft, &batch), 0);
}

static void find_foreign_chains(void)
{
    AUTO(text) struct text report = TEXT_INIT(ROUTER_DOCTOR_MAX);
    AUTO(nft) struct nft nft = NFT_INIT;

    enter_network();
    CHECK_EQUAL(nft_open(&nft), 0);
    add_forward(&nft, "burrow", NF_INET_FORWARD, NF_DROP); /* ours */
    add_forward(&nft, "friendly", NF_INET_FORWARD, NF_ACCEPT);
    add_forward(&nft, "other", NF_INET_LOCAL_IN, NF_DROP); /* another hook */
    router_doctor("burrow", RESOLVER, RESOLVER, &report);
    CHECK_EQUAL(report.length, 0);
    add_forward(&nft, "firewall", NF_INET_FORWARD, NF_DROP);
    router_doctor("burrow", RESOLVER, RESOLVER, &report);
    CHECK(strstr(text_string(&report), "chain inet firewall chain is drop"));
    CHECK(
        strstr(text_string(&report), "nft insert rule inet firewall chain iifname burrow accept"));
    CHECK(strchr(report.data, '\n') == report.data + report.length - 1); /* one line */
}

static void a_foreign_chain_that_drops_is_reported_with_a_remedy(void **state)
{
    (void) state;
    run_in_child(find_foreign_chains, NEEDS_NFTABLES);
}

static void chains_of_iptables_get_advice_for_iptables(void **state)
{
    AUTO(text) struct text report = TEXT_INIT(ROUTER_DOCTOR_MAX);
    struct search search = {.name = "burrow", .report = &report};
    struct nft_base_chain chain = {.family = NFPROTO_IPV4,
                                   .table = "filter",
                                   .name = "FORWARD",
                                   .hook = NF_INET_FORWARD,
                                   .policy = NF_DROP};

    (void) state;
    look_at_chain(&search, &chain);
    assert_non_null(strstr(text_string(&report), "iptables -I FORWARD -i burrow -j ACCEPT"));
    text_clear(&report);
    chain.family = NFPROTO_IPV6;
    look_at_chain(&search, &chain);
    assert_int_equal(report.length, 0);
}

/* Set the policy of the old FORWARD chain as iptables-legacy does: read the table, change one
 * verdict, write it back. */
static void set_legacy_policy(int verdict)
{
    AUTO(close) int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
    struct ipt_getinfo info = {.name = "filter"};
    AUTO(free) struct ipt_get_entries *entries = NULL;
    AUTO(free) struct ipt_replace *replace = NULL;
    AUTO(free) struct xt_counters *counters = NULL;
    struct xt_standard_target *target;
    struct ipt_entry *entry;
    socklen_t size = sizeof(info);

    if (getsockopt(fd, IPPROTO_IP, IPT_SO_GET_INFO, &info, &size) < 0)
        _exit(CHILD_UNABLE);
    size = (socklen_t) (sizeof(*entries) + info.size);
    entries = mem_alloc(size);
    replace = mem_alloc(sizeof(*replace) + info.size);
    counters = mem_alloc_array(info.num_entries, sizeof(*counters));
    memcpy(entries->name, info.name, sizeof(entries->name));
    entries->size = info.size;
    CHECK_EQUAL(getsockopt(fd, IPPROTO_IP, IPT_SO_GET_ENTRIES, entries, &size), 0);
    memcpy(replace->name, info.name, sizeof(replace->name));
    memcpy(replace->entries, entries->entrytable, info.size);
    memcpy(replace->hook_entry, info.hook_entry, sizeof(info.hook_entry));
    memcpy(replace->underflow, info.underflow, sizeof(info.underflow));
    replace->valid_hooks = info.valid_hooks;
    replace->num_entries = replace->num_counters = info.num_entries;
    replace->size = info.size;
    replace->counters = counters;
    entry = (void *) ((char *) replace->entries + info.underflow[NF_INET_FORWARD]);
    target = (void *) ((char *) entry + entry->target_offset);
    target->verdict = -verdict - 1;
    CHECK_EQUAL(setsockopt(fd, IPPROTO_IP, IPT_SO_SET_REPLACE, replace,
                           (socklen_t) (sizeof(*replace) + info.size)),
                0);
}

static void find_legacy_policy(void)
{
    AUTO(text) struct text report = TEXT_INIT(ROUTER_DOCTOR_MAX);

    enter_network();
    set_legacy_policy(NF_ACCEPT);
    router_doctor("burrow", RESOLVER, RESOLVER, &report);
    CHECK_EQUAL(report.length, 0);
    set_legacy_policy(NF_DROP);
    router_doctor("burrow", RESOLVER, RESOLVER, &report);
    CHECK(strstr(text_string(&report), "iptables-legacy -I FORWARD -i burrow -j ACCEPT"));
}

static void the_old_iptables_is_looked_at_too(void **state)
{
    (void) state;
    run_in_child(find_legacy_policy, NEEDS_NFTABLES " and the old iptables");
}

static void report_names(void)
{
    AUTO(text) struct text report = TEXT_INIT(ROUTER_DOCTOR_MAX);

    enter_network();
    CHECK_EQUAL(sys_file_replace(AT_FDCWD, RESOLVER, "nameserver 127.0.0.1\n", 21, 0644), 0);
    router_doctor("burrow", RESOLVER, RESOLVER, &report);
    CHECK(strstr(text_string(&report), "cannot resolve names: the host's name server listens on"));
}

static void a_name_server_that_cannot_be_reached_is_reported(void **state)
{
    (void) state;
    run_in_child(report_names, NEEDS_NFTABLES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_foreign_chain_that_drops_is_reported_with_a_remedy),
        cmocka_unit_test(chains_of_iptables_get_advice_for_iptables),
        cmocka_unit_test(the_old_iptables_is_looked_at_too),
        cmocka_unit_test(a_name_server_that_cannot_be_reached_is_reported),
    };

    return cmocka_run_group_tests_name("router_doctor", tests, NULL, NULL);
}
