#include <string.h>

#include "agent/filewatch/file_watch_tree_internal.h"
#include "base/memory.h"

static uint64_t watch_folder_hash_of(const struct folder *parent, const char *name)
{
    uint64_t seed = parent->tree->forest->seed ^ (uint64_t) (uintptr_t) parent;

    return table_hash(seed, name, strlen(name));
}

static void watch_folder_enter(struct folder *folder, struct folder *parent)
{
    folder->parent = parent;
    folder->by_name.hash = watch_folder_hash_of(parent, folder->name);
    table_add(&parent->tree->folders, &folder->by_name);
    list_append(&parent->children, &folder->siblings);
}

struct folder *folder_new(struct watch_tree *tree, struct folder *parent, const char *name)
{
    struct folder *folder;

    if (tree->forest->folder_count >= WATCH_FOLDERS_MAX)
        return NULL;
    folder = mem_alloc(sizeof(*folder));
    folder->name = mem_copy_text(name);
    folder->tree = tree;
    folder->watch.on_event = folder_event;
    folder->generation = tree->generation;
    list_init(&folder->siblings);
    list_init(&folder->children);
    tree->folder_count++;
    tree->forest->folder_count++;
    if (parent)
        watch_folder_enter(folder, parent);
    return folder;
}

struct folder *folder_find(const struct folder *parent, const char *name)
{
    struct table_link *at = table_find(&parent->tree->folders, watch_folder_hash_of(parent, name));

    for (; at; at = table_next(at)) {
        struct folder *folder = CONTAINER_OF(at, struct folder, by_name);

        if (folder->parent == parent && strcmp(folder->name, name) == 0)
            return folder;
    }
    return NULL;
}

/* --- paths ----------------------------------------------------------------------------------- */

static char *prepend(char *at, const char *start, const char *name)
{
    size_t length = strlen(name);

    if ((size_t) (at - start) < length + 1)
        return NULL;
    if (*at) /* something is behind it */
        *--at = '/';
    for (size_t i = length; i > 0; i--) /* no NUL behind it: it ends in the rest of the path */
        *--at = name[i - 1];
    return at;
}

const char *folder_path(const struct folder *folder, const char *name, char buffer[static PATH_MAX])
{
    char *at = buffer + PATH_MAX - 1;

    *at = '\0';
    if (name)
        at = prepend(at, buffer, name);
    for (; at && folder->parent; folder = folder->parent)
        at = prepend(at, buffer, folder->name);
    return folder == folder->tree->top ? at : NULL;
}

struct folder *folder_top(struct folder *folder)
{
    while (folder->parent)
        folder = folder->parent;
    return folder;
}

/* --- coming and going ------------------------------------------------------------------------ */

void folder_detach(struct folder *folder)
{
    if (!folder->parent)
        return;
    table_remove(&folder->tree->folders, &folder->by_name);
    list_remove(&folder->siblings);
    folder->parent = NULL;
}

void folder_attach(struct folder *folder, struct folder *parent, const char *name)
{
    free(folder->name);
    folder->name = mem_copy_text(name);
    folder->generation = folder->tree->generation;
    watch_folder_enter(folder, parent);
}

void folder_drop(struct folder *folder)
{
    struct watch_forest *forest = folder->tree->forest;

    if (folder->parent)
        folder_detach(folder);
    list_remove(&folder->siblings);
    folder_work_done(folder);
    list_append(&forest->graves, &folder->siblings);
    forest_wake(forest);
}

void folder_drop_children(struct folder *folder)
{
    struct list *at;

    while ((at = list_first(&folder->children)))
        folder_drop(CONTAINER_OF(at, struct folder, siblings));
}

static void free_folder(struct folder *folder)
{
    struct watch_tree *tree = folder->tree;

    if (folder->parent)
        folder_detach(folder);
    list_remove(&folder->siblings);
    folder_work_done(folder);
    seen_forget(folder);
    watch_hub_unwatch(&tree->forest->hub, &folder->watch);
    free(folder->name);
    free(folder);
    tree->forest->folder_count--;
    if (--tree->folder_count == 0)
        tree_release(tree);
}

bool folder_bury(struct watch_forest *forest, int count)
{
    struct list *at;

    while (count-- > 0 && (at = list_first(&forest->graves))) {
        struct folder *folder = CONTAINER_OF(at, struct folder, siblings);

        /* The children come up to the graves before it is freed; each is touched once. */
        at = list_first(&folder->children);
        if (at)
            folder_drop(CONTAINER_OF(at, struct folder, siblings));
        else
            free_folder(folder);
    }
    return !list_is_empty(&forest->graves);
}

/* --- work ------------------------------------------------------------------------------------ */

void folder_queue(struct folder *folder, enum scan_mode mode)
{
    struct folder_work *work = folder->work;

    if (!work) {
        work = folder->work = mem_alloc(sizeof(*work));
        work->folder = folder;
        list_init(&work->link);
        work->is_first = mode == SCAN_QUIET || folder == folder->tree->top;
        folder->tree->first_busy += work->is_first;
        folder->tree->busy++;
    }
    scan_abandon(folder);
    work->mode = mode;
    work->tries = 0;
    work->cookie = 0;
    list_remove(&work->link);
    list_append(&folder->tree->forest->queue, &work->link);
    forest_wake(folder->tree->forest);
}

void folder_work_done(struct folder *folder)
{
    struct folder_work *work = TAKE_PTR(folder->work);

    if (!work)
        return;
    scan_abandon(folder);
    seen_close(folder);
    list_remove(&work->link);
    folder->tree->first_busy -= work->is_first;
    folder->tree->busy--;
    free(work);
    forest_wake(folder->tree->forest); /* somebody may have waited for this */
}
