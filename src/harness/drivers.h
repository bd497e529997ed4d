/* The domain's harness.h: OpenCode's server, and programs that print lines of JSON, in sandboxes.
 *
 * Agents are reached through `reach` only: their processes through the container API of their
 * sandbox, OpenCode over HTTP on a port of its loopback. Both are believed nothing: whatever is asked
 * has a time and a size, and an answer that is neither is a failure of that turn. */
#pragma once

#include "base/clock.h"
#include "base/log.h"
#include "domain/harness.h"
#include "harness/reach.h"
#include "net/loop.h"

/* Until an agent server answers its first probe, unless the place says otherwise. */
#define HARNESS_START_MS 60000

struct drivers;

struct drivers_options {
    struct loop *loop;         /* borrowed, as all below */
    const struct clock *clock; /* of the ids of messages */
    struct log *log;           /* may be NULL */
    struct reach reach;
    uint64_t start_ms; /* 0: HARNESS_START_MS */
};

struct drivers *drivers_new(const struct drivers_options *options);

/* What the domain is given. Borrowed: lives as long as `drivers`. */
const struct harness *drivers_harness(struct drivers *drivers);

/* Turns are left and servers forgotten; they go on. `done` (may be NULL) when all is gone. */
void drivers_close(struct drivers *drivers, void (*done)(void *context), void *context);
