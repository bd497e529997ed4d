/* What every load program is told on its command line. */
#pragma once

#include <stdint.h>

#include "load/target.h"

struct load_options {
    struct target target;
    const char *path;      /* request target; borrowed from argv */
    unsigned connections;  /* 1 to 100,000 */
    uint64_t bytes;        /* per body or message; up to 1 TiB */
    uint64_t milliseconds; /* how long to go on; up to an hour */
};

/* Fill `options`, which holds the defaults, from "--name value" pairs. Ends the program with a
 * sentence when one is unknown or wrong, or when --target is missing. */
void load_options_parse(struct load_options *options, int count, char **arguments);

/* The lines of the help text, to stdout. */
void load_options_help(void);
