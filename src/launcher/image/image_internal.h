/* Inside image only: what the registry and the built-in image share. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

#include "launcher/image/image.h"

/* The folder of what builds have made, in that of the registry. */
#define IMAGE_STEPS ".steps"

/* A registered folder as it was a moment ago. */
struct image_seen {
    int folder; /* owned, O_PATH; negative: nothing */
    char name[IMAGE_NAME_MAX + 1];
    uint64_t checked_ns;
    struct timespec list_changed, folder_changed;
};

struct image_registry {
    struct folder_registry names; /* owned */
    struct image_view host;       /* owned; no lowers: not prepared */
    struct image_seen last;       /* owned */
};

/* Give a view away: yields it and leaves an empty one behind. */
static inline struct image_view image_view_take(struct image_view *view)
{
    struct image_view taken = *view;

    *view = (struct image_view) IMAGE_VIEW_INIT;
    return taken;
}
