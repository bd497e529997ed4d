/* Processes by pidfd: a handle that never comes to mean another process.
 *
 * All functions return -errno on failure and are async-signal-safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A CLOEXEC pidfd the caller owns. -ESRCH when there is no such process (a thread that leads no
 * process is -EINVAL or -ENOENT). The pid may have been reused before the call unless it is the
 * caller's own unreaped child: compare sys_process_start_time when it is not. */
int sys_process_open(pid_t pid);

/* Send a signal; 0 only checks. -ESRCH once the process was reaped. */
int sys_process_kill(int pidfd, int signal);

/* Take a duplicate of descriptor `fd` of another process; CLOEXEC, the caller's. Needs the right to
 * trace it. */
int sys_process_get_descriptor(int pidfd, int fd);

/* How a process ended. Unknown is not success: zeroed storage says unknown. */
struct sys_exit {
    enum { SYS_EXIT_UNKNOWN, SYS_EXIT_STATUS, SYS_EXIT_SIGNAL } kind;
    int value; /* the exit status, or the signal's number; 0 when unknown */
    bool dumped_core;
};

/* Wait until our child ends, for at most `timeout_ms` (negative: for ever, 0: only look), and reap
 * it. Returns 0, -ETIMEDOUT, or -ECHILD when it is not our child or was reaped before. */
int sys_process_wait(int pidfd, int timeout_ms, struct sys_exit *ret_exit);

/* The same, but a child that has not ended, because of the time or because waiting failed, is
 * killed and reaped: it does nothing more. Returns what the wait for it returned; `ret_exit` says
 * how our child ended in any case. */
int sys_process_wait_or_kill(int pidfd, int timeout_ms, struct sys_exit *ret_exit);

/* How a process that is not our child ended, once whoever is its parent has reaped it (Linux 6.15).
 * Returns 0; -EAGAIN while it was not reaped; -ENOTTY where the kernel does not tell. */
int sys_process_exit_of_other(int pidfd, struct sys_exit *ret_exit);

/* Reap one of our children that has ended, whichever. Returns 0, -EAGAIN when none has ended, or
 * -ECHILD when there are no children at all. */
int sys_process_reap(pid_t *ret_pid, struct sys_exit *ret_exit);

/* Whether `pid` is a child of ours that was not reaped yet, running or not. 1, 0, or -errno. */
int sys_process_is_child(pid_t pid);

/* When the process started, in clock ticks since boot (field 22 of /proc/PID/stat): together with
 * the pid and the boot id this names it for good. -ENOENT or -ESRCH: no such process. */
int sys_process_start_time(pid_t pid, uint64_t *ret_ticks);

/* The parser behind it: finds the field in the text of a stat file, where the program's name may
 * hold spaces, newlines and parentheses. -EINVAL when it is no such text. */
int sys_process_parse_start_time(const char *stat, uint64_t *ret_ticks);

/* Settings of the calling process. */

/* From now on exec gains no privileges; cannot be undone. */
int sys_process_set_no_new_privileges(void);

/* Orphaned descendants become our children. */
int sys_process_set_subreaper(bool on);

/* Not dumpable: no core, no ptrace by our own user, /proc/PID belongs to root. */
int sys_process_set_dumpable(bool on);

/* Get `signal` when the thread that made us ends. `parent` is its process as getppid shows it here
 * (0 from inside a new pid namespace): -ESRCH when it ended before this call, in which case no
 * signal will come. That cannot be seen from inside a new pid namespace. Lost by exec of a setuid
 * program. */
int sys_process_die_with_parent(int signal, pid_t parent);

/* The same, wherever we are: `parent` is a pidfd of its process, from before it made us. */
int sys_process_die_with_pidfd(int signal, int parent);
