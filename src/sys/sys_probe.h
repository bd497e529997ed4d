/* Asking the kernel what it can do, for `doctor` and for tests: the wrappers themselves just call
 * and fall back. */
#pragma once

#include "sys/sys_feature.h"

/* Make a call that has no effect. Returns 1 when the feature can be used, 0 when it is missing (or
 * pretended to be), -errno when that could not be found out. */
int sys_probe(enum sys_feature feature);
