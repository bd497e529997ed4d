/* Between visit.c and agent_call.c. Nothing else includes this. */
#pragma once

#include "api/agent/visit.h"

/* Forget the exchange under way, if there is one; nobody is called back. */
void agent_call_drop(struct visit *visit);
