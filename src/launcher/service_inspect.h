/* Inside launcher/service: what the launcher did last, and what it has. Nothing is changed. */
#pragma once

#include "launcher/service.h"

/* A sealed memfd with what was asked for. Returns 0 or -1. */
int service_inspect(const struct service *service, const struct wire_inspect *asked, int *ret_file,
                    struct error *err);
