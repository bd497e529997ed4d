/* What a caller needs to use a route: the `access` of a row in a route table.
 *
 * The value 0 is the strictest, so that a forgotten field locks a route instead of opening it.
 * Admission compares it with the scope of the key before the handler runs; which objects are there
 * for the caller is the domain's to say (caller_sees_*). */
#pragma once

#include "domain/caller.h"
#include "net/http/http_request.h"

enum access {
    ACCESS_ADMIN = 0, /* an administrator's key or login */
    ACCESS_WRITE,     /* everything of an owner's: make, change, remove */
    ACCESS_READ,      /* look; a key for one sandbox may look at that */
    ACCESS_ENTER,     /* do something inside a sandbox: write, or the narrow key of that sandbox */
    ACCESS_PUBLIC,    /* nothing: the answer tells nothing worth a key */
    ACCESS_SIGNED_IN, /* any credential that is good, whatever it may do */
    ACCESS_COUNT
};

/* Who asks, as admission found out: in request->caller from then on. */
static inline const struct caller *request_caller(const struct http_request *request)
{
    return request->caller;
}
