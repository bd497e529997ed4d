/* The daemon's hold on sandboxes: the provider `local` over the launcher's socket, when a launcher
 * started us, otherwise nothing.
 *
 * Opened while the daemon starts; the answer comes later, from the loop. Exits of sandboxes are
 * logged. Without its launcher the daemon is of no use any more: `lost` is called once, and the
 * daemon ends, to be started again by the next launcher. */
#pragma once

#include <stdbool.h>

#include "base/log.h"
#include "net/loop.h"
#include "programs/burrow/settings.h"
#include "provider/provider.h"

struct sandboxes {
    struct provider *provider; /* owned; NULL: there are none */
    struct log *log;           /* borrowed */
    const char *waits_for;     /* static: what keeps them from being ready; NULL: nothing */
    void (*lost)(void *context);
    void *context;
    bool is_lost;
};

/* Reads the launcher's descriptor and folder from the environment (serve_root.h) and takes the
 * descriptor. Without them there are no sandboxes, which is logged, and 0 is returned. `lost` is
 * called from the loop, at most once. Returns 0, or -1 when what the environment names is no
 * launcher. */
int sandboxes_open(struct sandboxes *sandboxes, struct loop *loop, struct log *log,
                   const struct settings *settings, void (*lost)(void *context), void *context,
                   struct error *err);

/* Let go of them; they go on. The loop must run until it is empty. May be called again. */
void sandboxes_close(struct sandboxes *sandboxes);
