#include "base/crash_point.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

const char *crash_point_armed;
static size_t armed_length;
static atomic_llong passes_left;
static pid_t companion;

void crash_point_arm(const char *text)
{
    const char *colon = text ? strrchr(text, ':') : NULL;
    int64_t nth = 1;

    armed_length = text ? strlen(text) : 0;
    if (colon && number_parse(colon + 1, 1, INT64_MAX, &nth) == 0)
        armed_length = (size_t) (colon - text);
    atomic_store(&passes_left, nth);
    crash_point_armed = text && *text ? text : NULL;
}

#ifdef BURROW_TESTS
/* Before main, so that no program has to remember it. */
__attribute__((constructor)) static void arm_from_environment(void)
{
    crash_point_arm(secure_getenv(CRASH_POINT_VARIABLE));
}
#endif

void crash_point_reach(const char *name)
{
    if (strlen(name) != armed_length || memcmp(name, crash_point_armed, armed_length) != 0)
        return;
    if (atomic_fetch_sub(&passes_left, 1) != 1)
        return;
    if (companion > 0)
        (void) kill(companion, SIGKILL);
    (void) raise(SIGKILL);
}

void crash_point_take_along(pid_t pid)
{
    companion = pid;
}
