/* Where the daemon's sandboxes run: the provider `local` over the launcher's socket, when a
 * launcher started us, otherwise nowhere. */
#pragma once

#include "base/error.h"
#include "base/log.h"
#include "net/loop.h"
#include "programs/burrow/settings.h"
#include "provider/provider.h"

/* Reads the launcher's descriptor and folder from the environment (serve_root.h) and takes the
 * descriptor. Without them there are no sandboxes, which is logged: returns 0 and a NULL provider.
 * Otherwise 0 and a provider to be opened, or -1 when what the environment names is no launcher. */
int sandboxes_provider(struct loop *loop, struct log *log, const struct settings *settings,
                       struct provider **ret_provider, struct error *err);
