/* A small world around the lab's sandboxes: their network, and what lies behind it.
 *
 *     internet  25.7.7.1, and many addresses on lo ---- 25.7.7.2 eth0  host  192.0.2.2 on lo
 *
 * "The host" is the guard's own network namespace, with a real router (launcher/network/router.h)
 * in it; the internet is a namespace behind it. In both somebody answers (attack_server.h). Nothing
 * leaves these namespaces, and they go with the lab.
 *
 * Walls that can be opened, by name:
 *
 *     router_rules    the table in the router's namespace
 *     host_rules      the table on the host
 *     source_check    the kernel's own check of sources (rp_filter) in the router
 *     no_ipv6         IPv6 is off in the router
 *     connection_limit
 */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "base/id.h"

struct wall_world;

/* Make it; its files go to `folder`, which exists. ERR_UNAVAILABLE where this machine cannot. */
int wall_world_make(const char *folder, struct wall_world **ret_world, struct error *err);

/* Join the sandbox with this first process. Its address goes to `ret_address`, which has room for
 * INET_ADDRSTRLEN. */
int wall_world_join(struct wall_world *world, const struct id *id, pid_t pid, char *ret_address,
                    struct error *err);

/* Close all walls and open those named, with commas between; "-": none. Changes `names`. */
int wall_world_open(struct wall_world *world, char *names, struct error *err);

/* Rules of its own for a joined sandbox, in the order given:
 *
 *     allow:10.9.9.0/24:tcp:80-81     or refuse; protocol any, tcp or udp; ports 0-65535: all
 *     only_listed                     refuse what no rule allows
 *     no_names                        refuse questions to our name server
 *     connections:3
 *
 * None: the default again. */
int wall_world_set_policy(struct wall_world *world, const struct id *id, char *const *words,
                          size_t count, struct error *err);

/* The link-local address of IPv6 that the router has at the sandbox's link, or "" for none; room
 * for INET6_ADDRSTRLEN. */
int wall_world_router_ipv6(struct wall_world *world, const struct id *id, char *ret_address,
                           struct error *err);

/* Of a sandbox that ended: until its link is gone. */
int wall_world_leave(struct wall_world *world, const struct id *id, struct error *err);
