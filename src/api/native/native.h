/* Our own dialect, /burrow/v1. Its manual is the route table in routes.c. */
#pragma once

#include "api/http/api.h"

/* The table, with `api` as its context (borrowed). */
struct http_mount native_mount(struct api *api);
