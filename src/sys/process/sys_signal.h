/* Signals as something to read, and a clean slate for children. */
#pragma once

#include <signal.h>
#include <stddef.h>

/* Block `signals` in the calling thread and return a CLOEXEC, non-blocking descriptor that becomes
 * readable when one arrives; or -errno with the mask unchanged. Call before other threads start,
 * so that all of them inherit the mask: a thread that does not block a signal may still get it. */
int sys_signal_open(const int *signals, size_t count);

struct sys_signal {
    int number;
    pid_t sender;     /* 0 when the kernel sent it, or from another pid namespace */
    unsigned int uid; /* of the sender */
    int code;         /* SI_USER, SI_KERNEL...: below 0 the sender chose the other fields itself */
};

/* The next signal. Returns 0, or -EAGAIN when there is none. */
int sys_signal_read(int fd, struct sys_signal *ret_signal);

/* Ignore a signal from now on: SIGPIPE, at the start of every program. */
int sys_signal_ignore(int number);

/* Block everything that can be blocked, and go back. For the moments around a fork, so that no
 * handler of the parent runs in the child. */
int sys_signal_block_all(sigset_t *ret_before);
int sys_signal_restore(const sigset_t *before);

/* In a child, before exec: every signal gets its default action and none is blocked. exec itself
 * would keep what was ignored or blocked. Async-signal-safe. */
int sys_signal_reset(void);

/* The same, below a program that did so at its start and has changed the actions of no others than
 * these since then: sixty system calls less. */
int sys_signal_reset_some(const int *numbers, size_t count);
