/* What the host has of a sandbox. */
#pragma once

#include "model/words.h"

#define RUN_STATES(W)                                                                              \
    W(RUN_STATE_POOLED, "pooled", "runs, waits to be assigned")                                    \
    W(RUN_STATE_RUNNING, "running", "runs")                                                        \
    W(RUN_STATE_FROZEN, "frozen", "has processes, none of them moves")                             \
    W(RUN_STATE_STOPPING, "stopping", "was killed, is being taken down")                           \
    W(RUN_STATE_STOPPED, "stopped", "has a disk and no processes")                                 \
    W(RUN_STATE_BROKEN, "broken", "parts are missing: it can only be killed")
enum run_state { RUN_STATES(WORD_CONSTANT) };
