#include "launcher/network/network.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "launcher/network/network_conntrack.h"
#include "launcher/network/network_namespace.h"
#include "launcher/network/network_policy.h"
#include "launcher/network/network_slot.h"
#include "launcher/network/router_internal.h"
#include "sys/network/sys_netlink_list.h"

/* lo is the first link of every namespace. */
#define LOOPBACK_INDEX 1

/* Any number will do: nothing else is in the namespace yet. */
#define ETH0_INDEX 52

/* Slots that are tried when the link of a free one is there: somebody emptied the state folder
 * while sandboxes lived. */
#define LINK_TRIES 8

static int fail(struct error *err, int result, const struct id *id, const char *what)
{
    return error_set(err, error_code_from_errno(result), result, "network of %s: %s", id->text,
                     what);
}

static int link_index(const struct network *network)
{
    return (int) network->slot.mark;
}

static struct network describe(const struct router *router, const struct network_slot *slot)
{
    struct network network = {.slot = *slot};

    network.address.s_addr = htonl(ntohl(router->pool.s_addr) + slot->number);
    return network;
}

int network_loopback_up(void)
{
    AUTO(netlink) struct sys_netlink netlink = SYS_NETLINK_INIT;
    int result = sys_netlink_open(&netlink);

    return result < 0 ? result : sys_netlink_set_up(&netlink, LOOPBACK_INDEX, true);
}

/* Both ends know the other's hardware address from the start. Entries of that kind need no ARP and
 * are outside the limit of neighbours, 1024 by default, that all namespaces of a machine share. */
struct hardware {
    uint8_t router[ETH_ALEN];
    uint8_t sandbox[ETH_ALEN];
};

static struct hardware hardware_of(const struct network *network)
{
    uint32_t slot = network->slot.number;
    uint8_t high = (uint8_t) (slot >> 16), middle = (uint8_t) (slot >> 8), low = (uint8_t) slot;

    /* 2 is the bit of addresses that nobody manufactured. */
    return (struct hardware){.router = {2, 'b', 'r', high, middle, low},
                             .sandbox = {2, 'b', 's', high, middle, low}};
}

static int open_inside(const struct router *router, int inside, struct sys_netlink *ret_netlink)
{
    int result = network_namespace_enter(inside);

    if (result < 0)
        return result;
    result = sys_netlink_open(ret_netlink);
    network_namespace_return(router->home);
    return result;
}

static int add_router_end(struct router *router, const struct network *network,
                          const struct hardware *hardware)
{
    struct sys_netlink_route route = {
        .destination = network->address, .prefix = 32, .index = link_index(network)};
    int result = sys_netlink_add_neighbour(&router->links, link_index(network), network->address,
                                           hardware->sandbox);

    return result < 0 ? result : sys_netlink_add_route(&router->links, &route);
}

static int add_sandbox_end(struct sys_netlink *inside, const struct network *network,
                           const struct hardware *hardware)
{
    struct in_addr gateway = router_rules_address(0);
    struct sys_netlink_route route = {.gateway = gateway, .onlink = true, .index = ETH0_INDEX};
    int result = sys_netlink_set_up(inside, LOOPBACK_INDEX, true);

    if (result == 0)
        result = sys_netlink_set_no_ipv6_address(inside, ETH0_INDEX);
    if (result == 0 || result == -EAFNOSUPPORT)
        result = sys_netlink_add_address(inside, ETH0_INDEX, network->address, 32);
    if (result == 0)
        result = sys_netlink_set_up(inside, ETH0_INDEX, true);
    if (result == 0)
        result = sys_netlink_add_neighbour(inside, ETH0_INDEX, gateway, hardware->router);
    return result < 0 ? result : sys_netlink_add_route(inside, &route);
}

static int add_link(struct router *router, const struct network *network, int inside)
{
    AUTO(netlink) struct sys_netlink netlink = SYS_NETLINK_INIT;
    struct hardware hardware = hardware_of(network);
    char name[IFNAMSIZ];
    struct sys_netlink_veth veth = {.name = name,
                                    .index = link_index(network),
                                    .up = true,
                                    .peer_name = "eth0",
                                    .peer_index = ETH0_INDEX,
                                    .peer_namespace = inside,
                                    .hardware_address = hardware.router,
                                    .peer_hardware_address = hardware.sandbox,
                                    .single_queue = true};
    int result;

    (void) snprintf(name, sizeof(name), "s%u", network->slot.number);
    result = open_inside(router, inside, &netlink);
    if (result < 0)
        return result;
    result = sys_netlink_add_veth(&router->links, &veth);
    if (result == -EEXIST)
        return result;
    if (result == 0)
        result = add_router_end(router, network, &hardware);
    if (result == 0)
        result = add_sandbox_end(&netlink, network, &hardware);
    if (result == 0)
        result = sys_netlink_settle(&router->links, link_index(network));
    if (result < 0)
        (void) sys_netlink_delete(&router->links, link_index(network));
    return result;
}

static int set_live(struct router *router, const struct network *network, bool live)
{
    AUTO(nft_batch) struct nft_batch batch = nft_batch(router->name);

    if (live)
        nft_add_mark(&batch, ROUTER_SET_LIVE, network->slot.mark);
    else
        nft_delete_mark(&batch, ROUTER_SET_LIVE, network->slot.mark);
    return nft_commit(&router->filter, &batch);
}

/* Everything that belongs to a slot we have taken. */
static int join(struct router *router, const struct network *network, int inside)
{
    int result = set_live(router, network, true);

    if (result == 0)
        result = add_link(router, network, inside);
    /* Also where the first step failed: it may have been done and only its answer been lost. */
    if (result < 0)
        (void) set_live(router, network, false);
    return result;
}

int network_attach(struct router *router, const struct id *id, int inside,
                   struct network *ret_network, struct error *err)
{
    int result = -EEXIST;

    for (int i = 0; i < LINK_TRIES && result == -EEXIST; i++) {
        struct network_slot slot;
        struct network network;

        result = network_slot_take(router->taken, router->slots, id, &slot);
        if (result == -EEXIST)
            return error_set(err, ERR_CONFLICT, 0, "sandbox %s has a network already", id->text);
        if (result == -ENOSPC)
            return error_set(err, ERR_UNAVAILABLE, 0, "all %u network slots are taken",
                             router->slots);
        if (result < 0)
            return fail(err, result, id, "take a slot");
        network = describe(router, &slot);
        result = join(router, &network, inside);
        if (result == 0) {
            *ret_network = network;
            return 0;
        }
        (void) network_slot_release(router->taken, &slot);
    }
    return fail(err, result, id, "make its link");
}

int network_adopt(struct router *router, const struct id *id, struct network *ret_network,
                  struct error *err)
{
    struct network_slot slot;
    int result = network_slot_find(router->taken, id, &slot);

    if (result == -ENOENT)
        return error_set(err, ERR_NOT_FOUND, 0, "sandbox %s has no network", id->text);
    if (result < 0)
        return fail(err, result, id, "find its slot");
    *ret_network = describe(router, &slot);
    return 0;
}

struct listing {
    const struct router *router;
    network_function *call;
    void *context;
};

static void list_one(void *context, const struct network_slot *slot)
{
    struct listing *listing = context;
    struct network network = describe(listing->router, slot);

    listing->call(listing->context, &network);
}

int network_list(struct router *router, network_function *call, void *context, struct error *err)
{
    struct listing listing = {.router = router, .call = call, .context = context};
    int result = network_slot_each(router->taken, list_one, &listing);

    if (result < 0)
        return error_set(err, error_code_from_errno(result), result, "list network slots");
    return 0;
}

int network_statistics(struct router *router, const struct network *network,
                       struct network_statistics *ret_statistics, struct error *err)
{
    struct sys_netlink_link link;
    int result = sys_netlink_read_link(&router->links, link_index(network), &link);

    if (result == -ENODEV)
        return error_set(err, ERR_NOT_FOUND, 0, "the network of %s is gone", network->slot.id.text);
    if (result < 0)
        return fail(err, result, &network->slot.id, "read its statistics");
    /* What our end sent, the other received. */
    *ret_statistics = (struct network_statistics){.received_bytes = link.sent_bytes,
                                                  .received_packets = link.sent_packets,
                                                  .sent_bytes = link.received_bytes,
                                                  .sent_packets = link.received_packets};
    return 0;
}

int network_connections(struct router *router, const struct network *network, struct error *err)
{
    int count = network_conntrack_count(&router->filter, network->slot.mark);

    return count < 0 ? fail(err, count, &network->slot.id, "count its connections") : count;
}

int network_recheck(struct router *router, const struct network *network, struct error *err)
{
    int result = network_conntrack_flush(&router->filter, network->slot.mark);

    return result < 0 ? fail(err, result, &network->slot.id, "forget its connections") : 0;
}

int network_cut(struct router *router, const struct network *network, struct error *err)
{
    int result = sys_netlink_delete(&router->links, link_index(network));

    return result < 0 && result != -ENODEV ? fail(err, result, &network->slot.id, "delete its link")
                                           : 0;
}

int network_finish(struct router *router, const struct network *network, struct error *err)
{
    const struct id *id = &network->slot.id;
    struct sys_netlink_link link;
    int result = network_slot_is_taken(router->taken, &network->slot);

    if (result <= 0)
        return result < 0 ? fail(err, result, id, "look at its slot") : 1;
    result = sys_netlink_read_link(&router->links, link_index(network), &link);
    if (result == 0)
        return 0;
    if (result != -ENODEV)
        return fail(err, result, id, "look for its link");
    if (network_clear_policy(router, network, err) < 0)
        return -1;
    result = set_live(router, network, false);
    /* Whoever attached it may have been killed before the mark was set. */
    if (result < 0 && result != -ENOENT)
        return fail(err, result, id, "remove its mark");
    result = network_slot_release(router->taken, &network->slot);
    return result < 0 ? fail(err, result, id, "give its slot back") : 1;
}
