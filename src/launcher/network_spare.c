#include "launcher/network_spare.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "launcher/network.h"
#include "launcher/network_namespace.h"
#include "sys/sys_file.h"
#include "sys/sys_namespace.h"

/* --- what is counted -------------------------------------------------------------------------- */

/* Not `netstat`, which is dearer than all of these: what is in there takes packets. */
static const struct {
    const char *path;
    bool is_first_line; /* the rest is about all namespaces together */
} counted[] = {
    {"/proc/thread-self/net/dev", false},
    {"/proc/thread-self/net/sockstat", true}, /* sockets of every kind */
    {"/proc/thread-self/net/snmp", false},
    {"/proc/thread-self/net/snmp6", false},
    {"/proc/thread-self/net/ip6_flowlabel", false}, /* they outlive their sockets */
};

/* Add a file to the look. What this kernel has not is the same in all namespaces. */
static int add_file(struct network_look *look, const char *path, bool is_first_line)
{
    AUTO(close) int fd = sys_file_open(AT_FDCWD, path, O_RDONLY, 0);
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
static int take_look(struct network_look *ret_look)
{
    ret_look->length = 0;
    for (size_t i = 0; i < ARRAY_COUNT(counted); i++) {
        int r = add_file(ret_look, counted[i].path, counted[i].is_first_line);

        if (r < 0) {
            ret_look->length = 0;
            return r;
        }
    }
    return 0;
}

static bool is_as_new(const struct network_spares *spares, int network)
{
    struct network_look look;
    int r = network_namespace_enter(network);

    if (r < 0)
        return false;
    r = take_look(&look);
    network_namespace_return(spares->home);
    return r == 0 && look.length && look.length == spares->fresh.length &&
           memcmp(look.text, spares->fresh.text, look.length) == 0;
}

/* --- making and keeping ----------------------------------------------------------------------- */

/* Of the namespace we are in. Its owner's root would have the right to take any port. */
static int furnish(struct network_spares *spares)
{
    int r;

    /* First: the kernel counts a socket for a while after it is closed. Unknown: none is kept. */
    if (spares->fresh.length == 0)
        (void) take_look(&spares->fresh);
    r = network_loopback_up();
    return r < 0 ? r : network_namespace_set("net/ipv4/ip_unprivileged_port_start", "0");
}

static int make(struct network_spares *spares, int *ret_network)
{
    AUTO(close) int network = sys_namespace_make_network();
    int r = network < 0 ? network : network_namespace_enter(network);

    if (r < 0)
        return r;
    r = furnish(spares);
    network_namespace_return(spares->home);
    if (r == 0)
        *ret_network = TAKE_FD(network);
    return r;
}

int network_spares_take(struct network_spares *spares, int *ret_network)
{
    if (spares->count == 0)
        return make(spares, ret_network);
    *ret_network = spares->fds[--spares->count];
    return 0;
}

bool network_spares_give(struct network_spares *spares, int network)
{
    if (spares->count == NETWORK_SPARES_MAX || !is_as_new(spares, network))
        return false;
    spares->fds[spares->count++] = network;
    return true;
}

void network_spares_clear(struct network_spares *spares)
{
    while (spares->count)
        (void) fd_close(spares->fds[--spares->count]);
}
