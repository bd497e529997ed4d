/* Starting the program of a launch: which file it is, and as whose child.
 *
 * A launch with arguments is tried as it is first. When they name no program that can be executed,
 * or there are none, its shell command goes to bash, or to sh where there is no bash; so bash
 * writes the messages of failed commands, and scripts without "#!" run as in a shell. */
#pragma once

#include <stdatomic.h>
#include <sys/types.h>

#include "agent/exec/launch.h"

/* What a program can be given: stdin, stdout, stderr and a channel of its own. */
#define PROGRAM_DESCRIPTORS 4

struct account;

/* Start the program in the current directory, in a session of its own, with these descriptors as
 * 0, 1, 2 and 3 (negative: none) and no others, all signals at their defaults. With
 * `launch->terminal` the first of them becomes the controlling terminal of that session. Blocks
 * until it was exec'd. Returns the pid, an ordinary child of the caller, or -errno. `note`, when
 * not NULL, gets the pid before the program runs. With `account` it becomes that user, with its one
 * group. The caller has one thread. */
pid_t program_start(const struct launch *launch, const int stdio[static PROGRAM_DESCRIPTORS],
                    const struct account *account, _Atomic pid_t *note);

/* Find `name` the way a shell does: as it is when it holds a '/', else along `path` (a list like
 * $PATH; empty parts mean the current directory). Returns 0 and the file's path in `ret_file`
 * (`size` bytes), -ENOENT, or -ENAMETOOLONG. */
int program_find(const char *name, const char *path, char *ret_file, size_t size);
