/* For whom something of the egress broker is asked: the caller, or with ?owner= somebody else, which
 * administrators may say. */
#pragma once

#include "api/native/body.h"

/* Returns 0, or -1 with ERR_NOT_FOUND: there is no such user for this caller. */
int egress_caller_of(struct http_request *request, struct caller *ret_caller, struct error *err);
