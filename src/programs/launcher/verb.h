/* The verbs of burrow-launcher: one row each in main.c, one file each.
 *
 * Exit statuses, unless a verb says otherwise: 0, 1 for what went wrong, 2 for wrong words, a user
 * who is not root, or a machine that lacks what is needed. */
#pragma once

#include <stdbool.h>

#define VERB_FAILED  1
#define VERB_REFUSED 2

struct verb {
    const char *name;
    const char *summary;
    /* `argv[0]` is the verb, so that getopt works. Returns the exit status. */
    int (*run)(int argc, char **argv);
};

/* serve and once: the launcher itself. */
int verb_launch(int argc, char **argv);

/* Be there, in the unit of the sandboxes, until systemd ends it. */
int verb_hold(int argc, char **argv);

/* Print each feature and wall; 1 when sandboxes cannot run here. */
int verb_doctor(int argc, char **argv);

/* add NAME DIR, rm NAME, ls: folders that root registers by name; image: import, inspect and prune,
 * too. */
int verb_image(int argc, char **argv);
int verb_bind(int argc, char **argv);

/* Say so on stderr and return false unless this is root. */
bool verb_is_root(const char *verb);
