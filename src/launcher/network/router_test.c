/* The life of router and sandbox networks: made, adopted, finished, removed. */
#include <sys/wait.h>

#include "launcher/network/network_testing.h"
#include "launcher/network/nft.h"
#include "launcher/network/router.h"

#define MANY 200

static void count_link(void *context, const struct sys_netlink_link *link)
{
    (void) link;
    ++*(int *) context;
}

static int count_links(struct sys_netlink *netlink)
{
    int count = 0;

    CHECK_EQUAL(sys_netlink_each_link(netlink, count_link, &count), 0);
    return count;
}

static void count_network(void *context, const struct network *network)
{
    CHECK(id_is_valid(network->slot.id.text));
    ++*(int *) context;
}

static int count_networks(struct world *world)
{
    struct error err = ERROR_INIT;
    int count = 0;

    CHECK_EQUAL(network_list(world->router, count_network, &count, &err), 0);
    return count;
}

/* Until the kernel has deleted the link; some seconds on a machine that has much to do. */
static void finish(struct world *world, const struct network *network)
{
    struct error err = ERROR_INIT;
    int result = 0;

    for (int i = 0; i < 1000 && result == 0; i++) {
        result = network_finish(world->router, network, &err);
        if (result == 0)
            (void) usleep(10000);
    }
    CHECK_EQUAL(result, 1);
}

static int compare_numbers(const void *left, const void *right)
{
    int64_t a = *(const int64_t *) left, b = *(const int64_t *) right;

    return (a > b) - (a < b);
}

static int64_t now_us(void)
{
    struct timespec now;

    CHECK_EQUAL(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

/* Attach `count` sandboxes and say how long one took. */
static void make_many(struct world *world, struct sandbox *sandboxes, size_t count)
{
    int64_t times[MANY];

    for (size_t i = 0; i < count; i++) {
        struct error err = ERROR_INIT;
        struct id id = id_new();
        int64_t begin;

        CHECK_EQUAL(sys_namespace_unshare(CLONE_NEWNET), 0);
        sandboxes[i].inside = sys_namespace_open(0, "net");
        network_namespace_return(world->host);
        begin = now_us();
        CHECK_EQUAL(
            network_attach(world->router, &id, sandboxes[i].inside, &sandboxes[i].network, &err),
            0);
        times[i] = now_us() - begin;
    }
    qsort(times, count, sizeof(times[0]), compare_numbers);
    (void) printf("# network_attach: median %lld us, worst of %zu %lld us\n",
                  (long long) times[count / 2], count, (long long) times[count - 1]);
    (void) fflush(stdout);
}

static void make_and_remove_many(void)
{
    struct world world = make_world();
    struct sandbox sandboxes[MANY];
    struct network_policy policy = {.only_listed = true};
    struct error err = ERROR_INIT;
    int links = count_links(&world.router->links);

    make_many(&world, sandboxes, MANY);
    CHECK_EQUAL(count_links(&world.router->links), links + MANY);
    CHECK_EQUAL(count_networks(&world), MANY);
    CHECK_EQUAL(try_fetch(&world, sandboxes[MANY - 1].inside, "25.0.113.10"), 200);
    for (int i = 0; i < MANY; i += 2)
        CHECK_EQUAL(network_set_policy(world.router, &sandboxes[i].network, &policy, &err), 0);
    CHECK_EQUAL(nft_count_elements(&world.router->filter, "burrow", "policies"), MANY / 2);
    CHECK_EQUAL(network_finish(world.router, &sandboxes[0].network, &err), 0); /* it lives */
    CHECK_EQUAL(try_fetch(&world, sandboxes[0].inside, "25.0.113.10"), -EHOSTUNREACH);
    for (int i = 0; i < MANY; i++)
        (void) close(sandboxes[i].inside);
    for (int i = 0; i < MANY; i++)
        finish(&world, &sandboxes[i].network);
    CHECK_EQUAL(count_links(&world.router->links), links);
    CHECK_EQUAL(count_networks(&world), 0);
    CHECK_EQUAL(nft_count_elements(&world.router->filter, "burrow", "policies"), 0);
    CHECK_EQUAL(nft_count_elements(&world.router->filter, "burrow", "live"), 0);
}

static void two_hundred_sandboxes_come_and_go_without_a_trace(void **state)
{
    (void) state;
    run_in_child(make_and_remove_many, NEEDS_ROUTER);
}

/* A launcher that makes a sandbox with a policy and is killed; the namespace is held by us, as by
 * the sandbox's processes. */
static void attach_and_die(struct world *world, int inside, const struct id *id)
{
    pid_t pid = fork();
    int status;

    CHECK(pid >= 0);
    if (pid == 0) {
        const struct network_rule rule = {
            .allow = true, .to = {0x0a090909, 32}, .ports = NETWORK_PORTS_ALL};
        struct network_policy policy = {.rules = &rule, .count = 1, .only_listed = true};
        struct network network;
        struct error err = ERROR_INIT;

        open_router(world);
        CHECK_EQUAL(network_attach(world->router, id, inside, &network, &err), 0);
        CHECK_EQUAL(network_set_policy(world->router, &network, &policy, &err), 0);
        (void) kill(getpid(), SIGKILL);
    }
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status));
}

static void restart(void)
{
    struct world world = make_world();
    struct sandbox one = {.inside = -1};
    struct id id = id_new(), other = id_new();
    struct network network;
    struct error err = ERROR_INIT;
    AUTO(close) int connection = -EBADF;

    router_free(world.router); /* all that is left now is in the kernel and the state folder */
    CHECK_EQUAL(sys_namespace_unshare(CLONE_NEWNET), 0);
    one.inside = sys_namespace_open(0, "net");
    network_namespace_return(world.host);
    attach_and_die(&world, one.inside, &id);
    connection = connect_from(&world, one.inside, "10.9.9.9", 81);
    CHECK(connection >= 0); /* while there is no launcher at all */
    open_router(&world);
    CHECK_EQUAL(network_adopt(world.router, &id, &network, &err), 0);
    CHECK_EQUAL(network_adopt(world.router, &other, &one.network, &err), -1);
    CHECK_EQUAL(err.code, ERR_NOT_FOUND);
    CHECK_EQUAL(network_attach(world.router, &id, one.inside, &one.network, &err), -1);
    CHECK_EQUAL(err.code, ERR_CONFLICT);
    CHECK_EQUAL(count_networks(&world), 1);
    CHECK_EQUAL(send(connection, "x", 1, MSG_NOSIGNAL), 1);
    CHECK(sys_file_poll(connection, POLLIN, ANSWER_MS) > 0);
    CHECK_EQUAL(try_fetch(&world, one.inside, "10.9.9.9"), 200); /* the policy is still there */
    CHECK_EQUAL(try_fetch(&world, one.inside, "25.0.113.10"), -EHOSTUNREACH);
    CHECK(network_connections(world.router, &network, &err) >= 1);
    /* A socket keeps the namespace too. */
    connection = fd_close(connection);
    (void) close(one.inside);
    finish(&world, &network);
    CHECK_EQUAL(count_networks(&world), 0);
}

static void a_restarted_launcher_adopts_everything(void **state)
{
    (void) state;
    run_in_child(restart, NEEDS_ROUTER);
}

/* Does the sandbox get more packets than `before`? The sender repeats what is not acknowledged
 * after a fifth of a second, and then at growing intervals. */
static bool receives(struct world *world, const struct network *network, uint64_t before,
                     int timeout_ms)
{
    struct network_statistics now = {0};
    struct error err = ERROR_INIT;

    for (int i = 0; i < timeout_ms; i += 10) {
        CHECK_EQUAL(network_statistics(world->router, network, &now, &err), 0);
        if (now.received_packets > before)
            return true;
        (void) usleep(10000);
    }
    return false;
}

/* `server` goes on sending to the sandbox that had the slot before. */
static void check_stale_connection(struct world *world, const struct network *network,
                                   uint32_t old_mark, int server)
{
    AUTO(nft_batch) struct nft_batch batch = nft_batch(world->router->name);
    struct network_statistics before;
    struct error err = ERROR_INIT;

    CHECK_EQUAL(network_statistics(world->router, network, &before, &err), 0);
    CHECK_EQUAL(send(server, "secret", 6, MSG_NOSIGNAL), 6);
    CHECK(!receives(world, network, before.received_packets, PATIENCE_MS));
    nft_add_mark(&batch, ROUTER_SET_LIVE, old_mark); /* without the wall it would come */
    CHECK_EQUAL(nft_commit(&world->router->filter, &batch), 0);
    CHECK(receives(world, network, before.received_packets, 10000));
}

/* The next owner of a slot must not inherit anything. With both slots taken there is only one to
 * come back. */
static void reuse_slot(void)
{
    struct world world = make_world();
    struct network_policy closed = {.only_listed = true};
    struct sandbox one, two;
    struct network spare;
    struct id id = id_new();
    struct error err = ERROR_INIT;
    AUTO(close) int listener = -EBADF, connection = -EBADF, server = -EBADF;

    router_free(world.router);
    world.settings.pool = "10.66.0.0/30"; /* two slots */
    open_router(&world);
    CHECK_EQUAL(router_slots(world.router), 2);
    one = make_sandbox(&world);
    two = make_sandbox(&world);
    CHECK_EQUAL(network_attach(world.router, &id, world.internet, &spare, &err), -1);
    CHECK_EQUAL(err.code, ERR_UNAVAILABLE);
    CHECK_EQUAL(network_namespace_enter(world.internet), 0);
    listener = serve_socket(SOCK_STREAM, 82);
    network_namespace_return(world.host);
    connection = connect_from(&world, one.inside, "25.0.113.10", 82);
    server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    CHECK(connection >= 0 && server >= 0);
    CHECK_EQUAL(network_set_policy(world.router, &one.network, &closed, &err), 0);
    CHECK_EQUAL(network_connections(world.router, &one.network, &err), 1);
    CHECK_EQUAL(network_cut(world.router, &one.network, &err), 0);
    CHECK_EQUAL(network_cut(world.router, &one.network, &err), 0);
    finish(&world, &one.network);
    spare = one.network;
    one = make_sandbox(&world);
    CHECK_EQUAL(one.network.slot.number, spare.slot.number);
    CHECK(one.network.slot.mark != spare.slot.mark);
    CHECK_EQUAL(network_connections(world.router, &one.network, &err), 0);
    CHECK_EQUAL(try_fetch(&world, one.inside, "25.0.113.10"), 200);
    check_stale_connection(&world, &one.network, spare.slot.mark, server);
    /* Somebody who is late does no harm to the new owner. */
    CHECK_EQUAL(network_set_policy(world.router, &one.network, &closed, &err), 0);
    CHECK_EQUAL(network_finish(world.router, &spare, &err), 1);
    CHECK_EQUAL(try_fetch(&world, one.inside, "25.0.113.10"), -EHOSTUNREACH);
    CHECK_EQUAL(count_networks(&world), 2);
    (void) two;
}

static void a_slot_comes_back_clean(void **state)
{
    (void) state;
    run_in_child(reuse_slot, NEEDS_ROUTER);
}

static void read_statistics(void)
{
    struct world world = make_world();
    struct sandbox one = make_sandbox(&world);
    struct network_statistics before, after;
    struct error err = ERROR_INIT;
    AUTO(free) char *neighbours = NULL;
    size_t length;

    CHECK_EQUAL(network_statistics(world.router, &one.network, &before, &err), 0);
    CHECK_EQUAL(ask_name(&world, one.inside, "169.254.1.1"), 0);
    CHECK_EQUAL(network_statistics(world.router, &one.network, &after, &err), 0);
    /* One datagram of 8 bytes each way, and no ARP before it. */
    CHECK_EQUAL(after.sent_packets - before.sent_packets, 1);
    CHECK_EQUAL(after.sent_bytes - before.sent_bytes, ETH_HLEN + 20 + 8 + 8);
    CHECK_EQUAL(after.received_packets - before.received_packets, 1);
    CHECK_EQUAL(after.received_bytes - before.received_bytes, ETH_HLEN + 20 + 8 + 8);
    CHECK_EQUAL(network_namespace_enter(one.inside), 0);
    CHECK_EQUAL(sys_file_read_all(AT_FDCWD, "/proc/net/arp", 4096, &neighbours, &length), 0);
    network_namespace_return(world.host);
    CHECK(strstr(neighbours, "0x6")); /* permanent: does not count against the limit of all */
    CHECK_EQUAL(network_cut(world.router, &one.network, &err), 0);
    CHECK_EQUAL(network_statistics(world.router, &one.network, &after, &err), -1);
    CHECK_EQUAL(err.code, ERR_NOT_FOUND);
}

static void traffic_is_counted_as_the_sandbox_sees_it(void **state)
{
    (void) state;
    run_in_child(read_statistics, NEEDS_ROUTER);
}

static void count_chain(void *context, const struct nft_base_chain *chain)
{
    (void) chain;
    ++*(int *) context;
}

static void remove_router(void)
{
    struct world world = make_world();
    struct sandbox one = make_sandbox(&world);
    struct router *second = NULL;
    struct error err = ERROR_INIT;
    int chains = 0;

    CHECK_EQUAL(router_remove(world.router, &err), -1);
    CHECK_EQUAL(err.code, ERR_CONFLICT);
    (void) close(one.inside);
    finish(&world, &one.network);
    CHECK_EQUAL(router_open(&world.settings, &second, &err), 0);
    CHECK_EQUAL(router_remove(world.router, &err), -1); /* the second uses it */
    CHECK_EQUAL(err.code, ERR_CONFLICT);
    router_free(second);
    CHECK_EQUAL(router_remove(world.router, &err), 0);
    CHECK_EQUAL(sys_netlink_find(&world.router->host_links, "burrow"), -ENODEV);
    CHECK_EQUAL(nft_each_base_chain(&world.router->host_filter, count_chain, &chains), 0);
    CHECK_EQUAL(chains, 0);
    CHECK_EQUAL(access(WORLD_STATE "/router.net", F_OK), -1);
    router_free(world.router);
    open_router(&world); /* and again from nothing */
    one = make_sandbox(&world);
    CHECK_EQUAL(try_fetch(&world, one.inside, "25.0.113.10"), 200);
}

static void the_router_goes_when_nobody_uses_it(void **state)
{
    (void) state;
    run_in_child(remove_router, NEEDS_ROUTER);
}

static void expect_failure(struct world *world, enum err_code code)
{
    struct router *router = NULL;
    struct error err = ERROR_INIT;

    CHECK_EQUAL(router_open(&world->settings, &router, &err), -1);
    CHECK_EQUAL(err.code, code);
    CHECK(router == NULL);
}

static void find_uplink_addresses(void)
{
    struct world world = make_world();
    AUTO(netlink) struct sys_netlink host = SYS_NETLINK_INIT;
    struct sys_netlink_route route = {.destination = ip("198.18.254.0"), .prefix = 30, .index = 10};
    struct error err = ERROR_INIT;

    CHECK_EQUAL(world.router->host_address.s_addr, ip("198.18.254.0").s_addr);
    CHECK_EQUAL(router_remove(world.router, &err), 0);
    router_free(world.router);
    CHECK_EQUAL(sys_netlink_open(&host), 0);
    CHECK_EQUAL(sys_netlink_add_route(&host, &route), 0);
    CHECK_EQUAL(sys_netlink_add_address(&host, 1, ip("198.18.254.5"), 32), 0);
    open_router(&world);
    CHECK_EQUAL(world.router->host_address.s_addr, ip("198.18.254.6").s_addr);
    CHECK_EQUAL(router_remove(world.router, &err), 0);
    router_free(world.router);
    world.settings.uplink_range = "198.18.254.0/29";
    open_router(&world);
    CHECK_EQUAL(router_remove(world.router, &err), 0);
    router_free(world.router);
    world.settings.uplink_range = "198.18.254.0/30";
    expect_failure(&world, ERR_CONFLICT);
    world.settings.uplink_range = "198.18.254.0/32";
    expect_failure(&world, ERR_INVALID);
    world.settings.uplink_range = "198.18.254.0/24";
    world.settings.name = "eth0"; /* the host's own link */
    expect_failure(&world, ERR_CONFLICT);
    world.settings.name = "a-name-that-is-too-long";
    expect_failure(&world, ERR_INVALID);
    world.settings.name = "burrow";
    world.settings.pool = "10.66.0.1/16";
    expect_failure(&world, ERR_INVALID);
    world.settings.pool = "10.66.0.0/31";
    expect_failure(&world, ERR_INVALID);
}

static void the_uplink_avoids_what_the_host_has(void **state)
{
    (void) state;
    run_in_child(find_uplink_addresses, NEEDS_ROUTER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_hundred_sandboxes_come_and_go_without_a_trace),
        cmocka_unit_test(a_restarted_launcher_adopts_everything),
        cmocka_unit_test(a_slot_comes_back_clean),
        cmocka_unit_test(traffic_is_counted_as_the_sandbox_sees_it),
        cmocka_unit_test(the_router_goes_when_nobody_uses_it),
        cmocka_unit_test(the_uplink_avoids_what_the_host_has),
    };

    return cmocka_run_group_tests_name("router", tests, NULL, NULL);
}
