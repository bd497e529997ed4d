/* Trees of watched folders: each is one folder with all below it (or alone), and tells what changes
 * in it by paths relative to it. All trees of the agent are in one forest, which shares the hub
 * (file_watch_hub.h) and does the reading of folders, in slices, so that the loop goes on.
 *
 * The kernel tells about folders that are watched, so a new folder must be watched, and then read
 * for what came before the watch: that is told as created, and never twice, unless there is very
 * much of it at once. A folder that moves within the tree keeps its watches. When the kernel drops
 * events the tree is read again: folders that came or went meanwhile are told, files are not.
 *
 * Links are never followed below the top. All functions belong to the loop's thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "net/loop.h"

/* Folders in all trees together, each counted once per tree: about 250 bytes. */
#define WATCH_FOLDERS_MAX ((size_t) 128 * 1024)

enum watch_change {
    WATCH_CREATE,
    WATCH_MODIFY,
    WATCH_DELETE,
    WATCH_MOVE_FROM,
    WATCH_MOVE_TO,
    WATCH_ATTRIB,
    WATCH_CHANGE_COUNT
};

/* Where a tree is. */
struct watch_place {
    char *base;     /* owned: an absolute path without links */
    char *relative; /* owned: the top, beneath base and without links; "": base itself */
    char *only;     /* owned: of interest is just this entry of the top; NULL: all */
};

void watch_place_done(struct watch_place *place);

/* Nothing is told from inside a function of this header. The owner may free the tree in on_ready,
 * on_problem and on_end. Paths are "" for the top itself. */
struct watch_tree_events {
    /* Whether the folder and all below it are of no interest. */
    bool (*is_excluded)(void *owner, const char *path);
    void (*on_change)(void *owner, enum watch_change change, const char *path, bool is_directory);
    /* All folders are watched. */
    void (*on_ready)(void *owner);
    /* Folders are missing from the watch, and why. Before on_ready it is the end. */
    void (*on_problem)(void *owner, const char *text);
    /* The kernel dropped events. */
    void (*on_overflow)(void *owner);
    /* The top is gone: nothing more will be told. */
    void (*on_end)(void *owner, const char *reason);
};

struct watch_forest;
struct watch_tree;

struct watch_tree_options {
    struct watch_place place; /* taken over, also on failure */
    bool recursive;
    bool attributes; /* of interest are changes of mode, owner and times too */
    const struct watch_tree_events *events; /* borrowed: static */
    void *owner;
};

/* `on_settled` is called after events were told and folders read: who waits for the past looks
 * again. Lives as long as the loop. */
struct watch_forest *watch_forest_new(struct loop *loop, void (*on_settled)(void *owner),
                                      void *owner);

/* Returns a tree, or NULL with -errno and a sentence: -ENOSPC, -EMFILE and -ENOMEM are limits. */
struct watch_tree *watch_tree_new(struct watch_forest *forest,
                                  const struct watch_tree_options *options, int *ret_error,
                                  char *ret_text, size_t text_size);

/* Tells nothing more. Its watches are given back in slices. Accepts NULL. */
void watch_tree_free(struct watch_tree *tree);

/* Whether every folder known of is watched and was read. */
bool watch_tree_is_settled(const struct watch_tree *tree);

/* A place in the stream of events, and whether all before it was told. */
uint64_t watch_forest_now(const struct watch_forest *forest);
bool watch_forest_has_told(const struct watch_forest *forest, uint64_t place);
