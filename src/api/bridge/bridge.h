/* Cloudflare's sandbox bridge: /v1/sandbox, /v1/pool, /v1/openapi.
 *
 * A client names a sandbox by any text of [a-z2-7]{1,128} and uses it; it is made with the first
 * request, under that name, and belongs to the owner of the key. docs/compatibility.md says where
 * ours differs from theirs. */
#pragma once

#include "api/http/api.h"

/* The table, with `api` as its context (borrowed). `api->bridge_pool` may be set later. */
struct http_mount bridge_mount(struct api *api);
