#include "wall_world.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "attack_server.h"
#include "base/memory.h"
#include "base/number.h"
#include "launcher/network/network_namespace.h"
#include "launcher/network/network_policy.h"
#include "launcher/network/nft.h"
#include "launcher/network/router_internal.h"
#include "sys/file/sys_file.h"
#include "sys/network/sys_netlink_list.h"
#include "sys/process/sys_namespace.h"
#include "sys/process/sys_process.h"

#define SERVER_MS       120000
#define LEAVE_TRIES     500
#define HOST_LINK       10 /* indexes */
#define INTERNET_LINK   11
#define SANDBOXES       "10.66.0.0"
#define SANDBOXES_BITS  16
#define FEW_CONNECTIONS 8
#define NO_CONNECTIONS  100000 /* as good as no limit */
#define RESOLVERS       "nameserver 10.255.0.53\nnameserver 25.0.113.53\n"

enum { WALL_ROUTER = 1, WALL_HOST = 2, WALL_SOURCE = 4, WALL_IPV6 = 8, WALL_CONNECTIONS = 16 };

static const struct {
    const char *name;
    unsigned int wall;
} walls[] = {
    {"router_rules", WALL_ROUTER},          {"host_rules", WALL_HOST},
    {"source_check", WALL_SOURCE},          {"no_ipv6", WALL_IPV6},
    {"connection_limit", WALL_CONNECTIONS},
};

/* Public ones, private ones of all kinds, metadata, and name servers. */
static const char *const internet_addresses[] = {
    "25.0.113.10", "25.0.113.53",     "25.51.100.7",   "169.254.169.254", "169.254.9.9",
    "10.9.9.9",    "192.168.50.5",    "172.16.5.5",    "100.64.0.9",      "10.255.0.53",
    "192.0.0.192", "100.100.100.200", "168.63.129.16", "203.0.113.77",
};

struct wall_world {
    int host, internet; /* network namespaces */
    char state[128], resolvers[128];
    struct router_settings settings;
    struct router *router;
};

static struct in_addr ip(const char *text)
{
    struct in_addr address = {0};

    (void) inet_pton(AF_INET, text, &address);
    return address;
}

/* --- namespaces and who answers in them ------------------------------------------------------- */

/* In the namespace we are in; dies with the lab, which is PID 1 of everything here. */
static int start_server(void)
{
    AUTO(close) int ready = -EBADF;
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0 || (pid = fork()) < 0)
        return -errno;
    if (pid == 0)
        _exit(-attack_server_run(ends[1]));
    ready = ends[0];
    (void) close(ends[1]);
    return sys_file_poll(ready, POLLIN, SERVER_MS) & POLLIN ? 0 : -EADDRINUSE;
}

/* A new namespace with loopback and many addresses; we come back to the host. */
static int make_internet(struct wall_world *world)
{
    AUTO(netlink) struct sys_netlink netlink = SYS_NETLINK_INIT;
    int r = sys_namespace_unshare(CLONE_NEWNET);

    if (r < 0)
        return r;
    world->internet = r = sys_namespace_open(0, "net");
    if (r >= 0)
        r = network_loopback_up();
    if (r == 0)
        r = sys_netlink_open(&netlink);
    for (size_t i = 0; r == 0 && i < ARRAY_COUNT(internet_addresses); i++)
        r = sys_netlink_add_address(&netlink, 1, ip(internet_addresses[i]), 32);
    if (r == 0)
        r = start_server();
    network_namespace_return(world->host);
    return r;
}

static int open_links(int namespace, int home, struct sys_netlink *ret_links)
{
    int r = network_namespace_enter(namespace);

    if (r < 0)
        return r;
    r = sys_netlink_open(ret_links);
    network_namespace_return(home);
    return r;
}

/* The way between the two, and the way back to the sandboxes' addresses: without our tables nothing
 * translates those. */
static int connect_both(struct wall_world *world)
{
    AUTO(netlink) struct sys_netlink near = SYS_NETLINK_INIT, far = SYS_NETLINK_INIT;
    struct sys_netlink_veth veth = {.name = "eth0",
                                    .index = HOST_LINK,
                                    .up = true,
                                    .peer_name = "wan",
                                    .peer_index = INTERNET_LINK,
                                    .peer_namespace = world->internet};
    struct sys_netlink_route out = {.gateway = ip("25.7.7.1"), .index = HOST_LINK};
    struct sys_netlink_route back = {.destination = ip(SANDBOXES),
                                     .prefix = SANDBOXES_BITS,
                                     .gateway = ip("25.7.7.2"),
                                     .index = INTERNET_LINK};
    int r = sys_netlink_open(&near);

    if (r == 0)
        r = open_links(world->internet, world->host, &far);
    if (r == 0)
        r = sys_netlink_add_veth(&near, &veth);
    if (r == 0)
        r = sys_netlink_add_address(&near, 1, ip("192.0.2.2"), 32);
    if (r == 0)
        r = sys_netlink_add_address(&near, HOST_LINK, ip("25.7.7.2"), 24);
    if (r == 0)
        r = sys_netlink_add_address(&far, INTERNET_LINK, ip("25.7.7.1"), 24);
    if (r == 0)
        r = sys_netlink_set_up(&far, INTERNET_LINK, true);
    if (r == 0)
        r = sys_netlink_settle(&near, HOST_LINK);
    if (r == 0)
        r = sys_netlink_add_route(&near, &out);
    return r < 0 ? r : sys_netlink_add_route(&far, &back);
}

static int add_route_to_sandboxes(struct wall_world *world)
{
    struct router *router = world->router;
    struct sys_netlink_route route = {
        .destination = ip(SANDBOXES), .prefix = SANDBOXES_BITS, .gateway = router->address};

    route.index = sys_netlink_find(&router->host_links, router->name);
    return route.index < 0 ? route.index : sys_netlink_add_route(&router->host_links, &route);
}

int wall_world_make(const char *folder, struct wall_world **ret_world, struct error *err)
{
    struct wall_world *world = mem_alloc(sizeof(*world));
    int r;

    world->settings = (struct router_settings) ROUTER_SETTINGS_DEFAULT;
    (void) snprintf(world->state, sizeof(world->state), "%s/network", folder);
    (void) snprintf(world->resolvers, sizeof(world->resolvers), "%s/resolv.conf", folder);
    world->settings.state_folder = world->state;
    world->settings.resolver_file = world->resolvers;
    world->settings.resolver_fallback = "/nowhere";
    world->settings.connections = FEW_CONNECTIONS;
    world->settings.name = "lab";
    *ret_world = world; /* goes with the lab */
    r = sys_file_replace(AT_FDCWD, world->resolvers, RESOLVERS, strlen(RESOLVERS), 0644);
    if (r == 0)
        r = world->host = sys_namespace_open(0, "net");
    if (r >= 0)
        r = make_internet(world);
    if (r == 0)
        r = connect_both(world);
    if (r == 0)
        r = start_server();
    if (r < 0)
        return error_set(err, ERR_UNAVAILABLE, r, "make a world of network namespaces");
    if (router_open(&world->settings, &world->router, err) < 0)
        return -1;
    r = add_route_to_sandboxes(world);
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "add a route to the sandboxes") : 0;
}

/* --- sandboxes ------------------------------------------------------------------------------ */

int wall_world_join(struct wall_world *world, const struct id *id, pid_t pid, char *ret_address,
                    struct error *err)
{
    AUTO(close) int inside = sys_namespace_open(pid, "net");
    struct network network;

    if (inside < 0)
        return error_set(err, ERR_INTERNAL, inside, "open the sandbox's network");
    if (network_attach(world->router, id, inside, &network, err) < 0)
        return -1;
    (void) inet_ntop(AF_INET, &network.address, ret_address, INET_ADDRSTRLEN);
    return 0;
}

int wall_world_leave(struct wall_world *world, const struct id *id, struct error *err)
{
    static const struct timespec moment = {.tv_nsec = 10000000};
    struct network network;

    if (network_adopt(world->router, id, &network, NULL) < 0)
        return 0; /* it never joined */
    for (int i = 0; i < LEAVE_TRIES; i++) {
        int r = network_finish(world->router, &network, err);

        if (r != 0)
            return r < 0 ? -1 : 0;
        (void) nanosleep(&moment, NULL);
    }
    return error_set(err, ERR_INTERNAL, ETIMEDOUT, "the link of %s does not go", id->text);
}

/* --- walls ---------------------------------------------------------------------------------- */

static int delete_table(struct nft *nft, const char *name)
{
    AUTO(nft_batch) struct nft_batch batch = nft_batch(name);

    nft_delete_table(&batch);
    return nft_commit(nft, &batch);
}

/* Settings of the router's namespace, for all links there are and will be. */
static int set_in_router(struct wall_world *world, const char *family, const char *setting,
                         const char *value)
{
    struct if_nameindex *links;
    int r = network_namespace_enter(world->router->inside);

    if (r < 0)
        return r;
    links = if_nameindex();
    for (size_t i = 0; r == 0 && links && links[i].if_name; i++) {
        char path[128];

        if (strcmp(links[i].if_name, "lo") == 0)
            continue;
        (void) snprintf(path, sizeof(path), "net/%s/conf/%s/%s", family, links[i].if_name, setting);
        r = network_namespace_set(path, value);
    }
    if (links)
        if_freenameindex(links);
    if (r == 0) {
        char path[128];

        (void) snprintf(path, sizeof(path), "net/%s/conf/all/%s", family, setting);
        r = network_namespace_set(path, value);
    }
    network_namespace_return(world->host);
    return r == -ENOENT ? 0 : r; /* a kernel without IPv6 */
}

static int parse_walls(char *names, unsigned int *ret_walls, struct error *err)
{
    char *name;

    *ret_walls = 0;
    while (strcmp(names, "-") != 0 && (name = strsep(&names, ","))) {
        size_t i = 0;

        while (i < ARRAY_COUNT(walls) && strcmp(walls[i].name, name) != 0)
            i++;
        if (i == ARRAY_COUNT(walls))
            return error_set(err, ERR_INVALID, 0, "the network has no wall '%s'", name);
        *ret_walls |= walls[i].wall;
        if (!names)
            break;
    }
    return 0;
}

/* As a restarted launcher does; sandboxes keep their links. */
static int close_walls(struct wall_world *world, uint32_t connections, struct error *err)
{
    int r;

    router_free(world->router);
    world->router = NULL;
    world->settings.connections = connections;
    if (router_open(&world->settings, &world->router, err) < 0)
        return -1;
    r = set_in_router(world, "ipv4", "rp_filter", "1");
    if (r == 0)
        r = set_in_router(world, "ipv6", "disable_ipv6", "1");
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "set the router's settings") : 0;
}

int wall_world_open(struct wall_world *world, char *names, struct error *err)
{
    unsigned int open;
    int r = 0;

    if (parse_walls(names, &open, err) < 0 ||
        close_walls(world, open & WALL_CONNECTIONS ? NO_CONNECTIONS : FEW_CONNECTIONS, err) < 0)
        return -1;
    if (open & WALL_SOURCE)
        r = set_in_router(world, "ipv4", "rp_filter", "0");
    if (r == 0 && open & WALL_IPV6)
        r = set_in_router(world, "ipv6", "accept_dad", "0"); /* else addresses come a second late */
    if (r == 0 && open & WALL_IPV6)
        r = set_in_router(world, "ipv6", "disable_ipv6", "0");
    if (r == 0 && open & WALL_ROUTER)
        r = delete_table(&world->router->filter, world->router->name);
    if (r == 0 && open & WALL_HOST)
        r = delete_table(&world->router->host_filter, world->router->name);
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "open walls of the network") : 0;
}

/* --- rules of one sandbox ------------------------------------------------------------------- */

static int find_protocol(const char *name)
{
    static const char *const names[] = {
        [NETWORK_ANY] = "any",
        [NETWORK_TCP] = "tcp",
        [NETWORK_UDP] = "udp",
    };

    for (size_t i = 0; name && i < ARRAY_COUNT(names); i++) {
        if (strcmp(names[i], name) == 0)
            return (int) i;
    }
    return -EINVAL;
}

static int parse_rule(char *word, struct network_rule *ret_rule)
{
    char *verdict = strsep(&word, ":"), *network = strsep(&word, "/"), *bits = strsep(&word, ":");
    char *protocol = strsep(&word, ":"), *first = strsep(&word, "-");
    int64_t prefix, first_port, last_port;
    int which = find_protocol(protocol);

    if (which < 0 || !first || !word || number_parse(bits, 0, 32, &prefix) < 0 ||
        number_parse(first, 0, UINT16_MAX, &first_port) < 0 ||
        number_parse(word, 0, UINT16_MAX, &last_port) < 0)
        return -EINVAL;
    *ret_rule = (struct network_rule){
        .allow = strcmp(verdict, "allow") == 0,
        .to = {.address = ntohl(ip(network).s_addr), .bits = (uint8_t) prefix},
        .protocol = (enum network_protocol) which,
        .ports = {.first = (uint16_t) first_port, .last = (uint16_t) last_port}};
    return 0;
}

static int parse_word(char *word, struct network_rule *rules, struct network_policy *policy)
{
    static const char connections[] = "connections:";
    int64_t number;

    if (strcmp(word, "only_listed") == 0)
        return policy->only_listed = true, 0;
    if (strcmp(word, "no_names") == 0)
        return policy->no_names = true, 0;
    if (strncmp(word, connections, strlen(connections)) == 0) {
        if (number_parse(word + strlen(connections), 1, UINT32_MAX, &number) < 0)
            return -EINVAL;
        policy->connections = (uint32_t) number;
        return 0;
    }
    return policy->count == NETWORK_RULES_MAX ? -E2BIG : parse_rule(word, &rules[policy->count++]);
}

int wall_world_set_policy(struct wall_world *world, const struct id *id, char *const *words,
                          size_t count, struct error *err)
{
    struct network_rule rules[NETWORK_RULES_MAX];
    struct network_policy policy = {.rules = rules};
    struct network network;

    if (network_adopt(world->router, id, &network, err) < 0)
        return -1;
    if (count == 0)
        return network_clear_policy(world->router, &network, err);
    for (size_t i = 0; i < count; i++) {
        if (parse_word(words[i], rules, &policy) < 0)
            return error_set(err, ERR_INVALID, 0, "there is no rule '%s'", words[i]);
    }
    return network_set_policy(world->router, &network, &policy, err);
}

/* --- IPv6 ----------------------------------------------------------------------------------- */

/* A line of /proc/net/if_inet6: 32 digits, index, prefix, scope, flags, name. */
static void find_ipv6(const char *table, const char *link, char *ret_address)
{
    const char *line = table;

    while (line && *line) {
        char digits[33] = "", name[IFNAMSIZ + 1] = "";
        struct in6_addr address;

        if (sscanf(line, "%32s %*s %*s %*s %*s %16s", digits, name) == 2 &&
            strcmp(name, link) == 0) {
            for (size_t i = 0; i < sizeof(address.s6_addr); i++)
                (void) sscanf(digits + 2 * i, "%2hhx", &address.s6_addr[i]);
            (void) inet_ntop(AF_INET6, &address, ret_address, INET6_ADDRSTRLEN);
            return;
        }
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
}

int wall_world_router_ipv6(struct wall_world *world, const struct id *id, char *ret_address,
                           struct error *err)
{
    AUTO(free) char *table = NULL;
    struct network network;
    char link[IFNAMSIZ];
    size_t length;
    int r;

    ret_address[0] = '\0';
    if (network_adopt(world->router, id, &network, err) < 0)
        return -1;
    (void) snprintf(link, sizeof(link), "s%u", network.slot.number);
    r = network_namespace_enter(world->router->inside);
    if (r == 0) {
        r = sys_file_read_all(AT_FDCWD, "/proc/thread-self/net/if_inet6", 1 << 20, &table, &length);
        network_namespace_return(world->host);
    }
    if (r == 0)
        find_ipv6(table, link, ret_address);
    return r < 0 && r != -ENOENT ? error_set(err, ERR_INTERNAL, r, "read the addresses") : 0;
}
