/* Native routes for workspaces that are mirrored: /burrow/v1/sandboxes/{id}/sync. */
#pragma once

#include "api/http/api.h"

/* The table, with `api` as its context (borrowed). */
struct http_mount workspaces_mount(struct api *api);
