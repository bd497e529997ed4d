/* The warm pool, as the bridge shows it: sandboxes that the provider keeps ready.
 *
 * Providers differ in whether they have one, so the daemon hands in what there is (struct api). */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct bridge_pool_figures {
    size_t warm;         /* ready, and nobody's yet */
    size_t target;       /* how many are to be kept */
    uint64_t refresh_ms; /* how long until a missing one is noticed at the latest */
    size_t batch;        /* how many are made at once */
};

struct bridge_pool_ops {
    void *self;
    void (*figures)(void *self, struct bridge_pool_figures *ret_figures);
    /* Fill it up to its target, also after a drain. Returns at once. */
    void (*prime)(void *self);
    /* Give up what is ready and make no more until it is primed. Returns at once. */
    void (*drain)(void *self);
};
