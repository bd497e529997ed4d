/* From what a daemon asked for to what will be done: pure, so that it can be checked and printed
 * (`burrow run --plan`) without a sandbox.
 *
 * The bytes of a wire_plan are valid when they come here (wire_plan.h); this adds what only the
 * launcher knows: the least a sandbox needs, which limits this host enforces. */
#pragma once

#include "launcher/network/network_policy.h"
#include "launcher/sandbox/sandbox.h"
#include "wire/wire_plan.h"

/* The limits of a wire message as cgroups want them. */
struct cgroup_limits plan_limits(const struct wire_limits *limits);

/* Everything of the plan but binds, which are opened later. `ret_plan` borrows from `plan`. -1 with
 * ERR_INVALID and the limit's name when it is out of range. */
int plan_expand(const struct wire_plan *plan, struct sandbox_plan *ret_plan, struct error *err);

/* Check limits alone. */
int plan_check_limits(const struct wire_limits *limits, struct error *err);

/* The rules of a plan as the router wants them: at most WIRE_RULES_MAX, written to `rules`. */
struct network_policy plan_policy(const struct wire_plan *plan,
                                  struct network_rule rules[static WIRE_RULES_MAX]);

/* The bit of a limit in `enforced` and `unenforced` sets of messages. */
#define PLAN_LIMIT_BIT(name) WIRE_BIT(WIRE_LIMIT_##name)

/* Limits that were asked for and that are not in `enforced`. */
uint32_t plan_unenforced(const struct wire_limits *limits, uint32_t enforced);
