/* The route table of the agent: Cloudflare's container API, and /burrow/... for the control
 * plane. */
#pragma once

#include "net/http_route.h"

struct agent;

/* Fill in the mount; `agent` becomes the handlers' context. */
void services_mount(struct http_mount *ret_mount, struct agent *agent);
