/* A TCP port on loopback inside a sandbox, asked over HTTP, on sockets that were made inside. A few
 * are kept at hand. Each question has a connection of its own: none is lost because a server let go
 * of a kept one in that moment, so what was not answered was not begun on an old connection. */
#pragma once

#include <stdint.h>

#include "base/id.h"
#include "harness/query.h"
#include "harness/reach.h"
#include "net/loop.h"

struct inside_port;

/* `reach` and `roll` are borrowed. */
struct inside_port *inside_port_new(struct loop *loop, struct roll *roll, const struct reach *reach,
                                    const struct id *sandbox, uint16_t number);

/* Answered as any question, also when there is no way in. */
struct query *inside_port_ask(struct inside_port *port, const struct query_request *request,
                              query_done *done, void *context);

/* Questions that are under way fail. Accepts NULL. */
void inside_port_close(struct inside_port *port);
