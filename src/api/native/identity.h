/* Native routes for people and keys: /burrow/v1/users, /keys, /whoami, /audit.
 *
 * An administrator sees everybody; others themselves. A key's secret is in the answer to its making
 * and nowhere else. */
#pragma once

#include "api/http/api.h"

/* The table, with `api` as its context (borrowed). */
struct http_mount identity_mount(struct api *api);
