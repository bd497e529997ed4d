/* What the harness asks of whoever can reach sandboxes: the daemon's api, or a test. The harness
 * itself knows neither rows nor the launcher. */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "base/id.h"

struct http_origin;

/* `sockets` belong to whoever is answered. */
typedef void reach_sockets_done(void *context, const struct error *failure, const int *sockets,
                                size_t count);

struct reach {
    void *self;
    /* Where the container API of a running sandbox is asked: borrowed until the end of this turn, and
     * for as long as an exchange on it lasts. NULL with the failure. */
    struct http_origin *(*agent)(void *self, const struct id *sandbox, struct error *err);
    /* Unconnected, non-blocking TCP sockets of the sandbox's network. Answered once, perhaps from
     * inside the call. */
    void (*sockets)(void *self, const struct id *sandbox, size_t count, reach_sockets_done *done,
                    void *context);
};
