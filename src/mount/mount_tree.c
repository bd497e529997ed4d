#include "mount/mount_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/encoding/utf8.h"
#include "base/id.h"
#include "base/memory.h"
#include "mount/mount_spool.h"

static uint64_t hash_name(const struct mount_tree *tree, const struct mount_node *folder,
                          const char *name)
{
    return table_hash(tree->seed ^ (folder->id * UINT64_C(0x9e3779b97f4a7c15)), name, strlen(name));
}

static uint64_t hash_id(const struct mount_tree *tree, uint64_t id)
{
    return table_hash(tree->seed, &id, sizeof(id));
}

static struct mount_node *new_node(struct mount_tree *tree, const char *name)
{
    struct mount_node *node = mem_alloc(sizeof(*node));

    node->id = ++tree->last_id;
    node->name = mem_copy_text(name);
    node->version = ++tree->last_version;
    list_init(&node->children);
    list_init(&node->sibling);
    list_init(&node->dirty);
    list_init(&node->waiters);
    node->by_id.hash = hash_id(tree, node->id);
    table_add(&tree->ids, &node->by_id);
    tree->count++;
    return node;
}

void mount_tree_init(struct mount_tree *tree, const char *prefix)
{
    size_t length = strlen(prefix);

    *tree = (struct mount_tree){.ids = TABLE_INIT, .names = TABLE_INIT};
    random_bytes(&tree->seed, sizeof(tree->seed));
    tree->prefix = mem_alloc(length + 2);
    memcpy(tree->prefix, prefix, length);
    if (length && prefix[length - 1] != '/')
        tree->prefix[length] = '/';
    tree->root = new_node(tree, ""); /* the first id is FUSE_ROOT_ID */
    tree->root->holders = 1;
    tree->root->has_marker = true;
}

static void free_node(struct mount_node *node)
{
    mount_spool_free(node->spool);
    free(node->name);
    free(node);
}

void mount_tree_done(struct mount_tree *tree)
{
    for (size_t i = 0; i < tree->ids.bucket_count; i++) {
        struct table_link *at = tree->ids.buckets[i];

        while (at) {
            struct mount_node *node = CONTAINER_OF(at, struct mount_node, by_id);

            at = at->next;
            free_node(node);
        }
    }
    table_done(&tree->ids);
    table_done(&tree->names);
    free(tree->prefix);
    *tree = (struct mount_tree){.prefix = NULL};
}

struct mount_node *mount_tree_find(const struct mount_tree *tree, uint64_t id)
{
    struct table_link *at = table_find(&tree->ids, hash_id(tree, id));

    for (; at; at = table_next(at)) {
        struct mount_node *node = CONTAINER_OF(at, struct mount_node, by_id);

        if (node->id == id)
            return node;
    }
    return NULL;
}

struct mount_node *mount_tree_child(const struct mount_tree *tree, const struct mount_node *folder,
                                    const char *name)
{
    struct table_link *at = table_find(&tree->names, hash_name(tree, folder, name));

    for (; at; at = table_next(at)) {
        struct mount_node *node = CONTAINER_OF(at, struct mount_node, by_name);

        if (node->parent == folder && strcmp(node->name, name) == 0)
            return node;
    }
    return NULL;
}

/* --- names ----------------------------------------------------------------------------------- */

static void link_name(struct mount_tree *tree, struct mount_node *node, struct mount_node *folder)
{
    node->parent = folder;
    mount_node_hold(folder);
    list_append(&folder->children, &node->sibling);
    node->by_name.hash = hash_name(tree, folder, node->name);
    table_add(&tree->names, &node->by_name);
}

/* The folder may be gone afterwards. */
static void unlink_name(struct mount_tree *tree, struct mount_node *node)
{
    struct mount_node *folder = node->parent;

    table_remove(&tree->names, &node->by_name);
    list_remove(&node->sibling);
    node->parent = NULL;
    mount_node_release(tree, folder);
}

struct mount_node *mount_tree_add(struct mount_tree *tree, struct mount_node *folder,
                                  const char *name)
{
    struct mount_node *node = mount_tree_child(tree, folder, name);

    if (!node) {
        node = new_node(tree, name);
        link_name(tree, node, folder);
    }
    mount_node_hold(node);
    return node;
}

void mount_node_remove(struct mount_tree *tree, struct mount_node *node)
{
    LIST_EACH (&node->children, at) {
        struct mount_node *child = CONTAINER_OF(at, struct mount_node, sibling);

        mount_node_hold(child);
        mount_node_remove(tree, child);
        mount_node_release(tree, child);
    }
    if (node->parent)
        unlink_name(tree, node);
    node->is_removed = true;
}

void mount_node_move(struct mount_tree *tree, struct mount_node *node, struct mount_node *folder,
                     const char *name)
{
    char *copy = mem_copy_text(name);

    mount_node_hold(folder);
    if (node->parent)
        unlink_name(tree, node);
    free(node->name);
    node->name = copy;
    link_name(tree, node, folder);
    mount_node_release(tree, folder);
}

/* --- who holds it ---------------------------------------------------------------------------- */

static void drop_unheld(struct mount_tree *tree, struct mount_node *node)
{
    if (node->lookups || node->holders || node == tree->root)
        return;
    table_remove(&tree->ids, &node->by_id);
    tree->count--;
    if (node->parent)
        unlink_name(tree, node);
    free_node(node);
}

void mount_node_hold(struct mount_node *node)
{
    node->holders++;
}

void mount_node_release(struct mount_tree *tree, struct mount_node *node)
{
    node->holders--;
    drop_unheld(tree, node);
}

void mount_node_forget(struct mount_tree *tree, struct mount_node *node, uint64_t lookups)
{
    node->lookups -= lookups < node->lookups ? lookups : node->lookups;
    drop_unheld(tree, node);
}

void mount_node_change(struct mount_tree *tree, struct mount_node *node)
{
    node->version = ++tree->last_version;
}

/* --- keys ------------------------------------------------------------------------------------ */

int mount_name_check(const char *name)
{
    size_t length = strlen(name);

    if (length > MOUNT_NAME_MAX)
        return -ENAMETOOLONG;
    if (!length || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return -EINVAL;
    return utf8_is_valid(name, length) ? 0 : -EILSEQ;
}

int mount_tree_new_key(const struct mount_tree *tree, const struct mount_node *folder,
                       const char *name, bool as_folder, char ret_key[static MOUNT_KEY_SIZE])
{
    int r = mount_name_check(name);

    if (r == 0)
        r = mount_tree_key(tree, folder, name, as_folder, ret_key);
    return r == 0 && mount_tree_child(tree, folder, name) ? -EEXIST : r;
}

/* Written from its end: the way to the root is known from there only. */
struct backwards {
    char *start, *at;
};

static bool mount_tree_put(struct backwards *key, const char *text, size_t length)
{
    if ((size_t) (key->at - key->start) < length)
        return false;
    key->at -= length;
    memcpy(key->at, text, length);
    return true;
}

static int mount_tree_finish(struct backwards *key)
{
    memmove(key->start, key->at, strlen(key->at) + 1);
    return 0;
}

/* What comes before a name in `folder`. */
static int put_folders(const struct mount_tree *tree, const struct mount_node *folder,
                       struct backwards *key)
{
    for (; folder != tree->root; folder = folder->parent) {
        if (!folder->parent)
            return -ENOENT;
        if (!mount_tree_put(key, "/", 1) ||
            !mount_tree_put(key, folder->name, strlen(folder->name)))
            return -ENAMETOOLONG;
    }
    return mount_tree_put(key, tree->prefix, strlen(tree->prefix)) ? 0 : -ENAMETOOLONG;
}

int mount_tree_key(const struct mount_tree *tree, const struct mount_node *folder, const char *name,
                   bool as_folder, char ret_key[static MOUNT_KEY_SIZE])
{
    struct backwards key = {ret_key, ret_key + OBJECTS_KEY_MAX};
    int r;

    *key.at = '\0';
    if ((as_folder && !mount_tree_put(&key, "/", 1)) || !mount_tree_put(&key, name, strlen(name)))
        return -ENAMETOOLONG;
    r = put_folders(tree, folder, &key);
    return r < 0 ? r : mount_tree_finish(&key);
}

int mount_node_key(const struct mount_tree *tree, const struct mount_node *node,
                   char ret_key[static MOUNT_KEY_SIZE])
{
    struct backwards key = {ret_key, ret_key + OBJECTS_KEY_MAX};
    int r;

    if (node != tree->root && !mount_node_is_folder(node))
        return node->parent ? mount_tree_key(tree, node->parent, node->name, false, ret_key)
                            : -ENOENT;
    *key.at = '\0';
    r = put_folders(tree, node, &key);
    return r < 0 ? r : mount_tree_finish(&key);
}
