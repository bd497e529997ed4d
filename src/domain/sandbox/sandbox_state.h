/* The states of a sandbox and the ways between them: one table.
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
