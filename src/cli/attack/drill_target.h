/* What attempts from inside a sandbox aim at: things of ours on this host (attack/attack.h names
 * them). They only mean something where the daemon is on this host, too. */
#pragma once

#include <sys/types.h>

#include "base/error.h"

#define DRILL_TARGETS 9

struct drill_target {
    char mark[64], folder[64], pipe[64], abstract[64];
    char texts[DRILL_TARGETS][128]; /* "TARGET_PID=123" */
    int listeners[2];
    pid_t looker; /* 0: none */
};

int drill_target_make(struct drill_target *ret_target, const char *mark, struct error *err);
/* What a drill of that mark left on this host when it was killed. */
void drill_target_sweep(const char *mark);
void drill_target_remove(struct drill_target *target);

/* The name of the target that an attempt needs, "" for none. */
const char *drill_target_of(const char *attempt);
