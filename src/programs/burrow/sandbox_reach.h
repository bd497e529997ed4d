/* How the harness reaches sandboxes: their agents through the api's connections, sockets of their
 * networks through the domain. */
#pragma once

#include "api/agent/agents.h"
#include "domain/domain.h"
#include "harness/reach.h"

struct sandbox_reach {
    struct agents *agents; /* borrowed */
    struct domain *domain; /* borrowed; NULL until there is one */
};

struct reach sandbox_reach_of(struct sandbox_reach *reach);
