#include "launcher/network/network_namespace.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "launcher/network/network.h"
#include "sys/file/sys_file.h"
#include "sys/process/sys_namespace.h"

#define PATH_SIZE 128

int network_namespace_enter(int there)
{
    return sys_namespace_enter(there, CLONE_NEWNET);
}

void network_namespace_return(int home)
{
    if (sys_namespace_enter(home, CLONE_NEWNET) < 0)
        abort();
}

int network_namespace_set(const char *path, const char *value)
{
    AUTO(close) int fd = -EBADF;
    char whole[PATH_SIZE];
    int length = snprintf(whole, sizeof(whole), "/proc/sys/%s", path);

    if (length < 0 || (size_t) length >= sizeof(whole))
        return -ENAMETOOLONG;
    fd = sys_file_open(AT_FDCWD, whole, O_WRONLY, 0);
    if (fd < 0)
        return fd;
    return sys_file_write_full(fd, value, strlen(value));
}

/* The namespace we are in. Root of a namespace with an owner would have the right to any port. */
static int furnish(void)
{
    int r = network_loopback_up();

    return r < 0 ? r : network_namespace_set("net/ipv4/ip_unprivileged_port_start", "0");
}

int network_namespace_make(int home, int *ret_network)
{
    AUTO(close) int network = sys_namespace_make_network();
    int r = network < 0 ? network : network_namespace_enter(network);

    if (r < 0)
        return r;
    r = furnish();
    network_namespace_return(home);
    if (r == 0)
        *ret_network = TAKE_FD(network);
    return r;
}
