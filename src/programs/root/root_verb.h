/* The verbs of a program of root's: one row each in its main.c, one file each.
 *
 * Exit statuses, unless a verb says otherwise: 0, 1 for what went wrong, 2 for wrong words, a user
 * who is not root, or a machine that lacks what is needed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define ROOT_VERB_FAILED  1
#define ROOT_VERB_REFUSED 2

struct root_verb {
    const char *name;
    const char *summary;
    /* `argv[0]` is the verb, so that getopt works. Returns the exit status. */
    int (*run)(int argc, char **argv);
};

/* All of main: prepare the process, find the verb among the words and run it. Returns the exit
 * status. */
int root_verb_main(const char *program, const struct root_verb *verbs, size_t count, int argc,
                   char **argv);

/* Say so on stderr and return false unless this is root. */
bool root_verb_is_allowed(const char *verb);
