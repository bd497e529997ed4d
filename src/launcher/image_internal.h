/* Inside image only: what the registry and the built-in image share. */
#pragma once

#include "launcher/image.h"

struct image_registry {
    struct folder_registry names; /* owned */
    struct image_view host;       /* owned; no lower: not prepared */
};

/* Give a view away: yields it and leaves an empty one behind. */
static inline struct image_view image_view_take(struct image_view *view)
{
    struct image_view taken = *view;

    *view = (struct image_view) IMAGE_VIEW_INIT;
    return taken;
}
