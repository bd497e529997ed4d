/* The privileges of a sandbox's processes over their own user namespace.
 *
 * Sandbox root has the small set of the table below, and nobody inside can ever have more: all
 * others leave the bounding set, and no_new_privs makes setuid and file capabilities inert. None of
 * them reaches outside the sandbox's user namespace; what is left out guards against kernel code
 * that opens up for "root of some namespace", and guards PID 1 against its own siblings (ptrace,
 * nice, resource limits).
 *
 * Inheritable and ambient sets are empty: a user other than root starts with nothing, as on any
 * machine. Securebits stay 0: programs count on root having its capabilities back after exec and on
 * losing them by setuid; with the bounding set small there is nothing to lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct capability_row {
    const char *name; /* "chown" */
    int number;       /* CAP_CHOWN */
    bool kept;
    const char *reason;
};

/* All capabilities we know, in order of their numbers. Static. Newer ones count as not kept. */
const struct capability_row *capability_rows(size_t *ret_count);

/* The bits of those that are kept. */
uint64_t capability_kept(void);

/* The bit of a capability by name, 0 for an unknown one: for the switches of tests. */
uint64_t capability_bit(const char *name);

/* In the child, as root of its new user namespace: reduce bounding, permitted and effective set to
 * `kept` (of what it has), empty the inheritable and ambient ones. Mounts, id changes and the like
 * come before. Async-signal-safe. Returns 0 or -errno; after an error some may be gone already, so
 * the child must not go on. -EPERM: no CAP_SETPCAP, so the bounding set would stay. */
int capability_confine(uint64_t kept);
