/* tunnels.*: addresses on the internet for ports of the sandbox. They are the control plane's; the
 * agent has no way out of its own, says so, and lists none. */
#pragma once

#include "agent/operation.h"

extern const struct operation_table rpc_tunnels_operations;
