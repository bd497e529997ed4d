#include "keeper/tree/tree_pair.h"

#include <string.h>

#include "base/memory.h"

struct side {
    struct tree_walk *walk; /* owned */
    struct tree_step step;
    bool is_taken;     /* the step was handed out: the next one is due */
    bool is_alone;     /* in a folder that the other side has not */
    size_t alone_from; /* the depth of that folder */
};

struct tree_pair {
    struct side newer, older;
    tree_pair_counts *counts;
};

struct tree_pair *tree_pair_new(const struct tree *newer, const struct tree *older,
                                tree_pair_counts *counts)
{
    struct tree_pair *pair = mem_alloc(sizeof(*pair));

    pair->newer = (struct side){.walk = tree_walk_new_tree(newer), .is_taken = true};
    pair->older = (struct side){.walk = tree_walk_new_tree(older), .is_taken = true};
    pair->counts = counts;
    return pair;
}

void tree_pair_free(struct tree_pair *pair)
{
    if (!pair)
        return;
    tree_walk_free(pair->newer.walk);
    tree_walk_free(pair->older.walk);
    free(pair);
}

static int advance(struct tree_pair *pair, struct side *side, struct error *err)
{
    if (!side->is_taken)
        return 0;
    side->is_taken = false;
    do
        if (tree_walk_next(side->walk, &side->step, err) < 0)
            return -1;
    while (side->step.event == TREE_ENTRY && pair->counts && !pair->counts(&side->step.status));
    return 0;
}

static const struct tree_step *take(struct side *side)
{
    side->is_taken = true;
    return &side->step;
}

static void stay_alone(struct side *side)
{
    if (side->step.event != TREE_ENTER)
        return;
    side->is_alone = true;
    side->alone_from = side->step.depth;
}

/* The next step of a folder that one side alone has. */
static const struct tree_step *take_inside(struct side *side)
{
    if (side->step.event == TREE_LEAVE && side->step.depth == side->alone_from)
        side->is_alone = false;
    return take(side);
}

/* Which side comes first in a folder that both have: negative for the newer, 0 for both. The end of
 * the folder comes behind all names. */
static int order(const struct tree_step *newer, const struct tree_step *older)
{
    bool newer_ends = newer->event == TREE_LEAVE, older_ends = older->event == TREE_LEAVE;

    if (newer_ends || older_ends)
        return newer_ends - older_ends;
    return strcmp(newer->name, older->name);
}

static void take_next(struct tree_pair *pair, struct tree_pair_step *step)
{
    struct side *newer = &pair->newer, *older = &pair->older;
    int which = order(&newer->step, &older->step);

    if (which <= 0)
        step->newer = take(newer);
    if (which >= 0)
        step->older = take(older);
    if (which < 0 || (which == 0 && older->step.event == TREE_ENTRY))
        stay_alone(newer);
    if (which > 0 || (which == 0 && newer->step.event == TREE_ENTRY))
        stay_alone(older);
}

int tree_pair_next(struct tree_pair *pair, struct tree_pair_step *ret_step, struct error *err)
{
    struct side *newer = &pair->newer, *older = &pair->older;
    struct tree_pair_step step = {.newer = NULL};

    if (advance(pair, newer, err) < 0 || advance(pair, older, err) < 0)
        return -1;
    if (newer->is_alone || older->is_alone) {
        step.is_inside = true;
        if (newer->is_alone)
            step.newer = take_inside(newer);
        else
            step.older = take_inside(older);
    } else if (newer->step.event != TREE_END) {
        take_next(pair, &step);
    }
    *ret_step = step;
    return 0;
}

void tree_pair_skip_older(struct tree_pair *pair)
{
    tree_walk_skip(pair->older.walk);
}
