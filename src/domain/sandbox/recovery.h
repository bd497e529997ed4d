/* After a restart: what the rows say is compared with what the provider has, and one of them is put
 * right; a line per sandbox says what was found and what was done.
 *
 * The provider knows what is. A row that is behind (the daemon died between a step and its commit)
 * follows; a sandbox whose disk is gone is in error until somebody destroys it, and never silently
 * made again, unless nobody was promised more than an empty one (new_disks.h): then it is stopped,
 * and its next start makes another; a sandbox without a row was never acknowledged, or destroyed,
 * and is taken down. */
#pragma once

#include "domain/domain_internal.h"

enum recovery_action {
    RECOVERY_KEEP,      /* it is as the row says */
    RECOVERY_RUN,       /* it runs: the row follows */
    RECOVERY_FREEZE,    /* it is frozen: the row follows */
    RECOVERY_STOP,      /* it ended: the row follows */
    RECOVERY_HIBERNATE, /* its processes ended while it slept: it goes on sleeping */
    RECOVERY_LOSE,      /* it is gone: error */
    RECOVERY_BREAK,     /* parts of it are gone: error */
    RECOVERY_ACTION_COUNT,
};

/* The table. */
enum recovery_action recovery_action(enum sandbox_status row, enum run_state state);

/* All rows are in memory, the domain is open, and this is what the provider has. */
void recovery_run(struct domain *domain, const struct provider_sandbox *sandboxes, size_t count);

/* There is no provider: nobody knows what is. */
void recovery_run_without(struct domain *domain);
