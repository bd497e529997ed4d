/* Telling a running sandbox its variables: the whole set, as JSON {"NAME":"value"}. */
#pragma once

#include "domain/inside_call.h"

void sandbox_tell_environment(struct domain *domain, const struct sandbox *sandbox,
                              inside_call_done *done, void *context);
