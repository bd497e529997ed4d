/* The life of an agent server, as decisions: in which state what happens leads to which state, and
 * what is to be done. No clock, no process, no socket.
 *
 *     absent ─► looking ─► spawning ─► probing ─► loading ─► watching ─► ready
 *                  └─ it runs already ──▲                                  │ its events broke off
 *                                       └────────────── cut ◄──────────────┘
 *
 *     whenever it has ended:  ─► resting (2, 4, 8, 16, 32 s) ─► spawning ─► ..., at last failing ─► failed
 *     whenever it is silent for too long:  ─► killing ─► failing ─► failed
 *
 * "Failing" asks for the last that it wrote. A failed one is started afresh by the next who wants it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LIFE_RESTARTS_MAX 5

enum life_state {
    LIFE_ABSENT,
    LIFE_LOOKING,
    LIFE_SPAWNING,
    LIFE_PROBING,
    LIFE_LOADING,
    LIFE_WATCHING,
    LIFE_READY,
    LIFE_CUT,
    LIFE_RESTING,
    LIFE_KILLING,
    LIFE_FAILING,
    LIFE_FAILED,
    LIFE_STATES,
};

enum life_event {
    LIFE_WANTED,    /* somebody asks for it */
    LIFE_RUNS,      /* its process does */
    LIFE_RUNS_NOT,  /* there is none, or it has ended */
    LIFE_MISSING,   /* the sandbox has no such program */
    LIFE_REFUSED,   /* the sandbox's own agent could not be asked, or refused */
    LIFE_HEALTHY,   /* it answered a probe */
    LIFE_UNWELL,    /* it did not */
    LIFE_LOADED,    /* its project is */
    LIFE_CONNECTED, /* its events come */
    LIFE_BROKE_OFF, /* they do not any more */
    LIFE_LATE,      /* it was not ready in time */
    LIFE_TIMER,     /* a pause is over, and somebody still wants it */
    LIFE_UNWANTED,  /* a pause is over, and nobody does */
    LIFE_KILLED,    /* all of it is dead, or cannot be killed */
    LIFE_LOGGED,    /* what it wrote is known, as far as it can be */
};

enum life_action {
    LIFE_NOTHING,
    LIFE_LOOK,
    LIFE_SPAWN,
    LIFE_PROBE,
    LIFE_PROBE_LATER,
    LIFE_LOAD,
    LIFE_WATCH,
    LIFE_TELL_READY,
    LIFE_TELL_LATER, /* that it is ready: nobody is answered from inside his call */
    LIFE_LOOK_LATER, /* at a server whose events broke off */
    LIFE_REST,       /* for life_rest_ms, unless that was the last time: then LIFE_READ_LOG */
    LIFE_KILL,
    LIFE_READ_LOG,
    LIFE_TELL_FAILED,
};

struct life {
    enum life_state state;
    unsigned int restarts; /* in a row */
    unsigned int cuts;     /* of its events, in a row */
};

enum life_action life_next(struct life *life, enum life_event event);

/* It has been well for a while: what was before does not count any more. */
void life_forgive(struct life *life);

/* How long a pause of LIFE_REST, or LIFE_LOOK_LATER, lasts. */
uint64_t life_rest_ms(const struct life *life);
uint64_t life_look_ms(const struct life *life);

const char *life_state_text(enum life_state state);
