/* From what a caller wants (a spec) to what the launcher is told (a plan). Pure. */
#pragma once

#include "base/text.h"
#include "provider/provider.h"
#include "wire/wire_plan.h"

/* `image` is used when the spec names none. -1 with ERR_INVALID and the name of what is wrong. */
int provider_local_plan(const struct provider_spec *spec, const char *image,
                        struct wire_plan *ret_plan, struct error *err);
