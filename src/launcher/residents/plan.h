/* From what a daemon asked for to what will be done: pure, so that it can be checked and printed
 * (`burrow run --plan`) without a sandbox.
 *
 * The bytes of a wire_plan are valid when they come here (wire_plan.h); this adds what only the
 * launcher knows: the least a sandbox needs, which limits this host enforces. */
#pragma once

#include "launcher/sandbox/sandbox.h"
#include "wire/wire_plan.h"

/* Everything of the plan but binds, which are opened later. `ret_plan` borrows from `plan`. -1 with
 * ERR_INVALID and the limit's name when it is out of range. */
int plan_expand(const struct wire_plan *plan, struct sandbox_plan *ret_plan, struct error *err);

/* Check limits alone. */
int plan_check_limits(const struct limits *limits, struct error *err);

/* Limits that were asked for and that are not in `enforced`. */
uint32_t plan_unenforced(const struct limits *limits, uint32_t enforced);
