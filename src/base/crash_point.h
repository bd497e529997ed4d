/* Named places where a test lets the process die, as if the power had gone.
 *
 *     CRASH_POINT("store.commit.before");
 *
 * A process that was started with BURROW_CRASH_POINT=store.commit.before kills itself there with
 * SIGKILL; "store.commit.before:3" lets it pass twice. A build without tests (-Dtests=false) does
 * not look at the variable. Every point is an entry of the trace (trace.h), too. Names are
 * "module.action.moment" and known to tests: they never change.
 *
 * The state is global and read once, before main: the second deliberate exception to "no hidden
 * globals" beside fault.h, for the same reason. */
#pragma once

#include <sys/types.h>

#include "base/trace.h"

#define CRASH_POINT_VARIABLE "BURROW_CRASH_POINT"

#define CRASH_POINT(name)                                                                          \
    do {                                                                                           \
        TRACE(name);                                                                               \
        if (__builtin_expect(crash_point_armed != 0, 0))                                           \
            crash_point_reach(name);                                                               \
    } while (0)

/* Behind the macro: the name that is armed, or NULL. */
extern const char *crash_point_armed;
void crash_point_reach(const char *name);

/* What the environment does, for tests in a child of their own: "NAME" or "NAME:NTH", borrowed;
 * NULL disarms. Only while there is one thread. */
void crash_point_arm(const char *text);

/* For a helper process: from now on a point here kills `pid` as well, just before. Power does not
 * go for one of two. 0: nobody. */
void crash_point_take_along(pid_t pid);
