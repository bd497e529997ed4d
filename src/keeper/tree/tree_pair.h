/* Going through two trees side by side: what is in both, what is in one alone.
 *
 * The steps are those of tree_walk.h, in the same order, for two trees at once:
 *
 *     newer and older   the same path is in both. Both are folders or both are none, or one is a
 *                       folder and the other is not: then steps for what is in the folder follow
 *     newer alone       it was added
 *     older alone       it was removed
 *
 * When a folder is in one alone, steps for everything in it and its TREE_LEAVE follow, marked as
 * inside. */
#pragma once

#include <stdbool.h>

#include "keeper/tree/tree_walk.h"

/* Both NULL: the end. What they point to is valid until the next call. */
struct tree_pair_step {
    const struct tree_step *newer, *older;
    bool is_inside; /* of a folder that is not in both */
};

/* Whether an entry counts; folders always do. */
typedef bool tree_pair_counts(const struct stat *status);

struct tree_pair;

/* Neither struct is needed any longer afterwards. `counts` is NULL when everything does. The caller
 * frees the pair. */
struct tree_pair *tree_pair_new(const struct tree *newer, const struct tree *older,
                                tree_pair_counts *counts);

/* Accepts NULL. */
void tree_pair_free(struct tree_pair *pair);

AUTO_DEFINE_PTR(tree_pair, struct tree_pair, tree_pair_free);

/* 0, or -1 with `err`: then it is over. May block. */
int tree_pair_next(struct tree_pair *pair, struct tree_pair_step *ret_step, struct error *err);

/* After a step that entered a folder of the older tree alone: leave out what is in it. */
void tree_pair_skip_older(struct tree_pair *pair);
