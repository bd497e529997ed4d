/* Faults on purpose: tests make the nth allocation or system call of this thread fail, so that
 * error paths are run and not only read.
 *
 *     fault_arm(FAULT_SYSTEM_CALL, 3, ENOSPC);     the third call from now fails with ENOSPC
 *     ...
 *     fault_disarm(FAULT_SYSTEM_CALL);
 *
 * The state is thread-local and off unless a test arms it: the one deliberate exception to "no
 * hidden globals", because passing it through every allocation would cost more than it shows. */
#pragma once

#include <stdbool.h>

enum fault_kind { FAULT_ALLOCATION, FAULT_SYSTEM_CALL, FAULT_KIND_COUNT };

/* From now on let the nth hit (1 is the next) fail, once. `system` is the errno to report. */
void fault_arm(enum fault_kind kind, unsigned int nth, int system);

/* Stop; returns whether the armed fault was reached. */
bool fault_disarm(enum fault_kind kind);

/* Asked by the code under test before the real thing: true means fail now. */
bool fault_hits(enum fault_kind kind);

/* For wrappers of system calls: 0, or the negative errno to return instead of calling. */
int fault_errno(enum fault_kind kind);
