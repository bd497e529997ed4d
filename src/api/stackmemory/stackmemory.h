/* The StackMemory dialect, /v1/sandboxes/{id}/...: sandboxes come to be by being used.
 *
 * Every answer is an indented JSON object with "ok". Errors are
 *
 *     {"ok": false, "error": "missing_path", "details": "..." or null}
 *
 * Ids are trimmed and lower-cased, then 2 to 64 of a-z, 0-9, '-' and '_', the first no sign. The
 * documented intent holds where the original service had faults; docs/compatibility.md names the
 * differences. */
#pragma once

#include "api/http/api.h"
#include "net/http/http_route.h"

/* The table, with `api` as its context (borrowed). */
struct http_mount stackmemory_mount(struct api *api);
