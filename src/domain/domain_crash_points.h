/* The crash points of the domain (base/crash_point.h): between every two steps whose order matters.
 * Tests kill the daemon at each of them. */
#pragma once

#include <stddef.h>

#define DOMAIN_CRASH_POINTS(X)                                                                     \
    X("domain.create.made")   /* the sandbox is there, its row is not */                           \
    X("domain.create.kept")   /* the row is there, the answer is not */                            \
    X("domain.destroy.kept")  /* the row is gone, the sandbox is not */                            \
    X("domain.destroy.gone")  /* both are gone, the answer was not given */                        \
    X("domain.sleep.frozen")  /* it is frozen, its row says running */                             \
    X("domain.sleep.stopped") /* it was stopped to sleep, its row says running or frozen */        \
    X("domain.wake.thawed")   /* it runs, its row says frozen */                                   \
    X("domain.stop.stopped")  /* it is stopped, its row says running or frozen */                  \
    X("domain.start.started") /* it runs, its row says stopped or hibernated */

/* All names, NULL behind the last. */
#define X(name) name,
static const char *const domain_crash_points[] = {DOMAIN_CRASH_POINTS(X) NULL};
#undef X
