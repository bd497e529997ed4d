#include "launcher/network/network_policy.h"
#include "launcher/network/network_testing.h"
#include "launcher/network/nft.h"

#define REFUSED (-EHOSTUNREACH)

static void set_policy(const struct world *world, const struct sandbox *sandbox,
                       const struct network_policy *policy)
{
    struct error err = ERROR_INIT;

    if (network_set_policy(world->router, &sandbox->network, policy, &err) == 0)
        return;
    (void) fprintf(stderr, "network_set_policy: %s\n", err.message);
    _exit(1);
}

static struct network_prefix range(const char *address, uint8_t bits)
{
    return (struct network_prefix){.address = ntohl(ip(address).s_addr), .bits = bits};
}

static void open_one_service(void)
{
    struct world world = make_world();
    struct sandbox one = make_sandbox(&world), two = make_sandbox(&world);
    const struct network_rule rules[] = {
        {.allow = true, .to = range("10.9.9.9", 32), .protocol = NETWORK_TCP, .ports = {80, 80}},
        {.allow = true,
         .to = range("192.168.50.0", 24),
         .protocol = NETWORK_TCP,
         .ports = {70, 90}},
    };
    struct network_policy policy = {.rules = rules, .count = ARRAY_COUNT(rules)};
    struct error err = ERROR_INIT;
    char seen[SEEN_SIZE];

    CHECK_EQUAL(try_fetch(&world, one.inside, "10.9.9.9"), REFUSED);
    set_policy(&world, &one, &policy);
    CHECK_EQUAL(try_fetch(&world, one.inside, "10.9.9.9"), 200);
    CHECK_EQUAL(fetch(&world, one.inside, "10.9.9.9", 53, seen), REFUSED); /* another port */
    CHECK_EQUAL(ask_name(&world, one.inside, "10.9.9.9"), REFUSED);        /* another protocol */
    CHECK_EQUAL(try_fetch(&world, one.inside, "10.9.9.10"), REFUSED);      /* another address */
    CHECK_EQUAL(try_fetch(&world, one.inside, "192.168.50.5"), 200);
    CHECK_EQUAL(fetch(&world, one.inside, "192.168.50.5", 53, seen), REFUSED);
    CHECK_EQUAL(try_fetch(&world, one.inside, "25.0.113.10"), 200);  /* the default goes on */
    CHECK_EQUAL(ask_name(&world, one.inside, "169.254.1.1"), 0);     /* and names */
    CHECK_EQUAL(try_fetch(&world, two.inside, "10.9.9.9"), REFUSED); /* another sandbox */
    CHECK_EQUAL(network_clear_policy(world.router, &one.network, &err), 0);
    CHECK_EQUAL(try_fetch(&world, one.inside, "10.9.9.9"), REFUSED);
    CHECK_EQUAL(network_clear_policy(world.router, &one.network, &err), 0);
}

static void an_allowed_service_is_open_for_that_sandbox_only(void **state)
{
    (void) state;
    run_in_child(open_one_service, NEEDS_ROUTER);
}

static void close_addresses(void)
{
    struct world world = make_world();
    struct sandbox one = make_sandbox(&world);
    const struct network_rule rules[] = {
        {.allow = true,
         .to = range("25.0.113.10", 32),
         .protocol = NETWORK_TCP,
         .ports = NETWORK_PORTS_ALL},
        {.to = range("25.0.113.0", 24), .ports = NETWORK_PORTS_ALL},
    };
    struct network_policy policy = {.rules = rules, .count = 2};

    CHECK_EQUAL(try_fetch(&world, one.inside, "25.0.113.53"), 200);
    set_policy(&world, &one, &policy);
    CHECK_EQUAL(try_fetch(&world, one.inside, "25.0.113.53"), REFUSED);
    CHECK_EQUAL(try_fetch(&world, one.inside, "25.0.113.10"), 200); /* the first match decides */
    CHECK_EQUAL(try_fetch(&world, one.inside, "25.51.100.7"), 200);
    policy.only_listed = true;
    set_policy(&world, &one, &policy);
    CHECK_EQUAL(try_fetch(&world, one.inside, "25.0.113.10"), 200);
    CHECK_EQUAL(try_fetch(&world, one.inside, "25.51.100.7"), REFUSED);
    CHECK_EQUAL(ask_name(&world, one.inside, "169.254.1.1"), 0);
    policy.no_names = true;
    set_policy(&world, &one, &policy);
    CHECK_EQUAL(ask_name(&world, one.inside, "169.254.1.1"), REFUSED);
    policy.rules = &rules[1];
    policy.count = 1;
    set_policy(&world, &one, &policy);
    CHECK_EQUAL(try_fetch(&world, one.inside, "25.0.113.10"), REFUSED);
}

static void a_denied_network_is_closed_and_the_first_rule_decides(void **state)
{
    (void) state;
    run_in_child(close_addresses, NEEDS_ROUTER);
}

/* A rule for everything there is, as a daemon that was taken over would send it. */
static void open_everything(void)
{
    static const char *const closed[] = {"169.254.169.254", "100.100.100.200", "192.0.2.2",
                                         "25.7.7.2", "198.18.254.0"};
    struct world world = make_world();
    struct sandbox one = make_sandbox(&world), two = make_sandbox(&world);
    const struct network_rule everything = {.allow = true, .ports = NETWORK_PORTS_ALL};
    struct network_policy policy = {.rules = &everything, .count = 1};
    char address[INET_ADDRSTRLEN];

    CHECK_EQUAL(network_namespace_enter(two.inside), 0);
    start_server();
    network_namespace_return(world.host);
    (void) inet_ntop(AF_INET, &two.network.address, address, sizeof(address));
    set_policy(&world, &one, &policy);
    CHECK_EQUAL(try_fetch(&world, one.inside, "10.9.9.9"), 200);
    for (size_t i = 0; i < ARRAY_COUNT(closed); i++)
        CHECK_EQUAL(try_fetch(&world, one.inside, closed[i]), REFUSED);
    CHECK_EQUAL(try_fetch(&world, one.inside, "169.254.1.1"), -ETIMEDOUT);
    CHECK_EQUAL(try_fetch(&world, one.inside, address), -ETIMEDOUT);
}

static void no_rule_opens_host_metadata_or_other_sandboxes(void **state)
{
    (void) state;
    run_in_child(open_everything, NEEDS_ROUTER);
}

static bool echoes(int fd, int timeout_ms)
{
    char byte;

    return send(fd, "x", 1, MSG_NOSIGNAL) == 1 && sys_file_poll(fd, POLLIN, timeout_ms) > 0 &&
           recv(fd, &byte, 1, 0) == 1;
}

static void recheck_connections(void)
{
    struct world world = make_world();
    struct sandbox one = make_sandbox(&world);
    AUTO(close) int kept = connect_from(&world, one.inside, "25.0.113.10", 81);
    AUTO(close) int cut = connect_from(&world, one.inside, "25.0.113.53", 81);
    const struct network_rule rule = {.to = range("25.0.113.53", 32), .ports = NETWORK_PORTS_ALL};
    struct network_policy policy = {.rules = &rule, .count = 1};
    struct error err = ERROR_INIT;

    CHECK(kept >= 0 && cut >= 0);
    CHECK_EQUAL(network_connections(world.router, &one.network, &err), 2);
    set_policy(&world, &one, &policy);
    /* Both are older than the rule. */
    CHECK(echoes(kept, ANSWER_MS) && echoes(cut, ANSWER_MS));
    CHECK_EQUAL(network_recheck(world.router, &one.network, &err), 0);
    CHECK_EQUAL(network_connections(world.router, &one.network, &err), 0);
    CHECK(echoes(kept, ANSWER_MS));
    CHECK(!echoes(cut, 2 * PATIENCE_MS));
}

static void existing_connections_are_judged_again_on_demand(void **state)
{
    (void) state;
    run_in_child(recheck_connections, NEEDS_ROUTER);
}

static void check_refused(const struct world *world, const struct sandbox *sandbox,
                          struct network_rule rule, size_t count)
{
    struct network_rule many[NETWORK_RULES_MAX + 1];
    struct network_policy policy = {.rules = many, .count = count};
    struct error err = ERROR_INIT;

    for (size_t i = 0; i < ARRAY_COUNT(many); i++)
        many[i] = rule;
    CHECK_EQUAL(network_set_policy(world->router, &sandbox->network, &policy, &err), -1);
    CHECK_EQUAL(err.code, ERR_INVALID);
}

static struct network_rule for_all_ports(struct network_rule rule)
{
    rule.ports = NETWORK_PORTS_ALL;
    return rule;
}

static void refuse_policies(void)
{
    struct world world = make_world();
    struct sandbox one = make_sandbox(&world);
    struct network_rule rules[NETWORK_RULES_MAX];
    struct network_policy policy = {.rules = rules, .count = NETWORK_RULES_MAX};

    check_refused(&world, &one, for_all_ports((struct network_rule){.to.bits = 33}), 1);
    check_refused(&world, &one, for_all_ports((struct network_rule){.protocol = 17}), 1);
    check_refused(&world, &one, (struct network_rule){.ports = {1, 2}}, 1);
    check_refused(&world, &one, (struct network_rule){.protocol = NETWORK_TCP, .ports = {9, 0}}, 1);
    check_refused(&world, &one, (struct network_rule){.protocol = NETWORK_UDP, .ports = {0, 9}}, 1);
    check_refused(&world, &one, (struct network_rule){.protocol = NETWORK_UDP, .ports = {0, 0}}, 1);
    check_refused(&world, &one, for_all_ports((struct network_rule){.to.bits = 0}),
                  NETWORK_RULES_MAX + 1);
    CHECK_EQUAL(nft_count_elements(&world.router->filter, world.router->name, "policies"), 0);
    for (size_t i = 0; i < ARRAY_COUNT(rules); i++)
        rules[i] = (struct network_rule){
            .to = range("25.51.100.7", 25), .protocol = NETWORK_TCP, .ports = {1, 1000}};
    set_policy(&world, &one, &policy); /* the longest one fits */
    CHECK_EQUAL(nft_count_elements(&world.router->filter, world.router->name, "policies"), 1);
    CHECK_EQUAL(try_fetch(&world, one.inside, "25.51.100.7"), REFUSED);
}

static void impossible_rules_are_refused(void **state)
{
    (void) state;
    run_in_child(refuse_policies, NEEDS_ROUTER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allowed_service_is_open_for_that_sandbox_only),
        cmocka_unit_test(a_denied_network_is_closed_and_the_first_rule_decides),
        cmocka_unit_test(no_rule_opens_host_metadata_or_other_sandboxes),
        cmocka_unit_test(existing_connections_are_judged_again_on_demand),
        cmocka_unit_test(impossible_rules_are_refused),
    };

    return cmocka_run_group_tests_name("network_policy", tests, NULL, NULL);
}
