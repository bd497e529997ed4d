/* Lives of sandboxes over the API, one after the other or side by side, with the time of each step.
 *
 * A life is a few steps (load/api_step.h) on one connection. With a rate it is an open loop: a life
 * begins at its time, whether others are over or not, and its first step is counted from then. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "load/api_connection.h"
#include "load/api_step.h"

#define API_STEPS_MAX       4
#define API_CONNECTIONS_MAX 512

struct api_run {
    const struct api_step *steps[API_STEPS_MAX];
    size_t step_count;
    uint64_t first;   /* number of the first sandbox */
    uint64_t stride;  /* 1: each life has its own; 0: all have the first */
    uint64_t count;   /* of lives */
    uint64_t at_once; /* at most, up to API_CONNECTIONS_MAX */
    uint64_t rate;    /* lives begun per second; 0: as soon as there is a connection */
};

/* Connections stay open between runs. */
struct api_pool {
    const struct api_server *server;
    struct api_connection connections[API_CONNECTIONS_MAX];
    size_t count;
};

/* Run all, and print {"wall_us":N,"STEP_us":[...],...}: times in the order the lives began. Blocks;
 * ends the program when anything goes wrong. */
void api_run(const struct api_run *run, struct api_pool *pool, FILE *out);

void api_pool_close(struct api_pool *pool);
