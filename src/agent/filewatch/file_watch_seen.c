#include <string.h>

#include "agent/filewatch/file_watch_tree_internal.h"
#include "base/memory.h"

/* About as many events as the kernel queues by default. */
#define SEEN_MAX ((size_t) 16384)

/* The names of one folder. */
struct seen_group {
    struct list link;  /* in the forest */
    struct list names; /* of seen_name */
    struct folder *folder;
    uint64_t due; /* position in the queue of events; UINT64_MAX: not read to the end yet */
};

struct seen_name {
    struct table_link by_name; /* in the forest */
    struct list link;          /* in the group */
    struct seen_group *group;
    char name[];
};

static uint64_t watch_seen_hash_of(const struct folder *folder, const char *name)
{
    uint64_t seed = folder->tree->forest->seed ^ (uint64_t) (uintptr_t) folder;

    return table_hash(seed, name, strlen(name));
}

static struct seen_name *watch_seen_find(const struct folder *folder, const char *name)
{
    struct table_link *at;

    if (!folder->seen)
        return NULL;
    at = table_find(&folder->tree->forest->seen, watch_seen_hash_of(folder, name));
    for (; at; at = table_next(at)) {
        struct seen_name *seen = CONTAINER_OF(at, struct seen_name, by_name);

        if (seen->group->folder == folder && strcmp(seen->name, name) == 0)
            return seen;
    }
    return NULL;
}

static struct seen_group *get_group(struct folder *folder)
{
    struct seen_group *group = folder->seen;

    if (group)
        return group;
    group = folder->seen = mem_alloc(sizeof(*group));
    group->folder = folder;
    group->due = UINT64_MAX;
    list_init(&group->names);
    list_append(&folder->tree->forest->seen_groups, &group->link);
    return group;
}

static void free_name(struct watch_forest *forest, struct seen_name *seen)
{
    table_remove(&forest->seen, &seen->by_name);
    list_remove(&seen->link);
    free(seen);
}

static void free_group(struct watch_forest *forest, struct seen_group *group)
{
    LIST_EACH (&group->names, at)
        free_name(forest, CONTAINER_OF(at, struct seen_name, link));
    list_remove(&group->link);
    group->folder->seen = NULL;
    free(group);
}

void seen_add(struct folder *folder, const char *name)
{
    struct watch_forest *forest = folder->tree->forest;
    size_t length = strlen(name);
    struct seen_name *seen;

    if (forest->seen.count >= SEEN_MAX || watch_seen_find(folder, name))
        return;
    seen = mem_alloc(sizeof(*seen) + length + 1);
    memcpy(seen->name, name, length);
    seen->group = get_group(folder);
    seen->by_name.hash = watch_seen_hash_of(folder, name);
    table_add(&forest->seen, &seen->by_name);
    list_append(&seen->group->names, &seen->link);
}

bool seen_has(const struct folder *folder, const char *name)
{
    return watch_seen_find(folder, name) != NULL;
}

void seen_remove(struct folder *folder, const char *name)
{
    struct seen_name *seen = watch_seen_find(folder, name);

    if (seen)
        free_name(folder->tree->forest, seen);
}

void seen_close(struct folder *folder)
{
    if (folder->seen)
        folder->seen->due = watch_hub_end(&folder->tree->forest->hub);
}

void seen_forget(struct folder *folder)
{
    if (folder->seen)
        free_group(folder->tree->forest, folder->seen);
}

void seen_settle(struct watch_forest *forest)
{
    LIST_EACH (&forest->seen_groups, at) {
        struct seen_group *group = CONTAINER_OF(at, struct seen_group, link);

        if (group->due <= watch_hub_position(&forest->hub))
            free_group(forest, group);
    }
}
