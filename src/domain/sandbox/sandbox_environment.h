/* Telling a running sandbox what its agent has to know. */
#pragma once

#include "domain/inside_call.h"

/* Its variables: the whole set. */
void sandbox_tell_environment(struct domain *domain, const struct sandbox *sandbox,
                              inside_call_done *done, void *context);

/* To an agent that was just started: its variables and, unless they are NULL, sessions that an agent
 * saved (JSON, borrowed for the call), in one call. Without its sessions a sandbox is as good, which
 * the log tells: then it is told its variables alone. Only when it does not take those `done` gets a
 * failure: it is not what was asked for. */
void sandbox_tell_agent_news(struct domain *domain, struct sandbox *sandbox, const char *sessions,
                             domain_done *done, void *context);

/* Whether there is anything to tell. */
bool sandbox_has_agent_news(const struct sandbox *sandbox, const char *sessions);
