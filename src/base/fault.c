#include "base/fault.h"

struct fault {
    unsigned int remaining; /* 0: not armed */
    int system;
    bool reached;
};

static _Thread_local struct fault faults[FAULT_KIND_COUNT];

void fault_arm(enum fault_kind kind, unsigned int nth, int system)
{
    faults[kind] = (struct fault){.remaining = nth, .system = system};
}

bool fault_disarm(enum fault_kind kind)
{
    bool reached = faults[kind].reached;

    faults[kind] = (struct fault){0};
    return reached;
}

bool fault_hits(enum fault_kind kind)
{
    struct fault *fault = &faults[kind];

    if (__builtin_expect(fault->remaining == 0, 1))
        return false;
    if (--fault->remaining)
        return false;
    fault->reached = true;
    return true;
}

int fault_errno(enum fault_kind kind)
{
    return fault_hits(kind) ? -faults[kind].system : 0;
}
