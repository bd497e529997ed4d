/* POST /api/port-watch: wait until something answers at a port.
 *
 * The port is tried at 127.0.0.1 and at ::1, again and again: after a millisecond at first, and
 * never less often than every 50. It ends when the port is ready, with the process it belongs to,
 * or with the client. */
#pragma once

#include "agent/operation.h"

struct call;

extern const struct operation_table port_operations;

/* GET /burrow/ports, of port_list.c: who listens. */
void port_list(struct call *call);
