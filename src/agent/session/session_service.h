/* Sessions, as clients and the control plane see them: /api/session/..., utils.createSession and
 * its like, and /burrow/sessions, which takes what sessions are made of from one agent to the next.
 *
 * create answers once the session's shell runs, delete once nothing of it is left. */
#pragma once

#include "agent/operation.h"

extern const struct operation_table session_operations;
