/* Going through a tree that a stranger filled, in order, without changing it.
 *
 *     TREE_ENTER   top        a folder, now open
 *     TREE_ENTRY   top/a      anything else
 *     TREE_ENTER   top/b
 *     TREE_LEAVE   top/b      everything in it was seen
 *     TREE_LEAVE   top
 *     TREE_END
 *
 * Links are never followed, and each step goes by descriptor and one name. Within a folder names
 * come in the order of their bytes. One descriptor is open at a time, whatever the depth: the way
 * back up is "..", which must be the very folder we came from, or the walk ends with -ESTALE. So
 * nobody else may work in the tree; whoever does can make the walk fail, not make it leave.
 *
 * A tree may be a stack of layers, as overlay merges them: of what several have, the topmost shows,
 * folders are merged, and opaque ones hide what lies beneath. Whiteouts stay: the stack itself lies
 * on something. One descriptor is open for each layer then.
 *
 * Memory is bounded: names of folders above are forgotten and read again on the way up when they
 * take more than TREE_WALK_NAMES_KEPT. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/auto.h"
#include "base/error.h"

/* Names of one folder read at once, and names kept of all folders on the way. */
#define TREE_WALK_NAMES_READ ((size_t) 8 << 20)
#define TREE_WALK_NAMES_KEPT ((size_t) 16 << 20)

/* Beyond these a walk ends with -ENAMETOOLONG. */
#define TREE_WALK_DEPTH_MAX ((size_t) 1 << 20)
#define TREE_WALK_PATH_MAX  ((size_t) 128 << 20)

/* Layers of one tree. */
#define TREE_LAYERS_MAX 32

struct tree {
    int layers[TREE_LAYERS_MAX]; /* borrowed, open for reading; the topmost first */
    size_t count;
};

/* A tree that is one folder. */
#define TREE_OF(folder) (&(const struct tree){.layers = {folder}, .count = 1})

enum tree_event { TREE_END, TREE_ENTER, TREE_ENTRY, TREE_LEAVE };

struct tree_step {
    enum tree_event event;
    int folder;         /* borrowed: the one the entry lies in; for TREE_ENTER and _LEAVE itself */
    const char *at;     /* its name as seen from `folder`: "." for TREE_ENTER and _LEAVE */
    const char *name;   /* its own name; "" for the top */
    const char *path;   /* from the top down, which is "" */
    size_t path_length; /* of a deep one: megabytes */
    size_t depth;       /* 0: the top */
    struct stat status;
    /* Of a folder in a stack: what is under the stack at this place does not show through it, and
     * perhaps only a layer beneath has the mark that says so. */
    bool is_opaque;
    int lowest;            /* borrowed: as `folder`, in the lowest layer that has part in it */
    const char *lowest_at; /* as `at` */
};

struct tree_walk;

/* Walk what is in `folder`, open for reading, borrowed. The caller frees the walk. */
struct tree_walk *tree_walk_new(int folder);

/* The same for a stack; the struct is not needed any longer afterwards. */
struct tree_walk *tree_walk_new_tree(const struct tree *tree);

/* The same with other bounds on names: for tests. */
struct tree_walk *tree_walk_new_with(int folder, size_t names_read, size_t names_kept);

/* Accepts NULL. */
void tree_walk_free(struct tree_walk *walk);

AUTO_DEFINE_PTR(tree_walk, struct tree_walk, tree_walk_free);

/* The next step; what it points to is valid until the next call. Returns 0, or -1 with `err`: then
 * the walk is over. May block. */
int tree_walk_next(struct tree_walk *walk, struct tree_step *ret_step, struct error *err);

/* Somebody works in the tree: names that vanish before the walk comes to them are left out. A
 * folder that is moved away around the walk still ends it, with -ESTALE. */
void tree_walk_forgive(struct tree_walk *walk);

/* After TREE_ENTER: leave out what is in that folder. The next step is its TREE_LEAVE. */
void tree_walk_skip(struct tree_walk *walk);

/* The mark of a folder that hides what lies beneath; its value is "y". */
#define TREE_OPAQUE "user.overlay.opaque"

/* Whether a folder hides what lies beneath the whole tree at its place. */
bool tree_step_is_opaque(const struct tree_step *step);

/* Fill `err` for what failed at this step: "what 'path': reason". A long path is shown by its end.
 * Returns -1. */
int tree_step_error(const struct tree_step *step, int system, const char *what, struct error *err);
