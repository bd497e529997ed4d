/* How many things with a handle of the loop are not gone yet: whoever closes waits for the last. */
#pragma once

#include <stddef.h>

struct roll {
    size_t count;
    void (*on_empty)(struct roll *roll); /* NULL: nobody waits */
};

static inline void roll_enter(struct roll *roll)
{
    roll->count++;
}

static inline void roll_leave(struct roll *roll)
{
    if (--roll->count == 0 && roll->on_empty)
        roll->on_empty(roll);
}
