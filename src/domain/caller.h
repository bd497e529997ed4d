/* Who asks: made by admission for every request, passed down to everything that is done for it.
 *
 * Whoever has no right to see an object is told that there is none: sandbox_find and its like
 * compare the caller, and no dialect looks at owners by itself. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"

/* Every secret that somebody can be known by begins so (keys, tokens of logins), for scanners of
 * leaked ones, and so that none is passed on to where it does not belong. */
#define CALLER_SECRET_PREFIX "burrow_"

enum caller_scope {
    CALLER_NOBODY,  /* no credential: public routes only */
    CALLER_PORT,    /* one port of one sandbox */
    CALLER_READ,    /* look at everything of the owner's, change nothing */
    CALLER_SANDBOX, /* everything inside one sandbox, and to look at it */
    CALLER_WRITE,   /* everything of the owner's */
    CALLER_ADMIN,   /* also other owners', and the daemon itself */
    CALLER_SYSTEM,  /* the daemon for itself: expiry, recovery */
};

struct caller {
    enum caller_scope scope;
    struct id owner;      /* empty text: nobody, or the system */
    struct id credential; /* of the key or login; empty text: none */
    struct id sandbox;    /* for CALLER_SANDBOX and CALLER_PORT */
    uint16_t port;        /* for CALLER_PORT */
    struct id request;    /* for events and the audit log */
    char address[64];     /* of the client, for the audit log */
};

/* The daemon itself. */
struct caller caller_system(void);

/* Whether things of this owner are there at all for the caller, as far as the owner goes: its own,
 * and everybody's for administrators and the system. */
bool caller_sees_owner(const struct caller *caller, const struct id *owner);

/* The same for a sandbox, which a narrow key narrows further. */
bool caller_sees_sandbox(const struct caller *caller, const struct id *owner,
                         const struct id *sandbox);

/* Whether the caller may change things it sees, or do something inside the sandbox. */
bool caller_may_write(const struct caller *caller);
bool caller_may_enter(const struct caller *caller);
