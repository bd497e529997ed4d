#include "domain/sandbox/schedule.h"

#include <stdlib.h>

#include "base/memory.h"
#include "domain/sandbox/sandbox.h"

static void put(struct schedule *schedule, size_t place, struct sandbox *sandbox)
{
    schedule->items[place] = sandbox;
    sandbox->place = place + 1;
}

static void sift_up(struct schedule *schedule, size_t place)
{
    struct sandbox *sandbox = schedule->items[place];

    while (place > 0) {
        size_t parent = (place - 1) / 2;

        if (schedule->items[parent]->look_ns <= sandbox->look_ns)
            break;
        put(schedule, place, schedule->items[parent]);
        place = parent;
    }
    put(schedule, place, sandbox);
}

static void sift_down(struct schedule *schedule, size_t place)
{
    struct sandbox *sandbox = schedule->items[place];

    for (;;) {
        size_t child = 2 * place + 1;

        if (child >= schedule->count)
            break;
        if (child + 1 < schedule->count &&
            schedule->items[child + 1]->look_ns < schedule->items[child]->look_ns)
            child++;
        if (sandbox->look_ns <= schedule->items[child]->look_ns)
            break;
        put(schedule, place, schedule->items[child]);
        place = child;
    }
    put(schedule, place, sandbox);
}

void schedule_add(struct schedule *schedule, struct sandbox *sandbox, uint64_t look_ns)
{
    if (sandbox->place) {
        if (look_ns >= sandbox->look_ns)
            return;
        sandbox->look_ns = look_ns;
        sift_up(schedule, sandbox->place - 1);
        return;
    }
    if (schedule->count == schedule->capacity) {
        schedule->capacity = schedule->capacity ? schedule->capacity * 2 : 64;
        schedule->items =
            mem_resize(schedule->items, schedule->capacity * sizeof(struct sandbox *));
    }
    sandbox->look_ns = look_ns;
    put(schedule, schedule->count++, sandbox);
    sift_up(schedule, schedule->count - 1);
}

void schedule_remove(struct schedule *schedule, struct sandbox *sandbox)
{
    size_t place = sandbox->place;
    struct sandbox *last;

    if (place == 0)
        return;
    sandbox->place = 0;
    last = schedule->items[--schedule->count];
    if (last == sandbox)
        return;
    put(schedule, place - 1, last);
    sift_up(schedule, place - 1);
    sift_down(schedule, last->place - 1);
}

struct sandbox *schedule_pop(struct schedule *schedule, uint64_t now_ns)
{
    struct sandbox *first = schedule->count ? schedule->items[0] : NULL;

    if (!first || first->look_ns > now_ns)
        return NULL;
    schedule_remove(schedule, first);
    return first;
}

void schedule_done(struct schedule *schedule)
{
    free(schedule->items);
    *schedule = (struct schedule){.count = 0};
}
