#include "keeper/tree/folder_twins.h"

#include <stdlib.h>

#include "base/memory.h"

#define ROOM_MIN 64
/* Multiplied by this, numbers that follow each other are far apart. */
#define SPREAD 0x9e3779b97f4a7c15ULL

/* Where the pair of this copy is, or would be: never more than half of the places are taken. */
static struct folder_twin *find(const struct folder_twins *twins, ino_t copy)
{
    size_t at = (size_t) (((uint64_t) copy * SPREAD) >> 32) & (twins->room - 1);

    while (twins->places[at].copy != 0 && twins->places[at].copy != copy)
        at = (at + 1) & (twins->room - 1);
    return &twins->places[at];
}

static void grow(struct folder_twins *twins)
{
    struct folder_twins larger = {.count = twins->count, .limit = twins->limit};

    larger.room = twins->room ? twins->room * 2 : ROOM_MIN;
    larger.places = mem_alloc(larger.room * sizeof(*larger.places));
    for (size_t i = 0; i < twins->room; i++) {
        if (twins->places[i].copy != 0)
            *find(&larger, twins->places[i].copy) = twins->places[i];
    }
    free(twins->places);
    *twins = larger;
}

void folder_twins_put(struct folder_twins *twins, ino_t copy, ino_t source)
{
    size_t limit = twins->limit ? twins->limit : FOLDER_TWINS_MAX;
    struct folder_twin *place;

    if (copy == 0)
        return;
    if (twins->count * 2 >= twins->room && twins->count < limit)
        grow(twins);
    place = find(twins, copy);
    if (place->copy == 0 && twins->count == limit)
        return;
    twins->count += place->copy == 0;
    *place = (struct folder_twin){.copy = copy, .source = source};
}

bool folder_twins_match(const struct folder_twins *twins, ino_t copy, ino_t source)
{
    const struct folder_twin *place = twins->room && copy != 0 ? find(twins, copy) : NULL;

    return place && place->copy == copy && place->source == source;
}

void folder_twins_done(struct folder_twins *twins)
{
    free(twins->places);
    *twins = (struct folder_twins) FOLDER_TWINS_INIT;
}
