/* One user's attack on what all share, and the process that makes it.
 *
 * It is a process of its own, of the lowest priority because it runs where the daemon does and a real
 * attacker's machine would not: what is measured is what the daemon and sandboxes do. It ends with
 * its parent, and after DRILL_LOAD_SECONDS by itself. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cli/attack/drill.h"

#define DRILL_LOAD_SECONDS 30
#define DRILL_BOXES_MAX    3

enum drill_raw {
    DRILL_RAW_NONE,
    DRILL_RAW_SILENT,
    DRILL_RAW_HEAD,
    DRILL_RAW_UNREAD,
    DRILL_RAW_GARBAGE
};

/* A request that is made over and over. */
struct drill_step {
    const char *method, *path, *body; /* a NULL method: no such step */
    struct {
        const char *method, *path, *body;
    } then;              /* after each that was answered well, with its number */
    const char *header;  /* with the number as its value */
    unsigned int width;  /* so many at once */
    unsigned int count;  /* so many in all; 0: without end */
    size_t promised;     /* bytes of body that are announced */
    bool upgrade, holds; /* it is not expected to end: what was opened stays */
};

struct drill_assault {
    const char *name, *what;
    const char *limit; /* a word of the refusal that must end it; NULL: there is none */
    unsigned int most; /* so many are enough where no limit ends it; 0: no such end */
    unsigned int boxes;
    size_t fill; /* length of "{fill}" */
    struct drill_step before, second, load;
    enum drill_raw raw; /* instead of `load`: bytes on connections */
};

/* In memory of both processes. */
struct drill_counts {
    volatile unsigned long good, refused, lost;
    volatile unsigned long limit_met;
    volatile bool is_spent; /* `most` was reached */
    volatile bool is_ready; /* as much is under way as there will be */
};

struct drill_load {
    struct drill_counts *counts;
    struct drill_user user;
    char boxes[DRILL_BOXES_MAX][DRILL_NAME_SIZE];
    pid_t pid;
};

/* Make the user and his sandboxes, and let him begin. */
int drill_load_start(struct drill *drill, const struct drill_assault *assault,
                     struct drill_load *ret_load, struct error *err);

/* Stop, and take away what is his. */
int drill_load_stop(struct drill *drill, struct drill_load *load, struct error *err);

/* Connections of one kind, kept for `seconds`: see drill_raw.c. Returns how many could be had. */
unsigned int drill_raw_run(const struct client *client, enum drill_raw kind,
                           struct drill_counts *counts, unsigned int seconds);
