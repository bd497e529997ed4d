/* How a sandbox, or a process of ours, ended. */
#pragma once

#include "model/words.h"

#define ENDING_SIGNAL_MAX 64

#define ENDING_KINDS(W)                                                                            \
    W(ENDED_STATUS, "exited", "ended by itself, `value` is the exit status")                       \
    W(ENDED_SIGNAL, "signaled", "`value` is the signal, 1 to 64")                                  \
    W(ENDED_OOM, "oom", "killed for lack of memory")                                               \
    W(ENDED_UNKNOWN, "unknown", "ended while nobody could look")
enum ending_kind { ENDING_KINDS(WORD_CONSTANT) };

/* Beware: all zero is an exit with status 0. Say ENDED_UNKNOWN where nothing is known yet. */
struct ending {
    enum ending_kind kind;
    int value; /* status or signal, else 0 */
};
