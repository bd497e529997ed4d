#include "domain/caller.h"

#include <string.h>

struct caller caller_system(void)
{
    return (struct caller){.scope = CALLER_SYSTEM};
}

bool caller_sees_owner(const struct caller *caller, const struct id *owner)
{
    if (caller->scope >= CALLER_ADMIN)
        return true;
    /* An empty owner is the system's, and nobody's caller: they must not meet. */
    return caller->scope != CALLER_NOBODY && *caller->owner.text &&
           strcmp(caller->owner.text, owner->text) == 0;
}

bool caller_sees_sandbox(const struct caller *caller, const struct id *owner,
                         const struct id *sandbox)
{
    bool is_narrow = caller->scope == CALLER_SANDBOX || caller->scope == CALLER_PORT;

    return caller_sees_owner(caller, owner) &&
           (!is_narrow || strcmp(caller->sandbox.text, sandbox->text) == 0);
}

bool caller_may_write(const struct caller *caller)
{
    return caller->scope >= CALLER_WRITE;
}

bool caller_may_enter(const struct caller *caller)
{
    return caller->scope >= CALLER_SANDBOX;
}
