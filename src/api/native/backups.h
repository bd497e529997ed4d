/* Native routes for backups: /burrow/v1/backups and /burrow/v1/sandboxes/{id}/backups, /restore. */
#pragma once

#include "api/http/api.h"

/* The table, with `api` as its context (borrowed). */
struct http_mount backups_mount(struct api *api);
