/* A use: somebody needs a sandbox running, and it stays awake as long as the use lasts.
 *
 * A sleeping one is woken; all uses that come meanwhile share the one wake. A stopped one is
 * started, unless somebody asked for the stop: then ERR_CONFLICT, except with SANDBOX_USE_START.
 *
 *     sandbox_use_begin(domain, sandbox, &mine->use, 0, ready);
 *     -> ready(&mine->use, NULL)          it runs; its agent can be asked
 *     sandbox_use_end(&mine->use);        from now on it may fall asleep again
 *
 * `ready` is called exactly once and may be called from inside sandbox_use_begin when it runs
 * already, or cannot: a request path of a running sandbox costs nothing. After a failure the use is
 * over. sandbox_use_end before that cancels.
 * The sandbox of an open use is not freed; it may be destroyed all the same (its agent is gone
 * then). */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/list.h"
#include "base/trace.h"
#include "domain/domain.h"

struct sandbox;

enum sandbox_use_flag {
    SANDBOX_USE_START = 1 << 0, /* also when somebody stopped it */
    SANDBOX_USE_QUIET = 1 << 1, /* no wake: ERR_CONFLICT unless it runs */
};

struct sandbox_use {
    struct list link; /* while it waits */
    struct domain *domain;
    struct sandbox *sandbox; /* NULL: not begun, or ended */
    struct trace_context trace;
    void (*ready)(struct sandbox_use *use, const struct error *failure);
    unsigned int flags;
    bool is_ready;
};

void sandbox_use_begin(struct domain *domain, struct sandbox *sandbox, struct sandbox_use *use,
                       unsigned int flags,
                       void (*ready)(struct sandbox_use *use, const struct error *failure));

/* Safe when it was not begun (zeroed) or failed. */
void sandbox_use_end(struct sandbox_use *use);
