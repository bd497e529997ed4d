#include "load/exchange.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "load/fail.h"

size_t exchange_write_get(const struct load_options *options, char ret[static EXCHANGE_REQUEST_MAX])
{
    int length = snprintf(ret, EXCHANGE_REQUEST_MAX, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n",
                          options->path);

    if (length < 0 || length >= EXCHANGE_REQUEST_MAX)
        fail("the path is longer than %d bytes", EXCHANGE_REQUEST_MAX);
    return (size_t) length;
}

static int send_all(int fd, const char *bytes, size_t length)
{
    while (length) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return -errno;
        bytes += sent;
        length -= (size_t) sent;
    }
    return 0;
}

int exchange_run(int fd, const char *request, size_t length, struct response *response)
{
    char buffer[16 << 10];
    int r = send_all(fd, request, length);

    response_begin(response);
    while (r == 0 && !response_is_done(response)) {
        ssize_t received = recv(fd, buffer, sizeof(buffer), 0);
        ssize_t used;

        if (received < 0 && errno == EINTR)
            continue;
        if (received <= 0)
            return received == 0 ? -ECONNRESET : -errno;
        used = response_feed(response, buffer, (size_t) received);
        if (used != received)
            return used < 0 ? (int) used : -EPROTO;
    }
    return r;
}
