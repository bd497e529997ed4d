/* Makes a tree out of the steps of a walk through another one, in a target: what tree_copy.h says
 * of modes, owners, links and all the rest.
 *
 *     init ──► for every step of a walk: step ──► end ──► (finish_top) ──► done
 *
 * May be led through the same target a second time, with `since` set: then only what changed since
 * that time in the source is made again, and what is gone from the source goes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/auto.h"
#include "base/error.h"
#include "keeper/output.h"
#include "keeper/tree/attributes.h"
#include "keeper/tree/first_copies.h"
#include "keeper/tree/folder_descent.h"
#include "keeper/tree/folder_twins.h"
#include "keeper/tree/tree_walk.h"

/* What is counted, as in the report. */
#define TREE_COPY_COUNTS(X)                                                                        \
    X(folders)                                                                                     \
    X(files)                                                                                       \
    X(links)                                                                                       \
    X(fifos)                                                                                       \
    X(whiteouts)                                                                                   \
    X(hard_links)                                                                                  \
    X(bytes)                                                                                       \
    X(sockets_skipped)                                                                             \
    X(devices_refused)                                                                             \
    X(attributes_left_out)                                                                         \
    X(hard_links_split)

struct tree_copy_counts {
#define X(name) uint64_t name;
    TREE_COPY_COUNTS(X)
#undef X
};

struct tree_copier {
    int top;                     /* borrowed: of the target */
    struct folder_descent where; /* in it */
    struct first_copies firsts;
    struct attributes attributes;
    char *buffer; /* owned */
    struct tree_copy_counts counts;

    /* Of a copy in two passes; the caller sets them. */
    struct folder_twins *twins;   /* borrowed, or NULL */
    bool is_live;                 /* somebody works in the source */
    const struct timespec *since; /* the second pass: what did not change since then is there */
};

/* Sets the umask to 0. `target` is open for reading and stays the caller's. */
void tree_copier_init(struct tree_copier *copier, int target);

/* Do in the target what the step says. 0, or -1 with `err`, which names the step's path. */
int tree_copier_step(struct tree_copier *copier, const struct tree_step *step, struct error *err);

/* Whether -errno can come of somebody who works in the source: then the next pass does it again. */
bool tree_copier_is_passing(const struct tree_copier *copier, int result);

/* After a walk, also one that failed: nothing of ours stays in the target. 0 or -errno. */
int tree_copier_end(struct tree_copier *copier);

/* The top gets its attributes from `folder`, the source's. Last of all: whatever is made in it
 * changes its times. 0, or -1 with `err`. */
int tree_copier_finish_top(struct tree_copier *copier, int folder, struct error *err);

/* The line of JSON with the counts. */
void tree_copier_report(const struct tree_copier *copier, struct output *output);

void tree_copier_done(struct tree_copier *copier);

AUTO_DEFINE(tree_copier, struct tree_copier, tree_copier_done);
