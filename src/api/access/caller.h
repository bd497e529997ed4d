/* Who asks, as admission found out: in request->caller from then on. */
#pragma once

#include "domain/caller.h"
#include "net/http/http_request.h"

static inline const struct caller *request_caller(const struct http_request *request)
{
    return request->caller;
}
