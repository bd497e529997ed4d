/* The routes every dialect shares: /health, /ready, /metrics.
 *
 * /health says that the process answers; it never needs a key and is what all clients of all
 * dialects ask first. /ready says whether new work is taken: 503 while starting and draining and
 * while sandboxes cannot be had; it also says whether there are any here at all, and what is wrong
 * with the store of objects, if anything.
 * /metrics is Prometheus text (metrics.h) and needs an administrator's key. */
#pragma once

#include <stdbool.h>

#include "api/http/api.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/http/http_route.h"
#include "net/http/http_server.h"
#include "net/turn_meter.h"

struct operations {
    struct http_server *server;     /* borrowed; set once it exists */
    const struct clock *clock;      /* borrowed */
    const struct log *log;          /* borrowed: its dropped lines are counted */
    const struct api *api;          /* borrowed, may be NULL: no figures about sandboxes */
    const struct turn_meter *meter; /* borrowed, may be NULL */
    uint64_t started_ns;
    bool ready;
    bool has_sandboxes;
    const char *const *sandboxes_wait; /* borrowed, may be NULL: what keeps them from being ready */
    const char *const *objects_problem; /* borrowed, may be NULL: what is wrong with the store of
                                         * objects; it is tried again and again, and everything
                                         * else goes on */
};

/* The table, with `operations` as its context (borrowed). */
struct http_mount operations_mount(struct operations *operations);
