#include "launcher/network/network_spare.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "launcher/network/network.h"
#include "launcher/network/network_namespace.h"
#include "sys/file/sys_file.h"
#include "sys/process/sys_namespace.h"

#define NANOSECONDS_PER_MS UINT64_C(1000000)

/* When so many in a row are not as new, perhaps new ones are no longer what they were: they begin
 * with some of the host's settings. */
#define REFUSED_MAX 16

/* --- what is counted -------------------------------------------------------------------------- */

/* Shows the namespace that its thread is in at the time: opened once, since the way to it is longer
 * than what is read there. */
#define COUNTERS "/proc/thread-self/net"
#define PACKETS  "dev"

/* Not `netstat`, which is dearer than all of these: what is in there takes packets. */
static const struct {
    const char *name;
    bool is_first_line; /* the rest is about all namespaces together */
} counted[] = {
    {PACKETS, false},
    /* sockets of every kind */
    {"sockstat", true},
    {"snmp", false},
    {"snmp6", false},
    /* they outlive their sockets */
    {"ip6_flowlabel", false},
    /* routes that were only asked for */
    {"rt6_stats", false},
};

/* Add a file to the look. What this kernel has not is the same in all namespaces. */
static int add_file(struct network_look *look, int counters, const char *name, bool is_first_line)
{
    AUTO(close) int fd = sys_file_open(counters, name, O_RDONLY, 0);
    char *text = look->text + look->length;
    size_t room = sizeof(look->text) - look->length;
    const char *end;
    ssize_t got;

    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    got = sys_file_read_full(fd, text, room);
    if (got < 0)
        return (int) got;
    if ((size_t) got == room)
        return -EFBIG;
    end = is_first_line ? memchr(text, '\n', (size_t) got) : NULL;
    look->length += end ? (size_t) (end - text) : (size_t) got;
    return 0;
}

/* Of the namespace we are in. */
static int look_around(int counters, struct network_look *ret_look)
{
    for (size_t i = 0; i < ARRAY_COUNT(counted); i++) {
        int r = add_file(ret_look, counters, counted[i].name, counted[i].is_first_line);

        if (r < 0)
            return r;
    }
    return 0;
}

/* Of the namespace we are in; for what is seen long before its rest is over. */
static int look_at_packets(int counters, struct network_look *ret_look)
{
    return add_file(ret_look, counters, PACKETS, false);
}

static bool find_counters(struct network_spares *spares)
{
    if (!spares->has_counters) {
        spares->counters = sys_file_open(AT_FDCWD, COUNTERS, O_PATH | O_DIRECTORY, 0);
        spares->has_counters = spares->counters >= 0;
    }
    return spares->has_counters;
}

/* The length is 0 when something failed. */
static void look_into(struct network_spares *spares, int network,
                      int (*look)(int counters, struct network_look *ret_look),
                      struct network_look *ret_look)
{
    ret_look->length = 0;
    if (!find_counters(spares) || network_namespace_enter(network) < 0)
        return;
    if (look(spares->counters, ret_look) < 0)
        ret_look->length = 0;
    network_namespace_return(spares->home);
}

/* Packets come first in what a new one looks like. */
static bool begins_as_new(const struct network_spares *spares, const struct network_look *look)
{
    return look->length && look->length <= spares->fresh.length &&
           memcmp(look->text, spares->fresh.text, look->length) == 0;
}

/* --- making ----------------------------------------------------------------------------------- */

/* The namespace we are in. Its owner's root would have the right to take any port. */
static int furnish(void)
{
    int r = network_loopback_up();

    return r < 0 ? r : network_namespace_set("net/ipv4/ip_unprivileged_port_start", "0");
}

static int make(const struct network_spares *spares, int *ret_network)
{
    AUTO(close) int network = sys_namespace_make_network();
    int r = network < 0 ? network : network_namespace_enter(network);

    if (r < 0)
        return r;
    r = furnish();
    network_namespace_return(spares->home);
    if (r == 0)
        *ret_network = TAKE_FD(network);
    return r;
}

static uint64_t now_ns(void)
{
    return clock_monotonic_ns(clock_system());
}

static uint64_t after_a_rest(void)
{
    return now_ns() + NETWORK_SPARES_REST_MS * NANOSECONDS_PER_MS;
}

/* Whether we know what a new one looks like. It has to rest, too: we closed a socket there. */
static bool know_fresh(struct network_spares *spares)
{
    if (spares->fresh.length)
        return true;
    if (!spares->has_model) {
        spares->has_model = make(spares, &spares->model.fd) == 0;
        spares->model.rested_ns = after_a_rest();
        return false;
    }
    if (now_ns() < spares->model.rested_ns)
        return false;
    look_into(spares, spares->model.fd, look_around, &spares->fresh);
    (void) fd_close(spares->model.fd);
    spares->has_model = false;
    return spares->fresh.length != 0;
}

/* --- using again ------------------------------------------------------------------------------ */

static void count_refusal(struct network_spares *spares)
{
    if (++spares->refused < REFUSED_MAX)
        return;
    spares->refused = 0;
    spares->fresh.length = 0; /* learn it again */
}

/* Whether it can be given to somebody. */
static bool is_as_new(struct network_spares *spares, int network)
{
    struct network_look look;
    bool is_new;

    look_into(spares, network, look_around, &look);
    is_new = look.length == spares->fresh.length && begins_as_new(spares, &look);
    if (!is_new || network_namespace_enter(network) < 0)
        return false;
    /* Whom somebody only thought of calling shows in the age of a cached route. */
    is_new = network_namespace_set("net/ipv4/route/flush", "1") == 0;
    network_namespace_return(spares->home);
    return is_new;
}

/* The oldest, if it has been ready for so long; the caller's. */
static bool next_ready(struct network_spares *spares, uint64_t milliseconds, int *ret_network)
{
    const struct network_spare *oldest = &spares->spares[spares->first];

    if (spares->count == 0 || now_ns() < oldest->rested_ns + milliseconds * NANOSECONDS_PER_MS)
        return false;
    *ret_network = oldest->fd;
    spares->first = (spares->first + 1) % NETWORK_SPARES_MAX;
    spares->count--;
    return true;
}

int network_spares_take(struct network_spares *spares, int *ret_network)
{
    int network;

    while (know_fresh(spares) && next_ready(spares, 0, &network)) {
        if (is_as_new(spares, network)) {
            spares->refused = 0;
            *ret_network = network;
            return 0;
        }
        (void) fd_close(network);
        count_refusal(spares);
    }
    return make(spares, ret_network);
}

bool network_spares_give(struct network_spares *spares, int network)
{
    struct network_look packets;
    size_t place = (spares->first + spares->count) % NETWORK_SPARES_MAX;

    if (spares->count == NETWORK_SPARES_MAX)
        return false;
    look_into(spares, network, look_at_packets, &packets);
    /* While that is unknown, the rest will show. */
    if (!packets.length || (spares->fresh.length && !begins_as_new(spares, &packets)))
        return false;
    spares->spares[place] = (struct network_spare){network, after_a_rest()};
    spares->count++;
    return true;
}

void network_spares_age(struct network_spares *spares)
{
    int network;

    while (next_ready(spares, NETWORK_SPARES_KEEP_MS, &network))
        (void) fd_close(network);
}

void network_spares_clear(struct network_spares *spares)
{
    for (; spares->count; spares->count--) {
        (void) fd_close(spares->spares[spares->first].fd);
        spares->first = (spares->first + 1) % NETWORK_SPARES_MAX;
    }
    if (spares->has_model)
        (void) fd_close(spares->model.fd);
    if (spares->has_counters)
        (void) fd_close(spares->counters);
    spares->has_model = spares->has_counters = false;
}
