/* Snapshots, and what is made of them: forks, rollbacks, lists of what changed. */
#pragma once

#include "api/http/api.h"
#include "net/http/http_route.h"

struct http_mount snapshots_mount(struct api *api);
