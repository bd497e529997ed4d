/* Our own dialect, /burrow/v1, in two tables: what needs the domain (sandboxes and all that is in
 * them, events, copies of the store), and the documents that describe every dialect.
 *
 * Other modules bring further tables under the same prefix (ports.c, identity.c). */
#pragma once

#include <stddef.h>

#include "api/http/api.h"
#include "net/http/http_route.h"

#define NATIVE_MOUNTS_MAX 24

struct native {
    /* All dialects that are mounted, this one included: what /openapi.json describes. */
    const struct http_mount *mounts[NATIVE_MOUNTS_MAX];
    size_t mount_count;
};

/* /burrow/v1/version, openapi.json and docs, with `native` as their context (borrowed). */
struct http_mount native_mount(struct native *native);

/* Everything else, with `api` as its context (borrowed). */
struct http_mount native_sandboxes_mount(struct api *api);
