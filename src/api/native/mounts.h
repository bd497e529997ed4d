/* Native routes for bucket mounts: /burrow/v1/sandboxes/{id}/mounts. */
#pragma once

#include "api/http/api.h"

/* The table, with `api` as its context (borrowed). */
struct http_mount mounts_mount(struct api *api);
