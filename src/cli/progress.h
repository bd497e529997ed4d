/* How far a transfer is: one line on a terminal, written over itself.
 *
 *     big.iso  [=========>          ]  48%  230.1 MiB of 479 MiB  61.2 MiB/s  4 s left
 *
 * progress_line is pure; the rest writes to stderr, and only when that is a terminal and the
 * transfer takes longer than a blink. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

struct progress {
    const char *what;    /* borrowed */
    int64_t total;       /* bytes; negative: nobody knows */
    uint64_t done;       /* bytes */
    uint64_t started_ns; /* monotonic */
    uint64_t shown_ns;   /* when the line was last written; 0: never */
    bool is_wanted;
};

void progress_begin(struct progress *progress, const char *what, int64_t total);
void progress_add(struct progress *progress, uint64_t bytes);
/* Take the line away: what follows begins at the left. */
void progress_end(struct progress *progress);

/* The line after `elapsed_ms`, at most `columns` wide. */
void progress_line(const struct progress *progress, uint64_t elapsed_ms, unsigned int columns,
                   struct text *out);
