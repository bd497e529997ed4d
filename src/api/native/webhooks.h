/* Webhooks in our own dialect: /burrow/v1/webhooks. */
#pragma once

#include "api/http/api.h"

struct http_mount webhooks_mount(struct api *api);
