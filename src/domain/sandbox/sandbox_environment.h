/* Telling a running sandbox what its agent has to know. */
#pragma once

#include "domain/inside_call.h"

/* Its variables: the whole set. */
void sandbox_tell_environment(struct domain *domain, const struct sandbox *sandbox,
                              inside_call_done *done, void *context);

/* Sessions that an agent saved (JSON, borrowed for the call) and its variables, in one call. Without
 * its sessions a sandbox is as good, which the log tells: then it is told its variables alone. Only
 * when it does not take those either `done` gets a failure. */
void sandbox_tell_sessions(struct domain *domain, struct sandbox *sandbox, const char *sessions,
                           domain_done *done, void *context);

/* Whether it will be told its sessions: then the provider need not tell it its variables. */
bool sandbox_has_sessions_to_tell(const struct domain *domain, const char *sessions);
