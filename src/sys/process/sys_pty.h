/* Pseudo-terminals: a pair of a control side (ours) and a terminal side (the program's).
 *
 * No grantpt and no /dev/pts path where the kernel can avoid it: inside a sandbox that path may
 * belong to another devpts instance than /dev/ptmx. */
#pragma once

#include <stdint.h>

/* A new control side: CLOEXEC, non-blocking, unlocked. Becomes no controlling terminal. */
int sys_pty_open_control(void);

/* The terminal side of `control`: CLOEXEC, blocking. Without TIOCGPTPEER it is opened by its
 * path, and refused (-ENODEV) unless what is found there lies on a devpts. */
int sys_pty_open_terminal(int control);

/* Only by TIOCGPTPEER, -ENOSYS when that is missing; for sys_probe. */
int sys_pty_open_peer(int control);

/* Both at once. */
int sys_pty_open(int *ret_control, int *ret_terminal);

/* Set or read the window size; either side will do. Setting it sends SIGWINCH to the foreground
 * process group when it changed. */
int sys_pty_set_size(int fd, uint16_t columns, uint16_t rows);
int sys_pty_get_size(int fd, uint16_t *ret_columns, uint16_t *ret_rows);

/* Make `terminal` the controlling terminal of the session we lead and that has none. */
int sys_pty_take_control(int terminal);

/* In a child: new session, `terminal` (taken, also on failure) as controlling terminal and as 0,
 * 1 and 2. -EPERM when the caller leads a process group already. Async-signal-safe. */
int sys_pty_log_in_take(int terminal);
