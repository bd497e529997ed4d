/* A doubly linked list whose links live inside the objects: no allocation, O(1) removal.
 *
 *     struct list waiting;               list_init(&waiting);
 *     list_append(&waiting, &thing->link);
 *     LIST_EACH (&waiting, at) { struct thing *t = CONTAINER_OF(at, struct thing, link); ... }
 *
 * A link that is in no list points at itself after list_init or list_remove. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next;
    struct list *previous;
};

static inline void list_init(struct list *list)
{
    list->next = list->previous = list;
}

static inline bool list_is_empty(const struct list *list)
{
    return list->next == list;
}

static inline void list_append(struct list *list, struct list *link)
{
    link->previous = list->previous;
    link->next = list;
    list->previous->next = link;
    list->previous = link;
}

/* Safe on a link that is in no list, as long as it was initialised. */
static inline void list_remove(struct list *link)
{
    link->previous->next = link->next;
    link->next->previous = link->previous;
    list_init(link);
}

#ifdef __clang_analyzer__
/* It does not see that what is taken out of a ring changes the neighbours, and would have freed
 * links come round again. So it is not told who comes next. */
struct list *list_next(const struct list *link);
struct list *list_first(const struct list *list);
#else
static inline struct list *list_next(const struct list *link)
{
    return link->next;
}

/* The first link, or NULL. */
static inline struct list *list_first(const struct list *list)
{
    return list_is_empty(list) ? NULL : list->next;
}
#endif

/* Walk; the body may remove `at` itself, but no other link. */
#define LIST_EACH(links, at)                                                                       \
    for (struct list *at = list_next(links), *at##_next = list_next(at); at != (links);            \
         at = at##_next, at##_next = list_next(at))
