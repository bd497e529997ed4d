/* Routes of the daemon, out of the document that it writes about itself, filled with names of things.
 * A route that is added to the daemon is walked by itself. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/pool.h"

struct drill_route {
    char method[8];
    const char *pattern, *dialect; /* borrowed from the document */
    json_t *operation;             /* the same */
    bool is_public, has_names;     /* parameters in its path */
};

/* Parameters of paths by name. */
struct drill_name {
    const char *name, *value;
};

/* Call `visit` for each route until it returns other than 0, which is then the result. */
int drill_routes_walk(json_t *document,
                      int (*visit)(void *context, const struct drill_route *route), void *context);

/* The path with names in the place of its parameters; those without a name are "something". */
const char *drill_route_path(const struct drill_route *route, const struct drill_name *names,
                             size_t count, struct pool *pool);

/* The smallest body that the document describes, in the pool; NULL: none. */
const char *drill_route_body(const struct drill_route *route, struct pool *pool);
