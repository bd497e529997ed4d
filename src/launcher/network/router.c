#include "launcher/network/router.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#include "base/memory.h"
#include "launcher/network/network_namespace.h"
#include "launcher/network/network_slot.h"
#include "launcher/network/router_internal.h"
#include "launcher/network/router_uplink.h"
#include "sys/file/sys_file.h"
#include "sys/network/sys_netlink_list.h"
#include "sys/process/sys_namespace.h"

/* In the state folder. */
#define NAMESPACE_FILE "router.net"  /* the namespace is mounted on it */
#define LOCK_FILE      "router.lock" /* held while the router is made, brought up to date, removed */
#define USERS_FILE     "router.users" /* held shared by every open handle */
#define TAKEN_FOLDER   "slots"

#define PATH_SIZE 64

/* Addresses of the host that are told to the rules; the rules on the host do not need them. */
#define HOST_ADDRESSES_MAX 1024

/* A route without a gateway that is wider is a way to the internet (0.0.0.0/1 of a VPN), and not a
 * network of neighbours. */
#define NEIGHBOURS_BITS_MIN 8

/* Marks that are set again in one transaction. */
#define MARKS_MAX 512

/* Settings of the router namespace. Strict reverse path filtering is the first wall against forged
 * sources, the rule in the chain `source` is the second. */
static const struct {
    const char *path;
    const char *value;
} settings_inside[] = {
    {"net/ipv4/ip_forward", "1"},
    {"net/ipv4/conf/all/rp_filter", "1"},
    {"net/ipv4/conf/default/rp_filter", "1"},
    {"net/ipv4/conf/all/send_redirects", "0"},
    {"net/ipv4/conf/default/send_redirects", "0"},
    {"net/ipv4/conf/all/accept_redirects", "0"},
    {"net/ipv4/conf/default/accept_redirects", "0"},
    {"net/ipv4/conf/all/accept_source_route", "0"},
    {"net/ipv4/conf/default/accept_source_route", "0"},
    /* Refusals go to the sandbox that asked for them; more than six in a row would be lost. */
    {"net/ipv4/icmp_ratelimit", "0"},
    {"net/ipv6/conf/all/disable_ipv6", "1"},
    {"net/ipv6/conf/default/disable_ipv6", "1"},
    /* Five days is the default: too long for peers that vanish and count against a limit. */
    {"net/netfilter/nf_conntrack_tcp_timeout_established", "86400"},
};

static int fail(struct error *err, int result, const char *what)
{
    return error_set(err, error_code_from_errno(result), result, "router: %s", what);
}

static bool is_name(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

    return length > 0 && length < IFNAMSIZ && name[length] == '\0';
}

static struct router *new_router(const struct router_settings *settings)
{
    struct router *router = mem_alloc(sizeof(*router));

    memcpy(router->name, settings->name, strlen(settings->name));
    router->connections = settings->connections;
    router->host = settings->host;
    router->state_folder = mem_copy_text(settings->state_folder);
    router->resolver_file = mem_copy_text(settings->resolver_file);
    router->resolver_fallback = mem_copy_text(settings->resolver_fallback);
    router->state = router->taken = router->users = router->home = router->inside = router->watch =
        -EBADF;
    router->host_links = router->links = (struct sys_netlink) SYS_NETLINK_INIT;
    router->host_filter = router->filter = (struct nft) NFT_INIT;
    return router;
}

void router_free(struct router *router)
{
    if (!router)
        return;
    nft_done(&router->filter);
    nft_done(&router->host_filter);
    sys_netlink_done(&router->links);
    sys_netlink_done(&router->host_links);
    (void) fd_close(router->watch);
    (void) fd_close(router->inside);
    (void) fd_close(router->home);
    (void) fd_close(router->users);
    (void) fd_close(router->taken);
    (void) fd_close(router->state);
    free(router->resolver_fallback);
    free(router->resolver_file);
    free(router->state_folder);
    free(router);
}

static int check_settings(const struct router_settings *settings, struct router **ret_router,
                          struct error *err)
{
    struct in_addr pool;
    unsigned int prefix;

    if (!is_name(settings->name))
        return error_set(err, ERR_INVALID, 0, "router name '%s': at most 15 of a-z, 0-9 and -",
                         settings->name);
    if (router_uplink_parse_range(settings->pool, &pool, &prefix) < 0 || prefix < 8 || prefix > 30)
        return error_set(err, ERR_INVALID, 0,
                         "address pool '%s' is not an IPv4 network with prefix 8 to 30",
                         settings->pool);
    if (settings->connections == 0)
        return error_set(err, ERR_INVALID, 0, "a limit of 0 connections allows none");
    *ret_router = new_router(settings);
    (*ret_router)->pool = pool;
    /* Without the first and the last, which look like network and broadcast address. */
    (*ret_router)->slots = (UINT32_C(1) << (32 - prefix)) - 2;
    return 0;
}

/* A lock file of the state folder, locked. */
static int open_lock(const struct router *router, const char *name, int operation)
{
    AUTO(close) int fd = sys_file_open(router->state, name, O_RDWR | O_CREAT, 0600);

    if (fd < 0)
        return fd;
    while (flock(fd, operation) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    return TAKE_FD(fd);
}

static int open_state(struct router *router)
{
    int result = sys_file_make_directories(AT_FDCWD, router->state_folder, 0700);

    if (result < 0)
        return result;
    router->state = host_mounts_open_folder(router->host, router->state_folder);
    if (router->state < 0)
        return router->state;
    result = sys_file_make_directories(router->state, TAKEN_FOLDER, 0700);
    if (result < 0)
        return result;
    router->taken = sys_file_open(router->state, TAKEN_FOLDER, O_RDONLY | O_DIRECTORY, 0);
    return router->taken < 0 ? router->taken : 0;
}

static int open_host(struct router *router)
{
    int result = sys_netlink_open(&router->host_links);

    if (result < 0)
        return result;
    result = nft_open(&router->host_filter);
    if (result < 0)
        return result;
    router->home = sys_namespace_open(0, "net");
    if (router->home < 0)
        return router->home;
    router->watch = sys_netlink_watch_addresses();
    return router->watch < 0 ? router->watch : 0;
}

/* The namespace that is kept in the state folder; -ENOENT when there is none. */
static int open_kept(const struct router *router)
{
    AUTO(close) int fd = sys_file_open(router->state, NAMESPACE_FILE, O_RDONLY, 0);
    struct statfs filesystem;

    if (fd < 0)
        return fd;
    if (fstatfs(fd, &filesystem) < 0)
        return -errno;
    /* Nothing is mounted on it, or not a namespace: left over from before a reboot. */
    if (filesystem.f_type != NSFS_MAGIC || ioctl(fd, NS_GET_NSTYPE) != CLONE_NEWNET)
        return -ENOENT;
    return TAKE_FD(fd);
}

static int make_namespace(struct router *router)
{
    int result = sys_namespace_unshare(CLONE_NEWNET);
    int fd;

    if (result < 0)
        return result;
    fd = sys_namespace_open(0, "net");
    network_namespace_return(router->home);
    return fd;
}

static int name_namespace_file(const struct router *router, char ret_path[static PATH_MAX])
{
    int length = snprintf(ret_path, PATH_MAX, "%s/" NAMESPACE_FILE, router->state_folder);

    return length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Mount the namespace on its file. The last step of making a router: what was begun and not kept
 * vanishes with the last descriptor of it. */
static int keep_namespace(const struct router *router)
{
    AUTO(close) int file = sys_file_open(router->state, NAMESPACE_FILE, O_RDONLY | O_CREAT, 0400);
    char path[PATH_MAX];
    int r = file < 0 ? file : name_namespace_file(router, path);

    return r < 0 ? r : host_mounts_keep_namespace(router->host, router->inside, path);
}

static int set_inside(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(settings_inside); i++) {
        int result = network_namespace_set(settings_inside[i].path, settings_inside[i].value);

        /* A kernel without IPv6 or without that part of connection tracking has no such file. */
        if (result < 0 && result != -ENOENT)
            return result;
    }
    return 0;
}

/* Settings and sockets of the router namespace. */
static int open_inside(struct router *router)
{
    int result = network_namespace_enter(router->inside);

    if (result < 0)
        return result;
    /* The connection tracking settings exist once somebody tracks; a socket is enough to load it.
     */
    result = nft_open(&router->filter);
    if (result == 0)
        result = sys_netlink_open(&router->links);
    if (result == 0)
        result = set_inside();
    network_namespace_return(router->home);
    return result;
}

/* 169.254.1.1 sits on lo and so answers on every link, with nothing to set up per sandbox. */
static int prepare_loopback(struct router *router)
{
    int index = sys_netlink_find(&router->links, "lo");
    int result = index < 0 ? index : sys_netlink_set_up(&router->links, index, true);

    if (result < 0)
        return result;
    result = sys_netlink_add_address(&router->links, index, router_rules_address(0), 32);
    return result == -EEXIST ? 0 : result;
}

/* What the host must allow. Forwarding is written only where it is off: writing it sets other
 * settings of every link back. */
static int prepare_host(const struct router *router)
{
    AUTO(free) char *forward = NULL;
    char path[PATH_SIZE];
    size_t length;
    int result =
        sys_file_read_all(AT_FDCWD, "/proc/sys/net/ipv4/ip_forward", 16, &forward, &length);

    if (result == 0 && forward[0] == '0')
        result = network_namespace_set("net/ipv4/ip_forward", "1");
    if (result < 0)
        return result;
    (void) snprintf(path, sizeof(path), "net/ipv4/conf/%s/forwarding", router->name);
    result = network_namespace_set(path, "1");
    if (result < 0)
        return result;
    (void) snprintf(path, sizeof(path), "net/ipv6/conf/%s/disable_ipv6", router->name);
    result = network_namespace_set(path, "1");
    return result == -ENOENT ? 0 : result;
}

struct marks {
    struct router *router;
    uint32_t list[MARKS_MAX];
    size_t count;
    int result;
};

static void set_marks(struct marks *marks)
{
    AUTO(nft_batch) struct nft_batch batch = nft_batch(marks->router->name);

    for (size_t i = 0; i < marks->count; i++)
        nft_add_mark(&batch, ROUTER_SET_LIVE, marks->list[i]);
    if (marks->count && marks->result == 0)
        marks->result = nft_commit(&marks->router->filter, &batch);
    marks->count = 0;
}

static void note_mark(void *context, const struct network_slot *slot)
{
    struct marks *marks = context;

    marks->list[marks->count++] = slot->mark;
    if (marks->count == MARKS_MAX)
        set_marks(marks);
}

/* Who has a slot is live: also after somebody deleted our table. */
static int restore_marks(struct router *router)
{
    struct marks marks = {.router = router};
    int result = network_slot_each(router->taken, note_mark, &marks);

    set_marks(&marks);
    return result < 0 ? result : marks.result;
}

static int apply_rules(struct router *router, struct error *err)
{
    int result = router_rules_apply(&router->filter, router->name, router->connections);

    if (result < 0)
        return fail(err, result, "load the rules of the router namespace (nftables)");
    result = restore_marks(router);
    if (result < 0)
        return fail(err, result, "mark the connections of sandboxes");
    result = prepare_host(router);
    if (result < 0)
        return fail(err, result, "switch on forwarding on the host");
    return router_refresh(router, err);
}

/* With the lock held: find or make the namespace and all that is in it. */
static int bring_up(struct router *router, const char *uplink_range, struct error *err)
{
    bool found;
    int result;

    router->inside = open_kept(router);
    found = router->inside >= 0;
    if (!found)
        router->inside = make_namespace(router);
    if (router->inside < 0)
        return fail(err, router->inside, "make a network namespace");
    result = open_inside(router);
    if (result < 0)
        return fail(err, result, "prepare the router namespace");
    result = prepare_loopback(router);
    if (result < 0)
        return fail(err, result, "give the router its address");
    if (router_uplink_ensure(router, uplink_range, err) < 0 || apply_rules(router, err) < 0)
        return -1;
    result = found ? 0 : keep_namespace(router);
    if (result < 0)
        return fail(err, result, "keep the router namespace in the state folder");
    router->users = open_lock(router, USERS_FILE, LOCK_SH);
    return router->users < 0 ? fail(err, router->users, "lock " USERS_FILE) : 0;
}

int router_open(const struct router_settings *settings, struct router **ret_router,
                struct error *err)
{
    AUTO(router) struct router *router = NULL;
    AUTO(close) int lock = -EBADF;
    int result;

    if (check_settings(settings, &router, err) < 0)
        return -1;
    result = open_state(router);
    if (result < 0)
        return error_set(err, error_code_from_errno(result), result, "router: state folder '%s'",
                         router->state_folder);
    lock = open_lock(router, LOCK_FILE, LOCK_EX);
    if (lock < 0)
        return fail(err, lock, "lock " LOCK_FILE);
    result = open_host(router);
    if (result < 0)
        return fail(err, result, "speak to the host's network");
    if (bring_up(router, settings->uplink_range, err) < 0)
        return -1;
    *ret_router = TAKE_PTR(router);
    return 0;
}

bool router_may_have(const char *state_folder, const struct id *id)
{
    AUTO(close) int state = sys_file_open(AT_FDCWD, state_folder, O_RDONLY | O_DIRECTORY, 0);
    AUTO(close)
    int taken = state < 0 ? state : sys_file_open(state, TAKEN_FOLDER, O_RDONLY | O_DIRECTORY, 0);
    struct network_slot slot;

    if (taken < 0)
        return taken != -ENOENT;
    return network_slot_find(taken, id, &slot) != -ENOENT;
}

static void count_slot(void *context, const struct network_slot *slot)
{
    (void) slot;
    ++*(size_t *) context;
}

/* Does anybody but this handle use the router? -EBUSY. */
static int check_unused(struct router *router)
{
    size_t taken = 0;
    int result = network_slot_each(router->taken, count_slot, &taken);

    if (result < 0)
        return result;
    if (taken)
        return -EBUSY;
    if (flock(router->users, LOCK_EX | LOCK_NB) == 0)
        return 0;
    result = errno == EWOULDBLOCK ? -EBUSY : -errno;
    /* A conversion that fails may have cost us the lock we had. */
    while (flock(router->users, LOCK_SH) < 0 && errno == EINTR)
        continue;
    return result;
}

static int remove_host_part(struct router *router)
{
    int index = sys_netlink_find(&router->host_links, router->name);
    int result = index < 0 ? index : sys_netlink_delete(&router->host_links, index);

    if (result < 0 && result != -ENODEV)
        return result;
    result = router_rules_delete_host(&router->host_filter, router->name);
    return result == -ENOENT ? 0 : result;
}

static int remove_state(struct router *router)
{
    char path[PATH_MAX];
    int result = name_namespace_file(router, path);

    if (result == 0)
        result = host_mounts_drop_namespace(router->host, path);
    if (result < 0 && result != -EINVAL) /* not mounted */
        return result;
    /* The lock file stays: somebody may be waiting for it. */
    (void) unlinkat(router->state, NAMESPACE_FILE, 0);
    (void) unlinkat(router->state, USERS_FILE, 0);
    (void) unlinkat(router->state, TAKEN_FOLDER, AT_REMOVEDIR);
    return 0;
}

int router_remove(struct router *router, struct error *err)
{
    AUTO(close) int lock = open_lock(router, LOCK_FILE, LOCK_EX);
    int result = lock < 0 ? lock : check_unused(router);

    if (result == -EBUSY)
        return error_set(err, ERR_CONFLICT, 0, "router: sandboxes or other programs still use it");
    if (result < 0)
        return fail(err, result, "see whether it is in use");
    result = remove_state(router);
    if (result < 0)
        return fail(err, result, "let go of the router namespace");
    result = remove_host_part(router);
    return result < 0 ? fail(err, result, "remove link and table from the host") : 0;
}

struct host_list {
    struct in_addr addresses[HOST_ADDRESSES_MAX];
    struct router_network networks[HOST_ADDRESSES_MAX];
    size_t address_count, network_count;
};

static void note_network(struct host_list *host, struct in_addr address, unsigned int prefix)
{
    uint32_t mask = prefix ? UINT32_MAX << (32 - prefix) : 0;

    if (prefix < NEIGHBOURS_BITS_MIN || host->network_count == HOST_ADDRESSES_MAX)
        return;
    address.s_addr &= htonl(mask);
    host->networks[host->network_count++] =
        (struct router_network){.address = address, .prefix = prefix};
}

static void note_address(void *context, const struct sys_netlink_address *address)
{
    struct host_list *host = context;

    if (host->address_count < HOST_ADDRESSES_MAX)
        host->addresses[host->address_count++] = address->address;
    note_network(host, address->address, address->prefix);
}

/* Who is reached without a gateway, and every gateway, is on a link of the host. */
static void note_route(void *context, const struct sys_netlink_route *route)
{
    struct host_list *host = context;

    if (route->gateway.s_addr)
        note_network(host, route->gateway, 32);
    else
        note_network(host, route->destination, route->prefix);
}

static int tell_host(struct router *router)
{
    AUTO(free) struct host_list *list = mem_alloc(sizeof(*list));
    int result;

    list->address_count = list->network_count = 0;
    result = sys_netlink_each_address(&router->host_links, note_address, list);
    if (result == 0)
        result = sys_netlink_each_route(&router->host_links, note_route, list);
    if (result < 0)
        return result;
    return router_rules_set_host(&router->filter, router->name,
                                 &(struct router_host){.addresses = list->addresses,
                                                       .address_count = list->address_count,
                                                       .networks = list->networks,
                                                       .network_count = list->network_count});
}

int router_refresh(struct router *router, struct error *err)
{
    int result;

    result = router_rules_apply_host(&router->host_filter, router->name, router->address);
    if (result < 0)
        return fail(err, result, "load our table on the host (nftables)");
    /* Before reading, so that a change in between is told again. */
    sys_netlink_watch_drain(router->watch);
    result = tell_host(router);
    if (result < 0)
        return fail(err, result, "tell the rules the host's addresses and networks");
    router->resolvers = router_resolver_read(router->resolver_file, router->resolver_fallback);
    result = router_rules_set_resolvers(&router->filter, &router->host_filter, router->name,
                                        router->resolvers.addresses, router->resolvers.count);
    return result < 0 ? fail(err, result, "tell the rules the host's name servers") : 0;
}

int router_watch(const struct router *router)
{
    return router->watch;
}

const struct router_resolvers *router_resolvers(const struct router *router)
{
    return &router->resolvers;
}

uint32_t router_slots(const struct router *router)
{
    return router->slots;
}
