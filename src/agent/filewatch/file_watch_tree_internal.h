/* What the parts of file_watch_tree.h share: folders, the work on them, and the forest.
 *
 *     file_watch_tree.c    trees, and what events do to them
 *     file_watch_folder.c  folders: names, paths, coming and going
 *     file_watch_scan.c    reading folders in slices
 *     file_watch_seen.c    names that were told already
 *
 * A folder leaves its tree when it is moved away (it departs, and waits a moment for the event
 * that says where to) or deleted (it goes to the graves, and is freed in slices). Then its parent
 * is NULL, and what happens below it has no path.
 *
 * Folders are recognised by device and inode: what is found at a path may be another folder than
 * the one an event was about. Then the folder is lost: tried again when all events that were
 * queued have been told. */
#pragma once

#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>

#include "agent/filewatch/file_watch_hub.h"
#include "agent/filewatch/file_watch_tree.h"
#include "base/list.h"
#include "base/table.h"

enum scan_mode {
    SCAN_CHECK,   /* nothing to read: is it the same folder? */
    SCAN_QUIET,   /* from the beginning: nothing is told */
    SCAN_NEW,     /* the folder is new: what is in it is told as created */
    SCAN_TOUCHED, /* events may have been missed: what is in it is told as modified */
    SCAN_RESYNC,  /* events were missed: folders that came and went are told */
};

struct folder_work {
    struct list link; /* in one list of the forest */
    struct folder *folder;
    enum scan_mode mode;
    bool is_first; /* before the tree is ready */
    unsigned tries;
    uint64_t due;    /* lost: position in the queue of events; departed: time */
    uint32_t cookie; /* departed: of the move; 0: not departed */
    bool missed;     /* departed: something happened below meanwhile */
};

struct folder {
    struct table_link by_name; /* in the tree, by parent and name */
    struct watch_hub_link watch;
    struct watch_tree *tree;
    struct folder *parent; /* NULL: the top, or not in the tree */
    struct list siblings;
    struct list children;
    struct folder_work *work; /* owned; NULL: nothing to do */
    dev_t device;
    ino_t inode; /* 0: not looked at yet, and not watched */
    uint32_t generation;
    struct seen_group *seen; /* owned; NULL: nothing was told lately */
    char *name;              /* owned */
};

struct watch_anchor;
struct seen_group;

struct watch_tree {
    struct list link; /* in the forest */
    struct watch_forest *forest;
    struct watch_tree_options options;
    struct folder *top;
    struct watch_anchor *anchors; /* owned */
    size_t anchor_count;
    struct table folders;
    size_t folder_count; /* in the graves too */
    size_t busy;         /* work to be done */
    size_t first_busy;   /* of it, what is to be done before the tree is ready */
    uint32_t generation; /* of the last reading of the whole */
    bool is_ready;
    bool again;             /* events were dropped while busy */
    bool ended;             /* nothing more is told but the reason */
    const char *end_reason; /* static; NULL: not to be told */
    char *problem;          /* owned: to be told; NULL: none */
};

struct watch_forest {
    struct watch_hub hub; /* first: see file_watch_tree.c */
    struct loop *loop;
    struct list trees;
    struct list queue;    /* of folder_work: to be read */
    struct list lost;     /* of folder_work */
    struct list departed; /* of folder_work */
    struct list graves;   /* of folder, by `siblings`: tops of what is to be freed */
    struct loop_task task;
    struct deadline departure;     /* the first of the departed has waited long enough */
    DIR *reading;                  /* owned; NULL: no folder is open */
    struct folder *reading_folder; /* NULL: none */
    struct list seen_groups;
    struct table seen;
    size_t folder_count;
    uint64_t seed;
    uint32_t hidden_cookie; /* of the last move of a temporary file; 0: none */
    void (*on_settled)(void *owner);
    void *owner;
};

/* --- folders --------------------------------------------------------------------------------- */

/* NULL when there are too many. `parent` is NULL for the top. */
struct folder *folder_new(struct watch_tree *tree, struct folder *parent, const char *name);
struct folder *folder_find(const struct folder *parent, const char *name);

/* The path of `name` (NULL: of itself) in `buffer`; NULL when it is too long, or the folder is not
 * in the tree. */
const char *folder_path(const struct folder *folder, const char *name,
                        char buffer[static PATH_MAX]);

/* The topmost folder above it: the tree's own as long as it is in the tree. */
struct folder *folder_top(struct folder *folder);

/* Take it out of its parent; put it into another, under another name. */
void folder_detach(struct folder *folder);
void folder_attach(struct folder *folder, struct folder *parent, const char *name);

/* It is gone, with all below it. */
void folder_drop(struct folder *folder);
void folder_drop_children(struct folder *folder);

/* Free some of what is gone. Returns whether more is left. */
bool folder_bury(struct watch_forest *forest, int count);

/* Start or change the work on a folder: it goes to the end of the queue. */
void folder_queue(struct folder *folder, enum scan_mode mode);
void folder_work_done(struct folder *folder);

/* --- reading --------------------------------------------------------------------------------- */

/* Open beneath the tree's base. Returns a descriptor, or -errno. */
int scan_open_path(const struct watch_tree *tree, const char *path);

/* Remember which folder `fd` is, and watch it. Returns 0 or -errno. */
int scan_bind(struct folder *folder, int fd);

/* Do a slice of work. Returns whether there is more. */
bool scan_slice(struct watch_forest *forest);

/* Let lost folders be tried again whose time has come. */
void scan_settle(struct watch_forest *forest);

/* Stop reading if it is this folder's turn. */
void scan_abandon(struct folder *folder);

/* --- trees ----------------------------------------------------------------------------------- */

void tree_change(struct watch_tree *tree, enum watch_change change, const char *path,
                 bool is_directory);
void tree_problem(struct watch_tree *tree, int error, const char *path);
void tree_end(struct watch_tree *tree, const char *reason);
/* The last folder is freed. */
void tree_release(struct watch_tree *tree);
/* Something is to be done or told at the end of the turn. */
void forest_wake(struct watch_forest *forest);
void folder_event(struct watch_hub_link *link, const struct inotify_event *event);

/* --- names told already ---------------------------------------------------------------------- */

/* The name was told as created: an event of the same may still come, or a reading find it. Beyond
 * a limit it is not remembered, and told twice. */
void seen_add(struct folder *folder, const char *name);
/* Whether it was told. */
bool seen_has(const struct folder *folder, const char *name);
void seen_remove(struct folder *folder, const char *name);
/* Reading ended: forget the names once all events that are queued now were told. */
void seen_close(struct folder *folder);
void seen_forget(struct folder *folder);
void seen_settle(struct watch_forest *forest);
