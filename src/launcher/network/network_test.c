/* What a sandbox reaches and what not: every wall is tried with the rules gone first, so that a
 * refusal is known to be theirs. */
#include "launcher/network/network.h"
#include "launcher/network/network_testing.h"
#include "launcher/network/nft.h"
#include "sys/process/sys_clone.h"

#define REFUSED (-EHOSTUNREACH)
#define LOST    (-ETIMEDOUT)

/* Without our tables nothing translates addresses, so the way back needs routes. */
static void add_routes_back(struct world *world)
{
    AUTO(netlink) struct sys_netlink far = SYS_NETLINK_INIT;
    struct sys_netlink_route on_host = {
        .destination = ip("10.66.0.0"), .prefix = 16, .gateway = world->router->address};
    struct sys_netlink_route in_internet = {
        .destination = ip("10.66.0.0"), .prefix = 16, .gateway = ip("25.7.7.2"), .index = 11};

    on_host.index = sys_netlink_find(&world->router->host_links, world->router->name);
    CHECK_EQUAL(sys_netlink_add_route(&world->router->host_links, &on_host), 0);
    CHECK_EQUAL(network_namespace_enter(world->internet), 0);
    CHECK_EQUAL(sys_netlink_open(&far), 0);
    network_namespace_return(world->host);
    CHECK_EQUAL(sys_netlink_add_route(&far, &in_internet), 0);
}

static void delete_table(struct nft *nft, const char *name)
{
    AUTO(nft_batch) struct nft_batch batch = nft_batch(name);

    nft_delete_table(&batch);
    CHECK_EQUAL(nft_commit(nft, &batch), 0);
}

static void remove_walls(struct world *world)
{
    delete_table(&world->router->filter, world->router->name);
    delete_table(&world->router->host_filter, world->router->name);
}

/* As a restarted launcher does. */
static void restore_walls(struct world *world)
{
    router_free(world->router);
    open_router(world);
}

static const struct {
    const char *what;
    const char *address;
    int open;   /* what happens without rules */
    int closed; /* ... and with them */
} destinations[] = {
    {"the internet", "25.0.113.10", 200, 200},
    {"another public address", "25.51.100.7", 200, 200},
    {"a private network", "10.9.9.9", 200, REFUSED},
    {"another private network", "192.168.50.5", 200, REFUSED},
    {"carrier NAT", "100.64.0.9", 200, REFUSED},
    {"metadata", "169.254.169.254", 200, REFUSED},
    {"metadata elsewhere", "100.100.100.200", 200, REFUSED},
    {"the next machine on the host's link", "25.7.7.1", 200, REFUSED},
    {"a network for documentation", "203.0.113.77", 200, REFUSED},
    {"the host's public address", "192.0.2.2", 200, REFUSED},
    {"the host's address in the network", "25.7.7.2", 200, REFUSED},
    {"the host's end of the uplink", "198.18.254.0", 200, REFUSED},
    /* Nobody listens there: that we are told so means that the packet arrived. */
    {"the router's end of the uplink", "198.18.254.1", -ECONNREFUSED, LOST},
    {"the router", "169.254.1.1", -ECONNREFUSED, LOST},
};

static void check_destinations(const struct world *world, int from, bool walls)
{
    for (size_t i = 0; i < ARRAY_COUNT(destinations); i++) {
        int expected = walls ? destinations[i].closed : destinations[i].open;
        int result = try_fetch(world, from, destinations[i].address);

        if (result == expected)
            continue;
        (void) fprintf(stderr, "%s (%s), walls %s: %d, expected %d\n", destinations[i].what,
                       destinations[i].address, walls ? "on" : "off", result, expected);
        _exit(1);
    }
}

static void try_destinations(void)
{
    struct world world = make_world();
    struct sandbox one = make_sandbox(&world);
    char seen[SEEN_SIZE];

    add_routes_back(&world);
    CHECK_EQUAL(fetch(&world, one.inside, "25.0.113.10", 80, seen), 200);
    CHECK(strcmp(seen, "25.7.7.2") == 0); /* translated twice */
    remove_walls(&world);
    check_destinations(&world, one.inside, false);
    restore_walls(&world);
    check_destinations(&world, one.inside, true);
}

static void only_the_internet_is_reachable(void **state)
{
    (void) state;
    run_in_child(try_destinations, NEEDS_ROUTER);
}

static void try_neighbours(void)
{
    struct world world = make_world();
    struct sandbox one = make_sandbox(&world), two = make_sandbox(&world);
    char address[INET_ADDRSTRLEN];

    CHECK_EQUAL(network_namespace_enter(two.inside), 0);
    start_server();
    network_namespace_return(world.host);
    add_routes_back(&world);
    (void) inet_ntop(AF_INET, &two.network.address, address, sizeof(address));
    remove_walls(&world);
    CHECK_EQUAL(try_fetch(&world, one.inside, address), 200);
    CHECK_EQUAL(try_fetch(&world, world.internet, address), 200);
    CHECK_EQUAL(try_fetch(&world, world.host, address), 200);
    restore_walls(&world);
    CHECK_EQUAL(try_fetch(&world, one.inside, address), LOST);
    CHECK_EQUAL(try_fetch(&world, world.internet, address), LOST);
    CHECK_EQUAL(try_fetch(&world, world.host, address), LOST);
    /* On the host's side alone, and on the router's side alone. */
    delete_table(&world.router->filter, world.router->name);
    CHECK_EQUAL(try_fetch(&world, world.internet, address), LOST);
    restore_walls(&world);
    delete_table(&world.router->host_filter, world.router->name);
    CHECK_EQUAL(try_fetch(&world, world.internet, address), LOST);
}

static void nobody_reaches_a_sandbox(void **state)
{
    (void) state;
    run_in_child(try_neighbours, NEEDS_ROUTER);
}

/* Does a packet of `from` that pretends to be `source` arrive in the internet? */
static bool forged_packet_arrives(const struct world *world, int from, struct in_addr source)
{
    AUTO(netlink) struct sys_netlink netlink = SYS_NETLINK_INIT;
    AUTO(close) int receiver = -EBADF, sender = -EBADF;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(99)};
    struct sockaddr_in forged = {.sin_family = AF_INET, .sin_addr = source};
    int result;

    to.sin_addr = ip("25.0.113.10");
    CHECK_EQUAL(network_namespace_enter(world->internet), 0);
    receiver = serve_socket(SOCK_DGRAM, 99);
    CHECK_EQUAL(network_namespace_enter(from), 0);
    CHECK_EQUAL(sys_netlink_open(&netlink), 0);
    result = sys_netlink_add_address(&netlink, 1, source, 32);
    CHECK(result == 0 || result == -EEXIST);
    sender = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    network_namespace_return(world->host);
    CHECK_EQUAL(bind(sender, (struct sockaddr *) &forged, sizeof(forged)), 0);
    CHECK_EQUAL(sendto(sender, "forged", 6, 0, (struct sockaddr *) &to, sizeof(to)), 6);
    return sys_file_poll(receiver, POLLIN, PATIENCE_MS) > 0;
}

static void set_reverse_path_filter(const struct world *world, const struct sandbox *sandbox,
                                    const char *value)
{
    char path[64];

    (void) snprintf(path, sizeof(path), "net/ipv4/conf/s%u/rp_filter",
                    sandbox->network.slot.number);
    CHECK_EQUAL(network_namespace_enter(world->router->inside), 0);
    CHECK_EQUAL(network_namespace_set("net/ipv4/conf/all/rp_filter", value), 0);
    CHECK_EQUAL(network_namespace_set(path, value), 0);
    network_namespace_return(world->host);
}

static void try_forged_sources(void)
{
    struct world world = make_world();
    struct sandbox one = make_sandbox(&world), two = make_sandbox(&world);

    add_routes_back(&world);
    CHECK(forged_packet_arrives(&world, one.inside, one.network.address));
    CHECK(!forged_packet_arrives(&world, one.inside, two.network.address));
    CHECK(!forged_packet_arrives(&world, one.inside, ip("192.0.2.77")));
    set_reverse_path_filter(&world, &one, "0"); /* the rule alone */
    CHECK(!forged_packet_arrives(&world, one.inside, two.network.address));
    CHECK(!forged_packet_arrives(&world, one.inside, router_rules_address(0)));
    remove_walls(&world);
    CHECK(forged_packet_arrives(&world, one.inside, two.network.address));
    set_reverse_path_filter(&world, &one, "1"); /* the setting alone */
    CHECK(!forged_packet_arrives(&world, one.inside, two.network.address));
}

static void forged_sources_are_dropped(void **state)
{
    (void) state;
    run_in_child(try_forged_sources, NEEDS_ROUTER);
}

static void try_names(void)
{
    struct world world = make_world();
    struct sandbox one = make_sandbox(&world);
    struct error err = ERROR_INIT;
    char seen[SEEN_SIZE];

    CHECK_EQUAL(router_resolvers(world.router)->count, 2);
    CHECK_EQUAL(ask_name(&world, one.inside, "169.254.1.1"), 0);
    CHECK_EQUAL(ask_name(&world, one.inside, "169.254.1.2"), 0);
    CHECK_EQUAL(fetch(&world, one.inside, "169.254.1.1", 53, seen), 200);
    CHECK_EQUAL(ask_name(&world, one.inside, "169.254.1.3"), REFUSED);
    /* The server itself stays behind the wall, on every other port and directly. */
    CHECK_EQUAL(ask_name(&world, one.inside, "10.255.0.53"), REFUSED);
    CHECK_EQUAL(try_fetch(&world, one.inside, "10.255.0.53"), REFUSED);
    write_resolvers("nameserver 192.0.2.2\n"); /* the host itself */
    CHECK_EQUAL(router_refresh(world.router, &err), 0);
    CHECK_EQUAL(ask_name(&world, one.inside, "169.254.1.1"), 0);
    CHECK_EQUAL(ask_name(&world, one.inside, "169.254.1.2"), REFUSED);
    CHECK_EQUAL(try_fetch(&world, one.inside, "192.0.2.2"), REFUSED);
    write_resolvers("nameserver 127.0.0.53\n");
    CHECK_EQUAL(router_refresh(world.router, &err), 0);
    CHECK_EQUAL(router_resolvers(world.router)->count, 0);
    CHECK(strstr(router_resolvers(world.router)->reason, "loopback"));
    CHECK_EQUAL(ask_name_within(&world, one.inside, "169.254.1.1", PATIENCE_MS), LOST);
}

static void names_are_asked_through_the_router(void **state)
{
    (void) state;
    run_in_child(try_names, NEEDS_ROUTER);
}

static void try_new_host_address(void)
{
    struct world world = make_world();
    struct sandbox one = make_sandbox(&world);
    struct error err = ERROR_INIT;

    CHECK_EQUAL(sys_file_poll(router_watch(world.router), POLLIN, 0), 0);
    CHECK_EQUAL(sys_netlink_add_address(&world.router->host_links, 1, ip("25.51.100.99"), 32), 0);
    /* The rules on the host need no refresh, they only make the sandbox wait. */
    CHECK_EQUAL(try_fetch(&world, one.inside, "25.51.100.99"), LOST);
    CHECK_EQUAL(sys_file_poll(router_watch(world.router), POLLIN, ANSWER_MS), POLLIN);
    CHECK_EQUAL(router_refresh(world.router, &err), 0);
    CHECK_EQUAL(try_fetch(&world, one.inside, "25.51.100.99"), REFUSED);
    CHECK_EQUAL(sys_file_poll(router_watch(world.router), POLLIN, 0), 0);
    /* With its network come neighbours. */
    CHECK_EQUAL(try_fetch(&world, one.inside, "25.51.100.7"), 200);
    CHECK_EQUAL(sys_netlink_add_address(&world.router->host_links, 10, ip("25.51.100.8"), 24), 0);
    CHECK_EQUAL(router_refresh(world.router, &err), 0);
    CHECK_EQUAL(try_fetch(&world, one.inside, "25.51.100.7"), REFUSED);
    CHECK_EQUAL(try_fetch(&world, one.inside, "25.0.113.10"), 200);
}

static void lose_host_table(void)
{
    struct world world = make_world();
    struct sandbox one = make_sandbox(&world);
    struct error err = ERROR_INIT;

    delete_table(&world.router->host_filter, world.router->name);
    CHECK_EQUAL(try_fetch(&world, one.inside, "25.0.113.10"), LOST);
    CHECK_EQUAL(router_refresh(world.router, &err), 0);
    CHECK_EQUAL(try_fetch(&world, one.inside, "25.0.113.10"), 200);
    CHECK_EQUAL(ask_name(&world, one.inside, "169.254.1.1"), 0);
}

static void a_flushed_table_on_the_host_comes_back(void **state)
{
    (void) state;
    run_in_child(lose_host_table, NEEDS_ROUTER);
}

static void new_addresses_of_the_host_are_closed_too(void **state)
{
    (void) state;
    run_in_child(try_new_host_address, NEEDS_ROUTER);
}

/* Every connection up to the limit, then none, then again when they are closed. */
static void check_limit(const struct world *world, int from, int limit)
{
    int fds[64];

    for (int i = 0; i < limit; i++) {
        fds[i] = connect_from(world, from, "25.0.113.10", 81);
        CHECK(fds[i] >= 0);
    }
    CHECK_EQUAL(connect_from(world, from, "25.0.113.10", 81), REFUSED);
    for (int i = 0; i < limit; i++)
        (void) close(fds[i]);
    for (int i = 0; i < 1000 && (fds[0] = connect_from(world, from, "25.0.113.10", 81)) < 0; i++)
        (void) usleep(10000);
    CHECK(fds[0] >= 0);
    (void) close(fds[0]);
}

static void try_limits(void)
{
    struct world world = make_world();
    struct sandbox one = make_sandbox(&world), two = make_sandbox(&world);
    struct network_policy few = {.connections = 3};
    struct error err = ERROR_INIT;

    check_limit(&world, one.inside, 8);
    CHECK_EQUAL(network_set_policy(world.router, &two.network, &few, &err), 0);
    check_limit(&world, two.inside, 3);
}

static void connections_are_limited_per_sandbox(void **state)
{
    (void) state;
    run_in_child(try_limits, NEEDS_ROUTER);
}

/* Inside: ::1 and nothing else of IPv6. */
static void try_ipv6(void)
{
    struct world world = make_world();
    struct sandbox one = make_sandbox(&world);
    AUTO(free) char *table = NULL;
    size_t length;

    CHECK_EQUAL(network_namespace_enter(one.inside), 0);
    if (access("/proc/net/if_inet6", F_OK) < 0)
        _exit(CHILD_UNABLE);
    CHECK_EQUAL(sys_file_read_all(AT_FDCWD, "/proc/net/if_inet6", 4096, &table, &length), 0);
    CHECK(strstr(table, "00000000000000000000000000000001"));
    CHECK(!strstr(table, "eth0"));
    network_namespace_return(world.host);
}

static void only_loopback_has_ipv6_inside(void **state)
{
    (void) state;
    run_in_child(try_ipv6, NEEDS_ROUTER " and IPv6");
}

/* As the launcher makes them: in a user namespace of its own, which owns the network namespace. */
static void try_user_namespace(void)
{
    struct world world = make_world();
    struct sys_clone how = {.flags = CLONE_NEWUSER | CLONE_NEWNET, .exit_signal = SIGCHLD};
    struct error err = ERROR_INIT;
    struct network network;
    struct id id = id_new();
    AUTO(close) int inside = -EBADF;
    pid_t pid = sys_clone(&how);

    if (pid == -EPERM || pid == -ENOSPC)
        _exit(CHILD_UNABLE);
    CHECK(pid >= 0);
    if (pid == 0) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            (void) pause();
    }
    inside = sys_namespace_open(pid, "net");
    CHECK_EQUAL(network_attach(world.router, &id, inside, &network, &err), 0);
    CHECK_EQUAL(try_fetch(&world, inside, "25.0.113.10"), 200);
    CHECK_EQUAL(kill(pid, SIGKILL), 0);
}

static void a_namespace_of_another_user_namespace_is_joined(void **state)
{
    (void) state;
    run_in_child(try_user_namespace, NEEDS_ROUTER " and user namespaces");
}

static void try_loopback(void)
{
    struct world world = {.host = -1};

    if (geteuid() != 0)
        _exit(CHILD_UNABLE);
    world.host = enter_new_network();
    start_server();
    CHECK_EQUAL(try_fetch(&world, world.host, "127.0.0.1"), 200);
    CHECK_EQUAL(try_fetch(&world, world.host, "25.0.113.10"), -ENETUNREACH);
}

static void without_a_network_only_loopback_works(void **state)
{
    (void) state;
    run_in_child(try_loopback, NEEDS_ROUTER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_network_only_loopback_works),
        cmocka_unit_test(only_the_internet_is_reachable),
        cmocka_unit_test(nobody_reaches_a_sandbox),
        cmocka_unit_test(forged_sources_are_dropped),
        cmocka_unit_test(names_are_asked_through_the_router),
        cmocka_unit_test(new_addresses_of_the_host_are_closed_too),
        cmocka_unit_test(a_flushed_table_on_the_host_comes_back),
        cmocka_unit_test(connections_are_limited_per_sandbox),
        cmocka_unit_test(only_loopback_has_ipv6_inside),
        cmocka_unit_test(a_namespace_of_another_user_namespace_is_joined),
    };

    return cmocka_run_group_tests_name("network", tests, NULL, NULL);
}
