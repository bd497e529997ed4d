/* Everything that descends from a process, found through /proc.
 *
 * Pids are reused, so every process is opened (pidfd), seen to belong to the tree after that, and
 * only then signalled: a signal never reaches a stranger. Needs /proc of the caller's own pid
 * namespace. May block for as long as the walk takes, about 10 us per process of the machine. */
#pragma once

#include <sys/types.h>

/* Send `signal` to all descendants of `root`, not to itself. Descendants that were orphaned count
 * only when `root` is their reaper (PR_SET_CHILD_SUBREAPER, or PID 1). Processes that are born
 * meanwhile may be missed: repeat until nothing is left. Returns how many living processes were
 * signalled, or -errno when /proc cannot be read. */
int process_tree_signal(pid_t root, int signal);

/* The parent in the text of a stat file, and the state as its letter. Returns 0 or -EINVAL. */
int process_tree_parse_stat(const char *stat, char *ret_state, pid_t *ret_parent);
