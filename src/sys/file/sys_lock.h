/* Whole-file locks between processes (flock): gone with the last descriptor of the open file, so a
 * process that dies leaves none behind. A forked child shares its parent's lock rather than waiting
 * for it: whoever needs a lock of its own opens the file again. */
#pragma once

enum sys_lock_kind { SYS_LOCK_SHARED, SYS_LOCK_EXCLUSIVE };

/* Lock the open file behind `fd`, waiting for at most `timeout_ms` (0: not at all, negative: for
 * ever). Returns 0, or -ETIMEDOUT when somebody else keeps it. Blocks by sleeping in steps of at
 * most a few milliseconds, so that a waiter is not first in line. */
int sys_lock_take(int fd, enum sys_lock_kind kind, int timeout_ms);

/* Give it up. Closing the last descriptor does the same. */
void sys_lock_release(int fd);
