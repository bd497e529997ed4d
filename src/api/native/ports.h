/* Exposed ports in our own dialect: /burrow/v1/sandboxes/{id}/ports. What listens inside comes from
 * the sandbox's agent, and only from one that runs: looking does not wake. */
#pragma once

#include "api/http/api.h"

struct http_mount ports_mount(struct api *api);
