/* The files and folders of a mount that the kernel knows of, or that somebody works with.
 *
 * A node stands for a name in a folder; its key is the names on the way from the root. The kernel
 * counts how often it was told of a node (lookups) and takes that back (forget); requests and open
 * files hold it, too, and children hold their folder. A node that nobody holds is gone.
 *
 *     root "" ── "src" ── "main.c"        key: <prefix>src/main.c
 *
 * A node whose name was removed (unlink, replaced by a rename) stays for those that have it open,
 * and has no key. Ids are never used twice. One thread. */
#pragma once

#include "base/list.h"
#include "base/table.h"
#include "mount/mount_marks.h"
#include "mount/mount_message.h"

struct mount_spool;

struct mount_node {
    uint64_t id;
    struct table_link by_id, by_name;
    struct mount_node *parent; /* held; NULL: the root */
    struct list children;      /* of mount_node.sibling */
    struct list sibling;
    char *name; /* owned */
    uint64_t lookups;
    size_t holders;  /* requests, handles, children */
    size_t handles;  /* open files of it */
    size_t writers;  /* of them, for writing */
    bool is_removed; /* has no name any more */

    /* What it is, as of `seen` (loop's clock); 0: nobody has looked. */
    uint64_t seen;
    struct mount_marks marks;
    uint64_t size;
    uint64_t stored;            /* the length of the object, as far as it was looked at */
    char tag[OBJECTS_TAG_SIZE]; /* of the object; "" before the first put */
    uint64_t version;           /* another one when its bytes are others: for the cache */
    uint64_t kernel_version;    /* of the pages that the kernel may have */
    bool has_marks;             /* its metadata was read, for this tag */

    /* Files. */
    bool is_new;               /* made here, not yet in the store */
    bool is_dirty;             /* the spool, or the marks, have changes that the store has not */
    struct mount_spool *spool; /* owned: its bytes while somebody writes */
    struct list dirty;         /* link of the session's list of dirty ones */

    /* Folders. */
    bool has_marker; /* there is an object "name/" */

    /* Something that must not happen twice at once: a transfer, a rename. */
    bool is_busy;
    struct list waiters; /* of mount_waiter: what goes on when it is not busy any more */
};

struct mount_tree {
    struct table ids, names;
    uint64_t last_id, last_version, seed;
    struct mount_node *root;
    size_t count;
    char *prefix; /* owned: of all keys; "" or ends with "/" */
};

/* `prefix` is copied; "/" is put behind it where there is none. */
void mount_tree_init(struct mount_tree *tree, const char *prefix);
/* All nodes, whoever holds them. */
void mount_tree_done(struct mount_tree *tree);

/* NULL: there is none (any more). */
struct mount_node *mount_tree_find(const struct mount_tree *tree, uint64_t id);
struct mount_node *mount_tree_child(const struct mount_tree *tree, const struct mount_node *folder,
                                    const char *name);

/* The child of that name, made when it is not there. Held once for the caller. */
struct mount_node *mount_tree_add(struct mount_tree *tree, struct mount_node *folder,
                                  const char *name);

void mount_node_hold(struct mount_node *node);
/* The node may be gone. */
void mount_node_release(struct mount_tree *tree, struct mount_node *node);
void mount_node_forget(struct mount_tree *tree, struct mount_node *node, uint64_t lookups);

/* Its name is gone, and the names of all beneath it. Held by the caller. */
void mount_node_remove(struct mount_tree *tree, struct mount_node *node);

/* It has another name from now on. A node that has that name must have been removed. Held by the
 * caller. */
void mount_node_move(struct mount_tree *tree, struct mount_node *node, struct mount_node *folder,
                     const char *name);

/* Its bytes are others than before. */
void mount_node_change(struct mount_tree *tree, struct mount_node *node);

static inline bool mount_node_is_folder(const struct mount_node *node)
{
    return (node->marks.mode & 0170000) == 0040000;
}

#define MOUNT_KEY_SIZE (OBJECTS_KEY_MAX + 1)

/* The key of a file; of a folder with "/" behind it (of the root: the prefix). -ENOENT: it was
 * removed; -ENAMETOOLONG. */
int mount_node_key(const struct mount_tree *tree, const struct mount_node *node,
                   char ret_key[static MOUNT_KEY_SIZE]);

/* The key of a name in a folder, which need not be there; as a folder with "/" behind it. */
int mount_tree_key(const struct mount_tree *tree, const struct mount_node *folder, const char *name,
                   bool as_folder, char ret_key[static MOUNT_KEY_SIZE]);

/* The same for what is to be made: also what mount_name_check says, and -EEXIST for a child that is
 * known. */
int mount_tree_new_key(const struct mount_tree *tree, const struct mount_node *folder,
                       const char *name, bool as_folder, char ret_key[static MOUNT_KEY_SIZE]);

/* Whether a name can be a part of a key: -EILSEQ, -EINVAL, -ENAMETOOLONG or 0. */
int mount_name_check(const char *name);
