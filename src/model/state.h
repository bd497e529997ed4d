/* The states of a sandbox, said once.
 *
 * There are two sets, because there are two questions. A sandbox's *status* is what its owner is
 * told, and what its row says; its *run state* is what the host has of it. One that is hibernated
 * for its owner is stopped on its host; one that is pooled on its host is nobody's yet.
 *
 * The ways between the statuses:
 *
 *                    create                    stop
 *        (nothing) ────────► creating ──► running ────► stopping ──► stopped
 *                                │         │  ▲ ▲                      │
 *                                ▼   sleep │  │ └────── starting ◄─────┘ start, or use
 *                              error       ▼  │
 *                                │      frozen, hibernated
 *                                │         │  ▲
 *                                │    use, │  │
 *                                │    wake └─► waking
 *                                ▼
 *     any state ── destroy ──► destroyed
 *
 * frozen: asleep with its memory. hibernated: asleep with its disk only; its processes were ended.
 * stopped: ended by itself or because somebody asked. error: can only be looked at and destroyed.
 * A sandbox that is busy (creating, starting, waking, stopping) finishes that before anything else.
 */
#pragma once

#include <stdbool.h>

#include "model/words.h"

/* --- what its owner is told -------------------------------------------------------------------- */

#define SANDBOX_STATUSES(X)                                                                        \
    X(CREATING, "creating")                                                                        \
    X(STARTING, "starting")                                                                        \
    X(RUNNING, "running")                                                                          \
    X(FROZEN, "frozen")                                                                            \
    X(HIBERNATED, "hibernated")                                                                    \
    X(WAKING, "waking")                                                                            \
    X(STOPPING, "stopping")                                                                        \
    X(STOPPED, "stopped")                                                                          \
    X(ERROR, "error")                                                                              \
    X(DESTROYED, "destroyed")                                                                      \
    X(UNKNOWN, "unknown") /* the provider does not say; never guessed */

enum sandbox_status {
#define X(name, text) SANDBOX_##name,
    SANDBOX_STATUSES(X)
#undef X
        SANDBOX_STATUS_COUNT
};

enum sandbox_action {
    SANDBOX_ACTION_USE, /* a request needs it running */
    SANDBOX_ACTION_START,
    SANDBOX_ACTION_STOP,
    SANDBOX_ACTION_SLEEP,
    SANDBOX_ACTION_WAKE,
    SANDBOX_ACTION_UPDATE,
    SANDBOX_ACTION_DESTROY,
    SANDBOX_ACTION_SNAPSHOT, /* its disk is looked at or copied: snapshot, fork, diff */
    SANDBOX_ACTION_ROLL_BACK,
    SANDBOX_ACTION_COUNT
};

enum sandbox_verdict {
    SANDBOX_GO,      /* do it now */
    SANDBOX_ALREADY, /* it is so: succeed and do nothing */
    SANDBOX_WAIT,    /* something is under way: ask again when it is over */
    SANDBOX_REFUSE,  /* ERR_CONFLICT, with what to do instead */
};

enum sandbox_verdict sandbox_verdict(enum sandbox_status status, enum sandbox_action action);

/* What to do instead, for the message of a refusal: "start it first". Never NULL. */
const char *sandbox_advice(enum sandbox_status status, enum sandbox_action action);

const char *sandbox_status_text(enum sandbox_status status);
int sandbox_status_from_text(const char *text, enum sandbox_status *ret_status);

/* frozen or hibernated: what other dialects call "sleeping". */
bool sandbox_status_is_asleep(enum sandbox_status status);

/* Something is under way. */
bool sandbox_status_is_busy(enum sandbox_status status);

/* --- what its host has ------------------------------------------------------------------------- */

/* What a launcher says of one. */
#define RUN_STATES(W)                                                                              \
    W(RUN_STATE_POOLED, "pooled", "runs, waits to be assigned")                                    \
    W(RUN_STATE_RUNNING, "running", "runs")                                                        \
    W(RUN_STATE_FROZEN, "frozen", "has processes, none of them moves")                             \
    W(RUN_STATE_STOPPING, "stopping", "was killed, is being taken down")                           \
    W(RUN_STATE_STOPPED, "stopped", "has a disk and no processes")                                 \
    W(RUN_STATE_BROKEN, "broken", "parts are missing: it can only be killed")

/* And what a daemon knows of one that it has just asked for something. */
#define RUN_STATES_ASKED(W)                                                                        \
    W(RUN_STATE_ABSENT, "absent", "there is none")                                                 \
    W(RUN_STATE_CREATING, "being created", "a place that is kept: nobody sees it")                 \
    W(RUN_STATE_STARTING, "being started", "was stopped")                                          \
    W(RUN_STATE_DESTROYING, "being destroyed", "whatever it was")

enum run_state { RUN_STATES(WORD_CONSTANT) RUN_STATES_ASKED(WORD_CONSTANT) RUN_STATE_COUNT };

/* Sets of them: what a call needs. */
#define RUN_STATE_BIT(state) (1U << RUN_STATE_##state)
#define RUN_STATES_ALIVE     (RUN_STATE_BIT(RUNNING) | RUN_STATE_BIT(FROZEN))
#define RUN_STATES_WHOLE     (RUN_STATES_ALIVE | RUN_STATE_BIT(STOPPED)) /* it has a disk, at rest */
#define RUN_STATES_ENDABLE                                                                         \
    (RUN_STATES_WHOLE | RUN_STATE_BIT(STOPPING) | RUN_STATE_BIT(STARTING) | RUN_STATE_BIT(BROKEN))

/* "running"; of one that is asked for something: what is being done, "being stopped". */
const char *run_state_text(enum run_state state);

/* What others see of one that is asked for something: what it is until that has happened. */
enum run_state run_state_shown(enum run_state state);
