#include "launcher/network/router_uplink.h"

#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "sys/network/sys_netlink_list.h"

/* Pairs that are looked at before we give up. */
#define PAIRS_MAX 64

#define PAIR_PREFIX 31

/* How long, and how often, we look whether a link of our name goes. */
#define PATIENCE_MS 1000
#define STEP_MS     20

static uint32_t prefix_mask(unsigned int prefix)
{
    return prefix ? UINT32_MAX << (32 - prefix) : 0;
}

int router_uplink_parse_range(const char *text, struct in_addr *ret_network,
                              unsigned int *ret_prefix)
{
    char address[INET_ADDRSTRLEN] = "";
    const char *slash = strchr(text, '/');
    struct in_addr network;
    int64_t prefix;

    if (!slash || (size_t) (slash - text) >= sizeof(address))
        return -EINVAL;
    memcpy(address, text, (size_t) (slash - text));
    if (inet_pton(AF_INET, address, &network) != 1 || number_parse(slash + 1, 0, 32, &prefix) < 0)
        return -EINVAL;
    if (ntohl(network.s_addr) & ~prefix_mask((unsigned int) prefix))
        return -EINVAL;
    *ret_network = network;
    *ret_prefix = (unsigned int) prefix;
    return 0;
}

/* Is there anything of the host where the pair that begins at `first` would be? */
struct search {
    uint32_t first; /* in host byte order */
    bool taken;
};

static void compare(struct search *search, struct in_addr network, unsigned int prefix)
{
    uint32_t shared = prefix_mask(prefix < PAIR_PREFIX ? prefix : PAIR_PREFIX);

    search->taken |= ((search->first ^ ntohl(network.s_addr)) & shared) == 0;
}

static void compare_address(void *context, const struct sys_netlink_address *address)
{
    compare(context, address->address, 32);
}

static void compare_route(void *context, const struct sys_netlink_route *route)
{
    if (route->prefix > 0)
        compare(context, route->destination, route->prefix);
}

static int find_pair(struct router *router, const char *range, uint32_t *ret_first,
                     struct error *err)
{
    struct in_addr network;
    unsigned int prefix;
    uint32_t pairs;
    int result = 0;

    if (router_uplink_parse_range(range, &network, &prefix) < 0 || prefix < 8 ||
        prefix > PAIR_PREFIX)
        return error_set(err, ERR_INVALID, 0,
                         "uplink range '%s' is not an IPv4 network with prefix 8 to 31", range);
    pairs = UINT32_C(1) << (PAIR_PREFIX - prefix);
    for (uint32_t i = 0; i < pairs && i < PAIRS_MAX && result == 0; i++) {
        struct search search = {.first = ntohl(network.s_addr) + 2 * i};

        result = sys_netlink_each_address(&router->host_links, compare_address, &search);
        if (result == 0)
            result = sys_netlink_each_route(&router->host_links, compare_route, &search);
        if (result == 0 && !search.taken) {
            *ret_first = search.first;
            return 0;
        }
    }
    if (result < 0)
        return error_set(err, error_code_from_errno(result), result, "read the host's routes");
    return error_set(err, ERR_CONFLICT, 0,
                     "the host has addresses or routes all over %s: choose another uplink range",
                     range);
}

static void set_pair(struct router *router, uint32_t first)
{
    router->host_address.s_addr = htonl(first);
    router->address.s_addr = htonl(first + 1);
}

static int configure_pair(struct router *router, int host_index)
{
    struct sys_netlink_route gateway = {.gateway = router->host_address};
    int result =
        sys_netlink_add_address(&router->host_links, host_index, router->host_address, PAIR_PREFIX);

    if (result < 0)
        return result;
    gateway.index = sys_netlink_find(&router->links, ROUTER_UPLINK);
    if (gateway.index < 0)
        return gateway.index;
    result = sys_netlink_add_address(&router->links, gateway.index, router->address, PAIR_PREFIX);
    if (result < 0)
        return result;
    result = sys_netlink_set_up(&router->links, gateway.index, true);
    if (result < 0)
        return result;
    result = sys_netlink_settle(&router->host_links, host_index);
    return result < 0 ? result : sys_netlink_add_route(&router->links, &gateway);
}

/* The link of a router that was begun and given up, or whose maker was killed, goes with its
 * namespace, but not at once. */
static int add_veth_patiently(struct router *router, const struct sys_netlink_veth *veth)
{
    int result = -EEXIST;

    for (int waited = 0; waited <= PATIENCE_MS && result == -EEXIST; waited += STEP_MS) {
        if (waited)
            (void) usleep(STEP_MS * 1000);
        result = sys_netlink_add_veth(&router->host_links, veth);
    }
    return result;
}

static int make_uplink(struct router *router, const char *range, struct error *err)
{
    struct sys_netlink_veth veth = {.name = router->name,
                                    .up = true,
                                    .peer_name = ROUTER_UPLINK,
                                    .peer_namespace = router->inside};
    uint32_t first;
    int host_index, result;

    if (find_pair(router, range, &first, err) < 0)
        return -1;
    set_pair(router, first);
    result = add_veth_patiently(router, &veth);
    if (result == -EEXIST)
        return error_set(err, ERR_CONFLICT, 0,
                         "the host has a network link named '%s' that is not ours, perhaps of "
                         "another Burrow: choose another name by the setting network-name "
                         "(--network-name NAME)",
                         router->name);
    if (result < 0)
        return error_set(err, error_code_from_errno(result), result, "add network link '%s'",
                         router->name);
    host_index = sys_netlink_find(&router->host_links, router->name);
    result = host_index < 0 ? host_index : configure_pair(router, host_index);
    if (result == 0)
        return 0;
    if (host_index > 0)
        (void) sys_netlink_delete(&router->host_links, host_index);
    return error_set(err, error_code_from_errno(result), result, "set up network link '%s'",
                     router->name);
}

struct owner {
    int index;
    uint32_t address; /* in host byte order; 0 while none was found */
};

static void find_address(void *context, const struct sys_netlink_address *address)
{
    struct owner *owner = context;

    if (address->index == owner->index && address->prefix == PAIR_PREFIX)
        owner->address = ntohl(address->address.s_addr);
}

int router_uplink_ensure(struct router *router, const char *range, struct error *err)
{
    struct owner owner = {.index = sys_netlink_find(&router->links, ROUTER_UPLINK)};
    int result;

    if (owner.index == -ENODEV)
        return make_uplink(router, range, err);
    result = owner.index < 0 ? owner.index
                             : sys_netlink_each_address(&router->links, find_address, &owner);
    if (result < 0)
        return error_set(err, error_code_from_errno(result), result, "read the router's uplink");
    if (owner.address == 0)
        return error_set(err, ERR_CONFLICT, 0, "the router's uplink has lost its address");
    set_pair(router, owner.address & prefix_mask(PAIR_PREFIX));
    return 0;
}
