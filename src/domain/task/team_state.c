/* What a team is by what its members are: pure. */
#include <string.h>

#include "domain/task/team.h"

static const char *const names[TEAM_STATE_COUNT] = {
#define X(name, text) [TEAM_##name] = text,
    TEAM_STATES(X)
#undef X
};

const char *team_state_text(enum team_state state)
{
    return state < TEAM_STATE_COUNT ? names[state] : "";
}

enum team_state team_state_from_text(const char *text)
{
    for (unsigned int i = 0; i < TEAM_STATE_COUNT; i++)
        if (strcmp(names[i], text) == 0)
            return (enum team_state) i;
    return TEAM_STATE_COUNT;
}

bool team_state_is_over(enum team_state state)
{
    return state != TEAM_RUNNING;
}

enum team_state team_state_of(const enum task_state *members, size_t count, bool is_cancelled)
{
    size_t done = 0;

    for (size_t i = 0; i < count; i++) {
        if (!task_state_is_over(members[i]))
            return TEAM_RUNNING;
        done += members[i] == TASK_DONE;
    }
    if (is_cancelled && done < count)
        return TEAM_CANCELLED;
    return done == count ? TEAM_DONE : done ? TEAM_PARTIAL : TEAM_FAILED;
}
