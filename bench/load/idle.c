#include "load/idle.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/memory.h"
#include "load/exchange.h"
#include "load/fail.h"

static int open_idle(const struct load_options *options, unsigned turn)
{
    struct response response;
    char request[EXCHANGE_REQUEST_MAX];
    size_t length = exchange_write_get(options, request);
    int fd = target_connect(&options->target, turn);
    int r;

    if (fd < 0)
        fail("connection %u: %s", turn, strerror(-fd));
    r = exchange_run(fd, request, length, &response);
    if (r < 0)
        fail("request on connection %u: %s", turn, strerror(-r));
    if (response.status != 200)
        fail("GET %s answered %d", options->path, response.status);
    return fd;
}

/* An idle connection has nothing to read; end of file or an error means the server let go. */
static unsigned count_lost(const int *fds, unsigned count)
{
    unsigned lost = 0;
    char byte;

    for (unsigned i = 0; i < count; i++) {
        if (recv(fds[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN)
            lost++;
    }
    return lost;
}

void idle_run(const struct load_options *options)
{
    AUTO(free) int *fds = mem_alloc_array(options->connections, sizeof(*fds));
    char byte;

    for (unsigned i = 0; i < options->connections; i++)
        fds[i] = open_idle(options, i);
    printf("{\"held\":%u}\n", options->connections);
    (void) fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    printf("{\"lost\":%u}\n", count_lost(fds, options->connections));
    for (unsigned i = 0; i < options->connections; i++)
        target_reset(fds[i]);
}
