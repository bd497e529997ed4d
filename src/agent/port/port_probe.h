/* One look at a TCP port of this machine: does it take a connection, and what does it answer?
 *
 * A probe frees itself: no call after on_done or port_probe_cancel. All functions belong to the
 * loop's thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/loop.h"
#include "sys/network/sys_address.h"

/* A peer that says nothing for so long has failed. */
#define PORT_PROBE_TIMEOUT_MS 5000

struct port_probe;

struct port_probe_request {
    struct sys_address address;
    const char *http; /* a request to be sent, borrowed until the end; NULL: connecting is all */
    size_t http_length;
    /* `result`: the status of the answer, 0 when connecting was all, or -errno. Never from inside
     * port_probe_start. */
    void (*on_done)(struct port_probe *probe, void *data, int result);
    void *data;
};

/* Returns 0, or -errno when the answer is no already: on_done does not come. */
int port_probe_start(struct loop *loop, const struct port_probe_request *request,
                     struct port_probe **ret_probe);

void port_probe_cancel(struct port_probe *probe);

/* The status of an answer that begins with these bytes: 100 to 999; -EAGAIN when there must be more
 * of them to tell; -EPROTO when it is no HTTP. */
int port_probe_parse_status(const char *bytes, size_t length);
