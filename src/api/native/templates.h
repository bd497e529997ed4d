/* Templates: what new sandboxes are made from, by name. */
#pragma once

#include "api/http/api.h"
#include "net/http/http_route.h"

struct http_mount templates_mount(struct api *api);
