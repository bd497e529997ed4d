/* Our own dialect, /burrow/v1. For now it tells what the server offers; sandboxes come with the
 * domain. */
#pragma once

#include <stddef.h>

#include "net/http_route.h"

#define NATIVE_MOUNTS_MAX 16

struct native {
    /* All dialects that are mounted, this one included: what /openapi.json describes. */
    const struct http_mount *mounts[NATIVE_MOUNTS_MAX];
    size_t mount_count;
};

/* The table, with `native` as its context (borrowed). */
struct http_mount native_mount(struct native *native);
