/* From what a caller wants (a spec) to what the launcher is told (a plan). Pure. */
#pragma once

#include "base/text.h"
#include "provider/provider.h"
#include "wire/wire_plan.h"

/* Named limits of what the agent is given as environment. */
#define PROVIDER_LOCAL_VARIABLES_MAX   1024
#define PROVIDER_LOCAL_ENVIRONMENT_MAX (256 * 1024) /* bytes of JSON */

/* `image` is used when the spec names none. -1 with ERR_INVALID and the name of what is wrong. */
int provider_local_plan(const struct provider_spec *spec, const char *image,
                        struct wire_plan *ret_plan, struct error *err);

/* {"env":{"NAME":"value"}}, what the agent's PUT /burrow/environment takes. `ret_json` (freed by
 * the caller) is NULL when there are no variables. -1 with ERR_INVALID (a name that is none, twice
 * the same, a value that is not UTF-8) or ERR_TOO_LARGE. */
int provider_local_environment_json(const struct provider_spec *spec, char **ret_json,
                                    struct error *err);
