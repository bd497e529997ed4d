/* States of turns, and what leads from one to another: pure. */
#include <string.h>

#include "domain/conversation/turn.h"

static const char *const names[TURN_STATE_COUNT] = {
#define X(name, text) [TURN_##name] = text,
    TURN_STATES(X)
#undef X
};

#define NO TURN_STATE_COUNT

/* clang-format off */
static const enum turn_state table[TURN_STATE_COUNT][TURN_EVENT_COUNT] = {
    /*                   SENT          ASKED         ANSWERED      DONE       FAILED       CANCELLED */
    [TURN_QUEUED]    = { TURN_RUNNING, NO,           NO,           NO,        TURN_FAILED, TURN_CANCELLED },
    [TURN_RUNNING]   = { NO,           TURN_WAITING, TURN_RUNNING, TURN_DONE, TURN_FAILED, TURN_CANCELLED },
    [TURN_WAITING]   = { NO,           TURN_WAITING, TURN_RUNNING, TURN_DONE, TURN_FAILED, TURN_CANCELLED },
    [TURN_DONE]      = { NO, NO, NO, NO, NO, NO },
    [TURN_FAILED]    = { NO, NO, NO, NO, NO, NO },
    [TURN_CANCELLED] = { NO, NO, NO, NO, NO, NO },
};
/* clang-format on */

const char *turn_state_text(enum turn_state state)
{
    return state < TURN_STATE_COUNT ? names[state] : "";
}

enum turn_state turn_state_from_text(const char *text)
{
    for (unsigned int i = 0; i < TURN_STATE_COUNT; i++)
        if (strcmp(names[i], text) == 0)
            return (enum turn_state) i;
    return TURN_STATE_COUNT;
}

bool turn_state_is_over(enum turn_state state)
{
    return state >= TURN_DONE;
}

enum turn_state turn_state_after(enum turn_state state, enum turn_event event)
{
    return state < TURN_STATE_COUNT && event < TURN_EVENT_COUNT ? table[state][event] : NO;
}
