/* Inside image only: what the registry and the built-in image share. */
#pragma once

#include "launcher/image.h"

struct image_registry {
    int folder;             /* owned */
    struct image_view host; /* owned; no lower: not prepared */
    char path[PATH_MAX];
};

/* Whether `folder` may be an image: see image_add. `path` is for the message. */
int image_check_folder(const struct image_registry *registry, int folder, const char *path,
                       struct error *err);

/* Whether only we can change what `fd` names. */
bool image_is_ours(int fd);

/* Give a view away: yields it and leaves an empty one behind. */
static inline struct image_view image_view_take(struct image_view *view)
{
    struct image_view taken = *view;

    *view = (struct image_view) IMAGE_VIEW_INIT;
    return taken;
}
