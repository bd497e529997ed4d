/* Which system calls a keeper job may make: files by descriptor, memory, threads, its end, and
 * nothing else.
 *
 * Much smaller than the sandbox's profile (seccomp.h), because it serves one static program of our
 * own. Everything not in the table is ENOSYS, every other machine interface ends the process. Two
 * rows are looser than a sandbox's: whiteouts (character device 0:0) can be made, and execveat is
 * there for the one exec that follows. That one is bound to descriptor KEEPER_PROGRAM_FD, and all
 * mounts of a job are noexec; memory cannot become executable either. */
#pragma once

#include "launcher/wall/seccomp.h"

/* Where the child has the program when it loads the filter; closed by exec. */
#define KEEPER_PROGRAM_FD 5

/* Compile it. Pure. 0 or -E2BIG. Load it with seccomp_filter_load. */
int keeper_filter_init(struct seccomp_filter *filter);
